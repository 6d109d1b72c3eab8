"""Proofs of chapter 9: the whole block."""

from collections.abc import Callable

import sympy as sp
from sympy import Matrix, Rational, Symbol, eye, ones, sqrt, zeros

from attn_lib.proofs.steps import Proof, at_least, differ, equal, let, row, symbols

__all__ = [
    "equal_tokens",
    "norm_forgets",
    "spread_shrinks",
    "tokens_alone",
]


def _centred(row: Matrix) -> tuple[Matrix, sp.Expr]:
    """Give a row less its mean, and its variance."""
    width = row.shape[1]
    away = row - ones(1, width) * sum(row) / width
    return away, away.dot(away) / width


def _layer_norm(row: Matrix, eps: sp.Expr) -> Matrix:
    """Give a token with mean 0 and variance 1 over its own features; eps keeps it finite."""
    away, variance = _centred(row)
    return away / sqrt(variance + eps)


def _gelu(x: sp.Expr) -> sp.Expr:
    """Give x Φ(x)."""
    return x * (1 + sp.erf(x / sqrt(2))) / 2


def tokens_alone() -> Proof:
    """Prove that in a block only attention takes anything from one token to another.

    Returns
    -------
    Proof
    """
    X, eps = symbols("x", 2, 2), Symbol("epsilon", positive=True)
    W_1, W_2, W_V = symbols("u", 2).T, symbols("w", 2), symbols("v", 2, 2)
    other = X[1, :].T

    def part(row: Matrix) -> Matrix:
        """Give the feed-forward part of one token."""
        return (_layer_norm(row, eps) * W_1).applyfunc(_gelu) * W_2

    def block(weights: Matrix) -> Matrix:
        """Give the first token after a pre-norm block whose weights are given."""
        read = Matrix.vstack(*(_layer_norm(X[i, :], eps) for i in range(2)))
        middle = X[0, :] + weights * read * W_V
        return middle + part(middle)

    a = Symbol("a", positive=True)
    mixed = block(row(1 - a, a)).jacobian(other)
    return Proof(
        r"In a block a token learns of another through the weights of attention alone (two tokens, "
        r"two features, one hidden unit, any maps).",
        (
            equal(
                r"A layer norm takes mean and variance of one token: the other does not occur.",
                r"\partial\operatorname{LN}(\mathbf{x}_1) / \partial\mathbf{x}_2",
                _layer_norm(X[0, :], eps).jacobian(other),
                zeros(2, 2),
            ),
            equal(
                r"Nor in the feed-forward part, and what is added is the token's own row.",
                r"\partial(\mathbf{x}_1 + \operatorname{FF}(\operatorname{LN}(\mathbf{x}_1))) / "
                r"\partial\mathbf{x}_2",
                (X[0, :] + part(X[0, :])).jacobian(other),
                zeros(2, 2),
            ),
            differ(
                r"With a weight $a$ on the other token it does occur.",
                r"\partial\mathbf{y}_1 / \partial\mathbf{x}_2",
                mixed,
                zeros(2, 2),
            ),
            equal(
                r"Put that weight to 0 and leave all else: whatever one token knew of the other is "
                r"gone.",
                r"[\partial\mathbf{y}_1 / \partial\mathbf{x}_2]_{a = 0}",
                mixed.subs(a, 0),
                zeros(2, 2),
            ),
        ),
    )


def equal_tokens() -> Proof:
    """Prove that attention alone, given equal tokens, computes a linear map of the token.

    Returns
    -------
    Proof
    """
    x, a = symbols("x", 2), symbols("a", 3, positive=True)
    first, second, w = symbols("v", 2, 2), symbols("w", 2, 2), symbols("u", 2).T
    values = Matrix.vstack(*[x * first] * 3)
    b = Symbol("b", real=True)

    def both(f: Callable[[sp.Expr, sp.Expr], sp.Expr]) -> sp.Expr:
        """Add a function at two opposite corners of the square, less it at the other two."""
        return sp.expand(f(0, 0) + f(1, 1) - f(0, 1) - f(1, 0))

    half = Rational(1, 2)
    return Proof(
        r"Among equal tokens a stack of attention, with residuals and without norm or feed-forward "
        r"part, is linear in the token, and no threshold of it is the exclusive or.",
        (
            equal(
                r"Averages of equal values are that value, whatever the weights. $V$ stands for "
                r"$W_V W_O$.",
                r"\sum_j a_j\,\mathbf{x}V",
                a * values,
                x * first,
                right_tex=r"\mathbf{x}V",
                where={a[2]: 1 - a[0] - a[1]},
            ),
            equal(
                r"So a layer with its residual is a matrix, and two are their product.",
                r"(\mathbf{x} + \mathbf{x}V) + (\mathbf{x} + \mathbf{x}V)W",
                (x + x * first) + (x + x * first) * second,
                x * ((eye(2) + first) * (eye(2) + second)),
                right_tex=r"\mathbf{x}(I + V)(I + W)",
            ),
            differ(
                r"A feed-forward part is not bound by what follows: take one hidden unit.",
                r"f(0,0) + f(1,1) - f(0,1) - f(1,0)",
                both(lambda p, q: _gelu(p + q - half)),
                0,
            ),
            equal(
                r"A linear map and a bias give a logit that sums to the same over opposite "
                r"corners. The exclusive or wants it negative at (0,0) and (1,1), positive at the "
                r"others: that cannot be.",
                r"f(0,0) + f(1,1) - f(0,1) - f(1,0)",
                both(lambda p, q: (row(p, q) * w)[0] + b),
                0,
            ),
        ),
    )


