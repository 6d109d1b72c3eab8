"""What attention costs: counted by formula, to be held against what is measured.

A *multiply-add* is one product and one sum inside a matrix product. *Memory* is counted in
numbers, and only those held beside the arguments and the output.
"""

import tracemalloc
from collections.abc import Callable
from typing import NamedTuple

from attn_lib.arrays import takes
from attn_lib.efficient import CHUNK, TILE, key_range, slices, two_sizes, window_tile
from attn_lib.heads import groups_of
from attn_lib.rules import one_of, optional, whole

KINDS = ("plain", "tiled", "windowed", "linear")


class Cost(NamedTuple):
    """What one head spends on one sequence, its projections left out.

    Attributes
    ----------
    multiply_adds : int
        In matrix products.
    exponentials : int
        Evaluations of exp.
    memory : int
        Numbers held at the peak, beside queries, keys, values and output.
    """

    multiply_adds: int
    exponentials: int
    memory: int


@takes(
    n=whole(0),
    m=whole(0, default="n"),
    d_k=whole(1),
    d_v=whole(0, default="d_k"),
    kind=one_of(*KINDS),
    window=optional(whole(1)),
    tile=optional(two_sizes),
    chunk=whole(1),
)
def attention_cost(
    n: int,
    m: int | None = None,
    *,
    d_k: int,
    d_v: int | None = None,
    kind: str = "plain",
    causal: bool = False,
    window: int | None = None,
    tile: tuple[int, int] | None = None,
    chunk: int = CHUNK,
) -> Cost:
    """Count what one head spends on n queries and m keys.

    Parameters
    ----------
    n, m : int
        Queries and keys; by default as many keys as queries.
    d_k, d_v : int
        Width of queries and keys, and of values (by default the same).
    kind : {"plain", "tiled", "windowed", "linear"}, default "plain"
        `attention` (its scores turned into weights in place), `tiled_attention`,
        `windowed_attention` or `linear_attention`.
    causal : bool, default False
        Plain attention hides the future and computes it all the same; the tiled one skips
        what lies beyond the diagonal; the windowed one is causal anyway.
    window : int, optional
        For the windowed kind, and needed there.
    tile, chunk
        See `tiled_attention`, `windowed_attention` and `linear_attention`.

    Returns
    -------
    Cost

    Raises
    ------
    ValueError
        If `kind` is none of the four, or a size is not a whole number.
    """
    if kind == "plain":
        return Cost(n * m * (d_k + d_v), n * m, n * m)
    if kind == "tiled":
        reach = max(1, n) if causal else None
        return _tiled_cost(n, m, d_k, d_v, reach, tile or TILE)
    if kind == "windowed":
        if window is None:
            raise ValueError("window must be a whole number ≥ 1, got None")
        return _tiled_cost(n, m, d_k, d_v, window, tile or window_tile(window))
    return _linear_cost(n, m, d_k, d_v, causal, chunk)


