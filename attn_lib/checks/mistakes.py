"""Known wrong answers to the exercises, from scores to masks, each as the function it is.

The checks in `attn_lib.checks` name a mistake when a reader's function gives its numbers, or
stops with its error. Written without the shape checks of `attn_lib`, so that a mistake fails
as the reader's own does.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from attn_lib.blocks import gelu, layer_norm
from attn_lib.dot_product import softmax
from attn_lib.efficient import elu_plus_one
from attn_lib.heads import merge_heads, split_heads
from attn_lib.masks import causal_mask, window_mask
from attn_lib.positions import rope, sinusoidal_positions


class Mistake(NamedTuple):
    """A known wrong answer: its short name, what to tell the reader, and the function itself.

    Two entries may share a name, where one mistake can be written in two ways.
    """

    name: str
    why: str
    make: Callable


WRONG_AXIS = (
    "your weights sum to one along columns. Softmax must run along each row, over the keys: a row "
    "is one query sharing itself out. Over columns the keys would share out, and a query could "
    "get a total weight of almost nothing, or of several."
)


def _scaled(Q, K):
    """Right scores, without the checks that would catch a wrong shape early."""
    return Q @ K.T / math.sqrt(K.shape[-1])


SCORE_MISTAKES = (
    Mistake(
        "no scale",
        "you leave out the division by √d_k. A dot product of d_k products has variance d_k, so "
        "unscaled scores grow with the width and softmax becomes nearly one-hot.",
        lambda Q, K: Q @ K.T,
    ),
    Mistake(
        "divided by d_k",
        "you divide by d_k, not by √d_k. The *variance* of a dot product is d_k, its typical size "
        "√d_k: dividing by d_k makes scores tiny for wide keys, and the weights nearly equal.",
        lambda Q, K: Q @ K.T / K.shape[-1],
    ),
    Mistake(
        "multiplied by √d_k",
        "you multiply by √d_k, and it should divide: scaling is there to keep scores small.",
        lambda Q, K: Q @ K.T * math.sqrt(K.shape[-1]),
    ),
    *(
        Mistake(
            "divided by the root of a number of tokens",
            "you divide by the root of a number of tokens. A dot product has as many terms as a "
            "key has coordinates, d_k = `K.shape[-1]`; `len(K)` and `len(Q)` count rows.",
            make,
        )
        for make in (
            lambda Q, K: Q @ K.T / math.sqrt(len(Q)),
            lambda Q, K: Q @ K.T / math.sqrt(len(K)),
        )
    ),
    *(
        Mistake(
            "divided by √d_model",
            f"you divide by √{width}, whatever the width of a key. The scale is 1/√d_k, with d_k "
            "the width of one head's keys (`K.shape[-1]`), not the model's: a larger divisor "
            "makes the weights flatter.",
            lambda Q, K, width=width: Q @ K.T / math.sqrt(width),
        )
        for width in (8, 16, 32, 64, 128, 256, 512, 768, 1024)
    ),
    *(
        Mistake(
            "swapped Q and K",
            "your table has a row for each key. You computed K Qᵀ, or transposed it: rows are "
            "queries, so it is Q Kᵀ. With as many queries as keys no error would warn you.",
            make,
        )
        for make in (lambda Q, K: _scaled(K, Q), lambda Q, K: K @ Q.T)
    ),
    Mistake(
        "keys not transposed",
        "you multiply Q by K, not by Kᵀ. A score is a dot product of a row of Q with a row of K.",
        lambda Q, K: Q @ K,
    ),
    Mistake(
        "keys not transposed",
        "you multiply Q by K, not by Kᵀ. A score is a dot product of a row of Q with a row of K.",
        lambda Q, K: np.dot(Q, K),
    ),
)


def _softmax_without_shift(S, axis=-1):
    return np.exp(S) / np.exp(S).sum(axis=axis, keepdims=True)


WEIGHT_MISTAKES = (
    Mistake("wrong axis", WRONG_AXIS, lambda S: softmax(S, axis=0)),
    Mistake(
        "one softmax for the whole table",
        "your weights sum to one over the whole table. Each query has its own softmax: every row "
        "must sum to one.",
        lambda S: softmax(S, axis=None),
    ),
    Mistake(
        "no softmax",
        "these are still scores. Softmax turns each row into positive weights that sum to one.",
        lambda S: S * 1.0,
    ),
    *(
        Mistake(
            "not normalised",
            "you take exp and stop there. Divide each row by its sum: its weights must add to one.",
            make,
        )
        for make in (np.exp, lambda S: np.exp(S - S.max(axis=-1, keepdims=True)))
    ),
    Mistake(
        "no exp",
        "you divide scores by their sum, without exp. Scores may be negative, or sum to zero: "
        "these are no weights.",
        lambda S: S / S.sum(axis=-1, keepdims=True),
    ),
    Mistake(
        "missing keepdims",
        "a sum or maximum over each row has lost its axis, so it does not line up with the rows: "
        "use `keepdims=True`. On a square table there would be no error, only wrong numbers.",
        lambda S: S / S.sum(axis=-1),
    ),
    Mistake(
        "exp overflows",
        "your weights are NaN for scores near 1000: exp overflows, and ∞/∞ is NaN. Subtract each "
        "row's largest score first; softmax does not notice a shift.",
        _softmax_without_shift,
    ),
    Mistake(
        "one maximum for all rows",
        "you subtract the largest score of the whole table. A row far below it becomes 0/0 = NaN: "
        "subtract each row's own maximum.",
        lambda S: _softmax_without_shift(S - S.max()),
    ),
)


def _mix(A, V):
    return A, A @ V


def _allowed(S, keep):
    return S if keep is None else np.where(keep, S, -np.inf)


def _weights(Q, K, keep=None):
    return softmax(_allowed(_scaled(Q, K), keep))


def _from_scores(mistake: Mistake) -> Mistake:
    """Go on from wrong scores as in attention."""
    return mistake._replace(
        make=lambda Q, K, V, keep=None: _mix(softmax(_allowed(mistake.make(Q, K), keep)), V)
    )


def _from_weights(mistake: Mistake) -> Mistake:
    """Come to wrong weights from right scores, and go on as in attention."""
    return mistake._replace(
        make=lambda Q, K, V, keep=None: _mix(mistake.make(_allowed(_scaled(Q, K), keep)), V)
    )


def _from_projections(mistake: Mistake) -> Mistake:
    """Make the mistake with queries, keys and values that are projected rightly."""
    return mistake._replace(make=lambda X, W_Q, W_K, W_V: mistake.make(X @ W_Q, X @ W_K, X @ W_V))


_VALUES_FIRST = (
    "the values come last, on the right: O = A V. Row i of A holds the weights of query i, one for "
    "each row of V; V A does not even have fitting shapes."
)
_VALUES_SCORED = (
    "you compare queries with *values*. Keys decide where a query reads, values what it gets: "
    "scores are Q Kᵀ, and V enters only in A V."
)

ATTENTION_MISTAKES = (
    *(_from_scores(mistake) for mistake in SCORE_MISTAKES),
    Mistake(
        "scaled after softmax",
        "you divide by √d_k after the softmax. It belongs to the scores: your weights sum to "
        "1/√d_k, and are as sharp as without scaling.",
        lambda Q, K, V, keep=None: _mix(
            softmax(_allowed(Q @ K.T, keep)) / math.sqrt(K.shape[-1]), V
        ),
    ),
    Mistake(
        "softmax twice",
        "you take the softmax twice. The second one sees numbers between 0 and 1 only, and makes "
        "all weights nearly equal.",
        lambda Q, K, V, keep=None: _mix(softmax(_weights(Q, K, keep)), V),
    ),
    *(
        Mistake("values scored", _VALUES_SCORED, make)
        for make in (
            lambda Q, K, V, keep=None: Q @ V.T,
            lambda Q, K, V, keep=None: np.dot(Q, V.T),
        )
    ),
    *(
        Mistake(
            "V before A",
            _VALUES_FIRST,
            lambda Q, K, V, keep=None, mix=mix: mix(_weights(Q, K, keep), V),
        )
        for mix in (
            lambda A, V: V @ A,
            lambda A, V: np.dot(V, A),
            lambda A, V: V.T @ A,
            lambda A, V: np.dot(V.T, A),
        )
    ),
    Mistake(
        "V before A",
        "you mix the values with raw scores and take the softmax of the result. Softmax makes the "
        "weights; it comes before the values.",
        lambda Q, K, V, keep=None: softmax(_scaled(Q, K) @ V),
    ),
    Mistake(
        "keys mixed",
        "you average the *keys*. Keys say where to read; what is read are the values: O = A V.",
        lambda Q, K, V, keep=None: _mix(_weights(Q, K, keep), K),
    ),
    Mistake(
        "output forgotten",
        "you return the weights. The output is their product with the values, A V.",
        lambda Q, K, V, keep=None: _weights(Q, K, keep),
    ),
    Mistake(
        "weights and output exchanged",
        "return the weights first, then the output.",
        lambda Q, K, V, keep=None: _mix(_weights(Q, K, keep), V)[::-1],
    ),
    *(_from_weights(mistake) for mistake in WEIGHT_MISTAKES),
)


def _masking(change: Callable) -> Callable:
    """Attention whose scores are changed by `change(S, keep)` before the softmax."""
    return lambda Q, K, V, keep: _mix(softmax(change(_scaled(Q, K), keep)), V)


def _after_softmax(Q, K, V, keep):
    return softmax(_scaled(Q, K)) * keep


def _renormalised(Q, K, V, keep):
    A = _after_softmax(Q, K, V, keep)
    return _mix(A / A.sum(axis=-1, keepdims=True), V)


_LARGE_NEGATIVE = (
    "a query with nothing to look at must give zeros. A large negative number is not −∞: when it "
    "stands in a whole row, softmax ignores it as a common shift, and the query reads "
)

MASK_MISTAKES = (
    Mistake(
        "mask ignored",
        "forbidden keys are still read: the mask has no effect.",
        lambda Q, K, V, keep: _mix(softmax(_scaled(Q, K)), V),
    ),
    Mistake(
        "mask polarity",
        "your mask is the wrong way round: here True means that a query **may** look. Other "
        "libraries use True for *hide*; say which, every time.",
        _masking(lambda S, keep: np.where(keep, -np.inf, S)),
    ),
    Mistake(
        "mask multiplied",
        "you multiply scores by the mask (or set them to 0). A score of 0 still has weight "
        "e⁰ = 1 before normalising: forbidden scores must become −∞.",
        _masking(lambda S, keep: S * keep),
    ),
    Mistake(
        "mask added as 0 and 1",
        "you add True and False as 1 and 0. A boolean mask chooses; only a float mask is added.",
        _masking(lambda S, keep: S + keep),
    ),
    Mistake(
        "mask after softmax",
        "you set weights to 0 after the softmax, so a row no longer sums to one: forbidden keys "
        "have taken their share away. Mask the scores, before the softmax.",
        lambda Q, K, V, keep: _mix(_after_softmax(Q, K, V, keep), V),
    ),
    *(
        Mistake(
            "NaN from 0·∞",
            "everything is NaN: you multiply −∞ by a mask, and 0·∞ is NaN, at the very keys that "
            "may be read. Choose instead: `np.where(keep, scores, -np.inf)`.",
            _masking(change),
        )
        for change in (
            lambda S, keep: S + (1.0 - keep) * -np.inf,
            lambda S, keep: S * keep + (1.0 - keep) * -np.inf,
        )
    ),
    Mistake(
        "mask after softmax",
        "you set weights to 0 after the softmax and normalise again. On paper that is the same; "
        "but where a forbidden key has a huge score, the allowed weights have already been "
        "rounded to 0, and 0/0 is NaN. Mask the scores, before the softmax.",
        _renormalised,
    ),
    Mistake(
        "NaN from an empty row",
        "a query with nothing to look at must give zeros, yours gives NaN: its row is all −∞, and "
        "−∞ − (−∞) is NaN (or its sum is 0, and 0/0 is).",
        lambda Q, K, V, keep: _mix(_softmax_without_shift(_allowed(_scaled(Q, K), keep)), V),
    ),
    Mistake(
        "large negative number instead of −∞",
        _LARGE_NEGATIVE + "all forbidden keys in equal parts.",
        _masking(lambda S, keep: np.where(keep, S, -1e9)),
    ),
    Mistake(
        "large negative number added",
        _LARGE_NEGATIVE + "the forbidden keys as if there were no mask.",
        _masking(lambda S, keep: S + np.where(keep, 0, -1e9)),
    ),
    *ATTENTION_MISTAKES,
)

_OTHERWISE = {"swapped Q and K", "keys not transposed"}  # told in other words below

SELF_ATTENTION_MISTAKES = (
    Mistake(
        "divided by √d_model",
        "you divide by the root of X's width, d. The dot products have d_k terms, the width of a "
        "*key*: dividing by √d makes the weights too flat.",
        lambda X, W_Q, W_K, W_V: _mix(
            softmax((X @ W_Q) @ (X @ W_K).T / math.sqrt(X.shape[-1])), X @ W_V
        ),
    ),
    Mistake(
        "swapped Q and K",
        "your table of weights belongs to K Qᵀ, the transpose of the scores: rows are queries, so "
        "it is Q Kᵀ. Here n = m, so no error warns you.",
        lambda X, W_Q, W_K, W_V: _mix(softmax(_scaled(X @ W_K, X @ W_Q)), X @ W_V),
    ),
    Mistake(
        "not projected",
        "you compare the tokens themselves, without W_Q and W_K. What a token asks for and what "
        "it can be found by are two different maps of it.",
        lambda X, W_Q, W_K, W_V: _mix(softmax(_scaled(X, X)), X @ W_V),
    ),
    Mistake(
        "not projected",
        "you average the tokens themselves, without W_V. The values are X W_V.",
        lambda X, W_Q, W_K, W_V: _mix(softmax(_scaled(X @ W_Q, X @ W_K)), X),
    ),
    *(
        Mistake(
            "factors in the wrong order",
            "two factors do not fit. Tokens are rows, so a projection stands on their right, "
            "Q = X W_Q; and scores need the keys transposed, Q Kᵀ.",
            make,
        )
        for make in (
            lambda X, W_Q, W_K, W_V: W_Q @ X,
            lambda X, W_Q, W_K, W_V: X @ W_Q.T,
            lambda X, W_Q, W_K, W_V: np.dot(W_Q, X),
            lambda X, W_Q, W_K, W_V: (X @ W_Q) @ (X @ W_K),
            lambda X, W_Q, W_K, W_V: np.dot(X @ W_Q, X @ W_K),
        )
    ),
    *(_from_projections(m) for m in ATTENTION_MISTAKES if m.name not in _OTHERWISE),
)

CAUSAL_MASK_MISTAKES = (
    Mistake(
        "own key forbidden",
        "a query may look at its own key: j ≤ i + offset, not j < i + offset. With < the first "
        "query would have nothing to read.",
        lambda n, m, offset: causal_mask(n, m, offset=offset - 1),
    ),
    Mistake(
        "mask polarity",
        "your mask is the wrong way round: True means that a query **may** look. Yours lets it "
        "see the future only.",
        lambda n, m, offset: ~causal_mask(n, m, offset=offset),
    ),
    Mistake(
        "rows and columns exchanged",
        "rows are queries (n of them) and columns are keys (m): yours is the transpose.",
        lambda n, m, offset: causal_mask(n, m, offset=offset).T,
    ),
    Mistake(
        "offset ignored",
        "you leave out the offset. Behind a cache the first new query may already read all "
        "cached keys.",
        lambda n, m, offset: causal_mask(n, m),
    ),
    Mistake(
        "offset subtracted",
        "the offset counts keys *before* the first query's own, so it adds: j ≤ i + offset.",
        lambda n, m, offset: causal_mask(n, m, offset=-offset),
    ),
    Mistake(
        "float mask",
        "this is a mask of 0 and −∞, to be added. It works, but the exercise asks for a boolean "
        "one: True where a query may look.",
        lambda n, m, offset: np.where(causal_mask(n, m, offset=offset), 0, -np.inf),
    ),
)

_EARLIER_TEXTS = (
    "a text still reads the texts before it. Two tokens may meet only if they belong to the *same* "
    "text: compare with ==."
)


def _same_text(documents):
    return documents[:, None] == documents


DOCUMENT_MASK_MISTAKES = (
    Mistake(
        "not causal",
        "a token sees the rest of its own text, its answer too. The mask must be causal *and* "
        "keep texts apart: combine both with &.",
        _same_text,
    ),
    Mistake(
        "texts not kept apart",
        "a token sees the texts before its own: your mask is causal and nothing else.",
        lambda documents: causal_mask(len(documents)),
    ),
    Mistake(
        "texts not kept apart",
        _EARLIER_TEXTS,
        lambda documents: documents[:, None] >= documents,
    ),
    Mistake(
        "masks joined by or",
        "you allow a pair if *one* mask allows it. A query may look where every mask lets it: "
        "join with &, not with |.",
        lambda documents: causal_mask(len(documents)) | _same_text(documents),
    ),
    Mistake(
        "mask polarity",
        "your mask is the wrong way round: True means that a query **may** look.",
        lambda documents: ~(causal_mask(len(documents)) & _same_text(documents)),
    ),
    Mistake(
        "rows and columns exchanged",
        "rows are queries and columns are keys: yours lets a query see the keys after it.",
        lambda documents: (causal_mask(len(documents)) & _same_text(documents)).T,
    ),
)


def _reading(change: Callable) -> Callable:
    """Cross-attention whose scores are changed by ``change(S, keep)`` before the softmax."""

    def attend(X, Y, W_Q, W_K, W_V, keep):
        return _mix(softmax(change(_scaled(X @ W_Q, Y @ W_K), keep)), Y @ W_V)

    return attend


CROSS_ATTENTION_MISTAKES = (
    Mistake(
        "keys from the reader",
        "your keys come from X, the reader. Then it reads itself, and the source is never "
        "looked at: keys and values are made from Y.",
        lambda X, Y, W_Q, W_K, W_V, keep: _mix(
            softmax(_allowed(_scaled(X @ W_Q, X @ W_K), keep)), X @ W_V
        ),
    ),
    Mistake(
        "values from the reader",
        "you find the right places and then take the values from X. What is read are rows of the "
        "source: V = Y W_V.",
        lambda X, Y, W_Q, W_K, W_V, keep: _mix(
            softmax(_allowed(_scaled(X @ W_Q, Y @ W_K), keep)), X @ W_V
        ),
    ),
    *(
        Mistake(
            "reader and source exchanged",
            "your table has a row for each source token. Queries come from X, so it has n rows, "
            "one for each reader token, and m columns.",
            make,
        )
        for make in (
            lambda X, Y, W_Q, W_K, W_V, keep: _mix(
                softmax(_allowed(_scaled(Y @ W_Q, X @ W_K), keep)), X @ W_V
            ),
            lambda X, Y, W_Q, W_K, W_V, keep: _mix(
                softmax(_allowed(_scaled(Y @ W_K, X @ W_Q), keep)), Y @ W_V
            ),
        )
    ),
    Mistake(
        "causal mask",
        "you forbid the keys after the query's own place. A source is there as a whole before "
        "anything is written: only its padding must be hidden.",
        _reading(lambda S, keep: _allowed(S, np.tri(*S.shape, dtype=bool) & keep)),
    ),
    Mistake(
        "mask ignored",
        "the padding of the source is read: `keep` has no effect.",
        _reading(lambda S, keep: S),
    ),
    Mistake(
        "mask polarity",
        "you hide the real tokens and read the padding: True means that a key **may** be read.",
        _reading(lambda S, keep: _allowed(S, ~keep)),
    ),
    Mistake(
        "mask multiplied",
        "you multiply scores by the mask. A score of 0 still has weight e⁰ = 1 before "
        "normalising: forbidden scores must become −∞.",
        _reading(lambda S, keep: S * keep),
    ),
    Mistake(
        "mask after softmax",
        "you set weights to 0 after the softmax, so a row no longer sums to one. Mask the scores.",
        lambda X, Y, W_Q, W_K, W_V, keep: _mix(softmax(_scaled(X @ W_Q, Y @ W_K)) * keep, Y @ W_V),
    ),
    Mistake(
        "wrong axis",
        WRONG_AXIS,
        lambda X, Y, W_Q, W_K, W_V, keep: _mix(
            softmax(_allowed(_scaled(X @ W_Q, Y @ W_K), keep), axis=0), Y @ W_V
        ),
    ),
    Mistake(
        "no scale",
        "you leave out the division by √d_k.",
        lambda X, Y, W_Q, W_K, W_V, keep: _mix(
            softmax(_allowed((X @ W_Q) @ (Y @ W_K).T, keep)), Y @ W_V
        ),
    ),
)


def _with_null(S, c, shift=0.0):
    powers = np.exp(S - shift)
    return powers / (np.exp(c - shift) + powers.sum(axis=-1, keepdims=True))


NULL_WEIGHT_MISTAKES = (
    Mistake(
        "no null",
        "your rows sum to one: the empty answer takes no share. Its e^c belongs in the "
        "denominator.",
        lambda S, c: softmax(S),
    ),
    Mistake(
        "c not exponentiated",
        "you add c to the denominator. It is a score like the others: add e^c.",
        lambda S, c: np.exp(S) / (c + np.exp(S).sum(axis=-1, keepdims=True)),
    ),
    Mistake(
        "c ignored",
        "you add 1, which is e^c for c = 0 only.",
        lambda S, c: _with_null(S, 0.0),
    ),
    Mistake(
        "null among the answers",
        "your table has a column too many: the empty answer has weight, but it is not one of the "
        "m keys. Leave its column out *after* normalising.",
        lambda S, c: softmax(np.hstack([S, np.full((len(S), 1), c)])),
    ),
    Mistake(
        "exp overflows",
        "NaN for scores near 1000: subtract the largest of a row's scores *and c* first.",
        _with_null,
    ),
    Mistake(
        "shift forgotten in c",
        "you subtract each row's largest score from the scores and not from c, so the empty "
        "answer gets another share in every row.",
        lambda S, c: _with_null(S - S.max(axis=-1, keepdims=True), c),
    ),
)


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


_ONLY_RESHAPED = (
    "you reshape (n, h · width) into (h, n, width) at once. The shape is right and the numbers are "
    "not: a reshape reads row by row, so a head gets all columns of some tokens. Reshape to "
    "(n, h, width), which cuts each row, then swap the first two axes."
)


def _only_reshaped(X, heads):
    return X.reshape(heads, len(X), -1)


SPLIT_MISTAKES = (
    Mistake("only reshaped", _ONLY_RESHAPED, _only_reshaped),
    Mistake(
        "no swap",
        "you cut each row into heads and stop there: your first axis is the token. Heads come "
        "first, then tokens, so that one product serves all heads: swap the first two axes.",
        lambda X, heads: X.reshape(len(X), heads, -1),
    ),
    Mistake(
        "columns dealt out",
        "your head r has columns r, r + h, r + 2h, …. Heads are neighbouring columns: the first "
        "`width` of them are head 0.",
        lambda X, heads: X.reshape(len(X), -1, heads).transpose(2, 0, 1),
    ),
    Mistake(
        "tokens shared out",
        "you cut the rows: each head gets some of the tokens. Every head sees every token; what "
        "is cut is the columns.",
        lambda X, heads: np.stack(np.split(X, heads)),
    ),
    Mistake(
        "tokens and columns exchanged",
        "each head has the right numbers, transposed: (h, width, n). Swap the last two axes.",
        lambda X, heads: X.T.reshape(heads, -1, len(X)),
    ),
    Mistake(
        "all axes turned round",
        "`.T` turns all three axes round and gives (width, h, n). Swap only the first two.",
        lambda X, heads: X.reshape(len(X), heads, -1).T,
    ),
)


def _joined(split=split_heads, merge=merge_heads, power=0.5, width=None, axis=-1, change=None):
    """Multi-head attention with one thing changed; scores are divided by width ** power."""

    def attend(X, W_Q, W_K, W_V, W_O, heads):
        Q, K, V = (split(X @ W, heads) for W in (W_Q, W_K, W_V))
        divisor = (width(X, W_Q, heads) if width else Q.shape[-1]) ** power
        A = softmax(Q @ K.swapaxes(-1, -2) / divisor, axis=axis)
        return merge((change(A) if change else A) @ V) @ W_O

    return attend


def _merged_by_reshape(mixed):
    return mixed.reshape(mixed.shape[1], -1)


def _input_cut(X, W_Q, W_K, W_V, W_O, heads):
    """Give each head its own columns of X, and the rows of the maps that belong to them."""
    rows = [np.split(np.arange(X.shape[1]), heads)[r] for r in range(heads)]
    mixed = []
    for r, own in enumerate(rows):
        Q, K, V = (X[:, own] @ split_heads(W, heads)[r][own] for W in (W_Q, W_K, W_V))
        mixed.append(_weights(Q, K) @ V)
    return np.hstack(mixed) @ W_O


MULTI_HEAD_MISTAKES = (
    Mistake("only reshaped", _ONLY_RESHAPED, _joined(split=_only_reshaped)),
    Mistake(
        "only reshaped, twice",
        "you reshape into heads and back without swapping axes. Back in shape, the numbers even "
        "stand where they stood; but between, each head saw all columns of some tokens, so tokens "
        "far apart never met.",
        _joined(split=_only_reshaped, merge=_merged_by_reshape),
    ),
    Mistake(
        "merged without the swap",
        "the heads are right; joining them is not. Swap heads and tokens back before you reshape "
        "to (n, h · d_v), or a row holds what one head says of several tokens.",
        _joined(merge=_merged_by_reshape),
    ),
    Mistake(
        "scale of the model",
        "you divide by √d, the width of a token. The variance of a score grows with the width of "
        "one head: divide by √d_k, or all weights are too flat.",
        _joined(width=lambda X, W_Q, heads: X.shape[1]),
    ),
    Mistake(
        "scale of all heads",
        "you divide by √(h · d_k), the width of all heads together. A score sums d_k products: "
        "divide by √d_k, or all weights are too flat.",
        _joined(width=lambda X, W_Q, heads: W_Q.shape[1]),
    ),
    Mistake(
        "scale of the number of heads",
        "you divide by √h. How many heads there are does not matter to a score: divide by √d_k.",
        _joined(width=lambda X, W_Q, heads: heads),
    ),
    Mistake("d_k without the root", "you divide by d_k, not by √d_k.", _joined(power=1)),
    Mistake("no scale", "you leave out the division by √d_k.", _joined(power=0)),
    Mistake(
        "input cut",
        "you cut X into heads, so each head is blind to most of a token. Every head projects the "
        "whole of x; what is cut is the projection.",
        _input_cut,
    ),
    Mistake(
        "one head",
        "you attend once, over the whole width: `heads` has no effect.",
        lambda X, W_Q, W_K, W_V, W_O, heads: _joined()(X, W_Q, W_K, W_V, W_O, 1),
    ),
    Mistake(
        "weights averaged",
        "you average the weights over the heads and mix with that. Then all heads read alike, "
        "and several are no more than one.",
        _joined(change=lambda A: np.broadcast_to(A.mean(axis=0), A.shape)),
    ),
    Mistake("wrong axis", WRONG_AXIS, _joined(axis=-2)),
    Mistake(
        "softmax over heads",
        "your softmax runs over the heads, so they share one unit for each pair of tokens. Each "
        "row of each head is a softmax of its own, over the keys: the last axis.",
        _joined(axis=0),
    ),
    Mistake(
        "no W_O",
        "you set the heads side by side and stop: multiply by W_O, which joins what they read.",
        lambda X, W_Q, W_K, W_V, W_O, heads: _joined()(X, W_Q, W_K, W_V, np.eye(len(W_O)), heads),
    ),
)


WINDOW_MASK_MISTAKES = (
    Mistake(
        "window one too wide",
        "your queries see one key too many: the window counts the query's own key.",
        lambda n, window: window_mask(n, window=window + 1),
    ),
    Mistake(
        "window one too narrow",
        "your queries see one key too few: window keys, the own one among them.",
        lambda n, window: causal_mask(n) & ~causal_mask(n, offset=1 - window),
    ),
    Mistake(
        "not causal",
        "your queries see the future: the window ends at the query's own key.",
        lambda n, window: abs(np.arange(n)[:, None] - np.arange(n)) < window,
    ),
    Mistake(
        "window ignored",
        "your queries see their whole past: the window has no effect.",
        lambda n, window: causal_mask(n),
    ),
    Mistake(
        "mask polarity",
        "your mask is the wrong way round: True means that a query **may** look.",
        lambda n, window: ~window_mask(n, window=window),
    ),
    Mistake(
        "rows and columns exchanged",
        "rows are queries and columns are keys: yours lets a query see the keys after it.",
        lambda n, window: window_mask(n, window=window).T,
    ),
)


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


def _cut(A, query, key, renormalise, grow):
    cut = A.copy()
    cut[query, key] = 0
    if renormalise:
        grow(cut)
    return cut


def _cut_row(A, query, key, renormalise):
    return _cut(A, query, key, renormalise, lambda cut: _grow(cut, query))


def _grow(cut, query):
    total = cut[query].sum()
    cut[query] /= total if total else 1


def _grow_bare(cut, query):
    with np.errstate(invalid="ignore"):
        cut[query] /= cut[query].sum()


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


def _think(Z, W_1, W_2):
    """Give a feed-forward part without biases."""
    return gelu(Z @ W_1) @ W_2


def _in_order(first: Callable, second: Callable) -> Callable:
    """Make a block of two ways to add a part to the stream: ``f(stream, part)`` each."""

    def make(X, A, W, W_1, W_2):
        middle = first(X, lambda Z: A @ Z @ W)
        return second(middle, lambda Z: _think(Z, W_1, W_2))

    return make


def _pre(X, part):
    return X + part(layer_norm(X))


def _normed(X, spread, gain=1.0, bias=0.0):
    """Divide a token's deviations from its mean by what `spread` makes of them."""
    away = X - X.mean(axis=-1, keepdims=True)
    return away / spread(away) * gain + bias


