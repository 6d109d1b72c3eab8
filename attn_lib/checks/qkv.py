"""Checks of the exercises of chapter 2, and the known mistakes in them."""

import math
from collections.abc import Callable

import numpy as np

from attn_lib.checks.engine import (
    WRONG_AXIS,
    Case,
    Mistake,
    Report,
    by_hand,
    check_function,
    random_inputs,
)
from attn_lib.dot_product import attention, softmax

__all__ = ["check_attention", "check_softmax"]


def scaled(Q, K):
    """Right scores, without the checks that would catch a wrong shape early."""
    return Q @ K.T / math.sqrt(K.shape[-1])


def bare_softmax(S, axis=-1):
    """Softmax as it is written on paper: too large a score overflows."""
    return np.exp(S) / np.exp(S).sum(axis=axis, keepdims=True)


def allowed(S, keep):
    """Scores with −∞ where a query may not look."""
    return S if keep is None else np.where(keep, S, -np.inf)


def weights_of(Q, K, keep=None):
    """Right weights."""
    return softmax(allowed(scaled(Q, K), keep))


def mix(A, V):
    """Weights, and the output they give."""
    return A, A @ V


WEIGHT_MISTAKES = (
    Mistake("wrong axis", WRONG_AXIS, lambda S: softmax(S, axis=0)),
    Mistake(
        "one softmax for the whole table",
        "your weights sum to one over the whole table. Each query has its own softmax: every row "
        "must sum to one.",
        lambda S: softmax(S.ravel()).reshape(S.shape),
    ),
    Mistake(
        "no softmax",
        "these are still scores. Softmax turns each row into positive weights that sum to one.",
        lambda S: S * 1.0,
    ),
    *(
        Mistake(
            "not normalised",
            "you take exp and stop there. Divide each row by its sum: its weights must add to one.",
            make,
        )
        for make in (np.exp, lambda S: np.exp(S - S.max(axis=-1, keepdims=True)))
    ),
    Mistake(
        "no exp",
        "you divide scores by their sum, without exp. Scores may be negative, or sum to zero: "
        "these are no weights.",
        lambda S: S / S.sum(axis=-1, keepdims=True),
    ),
    Mistake(
        "missing keepdims",
        "a sum or maximum over each row has lost its axis, so it does not line up with the rows: "
        "use `keepdims=True`. On a square table there would be no error, only wrong numbers.",
        lambda S: S / S.sum(axis=-1),
    ),
    Mistake(
        "exp overflows",
        "your weights are NaN for scores near 1000: exp overflows, and ∞/∞ is NaN. Subtract each "
        "row's largest score first; softmax does not notice a shift.",
        bare_softmax,
    ),
    Mistake(
        "one maximum for all rows",
        "you subtract the largest score of the whole table. A row far below it becomes 0/0 = NaN: "
        "subtract each row's own maximum.",
        lambda S: bare_softmax(S - S.max()),
    ),
)


_LAST_AXIS = (
    "on a matrix your numbers are right, with more or fewer axes they are not. The keys stand on "
    "the *last* axis, `axis=-1`, whatever comes before it: a batch, heads, or nothing."
)


_OTHER_SHIFT = (
    "you subtract something else than the largest score of a row. Where one score lies far above "
    "the others, the largest exponent is still too large, exp overflows, and ∞/∞ is NaN."
)


SOFTMAX_MISTAKES = (
    *WEIGHT_MISTAKES,
    *(
        Mistake("a matrix alone", _LAST_AXIS, make)
        for make in (
            lambda S: softmax(S, axis=1),
            lambda S: np.array([softmax(row.ravel()).reshape(row.shape) for row in S]),
            lambda S: np.array([bare_softmax(row - max(row)) for row in S]),
        )
    ),
    *(
        Mistake("another shift", _OTHER_SHIFT, make)
        for make in (
            lambda S: bare_softmax(S - S.mean(axis=-1, keepdims=True)),
            lambda S: bare_softmax(S - S.min(axis=-1, keepdims=True)),
            lambda S: bare_softmax(S - S[..., :1]),
        )
    ),
    Mistake(
        "scores clipped",
        "you cut large scores off. Scores that lie above the limit become equal, and so do their "
        "weights. Subtracting the largest score changes no difference.",
        lambda S: bare_softmax(np.clip(S, -100, 100)),
    ),
)


