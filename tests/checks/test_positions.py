"""Answers to the exercises of chapter 5: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted, named

from attn_lib.checks import check_rope, check_sinusoids, check_turn


def waves_by_loops(n, d):
    table = np.zeros((n, d))
    for p in range(n):
        for column in range(d):
            angle = p / 10000 ** ((column - column % 2) / d)
            table[p, column] = np.cos(angle) if column % 2 else np.sin(angle)
    return table


def rope_by_complex_numbers(X, positions):
    d = X.shape[1]
    turn = np.exp(1j * np.outer(positions, 10000.0 ** (-np.arange(0, d, 2) / d)))
    Z = (X[:, 0::2] + 1j * X[:, 1::2]) * turn
    return np.stack([Z.real, Z.imag], axis=-1).reshape(X.shape)


def waves_by_complex_numbers(n, d):
    angles = np.outer(np.arange(n), 10000.0 ** -pairs(d))
    return np.where(np.arange(d) % 2, np.exp(1j * angles).real, np.exp(1j * angles).imag).tolist()


def waves_cut(n, d):
    table, angles = np.zeros((n, d)), np.arange(n)[:, None] * 10000.0 ** -pairs(d)[::2]
    table[:, ::2], table[:, 1::2] = np.sin(angles), np.cos(angles)[:, : d // 2]
    return table


def rope_by_matrices(X, positions):
    return np.stack(
        [x @ turn_by_blocks(X.shape[1], s).T for x, s in zip(X, positions, strict=True)]
    )


def rope_by_loops(X, positions):
    Y = np.zeros(X.shape)
    for i, place in enumerate(positions):
        for r in range(X.shape[1] // 2):
            angle, (x, y) = place / 10000 ** (2 * r / X.shape[1]), X[i, 2 * r : 2 * r + 2]
            Y[i, 2 * r] = x * np.cos(angle) - y * np.sin(angle)
            Y[i, 2 * r + 1] = x * np.sin(angle) + y * np.cos(angle)
    return Y


def turn_by_blocks(d, k, sign=1):
    R = np.zeros((d, d))
    for r in range(0, d, 2):
        angle = sign * k / 10000 ** (r / d)
        R[r, r] = R[r + 1, r + 1] = np.cos(angle)
        R[r, r + 1], R[r + 1, r] = -np.sin(angle), np.sin(angle)
    return R


def turn_that_is_fitted(d, k):
    """Solve p(t) R = p(t + k) for many t."""
    places = np.arange(400)
    now, then = (waves_at(t, d) for t in (places, places + k))
    return np.linalg.lstsq(now, then, rcond=None)[0]


def waves_at(places, d):
    angles = np.outer(places, 10000.0 ** -pairs(d))
    return np.where(np.arange(d) % 2, np.cos(angles), np.sin(angles))


HAND, PLACE, QUARTER, REACH = (
    f"ex-positions-{name}" for name in ("hand", "place", "quarter", "reach")
)

RIGHT = [
    (HAND, [0.5, 0.25, 0.25]),
    (HAND, (0.5, 0.25, 0.25)),
    (HAND, np.array([[1, 0.5, 0.5]]) / 2),
    (PLACE, [1, 2, 3, 2, 1, 3]),
    (PLACE, (1, 2, 3, 2, 1, 3)),
    (PLACE, np.array([1.0, 2, 3, 2, 1, 3])),
    (QUARTER, [-1, -1]),
    (QUARTER, (-1.0, -1.0)),
    (QUARTER, np.array([[-1, -1]])),
    (REACH, [1 - 0.61, 0.61**4, 1.0]),  # two decimals on the way
    (REACH, (1 - np.exp(-0.5), np.exp(-0.5) ** 4, np.exp(-1 / 256) ** 4)),
    (REACH, [[0.39, 0.14, 0.98]]),
    (check_sinusoids, waves_by_loops),
    (check_sinusoids, waves_by_complex_numbers),
    (check_sinusoids, waves_cut),
    (check_turn, turn_by_blocks),
    (check_turn, turn_that_is_fitted),
    (check_turn, lambda d, k: rope_by_complex_numbers(np.eye(d), np.full(d, -k))),
    (check_rope, rope_by_complex_numbers),
    (check_rope, rope_by_matrices),
    (check_rope, rope_by_loops),
]

test_right_answers_pass = accepted(RIGHT)


def waves(n, d, exponents, first=np.sin, second=np.cos, start=0):
    angles = (np.arange(n) + start)[:, None] / 10000.0**exponents
    return np.where(np.arange(d) % 2, second(angles), first(angles))


def pairs(d):
    return np.arange(d) // 2 * 2 / d


def turned(X, positions, *, base=10000.0, exponents=None, sign=1, places=None):
    d = X.shape[1]
    exponents = np.arange(0, d, 2) / d if exponents is None else exponents
    angle = sign * np.outer(positions if places is None else places, base**-exponents)
    Z = (X[:, 0::2] + 1j * X[:, 1::2]) * np.exp(1j * angle)
    return np.stack([Z.real, Z.imag], axis=-1).reshape(X.shape)


def half_split(X, positions):
    d = X.shape[1] // 2
    angle = np.outer(positions, 10000.0 ** (-np.arange(d) / d))
    Z = (X[:, :d] + 1j * X[:, d:]) * np.exp(1j * angle)
    return np.hstack([Z.real, Z.imag])


def in_place(X, positions):
    Y, d = X.copy(), X.shape[1]
    for r in range(d // 2):
        angle = np.asarray(positions) / 10000 ** (2 * r / d)
        Y[:, 2 * r] = Y[:, 2 * r] * np.cos(angle) - Y[:, 2 * r + 1] * np.sin(angle)
        Y[:, 2 * r + 1] = Y[:, 2 * r] * np.sin(angle) + Y[:, 2 * r + 1] * np.cos(angle)
    return Y


def without_care(n, d):
    table = np.empty((n, d))
    angles = np.arange(n)[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return table


WRONG = [
    (HAND, [0.57, 0.29, 0.14], "these are the weights of a token at the end"),
    (HAND, [1, 0.5, 0.5], "divide these by their sum"),
    (HAND, [0.25, 0.5, 0.25], "the weights are right, but in the order of the sentence"),
    (HAND, [0.29, 0.57, 0.14], "these are the weights that *bites* gives"),
    (HAND, [0, 0.5, 0.5], "*dog* reads itself too"),
    (HAND, [0.33, 0.33, 0.33], "these are the even weights"),
    (HAND, [0.5, 0.3, 0.2], None),
    (PLACE, [1, 2, 1, 2, 1, 3], "(c) is RoPE"),
    (PLACE, [1, 2, 3, 2, 1, 1], "(f) adds rows, but to queries and keys"),
    (PLACE, [1, 3, 3, 2, 1, 3], "(b): a mask is a bias"),
    (PLACE, [1, 2, 3, 3, 1, 3], "(d) is a bias"),
    (PLACE, [1, 2, 3, 2, 3, 3], "(e): appended to the tokens"),
    (PLACE, [1, 2, 2, 2, 1, 3], "(c): what a turn does to a score"),
    (PLACE, [3, 2, 3, 2, 1, 3], "(a): added to the embedding"),
    (PLACE, [1, 2, 1, 2, 1, 1], None),
    (QUARTER, [7, 7], "that is the product without turning"),
    (QUARTER, [-1, 1], "query and key have the same offset"),
    (QUARTER, [1, 1], "a quarter turn sends (x, y) to (−y, x)"),
    (QUARTER, [-7, -7], "you turned the key alone"),
    (QUARTER, [-1, 5], None),
    (REACH, [0.5, 0.06, 0.97], "the slope stands in the exponent"),
    (REACH, [0.61, 0.14, 0.98], "that is how much the next key counts"),
    (REACH, [0.39, 0.08, 0.98], "the key at distance 4 belongs to it"),
    (REACH, [0.39, 0.05, 0.004], "you counted the share of the one key"),
    (REACH, [0.39, 0.86, 0.02], "that is the share of the keys nearer than 4"),
    (REACH, [0.24, 0.14, 0.98], "a query has no keys after it here"),
    (REACH, [1, 0.14, 0.98], "1 is what the own key counts"),
    (REACH, [0.39, 0.2, 0.98], None),
    (check_turn, lambda d, k: turn_by_blocks(d, k).T, "turned the other way"),
    (check_turn, lambda d, k: turn_by_blocks(d, 1), "step ignored"),
    (check_turn, lambda d, k: np.identity(d), "not turned"),
    (check_turn, lambda d, k: turn_by_blocks(d, k) * np.resize([[1], [-1]], (d, 1)), "reflection"),
    (check_turn, lambda d, k: np.kron(np.eye(d // 2), turn_by_blocks(2, k)), "one frequency"),
    (
        check_turn,
        lambda d, k: waves_at(np.array([0]), d).T @ waves_at(np.array([k]), d) * 2 / d,
        "a matrix for one place",
    ),
    (check_turn, lambda d, k: np.diag(np.ones(d - abs(k)), k), None),  # moves coordinates
    (check_turn, lambda d, k: np.eye(d, k=k), None),
    (check_sinusoids, lambda n, d: waves(n, d, np.arange(d) / d), "a frequency for each column"),
    (check_sinusoids, lambda n, d: waves(n, d, pairs(d) / 2), "factor 2 forgotten"),
    (check_sinusoids, lambda n, d: waves(n, d, -pairs(d)), "exponent of the wrong sign"),
    (
        check_sinusoids,
        lambda n, d: waves(n, d, pairs(d), np.cos, np.sin),
        "sine and cosine exchanged",
    ),
    (
        check_sinusoids,
        lambda n, d: np.hstack([waves_by_loops(n, d)[:, 0::2], waves_by_loops(n, d)[:, 1::2]]),
        "concatenated",
    ),
    (check_sinusoids, lambda n, d: waves(n, d, pairs(d), start=1), "positions from 1"),
    (check_sinusoids, lambda n, d: waves_by_loops(n, d).T, "transposed"),
    (check_sinusoids, without_care, "odd width"),
    (check_rope, lambda X, positions: turned(X, positions, sign=-1), "turned backwards"),
    (check_rope, half_split, "other pairing"),
    (
        check_rope,
        lambda X, p: np.hstack([turned(X, p)[:, 0::2], turned(X, p)[:, 1::2]]),
        "pairs not put back",
    ),
    (
        check_rope,
        lambda X, p: np.conj(turned(X * np.resize([1, -1], X.shape[1]), p)),
        "reflection",
    ),
    (check_rope, in_place, "overwritten too early"),
    (
        check_rope,
        lambda X, p: turned(X, p, exponents=np.zeros(X.shape[1] // 2)),
        "one frequency",
    ),
    (
        check_rope,
        lambda X, p: turned(X, p, exponents=np.arange(X.shape[1] // 2) / X.shape[1]),
        "factor 2 forgotten",
    ),
    (check_rope, lambda X, p: turned(X, p, places=np.arange(len(X))), "places ignored"),
    (
        check_rope,
        lambda X, p: X + waves_by_loops(max(p) + 1, X.shape[1])[p],
        "sinusoids added",
    ),
    (check_sinusoids, lambda n, d: np.zeros((n, d)), None),
    (check_sinusoids, lambda n, d: waves(n, d, pairs(d) * np.log(500) / np.log(10000)), None),
    (check_rope, lambda X, positions: X, None),
    (check_rope, lambda X, positions: turned(X, positions, base=500.0), None),
]

test_wrong_answers_are_named = named(WRONG)
