"""Remake the trained models the chapters use: ``python book/data/make.py``.

It takes five to ten minutes. It writes ``attn_lib/labs/training/data.json``, which is what
``TrainingLab`` shows, and, beside itself,

- ``induction.npz``: the induction model, with four earlier states;
- ``induction-two-heads.npz``: the same task, two heads in each layer;
- ``honest.npz`` and ``leak.npz``: the Markov source with the causal mask and without it;
- ``leak-last-counted.npz``: without it too, and the last position's answer counts;
- ``induction-seeds.npz``: what the heads of five runs with two heads do, seed by seed.

``attn_lib.training.load_checkpoints`` reads them. The same numpy on the same machine gives the same
bytes; another may round differently in the last place, and after thousands of steps such a
difference shows in the digits, not in what the models do.
"""

from pathlib import Path

import numpy as np

from attn_lib import zero_heads
from attn_lib.labs.training.lab import store_runs
from attn_lib.training import (
    Run,
    every_period,
    head_scores,
    held_out,
    save_arrays,
    save_checkpoints,
    score,
    start,
    train,
)

HERE = Path(__file__).parent
MOMENTS = [*range(0, 600, 25), *range(600, 1000, 100), *range(1000, 2501, 250)]
PERIOD_SHOWN = 6


def make_induction(name: str, earlier: list[int]) -> Run:
    """Train one of the induction models; measure it on every period, at each moment."""
    run = train(start(name, seed=SEEDS[name]), keep=MOMENTS)
    batches = every_period(name)
    curves = {"step": MOMENTS, "loss": [], "accuracy": [], "previous": [], "induction": []}
    for step in MOMENTS:
        found = score(run.kept[step], name, batches)
        heads = head_scores(run.kept[step], run.recipe.config, batches)
        curves["loss"].append(found.loss)
        curves["accuracy"].append(found.accuracy)
        curves["previous"].append(heads.previous)
        curves["induction"].append(heads.induction)
    tokens = every_period(name, [PERIOD_SHOWN])[0].tokens[:1]
    save(run, name, steps=earlier, curves=curves, tokens=tokens)
    return run


def make_markov(name: str) -> Run:
    """Train one of the three models of the masking chapter."""
    moments = [*range(0, 300, 25), *range(300, 1501, 100)]
    run = train(start(name, seed=SEEDS[name]), keep=moments)
    batches = held_out(name)
    found = [score(run.kept[step], name, batches) for step in moments]
    curves = {"step": moments, "loss": [f.loss for f in found]}
    curves["accuracy"] = [f.accuracy for f in found]
    save(run, name, steps=[], curves=curves, tokens=batches[0].tokens[:1])
    return run


def measure_seeds(runs: list[Run]) -> None:
    """Score the heads of runs that differ in the seed alone, and take each head away."""
    batches, found = every_period("induction-two-heads"), {}
    for run in runs:
        heads = head_scores(run.params, run.recipe.config, batches)
        losses = [
            [score(run.params, run.recipe, batches, edit=zero_heads(l, [r])).loss for r in (0, 1)]
            for l in (0, 1)
        ]
        whole = score(run.params, run.recipe, batches).loss
        kinds = ("previous", "own", "induction")
        measured = {kind: getattr(heads, kind) for kind in kinds} | {"without": losses}
        for name, value in (measured | {"loss": whole, "seed": run.seed}).items():
            found.setdefault(name, []).append(value)
    arrays = {name: np.array(values, np.float32) for name, values in found.items()}
    save_arrays(HERE / "induction-seeds.npz", arrays)


def save(run: Run, name: str, *, curves: dict, **options) -> None:
    """Write one file, measured values in single precision."""
    kinds = {"step": np.int32}
    curves = {key: np.array(values, kinds.get(key, np.float32)) for key, values in curves.items()}
    path = HERE / f"{name}.npz"
    save_checkpoints(path, run, curves=curves, **options)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


MARKOV = ("honest", "leak", "leak-last-counted")
SEEDS = {"induction": 1, "induction-two-heads": 0, "reversal": 0, **dict.fromkeys(MARKOV, 0)}

if __name__ == "__main__":
    one_head = make_induction("induction", earlier=[200, 250, 300, 400])
    two_heads = make_induction("induction-two-heads", earlier=[])
    reversal = train(start("reversal", seed=SEEDS["reversal"]), keep=range(0, 101, 5))
    others = [train(start("induction-two-heads", seed=seed)) for seed in (1, 2, 3, 4)]
    measure_seeds([two_heads, *others])
    store_runs([one_head, reversal, two_heads])
    for name in MARKOV:
        make_markov(name)
