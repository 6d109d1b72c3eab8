"""Proofs of chapter 13: what weights explain."""

import sympy as sp
from sympy import Matrix, Symbol, ones, zeros

from attn_lib.proofs.steps import Proof, differ, equal, let, row, softmax, symbols

__all__ = [
    "cut_key",
    "other_weights",
]


def cut_key() -> Proof:
    """Prove what it changes to take one key away, in both ways, and what a constant changes.

    Returns
    -------
    Proof
    """
    s, v, c = symbols("s", 3), symbols("v", 3), Symbol("c", real=True)
    a, masked = softmax(*s), softmax(s[0], s[1], -sp.oo)
    shifted = v + c * ones(1, 3)

    def by_zeroing(v: Matrix) -> sp.Expr:
        return row(a[0], a[1], 0).dot(v) - a.dot(v)

    def by_masking(v: Matrix) -> sp.Expr:
        return masked.dot(v) - a.dot(v)

    return Proof(
        r"What it changes to cut a key: by its value if its weight is set to 0, by its distance "
        r"from the rest if it is masked; and only the second survives a constant.",
        (
            equal(
                r"One key's weight and value, and the others' shares among themselves, make the "
                r"output.",
                r"\mathbf{a} \cdot \mathbf{v}",
                a.dot(v),
                a[2] * v[2] + (1 - a[2]) * masked.dot(v),
                right_tex=r"a_3 v_3 + (1 - a_3)\, o'",
            ),
            equal(
                r"Set its weight to 0 and leave the others: its term is missing.",
                r"a_1 v_1 + a_2 v_2 - o",
                by_zeroing(v),
                -a[2] * v[2],
                right_tex=r"-a_3 v_3",
            ),
            equal(
                r"Mask it, and the others share out its weight.",
                r"o' - o",
                by_masking(v),
                a[2] * (masked.dot(v) - v[2]),
                right_tex=r"a_3 (o' - v_3)",
            ),
            equal(
                r"Add a constant to all values: the output has it too, whatever the weights are, "
                r"so a later bias can take it off again.",
                r"\mathbf{a} \cdot (\mathbf{v} + c) - c",
                a.dot(shifted) - c,
                a.dot(v),
                right_tex=r"\mathbf{a} \cdot \mathbf{v}",
            ),
            differ(
                r"The model is the same, yet the term of the key is another one:",
                r"a_3 (v_3 + c)",
                a[2] * shifted[2],
                a[2] * v[2],
                right_tex=r"a_3 v_3",
            ),
            equal(
                r"What masking changes does not see the constant.",
                r"(o' - o)(\mathbf{v} + c)",
                by_masking(shifted),
                by_masking(v),
                right_tex=r"o' - o",
            ),
        ),
    )


def other_weights() -> Proof:
    """Prove when two rows of weights give one output, here for values in two dimensions.

    Returns
    -------
    Proof
    """
    V, a, t = symbols("v", 4, 2), symbols("a", 4, positive=True), Symbol("t", real=True)
    M = Matrix.hstack(V, ones(4, 1))
    three, a3 = M[:3, :], a[:, :3]
    minors = [M.extract([i for i in range(4) if i != j], range(3)).det() for j in range(4)]
    z = row(*((-1) ** j * minor for j, minor in enumerate(minors)))
    return Proof(
        r"With values in two dimensions and in general position, three keys have their weights "
        r"fixed by the output; four keys have other weights with the same output.",
        (
            let(
                r"Three keys first. The output and the sum of the weights are the weights times "
                r"this matrix.",
                r"[V, \mathbf{1}]",
                three,
            ),
            differ(
                r"Its determinant is not 0, unless the three values lie on one line.",
                r"\det [V, \mathbf{1}]",
                three.det(),
                0,
            ),
            equal(
                r"Then it has an inverse, which gives the weights back from the output.",
                r"[\mathbf{a} V, \mathbf{a} \mathbf{1}] [V, \mathbf{1}]^{-1}",
                (a3 * three) * three.inv(),
                a3,
                right_tex=r"\mathbf{a}",
            ),
            let(
                r"Now four keys: of each key, the determinant of the three others, with "
                r"alternating signs. The first of them:",
                r"z_1",
                z[0],
            ),
            differ(
                r"These four numbers are not all 0 in general.",
                r"\mathbf{z}",
                z,
                zeros(1, 4),
            ),
            equal(
                r"But they mix the values to nothing, and they sum to 0.",
                r"\mathbf{z} [V, \mathbf{1}]",
                z * M,
                zeros(1, 3),
            ),
            equal(
                r"So any multiple of them can be added to the weights: same output, same sum. If "
                r"the weights are positive and the multiple is small, they stay positive.",
                r"(\mathbf{a} + t \mathbf{z}) [V, \mathbf{1}]",
                (a + t * z) * M,
                a * M,
                right_tex=r"[\mathbf{a} V, \mathbf{a} \mathbf{1}]",
            ),
        ),
    )
