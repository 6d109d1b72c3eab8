"""Proofs of chapter 4: the order of tokens."""

from itertools import permutations

import sympy as sp
from sympy import Matrix, eye, ones, zeros

from attn_lib.proofs.steps import (
    Proof,
    attend,
    differ,
    equal,
    let,
    permutation,
    row,
    softmax,
    softmax_rows,
    symbols,
    two_layers,
)

__all__ = [
    "causal_order",
    "duplication",
    "permuted_attention",
    "permuted_softmax",
]


def permuted_softmax(n: int = 3) -> Proof:
    """Prove softmax(P S Pᵀ) = P softmax(S) Pᵀ for every permutation, and for a mask moved too.

    Parameters
    ----------
    n : int, default 3
        Number of tokens: all n! permutations are tried, with symbols for all scores.

    Returns
    -------
    Proof
    """
    S, M = symbols("s", n, n), symbols("m", n, n)
    every = [permutation(order) for order in permutations(range(n))]
    swap = permutation([1, 0, *range(2, n)])
    A, moved = softmax_rows(S), softmax_rows(swap * S * swap.T)

    def gaps(scores: Matrix) -> Matrix:
        """Stack the differences of the two sides for all permutations."""
        pairs = ((softmax_rows(P * scores * P.T), P * softmax_rows(scores) * P.T) for P in every)
        return Matrix.vstack(*(left - right for left, right in pairs))

    return Proof(
        r"Softmax along rows commutes with moving the tokens: "
        r"$\operatorname{softmax}(PSP^\top) = P\operatorname{softmax}(S)P^\top$ "
        f"(all {len(every)} permutations of {n} tokens).",
        (
            equal(
                r"A row of $PSP^\top$ is a row of $S$ with its entries in another order; here "
                r"tokens 1 and 2 change places.",
                r"(PSP^\top)_1",
                (swap * S * swap.T)[0, :],
                row(S[1, 1], S[1, 0], *S[1, 2:]),
            ),
            equal(
                r"The sum below has the same terms in another order, so every weight goes where "
                r"its score went.",
                r"\operatorname{softmax}(PSP^\top)_{11}",
                moved[0, 0],
                A[1, 1],
            ),
            equal(
                r"Put $S + M$ for $S$: with a bias or mask that moves along, $M \to PMP^\top$, it "
                r"is true again.",
                r"\operatorname{softmax}(PSP^\top + PMP^\top)"
                r" - P\operatorname{softmax}(S + M)P^\top",
                gaps(S + M),
                zeros(n * len(every), n),
            ),
            differ(
                r"With a bias that stays where it was it is not.",
                r"\operatorname{softmax}(PSP^\top + M) - P\operatorname{softmax}(S + M)P^\top",
                softmax_rows(swap * S * swap.T + M) - swap * softmax_rows(S + M) * swap.T,
                zeros(n, n),
            ),
            equal(
                f"All {len(every)} permutations: the difference is identically zero.",
                r"\operatorname{softmax}(PSP^\top) - P\operatorname{softmax}(S)P^\top",
                gaps(S),
                zeros(n * len(every), n),
            ),
        ),
    )


