"""Proofs of chapter 5: positions."""

import sympy as sp
from sympy import Matrix, Symbol, cos, diag, eye, sin, zeros

from attn_lib.proofs.steps import (
    Proof,
    attend,
    differ,
    equal,
    let,
    permutation,
    rotation,
    row,
    stand_for,
    symbols,
)

__all__ = [
    "rope_offset",
    "sinusoid_rotation",
    "symmetric_bias",
]


def symmetric_bias() -> Proof:
    """Prove that a bias in ``|i − j|`` cannot see a reversal, but sees other orders."""
    b, c, X, one = symbols("b", 3), symbols("c", 3), symbols("x", 3).T, eye(1)
    B = Matrix(3, 3, lambda i, j: b[abs(i - j)])
    signed = Matrix(3, 3, lambda i, j: b[j - i] if j >= i else c[i - j])
    causal = Matrix(3, 3, lambda i, j: b[i - j] if j <= i else -sp.oo)
    reverse, swap = permutation([2, 1, 0]), permutation([1, 0, 2])
    tex = r"\operatorname{Attention}(PX) - P\operatorname{Attention}(X)"

    def gap(P: Matrix, bias: Matrix) -> Matrix:
        return attend(P * X, one, one, one, bias=bias) - P * attend(X, one, one, one, bias=bias)

    return Proof(
        r"A bias in the distance $|i - j|$ cannot see a reversal.",
        (
            let(r"Three tokens, one bias for each distance.", "B", B),
            equal(
                r"Reversal keeps every distance: moving rows and columns gives $B$ back.",
                r"PBP^\top",
                reverse * B * reverse.T,
                B,
            ),
            differ(
                r"Another order does not keep them all: let tokens 1 and 2 change places.",
                r"PBP^\top",
                swap * B * swap.T,
                B,
            ),
            differ(r"That order the layer notices.", tex, gap(swap, B), zeros(3, 1)),
            differ(
                r"A bias in the signed step $j - i$ notices the reversal,",
                tex,
                gap(reverse, signed),
                zeros(3, 1),
            ),
            differ(
                r"and so does the bias $B$ under a causal mask.",
                tex,
                gap(reverse, causal),
                zeros(3, 1),
            ),
            equal(
                r"With $B$ alone a reversed input reverses the output, and nothing else happens.",
                tex,
                gap(reverse, B),
                zeros(3, 1),
            ),
        ),
    )


def sinusoid_rotation() -> Proof:
    """Prove that a fixed offset turns each sine–cosine pair by an angle of its own."""
    p, k, theta = sp.symbols("p k theta", real=True)
    turn = rotation(k * theta)

    def pair(place: sp.Expr) -> Matrix:
        return row(sin(place * theta), cos(place * theta))

    return Proof(
        r"To move a sinusoidal position by $k$ is to turn each pair by $k\theta$, wherever it "
        r"stands.",
        (
            let(r"One pair, with its frequency $\theta$.", "p(t)", pair(Symbol("t", real=True))),
            let(r"A rotation by $k\theta$: the place does not occur in it.", "R_k", turn),
            equal(
                r"Its transpose undoes it, so lengths and angles are kept.",
                r"R_k R_k^\top",
                turn * turn.T,
                eye(2),
            ),
            equal(
                r"The product of two rows is the cosine of a difference: they compare by their "
                r"distance alone.",
                r"p(t) \cdot p(t + k)",
                pair(p).dot(pair(p + k)),
                cos(k * theta),
            ),
            equal(
                r"The addition theorems of sine and cosine, written as one product.",
                r"p(t + k) - p(t) R_k",
                pair(p + k) - pair(p) * turn,
                zeros(1, 2),
            ),
        ),
    )


def rope_offset() -> Proof:
    """Prove that a RoPE score depends on m − n only, and that lengths are kept."""
    m, n, t, theta, phi = sp.symbols("m n t theta phi", real=True)
    q, k = symbols("q", 2).T, symbols("k", 2).T
    cosines, sines = diag(cos(m * theta), cos(m * phi)), diag(sin(m * theta), sin(m * phi))
    half = Matrix(sp.BlockMatrix([[cosines, -sines], [sines, cosines]]))
    relabel = permutation([0, 2, 1, 3])

    def score(at_m: sp.Expr, at_n: sp.Expr) -> sp.Expr:
        return (rotation(at_m * theta) * q).dot(rotation(at_n * theta) * k)

    return Proof(
        r"With RoPE the score of a query at $m$ and a key at $n$ depends on $m - n$ only.",
        (
            let(
                r"One pair: the query is turned by $m\theta$, the key by $n\theta$.",
                "R_m",
                rotation(m * theta),
            ),
            equal(
                r"A turn keeps lengths.",
                r"\lVert R_m \mathbf{q}\rVert^2",
                score(m, m).subs(stand_for(k, q)),
                q.dot(q),
            ),
            equal(
                r"To turn back by $m\theta$ and on by $n\theta$ is to turn by $(n - m)\theta$.",
                r"R_m^\top R_n - R_{n-m}",
                rotation(m * theta).T * rotation(n * theta) - rotation((n - m) * theta),
                zeros(2, 2),
            ),
            differ(
                r"The score does change with one of the places,",
                r"\partial/\partial m\; (R_m\mathbf{q})\cdot(R_n\mathbf{k})",
                sp.diff(score(m, n), m),
                0,
            ),
            equal(
                r"but not when both move by $t$.",
                r"\partial/\partial t\; (R_{m+t}\,\mathbf{q})\cdot(R_{n+t}\,\mathbf{k})",
                sp.diff(score(m + t, n + t), t),
                0,
            ),
            equal(
                r"The pairing *half* is the pairing *interleaved* with its coordinates "
                r"relabelled, which no dot product notices (two pairs, angles $\theta$ and "
                r"$\phi$).",
                r"P R_{\mathrm{half}} P^\top",
                relabel * half * relabel.T,
                diag(rotation(m * theta), rotation(m * phi)),
                right_tex=r"R_{\mathrm{interleaved}}",
            ),
            equal(
                r"All pairs add up, so the whole score is a function of $n - m$.",
                r"(R_m\mathbf{q})\cdot(R_n\mathbf{k})",
                score(m, n),
                q.dot(rotation((n - m) * theta) * k),
                right_tex=r"\mathbf{q}\cdot(R_{n-m}\,\mathbf{k})",
            ),
        ),
    )
