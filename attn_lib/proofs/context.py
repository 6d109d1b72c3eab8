"""Proofs of chapter 1: attention as a lookup."""

import sympy as sp
from sympy import Rational, Symbol, ones, sqrt

from attn_lib.proofs.steps import (
    Proof,
    at_least,
    differ,
    equal,
    let,
    limits,
    row,
    softmax,
    softmax_rows,
    symbols,
)

__all__ = [
    "gaussian_kernel",
    "output_in_hull",
    "temperature_limits",
]


def output_in_hull() -> Proof:
    """Prove that weights are positive shares, so an output lies between the values."""
    s, a = symbols("s", 3), symbols("a", 3, positive=True)
    low, rise = Symbol("c", real=True), symbols("g", 3, nonnegative=True)
    values = rise + low * ones(1, 3)
    weights = softmax(*s)
    return Proof(
        r"Softmax weights are positive and sum to 1, so an output never leaves the convex hull of "
        r"the values.",
        (
            let(r"A weight is a power over the sum of powers.", "a_1", weights[0]),
            at_least(r"A power is positive, whatever the score.", "a_1", weights[0], 0),
            equal(r"Numerators sum to the denominator.", r"\sum_j a_j", sum(weights), 1),
            let(
                r"Measure the values in any direction: the smallest is $c$, the others are $g_j$ "
                r"above it, with $g_j \ge 0$.",
                r"\mathbf{v}",
                values,
            ),
            equal(
                r"Since the weights sum to 1, the output exceeds $c$ by the average excess,",
                r"\sum_j a_j v_j - c",
                a.dot(values) - low,
                a.dot(rise),
                where={a[2]: 1 - a[0] - a[1]},
            ),
            at_least(r"and that is not negative.", r"\sum_j a_j g_j", a.dot(rise), 0),
        ),
    )


def temperature_limits() -> Proof:
    """Prove that T → 0 shares among the largest scores, and T → ∞ among all."""
    T, g = sp.symbols("T g", positive=True)
    weights = softmax(0, 0, -g / T)
    half, third = Rational(1, 2), Rational(1, 3)
    return Proof(
        r"A small temperature shares among the largest scores, a large one among all.",
        (
            let(
                r"Two keys tied in front and one behind by a gap $g > 0$, the row shifted to 0.",
                r"\operatorname{softmax}(\mathbf{s} / T)",
                weights,
            ),
            equal(
                r"As $T$ falls to 0 the gap over $T$ grows without bound: the tied keys share.",
                r"\lim_{T \to 0} \operatorname{softmax}(\mathbf{s} / T)",
                limits(weights, T, 0, "+"),
                row(half, half, 0),
            ),
            equal(
                r"As $T$ grows the gap over $T$ vanishes: all keys share.",
                r"\lim_{T \to \infty} \operatorname{softmax}(\mathbf{s} / T)",
                limits(weights, T, sp.oo),
                row(third, third, third),
            ),
        ),
    )


def gaussian_kernel() -> Proof:
    """Prove that with keys of equal length attention is a Gaussian kernel smoother."""
    q, K, c = symbols("q", 2), symbols("k", 3, 2), Symbol("c", positive=True)
    nearness = row(*(-(q - K[j, :]).dot(q - K[j, :]) / 2 for j in range(3)))
    corrected = row(*(q.dot(K[j, :]) - K[j, :].dot(K[j, :]) / 2 for j in range(3)))
    level = {K[j, 1]: sqrt(c**2 - K[j, 0] ** 2) for j in range(3)}
    kernel = r"\operatorname{softmax}(-\tfrac12\lVert\mathbf{q} - \mathbf{k}_j\rVert^2)"
    return Proof(
        r"With keys of equal length, softmax of dot products is a Gaussian kernel smoother.",
        (
            equal(
                r"Half the squared distance, multiplied out.",
                r"-\tfrac12\lVert\mathbf{q} - \mathbf{k}_j\rVert^2",
                nearness[0],
                corrected[0] - q.dot(q) / 2,
                right_tex=r"\mathbf{q}\cdot\mathbf{k}_j - \tfrac12\lVert\mathbf{q}\rVert^2"
                r" - \tfrac12\lVert\mathbf{k}_j\rVert^2",
            ),
            equal(
                r"The query's length is a shift of its row and cancels; the keys' lengths stay.",
                kernel,
                softmax_rows(nearness),
                softmax_rows(corrected),
                right_tex=r"\operatorname{softmax}(\mathbf{q}\cdot\mathbf{k}_j"
                r" - \tfrac12\lVert\mathbf{k}_j\rVert^2)",
            ),
            differ(
                r"So with keys of different lengths nearness and dot product disagree,",
                kernel,
                softmax_rows(nearness),
                softmax_rows(q * K.T),
                right_tex=r"\operatorname{softmax}(\mathbf{q}\cdot\mathbf{k}_j)",
            ),
            equal(
                r"and with keys of equal length $c$ their lengths are a shift too: the weights are "
                r"the same.",
                kernel,
                softmax_rows(nearness.subs(level).applyfunc(sp.expand)),
                softmax_rows(q * K.T),
                right_tex=r"\operatorname{softmax}(\mathbf{q}\cdot\mathbf{k}_j)",
                where=level,
            ),
        ),
    )
