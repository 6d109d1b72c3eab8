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
    """Prove that a RoPE score depends on s − t only, and that lengths are kept."""
    s, t, c, theta, phi = sp.symbols("s t c theta phi", real=True)
    q, k = symbols("q", 2), symbols("k", 2)
    cosines, sines = diag(cos(s * theta), cos(s * phi)), diag(sin(s * theta), sin(s * phi))
    half = Matrix(sp.BlockMatrix([[cosines, -sines], [sines, cosines]]))
    relabel = permutation([0, 2, 1, 3])

    def score(at_s: sp.Expr, at_t: sp.Expr) -> sp.Expr:
        return (q * rotation(at_s * theta).T).dot(k * rotation(at_t * theta).T)

    return Proof(
        r"With RoPE the score of a query at $s$ and a key at $t$ depends on $s - t$ only.",
        (
            let(
                r"One pair: the query becomes $\mathbf{q}R_s^\top$, the key $\mathbf{k}R_t^\top$.",
                "R_s",
                rotation(s * theta),
            ),
            equal(
                r"A turn keeps lengths.",
                r"\lVert \mathbf{q}R_s^\top\rVert^2",
                score(s, s).subs(stand_for(k, q)),
                q.dot(q),
            ),
            equal(
                r"To turn by $s\theta$ and back by $t\theta$ is to turn by $(s - t)\theta$.",
                r"R_s^\top R_t - R_{t-s}",
                rotation(s * theta).T * rotation(t * theta) - rotation((t - s) * theta),
                zeros(2, 2),
            ),
            differ(
                r"The score does change with one of the places,",
                r"\partial/\partial s\; (\mathbf{q}R_s^\top)\cdot(\mathbf{k}R_t^\top)",
                sp.diff(score(s, t), s),
                0,
            ),
            equal(
                r"but not when both move by $c$.",
                r"\partial/\partial c\; "
                r"(\mathbf{q}R_{s+c}^\top)\cdot(\mathbf{k}R_{t+c}^\top)",
                sp.diff(score(s + c, t + c), c),
                0,
            ),
            equal(
                r"The pairing *half* is the pairing *interleaved* with its coordinates "
                r"relabelled, which no dot product notices (two pairs, angles $\theta$ and "
                r"$\phi$).",
                r"P R_{\mathrm{half}} P^\top",
                relabel * half * relabel.T,
                diag(rotation(s * theta), rotation(s * phi)),
                right_tex=r"R_{\mathrm{interleaved}}",
            ),
            equal(
                r"All pairs add up, so the whole score is a function of $t - s$.",
                r"(\mathbf{q}R_s^\top)\cdot(\mathbf{k}R_t^\top)",
                score(s, t),
                (q * rotation((t - s) * theta)).dot(k),
                right_tex=r"(\mathbf{q}R_{t-s})\cdot\,\mathbf{k}",
            ),
        ),
    )
