"""Scores, weights, output: one attention layer, one function per equation.

Every function takes float16, float32 or float64 and gives the same back; float16 is
computed in float32 and rounded once, at the end. Integers count as float64.
"""

import math
from typing import NamedTuple

import numpy as np

from attn_lib.arrays import Array, takes
from attn_lib.masks import apply_mask
from attn_lib.rules import a_scale, a_temperature, mask_for


class AttentionResult(NamedTuple):
    """The three matrices of one attention layer, in the order they are computed.

    Attributes
    ----------
    scores : ndarray, shape (..., n, m)
        Scaled dot products with the mask applied, before temperature and softmax.
    weights : ndarray, shape (..., n, m)
        The softmax of each row of scores: row i says how query i shares itself out.
    output : ndarray, shape (..., n, d_v)
        For each query the average of the values under its weights.
    """

    scores: np.ndarray
    weights: np.ndarray
    output: np.ndarray


@takes("x (...)")
def softmax(x: Array, axis: int = -1) -> np.ndarray:
    """Turn each row of scores into positive weights that sum to one.

    ``softmax(x)_j = exp(x_j) / Σ_l exp(x_l)``. Adding a constant to a row changes nothing,
    so the row's largest entry is subtracted first and ``exp`` cannot overflow.

    Parameters
    ----------
    x : array_like, shape (..., m)
        Scores. An entry of −∞ gets weight 0.
    axis : int, default -1
        The axis the weights sum to one along.

    Returns
    -------
    ndarray, same shape as `x`
        A row of −∞ only, or with no entry, has nothing to share among: its weights are 0.

    Raises
    ------
    ValueError
        If `x` has no such axis or does not hold real numbers.

    Notes
    -----
    A row with NaN or +∞ in it has no answer and gives NaN.
    """
    lowest = np.finfo(x.dtype).min  # a row of −∞ stays finite
    largest = x.max(axis=axis, keepdims=True, initial=lowest)
    positive = np.exp(x - largest)
    total = positive.sum(axis=axis, keepdims=True)
    return positive / np.where(total == 0, 1, total)


@takes("Q (..., n, d_k≥1)", "K (..., m, d_k)", scale=a_scale, mask=mask_for("Q", "K"))
def attention_scores(
    Q: Array, K: Array, *, scale: float | None = None, mask: Array | None = None
) -> np.ndarray:
    """Compare every query with every key: ``S = scale · Q Kᵀ``.

    Parameters
    ----------
    Q : array_like, shape (..., n, d_k)
        One query per row.
    K : array_like, shape (..., m, d_k)
        One key per row.
    scale : float, optional
        By default 1/√d_k, with d_k the width of one key. 1.0 gives the raw dot products.
    mask : array_like, broadcasting to (..., n, m), optional
        Boolean: True where the query **may** look, elsewhere the score is −∞.
        Float: added to the scores.

    Returns
    -------
    ndarray, shape (..., n, m)
        ``S[i, j]`` is the score of query i for key j.

    Raises
    ------
    ValueError
        If the shapes do not fit, the mask is neither boolean nor float or is larger than
        the scores, or `scale` is not a finite number.

    Notes
    -----
    Vaswani et al. (2017), section 3.2.1.
    """
    if scale is None:
        scale = 1 / math.sqrt(K.shape[-1])
    return apply_mask(Q @ K.mT * scale, mask)


@takes("scores (...)", temperature=a_temperature)
def attention_weights(scores: Array, *, temperature: float = 1.0) -> np.ndarray:
    """Share each query out among the keys: ``A = softmax(S / T)`` along each row.

    Parameters
    ----------
    scores : array_like, shape (..., n, m)
        Scores, −∞ where a query may not look.
    temperature : float, default 1.0
        T > 0. Large T evens a row out, up to equal weights at T = ∞. As T → 0 a row tends
        to equal shares among its largest scores; T = 0 itself is refused.

    Returns
    -------
    ndarray, shape (..., n, m)
        Rows sum to one, except that a row with nothing allowed is zero.

    Raises
    ------
    ValueError
        If `temperature` is 0, negative or NaN.

    Notes
    -----
    The temperature of a head is not that of sampling, which divides output logits.
    """
    lowest = np.finfo(scores.dtype).min
    gaps = scores - scores.max(axis=-1, keepdims=True, initial=lowest)
    # A gap is ≤ 0: a tiny T makes it −∞, never +∞. −∞ stays −∞.
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = gaps.astype(float) / temperature
    return softmax(np.where(np.isneginf(gaps), gaps, scaled))


