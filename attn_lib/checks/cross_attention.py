"""Checks of the exercises of chapter 7, and the known mistakes in them."""

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
from attn_lib.checks.qkv import allowed, mix, scaled
from attn_lib.dot_product import cross_attention, softmax

__all__ = ["check_cross_attention", "check_null_weights"]


def _reading(change: Callable) -> Callable:
    """Cross-attention whose scores are changed by ``change(S, keep)`` before the softmax."""

    def attend(X, Y, W_Q, W_K, W_V, keep):
        return mix(softmax(change(scaled(X @ W_Q, Y @ W_K), keep)), Y @ W_V)

    return attend


CROSS_ATTENTION_MISTAKES = (
    Mistake(
        "keys from the reader",
        "your keys come from X, the reader. Then it reads itself, and the source is never "
        "looked at: keys and values are made from Y.",
        lambda X, Y, W_Q, W_K, W_V, keep: mix(
            softmax(allowed(scaled(X @ W_Q, X @ W_K), keep)), X @ W_V
        ),
    ),
    Mistake(
        "values from the reader",
        "you find the right places and then take the values from X. What is read are rows of the "
        "source: V = Y W_V.",
        lambda X, Y, W_Q, W_K, W_V, keep: mix(
            softmax(allowed(scaled(X @ W_Q, Y @ W_K), keep)), X @ W_V
        ),
    ),
    *(
        Mistake(
            "reader and source exchanged",
            "your table has a row for each source token. Queries come from X, so it has n rows, "
            "one for each reader token, and m columns.",
            make,
        )
        for make in (
            lambda X, Y, W_Q, W_K, W_V, keep: mix(
                softmax(allowed(scaled(Y @ W_Q, X @ W_K), keep)), X @ W_V
            ),
            lambda X, Y, W_Q, W_K, W_V, keep: mix(
                softmax(allowed(scaled(Y @ W_K, X @ W_Q), keep)), Y @ W_V
            ),
        )
    ),
    Mistake(
        "causal mask",
        "you forbid the keys after the query's own place. A source is there as a whole before "
        "anything is written: only its padding must be hidden.",
        _reading(lambda S, keep: allowed(S, np.tri(*S.shape, dtype=np.bool) & keep)),
    ),
    Mistake(
        "mask ignored",
        "the padding of the source is read: `keep` has no effect.",
        _reading(lambda S, keep: S),
    ),
    Mistake(
        "mask polarity",
        "you hide the real tokens and read the padding: True means that a key **may** be read.",
        _reading(lambda S, keep: allowed(S, ~keep)),
    ),
    Mistake(
        "mask multiplied",
        "you multiply scores by the mask. A score of 0 still has weight e⁰ = 1 before "
        "normalising: forbidden scores must become −∞.",
        _reading(lambda S, keep: S * keep),
    ),
    Mistake(
        "mask after softmax",
        "you set weights to 0 after the softmax, so a row no longer sums to one. Mask the scores.",
        lambda X, Y, W_Q, W_K, W_V, keep: mix(softmax(scaled(X @ W_Q, Y @ W_K)) * keep, Y @ W_V),
    ),
    Mistake(
        "wrong axis",
        WRONG_AXIS,
        lambda X, Y, W_Q, W_K, W_V, keep: mix(
            softmax(allowed(scaled(X @ W_Q, Y @ W_K), keep), axis=0), Y @ W_V
        ),
    ),
    Mistake(
        "no scale",
        "you leave out the division by √d_k.",
        lambda X, Y, W_Q, W_K, W_V, keep: mix(
            softmax(allowed((X @ W_Q) @ (Y @ W_K).T, keep)), Y @ W_V
        ),
    ),
)


def check_cross_attention(function: Callable) -> Report:
    """Check ``f(X, Y, W_Q, W_K, W_V, keep)``: the output, or the weights and the output.

    X (n, d) reads Y (m, d_y); `keep` (m,) is True for the real tokens of the source.
    """

    def case(seed, n, m, d, d_y, d_k, d_v, real, note=""):
        shapes = {"X": (n, d), "Y": (m, d_y), "W_Q": (d, d_k), "W_K": (d_y, d_k), "W_V": (d_y, d_v)}
        inputs = random_inputs(seed, **shapes)
        return Case(inputs | {"keep": np.arange(m) < real}, note)

    return check_function(
        function,
        right=lambda X, Y, W_Q, W_K, W_V, keep: cross_attention(X, Y, W_Q, W_K, W_V, mask=keep),
        cases=[
            case(0, 4, 7, 3, 3, 5, 2, real=5),
            case(1, 6, 3, 4, 2, 3, 5, real=3, note="no padding"),
            case(2, 3, 4, 2, 5, 4, 3, real=0, note="an empty source"),
        ],
        mistakes=CROSS_ATTENTION_MISTAKES,
        returns=("weights", "output"),
    )


def _with_null(S, c, shift=0.0):
    powers = np.exp(S - shift)
    return powers / (np.exp(c - shift) + powers.sum(axis=-1, keepdims=True))


