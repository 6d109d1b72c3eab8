"""Many heads: several small attention layers side by side, joined by one matrix.

Heads stand on an axis of their own, before the tokens: ``(..., h, n, width)``. A mask must
broadcast to ``(..., h, n, m)``: one per sequence of a batch is ``(batch, 1, n, m)``.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from attn_lib.arrays import check_projections, promote, whole
from attn_lib.dot_product import attention


class MultiHeadResult(NamedTuple):
    """What every head did, and what all of them wrote together.

    Attributes
    ----------
    Q : ndarray, shape (..., h, n, d_k)
        Queries of each head.
    K, V : ndarray, shapes (..., g, m, d_k) and (..., g, m, d_v)
        Keys and values of each of the g key heads (g = h unless heads share them), those
        of `past` included: the pair is the cache for the next tokens.
    scores, weights : ndarray, shape (..., h, n, m)
        As in `AttentionResult`, one matrix for each head.
    mixed : ndarray, shape (..., h, n, d_v)
        What each head read: its weights times its values.
    output : ndarray, shape (..., n, d_out)
        All heads side by side, times ``W_O``.
    """

    Q: np.ndarray
    K: np.ndarray
    V: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    mixed: np.ndarray
    output: np.ndarray


def split_heads(X: ArrayLike, heads: int) -> np.ndarray:
    """Cut the columns into `heads` equal parts: part r goes to head r.

    Parameters
    ----------
    X : array_like, shape (..., n, heads · width)
        Projected rows, one per token: queries, keys or values.
    heads : int
        Number of heads.

    Returns
    -------
    ndarray, shape (..., heads, n, width)
        ``split_heads(X, h)[..., r, i, c] = X[..., i, r · width + c]``.

    Raises
    ------
    ValueError
        If the columns do not divide into `heads` equal parts.

    Notes
    -----
    A reshape **and** a swap of axes. Reshaping to (heads, n, width) at once also runs, and
    mixes up tokens and columns. Chapter 8.
    """
    X, heads = np.asarray(X), whole("heads", heads, least=1)
    if X.ndim < 2 or X.shape[-1] % heads:
        raise ValueError(
            f"X must be (..., n, width) with a width that divides into heads: "
            f"got X {X.shape} and heads = {heads}"
        )
    return X.reshape(*X.shape[:-1], heads, X.shape[-1] // heads).swapaxes(-2, -3)


def merge_heads(X: ArrayLike) -> np.ndarray:
    """Set the heads side by side again: undo `split_heads`.

    Parameters
    ----------
    X : array_like, shape (..., h, n, width)
        One matrix for each head.

    Returns
    -------
    ndarray, shape (..., n, h · width)
        Row i holds what every head says of token i, head 0 first.

    Raises
    ------
    ValueError
        If there is no axis for heads.

    Notes
    -----
    Chapter 8.
    """
    X = np.asarray(X)
    if X.ndim < 3:
        raise ValueError(f"X must be (..., heads, n, width), got {X.shape}")
    X = X.swapaxes(-2, -3)
    return X.reshape(*X.shape[:-2], X.shape[-2] * X.shape[-1])


def multi_head_attention(
    X: ArrayLike,
    W_Q: ArrayLike,
    W_K: ArrayLike,
    W_V: ArrayLike,
    W_O: ArrayLike,
    *,
    heads: int,
    kv_heads: int | None = None,
    source: ArrayLike | None = None,
    past: tuple[np.ndarray, np.ndarray] | None = None,
    b_Q: ArrayLike = 0.0,
    b_K: ArrayLike = 0.0,
    b_V: ArrayLike = 0.0,
    b_O: ArrayLike = 0.0,
    mask: ArrayLike | None = None,
    scale: float | None = None,
    temperature: float = 1.0,
    edit: Callable[[np.ndarray], np.ndarray] | None = None,
) -> MultiHeadResult:
    """Attend with several heads at once: ``O = [O_1 … O_h] W_O``.

    Every head projects the **whole** of each token; what is cut into heads is the projection.

    Parameters
    ----------
    X : array_like, shape (..., n, d)
        One token per row.
    W_Q : array_like, shape (d, h · d_k)
        The query maps of all heads, side by side.
    W_K, W_V : array_like, shapes (d, g · d_k) and (d, g · d_v)
        The key and value maps of the g key heads.
    W_O : array_like, shape (h · d_v, d_out)
        How what the heads read is written into the output.
    heads : int
        h, the number of heads.
    kv_heads : int, optional
        g, by default h. Each key head serves h / g neighbouring query heads: grouped-query
        attention, and multi-query attention for g = 1.
    source : array_like, shape (..., m, d_y), optional
        Where keys and values come from, by default `X` itself.
    past : pair of ndarray, optional
        Keys (..., g, t, d_k) and values (..., g, t, d_v) of earlier tokens, set before the
        new ones. The mask then has t + n columns: ``causal_mask(n, t + n, offset=t)``.
    b_Q, b_K, b_V, b_O : array_like, shape of the columns, default 0
        Biases.
    mask, scale, temperature
        See `attention`; the default scale is that of one head's width d_k.
    edit : callable, optional
        Takes the weights and returns those to mix with: an experiment on the heads.

    Returns
    -------
    MultiHeadResult
        Queries, keys, values, scores, weights and reading of each head, and the output.

    Raises
    ------
    ValueError
        If the widths do not divide into heads, or the shapes do not fit.

    Notes
    -----
    Chapter 8; Vaswani et al. (2017), section 3.2.2; Shazeer (2019) and Ainslie et al. (2023)
    for shared key heads.
    """
    Y = X if source is None else source
    (X, Y, W_Q, W_K, W_V, W_O), dtype = promote(X, Y, W_Q, W_K, W_V, W_O)
    check_projections("X", X, W_Q=W_Q)
    check_projections("X" if source is None else "source", Y, W_K=W_K, W_V=W_V)
    groups = _check_heads(heads, heads if kv_heads is None else kv_heads, W_Q, W_K, W_V, W_O)
    Q = split_heads(X @ W_Q + b_Q, heads)
    K, V = split_heads(Y @ W_K + b_K, groups), split_heads(Y @ W_V + b_V, groups)
    if past is not None:
        K, V = np.concatenate([past[0], K], axis=-2), np.concatenate([past[1], V], axis=-2)
    keys, values = share_heads(K, heads), share_heads(V, heads)
    S, A, mixed = attention(Q, keys, values, mask=mask, scale=scale, temperature=temperature)
    if edit is not None:
        A = edit(A)
        mixed = A @ values
    output = merge_heads(mixed) @ W_O + b_O
    return MultiHeadResult(*(M.astype(dtype, copy=False) for M in (Q, K, V, S, A, mixed, output)))


def head_contributions(mixed: ArrayLike, W_O: ArrayLike) -> np.ndarray:
    """What each head alone adds to the output: ``O_r W_O^(r)``, with its own rows of ``W_O``.

    Parameters
    ----------
    mixed : array_like, shape (..., h, n, d_v)
        What each head read: `MultiHeadResult.mixed`.
    W_O : array_like, shape (h · d_v, d_out)
        The output map.

    Returns
    -------
    ndarray, shape (..., h, n, d_out)
        Summed over the heads it is the output (without a bias): to set side by side and
        project is to project each and add.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Chapters 8 and 12.
    """
    (mixed, W_O), dtype = promote(mixed, W_O)
    if mixed.ndim < 3 or W_O.ndim != 2 or mixed.shape[-3] * mixed.shape[-1] != W_O.shape[0]:
        raise ValueError(
            f"mixed (..., h, n, d_v) and W_O (h · d_v, d_out) do not fit: "
            f"got mixed {mixed.shape} and W_O {W_O.shape}"
        )
    rows_of_each_head = W_O.reshape(mixed.shape[-3], mixed.shape[-1], W_O.shape[1])
    return (mixed @ rows_of_each_head).astype(dtype, copy=False)


def multi_head_parameters(
    d: int,
    *,
    heads: int,
    kv_heads: int | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
) -> dict[str, int]:
    """Count the entries of the four matrices, without biases.

    Parameters
    ----------
    d : int
        Width of the model.
    heads, kv_heads : int
        Query heads, and key heads (by default as many).
    d_k, d_v : int, optional
        Widths within a head, by default d / heads and d_k.

    Returns
    -------
    dict
        ``W_Q``, ``W_K``, ``W_V``, ``W_O`` and ``total``. By default the total is 4 d²,
        whatever the number of heads.

    Raises
    ------
    ValueError
        If d does not divide into the heads, or the heads into the key heads.

    Notes
    -----
    Chapter 8.
    """
    groups = _groups(heads, heads if kv_heads is None else kv_heads)
    if d_k is None and d % heads:
        raise ValueError(f"a width d = {d} does not divide into heads = {heads}: give d_k")
    d_k = d // heads if d_k is None else d_k
    d_v = d_k if d_v is None else d_v
    counts = {"W_Q": d * heads * d_k, "W_K": d * groups * d_k, "W_V": d * groups * d_v}
    counts["W_O"] = heads * d_v * d
    return counts | {"total": sum(counts.values())}


def share_heads(M: np.ndarray, heads: int) -> np.ndarray:
    """Give each of `heads` query heads the key head (axis −3) of its group."""
    groups = M.shape[-3]
    return M if groups == heads else np.repeat(M, heads // groups, axis=-3)


def _groups(heads: int, kv_heads: int) -> int:
    """Check that each key head serves a whole number of query heads."""
    heads, kv_heads = whole("heads", heads, least=1), whole("kv_heads", kv_heads, least=1)
    if heads % kv_heads:
        raise ValueError(f"heads = {heads} do not divide into kv_heads = {kv_heads} groups")
    return kv_heads


def _check_heads(heads: int, kv_heads: int, W_Q, W_K, W_V, W_O) -> int:
    """Raise ValueError unless the four widths divide into the heads and agree with each other."""
    groups = _groups(heads, kv_heads)
    for name, W, parts in (("W_Q", W_Q, heads), ("W_K", W_K, groups), ("W_V", W_V, groups)):
        if W.shape[1] % parts:
            kind = "heads" if parts == heads else "kv_heads"
            raise ValueError(
                f"the width of {name} does not divide into the heads: "
                f"got {name} {W.shape} and {kind} = {parts}"
            )
    d_k, key_width, d_v = W_Q.shape[1] // heads, W_K.shape[1] // groups, W_V.shape[1] // groups
    if d_k != key_width:
        raise ValueError(
            f"queries and keys of a head need one width d_k: got {d_k} from W_Q {W_Q.shape} in "
            f"{heads} heads, {key_width} from W_K {W_K.shape} in {groups}"
        )
    if W_O.ndim != 2 or W_O.shape[0] != heads * d_v:
        raise ValueError(
            f"W_O needs heads · d_v = {heads} · {d_v} = {heads * d_v} rows: got W_O {W_O.shape}"
        )
    return groups
