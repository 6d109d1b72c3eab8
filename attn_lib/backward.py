"""How a change of the output asks for a change of the input: each function's backward pass.

In a name such as ``dQ`` stands the gradient of one number, the loss, with respect to ``Q``:
an array of the shape of ``Q``. A backward function takes the gradient of the output and what the
forward pass knew, and gives the gradients of the inputs. `check_gradient` holds each against
differences of the loss itself.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from attn_lib.arrays import Array, takes
from attn_lib.blocks import BlockResult, erf, feed_forward_of, gelu, layer_norm
from attn_lib.dot_product import softmax
from attn_lib.heads import MultiHeadResult, merge_heads, share_heads, split_heads
from attn_lib.model import (
    Config,
    TransformerResult,
    cross_entropy,
    layer_params,
    position_shares,
    transformer,
)
from attn_lib.rules import a_scale, not_negative, tokens_below, tokens_of, whole

Gradients = dict[str, np.ndarray]

# Attention ------------------------------------------------------------------------


@takes("dA (*batch, m)", "A (*batch, m)")
def softmax_backward(dA: Array, A: Array) -> np.ndarray:
    """Go back through a softmax along the last axis: ``dS = A ⊙ (dA − Σ_j dA_j A_j)``.

    Parameters
    ----------
    dA : array_like, shape (..., m)
        Gradient with respect to the weights.
    A : array_like, shape (..., m)
        The weights themselves.

    Returns
    -------
    ndarray, shape (..., m)
        Gradient with respect to the scores: 0 wherever the weight is 0, so that a mask needs
        no line of its own. Each row sums to 0, for a shift of the scores changes nothing.

    Raises
    ------
    ValueError
        If an argument does not hold real numbers.

    Notes
    -----
    The Jacobian is diag(a) − aᵀa, with the weights as a row.
    """
    average = (dA * A).sum(axis=-1, keepdims=True)
    return A * (dA - average)


@takes(
    "dO (..., n, d_v)",
    "Q (..., n, d_k≥1)",
    "K (..., m, d_k)",
    "V (..., m, d_v)",
    "weights (..., n, m)",
    scale=a_scale,
)
def attention_backward(
    dO: Array,
    Q: Array,
    K: Array,
    V: Array,
    *,
    weights: Array,
    scale: float | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Go back through ``O = softmax(scale · Q Kᵀ) V``.

    Parameters
    ----------
    dO : array_like, shape (..., n, d_v)
        Gradient with respect to the output.
    Q, K, V : array_like, shapes (..., n, d_k), (..., m, d_k), (..., m, d_v)
        What went in.
    weights : array_like, shape (..., n, m)
        The weights A of the forward pass. They carry the mask: a forbidden pair has weight 0.
    scale : float, optional
        As in the forward pass, by default 1/√d_k; with a temperature T, the scale over T.

    Returns
    -------
    dQ, dK, dV : ndarray
        ``dV = Aᵀ dO``; ``dA = dO Vᵀ``; ``dS = A ⊙ (dA − row average)``;
        ``dQ = scale · dS K``; ``dK = scale · dSᵀ Q``. Each has the shape of its input.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    scale = 1 / math.sqrt(K.shape[-1]) if scale is None else scale
    dV = weights.mT @ dO
    dS = scale * softmax_backward(dO @ V.mT, weights)
    dQ, dK = dS @ K, dS.mT @ Q
    return sum_to(dQ, Q.shape), sum_to(dK, K.shape), sum_to(dV, V.shape)


@takes("weights (..., n, m)", "K (..., m, d_k≥1)", "V (..., m, d_v)", scale=a_scale)
def query_jacobian(weights: Array, K: Array, V: Array, *, scale: float | None = None) -> np.ndarray:
    """How each output moves with its own query: ``∂o/∂q = scale · Cov_a(v, k)``.

    Parameters
    ----------
    weights : array_like, shape (..., n, m)
        The weights: for each query a distribution a over the keys.
    K, V : array_like, shapes (..., m, d_k), (..., m, d_v)
        Keys and values.
    scale : float, optional
        By default 1/√d_k.

    Returns
    -------
    ndarray, shape (..., n, d_v, d_k)
        ``scale · Σ_j a_j (v_j − v̄)(k_j − k̄)ᵀ``, averages taken under a. A query whose whole
        weight is on one key has a zero Jacobian: it cannot learn.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    scale = 1 / math.sqrt(K.shape[-1]) if scale is None else scale
    keys = K[..., None, :, :] - (weights @ K)[..., :, None, :]
    values = V[..., None, :, :] - (weights @ V)[..., :, None, :]
    return scale * ((weights[..., None] * values).mT @ keys)