def _variance(away, axis=-1, less=0):
    return (away**2).sum(axis=axis, keepdims=True) / (away.shape[axis] - less) + 1e-5


LAYER_NORM_MISTAKES = (
    Mistake(
        "over tokens",
        "you take mean and variance down the columns, over the tokens. Then every token knows "
        "something of all others, later ones too. They belong to one token: the last axis.",
        lambda X, gain, bias: (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0) + 1e-5) * gain + bias,
    ),
    Mistake(
        "over everything",
        "you take one mean and one variance for the whole array. Each token has its own: the "
        "last axis, with `keepdims=True`.",
        lambda X, gain, bias: (X - X.mean()) / np.sqrt(X.var() + 1e-5) * gain + bias,
    ),
    Mistake(
        "divided by the variance",
        "you divide by the variance, and it should be its root: otherwise a token twice as long "
        "comes out half as long.",
        lambda X, gain, bias: _normed(X, _variance, gain, bias),
    ),
    Mistake(
        "d − 1",
        "your variance divides by d − 1. A layer norm takes the mean square, over d: nothing is "
        "being estimated from a sample.",
        lambda X, gain, bias: _normed(X, lambda u: np.sqrt(_variance(u, less=1)), gain, bias),
    ),
    Mistake(
        "divided by the length",
        "you divide by the length of the deviations, so that each token has length 1. A layer "
        "norm gives variance 1, which is length √d.",
        lambda X, gain, bias: _normed(
            X, lambda u: np.sqrt((u**2).sum(axis=-1, keepdims=True) + 1e-5), gain, bias
        ),
    ),
    Mistake(
        "mean kept",
        "you divide, and do not take the mean off. That is an RMS norm.",
        lambda X, gain, bias: X / np.sqrt(_variance(X)) * gain + bias,
    ),
    Mistake(
        "mean taken off for the variance only",
        "your variance is right, but the mean is still in what you divide by its root.",
        lambda X, gain, bias: X / np.sqrt(X.var(axis=-1, keepdims=True) + 1e-5) * gain + bias,
    ),
    Mistake(
        "gain first",
        "you stretch and shift before the norm, and it undoes most of that. Gain and bias come "
        "after it.",
        lambda X, gain, bias: _normed(X * gain + bias, lambda u: np.sqrt(_variance(u))),
    ),
    Mistake(
        "bias stretched",
        "you add the bias before the gain multiplies: (z + bias) · gain. It is z · gain + bias.",
        lambda X, gain, bias: (_normed(X, lambda u: np.sqrt(_variance(u))) + bias) * gain,
    ),
    Mistake(
        "no bias",
        "your bias is missing.",
        lambda X, gain, bias: _normed(X, lambda u: np.sqrt(_variance(u)), gain),
    ),
)

