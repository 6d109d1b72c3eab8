"""Checks of the exercises of chapter 9, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.blocks import gelu, layer_norm
from attn_lib.checks.engine import Case, Mistake, Report, check_function, random_inputs
from attn_lib.dot_product import softmax

__all__ = ["check_layer_norm", "check_pre_norm_block"]


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
