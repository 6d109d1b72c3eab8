"""Small models that really learn: tasks, Adam, the loop, and what to measure afterwards.

A run is fixed by its recipe and its seed. The data of a step depend on the seed and the step
alone, so a run that is stopped and continued is the run that was never stopped, bit for bit.
"""

import json
import math
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from tqdm import tqdm

from attn_lib.attention import AttentionResult, cross_attention, softmax
from attn_lib.block import (
    Config,
    _check_tokens,
    cross_entropy,
    init_params,
    transformer,
)
from attn_lib.gradients import (
    Gradients,
    attention_backward,
    cross_entropy_backward,
    embedding_backward,
    linear_backward,
    loss_and_gradients,
    softmax_backward,
)

Params = dict[str, np.ndarray]

# Tasks --------------------------------------------------------------------------------


class Batch(NamedTuple):
    """Several sequences and what to answer at each position.

    Attributes
    ----------
    tokens : ndarray of int, shape (size, n) or (size, n, parts)
        What the model reads.
    targets : ndarray of int, shape (size, n)
        The right answer at each position.
    counted : ndarray, shape (size, n)
        1 where the answer counts, 0 where it does not.
    source : ndarray of int, shape (size, m, parts), optional
        The other sequence, where there are two.
    """

    tokens: np.ndarray
    targets: np.ndarray
    counted: np.ndarray
    source: np.ndarray | None = None


def copy_batch(rng: np.random.Generator, *, size: int, length: int, vocabulary: int) -> Batch:
    """Answer each position with its own token."""
    tokens = rng.integers(vocabulary, size=(size, length))
    return Batch(tokens, tokens, np.ones(tokens.shape))


def reverse_batch(rng: np.random.Generator, *, size: int, length: int, vocabulary: int) -> Batch:
    """Answer position i with the token at position length − 1 − i."""
    tokens = rng.integers(vocabulary, size=(size, length))
    return Batch(tokens, tokens[:, ::-1].copy(), np.ones(tokens.shape))


def induction_batch(
    rng: np.random.Generator,
    *,
    size: int,
    vocabulary: int,
    shortest: int,
    longest: int,
) -> Batch:
    """Predict the next token of a sequence that repeats: ``a b c d a b c d``.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the draws come from.
    size, vocabulary : int
        Sequences in the batch, and number of different tokens.
    shortest, longest : int
        The period, one for the whole batch, is drawn between these, both included.

    Returns
    -------
    Batch
        Each sequence is `period` distinct tokens, twice, without the last; n = 2 · period − 1.
        Answers count from the second copy on, where the current token has been seen before:
        what follows can be known there, and nowhere else.

    Notes
    -----
    Chapters 8 and 10.
    """
    period = int(rng.integers(shortest, longest + 1))
    once = rng.permuted(np.tile(np.arange(vocabulary), (size, 1)), axis=1)[:, :period]
    twice = np.concatenate([once, once], axis=1)
    counted = np.tile(np.arange(2 * period - 1) >= period, (size, 1)).astype(float)
    return Batch(twice[:, :-1], twice[:, 1:], counted)


def period_of(batch: Batch) -> int:
    """Tell the period of a batch of the induction task."""
    return (batch.tokens.shape[1] + 1) // 2


def markov_chain(
    states: int = 16, chances: Sequence[float] = (0.6, 0.3, 0.1), seed: int = 0
) -> np.ndarray:
    """Draw a source in which each state has the same few chances, for its own successors.

    Parameters
    ----------
    states : int, default 16
        Number of tokens.
    chances : sequence of float, default (.6, .3, .1)
        Probabilities of a state's successors, which are drawn for each state; the rest get 0.
    seed : int, default 0
        For that draw.

    Returns
    -------
    ndarray, shape (states, states)
        ``P[a, b]`` is the probability that b follows a.

    Notes
    -----
    Every row has the same entropy, so that is the entropy rate: the least mean surprise, in
    nats, of any model that has not seen the answer. Chapter 6.
    """
    rng = np.random.default_rng(seed)
    P = np.zeros((states, states))
    for row in P:
        row[rng.choice(states, size=len(chances), replace=False)] = chances
    return P


