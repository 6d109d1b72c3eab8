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


def moments_by_terms(d_k, mu_q, sigma_q, mu_k, sigma_k):
    spread = sigma_q**2 * sigma_k**2 + mu_q**2 * sigma_k**2 + mu_k**2 * sigma_q**2
    return [sum(mu_q * mu_k for _ in range(d_k)), sum(spread for _ in range(d_k))]


def moments_by_quadrature(d_k, mu_q, sigma_q, mu_k, sigma_k):
    at = np.array([-np.sqrt(3), 0, np.sqrt(3)])  # three points are exact to the fifth power
    weight = np.outer([1, 4, 1], [1, 4, 1]) / 36
    term = np.outer(mu_q + sigma_q * at, mu_k + sigma_k * at)
    mean = (weight * term).sum()
    return np.array([d_k * mean, d_k * ((weight * term**2).sum() - mean**2)])


RIGHT = [
    ("ex-scaling-coins", [3, 1]),
    ("ex-scaling-coins", (3.0, 1.0)),
    ("ex-scaling-coins", np.array([[24 / 8, 1.73 * 1.73 / 3]])),
    ("ex-scaling-sizes", [256, 4, 24, 16]),
    ("ex-scaling-sizes", np.array([[256.0, 4.0, 24.0, 16.0]])),
    ("ex-scaling-sizes", (16 * 16, 36 * 0.333 * 0.333 + 0.01, 24, 16)),
    ("ex-scaling-median", [0.5, 2, 0.33, 0.04]),
    ("ex-scaling-median", (0.5, 2.0, 2 * 0.79 * 0.21, 8 * 0.995 * 0.005)),
    ("ex-scaling-median", np.array([[0.5, 2, 2 * 0.793 * 0.207, 0.0374]])),
    (check_score_moments, moments_by_terms),
    (check_score_moments, lambda *x: tuple(moments_by_quadrature(*x))),
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


def one_wrong(place, value):
    return [*[256, 4, 24, 16][:place], value, *[256, 4, 24, 16][place + 1 :]]


WRONG = [
    ("ex-scaling-coins", None, None),
    ("ex-scaling-coins", [3, 3 / np.sqrt(3)], "a factor leaves"),
    ("ex-scaling-coins", (3, 0.33), "the second number"),
    ("ex-scaling-coins", [1.73, 1], "this is the standard deviation"),
    ("ex-scaling-coins", [1.5, 0.5], "you average |s|"),
    ("ex-scaling-coins", [5, 1.67], "the four values are not equally likely"),
    ("ex-scaling-coins", [9, 3], "that adds standard deviations"),
    ("ex-scaling-coins", [3, 3], "dividing the score does"),
    ("ex-scaling-coins", [0, 1], None),
    ("ex-scaling-sizes", one_wrong(0, 64), "(a): both sides"),
    ("ex-scaling-sizes", one_wrong(0, 16), "(a): the coordinates do not"),
    ("ex-scaling-sizes", one_wrong(0, 32), "(a): 2 is the standard"),
    ("ex-scaling-sizes", one_wrong(1, 12), "(b): uniform on (−1, 1) has variance ⅓, for"),
    ("ex-scaling-sizes", one_wrong(1, 36), "(b): uniform on (−1, 1) has variance ⅓, not"),
    ("ex-scaling-sizes", one_wrong(1, 0.25), "(b): the interval"),
    ("ex-scaling-sizes", one_wrong(2, 16), "(c): means that are not 0"),
    ("ex-scaling-sizes", one_wrong(2, 25), "(c): the squared mean"),
    ("ex-scaling-sizes", one_wrong(2, 20), "(c): the queries' mean"),
    ("ex-scaling-sizes", one_wrong(3, 8), "(d): a token's query"),
    ("ex-scaling-sizes", one_wrong(3, 24), "(d): E[q⁴] is 3"),
    ("ex-scaling-sizes", [16, 0.11, 1.5, 2], "these are the variances of the *scaled*"),
    ("ex-scaling-sizes", [16, 2, 4.9, 4], "these are standard deviations"),
    ("ex-scaling-sizes", [64, 12, 16, 8], None),
    ("ex-scaling-median", [0.25, 0.25, 0.16, 0.00], "κ is missing"),
    ("ex-scaling-median", [0.5, 2, 0.45, 1.79], "the lead is κz"),
    ("ex-scaling-median", [1, 4, 1.59, 7.96], "that is κa."),
    ("ex-scaling-median", [1, 4, 0.41, 0.04], "that is κ(1 − a)"),
    ("ex-scaling-median", [0.5, 2, 1.26, 7.93], "that is κa²"),
    ("ex-scaling-median", [0.33, 0.04, 0.5, 2], "the medians and the ties"),
    ("ex-scaling-median", [0.5, 0.33, 2, 0.04], "give the two ties first"),
    ("ex-scaling-median", [0.5, 2, 0.5, 2], "these are the ties twice"),
    (check_score_moments, lambda *x: moments_from_squares(*x)[1], None),
    (check_score_moments, lambda *x: moments_from_squares(*x)[0], None),
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


def test_the_variance_alone_is_told_what_is_missing():
    report = check_score_moments(lambda *x: moments_from_squares(*x)[1])
    assert "all of (mean, variance) are asked for" in report.text


def test_no_number_of_the_first_case_cancels_by_chance():
    first = table_of(check_score_moments)["cases"][0].inputs
    assert len(set(map(abs, first.values()))) == 5
