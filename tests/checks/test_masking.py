"""Answers to the exercises of chapter 6: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted, named, table_of

from attn_lib import attention
from attn_lib.checks import check_causal_mask, check_document_mask, check_masked_attention


def row_softmax(S, axis=-1):
    E = np.exp(S - S.max(axis=axis, keepdims=True))
    return E / E.sum(axis=axis, keepdims=True)


def masked_by_choice(Q, K, V, keep):
    O = np.zeros((len(Q), V.shape[1]))
    for i, allowed in enumerate(keep):
        if allowed.any():
            O[i] = row_softmax(K[allowed] @ Q[i] / np.sqrt(K.shape[1])) @ V[allowed]
    return O


def masked_by_minus_infinity(Q, K, V, keep):
    S = Q @ K.T / np.sqrt(K.shape[1])
    S[~keep] = -np.inf
    E = np.exp(S - np.maximum(S.max(axis=1, keepdims=True), -1e300))
    total = E.sum(axis=1, keepdims=True)
    return E @ V / np.where(total > 0, total, 1)


def by_loops(documents):
    n = len(documents)
    return [[j <= i and documents[i] == documents[j] for j in range(n)] for i in range(n)]


def by_blocks(documents):
    mask = np.zeros((len(documents),) * 2, bool)
    for text in np.unique(documents):
        at = np.flatnonzero(documents == text)
        mask[np.ix_(at, at)] = np.tri(len(at), dtype=bool)
    return mask


RIGHT = [
    (check_masked_attention, lambda Q, K, V, keep: attention(Q, K, V, mask=keep).output),
    (check_masked_attention, masked_by_choice),
    (check_masked_attention, masked_by_minus_infinity),
    (check_causal_mask, lambda n, m, offset: np.tri(n, m, offset, dtype=bool)),
    (
        check_causal_mask,
        lambda n, m, offset: [[j <= i + offset for j in range(m)] for i in range(n)],
    ),
    (check_document_mask, by_loops),
    (check_document_mask, by_blocks),
]

test_right_answers_pass = accepted(RIGHT)


def masked(change, after=lambda A, keep: A, divide=None, axis=-1):
    """Attention with the mask misapplied before or after the softmax; the output alone."""

    def answer(Q, K, V, keep):
        S = change(Q @ K.T / (divide or np.sqrt(K.shape[1])), keep)
        return after(row_softmax(S, axis), keep) @ V

    return answer


def forbid(S, keep):
    return np.where(keep, S, -np.inf)


WRONG = [
    (check_masked_attention, masked(forbid, divide=1), "no scale"),
    (check_masked_attention, masked(forbid, divide=5.0), "divided by d_k"),
    (check_masked_attention, masked(forbid, axis=0), "wrong axis"),
    (check_masked_attention, lambda Q, K, V, keep: Q @ V.T, "values scored"),
    (
        check_masked_attention,
        lambda Q, K, V, keep: V @ row_softmax(np.where(keep, Q @ K.T, -np.inf)),
        "V before A",
    ),
    (check_masked_attention, masked(lambda S, keep: S), "mask ignored"),
    (check_masked_attention, masked(lambda S, keep: forbid(S, ~keep)), "mask polarity"),
    (check_masked_attention, masked(lambda S, keep: np.where(keep, S, 0)), "mask multiplied"),
    (check_masked_attention, masked(lambda S, keep: S + keep), "mask added as 0 and 1"),
    (
        check_masked_attention,
        masked(lambda S, keep: S, lambda A, keep: np.where(keep, A, 0)),
        "mask after softmax",
    ),
    (
        check_masked_attention,
        masked(lambda S, keep: S, lambda A, keep: A * keep / (A * keep).sum(axis=1, keepdims=True)),
        "mask after softmax",
    ),
    (
        check_masked_attention,
        masked(lambda S, keep: S - np.inf * np.logical_not(keep)),
        "NaN from 0·∞",
    ),
    (check_masked_attention, masked(forbid), "NaN from an empty row"),
    (
        check_masked_attention,
        masked(lambda S, keep: np.where(keep, S, np.finfo(float).min)),
        "large negative number instead of −∞",
    ),
    (
        check_masked_attention,
        masked(lambda S, keep: S - 1e9 * ~keep),
        "large negative number added",
    ),
    (check_causal_mask, lambda n, m, offset: np.tri(n, m, offset - 1) > 0, "own key forbidden"),
    (check_causal_mask, lambda n, m, offset: np.tri(n, m, offset) == 0, "mask polarity"),
    (check_causal_mask, lambda n, m, offset: np.tri(n, m) > 0, "offset ignored"),
    (check_causal_mask, lambda n, m, offset: np.tri(n, m, -offset) > 0, "offset subtracted"),
    (
        check_causal_mask,
        lambda n, m, offset: np.tri(n, m, offset).T > 0,
        "rows and columns exchanged",
    ),
    (
        check_causal_mask,
        lambda n, m, offset: np.triu(np.full((n, m), -np.inf), offset + 1),
        "float mask",
    ),
]

test_wrong_answers_are_named = named(WRONG)


def test_inputs_have_distinct_sizes():
    for case in table_of(check_masked_attention)["cases"]:
        sizes = {size for name, x in case.inputs.items() if name != "keep" for size in x.shape}
        assert len(sizes) == 4 and 1 not in sizes  # n, m, d_k, d_v


def test_a_mask_is_boolean():
    report = check_causal_mask(lambda n, m, offset: np.tri(n, m, offset))
    assert not report.ok and "float64, not bool" in report.text


def test_other_mask_errors_do_not_trip_over_booleans():
    def answer(n, m, offset):
        mask = np.tri(n, m, offset) > 0
        mask[0, 0] ^= True
        return mask

    assert "your mask[0, 0] is 0, and should be 1" in check_causal_mask(answer).text


def test_an_unknown_mistake_is_described():
    report = check_document_mask(lambda documents: np.eye(len(documents), dtype=bool))
    assert not report.ok and report.mistake is None and "numbered in any order" in report.text


def test_a_float_mask_is_refused():
    assert not check_document_mask(lambda documents: np.where(by_loops(documents), 0, -np.inf)).ok
    assert "bool" in check_document_mask(lambda documents: np.array(by_loops(documents)) * 1).text
