"""Checks of the exercises of chapter 13, and the known mistakes in them."""

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
from attn_lib.interventions import spearman, spearman_ceiling

__all__ = ["check_cut_edge", "check_edge_norms"]


def _lengths(M):
    return np.sqrt((M**2).sum(axis=-1))


EDGE_NORM_MISTAKES = (
    Mistake(
        "the weights alone",
        "these are the weights. How long is the value that each of them carries?",
        lambda A, V, W_O: np.array(A),
    ),
    Mistake(
        "no output map",
        "you measure the value before the output map. What the edge adds to the stream is "
        "a_ij v_j W_O, and W_O can make a long value short.",
        lambda A, V, W_O: A * _lengths(V),
    ),
    Mistake(
        "no weight",
        "you measure what each key *would* write. A query takes the part a_ij of it.",
        lambda A, V, W_O: np.ones_like(A) * _lengths(V @ W_O),
    ),
    Mistake(
        "squared length",
        "you leave out the square root, so an edge that carries twice as much counts four times.",
        lambda A, V, W_O: A**2 * _lengths(V @ W_O) ** 2,
    ),
    Mistake(
        "sum of absolute entries",
        "you add the sizes of the entries. The length of a vector is the root of the sum of "
        "squares; yours changes when the stream is turned.",
        lambda A, V, W_O: A * np.abs(V @ W_O).sum(axis=-1),
    ),
    Mistake(
        "length of the sum",
        "you add up what all edges of a query carry and measure that: one number a query. Measure "
        "each term alone.",
        lambda A, V, W_O: _lengths(A @ V @ W_O),
    ),
    Mistake(
        "values of the query",
        "you take the value of the query, row i. An edge carries the value of its key: the lengths "
        "belong to the columns.",
        lambda A, V, W_O: A * _lengths(V @ W_O)[:, None],
    ),
    Mistake(
        "shares",
        "you divide each row by its sum. Shares hide whether a head writes much or little.",
        lambda A, V, W_O: (
            A * _lengths(V @ W_O) / (A * _lengths(V @ W_O)).sum(axis=-1, keepdims=True)
        ),
    ),
)


def check_edge_norms(function: Callable) -> Report:
    """Check ``f(A, V, W_O)``: the length of a_ij v_j W_O for every edge of one head, (n, m)."""

    def case(seed, n, m, d_v, d, note=""):
        inputs = random_inputs(seed, S=(n, m), V=(m, d_v), W_O=(d_v, d))
        return Case({"A": softmax(inputs.pop("S"))} | inputs, note)

    return check_function(
        function,
        right=lambda A, V, W_O: A * np.linalg.norm(V @ W_O, axis=-1),
        cases=[
            case(0, 4, 4, 3, 5),
            case(1, 3, 6, 2, 4, "fewer queries than keys"),
            case(2, 5, 1, 4, 2, "one key"),
        ],
        mistakes=EDGE_NORM_MISTAKES,
        returns=("norms",),
    )


def _cut(A, query, key, renormalise, grow):
    cut = A.copy()
    cut[query, key] = 0
    if renormalise:
        grow(cut)
    return cut


def _grow(cut, query):
    total = cut[query].sum()
    cut[query] /= total if total else 1


def _grow_bare(cut, query):
    with np.errstate(invalid="ignore"):
        cut[query] /= cut[query].sum()


def _cut_row(A, query, key, renormalise):
    return _cut(A, query, key, renormalise, lambda cut: _grow(cut, query))


def _cut_column(A, query, key, renormalise):
    cut = A.copy()
    cut[:, key] = 0
    if renormalise:
        totals = cut.sum(axis=-1, keepdims=True)
        cut /= np.where(totals == 0, 1, totals)
    return cut


def _shared_out(A, query, key, renormalise):
    cut = A.copy()
    cut[query, key] = 0
    if renormalise:
        others = np.arange(A.shape[1]) != key
        cut[query, others] += A[query, key] / others.sum()
    return cut


