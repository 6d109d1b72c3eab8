"""What attention costs, and four ways to pay less.

`tiled_attention` computes the same function without ever holding the n × m weights;
`windowed_attention` leaves most of them out; `linear_attention` is another function, whose
past fits into a state of fixed size; `KVCache` keeps what a decoder would compute again.
float16 is computed in float32, here as in `attn_lib.dot_product`.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from attn_lib.arrays import Array, keeps_precision, takes
from attn_lib.dot_product import AttentionResult, attention, attention_scores
from attn_lib.masks import apply_mask, causal_mask, combine_masks, window_mask
from attn_lib.rules import a_scale, as_whole, mask_for, optional, whole

TILE = (256, 1024)  # queries × keys: 1 MiB of float32 scores, about what a core's cache holds
CHUNK = 128

Features = Callable[[np.ndarray], np.ndarray]


def positive_features(name: str, value: Any, given: Mapping[str, Any]) -> Features:
    """Hold φ to its word, that no feature is negative, or weights could be; a rule itself."""

    def held(x: np.ndarray) -> np.ndarray:
        F = value(x)
        if (F < 0).any():
            raise ValueError(f"{name} must not be negative, or weights could be: got {F.min()}")
        return F

    return held


def two_sizes(name: str, value: Any, given: Mapping[str, Any]) -> tuple[int, int]:
    """Ask for (queries, keys) of a tile; a rule itself."""
    try:
        rows, columns = value
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be (queries, keys), two whole numbers: got {value!r}"
        ) from None
    return as_whole(f"{name}[0]", rows, 1), as_whole(f"{name}[1]", columns, 1)


@keeps_precision
class SoftmaxState(NamedTuple):
    """What must be remembered of the keys read so far, and all that must be.

    Attributes
    ----------
    maximum : ndarray, shape (..., n)
        The largest score so far, μ; −∞ before any.
    normaliser : ndarray, shape (..., n)
        Σ_j exp(s_j − μ).
    accumulator : ndarray, shape (..., n, d_v)
        Σ_j exp(s_j − μ) v_j, the output still to be divided by the normaliser.
    """

    maximum: np.ndarray
    normaliser: np.ndarray
    accumulator: np.ndarray

    @property
    def output(self) -> np.ndarray:
        """The attention over the keys read so far, (..., n, d_v); zero where none was allowed."""
        return divide(self.accumulator, self.normaliser)


@takes("S (*queries, m)", "V (..., m, d_v)")
def softmax_state(S: Array, V: Array) -> SoftmaxState:
    """Read one tile of scores and values.

    Parameters
    ----------
    S : array_like, shape (..., m) or (..., n, m)
        Scores, −∞ where a query may not look.
    V : array_like, shape (..., m, d_v)
        The values of these m keys.

    Returns
    -------
    SoftmaxState
        Kept in float32 for float16 input.

    Notes
    -----
    A row may hold nothing but −∞. Its maximum is −∞ too, and −∞ − (−∞) would be NaN: such a row is
    measured from 0 instead, so that every exponential in it is 0.
    """
    maximum = S.max(axis=-1, initial=-np.inf)
    P = S - finite_or_zero(maximum)[..., None]
    np.exp(P, out=P)  # in place: a third tile costs half as much again
    return SoftmaxState(maximum, P.sum(axis=-1), P @ V)


def merge_states(a: SoftmaxState, b: SoftmaxState) -> SoftmaxState:
    """Join what was read in two places, as if it had been read in one.

    Both are brought to the common maximum μ: one of the factors ``exp(μ_a − μ)`` and
    ``exp(μ_b − μ)`` is 1 and the other at most 1. The order of reading does not matter.

    Parameters
    ----------
    a, b : SoftmaxState
        States of the same queries over different keys.

    Returns
    -------
    SoftmaxState

    Notes
    -----
    Milakov and Gimelshein (2018), section 3.1.
    """
    maximum = np.maximum(a.maximum, b.maximum)
    shift = finite_or_zero(maximum)
    f, g = np.exp(a.maximum - shift), np.exp(b.maximum - shift)
    normaliser = f * a.normaliser + g * b.normaliser
    read_a = f[..., None] * a.accumulator
    read_b = g[..., None] * b.accumulator
    return SoftmaxState(maximum, normaliser, read_a + read_b)


def online_softmax(tiles: Iterable[tuple[Array, Array]]) -> Iterator[SoftmaxState]:
    """Read the keys tile by tile, each once, and say after each what is known.

    Parameters
    ----------
    tiles : iterable of (S, V)
        Scores (..., n, t) and values (..., t, d_v) of t keys; t may differ from tile to tile.

    Yields
    ------
    SoftmaxState
        After the last tile its ``output`` is attention over all the keys.

    Notes
    -----
    Milakov and Gimelshein (2018).
    """
    state = None
    for S, V in tiles:
        state = _read_on(state, S, V)
        yield state


@takes("Q (..., n, d_k≥1)", "K (..., m, d_k)", "V (..., m, d_v)", tile=two_sizes)
def attention_in_tiles(Q: Array, K: Array, V: Array, *, tile: tuple[int, int] = TILE) -> np.ndarray:
    """Compute attention exactly with one tile of scores at a time: all that is needed of it.

    Parameters
    ----------
    Q : array_like, shape (..., n, d_k)
    K : array_like, shape (..., m, d_k)
    V : array_like, shape (..., m, d_v)
    tile : (int, int), default (256, 1024)
        How many queries and how many keys a tile holds.

    Returns
    -------
    ndarray, shape (..., n, d_v)

    Raises
    ------
    ValueError
        If the shapes do not fit or `tile` is not two whole numbers ≥ 1.

    Notes
    -----
    `tiled_attention` does the same with masks, and leaves out the tiles that they hide. Dao et al.
    (2022), algorithm 1.
    """
    rows, columns = tile
    outputs = []
    for i in range(0, max(1, Q.shape[-2]), rows):
        q, k, v = Q[..., i : i + rows, :], K[..., :0, :], V[..., :0, :]
        state = softmax_state(attention_scores(q, k), v)  # nothing read
        for j in range(0, K.shape[-2], columns):
            k, v = (M[..., j : j + columns, :] for M in (K, V))
            read = softmax_state(attention_scores(q, k), v)
            state = merge_states(state, read)
        outputs.append(state.output)
    return np.concatenate(outputs, axis=-2)


class Tile(NamedTuple):
    """One step of tiled attention: which queries met which keys, and what is known after it.

    Attributes
    ----------
    queries, keys : slice
        The tile's place in the n × m scores.
    state : SoftmaxState
        State of these queries after these keys and all before them.
    """

    queries: slice
    keys: slice
    state: SoftmaxState


@takes(
    "Q (..., n, d_k≥1)",
    "K (..., m, d_k)",
    "V (..., m, d_v)",
    mask=mask_for("Q", "K"),
    offset=whole(),
    scale=a_scale,
    tile=two_sizes,
)
def attention_tiles(
    Q: Array,
    K: Array,
    V: Array,
    *,
    mask: Array | None = None,
    causal: bool = False,
    offset: int = 0,
    scale: float | None = None,
    tile: tuple[int, int] = TILE,
) -> Iterator[Tile]:
    """Do `tiled_attention` step by step.

    Parameters
    ----------
    Q, K, V, mask, causal, offset, scale, tile
        See `tiled_attention`.

    Yields
    ------
    Tile
        For each tile of queries the tiles of keys from left to right. A tile in which no
        query may look at any key is not computed and not yielded.

    Raises
    ------
    ValueError
        As `tiled_attention`, when the first tile is asked for.
    """
    window = _unlimited(Q, offset) if causal else None
    plan = _plan(Q, K, V, mask, window, offset, scale, tile)
    for queries in slices(0, plan.n, plan.tile[0]):
        yield from _row_of_tiles(plan, queries)


@takes(
    "Q (..., n, d_k≥1)",
    "K (..., m, d_k)",
    "V (..., m, d_v)",
    mask=mask_for("Q", "K"),
    offset=whole(),
    scale=a_scale,
    tile=two_sizes,
)
def tiled_attention(
    Q: Array,
    K: Array,
    V: Array,
    *,
    mask: Array | None = None,
    causal: bool = False,
    offset: int = 0,
    scale: float | None = None,
    tile: tuple[int, int] = TILE,
) -> np.ndarray:
    """Compute attention exactly, holding one tile of scores at a time.

    The same function as ``attention(Q, K, V).output`` in real arithmetic, and not bit for bit
    in floating point, because sums are taken in another order. Operations stay n · m · (d_k +
    d_v); memory beside the arguments and the output does not depend on n and m.

    Parameters
    ----------
    Q : array_like, shape (..., n, d_k)
    K : array_like, shape (..., m, d_k)
    V : array_like, shape (..., m, d_v)
    mask : array_like, broadcasting to (..., n, m), optional
        Boolean: True where the query **may** look. Float: added to the scores. A mask that
        broadcasts, such as a padding mask, is never made larger than it is.
    causal : bool, default False
        Let query i look at key j only if ``j <= i + offset``, beside what `mask` says. The
        mask is made tile by tile, and the tiles beyond the diagonal are not computed.
    offset : int, default 0
        See `causal_mask`.
    scale : float, optional
        By default 1/√d_k.
    tile : (int, int), default (256, 1024)
        How many queries and how many keys a tile holds.

    Returns
    -------
    ndarray, shape (..., n, d_v)
        A query with nothing to look at has a zero output.

    Raises
    ------
    ValueError
        As `attention`; also if `tile` is not two whole numbers ≥ 1.

    Notes
    -----
    The arithmetic of FlashAttention, not its speed, which comes from moving less data between the
    memories of an accelerator. Dao et al. (2022), algorithm 1.
    """
    window = _unlimited(Q, offset) if causal else None
    return _attend(Q, K, V, mask, window, offset, scale, tile)


@takes(
    "Q (..., n, d_k≥1)",
    "K (..., m, d_k)",
    "V (..., m, d_v)",
    window=whole(1),
    mask=mask_for("Q", "K"),
    offset=whole(),
    scale=a_scale,
    tile=optional(two_sizes),
)
def windowed_attention(
    Q: Array,
    K: Array,
    V: Array,
    *,
    window: int,
    mask: Array | None = None,
    offset: int = 0,
    scale: float | None = None,
    tile: tuple[int, int] | None = None,
) -> np.ndarray:
    """Let each query read the last `window` keys only, without building n × m scores.

    Equal to ``attention(Q, K, V, mask=window_mask(n, m, window=window)).output``; time grows
    as n · window.

    Parameters
    ----------
    Q, K, V, mask, scale
        See `tiled_attention`.
    window : int
        How many keys a query may see, **its own included**.
    offset : int, default 0
        See `window_mask`.
    tile : (int, int), optional
        By default as many queries as the window is wide, 32 to 256: a taller tile computes
        more scores that the window then hides, a lower one takes more steps.

    Returns
    -------
    ndarray, shape (..., n, d_v)

    Raises
    ------
    ValueError
        As `tiled_attention`; also if `window` is not a whole number ≥ 1.

    Notes
    -----
    Beltagy, Peters and Cohan (2020).
    """
    tile = window_tile(window) if tile is None else tile
    return _attend(Q, K, V, mask, window, offset, scale, tile)


def window_tile(window: int) -> tuple[int, int]:
    """Give the tile that `windowed_attention` uses by default."""
    return min(max(window, 32), TILE[0]), TILE[1]


# --- linear attention -----------------------------------------------------------------------------


@keeps_precision
class LinearState(NamedTuple):
    """The whole past of causal linear attention, in a size that does not grow.

    Attributes
    ----------
    memory : ndarray, shape (..., d_f, d_v)
        Σ_j φ(k_j) v_jᵀ.
    normaliser : ndarray, shape (..., d_f)
        Σ_j φ(k_j).
    """

    memory: np.ndarray
    normaliser: np.ndarray

    def read(self, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give numerator (..., n, d_v) and denominator (..., n) for features (..., n, d_f)."""
        return F @ self.memory, (F @ self.normaliser[..., None])[..., 0]

    def average(self, F: np.ndarray) -> np.ndarray:
        """Give the output (..., n, d_v) for features (..., n, d_f); zero where nothing weighs."""
        return divide(*self.read(F))

    def write(self, F: np.ndarray, V: np.ndarray) -> "LinearState":
        """Give the state with m more keys, of features (..., m, d_f) and values (..., m, d_v)."""
        normaliser = self.normaliser + F.sum(axis=-2)
        return LinearState(self.memory + F.mT @ V, normaliser)


