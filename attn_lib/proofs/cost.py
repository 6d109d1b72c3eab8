"""Proofs of chapter 11: what attention costs, and what is done about it."""

from collections.abc import Sequence

import sympy as sp
from sympy import Matrix, Rational, Symbol, exp

from attn_lib.proofs.steps import Proof, equal, let, row, softmax, symbols

__all__ = [
    "generation_sums",
    "layer_crossings",
    "merged_tiles",
    "tiles_move_less",
    "window_reach",
]


def layer_crossings() -> Proof:
    """Prove at which length scores and mixing cost as much as the rest of a layer."""
    n, d, b, f, h = sp.symbols("n d b d_ff h", positive=True)
    quadratic, projections, feed_forward = 2 * n**2 * b, 4 * n * d * b, 2 * n * d * f
    return Proof(
        r"Scores and mixing cost what the projections cost at $n = 2d$, and what projections and "
        r"feed-forward part cost together at $n = 6d$.",
        (
            equal(
                r"A product of $n \times d$ and $d \times b$ takes $ndb$ multiply-adds. Queries, "
                r"keys, values and the way back are four such products; $b$ is the width of all "
                r"heads together.",
                "3 n d b + n b d",
                3 * n * d * b + n * b * d,
                projections,
            ),
            equal(
                r"Each of $h$ heads has width $b/h$, and compares and mixes $n$ rows with $n$ "
                r"rows: the number of heads cancels.",
                r"h \cdot 2 n (b/h) n",
                h * 2 * n * (b / h) * n,
                quadratic,
            ),
            equal(
                r"Their difference changes its sign once, at $n = 2d$, whatever $b$ is.",
                "2 n^2 b - 4 n d b",
                quadratic - projections,
                2 * n * b * (n - 2 * d),
            ),
            equal(
                r"If a causal layer leaves out what it may not read, $n(n + 1)/2$ pairs remain, "
                r"and it takes $n = 4d - 1$.",
                "n (n + 1) b",
                n * (n + 1) * b,
                projections,
                where={n: 4 * d - 1},
                right_tex="4 n d b",
            ),
            equal(
                r"A feed-forward part of inner width $d_{ff}$ adds two products: then it "
                r"takes $n = 2d + d\,d_{ff}/b$.",
                "2 n^2 b",
                quadratic,
                projections + feed_forward,
                where={n: 2 * d + d * f / b},
            ),
            equal(
                r"With the usual $b = d$ and $d_{ff} = 4d$ that is $6d$.",
                "2 n^2 d",
                quadratic,
                projections + feed_forward,
                where={b: d, f: 4 * d, n: 6 * d},
                right_tex="4 n d^2 + 8 n d^2",
            ),
        ),
    )


def window_reach() -> Proof:
    """Prove how far a window reaches through L layers, for w = 3 and seven tokens."""
    x = Symbol("x", positive=True)
    w, n, layers = 3, 7, 3
    carried = sum(x**k for k in range(w))
    band = Matrix(n, n, lambda i, j: 1 if 0 <= i - j < w else 0)
    places = sp.Poly(carried**layers, x)
    return Proof(
        r"Through $L$ layers a window of $w$ keys reaches $L(w - 1)$ places back, and no further.",
        (
            let(
                r"A layer carries information 0 to $w - 1$ places. Let powers of $x$ count places.",
                "p",
                carried,
            ),
            equal(
                r"The ways from the first token to the last through $L$ layers are an entry of a "
                r"power of the mask; they are the ways to make $n - 1$ places of $L$ steps, a "
                r"coefficient of $p^L$.",
                r"(M^3)_{71}",
                (band**layers)[n - 1, 0],
                places.coeff_monomial(x ** (n - 1)),
                right_tex=r"[x^6]\, p^3",
            ),
            equal(
                r"One layer fewer, and there is no way.",
                r"(M^2)_{71}",
                (band ** (layers - 1))[n - 1, 0],
                0,
            ),
            equal(
                r"For the highest powers multiply: the longest way has $L(w - 1)$ places, and with "
                r"positive coefficients every shorter one occurs.",
                r"\operatorname{degree} p^3",
                sp.Integer(places.degree()),
                layers * (w - 1),
                right_tex=r"3 \cdot (3 - 1)",
            ),
        ),
    )


def generation_sums() -> Proof:
    """Prove what writing n tokens costs a layer, with a cache and without."""
    n, t = sp.symbols("n t", integer=True, positive=True)
    d = Symbol("d", positive=True)
    step, whole = 4 * d**2 + 2 * t * d, 4 * t * d**2 + 2 * t**2 * d
    cached, again = (sp.summation(cost, (t, 1, n)) for cost in (step, whole))
    return Proof(
        r"Without a cache, writing $n$ tokens costs a layer a power of $n$ more.",
        (
            let(r"With a cache token $t$ is projected alone and reads $t$ keys.", "c_t", step),
            equal(
                r"Sum over the tokens.",
                r"\sum_{t=1}^n c_t",
                cached,
                4 * n * d**2 + n * (n + 1) * d,
            ),
            let(r"Without one all $t$ tokens run through the layer again.", "r_t", whole),
            equal(
                r"Sum again, with the sum of the squares.",
                r"\sum_{t=1}^n r_t",
                again,
                2 * n * (n + 1) * d**2 + n * (n + 1) * (2 * n + 1) * d / 3,
            ),
            equal(
                r"For long texts the second is $2n/3$ times the first.",
                r"\lim_{n \to \infty} \sum_t r_t / (n \sum_t c_t)",
                sp.limit(again / (n * cached), n, sp.oo),
                Rational(2, 3),
            ),
        ),
    )


