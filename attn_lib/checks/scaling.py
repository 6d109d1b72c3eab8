"""Checks of the exercises of chapter 3, and the known mistakes in them."""

import math
from collections.abc import Callable

import numpy as np

from attn_lib.backward import query_jacobian
from attn_lib.checks.engine import Case, Mistake, Report, check_function, random_inputs
from attn_lib.dot_product import attention_scores, attention_weights, softmax

__all__ = ["check_query_gradient", "check_score_moments"]


def _term_variance(mu_q, sigma_q, mu_k, sigma_k):
    return sigma_q**2 * sigma_k**2 + mu_q**2 * sigma_k**2 + mu_k**2 * sigma_q**2


MOMENT_MISTAKES = (
    Mistake(
        "means ignored",
        "your variance is d_k σ_q² σ_k². That needs means of 0: E[q²] is σ_q² + μ_q², and a mean "
        "that is not 0 makes products of the other side's spread larger.",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            d_k * mu_q * mu_k,
            d_k * (sigma_q * sigma_k) ** 2,
        ),
    ),
    Mistake(
        "mean square for variance",
        "you return the mean of the square. The variance is that less the squared mean, "
        "E[Z²] − E[Z]², for each of the d_k terms.",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            d_k * mu_q * mu_k,
            d_k * (sigma_q**2 + mu_q**2) * (sigma_k**2 + mu_k**2),
        ),
    ),
    Mistake(
        "standard deviation for variance",
        "your second number is the standard deviation, the root of the variance.",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            d_k * mu_q * mu_k,
            math.sqrt(d_k * _term_variance(mu_q, sigma_q, mu_k, sigma_k)),
        ),
    ),
    Mistake(
        "d_k squared",
        "you multiply the variance of one term by d_k². That is the rule for a constant factor; "
        "here d_k different, uncorrelated terms are added, and their variances add.",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            d_k * mu_q * mu_k,
            d_k**2 * _term_variance(mu_q, sigma_q, mu_k, sigma_k),
        ),
    ),
    Mistake(
        "sigma not squared",
        "sigma is a standard deviation, so the variances are σ_q² and σ_k².",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            d_k * mu_q * mu_k,
            d_k * (sigma_q * sigma_k + mu_q**2 * sigma_k + mu_k**2 * sigma_q),
        ),
    ),
    Mistake(
        "already scaled",
        "these are mean and variance of the score divided by √d_k. Asked are those of the raw one.",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            math.sqrt(d_k) * mu_q * mu_k,
            _term_variance(mu_q, sigma_q, mu_k, sigma_k),
        ),
    ),
    Mistake(
        "crossed",
        "each squared mean belongs to the *other* side's variance: μ_q² σ_k² and μ_k² σ_q².",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            d_k * mu_q * mu_k,
            d_k * _term_variance(mu_k, sigma_q, mu_q, sigma_k),
        ),
    ),
)


def check_score_moments(function: Callable) -> Report:
    """Check ``f(d_k, mu_q, sigma_q, mu_k, sigma_k)``: mean and variance of the raw score q·k."""

    def right(d_k, mu_q, sigma_q, mu_k, sigma_k):
        means = mu_q**2 * sigma_k**2 + mu_k**2 * sigma_q**2
        return d_k * mu_q * mu_k, d_k * (sigma_q**2 * sigma_k**2 + means)

    names = ("d_k", "mu_q", "sigma_q", "mu_k", "sigma_k")
    rows = (7, 0.5, 2.0, -3.0, 0.7), (16, 0.5, 1.0, 0.5, 1.0), (64, 0.0, 1.0, 0.0, 1.0)
    return check_function(
        function,
        right=right,
        cases=[Case(dict(zip(names, row, strict=True))) for row in rows],
        mistakes=MOMENT_MISTAKES,
        returns=("mean", "variance"),
    )


def _one_query(q, K):
    return softmax(K @ q / math.sqrt(len(q)))


def _pull(a, x):
    """Go back through one softmax: a ⊙ (x − Σ a x)."""
    return a * (x - a @ x)


def _from_pull(pull: Callable, power: float = 0.5) -> Callable:
    """Give the gradient by q when going back through the softmax is `pull`."""
    return lambda q, K, V, g: pull(_one_query(q, K), V @ g) @ K / len(q) ** power


QUERY_GRADIENT_MISTAKES = (
    Mistake(
        "factor forgotten",
        "the factor 1/√d_k stands in the scores, so by the chain rule it stands in the gradient "
        "too. Yours is √d_k times too long.",
        _from_pull(_pull, 0),
    ),
    Mistake(
        "factor twice",
        "you divide by √d_k twice. The score is divided once, so its derivative by q is k/√d_k.",
        _from_pull(_pull, 1),
    ),
    Mistake(
        "average not subtracted",
        "you let each weight grow with its own score, and forget that they share: J is "
        "diag(a) − aaᵀ. What one key gains the others lose, so subtract the average Σ a_j x_j.",
        _from_pull(lambda a, x: a * x),
    ),
    Mistake(
        "diagonal only",
        "you use a(1 − a), the diagonal of J. Off the diagonal stands −a_i a_j: a score that "
        "rises takes weight from all other keys.",
        _from_pull(lambda a, x: a * (1 - a) * x),
    ),
    *(
        Mistake(
            "raw scores",
            "your weights come from the raw scores K q: divide by √d_k before the softmax.",
            lambda q, K, V, g, power=power: _pull(softmax(K @ q), V @ g) @ K / len(q) ** power,
        )
        for power in (0, 0.5)
    ),
    Mistake(
        "stopped at the scores",
        "you stop at the scores: yours has one number for each key. A score is q·k/√d_k, so go "
        "on to the query: multiply by the keys, and by 1/√d_k.",
        lambda q, K, V, g: _pull(_one_query(q, K), V @ g),
    ),
    Mistake(
        "gradient of the keys",
        "this is the gradient by the keys, one row for each. By the query it is the sum over the "
        "keys of a score's gradient times k/√d_k.",
        lambda q, K, V, g: np.outer(_pull(_one_query(q, K), V @ g), q) / math.sqrt(len(q)),
    ),
)


def check_query_gradient(function: Callable) -> Report:
    """Check ``f(q, K, V, g)``: the gradient by q (d_k,) of g·o, for one query and scaled scores."""

    def right(q, K, V, g):
        a = attention_weights(attention_scores(q[None], K))
        return g @ query_jacobian(a, K, V)[0]

    return check_function(
        function,
        right=right,
        cases=[
            Case(random_inputs(0, q=(5,), K=(6, 5), V=(6, 3), g=(3,))),
            Case(random_inputs(1, q=(2,), K=(4, 2), V=(4, 5), g=(5,))),
        ],
        mistakes=QUERY_GRADIENT_MISTAKES,
        returns=("gradient",),
    )
