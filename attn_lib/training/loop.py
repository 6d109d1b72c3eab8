"""Adam and the loop that trains.

A run is fixed by its recipe and its seed. The data of a step depend on the seed and the step
alone, so a run that is stopped and continued is the run that was never stopped, bit for bit.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from attn_lib.backward import Gradients
from attn_lib.extras import missing
from attn_lib.model import Params
from attn_lib.training.recipes import RECIPES, Recipe


class Moments(NamedTuple):
    """What Adam remembers of past gradients: running means of g and of g², per parameter."""

    mean: Params
    square: Params


def adam_step(
    params: Params,
    grads: Gradients,
    moments: Moments,
    *,
    step: int,
    rate: float,
    betas: tuple[float, float] = (0.9, 0.99),
    eps: float = 1e-8,
) -> tuple[Params, Moments]:
    """Take one step of Adam; parameters without a gradient stay as they are.

    Parameters
    ----------
    params, grads : dict of ndarray
        The parameters, and the gradients of those that may move.
    moments : Moments
        Zeros at the start.
    step : int
        0 at the first step: the running means are too small by 1 − βᵗ, t = step + 1.
    rate : float
        The learning rate.
    betas : pair of float, default (.9, .99)
        How slowly the two means forget.
    eps : float, default 1e-8
        Keeps the division finite.

    Returns
    -------
    params, moments
        New dicts: the old ones are not changed, so whoever keeps one has a checkpoint.

    Notes
    -----
    Kingma and Ba (2015).
    """
    mean, square = dict(moments.mean), dict(moments.square)
    moved = dict(params)
    for name, g in grads.items():
        mean[name] = betas[0] * mean[name] + (1 - betas[0]) * g
        square[name] = betas[1] * square[name] + (1 - betas[1]) * g * g
        m = mean[name] / (1 - betas[0] ** (step + 1))
        v = square[name] / (1 - betas[1] ** (step + 1))
        moved[name] = params[name] - rate * m / (np.sqrt(v) + eps)
    return moved, Moments(mean, square)


@dataclass
class Run:
    """A training run: what it is, and how far it has come.

    Attributes
    ----------
    recipe : Recipe
        What is trained on what, and how.
    seed : int
        Fixes the start and all data.
    params : dict of ndarray
        As they are now.
    moments : Moments
        What Adam remembers.
    step : int
        Steps taken so far.
    losses : list of float
        The loss of each step, before that step was taken.
    frozen : tuple of str
        Parameters that do not move.
    kept : dict
        ``{step: params}`` for the steps that were to be kept.
    """

    recipe: Recipe
    seed: int
    params: Params
    moments: Moments
    step: int = 0
    losses: list[float] = field(default_factory=list)
    frozen: tuple[str, ...] = ()
    kept: dict[int, Params] = field(default_factory=dict)


def start(recipe: Recipe | str, seed: int = 0, *, frozen: Sequence[str] = ()) -> Run:
    """Set up a run at step 0.

    Parameters
    ----------
    recipe : Recipe or str
        One of your own, or the name of one in `RECIPES`.
    seed : int, default 0
        Fixes the start and all data.
    frozen : sequence of str, optional
        Names of parameters that are not to move.

    Returns
    -------
    Run
        Its ``params`` may be changed before training, for instance to start saturated.

    Raises
    ------
    ValueError
        If there is no such recipe or parameter.
    """
    if isinstance(recipe, str):
        if recipe not in RECIPES:
            raise ValueError(f"there is no recipe {recipe!r}; there are {', '.join(RECIPES)}")
        recipe = RECIPES[recipe]
    params = recipe.model.init(recipe.config, seed, recipe.dtype)
    unknown = [name for name in frozen if name not in params]
    if unknown:
        raise ValueError(f"cannot freeze {unknown}: the parameters are {list(params)}")
    zeros = [{name: np.zeros_like(W) for name, W in params.items()} for _ in range(2)]
    return Run(recipe, seed, params, Moments(*zeros), frozen=tuple(frozen))


def train(
    run: Run, until: int | None = None, *, keep: Iterable[int] = (), progress: bool = True
) -> Run:
    """Train up to a step. May be interrupted and called again: nothing is lost or repeated.

    Parameters
    ----------
    run : Run
        Changed in place, one whole step at a time.
    until : int, optional
        The step to reach, by default ``run.recipe.steps``.
    keep : iterable of int, optional
        Steps whose parameters go into ``run.kept``: 0 is the start.
    progress : bool, default True
        Whether to show a bar, unless the environment says ``TQDM_DISABLE``, as a build of the
        book does.

    Returns
    -------
    Run
        The same run.

    Raises
    ------
    FloatingPointError
        If the loss or a gradient is not finite. The message names the step; the run stays as
        it was before it.
    """
    until, keep = run.recipe.steps if until is None else until, set(keep)
    _keep(run, keep)
    try:
        from tqdm import tqdm  # the rest of this room needs numpy alone
    except ModuleNotFoundError as error:
        raise missing(error, "book") from None
    # Left out, tqdm asks the environment.
    silent: dict[str, Any] = {} if progress else {"disable": True}
    with tqdm(total=until, initial=run.step, desc=run.recipe.name, **silent) as bar:
        while run.step < until:
            _train_step(run)
            _keep(run, keep)
            bar.update()
            if run.step % 20 == 0:
                bar.set_postfix(loss=f"{run.losses[-1]:.3f}", refresh=False)
    return run


def _train_step(run: Run) -> None:
    """Draw a batch, find the gradients, move; all of it or, if interrupted, nothing."""
    recipe, step = run.recipe, run.step
    batch = recipe.draw(np.random.default_rng([run.seed, step, 1]))
    with np.errstate(all="ignore"):  # what overflows is reported below, with its step
        loss, grads = recipe.model.loss_and_gradients(run.params, batch, recipe.config)
    _check_finite(step, loss, grads)
    grads = {name: g for name, g in grads.items() if name not in run.frozen}
    rate = recipe.rate * min(1.0, (step + 1) / max(1, recipe.warmup))
    with np.errstate(all="ignore"):
        params, moments = adam_step(run.params, grads, run.moments, step=step, rate=rate)
    losses = [*run.losses[:step], loss]
    run.params, run.moments, run.losses, run.step = params, moments, losses, step + 1


def _check_finite(step: int, loss: float, grads: Gradients) -> None:
    """Stop a run at the first number that is not one."""
    if not math.isfinite(loss):
        raise FloatingPointError(
            f"step {step}: the loss is {loss}; try a smaller learning rate. "
            f"The run still holds the parameters this step started from"
        )
    for name, g in grads.items():
        if not np.isfinite(g).all():
            raise FloatingPointError(
                f"step {step}: the loss is {loss:.4g} but the gradient of {name} is not finite"
            )


def _keep(run: Run, keep: set[int]) -> None:
    if run.step in keep:
        run.kept[run.step] = run.params
