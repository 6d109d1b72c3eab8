"""Checks of the exercises of chapter 8, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.checks.engine import (
    WRONG_AXIS,
    Case,
    Mistake,
    Report,
    by_hand,
    check_function,
    random_inputs,
)
from attn_lib.checks.qkv import weights_of
from attn_lib.dot_product import softmax
from attn_lib.heads import merge_heads, multi_head_attention, split_heads

__all__ = ["check_copy_score", "check_multi_head", "check_split_heads"]


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


def check_split_heads(function: Callable) -> Report:
    """Check ``f(X, heads)``: columns (n, h · width) cut into heads, (h, n, width)."""

    def case(seed, n, heads, width, note=""):
        return Case(random_inputs(seed, X=(n, heads * width)) | {"heads": heads}, note)

    return check_function(
        function,
        right=split_heads,
        cases=[
            case(0, 5, 3, 2),
            case(1, 4, 4, 2, note="as many heads as tokens"),
            case(2, 3, 1, 5, note="one head"),
        ],
        mistakes=SPLIT_MISTAKES,
        returns=("heads",),
    )


def _joined(split=split_heads, merge=merge_heads, power=0.5, width=None, axis=-1, change=None):
    """Multi-head attention with one thing changed; scores are divided by width ** power."""

    def attend(X, W_Q, W_K, W_V, W_O, heads):
        Q, K, V = (split(X @ W, heads) for W in (W_Q, W_K, W_V))
        divisor = (width(X, W_Q, W_V, heads) if width else Q.shape[-1]) ** power
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
        mixed.append(weights_of(Q, K) @ V)
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
        _joined(width=lambda X, W_Q, W_V, heads: X.shape[1]),
    ),
    Mistake(
        "scale of all heads",
        "you divide by √(h · d_k), the width of all heads together. A score sums d_k products: "
        "divide by √d_k, or all weights are too flat.",
        _joined(width=lambda X, W_Q, W_V, heads: W_Q.shape[1]),
    ),
    Mistake(
        "scale of the number of heads",
        "you divide by √h. How many heads there are does not matter to a score: divide by √d_k.",
        _joined(width=lambda X, W_Q, W_V, heads: heads),
    ),
    Mistake(
        "scale of the values",
        "you divide by √d_v, the width of a value. A score sums d_k products of a query and a key: "
        "divide by √d_k.",
        _joined(width=lambda X, W_Q, W_V, heads: W_V.shape[1] // heads),
    ),
    Mistake(
        "scale of the token's share",
        "you divide by √(d / h), the token's width shared out. That is √d_k only if heads have "
        "this width: take it from the projected query, `W_Q.shape[1] // heads`.",
        _joined(width=lambda X, W_Q, W_V, heads: X.shape[1] / heads),
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


def check_multi_head(function: Callable) -> Report:
    """Check ``f(X, W_Q, W_K, W_V, W_O, heads)``: the output of several heads, joined by W_O."""

    def case(seed, n, d, heads, d_k, d_v, note=""):
        shapes = {"X": (n, d), "W_Q": (d, heads * d_k), "W_K": (d, heads * d_k)}
        shapes |= {"W_V": (d, heads * d_v), "W_O": (heads * d_v, d)}
        inputs = random_inputs(seed, **shapes)
        for name in ("W_Q", "W_K"):  # scores of order one
            inputs[name] /= np.sqrt(d)
        return Case(inputs | {"heads": heads}, note)

    return check_function(
        function,
        right=lambda *maps: multi_head_attention(*maps[:-1], heads=maps[-1]).output,
        cases=[
            case(0, 7, 12, 3, 5, 2),  # h, d_k, d_v, d / h, d_k² and d: no two alike
            case(1, 2, 8, 2, 3, 5, note="as many heads as tokens"),
            case(2, 4, 5, 1, 3, 2, note="one head"),
        ],
        mistakes=MULTI_HEAD_MISTAKES,
        returns=("output",),
    )


COPY_MISTAKES = (
    Mistake(
        "after the copy",
        "that is the induction score: the key you look at stands one place *after* the earlier "
        "copy. The copy of token i stands at i − L.",
        lambda A, L: _scored(A, L, lambda i: i - L + 1),
    ),
    Mistake(
        "first copy counted",
        "you count queries of the first copy too. They have no earlier copy; numpy reads a "
        "negative index from the end.",
        lambda A, L: _scored(A, 0, lambda i: i - L),
    ),
    Mistake(
        "rows and columns exchanged",
        "you read the weight of the earlier copy on the later one, which the mask forbids: rows "
        "are queries, columns are keys.",
        lambda A, L: _scored(A.swapaxes(-1, -2), L, lambda i: i - L),
    ),
    Mistake(
        "own token",
        "that is the weight on the query's own place. Its token stands there too, but the "
        "*earlier* copy stands L places before.",
        lambda A, L: _scored(A, L, lambda i: i),
    ),
    Mistake(
        "summed",
        "you add over queries; a score is a mean, or longer texts get larger scores.",
        lambda A, L: _scored(A, L, lambda i: i - L) * (A.shape[-1] - L),
    ),
    Mistake(
        "heads averaged",
        "you average over the heads as well. Each head has a score of its own: (h,).",
        lambda A, L: _scored(A, L, lambda i: i - L).mean(),
    ),
    Mistake(
        "one sequence",
        "you score the first sequence alone: average over the batch.",
        lambda A, L: _scored(A[:1], L, lambda i: i - L),
    ),
    Mistake(
        "last query",
        "you score the last query alone: average over all queries of the second copy.",
        lambda A, L: _scored(A, A.shape[-1] - 1, lambda i: i - L),
    ),
)


def _scored(A, first, key):
    """Average over a batch the weights of queries from `first` on, each on its key."""
    i = np.arange(first, A.shape[-1])
    return A[:, :, i, key(i)].mean(axis=(0, 2))


def check_copy_score(function: Callable) -> Report:
    """Check ``f(A, L)``: per head, the mean weight on the earlier copy of the query's token."""

    def case(seed, size, heads, L):
        n = 2 * L - 1
        S = random_inputs(seed, A=(size, heads, n, n))["A"]
        return Case({"A": softmax(np.where(np.tri(n, dtype=bool), S, -np.inf)), "L": L})

    return check_function(
        function,
        right=lambda A, L: _scored(A, L, lambda i: i - L),
        cases=[case(0, 4, 3, 5), case(1, 2, 1, 4)],
        mistakes=COPY_MISTAKES,
        returns=("score",),
    )


