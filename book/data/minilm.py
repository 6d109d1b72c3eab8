"""Remake ``minilm.npz``, what chapter 14 shows of a real model: ``python book/data/minilm.py``.

Needs the model's package, which readers of the pages do not; `attn_lib.minilm` says how to install
it. Computed in float64 and then rounded, so that the bytes do not depend on the machine.
"""

from pathlib import Path

import numpy as np

from attn_lib.minilm import MiniLM, load_minilm, minilm, read_sentence, write_export

REFERENCE = Path(__file__).parents[2] / "tests/data/minilm_reference.npz"

SENTENCES = {
    "chef": "The chef added salt because the soup tasted bland.",
    # The control: the same words side by side mean something else than in the first sentence.
    "control": "The soup that the chef salted tasted bland.",
    # And here the chef is bland: the picture should turn over.
    "turned": "The chef who tasted the soup was bland.",
    # Two of each meaning, so placed that the bank nearest in position is of the other one.
    "river": "They sat on the river bank.",
    "muddy": "The river bank was muddy after the rain.",
    "account": "She opened a bank account.",
    "loans": "The bank lends money to small firms.",
    # And one that shows what a few cosines do not prove.
    "fish": "They went to the bank to fish.",
}
HEADS = {name: [(0, 2), (0, 4), (0, 10), (1, 8), (4, 5)] for name in ("chef", "control")}
HEADS["turned"] = [(0, 10)]


def difference(model: MiniLM) -> float:
    """Compare every row and every weight of the first sentence with what PyTorch gave."""
    with np.load(REFERENCE) as theirs:
        ours = minilm(model.params, model.encode(str(theirs["text"]))[1])
        gaps = ours.hidden - theirs["hidden"], ours.weights - theirs["weights"]
    return max(np.abs(gap).max() for gap in gaps)


def make(path: str | Path) -> None:
    """Run the model over the sentences and write the file."""
    model = load_minilm(dtype=np.float64)
    readings = {
        name: read_sentence(model, text, HEADS.get(name, []), products=name == "chef")
        for name, text in SENTENCES.items()
    }
    write_export(path, readings, difference=difference(model))


if __name__ == "__main__":
    target = Path(__file__).with_suffix(".npz")
    make(target)
    print(f"{target.name}: {target.stat().st_size / 1e3:.0f} kB")
