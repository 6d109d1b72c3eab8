"""Checks of the exercises of chapter 14, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.checks.engine import Case, Mistake, Report, check_function, random_inputs
from attn_lib.dot_product import softmax

__all__ = ["check_cut_key", "check_offset_score"]


def _without(a, s):
    return np.where(np.arange(len(a)) == s, 0.0, a)


CUT_KEY_MISTAKES = (
    Mistake(
        "not renormalised",
        "you take the key's term off (or set its value to 0) and leave the other weights as they "
        "are. A masked key's weight is shared out among the others.",
        lambda a, V, s: _without(a, s) @ V - a @ V,
    ),
    Mistake(
        "sign",
        "your change points the other way: new output minus old one.",
        lambda a, V, s: a @ V - _without(a, s) / _without(a, s).sum() @ V,
    ),
    Mistake(
        "the new output",
        "you give the output after the cut. The change is that minus the output before.",
        lambda a, V, s: _without(a, s) / _without(a, s).sum() @ V,
    ),
    Mistake(
        "score set to 0",
        "you put 0 in place of the key's score. A score of 0 has weight e⁰: a masked key has none.",
        lambda a, V, s: softmax(np.where(np.arange(len(a)) == s, 0.0, np.log(a))) @ V - a @ V,
    ),
    Mistake(
        "softmax of weights",
        "you apply softmax to weights. They are positive already: divide by their sum.",
        lambda a, V, s: softmax(np.where(np.arange(len(a)) == s, -np.inf, a)) @ V - a @ V,
    ),
)


def check_cut_key(function: Callable) -> Report:
    """Check ``f(a, V, s)``: how the output of one query changes when key s is masked."""

    def right(a, V, s):
        rest = np.where(np.arange(len(a)) == s, 0.0, a)
        return rest / rest.sum() @ V - a @ V

    def case(seed, m, d, s, note=""):
        drawn = random_inputs(seed, a=(m,), V=(m, d))
        return Case(drawn | {"a": softmax(drawn["a"]), "s": s}, note)

    return check_function(
        function,
        right=right,
        cases=[
            case(0, 5, 3, s=1),
            case(1, 4, 2, s=3, note="the last key"),
            case(2, 6, 1, s=0, note="values of one coordinate"),
        ],
        mistakes=CUT_KEY_MISTAKES,
    )


def _diagonal(A, offset):
    return A.diagonal(offset, axis1=-2, axis2=-1)


OFFSET_MISTAKES = (
    Mistake(
        "rows and columns exchanged",
        "your offset counts the wrong way: rows are queries and columns are keys, so a negative "
        "offset is a key *before* the query.",
        lambda A, offset: _diagonal(A, -offset).mean(axis=-1),
    ),
    Mistake(
        "all queries counted",
        "you divide by n. Some queries have no key at that offset: count those that have.",
        lambda A, offset: _diagonal(A, offset).sum(axis=-1) / A.shape[-1],
    ),
    Mistake(
        "round the end",
        "your first queries read the last keys: an index below 0 counts from the end. There is no "
        "such key; leave those queries out.",
        lambda A, offset: np.roll(A, -offset, axis=-1).diagonal(axis1=-2, axis2=-1).mean(axis=-1),
    ),
    Mistake(
        "heads averaged",
        "you give one number for all heads. A mean hides the one head that does it: keep them "
        "apart.",
        lambda A, offset: _diagonal(A, offset).mean(),
    ),
    Mistake(
        "diagonal over heads",
        "you take the diagonal over the first two axes, of which one is the heads: name the last "
        "two.",
        lambda A, offset: A.diagonal(offset).mean(axis=-1),
    ),
    Mistake(
        "largest weight",
        "you take the largest weight at that offset. One query that reads there makes no head "
        "that does: average over the queries.",
        lambda A, offset: _diagonal(A, offset).max(axis=-1),
    ),
)


def check_offset_score(function: Callable) -> Report:
    """Check ``f(A, offset)``: each head's mean weight on the key `offset` places on, (h,)."""

    def right(A, offset):
        return A.diagonal(offset, axis1=-2, axis2=-1).mean(axis=-1)

    def case(seed, h, n, offset, note=""):
        A = softmax(2 * random_inputs(seed, A=(h, n, n))["A"])
        return Case({"A": A, "offset": offset}, note)

    return check_function(
        function,
        right=right,
        cases=[
            case(0, 4, 6, -2),
            case(1, 3, 5, 1, note="a key after the query"),
            case(2, 2, 4, 0, note="the query's own key"),
        ],
        mistakes=OFFSET_MISTAKES,
    )
