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


POWERS = np.array([0.14, 1.0, 0.37])  # with two decimals, as the solution prints them
CYCLED = [[5, 6, 4], [8, 9, 7], [2, 3, 1]]
HAND, MATRIX, DOUBLE, CAUSAL = (
    f"ex-equivariance-{name}" for name in ("hand", "matrix", "double", "causal")
)

RIGHT = [
    (HAND, np.round(POWERS / POWERS.sum(), 2)),
    (HAND, [0.09, 0.67, 0.24]),
    (HAND, [[0.0900, 0.6652, 0.2447]]),
    (HAND, tuple(np.exp([-2.0, 0, -1]) / np.exp([-2.0, 0, -1]).sum())),
    (MATRIX, CYCLED),
    (MATRIX, np.array(CYCLED)),
    (MATRIX, tuple(map(tuple, CYCLED))),
    (DOUBLE, [5, 5, 5.33]),
    (DOUBLE, (5, 5, 16 / 3)),
    (DOUBLE, [[5.0, 5.0, 0.33 * 12 + 0.17 * 8]]),  # two decimals on the way
    (CAUSAL, [[0, 1, 1, 0, 0], [0, 1, 1, 1, 1]]),
    (CAUSAL, (np.array([0, 1, 1, 0, 0]), np.array([0, 1, 1, 1, 1]))),
    (CAUSAL, [[False, True, True, False, False], [False, True, True, True, True]]),
    (check_moved_scores, by_loops),
    (check_moved_scores, by_matrices),
    (check_moved_scores, lambda S, rho: S[np.ix_(rho, rho)]),
    (check_order_gap, gap_by_loops),
    (check_order_gap, lambda O, O_moved, rho: np.linalg.norm(O_moved - O[rho])),
    (check_order_gap, lambda O, O_moved, rho: np.linalg.norm(O_moved[np.argsort(rho)] - O)),
    (check_order_gap, lambda O, O_moved, rho: [np.sqrt(np.sum((O_moved - O[rho]) ** 2))]),
]

test_right_answers_pass = accepted(RIGHT)


WRONG = [
    (HAND, [0.24, 0.67, 0.09], "the weights are right, but in the order of the first"),
    (HAND, [0.67, 0.09, 0.24], "you used the query 1"),
    (HAND, [0.14, 1.0, 0.37], "divide these powers by their sum"),
    (HAND, [-2, 0, -1], "these are the scores"),
    (HAND, [0.67, 0, 0.33], "you shared out the scores"),
    (HAND, [0.33, 0.33, 0.33], "a weight does not depend on the query alone"),
    (HAND, [0.09, 0.24, 0.67], None),
    (MATRIX, [[4, 5, 6], [7, 8, 9], [1, 2, 3]], "you moved the rows"),
    (MATRIX, [[2, 3, 1], [5, 6, 4], [8, 9, 7]], "you moved the columns only"),
    (MATRIX, [[9, 7, 8], [3, 1, 2], [6, 4, 5]], "that is PᵀSP, the way back"),
    (MATRIX, [[6, 4, 5], [9, 7, 8], [3, 1, 2]], "that is PSP"),
    (MATRIX, [[8, 9, 7], [2, 3, 1], [5, 6, 4]], "that is PᵀSPᵀ"),
    (MATRIX, [[0, 1, 0], [0, 0, 1], [1, 0, 0]], "that is P itself"),
    (MATRIX, np.transpose(CYCLED), None),
    (DOUBLE, [5, 10, 5.33], "with every token doubled each copy has half the weight"),
    (DOUBLE, [5, 5, 8], "with the first token doubled the weights sum to more"),
    (DOUBLE, [5, 5, 5], "the two copies of the first token do not share"),
    (DOUBLE, [5, 2.5, 5.33], "with every token doubled there are two copies"),
    (DOUBLE, [5, 10, 8], "you left the sum of the weights as it was"),
    (DOUBLE, [4.67, 4.67, 5], "you took the mean of the values"),
    (DOUBLE, [5, 5, 6.5], None),
    (CAUSAL, [[0, 1, 1, 1, 1], [0, 1, 1, 1, 1]], "in the first layer *d* and *e* read the same"),
    (CAUSAL, [[0, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "*a* stands first"),
    (CAUSAL, [[0, 1, 1, 0, 0], [0, 1, 1, 0, 0]], "the second layer reads what the first"),
    (CAUSAL, np.zeros((2, 5)), "a causal mask is not equivariant"),
    (CAUSAL, [[0, 1, 0, 0, 0], [0, 1, 0, 1, 1]], "both of the exchanged tokens change"),
    (CAUSAL, [[1, 0, 0, 1, 1], [1, 0, 0, 0, 0]], "these are the outputs that stay"),
    (CAUSAL, [0, 1, 1, 1, 1], None),
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
