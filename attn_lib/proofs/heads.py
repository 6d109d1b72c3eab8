"""Proofs of chapter 8: several heads."""

from sympy import Rational, Symbol, exp, zeros

from attn_lib.proofs.steps import Proof, differ, equal, let, softmax, stand_for, symbols

__all__ = [
    "first_layer",
    "head_parameters",
    "heads_mean",
    "heads_sum",
    "one_mixture",
]


def one_mixture() -> Proof:
    """Prove what one head keeps of who said what, and what two heads keep."""
    a, b = Symbol("a", positive=True), Symbol("b", positive=True)
    (u, v), rest = (symbols(name, 1, 2) for name in "uv"), symbols("r", 1, 2)
    (w, x), (p, q) = (symbols(n, 1, 2) for n in "wx"), (symbols(n, 1, 2) for n in "pq")
    W, first, second = (symbols(name, 2, 2) for name in "mst")
    said, exchanged = a * u + b * v + rest, a * v + b * u + rest
    two, two_exchanged = u * first + v * second, v * first + u * second
    gap = r"\mathbf{o} - \mathbf{o}'"
    return Proof(
        r"One head with two equal weights cannot tell its two sources apart; two heads can, if "
        r"they write differently.",
        (
            let(
                r"One head gives two sources the weights $a$ and $b$; the rest adds up to "
                r"$\mathbf{r}$.",
                r"\mathbf{o}",
                said,
                right_tex=r"a\mathbf{u} + b\mathbf{v} + \mathbf{r}",
            ),
            equal(
                r"Exchange the two values and keep the weights. What moves is the product of two "
                r"differences.",
                gap,
                said - exchanged,
                (a - b) * (u - v),
                right_tex=r"(a - b)(\mathbf{u} - \mathbf{v})",
            ),
            differ(r"(With unequal weights it does move.)", gap, said - exchanged, zeros(1, 2)),
            equal(
                r"With equal weights, $b = a$, nothing moves, whatever the values are.",
                gap,
                said - exchanged,
                zeros(1, 2),
                where={b: a},
            ),
            equal(
                r"A place $\mathbf{p}$, $\mathbf{q}$ added to each word $\mathbf{w}$, $\mathbf{x}$ "
                r"does not help: the map to values is linear, and the sum is the same.",
                r"a(\mathbf{w} + \mathbf{p})W_V + a(\mathbf{x} + \mathbf{q})W_V",
                a * (w + p) * W + a * (x + q) * W,
                a * (x + p) * W + a * (w + q) * W,
                right_tex=r"a(\mathbf{x} + \mathbf{p})W_V + a(\mathbf{w} + \mathbf{q})W_V",
            ),
            let(
                r"Now two heads, one for each source, each with its own rows of $W_O$.",
                r"\mathbf{o}",
                two,
                right_tex=r"\mathbf{u}W^{(1)} + \mathbf{v}W^{(2)}",
            ),
            equal(
                r"If both write alike, $W^{(2)} = W^{(1)}$, the exchange is lost again.",
                gap,
                two - two_exchanged,
                zeros(1, 2),
                where=stand_for(second, first),
            ),
            equal(
                r"In general it shows as far as they write differently.",
                gap,
                two - two_exchanged,
                (u - v) * (first - second),
                right_tex=r"(\mathbf{u} - \mathbf{v})(W^{(1)} - W^{(2)})",
            ),
        ),
    )