CUT_EDGE_MISTAKES = (
    Mistake(
        "query and key exchanged",
        "you cut the edge the other way round: A[query, key], rows are queries.",
        lambda A, query, key, renormalise: _cut_row(A, key, query, renormalise),
    ),
    Mistake(
        "always renormalised",
        "without `renormalise` the row must be left with a sum below one.",
        lambda A, query, key, renormalise: _cut_row(A, query, key, True),
    ),
    Mistake(
        "never renormalised",
        "with `renormalise` the other weights of the row grow until it sums to one. (Dividing "
        "before the cut changes nothing: the row sums to one then.)",
        lambda A, query, key, renormalise: _cut_row(A, query, key, False),
    ),
    Mistake(
        "the key cut for every query",
        "you take the key away from all queries. One edge is one entry.",
        _cut_column,
    ),
    Mistake(
        "the column renormalised",
        "you make the key's column sum to one. The row must: a query shares itself out.",
        lambda A, query, key, renormalise: _cut(
            A, query, key, renormalise, lambda cut: _grow(cut.T, key)
        ),
    ),
    Mistake(
        "shared out evenly",
        "you give every other key the same part of what is freed. Under a mask the ratios "
        "between the other weights stay: divide the row by its sum.",
        _shared_out,
    ),
    Mistake(
        "an empty row divided by zero",
        "NaN when the edge was the whole row: a query with nothing left to read has weights 0.",
        lambda A, query, key, renormalise: _cut(
            A, query, key, renormalise, lambda cut: _grow_bare(cut, query)
        ),
    ),
)


def check_cut_edge(function: Callable) -> Report:
    """Check ``f(A, query, key, renormalise)``: the weights with one edge taken away."""

    def case(seed, n, m, query, key, renormalise, note=""):
        A = softmax(random_inputs(seed, S=(n, m))["S"])
        edge = {"query": query, "key": key, "renormalise": renormalise}
        return Case({"A": A} | edge, note)

    def right(A, query, key, renormalise):
        cut = A.copy()
        cut[query, key] = 0
        if renormalise:
            left = cut[query].sum()
            cut[query] = cut[query] / left if left > 0 else 0
        return cut

    return check_function(
        function,
        right=right,
        cases=[
            case(0, 4, 4, 2, 1, True),
            case(1, 5, 5, 0, 3, False),
            case(2, 3, 6, 1, 2, True, "fewer queries than keys"),
            Case({"A": np.eye(3), "query": 2, "key": 2, "renormalise": True}, "the whole row cut"),
        ],
        mistakes=CUT_EDGE_MISTAKES,
        returns=("weights",),
    )


# By hand


def _lengths_right():
    a = np.array([0.7, 0.1, 0.1, 0.1])
    V = np.array([[0.1, 0.0], [3.0, 0.0], [0.0, 4.0], [-1.0, 2.0]])
    return a, V


def _lengths_mistakes():
    a, V = _lengths_right()
    return {
        "these are the lengths of the values: a query takes the part a_ij of each.": _lengths(V),
        "you added the entries. A length is the root of the sum of squares.": a * V.sum(axis=1),
        "you left out the root: these are squared lengths.": (a * _lengths(V)) ** 2,
        "you added the sizes of the entries. A length is the root of the sum of squares.": (
            a * np.abs(V).sum(axis=1)
        ),
        "these are the weights: multiply each by the length of its value.": a,
    }


_WEIGHTS, _EFFECTS = np.array([0.9, 0.5, 0.3, 0.2, 0.1]), np.array([0.0, 4, 0, 1, 0])
_NOISE = np.array([3e-14, 0, 1e-14, 0, 0])


def _pairs_in_order(w, e):
    return np.mean(w[e > 0][:, None] > w[e == 0])


def _ranks_right():
    w, e = _WEIGHTS, _EFFECTS
    return np.array(
        [spearman(w, e), spearman(w, e + _NOISE), spearman_ceiling(w, e), _pairs_in_order(w, e)]
    )


def _ranks_mistakes():
    first, second, third, fourth = _ranks_right()
    w, e = _WEIGHTS, _EFFECTS
    plain = np.corrcoef(w, e)[0, 1]
    in_order, backwards = (spearman(w, e + step * np.arange(5)) for step in (1e-3, -1e-3))
    lowest = np.corrcoef(w.argsort().argsort(), np.array([1, 5, 1, 4, 1]))[0, 1]
    return {
        "these are ordinary correlations of the numbers: rank them first.": [
            plain,
            plain,
            np.corrcoef(np.sort(w), np.sort(e))[0, 1],
            fourth,
        ],
        "the equal zeros got the ranks 1, 2, 3 in the order in which they stand. Each gets the "
        "mean of these, 2.": [in_order, second, third, fourth],
        "the equal zeros got the ranks 3, 2, 1 in the order in which they stand. Each gets the "
        "mean of these, 2.": [backwards, second, third, fourth],
        "all equal zeros got the rank 1. They share the mean of the ranks 1, 2 and 3.": [
            lowest,
            second,
            third,
            fourth,
        ],
        "the noise makes three different numbers of the zeros, with ranks of their own.": [
            first,
            first,
            third,
            fourth,
        ],
        "the largest correlation is 1 only where there are no ties. Sort both columns and "
        "correlate their ranks.": [first, second, 1, fourth],
        "you counted in how many pairs the *unneeded* edge is the heavier one, or all pairs of "
        "edges. Two edges are needed, three are not: six pairs.": [first, second, third, 0.6],
    }


