"""Answers to the exercises of chapter 2: right ones pass, wrong ones are told why."""

import itertools
import math

import numpy as np
from answers import accepted, named, table_of

from attn_lib import attention, softmax
from attn_lib.checks import check_attention, check_softmax


def row_softmax(S, axis=-1):
    E = np.exp(S - S.max(axis=axis, keepdims=True))
    return E / E.sum(axis=axis, keepdims=True)


def softmax_by_loops(S):
    if S.ndim > 2:
        return [softmax_by_loops(part) for part in S]
    if S.ndim == 1:
        return softmax_by_loops(S[None])[0]
    result = []
    for row in S:
        powers = [math.exp(s - max(row)) for s in row]
        result.append([p / sum(powers) for p in powers])
    return result


def attention_by_einsum(Q, K, V):
    S = np.einsum("ik,jk->ij", Q, K) / np.sqrt(Q.shape[1])
    A = row_softmax(S)
    return A, np.einsum("ij,jc->ic", A, V)


def attention_one_query_at_a_time(Q, K, V):
    return np.stack([row_softmax(K @ q / np.sqrt(len(q))) @ V for q in Q])


def attention_in_float32(Q, K, V):
    return attention_by_einsum(*(M.astype(np.float32) for M in (Q, K, V)))[1]


RIGHT = [
    (check_softmax, softmax),
    (check_softmax, softmax_by_loops),
    (check_softmax, lambda S: np.exp(S - np.logaddexp.reduce(S, axis=-1, keepdims=True))),
    (check_softmax, lambda S: np.apply_along_axis(row_softmax, -1, S)),
    (check_softmax, lambda S: np.moveaxis(row_softmax(np.moveaxis(S, -1, 0), 0), 0, -1)),
    (check_attention, attention),
    (check_attention, lambda Q, K, V: list(attention_by_einsum(Q, K, V))),
    (check_attention, attention_by_einsum),
    (check_attention, attention_one_query_at_a_time),
    (check_attention, attention_in_float32),
    ("ex-qkv-soup", [0.12, 0.12, 0.25, 0.50]),
    ("ex-qkv-soup", (0.12, 0.12, 0.25, 0.51)),
    ("ex-qkv-soup", np.round([[1, 1, 2.03, 4.11]], 2) / 8.14),
    ("ex-qkv-soup", np.exp([0, 0, 0.71, 1.41]) / np.exp([0, 0, 0.71, 1.41]).sum()),
    ("ex-qkv-shapes", (110, 49, 110, 196)),
    ("ex-qkv-shapes", [110.0, 49.0, 110.0, 196.0]),
    ("ex-qkv-shapes", np.array([[2 * 40 + 30, 7 * 7, 2 * 40 + 30, 14 * 14]])),
    ("ex-qkv-rank", (1, 5)),
    ("ex-qkv-rank", [1.0, 5.0]),
    ("ex-qkv-rank", (np.linalg.matrix_rank(np.ones((5, 5))), np.linalg.matrix_rank(np.eye(5)))),
]

test_right_answers_pass = accepted(RIGHT)


def head(Q, K, V, *, divide=None, axis=-1):
    A = row_softmax(Q @ K.T / (divide or np.sqrt(K.shape[1])), axis)
    return A, A @ V


def shifted(S, by):
    powers = np.exp(S - by)
    return powers / powers.sum(axis=-1, keepdims=True)