def entropy_rate(P: ArrayLike) -> float:
    """Give the floor no honest model can pass: the mean entropy of the rows, in nats.

    Parameters
    ----------
    P : array_like, shape (states, states)
        Transition probabilities. The rows are averaged evenly, which is the entropy rate if
        all have one entropy, as those of `markov_chain` do.

    Returns
    -------
    float
    """
    P = np.asarray(P, dtype=float)
    return float(-(P * np.log(np.where(P > 0, P, 1))).sum(axis=-1).mean())


def markov_batch(
    rng: np.random.Generator, *, P: np.ndarray, size: int, length: int, count_last: bool = False
) -> Batch:
    """Predict the next state of a Markov chain.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the draws come from.
    P : ndarray, shape (states, states)
        Transition probabilities.
    size, length : int
        Sequences, and tokens the model reads in each.
    count_last : bool, default False
        Whether the answer at the last position counts. It is the only one that stands nowhere
        in the input: a model that can read ahead is trained honestly there, and only there.

    Returns
    -------
    Batch

    Notes
    -----
    Chapter 6.
    """
    states = [rng.integers(len(P), size=size)]
    steps = P.cumsum(axis=1)
    for dart in rng.random((length, size)):
        next_state = (steps[states[-1]] <= dart[:, None]).sum(axis=1)
        states.append(np.minimum(next_state, len(P) - 1))  # a row may sum to 1 − 1e-16
    tokens = np.array(states).T
    counted = np.ones((size, length))
    counted[:, -1] = count_last
    return Batch(tokens[:, :-1], tokens[:, 1:], counted)


def sums_batch(
    rng: np.random.Generator, *, size: int, length: int, digits: int = 10, slips: float = 0.1
) -> Batch:
    """Predict the next digit where each is the last digit of the sum of the two before it.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the draws come from.
    size, length : int
        Sequences, and digits the model reads in each.
    digits : int, default 10
        Sums are taken modulo this number.
    slips : float, default 0.1
        Share of the steps at which any digit is written instead, the right one included.

    Returns
    -------
    Batch
        The first answer does not count: one digit says nothing about the next.

    Notes
    -----
    To answer, a model must fetch the digit before (routing) and add it to its own
    (computing). Chapter 9.
    """
    text = list(rng.integers(digits, size=(2, size)))
    slipped = rng.random((length - 1, size)) < slips
    for slip, other in zip(slipped, rng.integers(digits, size=slipped.shape), strict=True):
        text.append(np.where(slip, other, (text[-2] + text[-1]) % digits))
    tokens = np.array(text).T
    counted = np.ones((size, length))
    counted[:, 0] = 0
    return Batch(tokens[:, :-1], tokens[:, 1:], counted)


def legal_share(tokens: ArrayLike, P: ArrayLike) -> float:
    """Tell which share of the steps in `tokens` (..., n) can happen in the source."""
    tokens, P = np.asarray(tokens), np.asarray(P)
    return float((P[tokens[..., :-1], tokens[..., 1:]] > 0).mean())


def translate_batch(rng: np.random.Generator, *, size: int, length: int, vocabulary: int) -> Batch:
    """Write a source sequence backwards, reading it through cross-attention.

    Both sides mark their positions: what is read is a pair (token, position), each with a row
    of its own in the embedding table, positions after tokens. The reader's token is the one
    written last, or a start mark, `vocabulary`.
    """
    words = rng.integers(vocabulary, size=(size, length))
    targets = words[:, ::-1].copy()
    written = np.concatenate([np.full((size, 1), vocabulary), targets[:, :-1]], axis=1)
    positions = np.broadcast_to(vocabulary + 1 + np.arange(length), (size, length))
    pairs = [np.stack([side, positions], axis=-1) for side in (written, words)]
    return Batch(pairs[0], targets, np.ones(targets.shape), pairs[1])


def lookup_batch(
    rng: np.random.Generator, *, size: int, pairs: int, keys: int, values: int
) -> Batch:
    """Answer each key that is asked for with the value that stands beside it in the source.

    The source holds `pairs` (key, value) pairs with distinct keys, in any order; values are
    numbered after the keys. The reader asks for every key once, in another order.
    """
    held = rng.permuted(np.tile(np.arange(keys), (size, 1)), axis=1)[:, :pairs]
    paired = rng.integers(values, size=(size, pairs))
    order = rng.permuted(np.tile(np.arange(pairs), (size, 1)), axis=1)
    asked, targets = (np.take_along_axis(M, order, axis=1) for M in (held, paired))
    source = np.stack([held, keys + paired], axis=-1)
    return Batch(asked[..., None], targets, np.ones(targets.shape), source)


