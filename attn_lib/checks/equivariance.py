"""Checks of the exercises of chapter 4, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.checks.engine import Case, Mistake, Report, check_function, random_inputs

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
