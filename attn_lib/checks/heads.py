"""Checks of the exercises of chapter 8, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.checks.engine import WRONG_AXIS, Case, Mistake, Report, check_function, random_inputs
from attn_lib.checks.qkv import weights_of
from attn_lib.dot_product import softmax
from attn_lib.heads import merge_heads, multi_head_attention, split_heads

__all__ = ["check_multi_head", "check_split_heads"]


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
            case(0, 5, 9, 3, 2, 4),
            case(1, 2, 8, 2, 3, 5, note="as many heads as tokens"),
            case(2, 4, 5, 1, 3, 2, note="one head"),
        ],
        mistakes=MULTI_HEAD_MISTAKES,
        returns=("output",),
    )
