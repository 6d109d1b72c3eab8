"""Proofs of chapter 3: what they refute, and other ways to the same numbers."""

from itertools import product

import numpy as np
import pytest
import sympy as sp
from proving import built, found_out

from attn_lib import softmax
from attn_lib.proofs import (
    jacobian_limits,
    jacobian_norm,
    median_and_mean,
    random_sign,
    raw_is_stretched,
    score_variance,
    score_variance_with_means,
    softmax_jacobian,
    tied_weights,
    tied_weights_two_tokens,
    variance_given_the_query,
    variance_over_the_weights,
)
from attn_lib.proofs.scaling import d_k, sum_variance
from attn_lib.proofs.steps import expectation, symbols

sigma_q, sigma_k = sp.symbols("sigma_q sigma_k", positive=True)
mu_q, mu_k, c = sp.symbols("mu_q mu_k c", real=True)
fourth = sp.Symbol("m_4")
one = sp.Symbol("a", positive=True)
a = symbols("a", 3, positive=True)

# What is often believed, or a slip of the pen: the step and the false right side.
FALSE = {
    "the sum has variance √d_k": (score_variance, -2, sp.sqrt(d_k)),
    "dividing by √d_k divides the variance by √d_k": (score_variance, -1, sp.sqrt(d_k)),
    "dividing by d_k was meant": (score_variance, -1, 1 / d_k),
    "means do not matter": (score_variance_with_means, -1, d_k * sigma_q**2 * sigma_k**2),
    "squares of all": (
        score_variance_with_means,
        -1,
        d_k * (sigma_q**2 + mu_q**2) * (sigma_k**2 + mu_k**2),
    ),
    "tied weights are as independent ones": (tied_weights, -1, d_k),
    "the fourth moment, mean not taken off": (tied_weights, -1, d_k * fourth),
    "linear in the cosine": (tied_weights_two_tokens, -1, d_k * (1 + c)),
    "uncorrelated is enough": (random_sign, -1, d_k),
    "given the query it is still 1": (variance_given_the_query, -1, 1),
    "the tokens must be orthogonal": (variance_over_the_weights, -2, 0),
    "the outer product alone": (softmax_jacobian, -1, -a.T * a),
    "weights as if independent": (softmax_jacobian, -1, sp.diag(*a)),
    "two tied winners saturate": (jacobian_limits, -1, sp.zeros(3, 3)),
    "the lead counts twice": (jacobian_limits, 1, 0),
    "the eigenvalue is a(1 − a)": (jacobian_norm, 0, sp.Matrix([[0, one * (1 - one)]])),
    "the mean gradient vanishes too": (median_and_mean, -1, 0),
    "every gradient stays": (median_and_mean, 4, 1),
    "the gradient is divided by √d_k": (raw_is_stretched, 2, lambda step: step.right / 2),
}

test_a_false_statement_is_found_out = found_out(FALSE)


@pytest.mark.parametrize("n", [2, 4])
def test_the_jacobian_for_other_numbers_of_keys(n):
    assert softmax_jacobian(n).holds


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_the_variance_of_a_score_multiplied_out(width):
    q, k = symbols("q", width), symbols("k", width)
    moments = dict.fromkeys([*q, *k], (0, 1))
    assert expectation(q.dot(k), moments) == 0
    assert expectation(q.dot(k) ** 2, moments) == width
    assert built(score_variance).steps[-2].right.subs(d_k, width) == width


class TestByEnumerationOfAllCases:
    @staticmethod
    def moments(q_values, k_values, width):
        """Mean and variance of a score over all equally likely coordinates."""
        cases = product(product(q_values, repeat=width), product(k_values, repeat=width))
        scores = [np.dot(q, k) for q, k in cases]
        return np.mean(scores), np.var(scores)

    @pytest.mark.parametrize("width", [1, 2, 3, 4])
    def test_signs_have_variance_d_k(self, width):
        mean, variance = self.moments([-1, 1], [-1, 1], width)
        claimed = built(score_variance).steps[-2].right
        assert mean == 0 and variance == float(claimed.subs(d_k, width))

    @pytest.mark.parametrize("width", [1, 2, 3])
    def test_two_values_with_any_mean(self, width):
        mean, variance = self.moments([-1, 3], [0, 1], width)
        given = {mu_q: 1, sigma_q: 2, mu_k: sp.Rational(1, 2), sigma_k: sp.Rational(1, 2)}
        claimed = built(score_variance_with_means).steps[-1].right
        assert variance == float(claimed.subs(given).subs(d_k, width)) and mean == width / 2

    def test_tied_weights(self):
        # −√2, 0, 0, √2: mean 0, variance 1, fourth moment 2
        values = np.array([-np.sqrt(2), 0, 0, np.sqrt(2)])
        scores = [np.dot(q, q) for q in product(values, repeat=3)]
        claimed = built(tied_weights).steps[-1].right.subs({fourth: 2, d_k: 3})
        assert np.mean(scores) == pytest.approx(3)
        assert np.var(scores) == pytest.approx(float(claimed))


def test_the_jacobian_by_differences():
    s, h = np.array([0.3, -1.0, 0.8]), 1e-6
    step = built(softmax_jacobian).steps[-1]
    J = np.array(step.right.subs(dict(zip(a, softmax(s), strict=True))), float)
    for j in range(3):
        d = h * np.eye(3)[j]
        np.testing.assert_allclose((softmax(s + d) - softmax(s - d)) / (2 * h), J[:, j], atol=1e-9)
    assert np.linalg.norm(J, 2) <= 0.5


def test_a_sum_has_all_variances_and_twice_each_covariance():
    v, w = sp.symbols("v w")
    assert sp.expand(sum_variance(v, w) - d_k * v - d_k * (d_k - 1) * w) == 0
