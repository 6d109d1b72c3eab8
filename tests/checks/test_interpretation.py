"""Answers to the exercises of chapter 13: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted

from attn_lib.checks import check_cut_edge, check_edge_norms


def norms_by_loops(A, V, W_O):
    return [[np.sqrt(sum((a * v @ W_O) ** 2)) for a, v in zip(row, V, strict=True)] for row in A]


def cut_by_loops(A, query, key, renormalise):
    row = [0.0 if j == key else a for j, a in enumerate(A[query])]
    if renormalise and sum(row):
        row = [a / sum(row) for a in row]
    return [row if i == query else list(A[i]) for i in range(len(A))]


RIGHT = [
    (check_edge_norms, norms_by_loops),
    (check_cut_edge, cut_by_loops),
]

test_right_answers_pass = accepted(RIGHT)


def test_changing_the_given_weights_is_told():
    def in_place(A, query, key, renormalise):
        A[query, key] = 0
        if renormalise and A[query].any():
            A[query] /= A[query].sum()
        return A

    report = check_cut_edge(in_place)
    assert not report.ok and "changes `A`" in report.text