PRE_NORM_MISTAKES = (
    Mistake(
        "the stream is normalised",
        "the stream goes on normalised: you add to LN(x), and it should be x + f(LN(x)). A part "
        "that writes nothing must leave the stream as it was.",
        _in_order(*[lambda X, part: layer_norm(X) + part(layer_norm(X))] * 2),
    ),
    Mistake(
        "post-norm",
        "you normalise the sum, LN(x + f(x)). That is post-norm; here the part reads LN(x), and "
        "the sum stays as it is.",
        _in_order(*[lambda X, part: layer_norm(X + part(X))] * 2),
    ),
    Mistake(
        "no norm",
        "your parts read the raw stream. Each reads a normalised copy, LN(x).",
        _in_order(*[lambda X, part: X + part(X)] * 2),
    ),
    Mistake(
        "no residual",
        "nothing is added to the stream: each part replaces what it has read.",
        _in_order(*[lambda X, part: part(layer_norm(X))] * 2),
    ),
    Mistake(
        "no second residual",
        "after attention all is right, but the feed-forward part replaces the stream, and it "
        "should add to it.",
        _in_order(_pre, lambda X, part: part(layer_norm(X))),
    ),
    Mistake(
        "no first residual",
        "attention replaces the stream; its output should be added to X.",
        _in_order(lambda X, part: part(layer_norm(X)), _pre),
    ),
    Mistake(
        "one norm only",
        "the feed-forward part reads the raw stream. It has a norm of its own, after attention "
        "has been added.",
        _in_order(_pre, lambda X, part: X + part(X)),
    ),
    Mistake(
        "both read the input",
        "both parts read LN(X). Here they stand one after the other: the feed-forward part reads "
        "what attention has added. (Some models do run them side by side.)",
        lambda X, A, W, W_1, W_2: X + A @ layer_norm(X) @ W + _think(layer_norm(X), W_1, W_2),
    ),
    Mistake(
        "attention's note is lost",
        "the feed-forward part reads what attention has added, but adds to the old X, so that "
        "note is lost. Both notes stay in the stream.",
        lambda X, A, W, W_1, W_2: X + _think(layer_norm(X + A @ layer_norm(X) @ W), W_1, W_2),
    ),
    Mistake(
        "weights transposed",
        "you mix with Aᵀ. Row i of A says what token i reads.",
        lambda X, A, W, W_1, W_2: _in_order(_pre, _pre)(X, A.T, W, W_1, W_2),
    ),
    Mistake(
        "no bend",
        "gelu is missing, so W_1 W_2 is one matrix and the feed-forward part is linear.",
        lambda X, A, W, W_1, W_2: _pre(_pre(X, lambda Z: A @ Z @ W), lambda Z: Z @ W_1 @ W_2),
    ),
    Mistake(
        "attention once more",
        "the feed-forward part mixes tokens in your block. It works on each alone.",
        lambda X, A, W, W_1, W_2: _in_order(_pre, lambda X, part: X + A @ part(layer_norm(X)))(
            X, A, W, W_1, W_2
        ),
    ),
)


