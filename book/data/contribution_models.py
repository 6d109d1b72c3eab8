"""Remake the models that ContributionLab carries: ``python book/data/contribution_models.py``.

They are the last states of ``induction.npz`` and ``induction-two-heads.npz``, beside this file, in
the half precision those are kept in: nothing is rounded again.
"""

import json
from pathlib import Path

from attn_lib.labs.contribution.lab import MODELS, STORED, pack
from attn_lib.training import load_checkpoints

HERE = Path(__file__).parent


def models() -> dict[str, str]:
    """Give each model's parameters as text."""
    return {name: pack(name, load_checkpoints(HERE / f"{name}.npz").final) for name in MODELS}


if __name__ == "__main__":
    STORED.write_text(json.dumps(models(), indent=0) + "\n", encoding="ascii")
    print(f"{STORED.name}: {STORED.stat().st_size / 1000:.0f} kB")
