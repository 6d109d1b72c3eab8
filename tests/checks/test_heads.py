"""Answers to the exercises of chapter 8: right ones pass, wrong ones are told why."""

import itertools

import numpy as np
from answers import accepted

from attn_lib.checks import check_multi_head, check_split_heads, random_inputs
from attn_lib.checks.heads import MULTI_HEAD_MISTAKES, SPLIT_MISTAKES


def split_by_slices(X, heads):
    width = X.shape[1] // heads
    return np.stack([X[:, r * width : (r + 1) * width] for r in range(heads)])


def head_by_head(X, W_Q, W_K, W_V, W_O, heads):
    """Add up what each head writes; nothing is reshaped."""
    d_k, d_v = W_Q.shape[1] // heads, W_V.shape[1] // heads
    total = np.zeros((len(X), W_O.shape[1]))
    for r in range(heads):
        own, out = slice(r * d_k, (r + 1) * d_k), slice(r * d_v, (r + 1) * d_v)
        powers = np.exp(X @ W_Q[:, own] @ (X @ W_K[:, own]).T / np.sqrt(d_k))
        A = powers / powers.sum(axis=1, keepdims=True)
        total += A @ X @ W_V[:, out] @ W_O[out]
    return total


RIGHT = [
    (check_split_heads, split_by_slices),
    (check_multi_head, head_by_head),
]

test_right_answers_pass = accepted(RIGHT)


def test_mistakes_in_splitting_differ_if_the_tokens_divide_too():
    X = random_inputs(0, X=(6, 6))["X"]
    given = [make(X, 3) for _, _, make in SPLIT_MISTAKES]
    for one, other in itertools.combinations(given, 2):
        assert one.shape != other.shape or not np.allclose(one, other)


def test_one_head_does_not_excuse_a_wrong_split():
    """With one head most slips do no harm: the first case must have more."""
    wrong = next(m for m in MULTI_HEAD_MISTAKES if m.name == "only reshaped, twice")
    inputs = random_inputs(1, X=(4, 5), W_Q=(5, 3), W_K=(5, 3), W_V=(5, 2), W_O=(2, 5))
    np.testing.assert_allclose(wrong.make(*inputs.values(), 1), head_by_head(*inputs.values(), 1))
    assert not check_multi_head(wrong.make).ok
