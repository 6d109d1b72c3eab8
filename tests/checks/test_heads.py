"""check_split_heads and check_multi_head: right answers pass, known wrong ones are named."""

import itertools

import numpy as np
import pytest

from attn_lib.checks import check_multi_head, check_split_heads, random_inputs
from attn_lib.checks.mistakes import MULTI_HEAD_MISTAKES, SPLIT_MISTAKES


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


@pytest.mark.parametrize(
    ("check", "right"), [(check_split_heads, split_by_slices), (check_multi_head, head_by_head)]
)
def test_right_answers_pass(check, right):
    assert check(right).ok


@pytest.mark.parametrize(
    ("check", "mistake"),
    [(check_split_heads, m) for m in SPLIT_MISTAKES]
    + [(check_multi_head, m) for m in MULTI_HEAD_MISTAKES],
    ids=lambda x: getattr(x, "name", ""),
)
def test_each_mistake_is_named(check, mistake):
    report = check(mistake.make)
    assert not report.ok and report.mistake == mistake.name


def differ(given):
    for (a, one), (b, other) in itertools.combinations(given.items(), 2):
        assert one.shape != other.shape or not np.allclose(one, other), (a, b)


def test_mistakes_in_splitting_give_different_numbers():
    X, given = random_inputs(0, X=(6, 6))["X"], {}  # 3 heads, so that tokens divide too
    for name, _, make in SPLIT_MISTAKES:
        given[name] = make(X, 3)
    assert len(given) == len(SPLIT_MISTAKES)
    differ(given)


def test_mistakes_in_joining_give_different_numbers():
    inputs = random_inputs(0, X=(5, 9), W_Q=(9, 6), W_K=(9, 6), W_V=(9, 12), W_O=(12, 9))
    given = {name: make(*inputs.values(), 3) for name, _, make in MULTI_HEAD_MISTAKES}
    assert len(given) == len(MULTI_HEAD_MISTAKES)
    differ(given)


def test_one_head_does_not_excuse_a_wrong_split():
    """With one head most slips do no harm: the first case must have more."""
    wrong = next(m for m in MULTI_HEAD_MISTAKES if m.name == "only reshaped, twice")
    inputs = random_inputs(1, X=(4, 5), W_Q=(5, 3), W_K=(5, 3), W_V=(5, 2), W_O=(2, 5))
    np.testing.assert_allclose(wrong.make(*inputs.values(), 1), head_by_head(*inputs.values(), 1))
    assert not check_multi_head(wrong.make).ok
