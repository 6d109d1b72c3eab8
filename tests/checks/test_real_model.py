"""Answers to the exercises of chapter 14: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted, named

from attn_lib import softmax
from attn_lib.checks import check_cut_key, check_offset_score, check_trace


def change_by_formula(a, V, s):
    return [a[s] / (1 - a[s]) * (o - v) for o, v in zip(a @ V, V[s], strict=True)]


def change_by_leaving_out(a, V, s):
    rest = np.delete(a, s)
    return rest / rest.sum() @ np.delete(V, s, axis=0) - a @ V


def change_by_a_masked_softmax(a, V, s):
    scores = np.log(a)
    scores[s] = -np.inf
    return softmax(scores[None])[0] @ V - a @ V


def offset_by_loops(A, offset):
    found = []
    for head in A:
        n = len(head)
        there = [head[i, i + offset] for i in range(n) if 0 <= i + offset < n]
        found.append(sum(there) / len(there))
    return found


def offset_by_trace(A, offset):
    return np.trace(A, offset, axis1=1, axis2=2) / (A.shape[-1] - abs(offset))


def offset_by_a_mask(A, offset):
    i, j = np.indices(A.shape[1:])
    return A[:, j - i == offset].mean(axis=1)


def trace_by_loops(X, Y):
    return [x @ y / (x @ x * (y @ y)) ** 0.5 for x, y in zip(X, Y, strict=True)]


def trace_of_units(X, Y):
    X, Y = (M / np.linalg.norm(M, axis=1, keepdims=True) for M in (X, Y))
    return np.einsum("lc,lc->l", X, Y)


def trace_by_a_diagonal(X, Y):
    return np.diag(X @ Y.T) / np.linalg.norm(X, axis=1) / np.linalg.norm(Y, axis=1)


RIGHT = [
    (check_cut_key, change_by_formula),
    (check_cut_key, change_by_leaving_out),
    (check_cut_key, change_by_a_masked_softmax),
    (check_offset_score, offset_by_loops),
    (check_offset_score, offset_by_trace),
    (check_offset_score, offset_by_a_mask),
    (check_trace, trace_by_loops),
    (check_trace, trace_of_units),
    (check_trace, trace_by_a_diagonal),
    ("ex-real-count", [22.56, 0.16]),
    ("ex-real-count", (22.6, 0.157)),
    ("ex-real-count", np.array([[22.564608, 3_548_160 / 22_564_608]])),
    ("ex-real-two", [5.4, 0.6, 3, 3]),
    ("ex-real-two", (3.6 + 1.8, 0.4 + 0.2, 3.0, 3.0)),
    ("ex-real-two", [[5.4, 0.6, 3.0, 3.0]]),
    ("ex-real-follow", [4608, 384, 10_368, 18_432, 384, 1]),
    ("ex-real-follow", (12 * 384, 12 * 32, 72 * 144, 12 * 4 * 384, 384, 1)),
    ("ex-real-follow", [[4608, 384, 10_368, 18_432, 384, 1]]),
]

test_right_answers_pass = accepted(RIGHT)


def output_without(a, V, s):
    rest = np.delete(a, s)
    return rest / rest.sum() @ np.delete(V, s, axis=0)


WRONG = [
    (check_cut_key, lambda a, V, s: -a[s] * V[s], "not renormalised"),
    (check_cut_key, lambda a, V, s: a @ V - output_without(a, V, s), "sign"),
    (check_cut_key, output_without, "the new output"),
    (check_cut_key, lambda a, V, s: with_score_zero(a, V, s), "score set to 0"),
    (check_cut_key, lambda a, V, s: with_softmax_again(a, V, s), "softmax of weights"),
    (check_offset_score, lambda A, k: offset_by_loops(A, -k), "rows and columns exchanged"),
    (check_offset_score, lambda A, k: np.trace(A, k, 1, 2) / A.shape[-1], "all queries counted"),
    (
        check_offset_score,
        lambda A, k: A[:, range(A.shape[1]), (np.arange(A.shape[1]) + k) % A.shape[1]].mean(1),
        "round the end",
    ),
    (check_offset_score, lambda A, k: np.mean(offset_by_loops(A, k)), "heads averaged"),
    (check_offset_score, lambda A, k: np.diagonal(A, k, 1, 2).max(1), "largest weight"),
    (
        check_trace,
        lambda X, Y: X @ Y[0] / np.linalg.norm(X, axis=1) / np.linalg.norm(Y[0]),
        "compared with one",
    ),
    (check_trace, lambda X, Y: trace_by_loops(X, [X[0]] * len(X)), "compared with its own"),
    (check_trace, lambda X, Y: np.einsum("lc,lc->l", X, Y), "dot products"),
    (check_trace, lambda X, Y: (X * Y).sum(1) / np.linalg.norm(X, axis=1), "one length"),
    (check_trace, lambda X, Y: trace_of_units(X.ravel()[None], Y.ravel()[None])[0], "one number"),
    (check_trace, lambda X, Y: np.linalg.norm(X - Y, axis=1), "distances"),
    (check_trace, lambda X, Y: trace_by_loops(X.T, Y.T), "coordinates for layers"),
    ("ex-real-count", [22.713, 0.157], "that is the published model"),
    ("ex-real-count", [22.56, 0.118], "you left W_O out"),
    ("ex-real-count", [22.56, 0.333], "your share is of the six layers"),
    ("ex-real-count", [61.59, 0.69], "you gave each of the twelve heads"),
    ("ex-real-count", [19.03, 0.186], "the feed-forward part has two maps"),
    ("ex-real-count", [22.37, 0.159], "the table of positions is missing"),
    ("ex-real-count", [13.69, 0.043], "you counted one layer"),
    ("ex-real-two", [2.7, 0.3, 1.5, 1.5], "heads are added up"),
    ("ex-real-two", [5.4, 0.6, 5.4, 0.6], "the second pair is"),
    ("ex-real-two", [3, 3, 5.4, 0.6], "you exchanged the pairs"),
    ("ex-real-two", [0.6, 5.4, 3, 3], "rows are queries"),
    ("ex-real-two", [3.6, 0.4, 2, 2], "that is the first head"),
    ("ex-real-two", [5.4, 0.6, 2, 2], "with mean weights each head"),
    ("ex-real-follow", [4608, 4608, 10_368, 18_432, 384, 1], "a head's queries are 32"),
    ("ex-real-follow", [4608, 384, 1728, 18_432, 384, 1], "every layer has its own"),
    ("ex-real-follow", [4608, 384, 864, 18_432, 384, 1], "every head has its own"),
    ("ex-real-follow", [4608, 384, 10_368, 4608, 384, 1], "the hidden layer is four"),
    ("ex-real-follow", [4608, 384, 10_368, 1536, 384, 1], "the feed-forward part works on"),
    ("ex-real-follow", [4608, 384, 10_368, 18_432, 4608, 1], "the vector of a sentence"),
    ("ex-real-follow", [384, 384, 10_368, 18_432, 384, 1], "an embedding has a row"),
    ("ex-real-follow", [4608, 384, 10_368, 18_432, 384, 4], "what has a row for each token"),
]


def with_score_zero(a, V, s):
    scores = np.log(a)
    scores[s] = 0
    return softmax(scores[None])[0] @ V - a @ V


def with_softmax_again(a, V, s):
    scores = a.copy()
    scores[s] = -np.inf
    return softmax(scores[None])[0] @ V - a @ V


test_wrong_answers_are_named = named(WRONG)
