"""Answers to the exercises of chapter 7: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted, named

from attn_lib.checks import check_cross_attention, check_null_weights


def read_row_by_row(X, Y, W_Q, W_K, W_V, keep):
    O = np.zeros((len(X), W_V.shape[1]))
    if keep.any():
        for i, x in enumerate(X):
            powers = np.exp(Y[keep] @ W_K @ (x @ W_Q) / np.sqrt(W_K.shape[1]))
            O[i] = powers / powers.sum() @ Y[keep] @ W_V
    return O


def null_by_loops(S, c):
    rows = []
    for row in S:
        top = max(c, *row)
        total = np.exp(c - top) + sum(np.exp(s - top) for s in row)
        rows.append([np.exp(s - top) / total for s in row])
    return rows


def read_in_batches(X, Y, W_Q, W_K, W_V, keep):
    """Scores by einsum, forbidden ones −∞, an empty source caught at the end."""
    S = np.einsum("id,de,je->ij", X, W_Q, Y @ W_K) / W_Q.shape[1] ** 0.5
    S = np.where(keep, S, -np.inf)
    E = np.exp(S - np.where(keep.any(), S.max(axis=1, keepdims=True), 0))
    A = E / np.maximum(E.sum(axis=1, keepdims=True), 1e-300)
    return A, A @ (Y @ W_V)


def read_real_rows_only(X, Y, W_Q, W_K, W_V, keep):
    real = Y[keep]
    E = np.exp((X @ W_Q) @ (real @ W_K).T / np.sqrt(W_K.shape[1]))
    return E @ (real @ W_V) / np.where(keep.any(), E.sum(axis=1, keepdims=True), 1)


def null_by_another_column(S, c):
    wide = np.column_stack([S, np.full(len(S), c)])
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True))[:, :-1]


def null_by_logarithms(S, c):
    total = np.logaddexp(np.logaddexp.reduce(S, axis=1), c)
    return np.exp(S - total[:, None])


THIRD, COUNT, ALIGN = "ex-cross-third", "ex-cross-count", "ex-cross-align"
PLACES = [8, 12, 6, 3, 11, 7, 4, 10, 1, 5, 2, 9]
TWO = np.round(np.exp([2.31, 2.31, 0]), 2)  # 4/√3 = 2.31, and two decimals from there on
THIRDS = np.round(TWO / TWO.sum(), 2)

RIGHT = [
    (check_cross_attention, read_row_by_row),
    (check_cross_attention, read_in_batches),
    (check_cross_attention, read_real_rows_only),
    (check_null_weights, null_by_loops),
    (check_null_weights, null_by_another_column),
    (check_null_weights, null_by_logarithms),
    (THIRD, [*THIRDS, THIRDS @ [80, 20, 60]]),
    (THIRD, (0.476, 0.476, 0.047, 50.5)),
    (THIRD, [[0.4764, 0.4764, 0.0473, 50.47]]),
    (COUNT, [248, 180, 9, 45]),
    (COUNT, (12 * 4 + 20 * 4 + 20 * 6, 5 * 9 * 4, 9, 5 * 9)),
    (COUNT, [[248.0, 180.0, 9.0, 45.0]]),
    (ALIGN, PLACES),
    (ALIGN, tuple(PLACES)),
    (ALIGN, np.eye(12)[np.array(PLACES) - 1].argmax(axis=1)[None] + 1.0),
]

test_right_answers_pass = accepted(RIGHT)


def softmax(S, axis=1):
    E = np.exp(S - S.max(axis=axis, keepdims=True))
    return E / E.sum(axis=axis, keepdims=True)


def reading(keys="Y", values="Y", hide=lambda S, keep: np.where(keep, S, -np.inf), root=np.sqrt):
    """A reader with one thing changed; weights and output."""

    def answer(X, Y, W_Q, W_K, W_V, keep):
        rows = {"X": X, "Y": Y}
        with np.errstate(invalid="ignore"):
            A = softmax(hide(X @ W_Q @ (rows[keys] @ W_K).T / root(W_K.shape[1]), keep))
        return A, A @ (rows[values] @ W_V)

    return answer


def columns(X, Y, W_Q, W_K, W_V, keep):
    A = softmax(np.where(keep, X @ W_Q @ (Y @ W_K).T / np.sqrt(W_K.shape[1]), -1e30), axis=0)
    return A @ (Y @ W_V)


def struck_out(X, Y, W_Q, W_K, W_V, keep):
    return softmax(X @ W_Q @ (Y @ W_K).T / np.sqrt(W_K.shape[1])) * keep @ Y @ W_V


def with_null(shift, null=np.exp):
    def answer(S, c):
        top = shift(S, c)
        powers = np.exp(S - top)
        return powers / (null(c - top) + powers.sum(axis=1, keepdims=True))

    return answer


def none(S, c):
    return 0.0


WRONG = [
    (check_cross_attention, reading(values="X"), "values from the reader"),
    (
        check_cross_attention,
        reading(hide=lambda S, keep: np.where(np.tri(*S.shape) * keep > 0, S, -np.inf)),
        "causal mask",
    ),
    (check_cross_attention, reading(hide=lambda S, keep: S), "mask ignored"),
    (check_cross_attention, reading(hide=lambda S, keep: S * keep), "mask multiplied"),
    (
        check_cross_attention,
        reading(hide=lambda S, keep: np.where(keep, -np.inf, S)),
        "mask polarity",
    ),
    (check_cross_attention, struck_out, "mask after softmax"),
    (check_cross_attention, reading(root=lambda d: 1), "no scale"),
    (check_cross_attention, reading(root=lambda d: d), None),
    (check_cross_attention, reading(), None),  # NaN for an empty source
    (check_cross_attention, columns, None),
    (check_null_weights, lambda S, c: softmax(S), "no null"),
    (check_null_weights, with_null(none, null=lambda c: c), "c not exponentiated"),
    (check_null_weights, with_null(none, null=lambda c: 1.0), "c ignored"),
    (check_null_weights, lambda S, c: softmax(np.c_[S, c * np.ones(len(S))]), "null among"),
    (check_null_weights, with_null(none), "exp overflows"),
    (
        check_null_weights,
        lambda S, c: with_null(none)(S - S.max(axis=1, keepdims=True), c),
        "shift forgotten in c",
    ),
    (THIRD, [0.495, 0.495, 0.009, 50.1], "you forgot to divide by √3"),
    (THIRD, [0.468, 0.468, 0.063, 50.6], "you divided by √4"),
    (THIRD, [0.442, 0.442, 0.116, 51.2], "you divided by 3"),
    (THIRD, [0.390, 0.390, 0.219, 52.2], "you left out W_Q"),
    (THIRD, [10.07, 10.07, 1, 1067], "these are the powers"),
    (THIRD, [0.5, 0.5, 0, 50], "tea has the score 0"),
    (THIRD, [0.333, 0.333, 0.333, 53.3], "you averaged all three"),
    (THIRD, [0.476, 0.476, 0.047, 100], "the weights are right"),
    (COUNT, [168, 180, 9, 45], "(b): W_K and W_V act on rows of the source"),
    (COUNT, [208, 180, 9, 45], "(b): values have a width"),
    (COUNT, [1320, 180, 9, 45], "(b): the maps do not depend"),
    (COUNT, [248, 45, 9, 45], "(c): a score is a dot product"),
    (COUNT, [248, 100, 9, 45], "(c): this counts a table of 5 by 5"),
    (COUNT, [248, 450, 9, 45], "(c): mixing the values"),
    (COUNT, [248, 180, 45, 9], "(d): with K kept"),
    (COUNT, [248, 180, 5, 25], "(d): a source has 9 rows"),
    (COUNT, [248, 180, 1, 5], "(d): you counted passes"),
    (ALIGN, [place - 1 for place in PLACES], "you count from 0"),
    (ALIGN, np.argsort(PLACES) + 1, "you read the columns"),
    (ALIGN, range(12, 0, -1), "that is the anti-diagonal"),
    (ALIGN, range(1, 13), "that is the diagonal"),
    (ALIGN, [13 - place for place in PLACES], "you have the sources reversed"),
    (ALIGN, [*PLACES[1:], PLACES[0]], "you start one position too late"),
    (ALIGN, [8] * 12, "a row is one place"),
]

test_wrong_answers_are_named = named(WRONG)


def test_an_empty_source_must_give_zeros():
    def bare(X, Y, W_Q, W_K, W_V, keep):
        S = np.where(keep, X @ W_Q @ (Y @ W_K).T / np.sqrt(W_K.shape[1]), -np.inf)
        powers = np.exp(S - S.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True) @ Y @ W_V

    report = check_cross_attention(bare)
    assert not report.ok and "NaN" in report.text and "an empty source" in report.text