NULL_WEIGHT_MISTAKES = (
    Mistake(
        "no null",
        "your rows sum to one: the empty answer takes no share. Its e^c belongs in the "
        "denominator.",
        lambda S, c: softmax(S),
    ),
    Mistake(
        "c not exponentiated",
        "you add c to the denominator. It is a score like the others: add e^c.",
        lambda S, c: np.exp(S) / (c + np.exp(S).sum(axis=-1, keepdims=True)),
    ),
    Mistake(
        "c ignored",
        "you add 1, which is e^c for c = 0 only.",
        lambda S, c: _with_null(S, 0.0),
    ),
    Mistake(
        "null among the answers",
        "your table has a column too many: the empty answer has weight, but it is not one of the "
        "m keys. Leave its column out *after* normalising.",
        lambda S, c: softmax(np.hstack([S, np.full((len(S), 1), c)])),
    ),
    Mistake(
        "exp overflows",
        "NaN for scores near 1000: subtract the largest of a row's scores *and c* first.",
        _with_null,
    ),
    Mistake(
        "shift forgotten in c",
        "you subtract each row's largest score from the scores and not from c, so the empty "
        "answer gets another share in every row.",
        lambda S, c: _with_null(S - S.max(axis=-1, keepdims=True), c),
    ),
)


def check_null_weights(function: Callable) -> Report:
    """Check ``f(S, c)``: softmax of each row with one more score c, whose weight is left out."""
    large = np.array([[1000.0, 1001, 999], [0, 1, 2]])

    def right(S, c):
        return softmax(np.hstack([S, np.full((len(S), 1), c)]))[:, :-1]

    return check_function(
        function,
        right=right,
        cases=[
            Case(random_inputs(0, S=(4, 6)) | {"c": 0.7}),
            Case(random_inputs(1, S=(5, 3)) | {"c": -2.0}),
            Case({"S": large, "c": 1000.0}, "with scores in the thousands"),
        ],
        mistakes=NULL_WEIGHT_MISTAKES,
        returns=("weights",),
    )


POTS = np.array([80.0, 20, 60])  # degrees of soup, bread, tea


def _answered(scores, weights=None) -> np.ndarray:
    """Give the three weights and the temperature that they read."""
    weights = softmax(np.asarray(scores)) if weights is None else np.asarray(weights)
    return np.append(weights, weights @ POTS)


def _third_mistakes() -> dict[str, np.ndarray]:
    asked = np.array([4.0, 4, 0])
    powers = np.exp(asked / np.sqrt(3))
    return {
        "you forgot to divide by √3.": _answered(asked),
        "you divided by √4. That is the width of a source row; keys have width 3.": _answered(
            asked / 2
        ),
        "you divided by 3, not by its root.": _answered(asked / 3),
        "you left out W_Q: the query is four times the question.": _answered(
            asked / 4 / np.sqrt(3)
        ),
        "these are the powers. Divide them by their sum.": _answered(asked, powers),
        "tea has the score 0, and e⁰ = 1: no weight is zero.": _answered(asked, [0.5, 0.5, 0]),
        "you averaged all three. The question decides.": _answered([0.0, 0, 0]),
        "the weights are right. The answer mixes the temperatures by them.": np.append(
            _answered(asked / np.sqrt(3))[:3], 100
        ),
    }


COUNTED_MISTAKES = {
    "(b): W_K and W_V act on rows of the source, so they have 20 rows.": [168, 180, 9, 45],
    "(b): values have a width of their own, 6.": [208, 180, 9, 45],
    "(b): the maps do not depend on how many tokens there are.": [1320, 180, 9, 45],
    "(c): a score is a dot product of four products.": [248, 45, 9, 45],
    "(c): this counts a table of 5 by 5, the reader with itself.": [248, 100, 9, 45],
    "(c): mixing the values is not part of the scores.": [248, 450, 9, 45],
    "(d): with K kept it is fewer.": [248, 180, 45, 9],
    "(d): a source has 9 rows; you counted those of the reader.": [248, 180, 5, 25],
    "(d): you counted passes over the source. Each projects 9 rows.": [248, 180, 1, 5],
}

PLACES = np.random.default_rng(67).permutation(12) + 1  # drawn in the chapter the same way


def _place_mistakes() -> dict[str, np.ndarray]:
    backwards, found = np.arange(12, 0, -1), PLACES
    return {
        "you count from 0. Add 1.": found - 1,
        "you read the columns: for each source place, the position that reads it. A row is a "
        "reader position.": np.argsort(found) + 1,
        "that is the anti-diagonal of the old task. Train on the new pairs.": backwards,
        "you have the sources reversed: place 1 is the first column.": 13 - found,
        "that is the diagonal: each position would copy its own place.": np.arange(1, 13),
        "you start one position too late: the first row is the first letter that is written.": (
            np.roll(found, -1)
        ),
        "a row is one place, so this cannot be: all of them the same.": np.full(12, found[0]),
    }


EXERCISES = {
    "ex-cross-third": by_hand(
        lambda: _answered(np.array([4.0, 4, 0]) / np.sqrt(3)),
        mistakes=_third_mistakes,
        tol=[0.005, 0.005, 0.005, 0.6],
    ),
    "ex-cross-count": by_hand([248, 180, 9, 45], mistakes=COUNTED_MISTAKES),
    "ex-cross-align": by_hand(PLACES, mistakes=_place_mistakes),
    "ex-cross-code": check_cross_attention,
    "ex-cross-null": check_null_weights,
}
