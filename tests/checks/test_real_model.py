"""Answers to the exercises of chapter 14: right ones pass, wrong ones are told why."""

from answers import accepted

from attn_lib.checks import check_cut_key, check_offset_score


def change_by_formula(a, V, s):
    return [a[s] / (1 - a[s]) * (o - v) for o, v in zip(a @ V, V[s], strict=True)]


def offset_by_loops(A, offset):
    found = []
    for head in A:
        n = len(head)
        there = [head[i, i + offset] for i in range(n) if 0 <= i + offset < n]
        found.append(sum(there) / len(there))
    return found


RIGHT = [
    (check_cut_key, change_by_formula),
    (check_offset_score, offset_by_loops),
]

test_right_answers_pass = accepted(RIGHT)
