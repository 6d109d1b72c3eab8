"""Checks of the exercises of chapter 1, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.checks.engine import (
    Case,
    Mistake,
    Report,
    by_hand,
    check_function,
    random_inputs,
)
from attn_lib.dot_product import attention_weights, softmax
from attn_lib.lookup import gaussian_scores

__all__ = ["check_bandwidth", "check_embedding", "check_lookup"]


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
    Mistake(
        "ids counted from 1",
        "every row is the one before the right one. Ids count from 0, as rows do in code.",
        lambda ids, E: E[ids - 1],
    ),
    Mistake(
        "rows added",
        "you add the rows up. Each token keeps a vector of its own: one row for each id, in the "
        "order of the ids.",
        lambda ids, E: E[ids].sum(axis=0),
    ),
    Mistake(
        "each id once",
        "you give the rows of the different ids, sorted. A token that comes twice has its row "
        "twice, and the order is that of the sentence.",
        lambda ids, E: np.eye(len(E))[sorted(set(ids.tolist()))] @ E,
    ),
    Mistake(
        "table left out",
        "these are the one-hot rows. Multiply them by the table.",
        lambda ids, E: np.eye(len(E))[ids],
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
        "you score by the dot product. It agrees with the Gaussian score for keys of equal "
        "length only, and these have several.",
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
        "a small number below",
        "you add a small number to the sum, so that nothing is divided by 0. At a small "
        "temperature every power rounds to 0, your weights too, and nothing is read. Subtract the "
        "largest score first: then the sum is at least 1.",
        lambda q, K, V, T: (
            np.exp(-_distances(q, K) / 2 / T) / (np.exp(-_distances(q, K) / 2 / T).sum() + 1e-9) @ V
        ),
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


def _left_out(x, y, sigmas, *, scores=None, leave_out=True) -> np.ndarray:
    """Give the error at each measurement, estimated from the others, for each bandwidth."""
    scores = scores or (lambda x, sigma: gaussian_scores(x[:, None], x[:, None], bandwidth=sigma))
    errors = []
    for sigma in sigmas:
        S = scores(x, sigma)
        if leave_out:
            np.fill_diagonal(S, -np.inf)
        errors.append(((softmax(S) @ y - y) ** 2).mean())
    return np.array(errors)


def _squares(x):
    return (x[:, None] - x) ** 2


BANDWIDTH_MISTAKES = (
    Mistake(
        "looks at itself",
        "each measurement helps to estimate itself. Then the narrowest bandwidth always wins, for "
        "it repeats the data. Give a measurement the score −∞ for itself.",
        lambda x, y, sigmas: sigmas[_left_out(x, y, sigmas, leave_out=False).argmin()],
    ),
    Mistake(
        "weight set to 0 after softmax",
        "you take a measurement's own weight away after the softmax, and the others do not sum to "
        "1 any more. Set its score to −∞ before, or divide by the new sum.",
        lambda x, y, sigmas: sigmas[
            np.argmin(
                [
                    (
                        ((softmax(-_squares(x) / 2 / s**2) * (1 - np.eye(len(x)))) @ y - y) ** 2
                    ).mean()
                    for s in sigmas
                ]
            )
        ],
    ),
    Mistake(
        "bandwidth not squared",
        "you divide by 2σ, not by 2σ². The bandwidth is a length, and the temperature its square.",
        lambda x, y, sigmas: sigmas[
            _left_out(x, y, sigmas, scores=lambda x, s: -_squares(x) / (2 * s)).argmin()
        ],
    ),
    Mistake(
        "place in the list",
        "you return at which place of the list the best bandwidth stands. Return the bandwidth.",
        lambda x, y, sigmas: _left_out(x, y, sigmas).argmin(),
    ),
    Mistake(
        "error returned",
        "you return the smallest error. Asked for is the bandwidth that has it.",
        lambda x, y, sigmas: np.sqrt(_left_out(x, y, sigmas).min()),
    ),
    Mistake(
        "largest error",
        "you return the bandwidth with the *largest* error.",
        lambda x, y, sigmas: sigmas[_left_out(x, y, sigmas).argmax()],
    ),
)


def _measured(seed: int, waves: float, count: int) -> dict[str, np.ndarray]:
    """Draw measurements of waves, not sorted, and bandwidths to try."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, size=count)
    y = 3 + np.sin(waves * x) + rng.normal(scale=0.3, size=count)
    return {"x": x, "y": y, "sigmas": np.geomspace(0.03, 4, 25)}


