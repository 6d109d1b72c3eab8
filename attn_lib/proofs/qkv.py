"""Proofs of chapter 2: queries, keys and values."""

from itertools import combinations

import sympy as sp
from sympy import Symbol, exp, eye, ones, zeros

from attn_lib.proofs.steps import (
    Proof,
    at_least,
    differ,
    equal,
    let,
    row,
    softmax,
    softmax_rows,
    stand_for,
    symbols,
    variance_under,
)

__all__ = [
    "only_products_matter",
    "score_rank",
    "softmax_shift",
    "tied_keys_and_values",
]


def tied_keys_and_values() -> Proof:
    """Prove what K = V cannot do: the output is the gradient of a convex function."""
    q, K, z = symbols("q", 2), symbols("k", 3, 2), symbols("z", 2)
    a, u = symbols("a", 3, positive=True), symbols("u", 3)
    T, t = Symbol("T", positive=True), Symbol("t", real=True)
    weights = softmax_rows(q * K.T / T)
    output = weights * K
    potential = T * sp.log(sum((q * K.T / T).applyfunc(exp)))
    along = stand_for(q, q + t * z)
    speed = sp.diff((output * z.T)[0].subs(along, simultaneous=True), t)
    by_pairs = sum(a[i] * a[j] * (u[i] - u[j]) ** 2 for i, j in combinations(range(3), 2))
    numbers = stand_for(u, z * K.T) | stand_for(a, weights.subs(along, simultaneous=True))
    return Proof(
        r"With $K = V$ the output is the gradient of a convex function of the query: "
        r"$(\mathbf{o}(\mathbf{q}') - \mathbf{o}(\mathbf{q}))\cdot"
        r"(\mathbf{q}' - \mathbf{q}) \ge 0$.",
        (
            let(
                r"The soft maximum of the scores; $T$ is $\sqrt{d_k}$ or any temperature.",
                r"f(\mathbf{q})",
                potential,
                r"T \log \sum_j e^{\mathbf{q}\cdot\mathbf{k}_j / T}",
            ),
            equal(
                r"Its gradient weights every key by softmax. The values are the keys, so this is "
                r"the output.",
                r"\nabla f",
                row(*(sp.diff(potential, x) for x in q)),
                output,
                right_tex=r"\mathbf{o}(\mathbf{q}) = \sum_j a_j \mathbf{k}_j",
            ),
            equal(
                r"Move the query from $\mathbf{q}$ towards $\mathbf{q}' = "
                r"\mathbf{q} + \mathbf{z}$. The output moves in that direction at the speed of "
                r"a variance, that of $u_j = \mathbf{z}\cdot\mathbf{k}_j$ under the weights "
                r"at that place.",
                r"\partial/\partial t\; \mathbf{o}(\mathbf{q} + t\mathbf{z})\cdot\mathbf{z}",
                speed,
                variance_under(a, u) / T,
                right_tex=r"\operatorname{Var}_a(u) / T",
                where=numbers,
            ),
            equal(
                r"A variance is an average over pairs.",
                r"\operatorname{Var}_a(u)",
                variance_under(a, u),
                by_pairs,
                where={a[2]: 1 - a[0] - a[1]},
            ),
            at_least(
                r"It is not negative: the output never moves back. In one dimension a larger query "
                r"never returns a smaller value.",
                r"\operatorname{Var}_a(u)",
                by_pairs,
                0,
            ),
        ),
    )


