"""check_cut_key and check_offset_score: right answers pass, known wrong ones are named."""

import itertools

import numpy as np
import pytest

from attn_lib import softmax
from attn_lib.checks import check_cut_key, check_offset_score, random_inputs
from attn_lib.checks.mistakes import CUT_KEY_MISTAKES, OFFSET_MISTAKES


def change_by_formula(a, V, s):
    return [a[s] / (1 - a[s]) * (o - v) for o, v in zip(a @ V, V[s], strict=True)]


def offset_by_loops(A, offset):
    found = []
    for head in A:
        n = len(head)
        there = [head[i, i + offset] for i in range(n) if 0 <= i + offset < n]
        found.append(sum(there) / len(there))
    return found


@pytest.mark.parametrize(
    ("check", "right"),
    [(check_cut_key, change_by_formula), (check_offset_score, offset_by_loops)],
)
def test_right_answers_pass(check, right):
    assert check(right).ok


@pytest.mark.parametrize(
    ("check", "mistake"),
    [(check_cut_key, m) for m in CUT_KEY_MISTAKES]
    + [(check_offset_score, m) for m in OFFSET_MISTAKES],
    ids=lambda x: getattr(x, "name", ""),
)
def test_each_mistake_is_named(check, mistake):
    report = check(mistake.make)
    assert not report.ok and report.mistake == mistake.name


def test_mistakes_about_a_cut_differ():
    drawn = random_inputs(0, a=(5,), V=(5, 3))
    given = {m.name: m.make(softmax(drawn["a"]), drawn["V"], 1) for m in CUT_KEY_MISTAKES}
    for a, b in itertools.combinations(given, 2):
        assert not np.allclose(given[a], given[b]), (a, b)