def check_bandwidth(function: Callable) -> Report:
    """Check ``f(x, y, sigmas)``, which gives the bandwidth with the smallest left-out error."""
    return check_function(
        function,
        right=lambda x, y, sigmas: sigmas[_left_out(x, y, sigmas).argmin()],
        cases=[
            Case(_measured(0, 2.0, 40)),
            Case(_measured(1, 1.0, 50)),
            Case(_measured(2, 4.0, 60)),
        ],
        mistakes=BANDWIDTH_MISTAKES,
        returns=("bandwidth",),
    )


def _asked_at_two(scores: Callable) -> float:
    """Read the three keys of the text at q = 2."""
    distances = np.abs(np.array([0.0, 1, 3]) - 2)
    return float(_read_row(scores(distances), np.array([10.0, 20, 60])))


EXERCISES: dict[str, Callable] = {
    "ex-context-hand": by_hand(
        lambda: _asked_at_two(lambda far: -(far**2) / 2),
        mistakes=lambda: {
            "this is the plain average: every key got the same weight.": 30.0,
            "you left out the ½ of the score.": _asked_at_two(lambda far: -(far**2)),
            "the farthest key got most: the score needs a minus sign.": _asked_at_two(
                lambda far: far**2 / 2
            ),
            "you took half the distance, not half its square.": _asked_at_two(lambda far: -far / 2),
            "you took the distance itself, not half its square.": _asked_at_two(lambda far: -far),
            "the two nearest keys have some weight each, but the key 0 has some too.": 40.0,
            "you read the nearest key alone, or one of two.": 20.0,
            "these are the powers times the values. Divide by the sum of the powers.": float(
                np.exp(-np.array([4, 1, 1]) / 2) @ [10, 20, 60]
            ),
        },
        tol=0.1,
    ),
    "ex-context-limits": by_hand(
        [2, 1.5],
        mistakes={
            "as T → 0: there are two best keys, and they share. No rule prefers the first.": [
                1,
                1.5,
            ],
            "as T → 0: there are two best keys, and they share. No rule prefers the last.": [
                3,
                1.5,
            ],
            "as T → 0: each of the two best keys gets ½, so the output is the average of their "
            "values, not the sum.": [4, 1.5],
            "as T → ∞: scores tend to 0, and e⁰ is 1. All weights are equal, not 0.": [2, 0],
            "the two ends are exchanged: a small T sharpens.": [1.5, 2],
            "these are the scores that win. The output is made of values.": [3, 2.25],
        },
    ),
    "ex-context-embed": check_embedding,
    "ex-context-lookup": check_lookup,
    "ex-context-fit": check_bandwidth,
    "ex-context-equal": by_hand(
        [-1, -5, -2],
        mistakes={
            "you left out the ½.": [-2, -10, -4],
            "the sign: a long key is *held down*, so the number is not positive.": [1, 5, 2],
            "a length enters squared: ‖k‖² is the sum of the squares of the coordinates.": (
                -np.sqrt([2, 10, 4]) / 2
            ),
            "these are the Gaussian scores. Asked for is what turns the dot products into them, up "
            "to a number that all keys share.": [0, -2, -1],
            "these are the dot products.": [2, 4, 2],
            "you subtracted ½‖q‖² too. It is the same for every key, and changes no weight.": [
                -2,
                -6,
                -3,
            ],
        },
    ),
}