def spread_shrinks() -> Proof:
    """Prove that averaging brings tokens closer, by the share two rows of weights have in common.

    Returns
    -------
    Proof
    """
    shared, p, r = (symbols(name, 3, nonnegative=True) for name in "cpr")
    n, g = symbols("n", 3, nonnegative=True), symbols("g", 3, nonnegative=True)
    y, low, high = symbols("y", 3), Symbol("m", real=True), Symbol("M", real=True)
    delta = Symbol("delta", nonnegative=True)
    one = {p[2]: delta - p[0] - p[1], n[2]: delta - n[0] - n[1]}
    excess = p.dot(high * ones(1, 3) - y) + n.dot(y - low * ones(1, 3))
    return Proof(
        r"Two averages of the same numbers differ by at most $\delta$ times the spread of the "
        r"numbers, where $1 - \delta$ is what their weights have in common (three keys).",
        (
            let(
                r"Take out what two rows of weights have in common, $c_j = \min(a_j, b_j)$. This "
                r"is left of the one,",
                r"\mathbf{a}",
                shared + p,
            ),
            let(r"and this of the other.", r"\mathbf{b}", shared + n),
            equal(
                r"What is common cancels.",
                r"\sum_j a_j y_j - \sum_j b_j y_j",
                (shared + p).dot(y) - (shared + n).dot(y),
                (p - n).dot(y),
            ),
            equal(
                r"Both rows sum to 1, so the rests sum to the same $\delta$. Let $y_j$ lie between "
                r"$m$ and $M$: what is missing to $\delta(M - m)$ is",
                r"\delta(M - m) - \sum_j (p_j - n_j) y_j",
                delta * (high - low) - (p - n).dot(y),
                excess,
                where=one,
            ),
            at_least(
                r"With $g_j = M - y_j$ and $r_j = y_j - m$, both not negative, that is not "
                r"negative.",
                r"\sum_j (p_j g_j + n_j r_j)",
                p.dot(g) + n.dot(r),
                0,
            ),
        ),
    )


def norm_forgets() -> Proof:
    """Prove that a layer norm forgets the size and the mean of a token."""
    x, c, b = symbols("x", 3), Symbol("c", positive=True), Symbol("b", real=True)
    away, variance = _centred(x)
    moved, wider = _centred(c * x + b * ones(1, 3))
    z, v = symbols("z", 3), Symbol("v", positive=True)
    return Proof(
        r"A layer norm gives $\mathbf{x}$ and $c\mathbf{x} + b$ with $c > 0$ one answer, of length "
        r"$\sqrt d$ ($d$ = 3; $\epsilon$ = 0).",
        (
            equal(
                r"A shift of all features moves their mean by as much, a factor multiplies it.",
                r"c\mathbf{x} + b - \operatorname{mean}",
                moved,
                c * away,
                right_tex=r"c\,(\mathbf{x} - \operatorname{mean})",
            ),
            equal(
                r"So the variance takes the factor twice.",
                r"\operatorname{var}(c\mathbf{x} + b)",
                wider,
                c**2 * variance,
                right_tex=r"c^2\operatorname{var}(\mathbf{x})",
            ),
            equal(
                r"Write $\mathbf{z}$ for what is left of $\mathbf{x}$ and $v$ for its variance. "
                r"The factor cancels.",
                r"\operatorname{LN}(c\mathbf{x} + b)",
                c * z / sqrt(c**2 * v),
                z / sqrt(v),
                right_tex=r"\operatorname{LN}(\mathbf{x})",
            ),
            differ(
                r"(With a root mean square in place of the deviation a shift would show.)",
                r"(\mathbf{x} + b) / \operatorname{rms}(\mathbf{x} + b)",
                (x + b * ones(1, 3)) / sqrt((x + b * ones(1, 3)).dot(x + b * ones(1, 3)) / 3),
                x / sqrt(x.dot(x) / 3),
                right_tex=r"\mathbf{x} / \operatorname{rms}(\mathbf{x})",
            ),
            equal(
                r"The squares of what is left sum to $d$ variances; each is divided by one.",
                r"\operatorname{LN}(\mathbf{x})\operatorname{LN}(\mathbf{x})^\top",
                away.dot(away) / variance,
                3,
            ),
        ),
    )
