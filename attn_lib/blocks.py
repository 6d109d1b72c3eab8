"""The whole block, and the tiny Transformer made of it.

Parameters are one plain dict of arrays. Those of layer 1 have names such as ``"1.W_Q"``; within a
layer they are called as in the text: ``W_Q``, ``W_K``, ``W_V``, ``W_O``, and, where the model
has them, ``W_1``, ``b_1``, ``W_2``, ``b_2`` of the feed-forward part, ``gain_1``, ``bias_1`` of the
norm beside attention and ``gain_2``, ``bias_2`` of the one beside the feed-forward part.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from attn_lib.arrays import Array, takes
from attn_lib.heads import MultiHeadResult, multi_head_layer
from attn_lib.rules import not_negative, one_of, whole

# The parts that work on each token alone ---------------------------------------


@takes("X (..., d)", "gain (d)", "bias (d)", like="X", eps=not_negative)
def layer_norm(X: Array, gain: Array = 1.0, bias: Array = 0.0, *, eps: float = 1e-5) -> np.ndarray:
    """Give each token mean 0 and variance 1 over its own features, then stretch and shift them.

    Parameters
    ----------
    X : array_like, shape (..., d)
        One token per row. No token sees another here.
    gain, bias : array_like, shape (d,)
        Learned stretch and shift of each feature.
    eps : float, default 1e-5
        Added to the variance (over d, not d − 1), so that a constant row gives `bias`.

    Returns
    -------
    ndarray, same shape as `X`

    Raises
    ------
    ValueError
        If `X` does not hold real numbers.

    Notes
    -----
    Ba, Kiros and Hinton (2016).
    """
    centred = X - X.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * gain + bias


@takes("X (..., d)", "gain (d)", like="X", eps=not_negative)
def rms_norm(X: Array, gain: Array = 1.0, *, eps: float = 1e-5) -> np.ndarray:
    """Divide each token by its root mean square: a layer norm that leaves the mean alone.

    Parameters
    ----------
    X : array_like, shape (..., d)
        One token per row.
    gain : array_like, shape (d,)
        Learned stretch of each feature.
    eps : float, default 1e-5
        Added to the mean square.

    Returns
    -------
    ndarray, same shape as `X`

    Raises
    ------
    ValueError
        If `X` does not hold real numbers.

    Notes
    -----
    Zhang and Sennrich (2019).
    """
    mean_square = (X**2).mean(axis=-1, keepdims=True)
    return X / np.sqrt(mean_square + eps) * gain


_STEP, _LAST = 1 / 64, 6.0  # erf(6) is 1 in float64


def _erf_series() -> np.ndarray:
    """Taylor coefficients of erf at 0, 1/64, 2/64, … 6: one row per order, 0 to 6.

    The standard library knows erf itself. Its derivatives are 2/√π e^(−x²) times a Hermite
    polynomial, H_{r+1} = 2x H_r − 2r H_{r−1}, with alternating sign.
    """
    x = np.arange(0, _LAST + _STEP, _STEP)
    slope = 2 / math.sqrt(math.pi) * np.exp(-(x**2))
    hermite = [np.ones_like(x), 2 * x]
    for r in range(1, 5):
        hermite.append(2 * x * hermite[r] - 2 * r * hermite[r - 1])
    rows = [np.array([math.erf(node) for node in x])]
    rows += [(-1) ** r * H * slope / math.factorial(r + 1) for r, H in enumerate(hermite)]
    return np.array(rows)


_ERF = _erf_series()
_ERF_SHORT = _ERF[:4].astype(np.float32)  # the next term is below 2e-9


@takes("x (...)")
def erf(x: Array) -> np.ndarray:
    """Evaluate the error function, 2/√π ∫₀ˣ e^(−t²) dt, for a whole array.

    Parameters
    ----------
    x : array_like, shape (...)
        Real numbers.

    Returns
    -------
    ndarray, same shape as `x`
        Within 3e-16 of `math.erf` in float64.

    Raises
    ------
    ValueError
        If `x` does not hold real numbers.

    Notes
    -----
    numpy has no erf. Here `math.erf` is tabulated in steps of 1/64, and from the nearest entry,
    at most 1/128 away, a Taylor series of order 6 goes on; for float32 order 3 will do.
    """
    series = _ERF_SHORT if x.dtype == np.float32 else _ERF
    size = np.fmin(np.abs(x), _LAST)
    node = np.rint(size / _STEP).astype(np.intp)
    away = size - node.astype(size.dtype) * _STEP
    value = series[-1][node]
    for row in series[-2::-1]:
        value = value * away + row[node]
    return np.where(np.isnan(x), np.nan, np.copysign(value, x))


@takes("x (...)")
def gelu(x: Array) -> np.ndarray:
    """Let a number through in the share of a normal population below it: ``x Φ(x)``.

    Parameters
    ----------
    x : array_like, shape (...)
        Real numbers.

    Returns
    -------
    ndarray, same shape as `x`
        ``x (1 + erf(x/√2)) / 2``, the exact form, not the tanh approximation (which is up to
        5e-4 away).

    Raises
    ------
    ValueError
        If `x` does not hold real numbers.

    Notes
    -----
    Hendrycks and Gimpel (2016).
    """
    return x * (1 + erf(x * math.sqrt(0.5))) / 2


@takes("X (..., d)", "W_1 (d, d_ff)", "b_1 (d_ff)", "W_2 (d_ff, d_out)", "b_2 (d_out)")
def feed_forward(X: Array, W_1: Array, b_1: Array, W_2: Array, b_2: Array) -> np.ndarray:
    """Work on each token alone: ``gelu(X W_1 + b_1) W_2 + b_2``.

    Parameters
    ----------
    X : array_like, shape (..., d)
        One token per row.
    W_1, b_1 : array_like, shapes (d, d_ff) and (d_ff,)
        Into the wider hidden layer.
    W_2, b_2 : array_like, shapes (d_ff, d) and (d,)
        And back.

    Returns
    -------
    ndarray, shape (..., d)

    Raises
    ------
    ValueError
        If an argument does not hold real numbers or the shapes do not fit.

    Notes
    -----
    Vaswani et al. (2017), section 3.3, with GELU for the ReLU.
    """
    return gelu(X @ W_1 + b_1) @ W_2 + b_2


# One block --------------------------------------------------------------------


Part = Callable[[np.ndarray], np.ndarray]


class BlockResult(NamedTuple):
    """One block, step by step.

    Attributes
    ----------
    attention : MultiHeadResult
        What the heads did.
    middle : ndarray, shape (..., n, d)
        The residual stream after attention has been added.
    output : ndarray, shape (..., n, d)
        And after the feed-forward part, if there is one.
    """

    attention: MultiHeadResult
    middle: np.ndarray
    output: np.ndarray


def pre_norm_block(X: Array, attend: Part, think: Part, norm_1: Part, norm_2: Part) -> np.ndarray:
    """Add to the stream what two parts make of a normalised copy of it.

    Parameters
    ----------
    X : array_like, shape (..., n, d)
        The residual stream: one token per row.
    attend, think : callable
        The two parts: attention, in which tokens read each other, and feed-forward, in which
        each is alone.
    norm_1, norm_2 : callable
        The layer norm before each.

    Returns
    -------
    ndarray, shape (..., n, d)

    Notes
    -----
    Xiong et al. (2020). `block` does the same with the parameters of a layer, and keeps what
    happened inside.
    """
    X = X + attend(norm_1(X))
    return X + think(norm_2(X))


def post_norm_block(X: Array, attend: Part, think: Part, norm_1: Part, norm_2: Part) -> np.ndarray:
    """Normalise the stream itself, after each part has added to it.

    Parameters
    ----------
    X, attend, think, norm_1, norm_2
        See `pre_norm_block`.

    Returns
    -------
    ndarray, shape (..., n, d)

    Notes
    -----
    Vaswani et al. (2017), the order of the first Transformer.
    """
    X = norm_1(X + attend(X))
    return norm_2(X + think(X))


@takes("X (..., n, d)", cast=False, heads=whole(1), norm=one_of("pre", "post", "none"))
def block(
    X: Array,
    layer: dict[str, np.ndarray],
    *,
    heads: int,
    norm: str = "pre",
    residual: bool = True,
    mask: Array | None = None,
    eps: float = 1e-5,
    past: tuple[np.ndarray, np.ndarray] | None = None,
    edit: Callable[[np.ndarray], np.ndarray] | None = None,
) -> BlockResult:
    """Let the tokens read each other, then let each think alone; add both to the stream.

    Parameters
    ----------
    X : array_like, shape (..., n, d)
        The residual stream: one token per row.
    layer : dict of ndarray
        ``W_Q``, ``W_K``, ``W_V``, ``W_O`` with or without their biases ``b_Q`` …; ``W_1``,
        ``b_1``, ``W_2``, ``b_2``, or none of them in a model of attention alone; ``gain_1``,
        ``bias_1``, ``gain_2``, ``bias_2`` where there are norms.
    heads : int
        Number of heads.
    norm : {"pre", "post", "none"}, default "pre"
        ``X + f(LN(X))``, where the stream itself is never normalised; ``LN(X + f(X))``, the
        order of 2017; or ``X + f(X)``.
    residual : bool, default True
        False leaves out the ``X +``: a part then replaces what it has read.
    mask, past, edit
        See `multi_head_layer`.
    eps : float, default 1e-5
        See `layer_norm`.

    Returns
    -------
    BlockResult
        The heads' work, the stream between the two parts, and the stream after both.

    Raises
    ------
    ValueError
        If `norm` is none of the three, or the shapes do not fit.

    Notes
    -----
    Vaswani et al. (2017) for post-norm, Xiong et al. (2020) for both.
    """
    attend = partial(attention_of, layer, heads=heads, mask=mask, past=past, edit=edit)
    before, after = norm_of(layer, 1, norm, eps)
    attended = attend(before(X))
    middle = after(X + attended.output if residual else attended.output)
    if "W_1" not in layer:
        return BlockResult(attended, middle, middle)
    before, after = norm_of(layer, 2, norm, eps)
    thought = feed_forward_of(layer, before(middle))
    return BlockResult(attended, middle, after(middle + thought if residual else thought))


def attention_of(layer: dict[str, np.ndarray], X: np.ndarray, **options: Any) -> MultiHeadResult:
    """Run `multi_head_layer` with the matrices, and biases if any, of one layer."""
    matrices = [layer[name] for name in ("W_Q", "W_K", "W_V", "W_O")]
    options |= {name: layer[name] for name in ("b_Q", "b_K", "b_V", "b_O") if name in layer}
    return multi_head_layer(X, *matrices, **options)


def feed_forward_of(layer: dict[str, np.ndarray], X: np.ndarray) -> np.ndarray:
    """Run `feed_forward` with the parameters of one layer."""
    return feed_forward(X, layer["W_1"], layer["b_1"], layer["W_2"], layer["b_2"])


def norm_of(
    layer: dict[str, np.ndarray], which: int, norm: str, eps: float
) -> tuple[Callable, Callable]:
    """Give what is done before a part reads the stream, and after it has been added."""
    if norm == "none":
        return _unchanged, _unchanged
    gain, bias = layer[f"gain_{which}"], layer[f"bias_{which}"]
    normalise = partial(layer_norm, gain=gain, bias=bias, eps=eps)
    return (normalise, _unchanged) if norm == "pre" else (_unchanged, normalise)


def _unchanged(X: Array) -> np.ndarray:
    return np.asarray(X)
