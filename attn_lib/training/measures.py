"""What to measure of a trained model: held-out accuracy, and what each head does."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from attn_lib.arrays import Array, takes
from attn_lib.model import Config, Params, cross_entropy, transformer
from attn_lib.training.recipes import RECIPES, Recipe
from attn_lib.training.tasks import Batch, period_of


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


@takes("weights (..., h, n, m)")
def previous_token_score(weights: Array, queries: Iterable[int]) -> np.ndarray:
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
    """
    i = np.asarray(list(queries))
    return mean_of_heads(weights[..., i, i - 1])


@takes("weights (..., h, n, m)")
def own_token_score(weights: Array, queries: Iterable[int]) -> np.ndarray:
    """Mean weight on the query's own token.

    Parameters
    ----------
    weights : array_like, shape (..., h, n, n)
        Weights of one layer.
    queries : iterable of int
        Which queries count.

    Returns
    -------
    ndarray, shape (h,)
        One score per head, averaged over sequences and queries.
    """
    i = np.asarray(list(queries))
    return mean_of_heads(weights[..., i, i])


@takes("weights (..., h, n, m)")
def induction_score(weights: Array, period: int) -> np.ndarray:
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
    Olsson et al. (2022).
    """
    i = np.arange(period, weights.shape[-2])
    return mean_of_heads(weights[..., i, i - period + 1])


def mean_of_heads(found: np.ndarray) -> np.ndarray:
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
    own : ndarray, shape (layers, h)
        Own-token score over the queries of the first copy but the first, which has no other key.
    """

    previous: np.ndarray
    previous_everywhere: np.ndarray
    induction: np.ndarray
    own: np.ndarray


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
                [own_token_score(A, range(1, period)) for A in layers],
            ]
        )
    return HeadScores(*np.mean(found, axis=0))
