"""Proofs of chapter 6: masks."""

from collections.abc import Callable

import sympy as sp
from sympy import Matrix, Symbol, ones

from attn_lib.proofs.steps import (
    Proof,
    attend,
    differ,
    equal,
    let,
    limits,
    row,
    sample_value,
    softmax,
    symbols,
    two_layers,
)

__all__ = [
    "causal_derivatives",
    "masked_softmax",
]


def masked_softmax() -> Proof:
    """Prove that masking is the limit of a finite penalty, and what other ways do."""
    s, c = symbols("s", 3), Symbol("c", real=True)
    kept, weights = softmax(s[0], s[1], -sp.oo), softmax(*s)
    penalised = softmax(s[0], s[1], s[2] - c)
    zeroed = row(weights[0], weights[1], 0)
    return Proof(
        r"A masked softmax is the limit of a finite penalty on the forbidden scores.",
        (
            let(
                r"Two keys may be read and the third may not: its score is −∞, its weight 0.",
                r"\mathbf{a}",
                kept,
            ),
            differ(
                r"A finite penalty, however large, leaves the forbidden key some weight.",
                r"\operatorname{softmax}(s_1, s_2, s_3 - c)",
                penalised,
                kept,
                right_tex=r"\mathbf{a}",
            ),
            differ(
                r"A score multiplied by 0 leaves it $e^0$.",
                r"\operatorname{softmax}(s_1, s_2, 0 \cdot s_3)",
                softmax(s[0], s[1], 0),
                kept,
                right_tex=r"\mathbf{a}",
            ),
            differ(
                r"A weight set to 0 after softmax leaves a row that does not sum to 1,",
                r"(b_1, b_2, 0)",
                zeroed,
                kept,
                right_tex=r"\mathbf{a}",
            ),
            equal(
                r"until the row is divided by what is left; then, in exact arithmetic, it is the "
                r"masked row.",
                r"(b_1, b_2, 0) / (b_1 + b_2)",
                zeroed / (weights[0] + weights[1]),
                kept,
                right_tex=r"\mathbf{a}",
            ),
            equal(
                r"If every key is penalised the penalty is a shift of the row: for every $c$ it is "
                r"no mask at all.",
                r"\operatorname{softmax}(\mathbf{s} - c)",
                softmax(*(s - c * ones(1, 3))),
                weights,
                right_tex=r"\operatorname{softmax}(\mathbf{s})",
            ),
            equal(
                r"As $c$ grows the penalised row tends to the masked one.",
                r"\lim_{c \to \infty} \operatorname{softmax}(s_1, s_2, s_3 - c)",
                limits(penalised, c, sp.oo),
                kept,
                right_tex=r"\mathbf{a}",
            ),
        ),
    )


def causal_derivatives(allowed: Callable[[int, int], bool] = lambda i, j: j <= i) -> Proof:
    """Prove ∂o_i/∂x_j = 0 exactly for j > i under a causal mask, through one layer and many.

    Parameters
    ----------
    allowed : function of (i, j), default causal
        Whether query i may look at key j. Under another mask the proof must fail.

    Returns
    -------
    Proof
    """
    X, (weights, _) = symbols("x", 3).T, two_layers()
    bias = Matrix(3, 3, lambda i, j: 0 if allowed(i, j) else -sp.oo)
    causal = Matrix(3, 3, lambda i, j: 1 if j <= i else 0)
    output = attend(X, *weights, bias=bias)
    reads = (X + output).jacobian(X).applyfunc(lambda e: 0 if e == 0 or sample_value(e) == 0 else 1)
    first, second = (reads.multiply_elementwise(symbols(name, 3, 3)) for name in ("f", "g"))
    return Proof(
        r"Under a causal mask $\partial\mathbf{o}_i / \partial\mathbf{x}_j = 0$ for $j > i$, "
        r"through any depth.",
        (
            let(
                r"Three tokens of one feature. A forbidden score is −∞, so its weight is "
                r"$e^{-\infty}$ = 0.",
                "M",
                bias,
            ),
            equal(
                r"Later tokens do not occur in an output. The first is the first value, $w_3$ "
                r"being its $W_V$.",
                "o_1",
                output[0],
                X[0] * weights[2][0],
            ),
            equal(
                r"Mark with 1 the derivatives that are not identically 0, the input added: those "
                r"with $j \le i$ and no other.",
                r"[\partial(x_i + o_i) / \partial x_j \neq 0]",
                reads,
                causal,
            ),
            equal(
                r"Through two layers derivatives multiply, as matrices of this form: the sum for "
                r"$j > i$ has no term. What works on each token alone is diagonal. So by induction "
                r"for any depth.",
                r"[(GF)_{ij} \neq 0]",
                (second * first).applyfunc(lambda e: 0 if e == 0 else 1),
                causal,
            ),
        ),
    )