def check_softmax(function: Callable) -> Report:
    """Check ``f(S)``, which gives the softmax of scores along the last axis."""
    large = np.array([[0.0, 1, 2, 3], [10000, 10001, 10002, 10003], [900, 903, 901, 902]])
    return check_function(
        function,
        right=softmax,
        cases=[
            Case(random_inputs(0, S=(4, 6))),
            Case(random_inputs(1, S=(5, 3))),
            Case({"S": large}, "with scores in the thousands"),
            Case({"S": np.array([[0.0, 2000, 1], [1, 0, 3000]])}, "with one score far off"),
            Case(random_inputs(2, S=(2, 3, 4)), "three axes"),
            Case(random_inputs(3, S=(5,)), "one axis"),
        ],
        mistakes=SOFTMAX_MISTAKES,
        returns=("weights",),
    )


SCORE_MISTAKES = (
    Mistake(
        "no scale",
        "you leave out the division by √d_k. A dot product of d_k products has variance d_k, so "
        "unscaled scores grow with the width and softmax becomes nearly one-hot.",
        lambda Q, K: Q @ K.T,
    ),
    Mistake(
        "divided by d_k",
        "you divide by d_k, not by √d_k. The *variance* of a dot product is d_k, its typical size "
        "√d_k: dividing by d_k makes scores tiny for wide keys, and the weights nearly equal.",
        lambda Q, K: Q @ K.T / K.shape[-1],
    ),
    Mistake(
        "multiplied by √d_k",
        "you multiply by √d_k, and it should divide: scaling is there to keep scores small.",
        lambda Q, K: Q @ K.T * math.sqrt(K.shape[-1]),
    ),
    *(
        Mistake(
            "divided by the root of a number of tokens",
            "you divide by the root of a number of tokens. A dot product has as many terms as a "
            "key has coordinates, d_k = `K.shape[-1]`; `len(K)` and `len(Q)` count rows.",
            make,
        )
        for make in (
            lambda Q, K: Q @ K.T / math.sqrt(len(Q)),
            lambda Q, K: Q @ K.T / math.sqrt(len(K)),
        )
    ),
    *(
        Mistake(
            "divided by √d_model",
            f"you divide by √{width}, whatever the width of a key. The scale is 1/√d_k, with d_k "
            "the width of one head's keys (`K.shape[-1]`), not the model's: a larger divisor "
            "makes the weights flatter.",
            lambda Q, K, width=width: Q @ K.T / math.sqrt(width),
        )
        for width in (8, 16, 32, 64, 128, 256, 512, 768, 1024)
    ),
    *(
        Mistake(
            "swapped Q and K",
            "your table has a row for each key. You computed K Qᵀ, or transposed it: rows are "
            "queries, so it is Q Kᵀ. With as many queries as keys no error would warn you.",
            make,
        )
        for make in (lambda Q, K: scaled(K, Q), lambda Q, K: K @ Q.T)
    ),
    Mistake(
        "keys not transposed",
        "you multiply Q by K, not by Kᵀ. A score is a dot product of a row of Q with a row of K.",
        lambda Q, K: Q @ K,
    ),
    Mistake(
        "keys not transposed",
        "you multiply Q by K, not by Kᵀ. A score is a dot product of a row of Q with a row of K.",
        lambda Q, K: np.dot(Q, K),
    ),
)


def _from_scores(mistake: Mistake) -> Mistake:
    """Go on from wrong scores as in attention."""
    return mistake._replace(
        make=lambda Q, K, V, keep=None: mix(softmax(allowed(mistake.make(Q, K), keep)), V)
    )


def _from_weights(mistake: Mistake) -> Mistake:
    """Come to wrong weights from right scores, and go on as in attention."""
    return mistake._replace(
        make=lambda Q, K, V, keep=None: mix(mistake.make(allowed(scaled(Q, K), keep)), V)
    )


_VALUES_FIRST = (
    "the values come last, on the right: O = A V. Row i of A holds the weights of query i, one for "
    "each row of V; V A does not even have fitting shapes."
)


_VALUES_SCORED = (
    "you compare queries with *values*. Keys decide where a query reads, values what it gets: "
    "scores are Q Kᵀ, and V enters only in A V."
)


