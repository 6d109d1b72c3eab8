"""Checks of the exercises of chapter 6, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.checks.engine import Case, Mistake, Report, by_hand, check_function, random_inputs
from attn_lib.checks.qkv import ATTENTION_MISTAKES, allowed, bare_softmax, mix, scaled
from attn_lib.dot_product import attention, softmax
from attn_lib.masks import causal_mask

__all__ = ["check_causal_mask", "check_document_mask", "check_masked_attention"]


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
        "offset guessed from the shape",
        "you align the last query with the last key, whatever the offset is. The offset says where "
        "the queries stand; the shape does not.",
        lambda n, m, offset: causal_mask(n, m, offset=m - n),
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


def check_causal_mask(function: Callable) -> Report:
    """Check ``f(n, m, offset)``, which gives a boolean mask, True where ``j <= i + offset``."""
    return check_function(
        function,
        right=lambda n, m, offset: causal_mask(n, m, offset=offset),
        cases=[
            Case({"n": 3, "m": 6, "offset": 2}, "a key beyond the last query"),
            Case({"n": 3, "m": 5, "offset": 2}, "last query with last key"),
            Case({"n": 2, "m": 5, "offset": 0}, "first query with first key"),
            Case({"n": 4, "m": 4, "offset": 0}),
            Case({"n": 5, "m": 3, "offset": -2}, "more queries than keys"),
        ],
        mistakes=CAUSAL_MASK_MISTAKES,
        returns=("mask",),
    )


def _masking(change: Callable) -> Callable:
    """Attention whose scores are changed by `change(S, keep)` before the softmax."""
    return lambda Q, K, V, keep: mix(softmax(change(scaled(Q, K), keep)), V)


def _after_softmax(Q, K, V, keep):
    return softmax(scaled(Q, K)) * keep


def _renormalised(Q, K, V, keep):
    A = _after_softmax(Q, K, V, keep)
    return mix(A / A.sum(axis=-1, keepdims=True), V)


_LARGE_NEGATIVE = (
    "a query with nothing to look at must give zeros. A large negative number is not −∞: when it "
    "stands in a whole row, softmax ignores it as a common shift, and the query reads "
)


MASK_MISTAKES = (
    Mistake(
        "mask ignored",
        "forbidden keys are still read: the mask has no effect.",
        lambda Q, K, V, keep: mix(softmax(scaled(Q, K)), V),
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
        lambda Q, K, V, keep: mix(_after_softmax(Q, K, V, keep), V),
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
        lambda Q, K, V, keep: mix(bare_softmax(allowed(scaled(Q, K), keep)), V),
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


def check_masked_attention(function: Callable) -> Report:
    """Check ``f(Q, K, V, keep)``, which gives the output, or the weights and the output.

    `keep` (n, m) is True where a query may look. A query with nothing to look at must give
    zeros, and a forbidden key must not matter however large its score.
    """
    inputs = random_inputs(0, Q=(4, 5), K=(6, 5), V=(6, 3))
    may_look = [[1, 2, 4], [3, 4, 5], [1, 3], [0, 2, 3, 5]]
    keep = np.array([np.isin(np.arange(6), keys) for keys in may_look])
    loud = inputs["K"].copy()  # so loud that after the softmax no other weight is left
    loud[0] = 10_000 * inputs["Q"][0]
    return check_function(
        function,
        right=lambda Q, K, V, keep: attention(Q, K, V, mask=keep),
        cases=[
            Case(inputs | {"keep": keep}),
            Case(inputs | {"K": loud, "keep": keep}, "with a huge score for a forbidden key"),
            Case(
                inputs | {"keep": keep & (np.arange(4) != 2)[:, None]},
                "where query 2 has nothing to look at",
            ),
        ],
        mistakes=MASK_MISTAKES,
        returns=("weights", "output"),
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


def check_document_mask(function: Callable) -> Report:
    """Check ``f(documents)``, a boolean causal mask that keeps texts packed in one row apart.

    ``documents[i]`` is the number of the text that token i belongs to. Texts stand one after the
    other.
    """
    return check_function(
        function,
        right=lambda documents: causal_mask(len(documents)) & (documents[:, None] == documents),
        cases=[
            Case({"documents": np.array([2, 2, 2, 0, 0, 1])}, "numbered in any order"),
            Case({"documents": np.array([0, 0, 1, 2, 2])}),
            Case({"documents": np.array([0, 0, 0, 0])}, "one text only"),
        ],
        mistakes=DOCUMENT_MASK_MISTAKES,
        returns=("mask",),
    )


def _row_mistakes() -> dict[str, np.ndarray]:
    powers, keep = np.array([4.0, 1, 3, 8]), np.array([1, 1, 1, 0])
    return {
        "a forbidden score of 0 still has e⁰ = 1.": np.array([4.0, 1, 3, 1]) / 9,
        "what is left does not sum to 1: the forbidden key has taken its share away.": (
            powers * keep / powers.sum()
        ),
        "you left the future in: key 4 stands behind query 3.": powers / powers.sum(),
        "these are the powers. Divide them by their sum.": powers * keep,
        "query 3 may read key 3, its own: j ≤ i.": [0.8, 0.2, 0, 0],
        "the weights of what is left are not even: the scores still count.": keep / 3,
        "you hid the past: query 3 may read keys 1, 2 and 3.": [0, 0, 3 / 11, 8 / 11],
    }


COUNT_MISTAKES = {
    "a window of 3 counts the own key: two keys before it, not three.": [28, 22, 29, 0.5],
    "the first rows have no three keys to read.": [28, 21, 29, 0.5],
    "pairs inside the prefix on and below its diagonal are in the causal count already.": [
        28, 18, 32, 0.5,
    ],
    "inside the prefix every query reads every key, the later one too.": [28, 18, 28, 0.5],
    "(d) asks for large n; this is the share for n = 7.": [28, 18, 29, 21 / 49],
    "(d) asks for the share that is saved, as n grows.": [28, 18, 29, 28 / 49],
    "a query may read its own key too.": [21, 11, 24, 28 / 49],
    "you counted the forbidden pairs.": [21, 31, 20, 0.5],
}  # fmt: skip

LEAKS_MISTAKES = {  # single slips come first: two answers leave no room to tell more apart
    "A is honest. What it subtracts is made from later scores too, but it is one number for the "
    "whole row, and softmax ignores a shift of its row.": [1, 1, 1, 0, 1],
    "look at B again. One later token with a large score makes all scores of earlier rows "
    "smaller.": [0, 0, 1, 0, 1],
    "look at C again. The mean is taken over all tokens, later ones too, before the mask is "
    "there.": [0, 1, 0, 0, 1],
    "D is honest. A running sum at position i holds tokens 1 to i.": [0, 1, 1, 1, 1],
    "look at E again. The forbidden weights are gone, but their powers still stand in the "
    "denominator of the allowed ones.": [0, 1, 1, 0, 0],
    "what decides is what the numbers are made from, not whether the weights above the diagonal "
    "are 0. They are 0 in all five.": [0, 0, 0, 0, 0],
    "a sum over tokens need not leak: it may stop at the own place, or drop out again.": [
        1, 1, 1, 1, 1,
    ],
}  # fmt: skip

EXERCISES = {
    "ex-mask-row": by_hand([0.5, 0.125, 0.375, 0], mistakes=_row_mistakes),
    "ex-mask-count": by_hand([28, 18, 29, 0.5], mistakes=COUNT_MISTAKES),
    "ex-mask-detect": by_hand([0, 1, 1, 0, 1], mistakes=LEAKS_MISTAKES),
    "ex-mask-causal": check_causal_mask,
    "ex-mask-attention": check_masked_attention,
    "ex-mask-documents": check_document_mask,
}