WRONG = [
    (check_softmax, lambda S: row_softmax(S, 0), "wrong axis"),
    (check_softmax, lambda S: np.exp(S) / np.exp(S).sum(0), "wrong axis"),
    (check_softmax, lambda S: np.exp(S) / np.exp(S).sum(), "one softmax for the whole table"),
    (check_softmax, lambda S: S, "no softmax"),
    (check_softmax, lambda S: np.exp(S), "not normalised"),
    (check_softmax, lambda S: S / S.sum(1)[:, None], "no exp"),
    (check_softmax, lambda S: np.exp(S) / np.exp(S).sum(1), "missing keepdims"),
    (check_softmax, lambda S: np.exp(S) / np.exp(S).sum(1)[:, None], "exp overflows"),
    (
        check_softmax,
        lambda S: np.exp(S - S.max()) / np.exp(S - S.max()).sum(1)[:, None],
        "one maximum for all rows",
    ),
    (check_softmax, lambda S: row_softmax(S, 1), "a matrix alone"),
    (check_softmax, lambda S: np.exp(S) / np.exp(S).sum(1, keepdims=True), "exp overflows"),
    (check_softmax, lambda S: [row_softmax(row, None) for row in S], "a matrix alone"),
    (check_softmax, lambda S: [np.exp(r - max(r)) / sum(np.exp(r - max(r))) for r in S], "a mat"),
    (check_softmax, lambda S: np.array([softmax_by_loops(S[i : i + 1])[0] for i in (0, 1)]), None),
    (check_softmax, lambda S: shifted(S, S.mean(axis=-1, keepdims=True)), "another shift"),
    (check_softmax, lambda S: shifted(S, np.median(S, -1, keepdims=True)), "another shift"),
    (check_softmax, lambda S: shifted(S, S[..., :1]), "another shift"),
    (check_softmax, lambda S: shifted(np.clip(S, -500, 500), 0), "scores clipped"),
    (check_attention, lambda Q, K, V: head(Q, K, V, divide=1)[1], "no scale"),
    (check_attention, lambda Q, K, V: head(Q, K, V, divide=1), "no scale"),
    (check_attention, lambda Q, K, V: head(Q, K, V, divide=K.shape[1])[1], "divided by d_k"),
    (check_attention, lambda Q, K, V: head(Q, K, V, divide=768**0.5)[1], "divided by √d_model"),
    (check_attention, lambda Q, K, V: head(Q, K, V, divide=8)[1], "divided by √d_model"),
    (check_attention, lambda Q, K, V: head(Q, K, V, divide=5**-0.5)[1], "multiplied by √d_k"),
    (
        check_attention,
        lambda Q, K, V: head(Q, K, V, divide=len(K) ** 0.5)[1],
        "divided by the root of a number of tokens",
    ),
    (check_attention, lambda Q, K, V: row_softmax(Q @ K / 5**0.5) @ V, "keys not transposed"),
    (check_attention, lambda Q, K, V: head(Q, K, V, axis=0)[1], "wrong axis"),
    (check_attention, lambda Q, K, V: head(K, Q, V), "swapped Q and K"),
    (check_attention, lambda Q, K, V: head(Q, K, V)[0].T @ V, "swapped Q and K"),
    (check_attention, lambda Q, K, V: head(Q, V, V), "values scored"),
    (check_attention, lambda Q, K, V: V @ head(Q, K, V)[0], "V before A"),
    (check_attention, lambda Q, K, V: np.dot(V, head(Q, K, V)[0]), "V before A"),
    (check_attention, lambda Q, K, V: row_softmax(Q @ K.T / Q.shape[1] ** 0.5 @ V), "V before A"),
    (check_attention, lambda Q, K, V: head(Q, K, K), "keys mixed"),
    (check_attention, lambda Q, K, V: head(Q, K, V)[0], "output forgotten"),
    (check_attention, lambda Q, K, V: head(Q, K, V)[::-1], "weights and output exchanged"),
    (
        check_attention,
        lambda Q, K, V: row_softmax(Q @ K.T) / K.shape[1] ** 0.5 @ V,
        "scaled after softmax",
    ),
    (check_attention, lambda Q, K, V: row_softmax(head(Q, K, V)[0]) @ V, "softmax twice"),
    ("ex-qkv-soup", [0.08, 0.08, 0.22, 0.61], "you forgot to divide"),
    ("ex-qkv-soup", [0.16, 0.16, 0.26, 0.43], "you divided by 2"),
    ("ex-qkv-soup", [0.04, 0.74, 0.18, 0.04], "this is the row of *bland*"),
    ("ex-qkv-soup", [0.04, 0.04, 0.18, 0.74], "you compared *soup* with token vectors"),
    ("ex-qkv-soup", [1, 1, 2.03, 4.11], "these are the powers"),
    ("ex-qkv-soup", [0, 0, 0.71, 1.41], "these are the scores"),
    ("ex-qkv-soup", [0, 0, 1 / 3, 2 / 3], "you divided the scores by their sum"),
    ("ex-qkv-soup", [0.25] * 4, None),
    ("ex-qkv-shapes", [120, 49, 120, 196], "(b) and (d): you took the values"),
    ("ex-qkv-shapes", [70, 49, 70, 196], "(b) and (d): the key map"),
    ("ex-qkv-shapes", [77, 49, 154, 196], "(b) and (d): you counted the entries"),
    ("ex-qkv-shapes", [110, 49, 220, 196], "(d): the maps do not contain n"),
    ("ex-qkv-shapes", [110, 49, 110, 98], "(d): both sides"),
    ("ex-qkv-shapes", [110, 42, 110, 182], "(c): every query"),
    ("ex-qkv-rank", (1, 1), "the rank of A"),
    ("ex-qkv-rank", (5, 5), "the rank of S"),
    ("ex-qkv-rank", (5, 1), "these are the other way round"),
    ("ex-qkv-rank", (4, 4), "both ranks are bounded"),
    ("ex-qkv-rank", (0, 5), "a table that is not 0"),
]

test_wrong_answers_are_named = named(WRONG)


def test_inputs_have_distinct_sizes():
    for case in table_of(check_attention)["cases"]:
        sizes = set(itertools.chain(*(x.shape for x in case.inputs.values())))
        assert len(sizes) == 4 and 1 not in sizes  # n, m, d_k, d_v


def test_a_known_error_keeps_the_readers_line():
    report = check_attention(lambda Q, K, V: V @ head(Q, K, V)[0])
    assert "the values come last" in report.text
    assert "V @ head(Q, K, V)[0]" in report.text


def test_two_mistakes_at_once_are_still_seen():
    report = check_attention(lambda Q, K, V: head(Q, K, V, divide=3.3, axis=0))
    assert "sum to one along columns" in report.text
    report = check_attention(lambda Q, K, V: tuple(0.4 * M for M in head(Q, K, V, divide=3.3)))
    assert "your first row sums to 0.4" in report.text


def test_an_answer_without_a_keyword_is_not_confused_by_masked_scores():
    report = check_attention(lambda Q, K, V: (np.ones((4, 6)) / 6, np.ones((4, 3))))
    assert not report.ok


def test_the_cases_come_in_order_and_their_note_is_told():
    def spoilt_on_large_scores(Q, K, V):
        A, O = head(Q, K, V)
        return A, O + (np.abs(Q).max() > 100)

    assert "(with scores in the thousands)" in check_attention(spoilt_on_large_scores).text