def softmax_shift() -> Proof:
    """Prove that softmax ignores a shift of its row, so a bias on all keys cancels."""
    s, a = symbols("s", 3), symbols("a", 3)
    q, b, K = symbols("q", 2), symbols("b", 2), symbols("k", 3, 2)
    c, i, slope = sp.symbols("c i lambda", real=True)
    biased = K + ones(3, 1) * b
    by_distance = row(*(s[j] - slope * (i - j) for j in range(3)))
    by_place = row(*(s[j] + slope * j for j in range(3)))
    return Proof(
        r"Softmax ignores a constant added to its row; so a bias that all keys share cancels.",
        (
            let(r"Take a row of three weights.", r"\mathbf{a}", softmax(*s)),
            equal(
                r"The factor $e^c$ stands in the numerator and in every term below it.",
                r"\operatorname{softmax}(\mathbf{s} + c)",
                softmax(*(s + c * ones(1, 3))),
                a,
                where=stand_for(a, softmax(*s)),
            ),
            equal(
                r"In a causal row ALiBi's loss $\lambda(i - j)$ and a gain $\lambda j$ differ by "
                r"$\lambda i$, the same for every key.",
                r"\operatorname{softmax}(s_j - \lambda(i - j))",
                softmax_rows(by_distance),
                softmax_rows(by_place),
                right_tex=r"\operatorname{softmax}(s_j + \lambda j)",
            ),
            equal(
                r"A bias $\mathbf{b}$ on every key adds one number to the row of a query.",
                r"\mathbf{q}(K + \mathbf{1}\mathbf{b})^\top - \mathbf{q}K^\top",
                q * biased.T - q * K.T,
                ones(1, 3) * q.dot(b),
            ),
            equal(
                r"So it changes no weight.",
                r"\operatorname{softmax}(\mathbf{q}(K + \mathbf{1}\mathbf{b})^\top)",
                softmax_rows(q * biased.T),
                softmax_rows(q * K.T),
                right_tex=r"\operatorname{softmax}(\mathbf{q}K^\top)",
            ),
        ),
    )


def score_rank() -> Proof:
    """Prove that S has rank at most d_k, here for n = 4 tokens and d_k = 2."""
    Q, K = symbols("q", 4, 2), symbols("k", 4, 2)
    S = Q * K.T
    rows = list(combinations(range(4), 3))
    minors = [sp.expand(S.extract(i, j).det()) for i in rows for j in rows]
    return Proof(
        r"A matrix of scores has rank at most $d_k$, however many tokens there are.",
        (
            let(r"Four tokens, $d_k$ = 2. The first row of scores:", "S_1", S[0, :]),
            equal(
                r"Every row mixes the same two rows, one for each column of $K$.",
                r"S_1",
                S[0, :],
                Q[0, 0] * K[:, 0].T + Q[0, 1] * K[:, 1].T,
                right_tex=r"q_{11} K_{\cdot 1}^\top + q_{12} K_{\cdot 2}^\top",
            ),
            differ(
                r"Two rows are independent in general: a determinant of order 2 is not 0.",
                r"\det S_{12, 12}",
                S[:2, :2].det(),
                0,
            ),
            equal(
                r"Three rows never are: all sixteen determinants of order 3 are identically 0.",
                r"\det S_{ijk, lmn}",
                row(*minors),
                zeros(1, len(minors)),
            ),
        ),
    )


def only_products_matter() -> Proof:
    """Prove that W_Q C with W_K C⁻ᵀ, and W_V C with C⁻¹ W_O, change nothing."""
    X, W_Q, W_K = symbols("x", 2, 2), symbols("q", 2, 2), symbols("k", 2, 2)
    W_V, W_O, C = symbols("v", 2, 2), symbols("o", 2, 2), symbols("c", 2, 2)
    inverse, scores = C.inv(), X * W_Q * (X * W_K).T
    return Proof(
        r"The weights act only through the products $W_Q W_K^\top$ and $W_V W_O$.",
        (
            let(r"Take any invertible matrix, here 2 × 2.", "C", C),
            equal(
                r"Between queries and keys it meets its inverse.", r"C C^{-1}", C * inverse, eye(2)
            ),
            differ(
                r"(Turned alike, queries and keys give other scores, unless $C$ is orthogonal.)",
                r"(X W_Q C)(X W_K C)^\top",
                (X * W_Q * C) * (X * W_K * C).T,
                scores,
                right_tex=r"X W_Q W_K^\top X^\top",
            ),
            equal(
                r"Between values and output it does too; the weights $A$ mix rows and stay out of "
                r"it.",
                r"(X W_V C)(C^{-1} W_O)",
                (X * W_V * C) * (inverse * W_O),
                X * W_V * W_O,
                right_tex=r"X W_V W_O",
            ),
            equal(
                r"Keys turned the opposite way give the same scores.",
                r"(X W_Q C)(X W_K C^{-\top})^\top",
                (X * W_Q * C) * (X * W_K * inverse.T).T,
                scores,
                right_tex=r"X W_Q W_K^\top X^\top",
            ),
        ),
    )
