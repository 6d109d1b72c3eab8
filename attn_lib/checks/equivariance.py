"""Checks of the exercises of chapter 4, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.checks.engine import (
    Case,
    Mistake,
    Report,
    by_hand,
    check_function,
    random_inputs,
)
from attn_lib.dot_product import softmax

__all__ = ["check_moved_scores", "check_order_gap"]


_WAY_BACK = (
    "you move the wrong way round. Place i takes the token of place rho[i], so row i is row "
    "`[rho]` of the old; `argsort(rho)`, or Pᵀ in place of P, puts things back. A reversal is "
    "its own inverse and cannot tell."
)


def _orders() -> list[np.ndarray]:
    """Two permutations that are not their own inverse: a reversal would hide a wrong way round."""
    return [np.array([2, 0, 1, 4, 3]), np.array([1, 3, 0, 2])]


MOVED_SCORES_MISTAKES = (
    Mistake(
        "columns not moved",
        "you move the rows only. The keys stand in a new order too: columns move as rows do.",
        lambda S, rho: S[rho],
    ),
    Mistake(
        "rows not moved",
        "you move the columns only. The queries stand in a new order too.",
        lambda S, rho: S[:, rho],
    ),
    Mistake("wrong way round", _WAY_BACK, lambda S, rho: S[np.argsort(rho)][:, np.argsort(rho)]),
    Mistake(
        "P on both sides",
        "the factor on the right must be Pᵀ, not P: with P the rows move one way and the columns "
        "the other.",
        lambda S, rho: S[rho][:, np.argsort(rho)],
    ),
    Mistake(
        "P on both sides",
        "the factor on the left must be P, not Pᵀ: now the rows move one way and the columns the "
        "other.",
        lambda S, rho: S[np.argsort(rho)][:, rho],
    ),
    Mistake(
        "transposed",
        "rows and columns are exchanged: rows are queries, columns are keys.",
        lambda S, rho: S.T[rho][:, rho],
    ),
    Mistake(
        "pairs picked",
        "`S[rho, rho]` picks n single entries, one for each pair (rho[i], rho[i]). Index twice: "
        "`S[rho][:, rho]`.",
        lambda S, rho: S[rho, rho],
    ),
)


def check_moved_scores(function: Callable) -> Report:
    """Check ``f(S, rho)``, which gives P S Pᵀ, where row i of P X is row rho[i] of X."""
    return check_function(
        function,
        right=lambda S, rho: S[rho][:, rho],
        cases=[
            Case(random_inputs(seed, S=(len(rho), len(rho))) | {"rho": rho})
            for seed, rho in enumerate(_orders())
        ],
        mistakes=MOVED_SCORES_MISTAKES,
        returns=("scores",),
    )


ORDER_GAP_MISTAKES = (
    Mistake(
        "invariance tested",
        "you compare O_moved with O itself. Outputs move with their tokens: compare with P O.",
        lambda O, O_moved, rho: np.linalg.norm(O_moved - O),
    ),
    Mistake(
        "wrong way round",
        _WAY_BACK,
        lambda O, O_moved, rho: np.linalg.norm(O_moved - O[np.argsort(rho)]),
    ),
    Mistake(
        "root forgotten",
        "you give the sum of squares. The root is missing.",
        lambda O, O_moved, rho: ((O_moved - O[rho]) ** 2).sum(),
    ),
    Mistake(
        "signs cancel",
        "you add up differences with their signs, and they may cancel: a gap of 0 would prove "
        "nothing. Square them first.",
        lambda O, O_moved, rho: (O_moved - O[rho]).sum(),
    ),
    Mistake(
        "largest entry",
        "you give the largest difference. That is a good test too, but the exercise asks for the "
        "root of the sum of squares.",
        lambda O, O_moved, rho: np.abs(O_moved - O[rho]).max(),
    ),
)


def check_order_gap(function: Callable) -> Report:
    """Check ``f(O, O_moved, rho)``, the size ‖O_moved − P O‖ of what a layer noticed."""
    drawn = [
        random_inputs(seed, O=(len(rho), 3), O_moved=(len(rho), 3)) | {"rho": rho}
        for seed, rho in enumerate(_orders())
    ]
    blind = drawn[0] | {"O_moved": drawn[0]["O"][drawn[0]["rho"]]}
    return check_function(
        function,
        right=lambda O, O_moved, rho: np.linalg.norm(O_moved - O[rho]),
        cases=[*map(Case, drawn), Case(blind, "of a layer that is equivariant")],
        mistakes=ORDER_GAP_MISTAKES,
        returns=("gap",),
    )


def _of_man(query: float = -1.0) -> np.ndarray:
    """Give the weights for man, bites, dog, whose keys are 2, 0, 1."""
    return softmax(query * np.array([2.0, 0.0, 1.0]))


def _hand_mistakes() -> dict[str, np.ndarray]:
    powers = np.exp(-np.array([2.0, 0.0, 1.0]))
    return {
        "the weights are right, but in the order of the first sentence.": _of_man()[::-1],
        "you used the query 1. That of *man* is −1.": _of_man(1.0),
        "divide these powers by their sum: weights sum to one.": powers,
        "these are the scores. Raise e to each and divide by the sum.": [-2, 0, -1],
        "you shared out the scores themselves. Raise e to each first.": [2 / 3, 0, 1 / 3],
        "a weight does not depend on the query alone: its key decides too.": [1 / 3, 1 / 3, 1 / 3],
    }


_S3 = np.arange(1.0, 10).reshape(3, 3)
_CYCLE = np.array([1, 2, 0])


def _matrix_mistakes() -> dict[str, np.ndarray]:
    back = np.argsort(_CYCLE)
    return {
        "you moved the rows. The keys move too: columns as well.": _S3[_CYCLE],
        "you moved the columns only. The queries move too.": _S3[:, _CYCLE],
        "that is PᵀSP, the way back.": _S3[back][:, back],
        "that is PSP: with P on the right the columns move the other way.": _S3[_CYCLE][:, back],
        "that is PᵀSPᵀ: with Pᵀ on the left the rows move the other way.": _S3[back][:, _CYCLE],
        "that is P itself, the answer to (a).": np.eye(3)[_CYCLE],
        "nothing has moved: this is S.": _S3,
    }


DOUBLE_MISTAKES = {
    "with every token doubled each copy has half the weight: the weights of a query sum to one.": [
        5, 10, 16 / 3,
    ],
    "with the first token doubled the weights sum to more than one: divide by the new sum.": [
        5, 5, 8,
    ],
    "the two copies of the first token do not share the weight of one: each has the same score as "
    "before, and the others lose.": [5, 5, 5],
    "with every token doubled there are two copies of each to add up.": [5, 2.5, 16 / 3],
    "you left the sum of the weights as it was in (b) and (c). Divide by the new sum.": [5, 10, 8],
    "you took the mean of the values. The weights are not even.": [14 / 3, 14 / 3, 5],
}  # fmt: skip

NOTICED = [[0, 1, 1, 0, 0], [0, 1, 1, 1, 1]]  # a … e after one and after two layers
NOTICED_MISTAKES = {  # what explains little comes first: 0 and 1 leave no room to tell more apart
    "in the first layer *d* and *e* read the same tokens as before, in another order: which "
    "tokens stand before them counts, not their order.": [[0, 1, 1, 1, 1], [0, 1, 1, 1, 1]],
    "the second layer reads what the first has written, and *b* and *c* are different there.": [
        [0, 1, 1, 0, 0], [0, 1, 1, 0, 0],
    ],
    "both of the exchanged tokens change: one has gained a token to read, the other has lost "
    "one.": [[0, 1, 0, 0, 0], [0, 1, 0, 1, 1]],
    "*a* stands first and reads itself alone, in every layer.": [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]],
    "a causal mask is not equivariant: *b* can read *c* now, and *c* no longer *b*.": [
        [0, 0, 0, 0, 0], [0, 0, 0, 0, 0],
    ],
    "these are the outputs that stay. Write 1 for a change.": [[1, 0, 0, 1, 1], [1, 0, 0, 0, 0]],
}  # fmt: skip

EXERCISES = {
    "ex-equivariance-hand": by_hand(_of_man, mistakes=_hand_mistakes),
    "ex-equivariance-matrix": by_hand(_S3[_CYCLE][:, _CYCLE], mistakes=_matrix_mistakes),
    "ex-equivariance-double": by_hand([5, 5, 16 / 3], mistakes=DOUBLE_MISTAKES, tol=0.05),
    "ex-equivariance-causal": by_hand(NOTICED, mistakes=NOTICED_MISTAKES),
    "ex-equivariance-scores": check_moved_scores,
    "ex-equivariance-gap": check_order_gap,
}
