"""Proofs of chapter 10: gradients."""

import sympy as sp
from sympy import Matrix, Symbol, ones, sqrt, zeros

from attn_lib.proofs.steps import Proof, differ, equal, let, softmax_rows, stand_for, symbols

__all__ = [
    "backward_pass",
    "loss_to_output",
    "nothing_to_match",
    "query_gradient",
]


def query_gradient() -> Proof:
    """Prove ∇_q o = Cov_a(v, k) / √d_k, the factor included."""
    q, K, v = symbols("q", 2), symbols("k", 3, 2), symbols("v", 3)
    a, root = symbols("a", 3, positive=True), sqrt(sp.Integer(2))
    weights = softmax_rows(q * K.T / root)
    gradient = Matrix([weights.dot(v)]).jacobian(q)
    covariance = sum((a[j] * v[j] * K[j, :] for j in range(3)), zeros(1, 2)) - a.dot(v) * a * K
    where = stand_for(a, weights)
    tex = r"\operatorname{Cov}_a(v, \mathbf{k})"
    return Proof(
        r"The gradient of an output by its query is the covariance of values and keys under the "
        r"weights, divided by $\sqrt{d_k}$.",
        (
            let(r"One query, three keys, $d_k$ = 2, one column of values.", "o", a.dot(v)),
            equal(
                r"A score changes by $\mathbf{k}_j / \sqrt{d_k}$, so a weight by its key less "
                r"the average key.",
                r"\nabla_q a_1",
                weights.jacobian(q)[0, :],
                a[0] * (K[0, :] - a * K) / root,
                right_tex=r"a_1(\mathbf{k}_1 - \sum_j a_j\mathbf{k}_j) / \sqrt{d_k}",
                where=where,
            ),
            let(
                r"A covariance is the mean of the products less the product of the means.",
                tex,
                covariance,
                r"\sum_j a_j v_j \mathbf{k}_j - o \sum_j a_j\mathbf{k}_j",
            ),
            differ(
                r"Without the factor it is not the gradient.",
                r"\nabla_q o",
                gradient,
                covariance,
                right_tex=tex,
                where=where,
            ),
            equal(
                r"Multiply each change of weight by its value and sum.",
                r"\nabla_q o",
                gradient,
                covariance / root,
                right_tex=tex + r" / \sqrt{d_k}",
                where=where,
            ),
        ),
    )


def loss_to_output() -> Proof:
    """Prove how an error in the probabilities becomes the pull on a layer's output."""
    z, o, x = symbols("z", 3), symbols("o", 2), symbols("x", 2)
    U, W = symbols("u", 2, 3), symbols("w", 2, 2)
    p, wanted = symbols("p", 3, positive=True), Matrix([[0, 0, 1]])
    logits = (x + o * W) * U
    error = p - wanted

    def loss(logits: Matrix) -> Matrix:
        return Matrix([-sp.log(softmax_rows(logits)[2])])

    where = stand_for(p, softmax_rows(logits))
    return Proof(
        r"The loss pulls on the output of a layer with the error of the probabilities, carried "
        r"back through the read-out $U$ and the map $W_O$.",
        (
            let(
                r"Three tokens, of which the third is right; $\mathbf{p}$ is the softmax of the "
                r"logits $\mathbf{z}$.",
                "L",
                loss(z)[0],
                r"-\ln p_3",
            ),
            equal(
                r"Each logit is pulled by the probability given less the probability wanted.",
                r"\partial L / \partial \mathbf{z}",
                loss(z).jacobian(z),
                error,
                right_tex=r"\mathbf{p} - \mathbf{e}_3",
                where=stand_for(p, softmax_rows(z)),
            ),
            equal(
                r"The logits are $(\mathbf{x} + \mathbf{o}W_O)\,U$, so the output of the layer "
                r"gets it through both transposes.",
                r"\partial L / \partial \mathbf{o}",
                loss(logits).jacobian(o),
                error * U.T * W.T,
                right_tex=r"(\mathbf{p} - \mathbf{e}_3)\,U^\top W_O^\top",
                where=where,
            ),
            equal(
                r"And the stream gets it past the layer, through the read-out alone.",
                r"\partial L / \partial \mathbf{x}",
                loss(logits).jacobian(x),
                error * U.T,
                right_tex=r"(\mathbf{p} - \mathbf{e}_3)\,U^\top",
                where=where,
            ),
        ),
    )


def _by(value: sp.Expr, M: Matrix) -> Matrix:
    """Differentiate one number by each entry of a matrix."""
    return Matrix(*M.shape, lambda i, j: sp.diff(value, M[i, j]))


def _softmax_back(A: Matrix, dA: Matrix) -> Matrix:
    """Go back through the softmax of each row: A ⊙ (dA − row average)."""
    return Matrix(*A.shape, lambda i, j: A[i, j] * (dA[i, j] - A[i, :].dot(dA[i, :])))


