"""Checks of the exercises of chapter 3, and the known mistakes in them."""

import math
from collections.abc import Callable

import numpy as np

from attn_lib.backward import query_jacobian
from attn_lib.checks.engine import Case, Mistake, Report, by_hand, check_function, random_inputs
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
        needs_all=True,
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
        "diag(a) − aᵀa. What one key gains the others lose, so subtract the average Σ a_j x_j.",
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


def _coins():
    """List what is wrong with a variance of three coins, and with the scaled one."""
    return {
        "a factor leaves a variance *squared*: dividing by √3 divides it by 3.": [3, np.sqrt(3)],
        "the second number is divided by 3 twice: √3 squared is 3, no more.": [3, 1 / 3],
        "this is the standard deviation; the variance is its square.": [np.sqrt(3), 1],
        "you average |s|. A variance is the mean of the *square*.": [1.5, 0.5],
        "the four values are not equally likely: −3 and 3 each come once in eight cases, "
        "−1 and 1 three times.": [5, 5 / 3],
        "dividing the score does change its variance.": [3, 3],
        "that adds standard deviations; three uncorrelated terms add their variances.": [9, 3],
    }


SIZES = [256, 4, 24, 16]


def _one(place: int, value: float) -> list[float]:
    """Give the right sizes but for one."""
    return [*SIZES[:place], value, *SIZES[place + 1 :]]


def _sizes():
    return {
        "(a): both sides have variance σ², so a term has σ⁴.": _one(0, 64),
        "(a): the coordinates do not have variance 1: theirs is 2² = 4.": _one(0, 16),
        "(a): 2 is the standard deviation. The variance is 4, on both sides.": _one(0, 32),
        "(b): uniform on (−1, 1) has variance ⅓, for queries *and* keys.": _one(1, 12),
        "(b): uniform on (−1, 1) has variance ⅓, not 1.": _one(1, 36),
        "(b): the interval is 2 long, and 2²/12 = ⅓; ¹⁄₁₂ belongs to (0, 1).": _one(1, 0.25),
        "(c): means that are not 0 add to the variance of a term.": _one(2, 16),
        "(c): the squared mean of a term, (½·½)², has to come off its mean square.": _one(2, 25),
        "(c): the queries' mean counts, and the keys' mean as well.": _one(2, 20),
        "(d): a token's query is its own key here: the terms are squares.": _one(3, 8),
        "(d): E[q⁴] is 3, and the squared mean of a term, 1, comes off.": _one(3, 24),
        "these are the variances of the *scaled* scores.": [16, 1 / 9, 1.5, 2],
        "these are standard deviations; the variance is the square.": [16, 2, np.sqrt(24), 4],
    }


def _gradient_lengths(z: float = 0.67) -> np.ndarray:
    """Give κ a (1 − a) at a tie for κ = 2 and 8, then at the median."""
    a = 1 / (1 + np.exp(-np.array([0, 0, 2 * z, 8 * z])))
    return np.array([2, 8, 2, 8]) * a * (1 - a)


def _gradient_slips():
    right, kappa = _gradient_lengths(), np.array([2, 8, 2, 8])
    a = 1 / (1 + np.exp(-np.array([0, 0, 1.34, 5.36])))
    unscaled = 1 / (1 + np.exp(-0.67))
    return {
        "κ is missing in front: the gradient of the lead by q has the length κ.": right / kappa,
        "the lead is κz: the weight depends on how far the keys are apart.": np.where(
            [True, True, False, False], right, kappa * unscaled * (1 - unscaled)
        ),
        "that is κa. The weight answers by a(1 − a), not by itself.": kappa * a,
        "that is κ(1 − a). What is missing is the factor a.": kappa * (1 - a),
        "that is κa². The other factor is 1 − a, what the rival has.": kappa * a**2,
        "these are the ties twice: at the median the lead is 0.67 κ, not 0.": right[[0, 1, 0, 1]],
        "the medians and the ties are exchanged.": right[[2, 3, 0, 1]],
        "give the two ties first, then the two medians.": right[[0, 2, 1, 3]],
    }


EXERCISES = {
    "ex-scaling-coins": by_hand([3, 1], _coins),
    "ex-scaling-sizes": by_hand(SIZES, _sizes, tol=0.05),
    "ex-scaling-median": by_hand(_gradient_lengths, _gradient_slips),
    "ex-scaling-moments": check_score_moments,
    "ex-scaling-gradient": check_query_gradient,
}