@takes(
    "dY (*batch, n, d_out)",
    "X (*batch, n, d)",
    "source=X (..., m, d_y)",
    "W_Q (d, width)",
    "W_K (d_y, key_width)",
    "W_V (d_y, value_width)",
    "W_O (mixed_width, d_out)",
    scale=a_scale,
)
def multi_head_backward(
    dY: Array,
    X: Array,
    W_Q: Array,
    W_K: Array,
    W_V: Array,
    W_O: Array,
    *,
    result: MultiHeadResult,
    source: Array | None = None,
    scale: float | None = None,
) -> Gradients:
    """Go back through `multi_head_attention`.

    Parameters
    ----------
    dY : array_like, shape (..., n, d_out)
        Gradient with respect to the output.
    X, W_Q, W_K, W_V, W_O, source, scale
        As in the forward pass, which had no `past` and no `edit`.
    result : MultiHeadResult
        What the forward pass gave.

    Returns
    -------
    dict of ndarray
        Gradients of ``X``, ``W_Q``, ``W_K``, ``W_V``, ``W_O``, of the biases ``b_Q``, ``b_K``,
        ``b_V``, ``b_O``, and of ``source`` if there is one.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Shared key heads collect what every query head of their group asks for.
    """
    alone = source is X
    heads, groups = result.Q.shape[-3], result.K.shape[-3]
    keys, values = (share_heads(M, heads) for M in (result.K, result.V))
    grads = linear_backward(dY, merge_heads(result.mixed), W_O, names=("mixed", "W_O", "b_O"))
    dO = split_heads(grads.pop("mixed"), heads)
    dQ, dK, dV = attention_backward(dO, result.Q, keys, values, weights=result.weights, scale=scale)
    dK, dV = (_sum_groups(g, groups) for g in (dK, dV))
    grads |= linear_backward(merge_heads(dQ), X, W_Q, names=("X", "W_Q", "b_Q"))
    grads |= linear_backward(merge_heads(dK), source, W_K, names=("by_key", "W_K", "b_K"))
    grads |= linear_backward(merge_heads(dV), source, W_V, names=("by_value", "W_V", "b_V"))
    read = grads.pop("by_key") + grads.pop("by_value")
    return grads | ({"X": grads["X"] + read} if alone else {"source": read})


@takes("dY (*batch, n, d_out)", "X (*batch, n, d)", "W (d, d_out)")
def linear_backward(
    dY: Array, X: Array, W: Array, *, names: tuple[str, str, str] = ("X", "W", "b")
) -> Gradients:
    """Go back through ``Y = X W + b``: ``dX = dY Wᵀ``, ``dW = Xᵀ dY``, ``db`` the column sums.

    Parameters
    ----------
    dY : array_like, shape (..., n, d_out)
        Gradient with respect to the output.
    X, W : array_like, shapes (..., n, d), (d, d_out)
        What went in.
    names : three str
        What to call the gradients of X, W and b.

    Returns
    -------
    dict of ndarray
        W and b serve every row, so theirs are sums over all rows.

    Raises
    ------
    ValueError
        If an argument does not hold real numbers.
    """
    # One product per sequence, then a sum: on small matrices a BLAS with several threads can
    # lose far more time than the single product of all rows would save.
    dW = sum_to(X.mT @ dY, W.shape)
    return dict(zip(names, (dY @ W.T, dW, sum_to(dY, W.shape[1:])), strict=True))


