"""check_layer_norm and check_pre_norm_block: right answers pass, known wrong ones are named."""

import itertools
import math

import numpy as np
import pytest

from attn_lib.checks import check_layer_norm, check_pre_norm_block, random_inputs
from attn_lib.checks.mistakes import LAYER_NORM_MISTAKES, PRE_NORM_MISTAKES


def norm_by_loops(X, gain=None, bias=None):
    rows = []
    for row in X:
        mean = sum(row) / len(row)
        deviation = math.sqrt(sum((u - mean) ** 2 for u in row) / len(row) + 1e-5)
        rows.append([(u - mean) / deviation for u in row])
    rows = np.array(rows)
    return rows if gain is None else rows * gain + bias


def block_by_loops(X, A, W, W_1, W_2):
    middle = X + A @ norm_by_loops(X) @ W
    hidden = norm_by_loops(middle) @ W_1
    bent = [[h * (1 + math.erf(h / math.sqrt(2))) / 2 for h in row] for row in hidden]
    return middle + np.array(bent) @ W_2


@pytest.mark.parametrize(
    ("check", "right"),
    [(check_layer_norm, norm_by_loops), (check_pre_norm_block, block_by_loops)],
)
def test_right_answers_pass(check, right):
    assert check(right).ok


@pytest.mark.parametrize(
    ("check", "mistake"),
    [(check_layer_norm, m) for m in LAYER_NORM_MISTAKES]
    + [(check_pre_norm_block, m) for m in PRE_NORM_MISTAKES],
    ids=lambda x: getattr(x, "name", ""),
)
def test_each_mistake_is_named(check, mistake):
    report = check(mistake.make)
    assert not report.ok and report.mistake == mistake.name


@pytest.mark.parametrize(
    ("mistakes", "shapes"),
    [
        (LAYER_NORM_MISTAKES, {"X": (4, 6), "gain": (6,), "bias": (6,)}),
        (
            PRE_NORM_MISTAKES,
            {"X": (5, 4), "A": (5, 5), "W": (4, 4), "W_1": (4, 7), "W_2": (7, 4)},
        ),
    ],
    ids=["norm", "block"],
)
def test_mistakes_differ(mistakes, shapes):
    inputs = random_inputs(0, **shapes).values()
    given = {mistake.name: mistake.make(*inputs) for mistake in mistakes}
    for (a, one), (b, other) in itertools.combinations(given.items(), 2):
        assert not np.allclose(one, other, rtol=1e-3, atol=1e-3), (a, b)


def test_a_constant_token_needs_epsilon():
    def bare(X, gain, bias):
        return (X - X.mean(-1, keepdims=True)) / X.std(-1, keepdims=True) * gain + bias

    with np.errstate(all="ignore"):
        report = check_layer_norm(bare)
    assert not report.ok