@takes(
    n=whole(0),
    m=whole(0, default="n"),
    d_k=whole(1),
    d_v=whole(0, default="d_k"),
    kind=one_of("plain", "tiled"),
    rows=whole(1),
)
def data_moved(
    n: int,
    m: int | None = None,
    *,
    d_k: int,
    d_v: int | None = None,
    kind: str = "plain",
    rows: int = TILE[0],
) -> int:
    """Count the numbers that one head moves between a large slow memory and a small fast one.

    Parameters
    ----------
    n, m, d_k, d_v : int
        As for `attention_cost`.
    kind : {"plain", "tiled"}, default "plain"
        Plain attention writes the scores out, reads them for the softmax, writes the weights
        out and reads them to mix. Tiled attention moves queries and outputs once, and all keys
        and values once for each row of tiles.
    rows : int, default 256
        Queries in a tile.

    Returns
    -------
    int
        Plain 4nm + (n + m)(d_k + d_v), tiled (n + ⌈n/rows⌉ m)(d_k + d_v).

    Raises
    ------
    ValueError
        If `kind` is neither, or a size is not a whole number.

    Notes
    -----
    A matrix product is taken to read each factor once, which flatters plain attention, and a tile
    with its state to fit the fast memory. Dao et al. (2022), section 3.2.
    """
    if kind == "plain":
        return 4 * n * m + (n + m) * (d_k + d_v)
    return (n - (-n // rows) * m) * (d_k + d_v)


@takes(n=whole(0), d=whole(1), past=whole(0), d_ff=optional(whole(0)))
def layer_cost(n: int, d: int, *, past: int = 0, d_ff: int | None = None) -> dict[str, int]:
    """Count the multiply-adds of one layer for n new tokens.

    Parameters
    ----------
    n : int
        Tokens to run through the layer.
    d : int
        Width of the model; the heads share it, whatever their number.
    past : int, default 0
        Earlier tokens whose keys and values are in a cache.
    d_ff : int, optional
        Width of the feed-forward part, by default 4 d; 0 for none.

    Returns
    -------
    dict
        ``projections`` 4nd², ``scores`` and ``mixing`` n(past + n)d each, ``feed_forward``
        2nd·d_ff, and ``total``. Scores and mixing together pass the projections at n = 2d, and
        projections and feed-forward part together at n = 6d.

    Raises
    ------
    ValueError
        If a size is not a whole number, or negative.
    """
    d_ff = 4 * d if d_ff is None else d_ff
    counts = {
        "projections": 4 * n * d * d,
        "scores": n * (past + n) * d,
        "mixing": n * (past + n) * d,
        "feed_forward": 2 * n * d * d_ff,
    }
    return counts | {"total": sum(counts.values())}


@takes(n=whole(0), d=whole(1), d_ff=optional(whole(0)))
def generation_cost(n: int, d: int, *, cached: bool = True, d_ff: int | None = None) -> int:
    """Count the multiply-adds of one layer while n tokens are written one by one.

    Parameters
    ----------
    n, d, d_ff
        See `layer_cost`.
    cached : bool, default True
        With a cache token t runs alone and reads t keys: O(n²d + nd²) in all. Without one
        all t tokens run again each time: O(n³d + n²d²).

    Returns
    -------
    int
    """
    steps = ((1, t) if cached else (t + 1, 0) for t in range(n))
    return sum(layer_cost(new, d, past=past, d_ff=d_ff)["total"] for new, past in steps)


@takes(n=whole(0), d=whole(1), layers=whole(0), heads=whole(1), kv_heads=groups_of("heads"))
def cache_size(
    n: int, d: int, *, layers: int = 1, heads: int = 1, kv_heads: int | None = None
) -> int:
    """Count the numbers that a key-value cache holds after n tokens.

    Parameters
    ----------
    n, d : int
        Tokens, and width of the model.
    layers, heads : int, default 1
    kv_heads : int, optional
        Heads that keep keys and values, by default all; fewer share them.

    Returns
    -------
    int
        A key and a value of width d · kv_heads / heads for each token in each layer.
    """
    return 2 * layers * n * d * kv_heads // heads


def peak_memory(function: Callable[[], object]) -> int:
    """Measure how many bytes a call holds at its peak, the result included.

    Parameters
    ----------
    function : callable
        Called once without arguments, so what it works on exists before and is not counted.

    Returns
    -------
    int

    Raises
    ------
    RuntimeError
        If memory is being traced already.

    Notes
    -----
    numpy reports its arrays to `tracemalloc`.
    """
    if tracemalloc.is_tracing():
        raise RuntimeError("memory is being traced already: peak_memory cannot be nested")
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _tiled_cost(
    n: int, m: int, d_k: int, d_v: int, window: int | None, tile: tuple[int, int]
) -> Cost:
    """Walk the rows of tiles as `tiled_attention` does; each state is merged into the last one."""
    pairs = rescaled = largest = 0
    for queries in slices(0, n, tile[0]):
        rows = queries.stop - queries.start
        first, last = key_range(queries, m, window=window)
        keys = max(0, last - first)
        pairs += rows * keys
        rescaled += 2 * rows * max(0, -(-keys // tile[1]) - 1)
        scores, state = rows * min(keys, tile[1]), rows * (d_v + 2)
        # Scaled queries and scores stay; then exponentials beside two states, or a merge's five.
        largest = max(largest, rows * d_k + scores + max(scores + 2 * state, 5 * state))
    return Cost(pairs * (d_k + d_v), pairs + rescaled, largest)


def _linear_cost(n: int, m: int, d_k: int, d_v: int, causal: bool, chunk: int) -> Cost:
    """Write every key into the state, read it by every query; causal: a small square per chunk."""
    write, read = m * d_k * d_v, n * d_k * (d_v + 1)
    squares = sum((rows.stop - rows.start) ** 2 for rows in slices(0, n, chunk)) if causal else 0
    rows, state = min(chunk, max(n, m)), d_k * (d_v + 1)
    features, values = rows * d_k, rows * d_v
    if causal:  # masking the square, or renewing the state
        memory = 2 * features + max(state + 2 * rows * rows + 2 * values, 3 * state + values)
    else:  # computing features, renewing the state, or reading it
        memory = max(state + 3 * features, 3 * state + features, state + features + 2 * values)
    return Cost(write + read + squares * (d_k + d_v), (n + m) * d_k, memory)