ATTENTION_MISTAKES = (
    *(_from_scores(mistake) for mistake in SCORE_MISTAKES),
    Mistake(
        "scaled after softmax",
        "you divide by √d_k after the softmax. It belongs to the scores: your weights sum to "
        "1/√d_k, and are as sharp as without scaling.",
        lambda Q, K, V, keep=None: mix(softmax(allowed(Q @ K.T, keep)) / math.sqrt(K.shape[-1]), V),
    ),
    Mistake(
        "softmax twice",
        "you take the softmax twice. The second one sees numbers between 0 and 1 only, and makes "
        "all weights nearly equal.",
        lambda Q, K, V, keep=None: mix(softmax(weights_of(Q, K, keep)), V),
    ),
    *(
        Mistake("values scored", _VALUES_SCORED, make)
        for make in (
            lambda Q, K, V, keep=None: Q @ V.T,
            lambda Q, K, V, keep=None: np.dot(Q, V.T),
        )
    ),
    *(
        Mistake(
            "V before A",
            _VALUES_FIRST,
            lambda Q, K, V, keep=None, joined=joined: joined(weights_of(Q, K, keep), V),
        )
        for joined in (
            lambda A, V: V @ A,
            lambda A, V: np.dot(V, A),
            lambda A, V: V.T @ A,
            lambda A, V: np.dot(V.T, A),
        )
    ),
    Mistake(
        "V before A",
        "you mix the values with raw scores and take the softmax of the result. Softmax makes the "
        "weights; it comes before the values.",
        lambda Q, K, V, keep=None: softmax(scaled(Q, K) @ V),
    ),
    Mistake(
        "keys mixed",
        "you average the *keys*. Keys say where to read; what is read are the values: O = A V.",
        lambda Q, K, V, keep=None: mix(weights_of(Q, K, keep), K),
    ),
    Mistake(
        "output forgotten",
        "you return the weights. The output is their product with the values, A V.",
        lambda Q, K, V, keep=None: weights_of(Q, K, keep),
    ),
    Mistake(
        "weights and output exchanged",
        "return the weights first, then the output.",
        lambda Q, K, V, keep=None: mix(weights_of(Q, K, keep), V)[::-1],
    ),
    *(_from_weights(mistake) for mistake in WEIGHT_MISTAKES),
)


def check_attention(function: Callable) -> Report:
    """Check ``f(Q, K, V)``, which gives the output, or the weights and the output."""
    big = random_inputs(2, Q=(4, 5), K=(6, 5), V=(6, 3))
    return check_function(
        function,
        right=attention,
        cases=[
            Case(random_inputs(0, Q=(4, 5), K=(6, 5), V=(6, 3))),
            Case(random_inputs(1, Q=(3, 2), K=(5, 2), V=(5, 4))),
            Case(big | {"Q": big["Q"] * 1000}, "with scores in the thousands"),
        ],
        mistakes=ATTENTION_MISTAKES,
        returns=("weights", "output"),
    )


_SOUP = np.array([0, 0, 1, 2.0])  # the query of *soup* times the keys of the, soup, was, bland


def _soup_mistakes() -> dict[str, np.ndarray]:
    return {
        "you forgot to divide the dot products by √2.": softmax(_SOUP),
        "you divided by 2, the width of a key. It is its root, √2.": softmax(_SOUP / 2),
        "this is the row of *bland*. Take the query of *soup*, (0, 2).": softmax(
            np.array([0, 4, 2, 0]) / math.sqrt(2)
        ),
        "you compared *soup* with token vectors. A query meets keys, in which a quality counts "
        "half.": softmax(2 * _SOUP / math.sqrt(2)),
        "these are the powers. Divide them by their total.": np.exp(_SOUP / math.sqrt(2)),
        "these are the scores. Raise e to each, and divide by the total.": _SOUP / math.sqrt(2),
        "you divided the scores by their sum, without e.": _SOUP / _SOUP.sum(),
    }


EXERCISES: dict[str, Callable] = {
    "ex-qkv-soup": by_hand(lambda: softmax(_SOUP / math.sqrt(2)), mistakes=_soup_mistakes),
    "ex-qkv-shapes": by_hand(
        [110, 49, 110, 196],
        mistakes={
            "(b) and (d): you took the values to be as wide as the keys. W_V is 10 × 3.": [
                120,
                49,
                120,
                196,
            ],
            "(b) and (d): the key map has a matrix of its own. Count W_Q, W_K and W_V.": [
                70,
                49,
                70,
                196,
            ],
            "(b) and (d): you counted the entries of Q, K and V. These are computed; what is "
            "learned are the three maps.": [77, 49, 154, 196],
            "(d): the maps do not contain n. A longer sentence needs no further numbers.": [
                110,
                49,
                220,
                196,
            ],
            "(d): both sides of the table of scores double.": [110, 49, 110, 98],
            "(c): every query meets every key, its own too.": [110, 42, 110, 182],
        },
        tol=0.4,
    ),
    "ex-qkv-softmax": check_softmax,
    "ex-qkv-attention": check_attention,
    "ex-qkv-rank": by_hand(
        [1, 5],
        mistakes={
            "the rank of A: the theorem speaks of S. Softmax is no matrix product, so A need not "
            "keep the rank. Ask numpy.": [1, 1],
            "the rank of S: it is a product of a column and a row, whatever its size.": [5, 5],
            "these are the other way round: S first, then A.": [5, 1],
            "both ranks are bounded by n = 5, but a product of a 5 × 1 and a 1 × 5 matrix is "
            "bounded by 1.": [4, 4],
            "a table that is not 0 everywhere has at least rank 1.": [0, 5],
        },
        tol=0.4,
    ),
}
