"""Runs and checkpoints as small files."""

import json
import math
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attn_lib.arrays import Array
from attn_lib.model import Params, transformer
from attn_lib.training.loop import Moments, Run
from attn_lib.training.recipes import RECIPES, Recipe


def save_arrays(path: str | Path, arrays: dict[str, Array]) -> None:
    """Write an .npz file whose bytes depend on the arrays alone, not on the clock.

    Parameters
    ----------
    path : str or Path
        Where to.
    arrays : dict of array_like
        What; read it again with `numpy.load`.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w") as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)


def save_run(run: Run, path: str | Path) -> None:
    """Write a run to a file, whole: parameters, Adam's memory, losses, what was kept.

    Parameters
    ----------
    run : Run
        Of a recipe in `RECIPES`.
    path : str or Path
        Where to; best with the ending ``.npz``.

    Raises
    ------
    ValueError
        If the recipe is not in `RECIPES`: `load_run` could not find it.
    """
    if RECIPES.get(run.recipe.name) is not run.recipe:
        raise ValueError(f"recipe {run.recipe.name!r} is not in RECIPES: add it to save its runs")
    about = {"recipe": run.recipe.name, "seed": run.seed, "step": run.step, "frozen": run.frozen}
    groups = {"params": run.params, "mean": run.moments.mean, "square": run.moments.square}
    groups |= {f"kept/{step}": params for step, params in run.kept.items()}
    arrays = {f"{group}/{name}": W for group, part in groups.items() for name, W in part.items()}
    save_arrays(path, {"about": json.dumps(about), "losses": run.losses, **arrays})


def load_run(path: str | Path) -> Run:
    """Read a run that `save_run` wrote; `train` then goes on with it.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Run
    """
    with np.load(path) as file:
        about = json.loads(str(file["about"]))
        groups: dict[str, Params] = {}
        for key in file.files:
            if "/" in key:
                group, name = key.rsplit("/", 1)
                groups.setdefault(group, {})[name] = file[key]
        losses = file["losses"].tolist()
    kept = {int(group[5:]): part for group, part in groups.items() if group.startswith("kept/")}
    return Run(
        RECIPES[about["recipe"]],
        about["seed"],
        groups["params"],
        Moments(groups["mean"], groups["square"]),
        about["step"],
        losses,
        tuple(about["frozen"]),
        kept,
    )


class Checkpoints(NamedTuple):
    """A finished run, small enough to be part of the book.

    Attributes
    ----------
    recipe : Recipe
        What was trained.
    seed : int
        Its seed.
    losses : ndarray, shape (steps,)
        The loss of each step, rounded to float16.
    params : dict
        ``{step: params}``: float16 at the last step; before it each row of a matrix in 255
        even levels, off by at most 1/254 of the row's largest entry.
    curves : dict of ndarray
        What was measured at the steps ``curves["step"]``.
    tokens : ndarray of int, shape (1, n)
        A held-out sequence.
    weights : ndarray, shape (moments, layers, h, n, n)
        The attention on it at the steps ``curves["step"]``, off by at most 1/510.
    """

    recipe: Recipe
    seed: int
    losses: np.ndarray
    params: dict[int, Params]
    curves: dict[str, np.ndarray]
    tokens: np.ndarray
    weights: np.ndarray

    @property
    def final(self) -> Params:
        """The model as it was at the end."""
        return self.params[max(self.params)]


def save_checkpoints(
    path: str | Path, run: Run, *, steps: Iterable[int], curves: dict[str, Array], tokens: Array
) -> None:
    """Write what the book keeps of a run.

    Parameters
    ----------
    path : str or Path
        Where to.
    run : Run
        Trained, with all of ``curves["step"]`` and `steps` kept.
    steps : iterable of int
        Steps before the last whose parameters go into the file.
    curves : dict of array_like
        Measured values, with their steps under ``"step"``.
    tokens : array_like of int, shape (1, n)
        The sequence on which attention is shown.
    """
    weights = [
        np.array(transformer(run.kept[step], tokens, run.recipe.config).weights)[:, 0]
        for step in curves["step"]
    ]
    shapes = {name: W.shape for name, W in run.params.items()}
    about = {"recipe": run.recipe.name, "seed": run.seed, "shapes": shapes}
    arrays = {
        "about": json.dumps(about),
        "losses": np.array(run.losses, np.float16),
        "tokens": np.asarray(tokens, np.uint8),
        "weights": np.rint(255 * np.array(weights)).astype(np.uint8),
    }
    arrays |= {f"curves/{name}": np.asarray(values) for name, values in curves.items()}
    last = np.concatenate([W.ravel() for W in run.params.values()])
    arrays[f"float16/{run.step}"] = last.astype(np.float16)
    for step in steps:
        levels, units = zip(*(quantise(W) for W in run.kept[step].values()), strict=True)
        arrays[f"levels/{step}"] = np.concatenate([part.ravel() for part in levels])
        arrays[f"units/{step}"] = np.concatenate([part.ravel() for part in units])
    save_arrays(path, arrays)


def quantise(W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Round each row to multiples of its unit, 1/127 of its largest entry: int8 and units."""
    unit = np.abs(W).max(axis=-1, keepdims=True).astype(np.float32) / 127
    return np.rint(W / np.where(unit > 0, unit, 1)).astype(np.int8), unit


def load_checkpoints(path: str | Path) -> Checkpoints:
    """Read what `save_checkpoints` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Checkpoints
        Parameters and weights as float32.
    """
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    about, params, curves = json.loads(str(arrays["about"])), {}, {}
    for key in arrays:
        group, _, name = key.partition("/")
        if group == "curves":
            curves[name] = arrays[key]
        elif group == "float16":
            params[int(name)] = _cut(arrays[key].astype(np.float32), about["shapes"])
        elif group == "levels":
            levels = _cut(arrays[key], about["shapes"])
            rows: dict[str, Sequence[int]] = {
                part: (*shape[:-1], 1) for part, shape in about["shapes"].items()
            }
            units = _cut(arrays[f"units/{name}"], rows)
            params[int(name)] = {part: levels[part] * units[part] for part in levels}
    weights = arrays["weights"].astype(np.float32) / 255
    tokens, losses = arrays["tokens"].astype(int), arrays["losses"].astype(np.float64)
    params = dict(sorted(params.items()))
    return Checkpoints(
        RECIPES[about["recipe"]], about["seed"], losses, params, curves, tokens, weights
    )


def _cut(flat: np.ndarray, shapes: dict[str, Sequence[int]]) -> Params:
    """Cut one long row of numbers into arrays of the given shapes, in their order."""
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
    parts = np.split(flat, ends[:-1])
    return {name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=True)}