_SQUARE = np.array([[0.4, 0.3, 0.2, 0.1]])
_ALONG = np.array([[1.0, -1, 1, -1]])


def _ends(down, up):
    return np.concatenate([_SQUARE + down * _ALONG, _SQUARE + up * _ALONG])


_JUDGED = np.array([1, 0, 1, 0, 0, 0])


def _verdicts():
    said = {
        1: "the first sentence follows: it says what was measured, on which input, and no more.",
        2: "head 1 may do the same as head 2: without one of them says nothing about the other.",
        3: "the third sentence follows: it repeats the number with its cut and its input.",
        4: "a row of layer 5 holds what the layers before have put there, not the word alone.",
        5: "where nearly all effects are equal, .11 may be close to the largest value there is.",
        6: "masking also makes all other weights grow: a key of value 0 can do the same.",
    }
    wrong = {why: np.where(np.arange(1, 7) == k, 1 - _JUDGED, _JUDGED) for k, why in said.items()}
    return wrong | {
        "four of the six sentences say more than was found: what would refute each of them?": (
            np.ones(6)
        ),
        "two of the sentences only repeat what was measured, and these follow.": np.zeros(6),
    }


def _volume(deviation=lambda row: row.std(), old=True):
    """Give how long c is after a norm, with the direct path at two volumes."""
    x, c = np.array([2.0, 2, -2, -2]), np.array([1.0, -1, 0, 0])
    found = []
    for row in (x, 2 * x):
        change = (row + c) / deviation(row + c) - old * row / deviation(row)
        found.append(np.sqrt(change @ change))
    return np.array(found)


def _volume_mistakes():
    first = _volume()[0]
    return {
        "that is the length of c before the norm.": [np.sqrt(2), np.sqrt(2)],
        "you divided c alone by the spread of the old row. The spread changes with c.": [
            np.sqrt(2) / 2,
            np.sqrt(2) / 4,
        ],
        "you divided by the length of the row. A norm divides by its standard deviation, which "
        "is the length over √4 here.": _volume(lambda row: np.sqrt(row @ row)),
        "you divided by the variance: take its root.": _volume(lambda row: row.var()),
        "the variance of a norm is a mean over all four features, not over three.": (
            _volume(lambda row: row.std(ddof=1))
        ),
        "that is how long the whole row is after the norm. Subtract what it was without c.": (
            _volume(old=False)
        ),
        "twice the direct path leaves less of c, not more: it is the spread that doubles.": [
            first,
            2 * first,
        ],
        "the second number is for the direct path 2x.": [first, first],
    }


EXERCISES = {
    "ex-interp-lengths": by_hand(
        lambda: _lengths_right()[0] * _lengths(_lengths_right()[1]), _lengths_mistakes
    ),
    "ex-interp-ranks": by_hand(_ranks_right, _ranks_mistakes),
    "ex-interp-norms": check_edge_norms,
    "ex-interp-volume": by_hand(_volume, _volume_mistakes),
    "ex-interp-cut": check_cut_edge,
    "ex-interp-construct": by_hand(
        lambda: _ends(-0.2, 0.1),
        lambda: {
            "the first row should be the one in which the first key has less: exchange the rows.": (
                _ends(-0.2, 0.1)[::-1]
            ),
            "you went on until the *first* two weights reached 0, and passed a negative one.": (
                _ends(-0.4, 0.3)
            ),
            "both ends are taken at the same distance. Each side goes on until its own first "
            "weight reaches 0.": _ends(-0.1, 0.1),
            "one of your rows is the row you started from: there is room on both sides.": (
                _ends(0, 0.1)
            ),
            "your rows exchange two weights. The output stays only if all four change, along "
            "(1, −1, 1, −1).": np.array([[0.2, 0.3, 0.4, 0.1], [0.4, 0.1, 0.2, 0.3]]),
        },
        tol=0.005,
    ),
    "ex-interp-judge": by_hand(_JUDGED, _verdicts, tol=0.1),
}