def heads_sum() -> Proof:
    """Prove that concatenating heads and projecting equals a sum over heads."""
    first, second, W = symbols("a", 2, 2), symbols("b", 2, 2), symbols("w", 4, 3)
    joined = first.row_join(second) * W
    parts = [first[0, c] * W[c, 0] for c in range(2)], [second[0, c] * W[2 + c, 0] for c in (0, 1)]
    return Proof(
        r"To concatenate heads and project is to sum over heads: each has its own rows of $W_O$.",
        (
            let(r"Two heads, two tokens, $d_v$ = 2.", "[O_1, O_2]", first.row_join(second)),
            equal(
                r"An entry is a sum over the columns of all heads. Split it where the next head "
                r"begins.",
                r"([O_1, O_2] W_O)_{11}",
                joined[0, 0],
                sum(parts[0]) + sum(parts[1]),
            ),
            differ(
                r"(The rows belong to their head: exchanged, the result is another.)",
                r"O_1 W^{(2)} + O_2 W^{(1)}",
                first * W[2:, :] + second * W[:2, :],
                joined,
                right_tex=r"[O_1, O_2] W_O",
            ),
            equal(
                r"All entries together.",
                r"[O_1, O_2] W_O",
                joined,
                first * W[:2, :] + second * W[2:, :],
                right_tex=r"O_1 W^{(1)} + O_2 W^{(2)}",
            ),
        ),
    )


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


def head_parameters() -> Proof:
    """Count the parameters of h heads of width d / h, g of them with keys."""
    d, h, g = (Symbol(name, integer=True, positive=True) for name in "dhg")
    width = d / h
    shared, total = d * g * width, 2 * d * h * width + 2 * d * g * width
    return Proof(
        r"With heads of width $d/h$ the number of parameters does not depend on $h$.",
        (
            let(r"The width is shared out among the heads.", r"d_k = d_v", width),
            equal(
                r"$W_Q$ has $h$ blocks of $d_k$ columns; $W_O$ as many rows.",
                r"d \cdot h \cdot d_k",
                d * h * width,
                d**2,
            ),
            equal(
                r"$W_K$ and $W_V$ have a block for each of $g$ key heads.",
                r"d \cdot g \cdot d_k",
                shared,
                d**2 * g / h,
            ),
            equal(
                r"All four together.",
                r"2\,d\,h\,d_k + 2\,d\,g\,d_k",
                total,
                2 * d**2 * (1 + g / h),
            ),
            differ(r"(Sharing keys and values does save some.)", "2d^2(1 + g/h)", total, 4 * d**2),
            equal(
                r"With keys and values for every head, $g = h$, no $h$ is left.",
                r"2d^2(1 + h/h)",
                total.subs(g, h),
                4 * d**2,
            ),
        ),
    )


def first_layer() -> Proof:
    """Prove that no head of a first layer finds what follows the earlier copy."""
    s, t = symbols("s", 3), Symbol("t", real=True)
    first, second = softmax(*s), softmax(s[0], s[1], t)
    ratio = exp(s[0] - s[1])
    return Proof(
        r"No head of a first layer finds the place after the earlier copy.",
        (
            let(
                r"Two places may be the answer; the third key stands for all others.",
                r"\mathbf{a}",
                first,
                right_tex=r"\operatorname{softmax}(s_1, s_2, s_3)",
            ),
            equal(
                r"In a first layer the scores of the two places are made from three rows that both "
                r"texts share. So is the ratio of their weights,",
                r"a_1 / a_2",
                first[0] / first[1],
                ratio,
            ),
            equal(
                r"whatever the other keys have become in the second text.",
                r"a'_1 / a'_2",
                second[0] / second[1],
                ratio,
            ),
            differ(
                r"(The weights themselves do move: they depend on all keys.)",
                r"a'_1",
                second[0],
                first[0],
                right_tex="a_1",
            ),
            equal(
                r"If $a_1$ is at most $a_2$ it is at most ½: what is missing to ½ is half their "
                r"difference and half of all the rest. With the signs exchanged the same holds "
                r"for $a'_2$ in the second text.",
                r"\tfrac12 - a_1",
                Rational(1, 2) - first[0],
                (first[1] - first[0]) / 2 + first[2] / 2,
                right_tex=r"\tfrac12(a_2 - a_1) + \tfrac12 a_3",
            ),
        ),
    )
