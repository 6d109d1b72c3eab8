"""Position: what tells attention in which order its tokens stand.

A table is added to the tokens, a bias to the scores, and RoPE turns queries and keys. Each is
one function; `equivariance_gap` measures whether the layer that uses it notices an order.
"""

from collections.abc import Callable

import numpy as np

from attn_lib.arrays import Array, takes
from attn_lib.dot_product import AttentionResult
from attn_lib.rules import as_whole, finite_numbers, one_of, places, positive, reordering, whole


@takes("X (..., n, d)", "table (N, d)", like="X", positions=places("X", rows_of="table"))
def add_positions(X: Array, table: Array, positions: Array | None = None) -> np.ndarray:
    """Add to each token the row of its position: ``x_i + p_i``.

    Parameters
    ----------
    X : array_like, shape (..., n, d)
        One token per row.
    table : array_like, shape (N, d)
        One row for each position 0 … N − 1: learned, or from `sinusoidal_positions`.
    positions : array_like of int, broadcasting to (..., n), optional
        Where each token stands, by default 0 … n − 1. Behind a cache of t tokens: ``[t]``.

    Returns
    -------
    ndarray, shape (..., n, d)
        In the dtype of `X`, whatever the table's; integers become float64.

    Raises
    ------
    ValueError
        If the widths differ, or a position has no row: a table ends where it ends.

    Notes
    -----
    Vaswani et al. (2017), section 3.5.
    """
    return X + table[positions]