# A model with cross-attention -------------------------------------------------------------


@dataclass(frozen=True)
class ReaderConfig:
    """The sizes of the smallest model that reads another sequence.

    Attributes
    ----------
    asks, holds : int
        Rows of the reader's and of the source's embedding table.
    vocabulary : int
        Number of possible answers.
    d, d_k : int
        Width of an embedding; width of queries, keys and values.
    """

    asks: int
    holds: int
    vocabulary: int
    d: int = 32
    d_k: int = 32


def init_reader(config: ReaderConfig, seed: int = 0, dtype: type = np.float32) -> Params:
    """Draw a reader's parameters: tables of variance 1, matrices of variance 1/(rows)."""
    rng, d, d_k = np.random.default_rng(seed), config.d, config.d_k
    shapes = {"E_X": (config.asks, d), "E_Y": (config.holds, d)}
    shapes |= {"W_Q": (d, d_k), "W_K": (d, d_k), "W_V": (d, d_k), "U": (d_k, config.vocabulary)}
    params = {}
    for name, shape in shapes.items():
        fan_in = 1 if name.startswith("E") else shape[0]
        params[name] = (rng.normal(size=shape) / math.sqrt(fan_in)).astype(dtype)
    return params


def reader(
    params: Params, tokens: ArrayLike, source: ArrayLike
) -> tuple[np.ndarray, AttentionResult]:
    """Ask, read the source, answer: one head of cross-attention and nothing else.

    Parameters
    ----------
    params : dict of ndarray
        As `init_reader` makes them.
    tokens : array_like of int, shape (..., n, parts)
        What the reader knows at each position; the rows of its parts are added up.
    source : array_like of int, shape (..., m, parts)
        Likewise for the source.

    Returns
    -------
    logits : ndarray, shape (..., n, vocabulary)
    attention : AttentionResult
        Weights (..., n, m): which source position each answer was read from.

    Raises
    ------
    ValueError
        If a number has no row in its table.

    Notes
    -----
    Chapter 7.
    """
    tokens = _check_tokens("tokens", tokens, len(params["E_X"]))
    source = _check_tokens("source", source, len(params["E_Y"]))
    X, Y = params["E_X"][tokens].sum(axis=-2), params["E_Y"][source].sum(axis=-2)
    result = cross_attention(X, Y, params["W_Q"], params["W_K"], params["W_V"])
    return result.output @ params["U"], result


def reader_loss_and_gradients(params: Params, batch: Batch) -> tuple[float, Gradients]:
    """Run a reader forward and all the way back.

    Parameters
    ----------
    params : dict of ndarray
        As `init_reader` makes them.
    batch : Batch
        With a source.

    Returns
    -------
    loss : float
        The mean cross-entropy, in nats.
    gradients : dict of ndarray
        One for each parameter.

    Notes
    -----
    Chapters 7 and 10.
    """
    logits, result = reader(params, batch.tokens, batch.source)
    loss = cross_entropy(logits, batch.targets, batch.counted)
    dlogits = cross_entropy_backward(logits, batch.targets, batch.counted)
    X = params["E_X"][batch.tokens].sum(axis=-2)
    Y = params["E_Y"][batch.source].sum(axis=-2)
    Q, K, V = X @ params["W_Q"], Y @ params["W_K"], Y @ params["W_V"]
    grads = linear_backward(dlogits, result.output, params["U"], names=("O", "U", "_"))
    dQ, dK, dV = attention_backward(grads["O"], Q, K, V, weights=result.weights)
    grads |= linear_backward(dQ, X, params["W_Q"], names=("X", "W_Q", "_"))
    grads |= linear_backward(dK, Y, params["W_K"], names=("by_key", "W_K", "_"))
    grads |= linear_backward(dV, Y, params["W_V"], names=("by_value", "W_V", "_"))
    grads["E_X"] = _parts_backward(grads["X"], batch.tokens, params["E_X"])
    grads["E_Y"] = _parts_backward(grads["by_key"] + grads["by_value"], batch.source, params["E_Y"])
    return float(loss), {name: grads[name] for name in params}


