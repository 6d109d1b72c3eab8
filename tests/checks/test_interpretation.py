"""check_edge_norms and check_cut_edge: right answers pass, known wrong ones are named."""

import itertools

import numpy as np
import pytest

from attn_lib import softmax
from attn_lib.checks import check_cut_edge, check_edge_norms, random_inputs
from attn_lib.checks.mistakes import CUT_EDGE_MISTAKES, EDGE_NORM_MISTAKES


def norms_by_loops(A, V, W_O):
    return [[np.sqrt(sum((a * v @ W_O) ** 2)) for a, v in zip(row, V, strict=True)] for row in A]


def cut_by_loops(A, query, key, renormalise):
    row = [0.0 if j == key else a for j, a in enumerate(A[query])]
    if renormalise and sum(row):
        row = [a / sum(row) for a in row]
    return [row if i == query else list(A[i]) for i in range(len(A))]


@pytest.mark.parametrize(
    ("check", "right"), [(check_edge_norms, norms_by_loops), (check_cut_edge, cut_by_loops)]
)
def test_right_answers_pass(check, right):
    assert check(right).ok


@pytest.mark.parametrize(
    ("check", "mistake"),
    [(check_edge_norms, m) for m in EDGE_NORM_MISTAKES]
    + [(check_cut_edge, m) for m in CUT_EDGE_MISTAKES],
    ids=lambda x: getattr(x, "name", ""),
)
def test_each_mistake_is_named(check, mistake):
    report = check(mistake.make)
    assert not report.ok and report.mistake == mistake.name


def test_changing_the_given_weights_is_told():
    def in_place(A, query, key, renormalise):
        A[query, key] = 0
        if renormalise and A[query].any():
            A[query] /= A[query].sum()
        return A

    report = check_cut_edge(in_place)
    assert not report.ok and "changes `A`" in report.text


def test_edge_norm_mistakes_differ():
    A = softmax(random_inputs(5, S=(4, 4))["S"])
    V, W_O = random_inputs(6, V=(4, 3), W_O=(3, 5)).values()
    given = {m.name: np.asarray(m.make(A, V, W_O)) for m in EDGE_NORM_MISTAKES}
    for (a, one), (b, other) in itertools.combinations(given.items(), 2):
        assert one.shape != other.shape or not np.allclose(one, other), (a, b)