def permuted_attention(n: int = 3, d_v: int = 2) -> Proof:
    """Prove that a layer without positions maps PX to P times its output, for every P.

    Parameters
    ----------
    n : int, default 3
        Number of tokens.
    d_v : int, default 2
        Width of a value. Tokens and keys have two coordinates.

    Returns
    -------
    Proof
    """
    X, table = symbols("x", n, 2), symbols("p", n, 2)
    W_Q, W_K, W_V = symbols("q", 2, 2), symbols("k", 2, 2), symbols("v", 2, d_v)
    every = [permutation(order) for order in permutations(range(n))]
    P, still = every[-1], attend(X, W_Q, W_K, W_V)
    moved = [attend(move * X, W_Q, W_K, W_V) for move in every]
    gaps = Matrix.vstack(*(new - move * still for new, move in zip(moved, every, strict=True)))
    pooled = Matrix.vstack(*(ones(1, n) * (new - still) for new in moved))
    scores = P * X * W_Q * (P * X * W_K).T - P * (X * W_Q * (X * W_K).T) * P.T
    placed = attend(P * X + table, W_Q, W_K, W_V) - P * attend(X + table, W_Q, W_K, W_V)
    return Proof(
        r"Self-attention without positions is permutation-equivariant "
        f"(all {len(every)} permutations of {n} tokens, $d_v$ = {d_v}, every entry a symbol).",
        (
            equal(
                r"A projection acts on each token alone, so its rows move with the tokens.",
                r"(PX)W_V - P(XW_V)",
                (P * X) * W_V - P * (X * W_V),
                zeros(n, d_v),
            ),
            equal(
                r"So the scores have their rows and their columns moved.",
                r"(PQ)(PK)^\top - P(QK^\top)P^\top",
                scores,
                zeros(n, n),
            ),
            equal(
                r"Softmax commutes with that move, and the $P^\top$ on its right meets the $P$ of "
                r"the values.",
                r"P^\top P",
                P.T * P,
                eye(n),
            ),
            equal(
                r"A sum over tokens does not see their order: the pooled output is invariant.",
                r"\mathbf{1}^\top \operatorname{Attention}(PX)"
                r" - \mathbf{1}^\top \operatorname{Attention}(X)",
                pooled,
                zeros(*pooled.shape),
            ),
            differ(
                r"A table of positions, added to the rows, breaks it.",
                r"\operatorname{Attention}(PX + P_{\mathrm{pos}})"
                r" - P\operatorname{Attention}(X + P_{\mathrm{pos}})",
                placed,
                zeros(n, d_v),
            ),
            equal(
                r"Without one the difference is identically zero for every permutation.",
                r"\operatorname{Attention}(PX) - P\operatorname{Attention}(X)",
                gaps,
                zeros(*gaps.shape),
            ),
        ),
    )


def duplication() -> Proof:
    """Prove that a softmax average cannot count: duplicating every token changes nothing."""
    s, v = symbols("s", 2), symbols("v", 2)
    once = softmax(*s).dot(v)
    twice = softmax(*s, *s).dot(v.row_join(v))
    return Proof(
        r"A softmax average cannot count: with every token doubled no output changes.",
        (
            let(r"Two tokens, one column of values.", "o(s_1, s_2)", once),
            equal(
                r"Doubled, a token has two keys with half the weight each.",
                r"2\,a_1(s_1, s_2, s_1, s_2)",
                2 * softmax(*s, *s)[0],
                softmax(*s)[0],
            ),
            differ(
                r"(To double one token alone does change the shares.)",
                r"o(s_1, s_2, s_1)",
                softmax(*s, s[0]).dot(v.row_join(row(v[0]))),
                once,
                right_tex="o(s_1, s_2)",
            ),
            equal(
                r"So the average is the same.",
                r"o(s_1, s_2, s_1, s_2)",
                twice,
                once,
                right_tex="o(s_1, s_2)",
            ),
        ),
    )


def causal_order() -> Proof:
    """Prove that one causal layer cannot order the past of the last token, and two can."""
    X, (first, second) = symbols("x", 3).T, two_layers()
    bias = Matrix(3, 3, lambda i, j: 0 if j <= i else -sp.oo)
    swap = permutation([1, 0, 2])

    def last(tokens: Matrix, depth: int) -> sp.Expr:
        """Give the last output of one or two layers."""
        for weights in (first, second)[:depth]:
            tokens = tokens + attend(tokens, *weights, bias=bias)
        return tokens[2]

    return Proof(
        r"Without positions the last output of one causal layer does not depend on the order of "
        r"its past; that of two layers does.",
        (
            differ(
                r"A causal layer is not equivariant: whoever stands first reads itself alone.",
                r"\operatorname{Attention}(PX) - P\operatorname{Attention}(X)",
                attend(swap * X, *first, bias=bias) - swap * attend(X, *first, bias=bias),
                zeros(3, 1),
            ),
            differ(
                r"After two layers the order of the past shows: in the first layer the second "
                r"token has read the first, and not the other way round.",
                r"o_3(x_2, x_1, x_3)",
                last(swap * X, 2),
                last(X, 2),
                right_tex="o_3(x_1, x_2, x_3)",
            ),
            equal(
                r"After one layer it does not: the last token reads all keys, whichever comes "
                r"first.",
                r"o_3(x_2, x_1, x_3)",
                last(swap * X, 1),
                last(X, 1),
                right_tex="o_3(x_1, x_2, x_3)",
            ),
        ),
    )