@takes("x (...)")
def elu_plus_one(x: Array) -> np.ndarray:
    """Make every coordinate positive: x + 1 above zero, exp(x) below.

    Parameters
    ----------
    x : array_like, shape (...)
        Real numbers.

    Returns
    -------
    ndarray, same shape as `x`

    Notes
    -----
    Katharopoulos et al. (2020), equation 7.
    """
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


@takes(
    "Q (..., n, d_k)",
    "K (..., m, d_k)",
    "V (..., m, d_v)",
    chunk=whole(1),
    features=positive_features,
)
def linear_attention(
    Q: Array,
    K: Array,
    V: Array,
    *,
    causal: bool = False,
    features: Features = elu_plus_one,
    chunk: int = CHUNK,
) -> np.ndarray:
    """Weigh by φ(q)·φ(k) instead of exp(q·k/√d_k): ``O = φ(Q) (φ(K)ᵀ V)``, row-normalised.

    Another function than softmax attention, not an approximation of it. Because nothing is
    taken of the product φ(q)·φ(k), the keys can be summed up once, before any query comes.

    Parameters
    ----------
    Q : array_like, shape (..., n, d_k)
    K : array_like, shape (..., m, d_k)
    V : array_like, shape (..., m, d_v)
    causal : bool, default False
        Let query i look at keys j ≤ i. Then n = m.
    features : callable, default `elu_plus_one`
        φ: (..., d_k) to (..., d_f), with no negative entry, or weights could be negative.
    chunk : int, default 128
        How many rows are worked on at a time. Within a chunk the causal weights are formed
        and masked; the past comes from the running state. With chunk 1 this is the
        recurrent form, with chunk n the parallel one.

    Returns
    -------
    ndarray, shape (..., n, d_v)
        Zero where the weights of a row are all zero.

    Raises
    ------
    ValueError
        If the shapes do not fit, if `causal` and n ≠ m, if `chunk` is not a whole number ≥ 1,
        or if `features` gives a negative number.

    Notes
    -----
    Katharopoulos et al. (2020).
    """
    n, m = Q.shape[-2], K.shape[-2]
    if causal and n != m:
        raise ValueError(f"causal linear attention needs n = m: got Q {Q.shape} and K {K.shape}")
    O = np.empty((*_batch(Q, K, V), n, V.shape[-1]), Q.dtype)
    state = empty_state(K, V, features)
    if causal:
        for rows in slices(0, n, chunk):
            q, k, v = features(Q[..., rows, :]), K[..., rows, :], V[..., rows, :]
            O[..., rows, :], state = _linear_chunk(state, q, features(k), v)
        return O
    for rows in slices(0, m, chunk):
        state = state.write(features(K[..., rows, :]), V[..., rows, :])
    for rows in slices(0, n, chunk):
        O[..., rows, :] = state.average(features(Q[..., rows, :]))
    return O


