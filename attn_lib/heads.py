"""Many heads: several small attention layers side by side, joined by one matrix.

Heads stand on an axis of their own, before the tokens: ``(..., h, n, width)``. A mask must
broadcast to ``(..., h, n, m)``: one per sequence of a batch is ``(batch, 1, n, m)``.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from attn_lib.arrays import Array, Rule, takes
from attn_lib.dot_product import attention
from attn_lib.rules import optional, whole


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


def share_heads(M: np.ndarray, heads: int) -> np.ndarray:
    """Give each of `heads` query heads the key head (axis −3) of its group."""
    groups = M.shape[-3]
    return M if groups == heads else np.repeat(M, heads // groups, axis=-3)


def groups_of(heads: str) -> Rule:
    """Ask for a number of key heads, each of which serves equally many query heads."""
    read = whole(1, default=heads)

    def rule(name: str, value: Any, given: Mapping[str, Any]) -> int:
        groups = read(name, value, given)
        if given[heads] % groups:
            raise ValueError(
                f"{heads} = {given[heads]} do not divide into {name} = {groups} groups"
            )
        return groups

    return rule


def a_past(name: str, value: Any, given: Mapping[str, Any]) -> Any:
    """Ask for a cache that goes on with the keys and values of these maps; a rule itself."""
    if value is None:
        return None
    groups = given["kv_heads"]
    wanted = [(groups, given[W].shape[1] // groups) for W in ("W_K", "W_V")]
    got = [np.shape(M) for M in value]
    if [(*shape[-3:-2], *shape[-1:]) for shape in got] != wanted or got[0][:-1] != got[1][:-1]:
        (g, d_k), (_, d_v) = wanted
        raise ValueError(
            f"{name} must be keys (..., {g}, t, {d_k}) and values (..., {g}, t, {d_v}) of the "
            f"same t tokens: got {' and '.join(map(str, got))}"
        )
    return value


def an_edit(name: str, value: Any, given: Mapping[str, Any]) -> Any:
    """Hold a function to its word, that it gives weights of the shape it takes; a rule itself."""
    if value is None:
        return None

    def held(A: np.ndarray) -> np.ndarray:
        edited = value(A)
        if np.shape(edited) != A.shape:
            raise ValueError(
                f"{name} must give weights {A.shape} back, got {type(edited).__name__}"
                f" {np.shape(edited)}"
            )
        return edited

    return held


@takes("X (..., n, heads·width)", cast=False, heads=whole(1))
def split_heads(X: Array, heads: int) -> np.ndarray:
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
    A reshape **and** a swap of axes. Reshaping to (heads, n, width) at once also runs, and mixes up
    tokens and columns.
    """
    width = X.shape[-1] // heads
    return X.reshape(*X.shape[:-1], heads, width).swapaxes(-2, -3)


