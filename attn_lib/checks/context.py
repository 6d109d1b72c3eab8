"""Checks of the exercises of chapter 1, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.checks.engine import Case, Mistake, Report, check_function, random_inputs
from attn_lib.dot_product import attention_weights, softmax
from attn_lib.lookup import gaussian_scores

__all__ = ["check_embedding", "check_lookup"]


EMBEDDING_MISTAKES = (
    Mistake(
        "rows and columns exchanged",
        "you pick columns of the table. A token's vector is a *row* of E, so the one-hot rows are "
        "as long as the vocabulary and stand on the left of E.",
        lambda ids, E: np.eye(E.shape[1])[ids] @ E.T,
    ),
    Mistake(
        "ids as numbers",
        "you multiply by the ids themselves. An id is a name, not an amount: id 4 is not twice "
        "id 2.",
        lambda ids, E: ids[:, None] * E[: len(ids)],
    ),
)


def check_embedding(function: Callable) -> Report:
    """Check ``f(ids, E)``, which gives the rows of a table for a list of ids."""
    table = random_inputs(0, E=(6, 4))
    return check_function(
        function,
        right=lambda ids, E: E[ids],
        cases=[
            Case({"ids": np.array([3, 1, 3])} | table),
            Case({"ids": np.array([0, 5])} | table, "with the last id"),
        ],
        mistakes=EMBEDDING_MISTAKES,
        returns=("vectors",),
    )


def _distances(q, K):
    """Squared distances of one query to every key."""
    return ((K - q) ** 2).sum(axis=1)


def _read_row(scores, V):
    """What is read by the softmax of one row of scores."""
    return softmax(scores) @ V


LOOKUP_MISTAKES = (
    Mistake(
        "temperature multiplied",
        "you multiply by the temperature, and it should divide: a small T must sharpen the "
        "weights, and yours become even.",
        lambda q, K, V, T: _read_row(-_distances(q, K) / 2 * T, V),
    ),
    Mistake(
        "temperature ignored",
        "the temperature changes nothing in your answer.",
        lambda q, K, V, T: _read_row(-_distances(q, K) / 2, V),
    ),
    Mistake(
        "sign of the distance",
        "the farthest key is read most: a score must rise as the key comes nearer, so it needs a "
        "minus sign.",
        lambda q, K, V, T: _read_row(_distances(q, K) / 2 / T, V),
    ),
    Mistake(
        "no half",
        "you left out the ½ of the Gaussian score. Without it the lookup is as sharp as with half "
        "the temperature.",
        lambda q, K, V, T: _read_row(-_distances(q, K) / T, V),
    ),
    Mistake(
        "distance not squared",
        "you take the distance itself, not its square: the score is −½‖q − k‖².",
        lambda q, K, V, T: _read_row(-np.sqrt(_distances(q, K)) / 2 / T, V),
    ),
    Mistake(
        "dot product",
        "you score by the dot product. It agrees with the Gaussian score for keys of one length "
        "only, and these have several.",
        lambda q, K, V, T: _read_row(K @ q / T, V),
    ),
    Mistake(
        "not normalised",
        "your weights do not sum to 1: divide the powers by their sum.",
        lambda q, K, V, T: np.exp(-_distances(q, K) / 2 / T) @ V,
    ),
    Mistake(
        "hard lookup",
        "you give the value of the nearest key alone. A soft lookup reads some of every value.",
        lambda q, K, V, T: V[_distances(q, K).argmin()],
    ),
    Mistake(
        "keys read",
        "you mix the keys. What is read are the values.",
        lambda q, K, V, T: _read_row(-_distances(q, K) / 2 / T, K),
    ),
    Mistake(
        "naive softmax",
        "at a small temperature every power rounds to 0, and 0 / 0 is NaN. Subtract the largest "
        "score first: the weights stay the same.",
        lambda q, K, V, T: (
            np.exp(-_distances(q, K) / 2 / T) / np.exp(-_distances(q, K) / 2 / T).sum() @ V
        ),
    ),
)


def check_lookup(function: Callable) -> Report:
    """Check ``f(q, K, V, T)``, a soft lookup of one query by the Gaussian score."""

    def right(q, K, V, T):
        return (attention_weights(gaussian_scores(q[None], K), temperature=T) @ V)[0]

    drawn = [random_inputs(seed, q=(3,), K=(5, 3), V=(5, 2)) for seed in (0, 1)]
    return check_function(
        function,
        right=right,
        cases=[
            Case(drawn[0] | {"T": 0.7}),
            Case(drawn[1] | {"T": 3.0}),
            Case(drawn[0] | {"T": 1e-4}, "at a temperature of 0.0001"),
        ],
        mistakes=LOOKUP_MISTAKES,
        returns=("output",),
    )