@takes("q (..., d_k)", "k (..., d_k)", "v (..., d_v)", features=positive_features)
def linear_attention_step(
    state: LinearState | None,
    q: Array,
    k: Array,
    v: Array,
    *,
    features: Features = elu_plus_one,
) -> tuple[np.ndarray, LinearState]:
    """Read one more token: the recurrent form of causal linear attention.

    Parameters
    ----------
    state : LinearState or None
        What is known of the tokens before; None before the first.
    q, k : array_like, shape (..., d_k)
    v : array_like, shape (..., d_v)
        The new token's query, key and value.
    features : callable, default `elu_plus_one`
        See `linear_attention`.

    Returns
    -------
    output : ndarray, shape (..., d_v)
    state : LinearState
        To be handed to the next step. The old one is left as it was.

    Raises
    ------
    ValueError
        As `linear_attention`.

    Notes
    -----
    Katharopoulos et al. (2020), equations 18 to 20.
    """
    q, k, v = q[..., None, :], k[..., None, :], v[..., None, :]
    if state is None:
        state = empty_state(k, v, features)
    state = state.write(features(k), v)
    return state.average(features(q))[..., 0, :], state


# --- the key-value cache --------------------------------------------------------------------------


class KVCache:
    """Keys and values of the tokens read so far, so that a new token computes only its own.

    >>> cache = KVCache()
    >>> cache.append(np.eye(2), np.eye(2))
    >>> cache.attend(np.zeros((1, 2))).weights
    array([[0.5, 0.5]])

    Only causal attention can be cached: there the past does not change when a token is added.
    The room doubles when it is full, so that n appended tokens cost O(n) copies in all.
    """

    def __init__(self) -> None:
        self._length = 0
        self._K: np.ndarray | None = None
        self._V: np.ndarray | None = None

    def __len__(self) -> int:
        return self._length

    @property
    def keys(self) -> np.ndarray:
        """The keys so far, (..., len(cache), d_k): a view."""
        return self._filled(self._K)

    @property
    def values(self) -> np.ndarray:
        """The values so far, (..., len(cache), d_v): a view."""
        return self._filled(self._V)

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values so far; the room kept may be up to twice as large."""
        return self.keys.nbytes + self.values.nbytes if self._length else 0

    def append(self, K: Array, V: Array) -> None:
        """Add the keys and values of new tokens behind those already there.

        Parameters
        ----------
        K : array_like, shape (..., t, d_k)
        V : array_like, shape (..., t, d_v)

        Raises
        ------
        ValueError
            If K and V do not fit each other or what is in the cache.
        """
        K, V = np.asarray(K), np.asarray(V)
        if K.ndim < 2 or K.shape[:-1] != V.shape[:-1]:
            raise ValueError(
                f"K (..., t, d_k) and V (..., t, d_v) must differ in width alone: "
                f"got {K.shape} and {V.shape}"
            )
        start, stop = self._length, self._length + K.shape[-2]
        K_room = _with_room("K", self._K, K, start, stop)
        V_room = _with_room("V", self._V, V, start, stop)
        K_room[..., start:stop, :], V_room[..., start:stop, :] = K, V
        self._K, self._V, self._length = K_room, V_room, stop

    @takes("Q (..., n, d_k)", cast=False)
    def attend(self, Q: Array, *, scale: float | None = None) -> AttentionResult:
        """Let the newest tokens read everything up to themselves.

        Parameters
        ----------
        Q : array_like, shape (..., n, d_k)
            Queries of the last n tokens appended.
        scale : float, optional
            By default 1/√d_k.

        Returns
        -------
        AttentionResult
            The last n rows of causal attention over all tokens.

        Raises
        ------
        ValueError
            If the cache holds fewer than n tokens, or the shapes do not fit.
        """
        n, m = self.newest(Q), len(self)
        keep = causal_mask(n, m, offset=m - n)
        return attention(Q, self.keys, self.values, mask=keep, scale=scale)

    def newest(self, Q: np.ndarray) -> int:
        """Give the number of queries, or raise ValueError if there are not as many tokens."""
        n = Q.shape[-2]
        if n > len(self):
            raise ValueError(
                f"append a token's key and value before it attends: Q {Q.shape} has {n} "
                f"queries, the cache {len(self)} keys"
            )
        return n

    def _filled(self, room: np.ndarray | None) -> np.ndarray:
        if room is None:
            raise ValueError("the cache is empty: append keys and values first")
        return room[..., : self._length, :]


# --- inside ---------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """Checked arguments of tiled attention."""

    Q: np.ndarray
    K: np.ndarray
    V: np.ndarray
    mask: np.ndarray | None  # a view of shape (..., n, m)
    window: int | None  # keys a query may see up to its own; None: no causal limit
    offset: int
    scale: float
    tile: tuple[int, int]

    @property
    def n(self) -> int:
        return self.Q.shape[-2]


def _attend(
    Q: Array,
    K: Array,
    V: Array,
    mask: Array | None,
    window: int | None,
    offset: int,
    scale: float | None,
    tile: tuple[int, int],
) -> np.ndarray:
    """Compute the output of a plan, one row of tiles after the other."""
    plan = _plan(Q, K, V, mask, window, offset, scale, tile)
    O = np.zeros((*_batch(Q, K, V), plan.n, V.shape[-1]), Q.dtype)
    for queries in slices(0, plan.n, plan.tile[0]):
        for last in deque(_row_of_tiles(plan, queries), maxlen=1):  # none: nothing to look at
            O[..., queries, :] = last.state.output
    return O


def _plan(
    Q: Array,
    K: Array,
    V: Array,
    mask: Array | None,
    window: int | None,
    offset: int,
    scale: float | None,
    tile: tuple[int, int],
) -> _Plan:
    """Check what the caller gave; the arrays are promoted already."""
    scale = 1 / math.sqrt(K.shape[-1]) if scale is None else scale
    if mask is not None:
        mask = np.broadcast_to(mask, (*_batch(Q, K), Q.shape[-2], K.shape[-2]))
    return _Plan(Q, K, V, mask, window, offset, float(scale), tile)


def _row_of_tiles(plan: _Plan, queries: slice) -> Iterator[Tile]:
    """Read all the keys that these queries may look at, tile by tile."""
    Q = plan.Q[..., queries, :] * plan.Q.dtype.type(plan.scale)
    first, last = key_range(queries, plan.K.shape[-2], window=plan.window, offset=plan.offset)
    state = None
    for keys in slices(first, last, plan.tile[1]):
        mask = _tile_mask(plan, queries, keys)
        if mask is not None and mask.dtype == bool and not mask.any():
            continue
        K, V = plan.K[..., keys, :], plan.V[..., keys, :]
        state = _read_on(state, apply_mask(Q @ K.mT, mask), V)  # no name keeps the scores alive
        yield Tile(queries, keys, state)


def _read_on(state: SoftmaxState | None, S: Array, V: Array) -> SoftmaxState:
    """Add one tile to what is known."""
    read = softmax_state(S, V)
    return read if state is None else merge_states(state, read)


def key_range(
    queries: slice, m: int, *, window: int | None = None, offset: int = 0
) -> tuple[int, int]:
    """Give the range of keys that a causal window lets at least one of the queries look at."""
    if window is None:
        return 0, m
    return max(0, queries.start + offset - window + 1), min(m, queries.stop + offset)


def _tile_mask(plan: _Plan, queries: slice, keys: slice) -> np.ndarray | None:
    """Cut the caller's mask and the causal window to one tile; None if they hide nothing."""
    given = None if plan.mask is None else plan.mask[..., queries, keys]
    if plan.window is None:
        return given
    n, m, offset = queries.stop - queries.start, keys.stop - keys.start, plan.offset
    offset += queries.start - keys.start  # the tile's own corner
    if m - 1 <= offset and n - 1 + offset < plan.window:  # every query sees every key
        return given
    return combine_masks(window_mask(n, m, window=plan.window, offset=offset), given)


