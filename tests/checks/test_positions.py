"""Answers to the exercises of chapter 5: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted, named

from attn_lib.checks import check_rope, check_sinusoids


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


RIGHT = [
    (check_sinusoids, waves_by_loops),
    (check_rope, rope_by_complex_numbers),
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