def _parts_backward(dX: np.ndarray, tokens: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Go back through rows that are sums of rows: each part gets the whole gradient."""
    return embedding_backward(
        np.broadcast_to(dX[..., None, :], (*tokens.shape, dX.shape[-1])), tokens, len(table)
    )


# Recipes ------------------------------------------------------------------------------


class Model(NamedTuple):
    """The three things the loop needs to know of a model.

    Attributes
    ----------
    init : callable
        ``init(config, seed, dtype)`` gives parameters.
    logits : callable
        ``logits(params, batch, config)``.
    loss_and_gradients : callable
        ``loss_and_gradients(params, batch, config)``.
    """

    init: Callable
    logits: Callable
    loss_and_gradients: Callable


TRANSFORMER = Model(
    init_params,
    lambda params, batch, config: transformer(params, batch.tokens, config).logits,
    lambda params, batch, config: loss_and_gradients(
        params, batch.tokens, batch.targets, config, counted=batch.counted
    ),
)
READER = Model(
    init_reader,
    lambda params, batch, config: reader(params, batch.tokens, batch.source)[0],
    lambda params, batch, config: reader_loss_and_gradients(params, batch),
)


@dataclass(frozen=True)
class Recipe:
    """Everything that fixes a run, but its seed.

    Attributes
    ----------
    name : str
        Its key in `RECIPES`, by which a saved run finds it again.
    draw : callable
        ``draw(rng)`` gives a `Batch`.
    config : Config or ReaderConfig
        The sizes of the model.
    steps : int
        How long to train by default.
    rate : float
        Adam's learning rate.
    warmup : int, default 0
        Over so many steps the rate rises in equal steps to its full size.
    model : Model
        By default the Transformer of `attn_lib.block`.
    dtype : dtype, default float32
        What to train in.
    """

    name: str
    draw: Callable[[np.random.Generator], Batch]
    config: Any
    steps: int
    rate: float
    warmup: int = 0
    model: Model = TRANSFORMER
    dtype: type = np.float32


def _induction(name: str, *, layers: int = 2, heads: int = 1, shortest: int = 4, steps: int = 2500):
    """Give the induction task with periods up to 16, and a model of attention alone."""
    draw = partial(induction_batch, size=64, vocabulary=64, shortest=shortest, longest=16)
    config = Config(
        vocabulary=64, context=32, d=64, layers=layers, heads=heads, d_k=32 // heads, norm="none"
    )
    return Recipe(name, draw, config, steps, rate=2e-3, warmup=100)


def _leak(name: str, *, causal: bool, count_last: bool = False) -> Recipe:
    """Give the Markov source and a model with the causal mask or without it."""
    draw = partial(markov_batch, P=markov_chain(), size=64, length=16, count_last=count_last)
    config = Config(vocabulary=16, context=16, d=32, norm="none", causal=causal)
    return Recipe(name, draw, config, steps=1500, rate=3e-3)


def _recipes() -> dict[str, Recipe]:
    sequence = partial(Config, context=12, d=32, norm="none", causal=False)
    sizes = {"size": 64, "length": 12, "vocabulary": 26}
    recipes = [
        Recipe("copy", partial(copy_batch, **sizes), sequence(26), 100, 3e-3),
        Recipe("reversal", partial(reverse_batch, **sizes), sequence(26), 100, 3e-3),
        Recipe(
            "translation",
            partial(translate_batch, **sizes),
            ReaderConfig(asks=39, holds=39, vocabulary=26),
            150,
            3e-3,
            model=READER,
        ),
        Recipe(
            "lookup",
            partial(lookup_batch, size=64, pairs=6, keys=16, values=16),
            ReaderConfig(asks=16, holds=32, vocabulary=16),
            150,
            3e-3,
            model=READER,
        ),
        _induction("induction"),
        _induction("induction-two-heads", heads=2),
        _induction("induction-one-layer", layers=1),
        _induction("fixed-period", layers=1, shortest=16, steps=500),
        Recipe(
            "sums",
            partial(sums_batch, size=32, length=12),
            Config(vocabulary=10, context=12, d=32, heads=2, d_ff=128),
            400,
            1e-2,
            warmup=20,
        ),
        _leak("honest", causal=True),
        _leak("leak", causal=False),
        _leak("leak-last-counted", causal=False, count_last=True),
    ]
    return {recipe.name: recipe for recipe in recipes}


RECIPES = _recipes()

# The loop -----------------------------------------------------------------------------


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
    Chapter 10; Kingma and Ba (2015).
    """
    mean, square, moved = dict(moments.mean), dict(moments.square), dict(params)
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

    Notes
    -----
    Chapter 10.
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

    Notes
    -----
    Chapter 10.
    """
    until, keep = run.recipe.steps if until is None else until, set(keep)
    _keep(run, keep)
    silent = {} if progress else {"disable": True}  # left out, tqdm asks the environment
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


# Measuring ------------------------------------------------------------------------------


def held_out(recipe: Recipe | str, count: int = 8, *, seed: int = 0) -> list[Batch]:
    """Draw batches that no run trains on, whatever its seed.

    Parameters
    ----------
    recipe : Recipe or str
        Whose task.
    count : int, default 8
        Number of batches.
    seed : int, default 0
        Other seeds give other batches.

    Returns
    -------
    list of Batch
    """
    recipe = RECIPES[recipe] if isinstance(recipe, str) else recipe
    return [recipe.draw(np.random.default_rng([seed, i, 2])) for i in range(count)]


def every_period(
    recipe: Recipe | str, periods: Iterable[int] = range(4, 17), *, seed: int = 0
) -> list[Batch]:
    """Draw one held-out batch of the induction task for each period.

    Parameters
    ----------
    recipe : Recipe or str
        One of the induction recipes.
    periods : iterable of int, default 4 to 16
        Also such as no run trains on, to see whether the rule carries over.
    seed : int, default 0
        Other seeds give other batches.

    Returns
    -------
    list of Batch
    """
    recipe = RECIPES[recipe] if isinstance(recipe, str) else recipe
    return [
        recipe.draw(np.random.default_rng([seed, period, 3]), shortest=period, longest=period)
        for period in periods
    ]


class Score(NamedTuple):
    """How a model does on batches: its mean loss in nats, and the share of right answers."""

    loss: float
    accuracy: float


def evaluate(logits: Callable[[Batch], np.ndarray], batches: Sequence[Batch]) -> Score:
    """Measure loss and accuracy where answers count.

    Parameters
    ----------
    logits : callable
        Gives logits (size, n, vocabulary) for a batch; see `score`.
    batches : sequence of Batch
        What to measure on; every counted answer weighs the same.

    Returns
    -------
    Score
    """
    loss = right = total = 0.0
    for batch in batches:
        found = logits(batch)
        counted = batch.counted.sum()
        loss += counted * float(cross_entropy(found, batch.targets, batch.counted))
        right += float(((found.argmax(axis=-1) == batch.targets) * batch.counted).sum())
        total += counted
    return Score(float(loss / total), float(right / total))


def score(
    params: Params,
    recipe: Recipe | str,
    batches: Sequence[Batch] | None = None,
    *,
    edit: Callable | None = None,
) -> Score:
    """Measure a model on held-out data of its recipe.

    Parameters
    ----------
    params : dict of ndarray
        The model.
    recipe : Recipe or str
        Its recipe.
    batches : sequence of Batch, optional
        By default ``held_out(recipe)``.
    edit : callable, optional
        An experiment on the heads, see `transformer`.

    Returns
    -------
    Score
    """
    recipe = RECIPES[recipe] if isinstance(recipe, str) else recipe
    batches = held_out(recipe) if batches is None else batches
    if edit is None:
        return evaluate(lambda batch: recipe.model.logits(params, batch, recipe.config), batches)
    return evaluate(
        lambda batch: transformer(params, batch.tokens, recipe.config, edit=edit).logits, batches
    )


def previous_token_score(weights: ArrayLike, queries: Iterable[int]) -> np.ndarray:
    """Mean weight on the token before the query's own.

    Parameters
    ----------
    weights : array_like, shape (..., h, n, n)
        Weights of one layer.
    queries : iterable of int
        Which queries count. In the induction task only those of the first copy,
        ``range(1, period)``: nobody reads what later ones find.

    Returns
    -------
    ndarray, shape (h,)
        One score per head, averaged over sequences and queries.

    Notes
    -----
    Chapter 8.
    """
    weights, i = np.asarray(weights), np.asarray(list(queries))
    return _mean_of_heads(weights[..., i, i - 1])


def induction_score(weights: ArrayLike, period: int) -> np.ndarray:
    """Mean weight on the token **after** the earlier copy of the query's own.

    Parameters
    ----------
    weights : array_like, shape (..., h, n, n)
        Weights of one layer.
    period : int
        Tokens stand again `period` places later; queries of the second copy count.

    Returns
    -------
    ndarray, shape (h,)
        One score per head, averaged over sequences and queries.

    Notes
    -----
    Chapter 8; Olsson et al. (2022).
    """
    weights = np.asarray(weights)
    i = np.arange(period, weights.shape[-2])
    return _mean_of_heads(weights[..., i, i - period + 1])


def _mean_of_heads(found: np.ndarray) -> np.ndarray:
    """Average (..., h, queries) over all but the heads."""
    return found.reshape(-1, *found.shape[-2:]).mean(axis=(0, 2))


class HeadScores(NamedTuple):
    """What each head of an induction model does.

    Attributes
    ----------
    previous : ndarray, shape (layers, h)
        Previous-token score over the queries of the first copy.
    previous_everywhere : ndarray, shape (layers, h)
        The same over all queries but the first: too low, since most are not needed.
    induction : ndarray, shape (layers, h)
        Induction score.
    """

    previous: np.ndarray
    previous_everywhere: np.ndarray
    induction: np.ndarray


def head_scores(params: Params, config: Config, batches: Sequence[Batch]) -> HeadScores:
    """Score every head of an induction model.

    Parameters
    ----------
    params, config
        The model.
    batches : sequence of Batch
        Of the induction task; each weighs the same.

    Returns
    -------
    HeadScores

    Notes
    -----
    Chapter 8.
    """
    found = []
    for batch in batches:
        layers, period = transformer(params, batch.tokens, config).weights, period_of(batch)
        n = batch.tokens.shape[1]
        found.append(
            [
                [previous_token_score(A, range(1, period)) for A in layers],
                [previous_token_score(A, range(1, n)) for A in layers],
                [induction_score(A, period) for A in layers],
            ]
        )
    return HeadScores(*np.mean(found, axis=0))


def retrieval(
    d_k: int,
    rate: float,
    *,
    scaled: bool = True,
    steps: int = 200,
    queries: int = 200,
    keys: int = 8,
    seed: int = 0,
) -> float:
    """Let independent queries learn to find their own key, by gradient descent.

    Parameters
    ----------
    d_k : int
        Width of queries and keys.
    rate : float
        Learning rate.
    scaled : bool, default True
        Whether scores are divided by √d_k.
    steps, queries, keys, seed : int
        Steps; how many queries, each with keys of its own; and the draw.

    Returns
    -------
    float
        The share of queries that end with more than half their weight on their target.

    Notes
    -----
    Queries and keys start N(0, I); only queries move. Values are one-hot, so the output is the
    row of weights, and the loss is ½‖o − v_target‖², summed over queries. Chapter 3.
    """
    rng = np.random.default_rng(seed)
    q, K = rng.normal(size=(queries, d_k)), rng.normal(size=(queries, keys, d_k))
    target = np.eye(keys)[rng.integers(keys, size=queries)]
    scale = 1 / math.sqrt(d_k) if scaled else 1.0
    for _ in range(steps):
        A = softmax(scale * (K @ q[:, :, None])[..., 0])
        dS = softmax_backward(A - target, A)
        q = q - rate * scale * (dS[:, None, :] @ K)[:, 0]
    A = softmax(scale * (K @ q[:, :, None])[..., 0])
    return float(((A * target).sum(axis=1) > 0.5).mean())


# Keeping ----------------------------------------------------------------------------------


def save_arrays(path: str | Path, arrays: dict[str, ArrayLike]) -> None:
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
    path: str | Path, run: Run, *, steps: Iterable[int], curves: dict[str, ArrayLike], tokens
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
            rows = {part: (*shape[:-1], 1) for part, shape in about["shapes"].items()}
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