def _distances(q, K):
    """Squared distances of one query to every key."""
    return ((K - q) ** 2).sum(axis=1)


def _read(scores, V):
    """What is read by the softmax of one row of scores."""
    return softmax(scores) @ V


LOOKUP_MISTAKES = (
    Mistake(
        "temperature multiplied",
        "you multiply by the temperature, and it should divide: a small T must sharpen the "
        "weights, and yours become even.",
        lambda q, K, V, T: _read(-_distances(q, K) / 2 * T, V),
    ),
    Mistake(
        "temperature ignored",
        "the temperature changes nothing in your answer.",
        lambda q, K, V, T: _read(-_distances(q, K) / 2, V),
    ),
    Mistake(
        "sign of the distance",
        "the farthest key is read most: a score must rise as the key comes nearer, so it needs a "
        "minus sign.",
        lambda q, K, V, T: _read(_distances(q, K) / 2 / T, V),
    ),
    Mistake(
        "no half",
        "you left out the ½ of the Gaussian score. Without it the lookup is as sharp as with half "
        "the temperature.",
        lambda q, K, V, T: _read(-_distances(q, K) / T, V),
    ),
    Mistake(
        "distance not squared",
        "you take the distance itself, not its square: the score is −½‖q − k‖².",
        lambda q, K, V, T: _read(-np.sqrt(_distances(q, K)) / 2 / T, V),
    ),
    Mistake(
        "dot product",
        "you score by the dot product. It agrees with the Gaussian score for keys of one length "
        "only, and these have several.",
        lambda q, K, V, T: _read(K @ q / T, V),
    ),
    Mistake(
        "not normalised",
        "your weights do not sum to 1: divide the powers by their sum.",
        lambda q, K, V, T: np.exp(-_distances(q, K) / 2 / T) @ V,
    ),
    Mistake(
        "hard lookup",
        "you give the value of the nearest key alone. A soft lookup reads some of every value.",
        lambda q, K, V, T: V[_distances(q, K).argmin()],
    ),
    Mistake(
        "keys read",
        "you mix the keys. What is read are the values.",
        lambda q, K, V, T: _read(-_distances(q, K) / 2 / T, K),
    ),
    Mistake(
        "naive softmax",
        "at a small temperature every power rounds to 0, and 0 / 0 is NaN. Subtract the largest "
        "score first: the weights stay the same.",
        lambda q, K, V, T: (
            np.exp(-_distances(q, K) / 2 / T) / np.exp(-_distances(q, K) / 2 / T).sum() @ V
        ),
    ),
)


