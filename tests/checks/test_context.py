"""Answers to the exercises of chapter 1: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted, named

from attn_lib import softmax
from attn_lib.checks import check_bandwidth, check_embedding, check_lookup


def lookup_by_loops(q, K, V, T):
    scores = [-sum((q_r - k_r) ** 2 for q_r, k_r in zip(q, k, strict=True)) / 2 / T for k in K]
    powers = [np.exp(score - max(scores)) for score in scores]
    return sum(power * v for power, v in zip(powers, V, strict=True)) / sum(powers)


def lookup_by_dot_products(q, K, V, T):
    return [softmax(((K @ q) - 0.5 * (K * K).sum(1)) / T) @ V]


def powers_of(q, K, T):
    return np.exp(-((K - q) ** 2).sum(1) / 2 / T)


def embedding_by_one_hot(ids, E):
    return np.eye(len(E))[ids] @ E


def embedding_by_comparison(ids, E):
    return (ids[:, None] == np.arange(len(E))) @ E


def bandwidth_by_deleting(x, y, sigmas):
    errors = []
    for sigma in sigmas:
        missed = []
        for i in range(len(x)):
            others, seen = np.delete(x, i), np.delete(y, i)
            powers = np.exp(-((others - x[i]) ** 2) / 2 / sigma**2)
            missed.append(y[i] - powers @ seen / powers.sum())
        errors.append(np.sum(np.square(missed)))
    return sigmas[int(np.argmin(errors))]


def bandwidth_by_renormalising(x, y, sigmas):
    def error(sigma):
        weights = softmax(-((x[:, None] - x) ** 2) / 2 / sigma**2) * (1 - np.eye(len(x)))
        weights /= weights.sum(axis=1, keepdims=True)
        return np.sqrt(np.mean((weights @ y - y) ** 2))

    return min(sigmas, key=error)


def bandwidth_by_mask(x, y, sigmas, power=2, itself=-np.inf):
    S = -((x[:, None] - x) ** 2) / 2
    S[np.diag_indices(len(x))] = itself
    errors = [np.abs(softmax(S / sigma**power) @ y - y) for sigma in sigmas]
    return sigmas[np.argmin([np.mean(e**2) for e in errors])]


# By hand: with two decimals on the way, and as a reader may write them.
POWERS = np.array([0.14, 0.61, 0.61])

RIGHT = [
    (check_lookup, lookup_by_loops),
    (check_lookup, lookup_by_dot_products),
    (check_lookup, lambda q, K, V, T: softmax(-((q - K) ** 2).sum(1)[None] / 2 / T) @ V),
    (check_embedding, embedding_by_one_hot),
    (check_embedding, embedding_by_comparison),
    (check_embedding, lambda ids, E: [[float(x) for x in E[i]] for i in ids]),
    (check_bandwidth, bandwidth_by_deleting),
    (check_bandwidth, bandwidth_by_renormalising),
    (check_bandwidth, bandwidth_by_mask),
    ("ex-context-hand", 36.99),
    ("ex-context-hand", [37.0]),
    ("ex-context-hand", POWERS @ [10, 20, 60] / POWERS.sum()),
    ("ex-context-hand", np.round(POWERS / POWERS.sum(), 2) @ [10, 20, 60]),
    ("ex-context-limits", (2, 1.5)),
    ("ex-context-limits", [2.0, 1.5]),
    ("ex-context-limits", np.array([[2, 1.5]])),
    ("ex-context-equal", (-1, -5, -2)),
    ("ex-context-equal", [-1.0, -5.0, -2.0]),
    ("ex-context-equal", -0.5 * np.array([[2, 10, 4]])),
]

test_right_answers_pass = accepted(RIGHT)

WRONG = [
    (check_embedding, lambda ids, E: np.eye(E.shape[1])[ids] @ E.T, "rows and columns"),
    (check_embedding, lambda ids, E: np.diag(ids) @ E[: len(ids)], "ids as numbers"),
    (check_embedding, lambda ids, E: np.eye(len(E))[ids - 1] @ E, "ids counted from 1"),
    (check_embedding, lambda ids, E: np.eye(len(E))[ids].sum(0) @ E, "rows added"),
    (check_embedding, lambda ids, E: E[np.unique(ids)], "each id once"),
    (check_embedding, lambda ids, E: np.eye(len(E))[ids], "table left out"),
    (check_lookup, lambda q, K, V, T: softmax((q - K).sum(1) ** 2 / -2 / T) @ V, None),
    (check_lookup, lambda q, K, V, T: softmax(K @ q / T) @ V, "dot product"),
    (check_lookup, lambda q, K, V, T: powers_of(q, K, T) @ V, "not normalised"),
    (
        check_lookup,
        lambda q, K, V, T: powers_of(q, K, T) / powers_of(q, K, T).sum() @ V,
        "naive softmax",
    ),
    (
        check_lookup,
        lambda q, K, V, T: powers_of(q, K, T) / (powers_of(q, K, T).sum() + 1e-12) @ V,
        "a small number below",
    ),
    (
        check_lookup,
        lambda q, K, V, T: softmax(-T * ((K - q) ** 2).sum(1) / 2) @ V,
        "temperature multiplied",
    ),
    (check_lookup, lambda q, K, V, T: V[np.argmin(np.abs(K - q).sum(1))], "hard lookup"),
    (check_bandwidth, lambda x, y, sigmas: bandwidth_by_mask(x, y, sigmas, itself=0), "looks at"),
    (check_bandwidth, lambda x, y, sigmas: sigmas[0], "looks at itself"),
    (check_bandwidth, lambda x, y, s: bandwidth_by_mask(x, y, s, power=1), "bandwidth not"),
    (
        check_bandwidth,
        lambda x, y, s: [*s].index(bandwidth_by_mask(x, y, s)),
        "place in the list",
    ),
    (check_bandwidth, lambda x, y, sigmas: 0.25, None),
    (check_bandwidth, lambda x, y, sigmas: sigmas[-1], "largest error"),
    ("ex-context-hand", 30.0, "this is the plain average"),
    ("ex-context-hand", 39.3, "you left out the ½"),
    ("ex-context-hand", 19.3, "the farthest key"),
    ("ex-context-hand", 33.0, "you took half the distance"),
    ("ex-context-hand", 35.3, "you took the distance itself"),
    ("ex-context-hand", 40, "the two nearest keys"),
    ("ex-context-hand", 49.9, "these are the powers"),
    ("ex-context-hand", 36.5, None),
    ("ex-context-limits", (1, 1.5), "as T → 0"),
    ("ex-context-limits", (3, 1.5), "as T → 0"),
    ("ex-context-limits", (4, 1.5), "as T → 0: each of the two"),
    ("ex-context-limits", [2, 0], "as T → ∞"),
    ("ex-context-limits", [1.5, 2], "the two ends"),
    ("ex-context-limits", [3, 2.25], "these are the scores"),
    ("ex-context-equal", [-2, -10, -4], "you left out the ½"),
    ("ex-context-equal", [1, 5, 2], "the sign"),
    ("ex-context-equal", [-0.71, -1.58, -1], "a length enters squared"),
    ("ex-context-equal", [0, -2, -1], "these are the Gaussian"),
    ("ex-context-equal", [2, 4, 2], "these are the dot products"),
    ("ex-context-equal", [-2, -6, -3], "you subtracted ½‖q‖²"),
]

test_wrong_answers_are_named = named(WRONG)
