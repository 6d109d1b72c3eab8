"""Checks of the exercises of chapter 14, and the known mistakes in them."""

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

__all__ = ["check_cut_key", "check_offset_score", "check_trace"]


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


def _rows_lengths(X):
    return np.sqrt((X * X).sum(axis=-1))


def _cosines(X, Y):
    return (X * Y).sum(axis=-1) / _rows_lengths(X) / _rows_lengths(Y)


TRACE_MISTAKES = (
    Mistake(
        "compared with one row",
        "you compare every row of X with the *first* row of Y. A row of layer l belongs beside "
        "the row of the same layer.",
        lambda X, Y: X @ Y[0] / _rows_lengths(X) / np.sqrt(Y[0] @ Y[0]),
    ),
    Mistake(
        "compared with its own start",
        "you compare X with its own first row: how far a word has moved, not how near two are.",
        lambda X, Y: X @ X[0] / _rows_lengths(X) / np.sqrt(X[0] @ X[0]),
    ),
    Mistake(
        "dot products",
        "these are dot products. They grow with the lengths of the rows, which differ from layer "
        "to layer: divide by both.",
        lambda X, Y: (X * Y).sum(axis=-1),
    ),
    Mistake(
        "one length",
        "you divide by the length of one of the two rows. A cosine needs both.",
        lambda X, Y: (X * Y).sum(axis=-1) / _rows_lengths(X),
    ),
    Mistake(
        "all pairs",
        "you compare each layer of X with each layer of Y. Only equal layers are asked for: the "
        "diagonal.",
        lambda X, Y: X @ Y.T / np.outer(_rows_lengths(X), _rows_lengths(Y)),
    ),
    Mistake(
        "one number",
        "you treat the table as one long vector and give one cosine. Sum over the coordinates "
        "alone, the last axis.",
        lambda X, Y: (X * Y).sum() / np.sqrt((X * X).sum() * (Y * Y).sum()),
    ),
    Mistake(
        "distances",
        "these are distances: small where the rows are alike. A cosine is near 1 there.",
        lambda X, Y: _rows_lengths(X - Y),
    ),
    Mistake(
        "coordinates for layers",
        "you sum over the layers: one number for each coordinate. Sum over the coordinates.",
        lambda X, Y: _cosines(X.T, Y.T),
    ),
)


def check_trace(function: Callable) -> Report:
    """Check ``f(X, Y)``: the cosine of the rows of one token in two sentences, for each layer."""

    def case(seed, layers, d, note=""):
        drawn = random_inputs(seed, X=(layers, d), Y=(layers, d))
        return Case({"X": drawn["X"], "Y": drawn["X"] + drawn["Y"] / 2}, note)

    return check_function(
        function,
        right=_cosines,
        cases=[case(0, 7, 5), case(1, 3, 8), case(2, 1, 4, "the embedding alone")],
        mistakes=TRACE_MISTAKES,
        returns=("cosines",),
    )


# By hand


def _count_parts():
    d = 384
    return {
        "tables": (30_522 + 512) * d,
        "attention": 6 * 4 * (d * d + d),
        "feed-forward": 6 * (2 * 4 * d * d + 4 * d + d),
        "norms": (1 + 6 * 2) * 2 * d,
    }


def _count():
    parts = _count_parts()
    total = sum(parts.values())
    return np.array([total / 1e6, parts["attention"] / total])


def _count_mistakes():
    parts, d = _count_parts(), 384
    total, attention = sum(parts.values()), parts["attention"]

    def pair(total, attention=attention):
        return [total / 1e6, attention / total]

    return {
        "that is the published model whole, with segment rows and a pooler, which nothing "
        "here uses: count the parts of the list.": [22.713, attention / total],
        "you left W_O out, or counted three maps.": pair(total, attention * 3 / 4),
        "your share is of the six layers alone: the tables are parameters too.": [
            total / 1e6,
            attention / (total - parts["tables"]),
        ],
        "three maps for the whole count: W_O is missing in the total and in the share.": (
            pair(total - attention / 4, attention * 3 / 4)
        ),
        "you gave each of the twelve heads maps of d × d. A head's are d × 32, and twelve of them "
        "make one d × d.": pair(total + 11 * attention, 12 * attention),
        "the feed-forward part has two maps, d × 4d and 4d × d.": pair(total - 6 * 4 * d * d),
        "the table of positions is missing.": pair(total - 512 * d),
        "you counted one layer. There are six.": pair(
            total - (total - parts["tables"] - 2 * d) * 5 / 6, attention / 6
        ),
    }


def _two_heads():
    A = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]])
    U = np.array([[4.0, 0.0], [0.0, 2.0]])
    each = np.einsum("rij,rj->ri", A, U)
    return each, np.einsum("ij,rj->ri", A.mean(axis=0), U)


def _two_heads_mistakes():
    each, by_mean = _two_heads()
    together, mean_of_weights = each.sum(axis=0), by_mean.sum(axis=0)
    return {
        "heads are added up, not averaged.": [*each.mean(axis=0), *by_mean.mean(axis=0)],
        "the second pair is what the mean weights give, not the first again.": [*together] * 2,
        "you exchanged the pairs: first what the two heads write, then what their mean would.": (
            [*mean_of_weights, *together]
        ),
        "rows are queries: token 1 reads with the first row of each matrix.": [
            *together[::-1],
            *mean_of_weights,
        ],
        "with mean weights each head still has its own values: add both.": [
            *together,
            *by_mean[0],
        ],
        "that is the first head alone. The second writes too.": [*each[0], *by_mean[0]],
    }


def _followed():
    n, d = 12, 384
    return np.array([n * d, n * 32, 6 * 12 * n * n, n * 4 * d, d, 1.0])


def _follow_mistakes():
    right, n, d = _followed(), 12, 384

    def but(at, value):
        wrong = right.copy()
        wrong[at] = value
        return wrong

    return {
        "a head's queries are 32 wide: twelve heads share the 384.": but(1, n * d),
        "every layer has its own weights: six times as many.": but(2, 12 * n * n),
        "every head has its own weights: twelve in a layer.": but(2, 6 * n * n),
        "weights stand for pairs of tokens: n × n in a head.": but(2, 6 * 12 * n),
        "the hidden layer is four times as wide as a row.": but(3, n * d),
        "the feed-forward part works on each of the twelve rows.": but(3, 4 * d),
        "the vector of a sentence is the *mean* of its last rows: as long as one of them.": but(
            4, n * d
        ),
        "an embedding has a row for each of the twelve tokens.": but(0, d),
        "what has a row for each token doubles. Only pairs grow four times.": but(5, 4),
        "one of the five counts pairs of tokens, and pairs grow four times.": but(5, 0),
    }


EXERCISES = {
    "ex-real-count": by_hand(_count, _count_mistakes, tol=[0.05, 0.01]),
    "ex-real-two": by_hand(
        lambda: np.concatenate([part.sum(axis=0) for part in _two_heads()]), _two_heads_mistakes
    ),
    "ex-real-cut": check_cut_key,
    "ex-real-offset": check_offset_score,
    "ex-real-follow": by_hand(_followed, _follow_mistakes, tol=0.1),
    "ex-real-trace": check_trace,
}