# The parts that work on each token alone --------------------------------------------


@takes("dY (*batch, d)", "X (*batch, d)", "gain (d)", eps=not_negative)
def layer_norm_backward(
    dY: Array, X: Array, gain: Array = 1.0, *, eps: float = 1e-5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Go back through `layer_norm`.

    Parameters
    ----------
    dY : array_like, shape (..., d)
        Gradient with respect to the output.
    X, gain, eps
        As in the forward pass.

    Returns
    -------
    dX, dgain, dbias : ndarray, shapes (..., d), (d,), (d,)
        A row of ``dX`` sums to 0 and, up to `eps`, is orthogonal to its row of X: neither the
        mean nor the length of a token matters, so nothing is learned about them.

    Raises
    ------
    ValueError
        If an argument does not hold real numbers.
    """
    centred = X - X.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
    Z, dZ = centred / deviation, dY * gain
    along = (dZ * Z).mean(axis=-1, keepdims=True)
    dX = (dZ - dZ.mean(axis=-1, keepdims=True) - Z * along) / deviation
    return dX, sum_to(dY * Z, X.shape[-1:]), sum_to(dY, X.shape[-1:])


@takes("dY (*batch, d)", "X (*batch, d)", "gain (d)", eps=not_negative)
def rms_norm_backward(
    dY: Array, X: Array, gain: Array = 1.0, *, eps: float = 1e-5
) -> tuple[np.ndarray, np.ndarray]:
    """Go back through `rms_norm`.

    Parameters
    ----------
    dY : array_like, shape (..., d)
        Gradient with respect to the output.
    X, gain, eps
        As in the forward pass.

    Returns
    -------
    dX, dgain : ndarray, shapes (..., d), (d,)

    Raises
    ------
    ValueError
        If an argument does not hold real numbers.
    """
    size = np.sqrt((X**2).mean(axis=-1, keepdims=True) + eps)
    Z, dZ = X / size, dY * gain
    dX = (dZ - Z * (dZ * Z).mean(axis=-1, keepdims=True)) / size
    return dX, sum_to(dY * Z, X.shape[-1:])


@takes("dY (*shape)", "X (*shape)")
def gelu_backward(dY: Array, X: Array) -> np.ndarray:
    """Go back through `gelu`, whose slope is ``Φ(x) + x φ(x)``.

    Parameters
    ----------
    dY, X : array_like, shape (...)
        Gradient with respect to the output, and what went in.

    Returns
    -------
    ndarray, shape (...)

    Raises
    ------
    ValueError
        If an argument does not hold real numbers.
    """
    below = (1 + erf(X * math.sqrt(0.5))) / 2
    density = np.exp(-(X**2) / 2) / math.sqrt(2 * math.pi)
    return dY * (below + X * density)


@takes(
    "dY (*batch, n, d_out)", "X (*batch, n, d)", "W_1 (d, d_ff)", "b_1 (d_ff)", "W_2 (d_ff, d_out)"
)
def feed_forward_backward(dY: Array, X: Array, W_1: Array, b_1: Array, W_2: Array) -> Gradients:
    """Go back through `feed_forward`.

    Parameters
    ----------
    dY : array_like, shape (..., d)
        Gradient with respect to the output.
    X, W_1, b_1, W_2
        As in the forward pass.

    Returns
    -------
    dict of ndarray
        Gradients of ``X``, ``W_1``, ``b_1``, ``W_2``, ``b_2``.

    Raises
    ------
    ValueError
        If an argument does not hold real numbers.
    """
    hidden = X @ W_1 + b_1
    grads = linear_backward(dY, gelu(hidden), W_2, names=("hidden", "W_2", "b_2"))
    dhidden = gelu_backward(grads.pop("hidden"), hidden)
    return grads | linear_backward(dhidden, X, W_1, names=("X", "W_1", "b_1"))


@takes("dX (..., n, d)", vocabulary=whole(1), tokens=tokens_below("vocabulary"))
def embedding_backward(dX: Array, tokens: Array, vocabulary: int) -> np.ndarray:
    """Go back through a table lookup ``X = E[tokens]``.

    Parameters
    ----------
    dX : array_like, shape (..., n, d)
        Gradient with respect to the rows that were looked up.
    tokens : array_like of int, shape (..., n)
        Which rows they were.
    vocabulary : int
        Number of rows of E.

    Returns
    -------
    ndarray, shape (vocabulary, d)
        Each row of the table collects what all its occurrences ask for; the others get 0.

    Raises
    ------
    ValueError
        If the shapes do not fit or a token is not in the vocabulary.
    """
    if dX.shape[:-1] != tokens.shape:
        raise ValueError(f"dX {dX.shape} needs one row per token: got tokens {tokens.shape}")
    dE = np.zeros((vocabulary, dX.shape[-1]), dX.dtype)
    np.add.at(dE, tokens.ravel(), dX.reshape(-1, dX.shape[-1]))
    return dE


@takes("logits (..., n, vocabulary)", targets=tokens_of("logits"))
def cross_entropy_backward(
    logits: Array, targets: Array, counted: Array | None = None
) -> np.ndarray:
    """Go back through `cross_entropy`: probability given minus probability wanted.

    Parameters
    ----------
    logits, targets, counted
        As in the forward pass.

    Returns
    -------
    ndarray, shape (..., n, vocabulary)
        ``share · (softmax(logits) − onehot(target))``, where the shares of the positions in
        the mean sum to one.

    Raises
    ------
    ValueError
        See `cross_entropy`.
    """
    share = position_shares(targets, counted, logits)[..., None]
    dlogits = share * softmax(logits)
    right = np.take_along_axis(dlogits, targets[..., None], axis=-1)
    np.put_along_axis(dlogits, targets[..., None], right - share, axis=-1)
    return dlogits


# A block and the whole model ----------------------------------------------------------


def block_backward(
    dY: Array,
    X: Array,
    layer: dict[str, np.ndarray],
    *,
    result: BlockResult,
    norm: str = "pre",
    residual: bool = True,
    eps: float = 1e-5,
) -> Gradients:
    """Go back through `block`, its second part first.

    Parameters
    ----------
    dY : array_like, shape (..., n, d)
        Gradient with respect to the output.
    X, layer, norm, residual, eps
        As in the forward pass.
    result : BlockResult
        What the forward pass gave.

    Returns
    -------
    dict of ndarray
        The gradient of ``X``, and one for each parameter in `layer`. Each part adds to the stream,
        so the gradient of the stream passes it unchanged and the part adds its own.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    grads: Gradients = {}
    d_stream = np.asarray(dY)
    if "W_1" in layer:
        middle = result.middle
        added = feed_forward_of(layer, middle) if norm == "post" else None

        def feed_forward_part(dF: np.ndarray, read: np.ndarray) -> Gradients:
            return feed_forward_backward(dF, read, layer["W_1"], layer["b_1"], layer["W_2"])

        d_stream, part = _part_backward(
            d_stream, middle, added, feed_forward_part, layer, 2, norm, residual, eps
        )
        grads |= part

    def attention_part(dF: np.ndarray, read: np.ndarray) -> Gradients:
        matrices = [layer[name] for name in ("W_Q", "W_K", "W_V", "W_O")]
        return multi_head_backward(dF, read, *matrices, result=result.attention)

    added = result.attention.output
    d_stream, part = _part_backward(
        d_stream, X, added, attention_part, layer, 1, norm, residual, eps
    )
    grads |= part
    return {"X": d_stream} | {name: grads[name] for name in layer}


def _part_backward(
    dY: np.ndarray,
    stream: np.ndarray,
    added: Array,
    part_backward: Callable[[np.ndarray, np.ndarray], Gradients],
    layer: dict[str, np.ndarray],
    which: int,
    norm: str,
    residual: bool,
    eps: float,
) -> tuple[np.ndarray, Gradients]:
    """Go back through one part and its norm: give the stream's gradient and the parameters'."""
    grads: Gradients = {}
    gain = layer.get(f"gain_{which}")

    def through_norm(dZ: np.ndarray, X: np.ndarray) -> np.ndarray:
        dX, dgain, dbias = layer_norm_backward(dZ, X, gain, eps=eps)
        grads.update({f"gain_{which}": dgain, f"bias_{which}": dbias})
        return dX

    if norm == "post":
        dY = through_norm(dY, stream + added if residual else added)
    read = layer_norm(stream, gain, layer[f"bias_{which}"], eps=eps) if norm == "pre" else stream
    part = part_backward(dY, read)
    d_read = part.pop("X")
    if norm == "pre":
        d_read = through_norm(d_read, stream)
    return dY + d_read if residual else d_read, grads | part


def transformer_backward(
    dlogits: Array,
    params: dict[str, np.ndarray],
    tokens: Array,
    config: Config,
    *,
    result: TransformerResult,
) -> Gradients:
    """Go back through `transformer`.

    Parameters
    ----------
    dlogits : array_like, shape (..., n, vocabulary)
        Gradient with respect to the logits.
    params, tokens, config
        As in the forward pass, which had no `past` and no `edit`.
    result : TransformerResult
        What the forward pass gave.

    Returns
    -------
    dict of ndarray
        One for each parameter, by its name.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    streams = [result.embedding] + [block.output for block in result.blocks]
    last = streams[-1]
    read = layer_norm(last, params["gain"], params["bias"]) if config.norm == "pre" else last
    grads = linear_backward(dlogits, read, params["U"], names=("X", "U", "unused"))
    dX = grads["X"]
    if config.norm == "pre":
        dX, grads["gain"], grads["bias"] = layer_norm_backward(dX, last, params["gain"])
    for number in reversed(range(config.layers)):
        layer, result_here = layer_params(params, number), result.blocks[number]
        kind = partial(block_backward, norm=config.norm, residual=config.residual)
        part = kind(dX, streams[number], layer, result=result_here)
        dX = part.pop("X")
        grads |= {f"{number}.{name}": g for name, g in part.items()}
    grads["E"] = embedding_backward(dX, tokens, len(params["E"]))
    grads["P"] = np.zeros_like(params["P"])
    grads["P"][: dX.shape[-2]] = sum_to(dX, dX.shape[-2:])
    return {name: grads[name] for name in params}


def loss_and_gradients(
    params: dict[str, np.ndarray],
    tokens: Array,
    targets: Array,
    config: Config,
    *,
    counted: Array | None = None,
) -> tuple[float, Gradients]:
    """Run the model forward, compare with the right answers, and go all the way back.

    Parameters
    ----------
    params, tokens, config
        See `transformer`.
    targets, counted
        See `cross_entropy`.

    Returns
    -------
    loss : float
        The mean cross-entropy, in nats.
    gradients : dict of ndarray
        One for each parameter, by its name.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    result = transformer(params, tokens, config)
    loss = cross_entropy(result.logits, targets, counted)
    dlogits = cross_entropy_backward(result.logits, targets, counted)
    return float(loss), transformer_backward(dlogits, params, tokens, config, result=result)


# Checking -------------------------------------------------------------------------------


class GradientCheck(NamedTuple):
    """A gradient held against central differences.

    Attributes
    ----------
    ok : bool
        Whether the largest error is within the tolerance.
    error : float
        Largest difference, relative to the largest entry where that is above 1.
    index : tuple of int
        Where it is.
    given, numerical : float
        The two values there.
    """

    ok: bool
    error: float
    index: tuple[int, ...]  # type: ignore[assignment]  # tuple.index, which nobody misses here
    given: float
    numerical: float

    def __str__(self) -> str:
        """Say in one sentence how the gradient did."""
        verdict = "Right" if self.ok else "Not yet"
        return (
            f"{verdict}: largest error {self.error:.1e}, at {list(self.index)}, "
            f"where the gradient is {self.given:.9g} and differences give {self.numerical:.9g}."
        )


def numerical_gradient(
    f: Callable[[np.ndarray], float], x: Array, *, h: float = 1e-5
) -> np.ndarray:
    """Differentiate by central differences: ``(f(x + h) − f(x − h)) / 2h``, entry by entry.

    Parameters
    ----------
    f : callable
        Takes an array like `x` and gives one number.
    x : array_like, shape (...)
        Where; taken as float64.
    h : float, default 1e-5
        The step. The formula's own error falls with h², rounding grows with 1/h; near 1e-5
        both are about 1e-10 for values of order one.

    Returns
    -------
    ndarray, same shape as `x`

    Raises
    ------
    ValueError
        If `f` does not give one number.
    """
    x = np.array(x, dtype=np.float64)
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        here, sides = x[index], []
        for step in (h, -h):
            x[index] = here + step
            sides.append(np.asarray(f(x.copy())))
        x[index] = here
        if sides[0].shape != ():
            raise ValueError(f"f must give one number, got shape {sides[0].shape}")
        gradient[index] = (sides[0] - sides[1]) / (2 * h)
    return gradient


def check_gradient(
    f: Callable[[np.ndarray], float],
    x: Array,
    gradient: Array,
    *,
    h: float = 1e-5,
    tolerance: float = 1e-7,
) -> GradientCheck:
    """Compare a gradient with central differences of the function itself.

    Parameters
    ----------
    f : callable
        Takes an array like `x` and gives one number: the loss.
    x : array_like, shape (...)
        Where.
    gradient : array_like, same shape
        What is claimed.
    h : float, default 1e-5
        The step; see `numerical_gradient`.
    tolerance : float, default 1e-7
        Largest error allowed.

    Returns
    -------
    GradientCheck
        ``ok``, and the place and size of the largest error. Printed, it is a sentence.

    Raises
    ------
    ValueError
        If `gradient` does not have the shape of `x`, or `f` does not give one number.
    """
    x, gradient = np.asarray(x), np.asarray(gradient, dtype=np.float64)
    if gradient.shape != x.shape:
        raise ValueError(
            f"a gradient has the shape of its variable: got gradient {gradient.shape}, x {x.shape}"
        )
    numerical = numerical_gradient(f, x, h=h)
    error = np.abs(gradient - numerical) / max(1.0, np.abs(numerical).max(initial=0))
    error = np.where(np.isnan(error), np.inf, error)
    worst = tuple(int(i) for i in np.unravel_index(error.argmax(), error.shape))
    found = float(error[worst]), worst, float(gradient[worst]), float(numerical[worst])
    return GradientCheck(bool(found[0] <= tolerance), *found)


def sum_to(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Undo broadcasting: an input used many times collects the gradients of all its uses."""
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    stretched = tuple(i for i, size in enumerate(shape) if size == 1 and gradient.shape[i] > 1)
    return gradient.sum(axis=stretched, keepdims=True)


def _sum_groups(gradient: np.ndarray, groups: int) -> np.ndarray:
    """Add up the query heads (axis −3) that share a key head."""
    heads = gradient.shape[-3]
    if heads == groups:
        return gradient
    split = (*gradient.shape[:-3], groups, heads // groups, *gradient.shape[-2:])
    return gradient.reshape(split).sum(axis=-3)