def _tile_by_tile(
    S,
    V,
    tile,
    *,
    top=lambda old, s: max(old, s.max()),
    down=lambda old, new: np.exp(old - new),
    rescale=(True, True),
    end=None,
):
    """Give m, l and u after the last tile; right unless a tile begins with nothing allowed."""
    m, l, u = -np.inf, 0.0, np.zeros(V.shape[1])
    for j in range(0, len(S) if end is None else end, tile):
        s, v = S[j : j + tile], V[j : j + tile]
        new = top(m, s)
        factor, powers = down(m, new), np.exp(s - new)
        l = l * (factor if rescale[0] else 1) + powers.sum()
        u = u * (factor if rescale[1] else 1) + powers @ v
        m = new
    return m, l, u


def _online(**options):
    """Read tile by tile and divide at the end."""

    def answer(S, V, tile):
        _, l, u = _tile_by_tile(S, V, tile, **options)
        return u / l

    return answer


def _finite_top(old, s):
    """The running maximum, or 0 as long as nothing was allowed."""
    top = max(old, s.max())
    return 0.0 if top == -np.inf else top


def _mean_of_tiles(S, V, tile):
    parts = range(0, len(S), tile)
    return np.mean([softmax(S[j : j + tile]) @ V[j : j + tile] for j in parts], axis=0)