def _unlimited(Q: Array, offset: int) -> int:
    """Give a window so wide that only causality limits it."""
    return max(1, Q.shape[-2] + offset)


def slices(start: int, stop: int, step: int) -> Iterator[slice]:
    """Cut a range into slices of `step`, the last one shorter if need be."""
    for i in range(start, stop, step):
        yield slice(i, min(i + step, stop))


def _batch(*arrays: np.ndarray) -> tuple[int, ...]:
    """Give the common leading axes."""
    return np.broadcast_shapes(*(a.shape[:-2] for a in arrays))


def finite_or_zero(maximum: np.ndarray) -> np.ndarray:
    """Put 0 for −∞, so that −∞ − (−∞) never arises."""
    return np.where(np.isneginf(maximum), 0, maximum)


def divide(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Normalise rows; a row without any weight stays zero."""
    return numerator / np.where(denominator == 0, 1, denominator)[..., None]


def empty_state(K: np.ndarray, V: np.ndarray, features: Features) -> LinearState:
    """Give the state before any token."""
    d_f = features(K[..., :0, :]).shape[-1]
    batch = _batch(K, V)
    return LinearState(
        np.zeros((*batch, d_f, V.shape[-1]), V.dtype), np.zeros((*K.shape[:-2], d_f), K.dtype)
    )


def _linear_chunk(
    state: LinearState, Fq: np.ndarray, Fk: np.ndarray, V: np.ndarray
) -> tuple[np.ndarray, LinearState]:
    """Add the past, read from the state, and the chunk's own tokens, by masked weights."""
    numerator, denominator = state.read(Fq)
    A = np.tril(Fq @ Fk.mT)
    output = divide(numerator + A @ V, denominator + A.sum(axis=-1))
    return output, state.write(Fk, V)


def _with_room(
    name: str, room: np.ndarray | None, new: np.ndarray, start: int, stop: int
) -> np.ndarray:
    """Give an array with room for `stop` tokens whose first `start` are those of `room`."""
    if room is not None and (
        (room.shape[:-2], room.shape[-1], room.dtype) != (new.shape[:-2], new.shape[-1], new.dtype)
    ):
        held = (*room.shape[:-2], start, room.shape[-1])
        raise ValueError(
            f"{name} {new.shape}, {new.dtype}, does not continue the cache's {held}, {room.dtype}"
        )
    if room is not None and stop <= room.shape[-2]:
        return room
    larger = np.empty((*new.shape[:-2], max(stop, 2 * start), new.shape[-1]), new.dtype)
    if room is not None:
        larger[..., :start, :] = room[..., :start, :]
    return larger