def merge(a: Sequence[sp.Expr], b: Sequence[sp.Expr]) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """Join two states (μ, ℓ, u) of an online softmax: reference, sum of powers, weighted sum."""
    (mu_a, l_a, u_a), (mu_b, l_b, u_b) = a, b
    mu = sp.Max(mu_a, mu_b)
    down_a, down_b = exp(mu_a - mu), exp(mu_b - mu)
    return mu, down_a * l_a + down_b * l_b, down_a * u_a + down_b * u_b


def merged_tiles() -> Proof:
    """Prove that merging tiles is exact, and that the order of merging is free."""
    s, v, mu = symbols("s", 4), symbols("v", 4), symbols("mu", 3)
    l, u = symbols("ell", 3, positive=True), symbols("u", 3)

    def tile(keys: Sequence[int], reference: sp.Expr) -> tuple[sp.Expr, ...]:
        powers = [exp(s[j] - reference) for j in keys]
        return reference, sum(powers), sum(p * v[j] for p, j in zip(powers, keys, strict=True))

    both = merge(tile([0, 1], mu[0]), tile([2, 3], mu[1]))
    whole = tile(range(4), both[0])
    x, y, z = ((mu[i], l[i], u[i]) for i in range(3))
    empty = merge((mu[0], sp.Integer(0), sp.Integer(0)), y)
    return Proof(
        r"Merging tiles gives exactly the softmax average over all keys, in any order of merging.",
        (
            let(
                r"A tile keeps a reference $\mu$ (its largest score, though any number is right), "
                r"the sum $\ell$ of $e^{s-\mu}$, and the same sum $u$ weighted by the values.",
                r"(\mu, \ell, u)",
                row(*tile([0, 1], mu[0])),
            ),
            equal(
                r"Merged, $\mu$ is the larger reference. The factor $e^{\mu_1 - \mu}$ makes of a "
                r"sum against $\mu_1$ one against $\mu$: the normaliser is that of all four keys,",
                r"e^{\mu_1 - \mu} \ell_1 + e^{\mu_2 - \mu} \ell_2",
                both[1],
                whole[1],
                right_tex=r"\sum_j e^{s_j - \mu}",
            ),
            equal(
                r"and the weighted sum as well.",
                r"e^{\mu_1 - \mu} u_1 + e^{\mu_2 - \mu} u_2",
                both[2],
                whole[2],
                right_tex=r"\sum_j e^{s_j - \mu} v_j",
            ),
            equal(
                r"A tile where nothing is allowed has $\ell = u = 0$ and leaves the other's "
                r"average alone.",
                r"u / \ell",
                empty[2] / empty[1],
                u[1] / l[1],
            ),
            equal(
                r"Three tiles may be merged from the left or from the right.",
                r"(x \circ y) \circ z",
                row(*merge(merge(x, y), z)),
                row(*merge(x, merge(y, z))),
                right_tex=r"x \circ (y \circ z)",
            ),
            equal(
                r"In the quotient the reference cancels.",
                r"u / \ell",
                both[2] / both[1],
                softmax(*s).dot(v),
                right_tex=r"\sum_j \operatorname{softmax}(\mathbf{s})_j v_j",
            ),
        ),
    )


def tiles_move_less() -> Proof:
    """Prove how much less tiled attention moves between a slow and a fast memory."""
    n, d, rows = sp.symbols("n d B", positive=True)
    scores, softmax, mixing = 2 * n * d + n**2, 2 * n**2, n**2 + 2 * n * d
    plain, tiled = 4 * n**2 + 4 * n * d, 2 * n * d + 2 * n**2 * d / rows
    return Proof(
        r"For long texts, tiles of $B$ queries move $2B/d$ times less than plain attention.",
        (
            equal(
                r"Plain: read $Q$ and $K$, write $S$; read $S$, write $A$; read $A$ and $V$, "
                r"write $O$.",
                r"(2nd + n^2) + 2n^2 + (n^2 + 2nd)",
                scores + softmax + mixing,
                plain,
            ),
            equal(
                r"Tiled: read $Q$ and write $O$ once, read $K$ and $V$ once for each of $n/B$ rows "
                r"of tiles.",
                r"2nd + (n/B) \cdot 2nd",
                2 * n * d + n / rows * 2 * n * d,
                tiled,
            ),
            equal(
                r"Tiles only half as tall as a head is wide save next to nothing,",
                "2nd + 2n^2 d / B",
                tiled,
                plain - 2 * n * d,
                where={rows: d / 2},
            ),
            equal(
                r"and taller ones save in proportion.",
                r"\lim_{n \to \infty} (4n^2 + 4nd) / (2nd + 2n^2 d / B)",
                sp.limit(plain / tiled, n, sp.oo),
                2 * rows / d,
            ),
        ),
    )
