"""Proofs of chapter 11: what attention costs, and what is done about it."""

from collections.abc import Sequence

import sympy as sp
from sympy import Matrix, Rational, Symbol, diag, exp, ones, zeros

from attn_lib.proofs.steps import Proof, at_least, differ, equal, let, row, softmax, symbols

__all__ = [
    "generation_sums",
    "layer_crossings",
    "merged_tiles",
    "no_finite_features",
    "running_sums",
    "tiles_move_less",
    "window_reach",
]


def layer_crossings() -> Proof:
    """Prove at which length scores and mixing cost as much as the rest of a layer."""
    n, d, b, f, h = sp.symbols("n d b f h", positive=True)
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
                r"A feed-forward part of inner width $f$ adds two products: then it takes "
                r"$n = 2d + df/b$.",
                "2 n^2 b",
                quadratic,
                projections + feed_forward,
                where={n: 2 * d + d * f / b},
            ),
            equal(
                r"With the usual $b = d$ and $f = 4d$ that is $6d$.",
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
    """Join two states (m, l, u) of an online softmax: reference, normaliser, weighted sum."""
    (m_a, l_a, u_a), (m_b, l_b, u_b) = a, b
    m = sp.Max(m_a, m_b)
    down_a, down_b = exp(m_a - m), exp(m_b - m)
    return m, down_a * l_a + down_b * l_b, down_a * u_a + down_b * u_b


def merged_tiles() -> Proof:
    """Prove that merging tiles is exact, and that the order of merging is free."""
    s, v, m = symbols("s", 4), symbols("v", 4), symbols("m", 3)
    l, u = symbols("l", 3, positive=True), symbols("u", 3)

    def tile(keys: Sequence[int], reference: sp.Expr) -> tuple[sp.Expr, ...]:
        powers = [exp(s[j] - reference) for j in keys]
        return reference, sum(powers), sum(p * v[j] for p, j in zip(powers, keys, strict=True))

    both = merge(tile([0, 1], m[0]), tile([2, 3], m[1]))
    whole = tile(range(4), both[0])
    x, y, z = ((m[i], l[i], u[i]) for i in range(3))
    empty = merge((m[0], sp.Integer(0), sp.Integer(0)), y)
    return Proof(
        r"Merging tiles gives exactly the softmax average over all keys, in any order of merging.",
        (
            let(
                r"A tile keeps a reference $m$ (its largest score, though any number is right), "
                r"the sum $l$ of $e^{s-m}$, and the same sum $u$ weighted by the values.",
                "(m, l, u)",
                row(*tile([0, 1], m[0])),
            ),
            equal(
                r"Merged, $m$ is the larger reference. The factor $e^{m_1 - m}$ makes of a sum "
                r"against $m_1$ one against $m$: the normaliser is that of all four keys,",
                r"e^{m_1 - m} l_1 + e^{m_2 - m} l_2",
                both[1],
                whole[1],
                right_tex=r"\sum_j e^{s_j - m}",
            ),
            equal(
                r"and the weighted sum as well.",
                r"e^{m_1 - m} u_1 + e^{m_2 - m} u_2",
                both[2],
                whole[2],
                right_tex=r"\sum_j e^{s_j - m} v_j",
            ),
            equal(
                r"A tile where nothing is allowed has $l = u = 0$ and leaves the other's average "
                r"alone.",
                r"u / l",
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
                r"u / l",
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


def running_sums() -> Proof:
    """Prove that linear attention may sum up its keys first, and read a running sum."""
    F, G = (symbols(name, 3, 2, positive=True) for name in "fg")
    V, ahead = symbols("v", 3, 2), Matrix(3, 3, lambda i, j: 1 if j <= i else 0)
    seen = (F * G.T).multiply_elementwise(ahead)
    shares = F * G.T[:, 0] / (F * G.T * ones(3, 1))[0]
    memory = [sum((G[j, :].T * V[j, :] for j in range(i + 1)), zeros(2, 2)) for i in range(3)]
    return Proof(
        r"With weights in proportion to $\phi(\mathbf{q}) \cdot \phi(\mathbf{k})$ the past fits "
        r"into a matrix that does not grow.",
        (
            let(r"Three keys with two positive features each.", r"\phi(K)", G),
            at_least(r"A share is positive.", "a_{11}", shares[0], 0),
            equal(
                r"Shares sum to 1: divide by the query times the sum of all keys.",
                r"\sum_j \phi(q_1) \cdot \phi(k_j)",
                sum((F * G.T)[0, :]),
                (F * (G.T * ones(3, 1)))[0],
                right_tex=r"\phi(q_1) \cdot \sum_j \phi(k_j)",
            ),
            equal(
                r"Matrix products associate, so keys and values can be multiplied first.",
                r"(\phi(Q) \phi(K)^\top) V",
                F * G.T * V,
                F * (G.T * V),
                right_tex=r"\phi(Q) (\phi(K)^\top V)",
            ),
            differ(
                r"(Not through a mask: the causal numerator is not this product.)",
                r"(M \circ \phi(Q) \phi(K)^\top) V",
                seen * V,
                F * (G.T * V),
                right_tex=r"\phi(Q) (\phi(K)^\top V)",
            ),
            equal(
                r"But row $i$ of it needs only the sum up to $i$, which grows by one term for each "
                r"token.",
                r"(M \circ \phi(Q) \phi(K)^\top) V",
                seen * V,
                Matrix.vstack(*(F[i, :] * memory[i] for i in range(3))),
                right_tex=r"[\phi(q_i) \cdot \sum_{j \le i} \phi(k_j) v_j]",
            ),
        ),
    )


def no_finite_features() -> Proof:
    """Prove that no number of features gives softmax weights at every length."""
    F, G = symbols("f", 3, 2), symbols("g", 3, 2)
    powers = Matrix(3, 3, lambda i, j: exp(i * j))
    sums = diag(*(sum(powers[i, :]) for i in range(3)))
    e = sp.E
    return Proof(
        r"Weights $\phi(\mathbf{q}) \cdot \phi(\mathbf{k})$ with $r$ features are not those of "
        r"softmax for $r + 1$ tokens, whatever $\phi$ is.",
        (
            let(r"Queries and keys of width 1: 0, 1, 2. The powers $e^{q k}$ are", "E", powers),
            equal(
                r"a Vandermonde matrix, with the determinant",
                r"\operatorname{det} E",
                powers.det(),
                (e - 1) * (e**2 - 1) * (e**2 - e),
            ),
            equal(
                r"To normalise rows divides it by positive numbers,",
                r"\operatorname{det} A",
                (sums.inv() * powers).det(),
                powers.det() / sums.det(),
            ),
            differ(
                r"so the weights of softmax have full rank.",
                r"\operatorname{det} A",
                (sums.inv() * powers).det(),
                0,
            ),
            equal(
                r"With two features the matrix has rank 2 at most: it is another one.",
                r"\operatorname{det} (\phi(Q) \phi(K)^\top)",
                (F * G.T).det(),
                0,
            ),
        ),
    )