@takes(d=whole(1), layout=one_of("interleaved", "concatenated"), base=positive)
def sinusoidal_positions(
    positions: int | Array, d: int, *, base: float = 10000.0, layout: str = "interleaved"
) -> np.ndarray:
    """Give each position a row of sines and cosines, from fast to slow.

    Pair r holds ``sin(p θ_r)`` and ``cos(p θ_r)`` with one ``θ_r = base^(−2r/d)`` for both.

    Parameters
    ----------
    positions : int or array_like, shape (...)
        A whole number n stands for positions 0 … n − 1.
    d : int
        Width of a row. If d is odd the last sine has no cosine.
    base : float, default 10000
        θ falls from 1 almost to 1/base.
    layout : {"interleaved", "concatenated"}
        sin, cos, sin, cos, …, as in the paper, or all sines and then all cosines. The columns
        are the same; only their order differs.

    Returns
    -------
    ndarray, shape (n, d) or (..., d)
        float64.

    Raises
    ------
    ValueError
        If d is not a whole number ≥ 1, `base` is not > 0 and finite, or the layout is unknown.

    Notes
    -----
    Nothing here is learned. Moving every position by k turns each pair by the angle k θ_r:
    ``sinusoidal_positions(p + k, d)`` equals ``rope(sinusoidal_positions(p, d), [-k])``. Vaswani et
    al. (2017), section 3.5.
    """
    if np.ndim(positions) == 0:
        positions = np.arange(as_whole("positions", positions, 0))
    theta = float(base) ** (-2 * np.arange((d + 1) // 2) / d)
    angles = np.asarray(positions, np.float64)[..., None] * theta
    sines, cosines = np.sin(angles), np.cos(angles)[..., : d // 2]
    if layout == "concatenated":
        return np.concatenate([sines, cosines], axis=-1)
    table = np.empty((*angles.shape[:-1], d))
    table[..., 0::2], table[..., 1::2] = sines, cosines
    return table


PAIRS = {  # the columns of the first and of the second coordinate of r pairs
    "interleaved": lambda r: (slice(0, None, 2), slice(1, None, 2)),
    "half": lambda r: (slice(0, r), slice(r, None)),
}


@takes("X (..., n, 2r≥2)", positions=places("X"), pairing=one_of(*PAIRS), base=positive)
def rope(
    X: Array,
    positions: Array | None = None,
    *,
    base: float = 10000.0,
    pairing: str = "interleaved",
) -> np.ndarray:
    """Turn each pair of coordinates by an angle that grows with the position.

    Rows keep their lengths, and ``rope(q, s) · rope(k, t)`` depends on s − t only. Apply it to
    queries and keys, not to values.

    Parameters
    ----------
    X : array_like, shape (..., n, d)
        Queries or keys, d even.
    positions : array_like, broadcasting to (..., n), optional
        Where each row stands, by default 0 … n − 1. Behind a cache of t tokens: ``[t]``.
    base : float, default 10000
        Pair r turns by ``θ_r = base^(−2r/d)`` for each step of the position.
    pairing : {"interleaved", "half"}
        Which coordinates form pair r: 2r and 2r + 1, as in the paper, or r and r + d/2, as in
        many programs. Either works if queries and keys use the same one.

    Returns
    -------
    ndarray, shape (..., n, d)
        The dtype of `X`; angles are computed in float64 whatever it is.

    Raises
    ------
    ValueError
        If d is odd, the positions do not broadcast, or the pairing is unknown.

    Notes
    -----
    Su et al. (2021), section 3.2.
    """
    r = X.shape[-1] // 2
    angles = positions[..., None] * float(base) ** (-np.arange(r) / r)
    cos, sin = (f(angles).astype(X.dtype) for f in (np.cos, np.sin))
    first, second = PAIRS[pairing](r)
    a, b, turned = X[..., first], X[..., second], np.empty_like(X)
    turned[..., first] = a * cos - b * sin
    turned[..., second] = a * sin + b * cos
    return turned


@takes(heads=whole(1))
def alibi_slopes(heads: int) -> np.ndarray:
    """Give each head its slope: how much a score loses for each step of distance.

    Parameters
    ----------
    heads : int
        Number of heads h.

    Returns
    -------
    ndarray, shape (heads,)
        For h a power of two: ``2^(−8/h), 2^(−16/h), …, 2^(−8)``. Otherwise the slopes of the
        largest power of two below h, then every second slope of twice that power.

    Raises
    ------
    ValueError
        If `heads` is not a whole number ≥ 1.

    Notes
    -----
    The paper states the geometric sequence for any h, but its models have powers of two; the second
    rule is that of the program released with it, and of models trained with, say, 12 heads. Press,
    Smith and Lewis (2022), section 3.
    """
    power = 1 << (heads.bit_length() - 1)  # the largest power of two ≤ heads
    own = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-8 * np.arange(1, 2 * power, 2) / (2 * power))
    return np.concatenate([own, between[: heads - power]])


@takes(
    n=whole(0),
    m=whole(0, default="n"),
    offset=whole(),
    slopes=finite_numbers,
    kind=one_of("causal", "symmetric"),
)
def alibi_bias(
    n: int, m: int | None = None, *, slopes: Array, offset: int = 0, kind: str = "causal"
) -> np.ndarray:
    """Lower a score in proportion to the distance: ``−slope · |i + offset − j|``.

    Parameters
    ----------
    n, m, offset
        As in `attn_lib.causal_mask`.
    slopes : array_like, shape (...)
        One for each head, from `alibi_slopes`; or a single number.
    kind : {"causal", "symmetric"}
        "causal", as in the paper: −∞ for keys after the query. "symmetric": both sides are
        seen, and equally. Such a layer cannot notice that its tokens were reversed.

    Returns
    -------
    ndarray, shape (..., n, m)
        A float mask, to be given as ``mask=``.

    Raises
    ------
    ValueError
        If a slope is not a finite number, the kind is unknown, or n, m or offset are not whole.

    Notes
    -----
    Press, Smith and Lewis (2022), section 3.
    """
    ahead = np.arange(m) - (np.arange(n)[:, None] + offset)
    bias = -slopes[..., None, None] * np.abs(ahead)
    hidden = (ahead > 0) & (kind == "causal")
    return np.where(hidden, -np.inf, bias)


@takes("table (..., 2r+1)", n=whole(0), m=whole(0, default="n"), offset=whole())
def relative_bias(table: Array, n: int, m: int | None = None, *, offset: int = 0) -> np.ndarray:
    """Look up a bias for each step from query to key: ``b(j − i − offset)``.

    Parameters
    ----------
    table : array_like, shape (..., 2r + 1)
        Learned biases for the steps −r … r, the middle one for a token's own place. A step
        beyond r takes the bias at the end.
    n, m, offset
        As in `attn_lib.causal_mask`.

    Returns
    -------
    ndarray, shape (..., n, m)
        A float mask, to be given as ``mask=``. Along each diagonal it is constant.

    Raises
    ------
    ValueError
        If the table does not have an odd width, or n, m or offset are not whole.

    Notes
    -----
    Relative positions are from Shaw, Uszkoreit and Vaswani (2018), a bias in place of their vectors
    from Raffel et al. (2020), who share one bias among many long steps.
    """
    r = table.shape[-1] // 2
    step = np.arange(m) - (np.arange(n)[:, None] + offset)
    return table[..., np.clip(step, -r, r) + r]


@takes("X (..., n, d)", cast=False, permutation=reordering("X"))
def equivariance_gap(
    layer: Callable[[np.ndarray], np.ndarray | AttentionResult],
    X: Array,
    permutation: Array,
) -> float:
    """Measure how far a layer notices a new order of its tokens: ``‖layer(PX) − P layer(X)‖``.

    Parameters
    ----------
    layer : function
        From X (..., n, d) to an output (..., n, d_v), or to an `attn_lib.AttentionResult`.
    X : array_like, shape (..., n, d)
        One token per row.
    permutation : array_like of int, shape (n,)
        ρ, a rearrangement of 0 … n − 1. Row i of PX is row ρ(i) of X.

    Returns
    -------
    float
        The root of the sum of squares. Zero up to rounding if the tokens were moved and nothing
        else happened.

    Raises
    ------
    ValueError
        If `permutation` is not one of the rows of X.
    """
    moved, still = layer(X[..., permutation, :]), layer(X)
    moved, still = (getattr(O, "output", O) for O in (moved, still))
    gap = np.asarray(moved) - np.asarray(still)[..., permutation, :]
    return float(np.linalg.norm(gap.ravel()))