_SQUARE, _COUNTS = 768**2, np.array([4 * 768**2, 8 * 768**2 / 3, 2 * 768, 2 * 256, 8])


def _counted(**wrong):
    """Give the right five numbers, some replaced by wrong ones."""
    names = ("all", "shared", "cached", "cached_shared", "divisor")
    return np.array([wrong.get(name, x) for name, x in zip(names, _COUNTS, strict=True)])


EXERCISES = {
    "ex-heads-who": by_hand(
        0.4 * np.sqrt(2),
        {
            "0.7 − 0.3 is how far *each* coordinate moves. The length of a vector with two such "
            "coordinates is √2 times that.": 0.4,
            "that is the length of the first output, not of the difference.": np.hypot(0.3, 0.7),
            "that is the distance of the two values. The head shrinks it.": np.sqrt(2),
            "you add the two coordinates' distances: square them, add, and take the root.": 0.8,
            "you forgot the root of the sum of squares.": 0.32,
        },
    ),
    "ex-heads-count": by_hand(
        _COUNTS,
        {
            "each head's maps are 768 × 64: the twelve together are 768 × 768, not twelve times "
            "that.": _counted(all=48 * _SQUARE, shared=32 * _SQUARE),
            "W_O is a matrix of the layer too.": _counted(all=3 * _SQUARE, shared=5 * _SQUARE / 3),
            "only W_K and W_V shrink with the key heads; W_Q and W_O stay whole.": _counted(
                shared=4 * _SQUARE / 3
            ),
            "keys *and* values are kept.": _counted(cached=768, cached_shared=256),
            "one head's keys and values are not all: count those of every key head.": _counted(
                cached=128, cached_shared=128
            ),
            "a score sums 64 products: the divisor is √64, not the root of the model's width.": (
                _counted(divisor=np.sqrt(768))
            ),
            "the divisor is the *root* of a head's width.": _counted(divisor=64),
        },
        tol=[5000, 5000, 0.5, 0.5, 0.05],
    ),
    "ex-heads-split": check_split_heads,
    "ex-heads-layer": check_multi_head,
    "ex-heads-find": check_copy_score,
    "ex-heads-silence": by_hand(
        np.array([7, 1, 1, -5]),
        {
            "those are the right token's own logits. It has to beat the best wrong one: subtract "
            "5.": [12, 6, 6, 0],
            "you forgot that the twin stays: without one head the other still adds its 6.": [
                7,
                -5,
                -5,
                -5,
            ],
            "terms add and are not shared out: without one of two the lead is not halved.": [
                7,
                3.5,
                3.5,
                0,
            ],
            "those say whether the answer is right. Give by how much the token is ahead.": [
                1,
                1,
                1,
                0,
            ],
            "the heads' 6 and 6 add up: with both the right token has 12.": [1, 1, 1, -5],
            "ahead is right minus wrong: your signs are turned round.": [-7, -1, -1, 5],
        },
    ),
}
