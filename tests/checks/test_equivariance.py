"""Answers to the exercises of chapter 4: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted, named

from attn_lib.checks import check_moved_scores, check_order_gap


def by_loops(S, rho):
    return [[S[i, j] for j in rho] for i in rho]


def by_matrices(S, rho):
    P = np.zeros(S.shape)
    P[np.arange(len(rho)), rho] = 1
    return P @ S @ P.T


def gap_by_loops(O, O_moved, rho):
    total = 0.0
    for i, place in enumerate(rho):
        total += sum((O_moved[i] - O[place]) ** 2)
    return total**0.5


RIGHT = [
    (check_moved_scores, by_loops),
    (check_moved_scores, by_matrices),
    (check_moved_scores, lambda S, rho: S[np.ix_(rho, rho)]),
    (check_order_gap, gap_by_loops),
    (check_order_gap, lambda O, O_moved, rho: np.linalg.norm(O_moved - O[rho])),
]

test_right_answers_pass = accepted(RIGHT)


WRONG = [
    (check_moved_scores, lambda S, rho: np.take(S, rho, axis=0), "columns not moved"),
    (check_moved_scores, lambda S, rho: np.take(S, rho, axis=1), "rows not moved"),
    (
        check_moved_scores,
        lambda S, rho: np.eye(len(rho))[rho].T @ S @ np.eye(len(rho))[rho],
        "wrong way round",
    ),
    (
        check_moved_scores,
        lambda S, rho: np.eye(len(rho))[rho] @ S @ np.eye(len(rho))[rho],
        "P on both sides",
    ),
    (
        check_moved_scores,
        lambda S, rho: np.eye(len(rho))[rho].T @ S @ np.eye(len(rho))[rho].T,
        "P on both sides",
    ),
    (check_moved_scores, lambda S, rho: by_matrices(S, rho).T, "transposed"),
    (check_moved_scores, lambda S, rho: S[rho, rho], "pairs picked"),
    (
        check_order_gap,
        lambda O, O_moved, rho: ((O - O_moved) ** 2).sum() ** 0.5,
        "invariance tested",
    ),
    (
        check_order_gap,
        lambda O, O_moved, rho: np.sqrt(((O_moved - O[np.argsort(rho)]) ** 2).sum()),
        "wrong way round",
    ),
    (check_order_gap, lambda O, O_moved, rho: np.linalg.norm(O_moved[rho] - O), "wrong way round"),
    (check_order_gap, lambda O, O_moved, rho: np.sum((O_moved - O[rho]) ** 2), "root forgotten"),
    (check_order_gap, lambda O, O_moved, rho: np.sum(O_moved - O[rho]), "signs cancel"),
    (check_order_gap, lambda O, O_moved, rho: np.max(abs(O[rho] - O_moved)), "largest entry"),
    (check_moved_scores, lambda S, rho: S, None),
    (check_order_gap, lambda O, O_moved, rho: 0.0, None),
    (check_order_gap, lambda O, O_moved, rho: np.linalg.norm(O_moved) - np.linalg.norm(O), None),
]

test_wrong_answers_are_named = named(WRONG)
