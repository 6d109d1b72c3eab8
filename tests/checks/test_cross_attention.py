"""check_cross_attention and check_null_weights: right answers pass, known wrong ones are named."""

import itertools

import numpy as np
import pytest

from attn_lib.checks import check_cross_attention, check_null_weights, random_inputs
from attn_lib.checks.mistakes import CROSS_ATTENTION_MISTAKES, NULL_WEIGHT_MISTAKES


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


@pytest.mark.parametrize(
    ("check", "right"),
    [(check_cross_attention, read_row_by_row), (check_null_weights, null_by_loops)],
)
def test_right_answers_pass(check, right):
    assert check(right).ok


@pytest.mark.parametrize(
    ("check", "mistake"),
    [(check_cross_attention, m) for m in CROSS_ATTENTION_MISTAKES]
    + [(check_null_weights, m) for m in NULL_WEIGHT_MISTAKES],
    ids=lambda x: getattr(x, "name", ""),
)
def test_each_mistake_is_named(check, mistake):
    report = check(mistake.make)
    assert not report.ok and report.mistake == mistake.name


def test_mistakes_that_give_numbers_differ():
    inputs = random_inputs(0, X=(4, 3), Y=(7, 3), W_Q=(3, 5), W_K=(3, 5), W_V=(3, 2))
    keep, given = np.arange(7) < 5, {}
    for name, _, make in CROSS_ATTENTION_MISTAKES:
        try:
            given[name] = make(*inputs.values(), keep)[1]
        except ValueError:
            continue  # shapes do not fit: told by the error
    assert len(given) >= 7
    for (a, one), (b, other) in itertools.combinations(given.items(), 2):
        assert one.shape != other.shape or not np.allclose(one, other), (a, b)


def test_an_empty_source_must_give_zeros():
    def bare(X, Y, W_Q, W_K, W_V, keep):
        S = np.where(keep, X @ W_Q @ (Y @ W_K).T / np.sqrt(W_K.shape[1]), -np.inf)
        powers = np.exp(S - S.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True) @ Y @ W_V

    report = check_cross_attention(bare)
    assert not report.ok and "NaN" in report.text and "an empty source" in report.text