@takes("Q (..., n, d_k≥1)", "K (..., m, d_k)", "V (..., m, d_v)")
def attention(
    Q: Array,
    K: Array,
    V: Array,
    *,
    mask: Array | None = None,
    scale: float | None = None,
    temperature: float = 1.0,
) -> AttentionResult:
    """Let each query read an average of the values: ``O = softmax(Q Kᵀ / √d_k) V``.

    Parameters
    ----------
    Q : array_like, shape (..., n, d_k)
        Queries.
    K : array_like, shape (..., m, d_k)
        Keys.
    V : array_like, shape (..., m, d_v)
        Values, one for each key; d_v is free.
    mask, scale
        See `attention_scores`.
    temperature
        See `attention_weights`.

    Returns
    -------
    AttentionResult
        ``scores`` and ``weights`` (..., n, m), ``output`` (..., n, d_v). A query with
        nothing to look at has zero weights and a zero output.

    Raises
    ------
    ValueError
        If the shapes do not fit; see also `attention_scores` and `attention_weights`.

    Notes
    -----
    A forbidden value is multiplied by 0, so it must still be a number: 0 · NaN is NaN. Vaswani et
    al. (2017), equation 1.
    """
    S = attention_scores(Q, K, scale=scale, mask=mask)
    A = attention_weights(S, temperature=temperature)
    return AttentionResult(S, A, A @ V)


@takes("X (..., n, d)", "W_Q (d, d_k)", "W_K (d, d_k)", "W_V (d, d_v)")
def self_attention(
    X: Array,
    W_Q: Array,
    W_K: Array,
    W_V: Array,
    *,
    mask: Array | None = None,
    scale: float | None = None,
    temperature: float = 1.0,
) -> AttentionResult:
    """Let the tokens of one sequence read each other: queries, keys and values all from `X`.

    Parameters
    ----------
    X : array_like, shape (..., n, d)
        One token per row.
    W_Q, W_K : array_like, shape (d, d_k)
        What a token asks for, and what it can be found by.
    W_V : array_like, shape (d, d_v)
        What a token hands over once found.
    mask, scale, temperature
        See `attention`.

    Returns
    -------
    AttentionResult
        ``scores`` and ``weights`` (..., n, n), ``output`` (..., n, d_v).

    Raises
    ------
    ValueError
        If the shapes do not fit; see also `attention`.
    """
    return cross_attention(X, X, W_Q, W_K, W_V, mask=mask, scale=scale, temperature=temperature)


@takes("X (..., n, d)", "Y (..., m, d_y)", "W_Q (d, d_k)", "W_K (d_y, d_k)", "W_V (d_y, d_v)")
def cross_attention(
    X: Array,
    Y: Array,
    W_Q: Array,
    W_K: Array,
    W_V: Array,
    *,
    mask: Array | None = None,
    scale: float | None = None,
    temperature: float = 1.0,
) -> AttentionResult:
    """Let one sequence read another: queries from `X`, keys and values from `Y`.

    Parameters
    ----------
    X : array_like, shape (..., n, d)
        The reader: one query per row comes from it.
    Y : array_like, shape (..., m, d_y)
        The source: keys and values come from it. Its padding is what a mask must hide.
    W_Q : array_like, shape (d, d_k)
    W_K : array_like, shape (d_y, d_k)
    W_V : array_like, shape (d_y, d_v)
    mask, scale, temperature
        See `attention`.

    Returns
    -------
    AttentionResult
        ``scores`` and ``weights`` (..., n, m), ``output`` (..., n, d_v).

    Raises
    ------
    ValueError
        If the shapes do not fit; see also `attention`.
    """
    Q, K, V = X @ W_Q, Y @ W_K, Y @ W_V
    options = {"mask": mask, "scale": scale, "temperature": temperature}
    return attention(Q, K, V, **options)


@takes("weights (...)")
def entropy(weights: Array, axis: int = -1) -> np.ndarray:
    """Say how widely each row of weights is spread, in bits: ``H = −Σ a log₂ a``.

    Parameters
    ----------
    weights : array_like, shape (..., m)
        Each row sums to one. A weight of 0 adds nothing.
    axis : int, default -1
        The axis the weights sum to one along.

    Returns
    -------
    ndarray, shape (...)
        From 0, where one key has all the weight, to log₂ m, where all have the same.

    Raises
    ------
    ValueError
        If `weights` are not real numbers.
    """
    bits = np.log2(np.where(weights > 0, weights, 1))
    return 0.0 - (weights * bits).sum(axis=axis)  # 0 − 0 is 0, and −0 would be written
