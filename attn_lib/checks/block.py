"""Checks of the exercises of chapter 9, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.blocks import gelu, layer_norm
from attn_lib.checks.engine import Case, Mistake, Report, by_hand, check_function, random_inputs
from attn_lib.dot_product import softmax
from attn_lib.model import Config, count_params

__all__ = ["check_layer_norm", "check_nucleus", "check_pre_norm_block"]


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


def check_layer_norm(function: Callable) -> Report:
    """Check ``f(X, gain, bias)``, a layer norm with ε = 1e-5, one token per row."""
    drawn = [random_inputs(s, X=(4, 6), gain=(6,), bias=(6,)) for s in (0, 1)]
    drawn[1]["X"] = 20 * drawn[1]["X"] + 50
    constant = random_inputs(2, gain=(5,), bias=(5,)) | {"X": np.full((2, 5), 3.0)}
    return check_function(
        function,
        right=layer_norm,
        cases=[
            *(Case({name: each[name] for name in ("X", "gain", "bias")}) for each in drawn),
            Case(
                {name: constant[name] for name in ("X", "gain", "bias")},
                "with tokens whose features are all equal",
            ),
        ],
        mistakes=LAYER_NORM_MISTAKES,
        returns=("normalised",),
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


def check_pre_norm_block(function: Callable) -> Report:
    """Check ``f(X, A, W, W_1, W_2)``: one block without gains and biases, its weights A given."""

    def right(X, A, W, W_1, W_2):
        middle = X + A @ layer_norm(X) @ W
        return middle + gelu(layer_norm(middle) @ W_1) @ W_2

    shapes = {"X": (5, 4), "A": (5, 5), "W": (4, 4), "W_1": (4, 7), "W_2": (7, 4)}
    cases = []
    for seed in (0, 1):
        inputs = random_inputs(seed, **shapes)
        cases.append(Case(inputs | {"X": 2 * inputs["X"] + 1, "A": softmax(inputs["A"])}))
    return check_function(
        function, right=right, cases=cases, mistakes=PRE_NORM_MISTAKES, returns=("stream",)
    )


def _nucleus(logits, T, p, *, strict=False, shared=True):
    """Keep the likeliest tokens until they reach p; those before a token decide of it."""
    a = softmax(logits / T)
    order = np.argsort(-a)
    reached = np.cumsum(a[order]) - (0 if strict else a[order])
    kept = np.zeros_like(a)
    keep = order[reached < p]
    kept[keep] = a[keep]
    return kept / kept.sum() if shared else kept


def _sorted_away(logits, T, p):
    a = _nucleus(logits, T, p)
    return np.sort(a)[::-1]


def _cut_then_heated(logits, T, p):
    kept = np.where(_nucleus(logits, 1.0, p) > 0, logits, -np.inf)
    return softmax(kept / T)


def _least_first(logits, T, p):
    a = softmax(logits / T)
    order = np.argsort(a)
    kept = np.zeros_like(a)
    keep = order[np.cumsum(a[order]) - a[order] < p]
    kept[keep] = a[keep]
    return kept / kept.sum()


def _each_above(logits, T, p):
    a = softmax(logits / T)
    return np.where(a >= 1 - p, a, 0)


NUCLEUS_MISTAKES = (
    Mistake(
        "each alone",
        "you compare each probability with 1 − p. The nucleus is about a *sum*: go down from the "
        "likeliest until those kept reach p, and divide by their sum.",
        _each_above,
    ),
    Mistake(
        "last one left out",
        "your set does not reach p: the token with which the sum reaches p belongs to it.",
        lambda logits, T, p: _nucleus(logits, T, p, strict=True),
    ),
    Mistake(
        "not shared out",
        "the right tokens are kept, but their probabilities do not sum to 1: divide by their sum.",
        lambda logits, T, p: _nucleus(logits, T, p, shared=False),
    ),
    Mistake(
        "sorted away",
        "your probabilities are in order of size. Entry i belongs to token i: put them back.",
        _sorted_away,
    ),
    Mistake(
        "multiplied by T",
        "you multiply by the temperature. Divide: a high one makes the logits more alike.",
        lambda logits, T, p: _nucleus(logits, 1 / T, p),
    ),
    Mistake(
        "temperature left out",
        "you do not use the temperature.",
        lambda logits, T, p: _nucleus(logits, 1.0, p),
    ),
    Mistake(
        "cut first",
        "you choose the nucleus before the temperature is applied. Heat first: a hot distribution "
        "has a larger nucleus.",
        _cut_then_heated,
    ),
    Mistake(
        "least likely first",
        "you start from the least likely token: sort downwards.",
        _least_first,
    ),
    Mistake(
        "no nucleus",
        "all tokens are still possible: p is not used.",
        lambda logits, T, p: softmax(logits / T),
    ),
)


def check_nucleus(function: Callable) -> Report:
    """Check ``f(logits, T, p)``: probabilities of top-p sampling at temperature T."""
    cases = [
        Case({"logits": np.array(logits), "T": T, "p": p}, note)
        for logits, T, p, note in [
            ([0.0, 0.6, 1.0, 1.2, 0.9, 0.8, 2.6, -1.8], 1.8, 0.6, ""),
            ([1.0, 4.0, 0.5, 3.0], 0.5, 0.6, "where the first token reaches p alone"),
            ([0.2, 0.9, -0.7, 1.4, 0.1], 3.0, 0.95, "hot"),
        ]
    ]
    return check_function(
        function,
        right=_nucleus,
        cases=cases,
        mistakes=NUCLEUS_MISTAKES,
        returns=("probabilities",),
    )


_TOKEN = np.array([8.0, 2.0, 8.0, 2.0])
_SIGNS = np.array([1.0, -1.0, 1.0, -1.0])


def _large() -> dict[str, float]:
    """Count the decoder of the exercise, in millions, part by part."""
    config = Config(vocabulary=50_000, context=1024, d=768, layers=12, heads=12, d_ff=3072)
    return {name: count / 1e6 for name, count in count_params(config).items()}


def _large_wrong() -> dict[str, tuple[float, float]]:
    parts = _large()
    total, attention, table = parts["total"], parts["attention"], 768 * 0.05
    blocks = attention + parts["feed_forward"]
    return {
        "U is a matrix of its own: count the vocabulary twice.": (
            total - table,
            attention / (total - table),
        ),
        "the share is that of *all* parameters, not of those in the blocks.": (
            total,
            attention / blocks,
        ),
        "the embedding, the positions and U are parameters too.": (blocks, attention / blocks),
        "W_O belongs to attention: four matrices, not three.": (
            total - attention / 4,
            0.75 * attention / (total - attention / 4),
        ),
        "there are twelve blocks.": (
            total - blocks * 11 / 12,
            attention / 12 / (total - blocks * 11 / 12),
        ),
        "each head does not have 768 × 768 of its own: the twelve share that.": (
            total + 11 * attention,
            12 * attention / (total + 11 * attention),
        ),
    }


def _likely(head: float, sampling: float) -> float:
    """Give the probability of A in the exercise on two temperatures."""
    output = softmax(np.array([np.log(3), 0]) / head) @ np.array([2.0, -2.0])
    return float(softmax(np.array([output, 0.0]) / sampling)[0])


EXERCISES = {
    "ex-block-hand": by_hand(
        _SIGNS,
        {
            "you divided by the variance; take its root.": _SIGNS / 3,
            "your variance divides by d − 1; here it is d.": _SIGNS * np.sqrt(3) / 2,
            "you kept the mean in.": _TOKEN / 3,
            "you took the mean off and did not divide.": 3 * _SIGNS,
            "you divided by the length of the deviations. Variance 1 is length √d, here 2.": (
                _SIGNS / 2
            ),
        },
    ),
    "ex-block-count": by_hand(
        lambda: (_large()["total"], _large()["attention"] / _large()["total"]),
        _large_wrong,
        tol=[0.6, 0.006],
    ),
    "ex-block-norm": check_layer_norm,
    "ex-block-code": check_pre_norm_block,
    "ex-block-write": check_nucleus,
    "ex-block-temperatures": by_hand(
        lambda: [_likely(1, 1), _likely(1 / 2, 1), _likely(1, 1 / 2)],
        lambda: {
            "those are weights in the head, not probabilities of A: go on to the logit.": [
                0.75,
                0.9,
                0.75,
            ],
            "the temperature of a head is applied to scores, before softmax; the weights 9 : 1 "
            "come from doubled scores, not from doubled weights.": [
                _likely(1, 1),
                float(softmax(np.array([2.0, 0]))[0]),
                _likely(1, 1 / 2),
            ],
            "you have the two temperatures in each other's place.": [
                _likely(1, 1),
                _likely(1, 1 / 2),
                _likely(1 / 2, 1),
            ],
            "a temperature divides: ½ doubles scores or logits.": [
                _likely(1, 1),
                _likely(2, 1),
                _likely(1, 2),
            ],
            "the second key's value is −2, and it is read too.": [
                float(softmax(np.array([x, 0]))[0]) for x in (1.5, 1.8, 3.0)
            ],
            "those are logits. Apply softmax to (logit, 0).": [1, 1.6, 2],
        },
    ),
}
