"""Proofs of chapter 12: what cheaper attention still computes, and what it cannot."""

import sympy as sp
from sympy import Matrix, Rational, Symbol, diag, exp, eye, ones, zeros

from attn_lib.proofs.steps import Proof, at_least, differ, equal, let, symbols

__all__ = [
    "delta_writes",
    "fading_sums",
    "latent_keys",
    "no_finite_features",
    "running_sums",
    "state_overflows",
]


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


def state_overflows() -> Proof:
    """Prove how much of more values than a state has rows is lost at best."""
    K, V = Matrix([[1, 0], [0, 1], [1, 1]]), symbols("v", 3, 1)
    best = (K.T * K).inv() * K.T * V
    missing, kept = V - K * best, K * (K.T * K).inv() * K.T
    Z = symbols("z", 2, 1)
    off = (V - K * Z).dot(V - K * Z)
    return Proof(
        r"A state of $r$ rows answers $n$ keys exactly only if their values fit; of independent "
        r"values of variance 1 it misses at least $n - r$.",
        (
            let(r"Three keys for a state of two rows, each with a number as its value.", "K", K),
            equal(
                r"Where the error's derivative vanishes, no state comes nearer.",
                r"\partial\, |V - K Z|^2 / \partial Z",
                Matrix([sp.diff(off, z) for z in Z]),
                -2 * K.T * (V - K * Z),
                right_tex=r"-2 K^\top (V - K Z)",
            ),
            equal(
                r"That is the case at $Z = (K^\top K)^{-1} K^\top V$.",
                r"K^\top (V - K Z)",
                K.T * missing,
                zeros(2, 1),
            ),
            equal(
                r"Only the values with $v_3 = v_1 + v_2$ are answered exactly: the third key is "
                r"the sum of the others, so its answer is the sum of theirs.",
                "V - K Z",
                missing,
                (V[0] + V[1] - V[2]) / 3 * Matrix([1, 1, -1]),
            ),
            equal(
                r"For independent values of variance 1 the mean squared error is the trace of what "
                r"projects them away: $n - r$.",
                r"\operatorname{tr}(I - K (K^\top K)^{-1} K^\top)",
                (eye(3) - kept).trace(),
                sp.Integer(3) - 2,
                right_tex="3 - 2",
            ),
        ),
    )


def fading_sums() -> Proof:
    """Prove that a state which fades is a product masked by what is left of each token."""
    Q, K = symbols("q", 3, 2), symbols("k", 3, 2)
    V, g = symbols("v", 3, 1), symbols("gamma", 3, positive=True)
    states, Z = [], zeros(2, 1)
    for i in range(3):
        Z = (g[i] * Z + K[i, :].T * V[i, :]).applyfunc(sp.expand)
        states.append(Z)
    left = Matrix([[1, 0, 0], [g[1], 1, 0], [g[1] * g[2], g[2], 1]])
    return Proof(
        r"Reading a state that fades at each token is a masked product, with the "
        r"product of all gates since token $j$ in the mask.",
        (
            let(r"What is left of token $j$ when token $i$ reads.", "D", left),
            equal(
                r"After three tokens the state holds each of them, faded by all gates since.",
                r"Z_3",
                states[2],
                sum((left[2, j] * K[j, :].T * V[j, :] for j in range(3)), zeros(2, 1)),
                right_tex=r"\sum_j D_{3j} k_j^\top v_j",
            ),
            equal(
                r"So reading token by token and the masked product give the same rows.",
                r"[q_i Z_i]",
                Matrix.vstack(*(Q[i, :] * states[i] for i in range(3))),
                (Q * K.T).multiply_elementwise(left) * V,
                right_tex=r"(Q K^\top \circ D) V",
            ),
        ),
    )


def delta_writes() -> Proof:
    """Prove what the delta rule changes: the answer to its own key, and not that to others."""
    Z, v, beta = symbols("z", 2, 1), Symbol("v"), Symbol("beta")
    a, b = Rational(3, 5), Rational(4, 5)
    k, across = Matrix([[a, b]]), Matrix([[-b, a]])
    W = symbols("w", 2, 1)
    new = Z + beta * k.T * (v - (k * Z)[0])
    off = (v - (k * W)[0]) ** 2 / 2
    slope = Matrix([sp.diff(off, w) for w in W]).subs(dict(zip(W, Z, strict=True)))
    return Proof(
        r"With a key of length 1 the delta rule moves the answer to that key by the share $\beta$ "
        r"towards the new value, and leaves alone what keys at right angles read.",
        (
            let(r"A key of length 1.", "k", k),
            equal(
                r"The rule is a step against the slope of the squared error of its own answer.",
                r"Z + \beta k^\top (v - k Z)",
                new,
                Z - beta * slope,
                right_tex=r"Z - \beta\, \partial_Z |v - k Z|^2 / 2",
            ),
            equal(
                r"A key at right angles reads what it read.",
                r"k_\perp Z'",
                (across * new)[0],
                (across * Z)[0],
                right_tex=r"k_\perp Z",
            ),
            equal(
                r"The key itself reads a mixture of old and new, the new value alone at "
                r"$\beta = 1$.",
                r"k Z'",
                (k * new)[0],
                (1 - beta) * (k * Z)[0] + beta * v,
                right_tex=r"(1 - \beta)\, k Z + \beta v",
            ),
        ),
    )


def latent_keys() -> Proof:
    """Prove that keys and values made of a short row need never be made."""
    C, q = symbols("c", 3, 2), symbols("q", 1, 3)
    up_k, up_v, a = symbols("m", 2, 3), symbols("w", 2, 3), symbols("a", 1, 3)
    return Proof(
        r"If keys and values are made of shorter rows $C$, queries can be compared with $C$ "
        r"itself, and mix $C$ itself.",
        (
            let(r"A row of two numbers is kept for each of three tokens.", "C", C),
            equal(
                r"The map that would make keys can be given to the query,",
                r"q (C U_K)^\top",
                q * (C * up_k).T,
                (q * up_k.T) * C.T,
                right_tex=r"(q U_K^\top) C^\top",
            ),
            equal(
                r"and the map that would make values to the output.",
                r"a (C U_V)",
                a * (C * up_v),
                (a * C) * up_v,
                right_tex=r"(a C) U_V",
            ),
        ),
    )