@takes("X (..., heads, n, width)", cast=False)
def merge_heads(X: Array) -> np.ndarray:
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
    """
    X = X.swapaxes(-2, -3)
    return X.reshape(*X.shape[:-2], X.shape[-2] * X.shape[-1])


@takes(
    "X (..., n, d)",
    "W_Q (d, heads·d_k)",
    "W_K (d, heads·d_k)",
    "W_V (d, heads·d_v)",
    "W_O (heads·d_v, d_out)",
    heads=whole(1),
)
def multi_head_attention(
    X: Array,
    W_Q: Array,
    W_K: Array,
    W_V: Array,
    W_O: Array,
    *,
    heads: int,
    mask: Array | None = None,
) -> MultiHeadResult:
    """Attend with several heads at once: ``O = [O_1 … O_h] W_O``.

    Every head projects the **whole** of each token; what is cut into heads is the projection.

    Parameters
    ----------
    X : array_like, shape (..., n, d)
        One token per row.
    W_Q, W_K : array_like, shape (d, h · d_k)
        The query and key maps of all heads, side by side.
    W_V : array_like, shape (d, h · d_v)
        The value maps.
    W_O : array_like, shape (h · d_v, d_out)
        How what the heads read is written into the output.
    heads : int
        h, the number of heads.
    mask : array_like, broadcasting to (..., h, n, n), optional
        See `attention`.

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
    Vaswani et al. (2017), section 3.2.2. `multi_head_layer` is this with all that a model may add.
    """
    Q, K, V = (split_heads(X @ W, heads) for W in (W_Q, W_K, W_V))
    S, A, mixed = attention(Q, K, V, mask=mask)
    output = merge_heads(mixed) @ W_O
    return MultiHeadResult(Q, K, V, S, A, mixed, output)


@takes(
    "X (..., n, d)",
    "source=X (..., m, d_y)",
    "W_Q (d, heads·d_k)",
    "W_K (d_y, kv_heads·d_k)",
    "W_V (d_y, kv_heads·d_v)",
    "W_O (heads·d_v, d_out)",
    "b_Q (heads·d_k)",
    "b_K (kv_heads·d_k)",
    "b_V (kv_heads·d_v)",
    "b_O (d_out)",
    heads=whole(1),
    kv_heads=groups_of("heads"),
    past=a_past,
    edit=an_edit,
)
def multi_head_layer(
    X: Array,
    W_Q: Array,
    W_K: Array,
    W_V: Array,
    W_O: Array,
    *,
    heads: int,
    kv_heads: int | None = None,
    source: Array | None = None,
    past: tuple[np.ndarray, np.ndarray] | None = None,
    b_Q: Array = 0.0,
    b_K: Array = 0.0,
    b_V: Array = 0.0,
    b_O: Array = 0.0,
    mask: Array | None = None,
    scale: float | None = None,
    temperature: float = 1.0,
    edit: Callable[[np.ndarray], np.ndarray] | None = None,
) -> MultiHeadResult:
    """Attend with several heads: `multi_head_attention` with all that a model may add to it.

    Keys and values may come from another sequence, from a cache, or be shared by several heads.

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
    Vaswani et al. (2017), section 3.2.2; Shazeer (2019) and Ainslie et al. (2023) for shared key
    heads.
    """
    Q = split_heads(X @ W_Q + b_Q, heads)
    K = split_heads(source @ W_K + b_K, kv_heads)
    V = split_heads(source @ W_V + b_V, kv_heads)
    if past is not None:
        K = np.concatenate([past[0], K], axis=-2)
        V = np.concatenate([past[1], V], axis=-2)
    keys, values = share_heads(K, heads), share_heads(V, heads)
    options = {"mask": mask, "scale": scale, "temperature": temperature}
    S, A, mixed = attention(Q, keys, values, **options)
    if edit is not None:
        A = edit(A)
        mixed = A @ values
    output = merge_heads(mixed) @ W_O + b_O
    return MultiHeadResult(Q, K, V, S, A, mixed, output)


@takes("mixed (..., h, n, d_v)", "W_O (h·d_v, d_out)")
def head_contributions(mixed: Array, W_O: Array) -> np.ndarray:
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
    """
    h, _, d_v = mixed.shape[-3:]
    rows_of_each_head = W_O.reshape(h, d_v, W_O.shape[1])
    return mixed @ rows_of_each_head


@takes(
    heads=whole(1),
    kv_heads=groups_of("heads"),
    d=whole(1),
    d_k=optional(whole(1)),
    d_v=optional(whole(1)),
)
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
    """
    if d_k is None and d % heads:
        raise ValueError(f"a width d = {d} does not divide into heads = {heads}: give d_k")
    d_k = d // heads if d_k is None else d_k
    d_v = d_k if d_v is None else d_v
    counts = {"W_Q": d * heads * d_k, "W_K": d * kv_heads * d_k, "W_V": d * kv_heads * d_v}
    counts["W_O"] = heads * d_v * d
    return counts | {"total": sum(counts.values())}
