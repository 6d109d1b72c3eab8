"""Remake ``minilm.npz``, what chapter 13 shows of a real model: ``python book/data/minilm.py``.

Needs the model's package, which readers of the pages do not; `attn_lib.minilm` says how to install
it. Computed in float64 and then rounded, so that the bytes do not depend on the machine.
"""

from pathlib import Path

import numpy as np

from attn_lib.minilm import load_minilm, read_sentence, write_export

SENTENCES = {
    "chef": "The chef added salt because the soup tasted bland.",
    # The control: the same words side by side mean something else than in the first sentence.
    "control": "The soup that the chef salted tasted bland.",
    # Two of each meaning, so placed that the bank nearest in position is of the other one.
    "river": "They sat on the river bank.",
    "muddy": "The river bank was muddy after the rain.",
    "account": "She opened a bank account.",
    "loans": "The bank lends money to small firms.",
    # And one that shows what a few cosines do not prove.
    "fish": "They went to the bank to fish.",
}
HEADS = {name: [(0, 2), (0, 4), (0, 10), (1, 8), (4, 5)] for name in ("chef", "control")}


def make(path: str | Path) -> None:
    """Run the model over the sentences and write the file."""
    model = load_minilm(dtype=np.float64)
    readings = {
        name: read_sentence(model, text, HEADS.get(name, [])) for name, text in SENTENCES.items()
    }
    write_export(path, readings)


if __name__ == "__main__":
    target = Path(__file__).with_suffix(".npz")
    make(target)
    print(f"{target.name}: {target.stat().st_size / 1e3:.0f} kB")