_EMPTY_TILE = (
    "your answer breaks when the first tile holds nothing but forbidden keys. Its maximum is −∞, "
    "and −∞ − (−∞) is NaN: as long as nothing was allowed, measure from 0 instead"
)

ONLINE_SOFTMAX_MISTAKES = (
    Mistake(
        "not rescaled",
        "you add up powers that are measured from different maxima. When the maximum rises, "
        "multiply both sums kept so far by e^(old − new).",
        _online(rescale=(False, False)),
    ),
    Mistake(
        "accumulator not rescaled",
        "you rescale the normaliser and not the weighted sum. Both are measured from the maximum.",
        _online(rescale=(True, False)),
    ),
    Mistake(
        "normaliser not rescaled",
        "you rescale the weighted sum and not the normaliser. Both are measured from the maximum.",
        _online(rescale=(False, True)),
    ),
    Mistake(
        "factor upside down",
        "your factor is e^(new − old) and must be e^(old − new): what was summed before gets "
        "smaller when the maximum rises.",
        _online(down=lambda old, new: 0.0 if old == -np.inf else np.exp(new - old)),
    ),
    Mistake(
        "tiles averaged",
        "you take the softmax within each tile and average the results. Then a tile of low scores "
        "counts as much as one of high scores.",
        _mean_of_tiles,
    ),
    Mistake(
        "not normalised",
        "this is the weighted sum. Divide it by the normaliser, once, after the last tile.",
        lambda S, V, tile: _tile_by_tile(S, V, tile)[2],
    ),
    Mistake(
        "last tile left out",
        "the keys behind the last whole tile are not read: the last tile may be a short one.",
        lambda S, V, tile: _online(end=len(S) // tile * tile)(S, V, tile),
    ),
    Mistake(
        "exp overflows",
        "NaN for scores in the thousands: measure powers from the largest score so far.",
        _online(top=lambda old, s: 0.0),
    ),
    Mistake(
        "maximum falls",
        "you measure from the maximum of the present tile. When it is lower than the one before, "
        "the factor is greater than 1 and may overflow: keep the larger of the two.",
        _online(top=lambda old, s: s.max()),
    ),
    Mistake("empty first tile", _EMPTY_TILE + ".", _online()),
    Mistake(
        "empty first tile",
        _EMPTY_TILE + ". You put 0 for the NaN, which hides it: later tiles are lost as well.",
        lambda S, V, tile: np.nan_to_num(_online()(S, V, tile)),
    ),
    Mistake(
        "nothing allowed",
        "if no key at all is allowed, 0/0 is NaN. Such a query gets a zero output.",
        _online(top=_finite_top),
    ),
)


def _linear(features_q=elu_plus_one, features_k=elu_plus_one, *, seen=np.tril, divide=None):
    """Causal linear attention with parts exchanged; `divide` takes the products φ(q)·φ(k)."""

    def answer(Q, K, V):
        products = features_q(Q) @ features_k(K).T
        weights = seen(products)
        by = weights.sum(axis=1) if divide is None else divide(products)
        return weights @ V / by[:, None]

    return answer


def _raw(x):
    return x


LINEAR_ATTENTION_MISTAKES = (
    Mistake(
        "future summed in",
        "each query reads the sum over *all* keys, later ones too. In the causal form the sum "
        "grows token by token: query i may read it only when it holds keys up to i.",
        _linear(seen=_raw),
    ),
    Mistake(
        "normaliser of the future",
        "your numerator stops at the query's own token and your normaliser does not.",
        _linear(divide=lambda products: products.sum(axis=1)),
    ),
    Mistake(
        "not normalised",
        "your weights do not sum to one: divide by φ(q)·Σ φ(k), with the sum up to the query.",
        _linear(divide=lambda products: np.ones(len(products))),
    ),
    Mistake(
        "divided by the number of tokens",
        "you divide by how many tokens were read. The normaliser is φ(q)·Σ φ(k), which depends on "
        "the query.",
        _linear(divide=lambda products: np.arange(1.0, len(products) + 1)),
    ),
    Mistake(
        "own token left out",
        "you read the state before the query's own token is written into it: first write, then "
        "read.",
        _linear(seen=lambda products: np.tril(products, -1)),
    ),
    Mistake(
        "own token left out",
        "you read the state before the query's own token is written into it, and put 0 where "
        "there is nothing yet: first write, then read.",
        lambda Q, K, V: np.nan_to_num(_linear(seen=lambda P: np.tril(P, -1))(Q, K, V)),
    ),
    Mistake(
        "no features",
        "you multiply q and k as they are. Without φ a product may be negative, and so may a "
        "weight, or the normaliser may vanish.",
        _linear(_raw, _raw),
    ),
    Mistake(
        "features on one side",
        "φ belongs to queries *and* keys. You apply it to keys only.",
        _linear(features_q=_raw),
    ),
    Mistake(
        "features on one side",
        "φ belongs to queries *and* keys. You apply it to queries only.",
        _linear(features_k=_raw),
    ),
    Mistake(
        "one forgotten",
        "your features go down to −1: add the 1 in elu(x) + 1, so that none is negative.",
        _linear(lambda x: elu_plus_one(x) - 1, lambda x: elu_plus_one(x) - 1),
    ),
    Mistake(
        "softmax",
        "this is softmax attention. Linear attention weighs by φ(q)·φ(k) and takes no exponential "
        "of a score.",
        lambda Q, K, V: softmax(_allowed(_scaled(Q, K), causal_mask(len(Q)))) @ V,
    ),
    Mistake(
        "factors in the wrong order",
        "the state is the sum of φ(k) vᵀ, a matrix of d_f × d_v, so that a query can multiply it "
        "from the left.",
        lambda Q, K, V: elu_plus_one(Q) @ (V.T @ elu_plus_one(K)),
    ),
)


EMBEDDING_MISTAKES = (
    Mistake(
        "rows and columns exchanged",
        "you pick columns of the table. A token's vector is a *row* of E, so the one-hot rows are "
        "as long as the vocabulary and stand on the left of E.",
        lambda ids, E: np.eye(E.shape[1])[ids] @ E.T,
    ),
    Mistake(
        "ids as numbers",
        "you multiply by the ids themselves. An id is a name, not an amount: id 4 is not twice "
        "id 2.",
        lambda ids, E: ids[:, None] * E[: len(ids)],
    ),
)


def _term_variance(mu_q, sigma_q, mu_k, sigma_k):
    return sigma_q**2 * sigma_k**2 + mu_q**2 * sigma_k**2 + mu_k**2 * sigma_q**2


MOMENT_MISTAKES = (
    Mistake(
        "means ignored",
        "your variance is d_k σ_q² σ_k². That needs means of 0: E[q²] is σ_q² + μ_q², and a mean "
        "that is not 0 makes products of the other side's spread larger.",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            d_k * mu_q * mu_k,
            d_k * (sigma_q * sigma_k) ** 2,
        ),
    ),
    Mistake(
        "mean square for variance",
        "you return the mean of the square. The variance is that less the squared mean, "
        "E[Z²] − E[Z]², for each of the d_k terms.",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            d_k * mu_q * mu_k,
            d_k * (sigma_q**2 + mu_q**2) * (sigma_k**2 + mu_k**2),
        ),
    ),
    Mistake(
        "standard deviation for variance",
        "your second number is the standard deviation, the root of the variance.",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            d_k * mu_q * mu_k,
            math.sqrt(d_k * _term_variance(mu_q, sigma_q, mu_k, sigma_k)),
        ),
    ),
    Mistake(
        "d_k squared",
        "you multiply the variance of one term by d_k². That is the rule for a constant factor; "
        "here d_k different, uncorrelated terms are added, and their variances add.",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            d_k * mu_q * mu_k,
            d_k**2 * _term_variance(mu_q, sigma_q, mu_k, sigma_k),
        ),
    ),
    Mistake(
        "sigma not squared",
        "sigma is a standard deviation, so the variances are σ_q² and σ_k².",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            d_k * mu_q * mu_k,
            d_k * (sigma_q * sigma_k + mu_q**2 * sigma_k + mu_k**2 * sigma_q),
        ),
    ),
    Mistake(
        "already scaled",
        "these are mean and variance of the score divided by √d_k. Asked are those of the raw one.",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            math.sqrt(d_k) * mu_q * mu_k,
            _term_variance(mu_q, sigma_q, mu_k, sigma_k),
        ),
    ),
    Mistake(
        "crossed",
        "each squared mean belongs to the *other* side's variance: μ_q² σ_k² and μ_k² σ_q².",
        lambda d_k, mu_q, sigma_q, mu_k, sigma_k: (
            d_k * mu_q * mu_k,
            d_k * _term_variance(mu_k, sigma_q, mu_q, sigma_k),
        ),
    ),
)


