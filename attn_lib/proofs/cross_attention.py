"""Proofs of chapter 7: one sequence reads another."""

from itertools import permutations

import sympy as sp
from sympy import Matrix, zeros

from attn_lib.proofs.steps import (
    Proof,
    differ,
    equal,
    permutation,
    softmax_rows,
    symbols,
    two_layers,
)

__all__ = [
    "source_order",
]


def source_order() -> Proof:
    """Prove that a reader does not see the order of its source, nor one query the others.

    Returns
    -------
    Proof
    """
    X, Y, ((W_Q, W_K, W_V), _) = symbols("x", 2).T, symbols("y", 3).T, two_layers()
    every = [permutation(order) for order in permutations(range(3))]
    P, swap = every[-2], permutation([1, 0])

    def scores(reader: Matrix, source: Matrix) -> Matrix:
        return (reader * W_Q * (source * W_K).T).applyfunc(sp.expand)

    def read(reader: Matrix, source: Matrix) -> Matrix:
        return softmax_rows(scores(reader, source)) * (source * W_V)

    gaps = Matrix.hstack(*(read(X, move * Y) - read(X, Y) for move in every))
    return Proof(
        r"Cross-attention is invariant to the order of its source and equivariant to that of its "
        f"reader (2 readers, all {len(every)} permutations of 3 source rows).",
        (
            equal(
                r"Moving the rows of the source moves the columns of the scores,",
                r"Q(PK)^\top - (QK^\top)P^\top",
                scores(X, P * Y) - scores(X, Y) * P.T,
                zeros(2, 3),
            ),
            differ(
                r"so the weights are other ones:",
                r"A(X, PY)",
                softmax_rows(scores(X, P * Y)),
                softmax_rows(scores(X, Y)),
                right_tex="A(X, Y)",
            ),
            equal(
                r"Each output is made from its own reader row: the other does not occur in it.",
                r"\partial\mathbf{o}_1 / \partial\mathbf{x}_2",
                sp.diff(read(X, Y)[0], X[1]),
                0,
            ),
            equal(
                r"Hence the outputs move with the rows of the reader.",
                r"O(PX, Y) - P\,O(X, Y)",
                read(swap * X, Y) - swap * read(X, Y),
                zeros(2, 1),
            ),
            equal(
                r"The weights have moved with their values, so the sums are the same, for every "
                r"permutation of the source.",
                r"O(X, PY) - O(X, Y)",
                gaps,
                zeros(2, len(every)),
            ),
        ),
    )
