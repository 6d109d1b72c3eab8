"""A model with cross-attention: a reader of one source sequence."""

import math
from dataclasses import dataclass

import numpy as np

from attn_lib.arrays import Array
from attn_lib.backward import (
    Gradients,
    attention_backward,
    cross_entropy_backward,
    embedding_backward,
    linear_backward,
)
from attn_lib.dot_product import AttentionResult, cross_attention
from attn_lib.model import Params, check_tokens, cross_entropy
from attn_lib.training.tasks import Batch


@dataclass(frozen=True)
class ReaderConfig:
    """The sizes of the smallest model that reads another sequence.

    Attributes
    ----------
    asks, holds : int
        Rows of the reader's and of the source's embedding table.
    vocabulary : int
        Number of possible answers.
    d, d_k : int
        Width of an embedding; width of queries, keys and values.
    """

    asks: int
    holds: int
    vocabulary: int
    d: int = 32
    d_k: int = 32


def init_reader(config: ReaderConfig, seed: int = 0, dtype: type = np.float32) -> Params:
    """Draw a reader's parameters: tables of variance 1, matrices of variance 1/(rows)."""
    rng, d, d_k = np.random.default_rng(seed), config.d, config.d_k
    shapes = {"E_X": (config.asks, d), "E_Y": (config.holds, d)}
    shapes |= {"W_Q": (d, d_k), "W_K": (d, d_k), "W_V": (d, d_k), "U": (d_k, config.vocabulary)}
    params: Params = {}
    for name, shape in shapes.items():
        fan_in = 1 if name.startswith("E") else shape[0]
        params[name] = (rng.normal(size=shape) / math.sqrt(fan_in)).astype(dtype)
    return params


def reader(params: Params, tokens: Array, source: Array) -> tuple[np.ndarray, AttentionResult]:
    """Ask, read the source, answer: one head of cross-attention and nothing else.

    Parameters
    ----------
    params : dict of ndarray
        As `init_reader` makes them.
    tokens : array_like of int, shape (..., n, parts)
        What the reader knows at each position; the rows of its parts are added up.
    source : array_like of int, shape (..., m, parts)
        Likewise for the source.

    Returns
    -------
    logits : ndarray, shape (..., n, vocabulary)
    attention : AttentionResult
        Weights (..., n, m): which source position each answer was read from.

    Raises
    ------
    ValueError
        If a number has no row in its table.
    """
    tokens = check_tokens("tokens", tokens, len(params["E_X"]))
    source = check_tokens("source", source, len(params["E_Y"]))
    X, Y = params["E_X"][tokens].sum(axis=-2), params["E_Y"][source].sum(axis=-2)
    result = cross_attention(X, Y, params["W_Q"], params["W_K"], params["W_V"])
    return result.output @ params["U"], result


def reader_loss_and_gradients(params: Params, batch: Batch) -> tuple[float, Gradients]:
    """Run a reader forward and all the way back.

    Parameters
    ----------
    params : dict of ndarray
        As `init_reader` makes them.
    batch : Batch
        With a source.

    Returns
    -------
    loss : float
        The mean cross-entropy, in nats.
    gradients : dict of ndarray
        One for each parameter.
    """
    logits, result = reader(params, batch.tokens, batch.source)
    loss = cross_entropy(logits, batch.targets, batch.counted)
    dlogits = cross_entropy_backward(logits, batch.targets, batch.counted)
    X = params["E_X"][batch.tokens].sum(axis=-2)
    Y = params["E_Y"][batch.source].sum(axis=-2)
    Q, K, V = X @ params["W_Q"], Y @ params["W_K"], Y @ params["W_V"]
    grads = linear_backward(dlogits, result.output, params["U"], names=("O", "U", "_"))
    dQ, dK, dV = attention_backward(grads["O"], Q, K, V, weights=result.weights)
    grads |= linear_backward(dQ, X, params["W_Q"], names=("X", "W_Q", "_"))
    grads |= linear_backward(dK, Y, params["W_K"], names=("by_key", "W_K", "_"))
    grads |= linear_backward(dV, Y, params["W_V"], names=("by_value", "W_V", "_"))
    grads["E_X"] = _parts_backward(grads["X"], batch.tokens, params["E_X"])
    grads["E_Y"] = _parts_backward(grads["by_key"] + grads["by_value"], batch.source, params["E_Y"])
    return float(loss), {name: grads[name] for name in params}


def _parts_backward(dX: np.ndarray, tokens: Array, table: np.ndarray) -> np.ndarray:
    """Go back through rows that are sums of rows: each part gets the whole gradient."""
    return embedding_backward(
        np.broadcast_to(dX[..., None, :], (*tokens.shape, dX.shape[-1])), tokens, len(table)
    )