def _one_query(q, K):
    return softmax(K @ q / math.sqrt(len(q)))


def _pull(a, x):
    """Go back through one softmax: a ⊙ (x − Σ a x)."""
    return a * (x - a @ x)


def _from_pull(pull: Callable, power: float = 0.5) -> Callable:
    """Give the gradient by q when going back through the softmax is `pull`."""
    return lambda q, K, V, g: pull(_one_query(q, K), V @ g) @ K / len(q) ** power


QUERY_GRADIENT_MISTAKES = (
    Mistake(
        "factor forgotten",
        "the factor 1/√d_k stands in the scores, so by the chain rule it stands in the gradient "
        "too. Yours is √d_k times too long.",
        _from_pull(_pull, 0),
    ),
    Mistake(
        "factor twice",
        "you divide by √d_k twice. The score is divided once, so its derivative by q is k/√d_k.",
        _from_pull(_pull, 1),
    ),
    Mistake(
        "average not subtracted",
        "you let each weight grow with its own score, and forget that they share: J is "
        "diag(a) − aaᵀ. What one key gains the others lose, so subtract the average Σ a_j x_j.",
        _from_pull(lambda a, x: a * x),
    ),
    Mistake(
        "diagonal only",
        "you use a(1 − a), the diagonal of J. Off the diagonal stands −a_i a_j: a score that "
        "rises takes weight from all other keys.",
        _from_pull(lambda a, x: a * (1 - a) * x),
    ),
    *(
        Mistake(
            "raw scores",
            "your weights come from the raw scores K q: divide by √d_k before the softmax.",
            lambda q, K, V, g, power=power: _pull(softmax(K @ q), V @ g) @ K / len(q) ** power,
        )
        for power in (0, 0.5)
    ),
    Mistake(
        "stopped at the scores",
        "you stop at the scores: yours has one number for each key. A score is q·k/√d_k, so go "
        "on to the query: multiply by the keys, and by 1/√d_k.",
        lambda q, K, V, g: _pull(_one_query(q, K), V @ g),
    ),
    Mistake(
        "gradient of the keys",
        "this is the gradient by the keys, one row for each. By the query it is the sum over the "
        "keys of a score's gradient times k/√d_k.",
        lambda q, K, V, g: np.outer(_pull(_one_query(q, K), V @ g), q) / math.sqrt(len(q)),
    ),
)


def _backward(dO, Q, K, V, *, weights=None, factors=(1, 1), centre=None):
    """Go back through attention, with the slips that the table below is made of."""
    A, dA = softmax(_scaled(Q, K)) if weights is None else weights, dO @ V.T
    average = (A * dA).sum(axis=-1, keepdims=True) if centre is None else centre(A, dA)
    dS = A * (dA - average) / math.sqrt(K.shape[-1])
    return factors[0] * dS @ K, factors[1] * dS.T @ Q, A.T @ dO


BACKWARD_MISTAKES = (
    Mistake(
        "factor forgotten",
        "the factor 1/√d_k stands in the scores, so it comes back on the way to Q and to K. "
        "Yours are √d_k times too long.",
        lambda *x: _backward(*x, factors=(math.sqrt(x[2].shape[-1]),) * 2),
    ),
    Mistake(
        "factor on one side only",
        "dQ is right, and dK lacks the factor 1/√d_k: a score is divided by √d_k whichever of its "
        "two sides moves.",
        lambda *x: _backward(*x, factors=(1, math.sqrt(x[2].shape[-1]))),
    ),
    Mistake(
        "raw scores",
        "your weights come from the raw scores: go forward with the division by √d_k too.",
        lambda *x: _backward(*x, weights=softmax(x[1] @ x[2].T)),
    ),
    Mistake(
        "average not subtracted",
        "you let each weight grow with its own score, and forget that a row shares: what one key "
        "gains the others lose. Subtract from dA its average under the weights of the row.",
        lambda *x: _backward(*x, centre=lambda A, dA: 0),
    ),
    Mistake(
        "plain average subtracted",
        "you subtract the plain mean of dA. The average is one under the weights of the row: "
        "Σ_j a_j dA_j.",
        lambda *x: _backward(*x, centre=lambda A, dA: dA.mean(axis=-1, keepdims=True)),
    ),
    Mistake(
        "average over queries",
        "you average down the columns. Softmax runs along a row, over the keys, and so does its "
        "way back.",
        lambda *x: _backward(*x, centre=lambda A, dA: (A * dA).sum(axis=0, keepdims=True)),
    ),
    Mistake(
        "pull on the values' place",
        "your dV is dO: as if each output read one value. A value collects from all outputs, as "
        "much as they read it: Aᵀ dO.",
        lambda *x: (*_backward(*x)[:2], x[0]),
    ),
    Mistake(
        "weights not transposed",
        "dV has one row for each **key**, and collects what all queries ask of it: Aᵀ dO.",
        lambda dO, Q, K, V: softmax(_scaled(Q, K)) @ dO,
    ),
)


def _adam(g, mean, square, step, rate, *, betas=(0.9, 0.99), power=2, root=True, sign=-1, count=1):
    """One step of Adam, with the slips that the table below is made of; no count, no correction."""
    mean = betas[0] * mean + (1 - betas[0]) * g
    square = betas[1] * square + (1 - betas[1]) * np.abs(g) ** power
    m, v = mean, square
    if count is not None:
        m, v = mean / (1 - betas[0] ** (step + count)), square / (1 - betas[1] ** (step + count))
    return sign * rate * m / ((np.sqrt(v) if root else v) + 1e-8), mean, square


