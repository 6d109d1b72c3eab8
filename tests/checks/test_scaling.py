"""Answers to the exercises of chapter 3: right ones pass, wrong ones are told why."""

import math

import numpy as np
from answers import accepted, named, table_of

from attn_lib import softmax
from attn_lib.checks import check_query_gradient, check_score_moments


def moments_from_squares(d_k, mu_q, sigma_q, mu_k, sigma_k):
    square = (sigma_q**2 + mu_q**2) * (sigma_k**2 + mu_k**2)
    return np.array(d_k * mu_q * mu_k), np.array(d_k * (square - (mu_q * mu_k) ** 2))


def gradient_by_matrices(q, K, V, g):
    a = softmax(K @ q / np.sqrt(len(q)))
    return K.T @ (np.diag(a) - np.outer(a, a)) @ V @ g / np.sqrt(len(q))


def gradient_as_a_covariance(q, K, V, g):
    a, x = softmax(K @ q / len(q) ** 0.5), V @ g
    return ((a * x) @ K - (a @ x) * (a @ K)) / math.sqrt(q.shape[0])


def gradient_by_differences(q, K, V, g):
    def loss(q):
        return g @ (softmax(K @ q / np.sqrt(len(q))) @ V)

    h = 1e-5 * np.eye(len(q))
    return np.array([(loss(q + d) - loss(q - d)) / 2e-5 for d in h])


RIGHT = [
    (check_score_moments, moments_from_squares),
    (check_query_gradient, gradient_by_matrices),
    (check_query_gradient, gradient_as_a_covariance),
    (check_query_gradient, gradient_by_differences),
]

test_right_answers_pass = accepted(RIGHT)


def pull(q, K, V, g, *, scale=True, centre=True):
    a = softmax(K @ q / (np.sqrt(len(q)) if scale else 1))
    x = V @ g
    return a * (x - (a @ x if centre else 0))


WRONG = [
    (check_score_moments, lambda d, m, s, n, t: (d * m * n, d * s * s * t * t), "means ignored"),
    (check_score_moments, lambda d, m, s, n, t: (0.0, d), None),
    (
        check_score_moments,
        lambda d, m, s, n, t: (d * m * n, d * (s * s + m * m) * (t * t + n * n)),
        "mean square for variance",
    ),
    (
        check_score_moments,
        lambda d, *rest: (lambda e, v: (e, v**0.5))(*moments_from_squares(d, *rest)),
        "standard deviation for variance",
    ),
    (
        check_score_moments,
        lambda d, *rest: (lambda e, v: (e, d * v))(*moments_from_squares(d, *rest)),
        "d_k squared",
    ),
    (
        check_score_moments,
        lambda d, *rest: (lambda e, v: (e / d**0.5, v / d))(*moments_from_squares(d, *rest)),
        "already scaled",
    ),
    (
        check_score_moments,
        lambda d, m, s, n, t: (d * m * n, d * (s * t + m * m * t + n * n * s)),
        "sigma not squared",
    ),
    (
        check_score_moments,
        lambda d, m, s, n, t: (d * m * n, d * (s * s * t * t + m * m * s * s + n * n * t * t)),
        "crossed",
    ),
    (check_query_gradient, lambda *x: pull(*x) @ x[1], "factor forgotten"),
    (check_query_gradient, lambda *x: pull(*x) @ x[1] / len(x[0]), "factor twice"),
    (
        check_query_gradient,
        lambda *x: pull(*x, centre=False) @ x[1] / np.sqrt(len(x[0])),
        "average not subtracted",
    ),
    (check_query_gradient, lambda *x: pull(*x, scale=False) @ x[1], "raw scores"),
    (
        check_query_gradient,
        lambda *x: pull(*x, scale=False) @ x[1] / np.sqrt(len(x[0])),
        "raw scores",
    ),
    (check_query_gradient, pull, "stopped at the scores"),
    (check_query_gradient, lambda q, *x: -gradient_by_matrices(q, *x), None),
    (check_query_gradient, lambda q, K, V, g: np.zeros(len(q)), None),
]

test_wrong_answers_are_named = named(WRONG)


def test_no_number_of_the_first_case_cancels_by_chance():
    first = table_of(check_score_moments)["cases"][0].inputs
    assert len(set(map(abs, first.values()))) == 5
