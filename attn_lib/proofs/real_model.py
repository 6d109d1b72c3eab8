"""Proofs of chapter 14: several heads, averaged."""

from sympy import zeros

from attn_lib.proofs.steps import Proof, differ, equal, let, symbols

__all__ = [
    "heads_mean",
]


def heads_mean() -> Proof:
    """Prove what the mean weights of several heads leave out."""
    A, U = [symbols(name, 2, 2) for name in "abc"], [symbols(name, 2, 1) for name in "uvw"]
    mean_A, mean_U = sum(A[1:], A[0]) / 3, sum(U[1:], U[0]) / 3
    whole = sum((B * V for B, V in zip(A[1:], U[1:], strict=True)), A[0] * U[0])
    rest = zeros(2, 1)
    for B, V in zip(A, U, strict=True):
        rest += (B - mean_A) * (V - mean_U)
    exchanged = A[1] * U[0] + A[0] * U[1] + A[2] * U[2]
    return Proof(
        r"Mean weights times mean values, and a covariance over heads, make what a layer writes.",
        (
            let(
                r"Three heads, two tokens, written values of one coordinate. The mean weights:",
                r"\bar{A}",
                mean_A,
            ),
            differ(
                r"Two heads exchange their weights. The mean is the same, and the sum is not.",
                r"A_2 U_1 + A_1 U_2 + A_3 U_3",
                exchanged,
                whole,
                right_tex=r"A_1 U_1 + A_2 U_2 + A_3 U_3",
            ),
            differ(
                r"So the mean weights, with the mean values, cannot give the sum.",
                r"3\, \bar{A}\, \bar{U}",
                3 * mean_A * mean_U,
                whole,
                right_tex=r"A_1 U_1 + A_2 U_2 + A_3 U_3",
            ),
            equal(
                r"What is missing is how weights and values vary together over the heads.",
                r"A_1 U_1 + A_2 U_2 + A_3 U_3",
                whole,
                3 * mean_A * mean_U + rest,
                right_tex=r"3\, \bar{A}\, \bar{U} + \sum_r (A_r - \bar{A})(U_r - \bar{U})",
            ),
        ),
    )