ADAM_MISTAKES = (
    Mistake(
        "not corrected",
        "you take the two means as they are. They start at 0, so after t steps they are too small "
        "by 1 − βᵗ: divide by it.",
        lambda *x: _adam(*x, count=None),
    ),
    Mistake(
        "counted from 0",
        "you correct by 1 − β^step. Here step is 0 at the first step, when one gradient has been "
        "seen already: t = step + 1.",
        lambda *x: _adam(*x, count=0),
    ),
    Mistake(
        "root forgotten",
        "you divide by the mean square. Its root has the size of a gradient, so that the quotient "
        "has none.",
        lambda *x: _adam(*x, root=False),
    ),
    Mistake(
        "not squared",
        "your second mean is of |g|, not of g².",
        lambda *x: _adam(*x, power=1),
    ),
    Mistake(
        "rates of forgetting exchanged",
        "you exchange the two β: the mean of g forgets faster (.9) than the mean of g² (.99).",
        lambda *x: _adam(*x, betas=(0.99, 0.9)),
    ),
    Mistake(
        "uphill",
        "your change goes up the gradient: the loss would grow. Take it with a minus.",
        lambda *x: _adam(*x, sign=1),
    ),
)

_WAY_BACK = (
    "you move the wrong way round. Place i takes the token of place rho[i], so row i is row "
    "`[rho]` of the old; `argsort(rho)`, or Pᵀ in place of P, puts things back. A reversal is "
    "its own inverse and cannot tell."
)

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


def _waves(n, d, exponents, base=10000.0, start=0):
    """Sines in even columns and cosines in odd ones, with an exponent for each column."""
    angles = np.arange(start, start + n)[:, None] * float(base) ** -exponents
    return np.where(np.arange(d) % 2 == 0, np.sin(angles), np.cos(angles))


def _of_pair(d):
    """The right exponents: both columns of a pair share one."""
    return 2 * (np.arange(d) // 2) / d


SINUSOID_MISTAKES = (
    Mistake(
        "a frequency for each column",
        "sine and cosine of a pair have different frequencies in your table. They are the two "
        "coordinates of one hand of a clock: the exponent takes the number of the pair, "
        "`column // 2`, twice, and not the number of the column.",
        lambda n, d: _waves(n, d, np.arange(d) / d),
    ),
    Mistake(
        "factor 2 forgotten",
        "your hands turn too fast: the exponent of pair r is 2r/d, not r/d.",
        lambda n, d: _waves(n, d, (np.arange(d) // 2) / d),
    ),
    Mistake(
        "exponent of the wrong sign",
        "your frequencies grow from pair to pair. They should fall: base to the power −2r/d.",
        lambda n, d: _waves(n, d, -_of_pair(d)),
    ),
    Mistake(
        "sine and cosine exchanged",
        "the even columns, counted from 0, are sines: position 0 is the row 0, 1, 0, 1, …",
        lambda n, d: np.where(
            np.arange(d) % 2 == 0,
            np.cos(np.arange(n)[:, None] * 10000.0 ** -_of_pair(d)),
            np.sin(np.arange(n)[:, None] * 10000.0 ** -_of_pair(d)),
        ),
    ),
    Mistake(
        "concatenated",
        "you put all sines first and then all cosines. The columns are right, only their order is "
        "not what the exercise asks: sine and cosine alternate.",
        lambda n, d: sinusoidal_positions(n, d, layout="concatenated"),
    ),
    Mistake(
        "positions from 1",
        "your positions begin with 1; here they begin with 0.",
        lambda n, d: _waves(n, d, _of_pair(d), start=1),
    ),
    Mistake(
        "transposed",
        "your table has a column for each position. Rows are positions.",
        lambda n, d: sinusoidal_positions(n, d).T,
    ),
    Mistake(
        "odd width",
        "for odd d there is one sine more than there are cosines: cut the cosines to d // 2 "
        "columns.",
        lambda n, d: _interleaved_without_care(n, d),
    ),
)


def _interleaved_without_care(n, d):
    table = np.zeros((n, d))
    angles = np.arange(n)[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def _turned(X, angles):
    """Turn neighbours by an angle for each row and pair."""
    x, y = X[:, 0::2], X[:, 1::2]
    cos, sin = np.cos(angles), np.sin(angles)
    return x * cos - y * sin, x * sin + y * cos


def _angles(X, positions, exponents=None):
    d = X.shape[1]
    exponents = np.arange(0, d, 2) / d if exponents is None else exponents
    return np.asarray(positions)[:, None] * 10000.0**-exponents


ROPE_MISTAKES = (
    Mistake(
        "turned backwards",
        "you turn the other way. With queries and keys both turned backwards the scores would "
        "still depend on the offset alone, but a model trained the usual way round would fail.",
        lambda X, positions: rope(X, -np.asarray(positions)),
    ),
    Mistake(
        "other pairing",
        "you pair coordinate r with r + d/2. That works too, if everything does it; the exercise "
        "asks for neighbours, 0 with 1 and 2 with 3.",
        lambda X, positions: rope(X, positions, pairing="half"),
    ),
    Mistake(
        "pairs not put back",
        "you read neighbours as pairs and write them one half after the other. Put them back "
        "where they came from: stack on a new last axis, then reshape.",
        lambda X, positions: np.concatenate(_turned(X, _angles(X, positions)), axis=-1),
    ),
    Mistake(
        "reflection",
        "this is a reflection, not a rotation: one of the two signs is wrong. A turn by 0 must "
        "change nothing.",
        lambda X, positions: np.stack(
            (
                X[:, 0::2] * np.cos(_angles(X, positions))
                + X[:, 1::2] * np.sin(_angles(X, positions)),
                X[:, 0::2] * np.sin(_angles(X, positions))
                - X[:, 1::2] * np.cos(_angles(X, positions)),
            ),
            axis=-1,
        ).reshape(X.shape),
    ),
    Mistake(
        "overwritten too early",
        "the second coordinate of a pair is computed from the first *after* that one has been "
        "turned. Keep both old coordinates until both new ones are there.",
        lambda X, positions: _turned_in_place(X, _angles(X, positions)),
    ),
    Mistake(
        "one frequency",
        "all your pairs turn at the same speed. Pair r turns by base^(−2r/d) for each step.",
        lambda X, positions: _stacked(X, _angles(X, positions, np.zeros(X.shape[1] // 2))),
    ),
    Mistake(
        "factor 2 forgotten",
        "your pairs turn too fast: the exponent of pair r is 2r/d, not r/d.",
        lambda X, positions: _stacked(
            X, _angles(X, positions, np.arange(X.shape[1] // 2) / X.shape[1])
        ),
    ),
    Mistake(
        "places ignored",
        "you count the rows and ignore `positions`. Behind a cache a row does not stand at its "
        "own number.",
        lambda X, positions: rope(X),
    ),
    Mistake(
        "sinusoids added",
        "you add sinusoids. RoPE adds nothing: it turns each pair and keeps its length.",
        lambda X, positions: X + sinusoidal_positions(positions, X.shape[1]),
    ),
)


def _stacked(X, angles):
    return np.stack(_turned(X, angles), axis=-1).reshape(X.shape)


def _turned_in_place(X, angles):
    Y = np.array(X, float)
    Y[:, 0::2] = Y[:, 0::2] * np.cos(angles) - Y[:, 1::2] * np.sin(angles)
    Y[:, 1::2] = Y[:, 0::2] * np.sin(angles) + Y[:, 1::2] * np.cos(angles)
    return Y