def backward_pass() -> Proof:
    """Prove the backward pass of attention, matrix by matrix, for two queries and two keys."""
    Q, K, V = symbols("q", 2, 2), symbols("k", 2, 2), symbols("v", 2, 1)
    X, W, S, G = symbols("x", 2, 2), symbols("w", 2, 2), symbols("s", 2, 2), symbols("g", 2, 1)
    A, root = symbols("a", 2, 2, positive=True), sqrt(sp.Integer(2))
    dS, queries = _softmax_back(A, G * V.T), X * W

    def loss(scores: Matrix) -> sp.Expr:
        return G.dot(softmax_rows(scores) * V)

    def weights(scores: Matrix) -> dict:
        return stand_for(A, softmax_rows(scores))

    return Proof(
        r"The backward pass of attention (two queries, two keys, $d_k$ = 2, $d_v$ = 1).",
        (
            let(
                r"The loss pulls on the outputs: row $i$ of $G = \partial L / \partial O$ is the "
                r"pull $\mathbf{g}_i$. To first order the loss changes as this sum does.",
                "L",
                loss(S),
                r"\sum_i \mathbf{g}_i \cdot \mathbf{o}_i",
            ),
            equal(
                r"A value is pulled by every output that reads it, as much as it is read.",
                r"\partial L / \partial V",
                _by(loss(S), V),
                A.T * G,
                right_tex=r"A^\top G",
                where=weights(S),
            ),
            equal(
                r"A score raises its own weight at the expense of its row.",
                r"\partial L / \partial s_{11}",
                sp.diff(loss(S), S[0, 0]),
                dS[0, 0],
                right_tex=r"a_{11} (\mathbf{g}_1 \cdot \mathbf{v}_1"
                r" - \mathbf{g}_1 \cdot \mathbf{o}_1)",
                where=weights(S),
            ),
            equal(
                r"So each row of this gradient sums to 0: softmax only shares out.",
                r"(\partial L / \partial S)\,\mathbf{1}",
                _by(loss(S), S) * ones(2, 1),
                zeros(2, 1),
            ),
            equal(
                r"A query collects keys, and the factor of the scores comes back.",
                r"\partial L / \partial Q",
                _by(loss(Q * K.T / root), Q),
                dS * K / root,
                right_tex=r"(\partial L / \partial S)\,K / \sqrt{d_k}",
                where=weights(Q * K.T / root),
            ),
            equal(
                r"A key collects the queries that look at it: the transpose.",
                r"\partial L / \partial K",
                _by(loss(Q * K.T / root), K),
                dS.T * Q / root,
                right_tex=r"(\partial L / \partial S)^\top Q / \sqrt{d_k}",
                where=weights(Q * K.T / root),
            ),
            equal(
                r"One map makes all queries, $Q = XW_Q$, so it collects from all rows.",
                r"\partial L / \partial W_Q",
                _by(loss(queries * K.T / root), W),
                X.T * dS * K / root,
                right_tex=r"X^\top\, \partial L / \partial Q",
                where=weights(queries * K.T / root),
            ),
        ),
    )


def nothing_to_match() -> Proof:
    """Prove when queries and keys get no gradient, and that values get theirs all the same."""
    Q, K, V = symbols("q", 2, 2), symbols("k", 3, 2), symbols("v", 3, 1)
    S, G, v = symbols("s", 2, 3), symbols("g", 2, 1), Symbol("v", real=True)
    decided = Matrix([[1, 0, 0], [0, 0, 1]])

    def loss(scores: Matrix, values: Matrix = V) -> sp.Expr:
        return G.dot(softmax_rows(scores) * values)

    whole = loss(Q * K.T / sqrt(sp.Integer(2)))
    no_queries, no_keys = (stand_for(M, zeros(*M.shape)) for M in (Q, K))
    return Proof(
        "Where values are equal, or a row is decided, matching learns nothing; values still do.",
        (
            equal(
                r"If all values are one $\mathbf{v}$, it does not matter what is read: no score "
                r"is asked to move, whatever the weights.",
                r"\partial L / \partial S",
                _by(loss(S, v * ones(3, 1)), S),
                zeros(2, 3),
            ),
            equal(
                r"If the whole weight of each row is on one key, no score is asked to move either.",
                r"\partial L / \partial S",
                _softmax_back(decided, G * V.T),
                zeros(2, 3),
            ),
            equal(
                r"If all queries are zero, the keys get no gradient,",
                r"\partial L / \partial K",
                _by(whole, K).subs(no_queries),
                zeros(3, 2),
            ),
            differ(
                r"but the queries get one from the keys,",
                r"\partial L / \partial Q",
                _by(whole, Q).subs(no_queries),
                zeros(2, 2),
            ),
            equal(
                r"unless the keys are zero too: then both stay where they are.",
                r"\partial L / \partial Q",
                _by(whole, Q).subs(no_queries | no_keys),
                zeros(2, 2),
            ),
            equal(
                r"The values learn meanwhile: with even weights each gets its share of all pulls.",
                r"\partial L / \partial \mathbf{v}_1",
                sp.diff(whole, V[0]).subs(no_queries),
                (G[0] + G[1]) / 3,
                right_tex=r"(\mathbf{g}_1 + \mathbf{g}_2) / 3",
            ),
        ),
    )
