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


def causal_by_rows(n, m, offset):
    mask = np.zeros((n, m), bool)
    for i in range(n):
        mask[i, : max(0, i + offset + 1)] = True
    return mask


def same_text_and_not_later(documents):
    i, j = np.indices((len(documents),) * 2)
    return (j <= i) & (documents[i] == documents[j])


def by_start_of_text(documents):
    """A text begins where the number changes; a token reads from there up to itself."""
    begins = [
        max(k for k in range(i + 1) if k == 0 or documents[k] != documents[k - 1])
        for i in range(len(documents))
    ]
    return [[begins[i] <= j <= i for j in range(len(documents))] for i in range(len(documents))]


ROW, COUNT, DETECT = "ex-mask-row", "ex-mask-count", "ex-mask-detect"

RIGHT = [
    (ROW, [0.5, 0.125, 0.375, 0]),
    (ROW, (1 / 2, 1 / 8, 3 / 8, 0)),
    (ROW, [[0.5, 0.12, 0.38, 0.0]]),  # rounded to two decimals, half to even
    (ROW, np.array([0.5, 0.13, 0.38, 0])),
    (COUNT, [28, 18, 29, 0.5]),
    (COUNT, (7 * 8 / 2, 3 * 7 - 3, 7 * 8 / 2 + 1, 1 / 2)),
    (COUNT, [[28.0, 18.0, 29.0, 0.50]]),
    (DETECT, [0, 1, 1, 0, 1]),
    (DETECT, [False, True, True, False, True]),
    (DETECT, np.array([[0.0, 1, 1, 0, 1]])),
    (check_masked_attention, lambda Q, K, V, keep: attention(Q, K, V, mask=keep).output),
    (check_masked_attention, masked_by_choice),
    (check_masked_attention, masked_by_minus_infinity),
    (check_causal_mask, lambda n, m, offset: np.tri(n, m, offset, dtype=bool)),
    (
        check_causal_mask,
        lambda n, m, offset: [[j <= i + offset for j in range(m)] for i in range(n)],
    ),
    (check_causal_mask, causal_by_rows),
    (check_causal_mask, lambda n, m, offset: np.arange(m) <= np.arange(n)[:, None] + offset),
    (check_document_mask, by_loops),
    (check_document_mask, by_blocks),
    (check_document_mask, same_text_and_not_later),
    (check_document_mask, by_start_of_text),
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
    (check_causal_mask, lambda n, m, offset: np.tri(n, m, m - n) > 0, "offset guessed from the"),
    (check_causal_mask, lambda n, m, offset: np.ones((n, m), bool), None),
    (check_document_mask, lambda d: np.equal.outer(d, d), "not causal"),
    (check_document_mask, lambda d: np.tri(len(d)) > 0, "texts not kept apart"),
    (
        check_document_mask,
        lambda d: (np.tri(len(d)) > 0) & np.greater_equal.outer(d, d),
        None,  # a text reads those before it whose numbers are smaller
    ),
    (
        check_document_mask,
        lambda d: (np.tri(len(d)) > 0) | np.equal.outer(d, d),
        "masks joined by or",
    ),
    (
        check_document_mask,
        lambda d: (np.tri(len(d)) == 0) | np.not_equal.outer(d, d),
        "mask polarity",
    ),
    (
        check_document_mask,
        lambda d: (np.tri(len(d)).T > 0) & np.equal.outer(d, d),
        "rows and columns exchanged",
    ),
    (ROW, [0.44, 0.11, 0.33, 0.11], "a forbidden score of 0"),
    (ROW, [0.25, 0.06, 0.19, 0.5], "you left the future in"),
    (ROW, [0.25, 0.06, 0.19, 0], "what is left does not sum to 1"),
    (ROW, [4, 1, 3, 0], "these are the powers"),
    (ROW, [0.8, 0.2, 0, 0], "query 3 may read key 3"),
    (ROW, [0.33, 0.33, 0.33, 0], "the weights of what is left are not even"),
    (ROW, [0, 0, 0.27, 0.73], "you hid the past"),
    (COUNT, [21, 11, 24, 0.57], "a query may read its own key"),
    (COUNT, [21, 11, 24, 0.5], "a query may read its own key"),
    (COUNT, [28, 22, 29, 0.5], "a window of 3 counts the own key"),
    (COUNT, [28, 21, 29, 0.5], "the first rows have no three keys"),
    (COUNT, [28, 18, 32, 0.5], "pairs inside the prefix"),
    (COUNT, [28, 18, 28, 0.5], "inside the prefix every query"),
    (COUNT, [28, 18, 29, 0.43], "(d) asks for large n"),
    (COUNT, [28, 18, 29, 0.57], "(d) asks for the share that is saved"),
    (COUNT, [21, 31, 20, 0.5], "you counted the forbidden"),
    (DETECT, [1, 1, 1, 0, 1], "A is honest"),
    (DETECT, [0, 0, 1, 0, 1], "look at B again"),
    (DETECT, [0, 1, 0, 0, 1], "look at C again"),
    (DETECT, [0, 1, 1, 1, 1], "D is honest"),
    (DETECT, [0, 1, 1, 0, 0], "look at E again"),
    (DETECT, [0, 0, 0, 0, 0], "what decides is what the numbers are made from"),
    (DETECT, [1, 1, 1, 1, 1], "a sum over tokens need not leak"),
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
