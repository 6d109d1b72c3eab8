"""TilingLab: attention computed tile by tile, with no more than one tile in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attn_lib import attention, causal_mask, padding_mask, window_mask
from attn_lib.draws import normals
from attn_lib.efficient import SoftmaxState, Tile, attention_tiles, merge_states, softmax_state
from attn_lib.labs.base import Lab
from attn_lib.labs.tiling.figure import tiling_figure
from attn_lib.labs.traits import Choice, Whole, between

N, D_K, D_V = 9, 8, 3
WINDOW, PADDED = 3, 4
BYTES = 8  # of a float64


class TilingLab(Lab):
    """Step through tiles of scores: a maximum, a sum and an accumulator are all that is kept.

    Parameters
    ----------
    tile_queries, tile_keys : int, default 3
        How many queries and keys a tile holds, 1 … 9.
    step : int, default 5
        How many tiles have been read; wholly masked ones are skipped and not counted.
    query : int, default 4
        The chosen query, 0 … 8, whose running numbers are shown.
    mask : {"none", "causal", "window", "padding"}
        Everything; keys up to the query's own; the last 3 of those; all but the first 4 keys.
    seed : int, default 1
        Which random draw, 0 … 9999.
    name : str, optional
        The lab's id in a page and its name in a link.
    title : str, optional

    Raises
    ------
    TypeError
        If a keyword is none of these.
    ValueError
        If a number is out of its range; `step` ends with the last tile.

    Notes
    -----
    There are 9 queries and 9 keys of width 8, and values of width 3. All is computed by
    `attn_lib.efficient.attention_tiles`. Dao et al. (2022).
    """

    settings = ("tile_queries", "tile_keys", "mask", "step", "query", "seed")
    all_controls = settings
    all_panels = ("tiles", "ledger", "memory")
    first_controls = ("step",)
    first_panels = ("tiles",)
    asks = ("touched",)

    tile_queries = Whole(3, 1, N)
    tile_keys = Whole(3, 1, N)
    mask = Choice(("none", "causal", "window", "padding"))
    step = Whole(5)
    query = Whole(4, 0, N - 1)
    seed = Whole(1, 0, 9999)  # its maxima rise in every tile of the first picture
    title = traitlets.Unicode("Softmax, one tile at a time").tag(sync=True)

    @traitlets.validate("step")
    def _valid_step(self, proposal) -> int:
        return between("step", proposal["value"], 0, len(self.tiles))

    @traitlets.observe("tile_queries", "tile_keys", "mask")
    def _tiles_changed(self, change) -> None:
        """Keep the step among the tiles."""
        self.step = min(self.step, len(self.tiles))

    # Queries, keys and values, and the plain way ----------------------------------------------

    @property
    def Q(self) -> np.ndarray:
        """The queries, (9, 8)."""
        return normals(self.seed, 0, N, D_K)

    @property
    def K(self) -> np.ndarray:
        """The keys, (9, 8)."""
        return normals(self.seed, 1, N, D_K)

    @property
    def V(self) -> np.ndarray:
        """The values, (9, 3)."""
        return normals(self.seed, 2, N, D_V)

    @property
    def keep(self) -> np.ndarray | None:
        """The mask, (9, 9), True = may look; None if there is none."""
        return {
            "none": lambda: None,
            "causal": lambda: causal_mask(N),
            "window": lambda: window_mask(N, window=WINDOW),
            "padding": lambda: np.tile(~padding_mask(PADDED, N), (N, 1)),
        }[self.mask]()

    @property
    def scores(self) -> np.ndarray:
        """All scores at once, (9, 9), which tiled attention never holds; −∞ where forbidden."""
        return attention(self.Q, self.K, self.V, mask=self.keep).scores

    @property
    def exact(self) -> np.ndarray:
        """The output of plain attention, (9, 3)."""
        return attention(self.Q, self.K, self.V, mask=self.keep).output

    # The tiles --------------------------------------------------------------------------------

    @property
    def tiles(self) -> list[Tile]:
        """All steps, from `attn_lib.efficient.attention_tiles`."""
        tile = (self.tile_queries, self.tile_keys)
        return list(attention_tiles(self.Q, self.K, self.V, mask=self.keep, tile=tile))

    @property
    def tile(self) -> Tile | None:
        """The tile read last; None before the first."""
        return self.tiles[self.step - 1] if self.step else None

    @property
    def holds_query(self) -> bool:
        """Does the present tile hold the chosen query?"""
        return self.tile is not None and _holds(self.tile, self.query)

    def _state(self, steps: int) -> SoftmaxState:
        """Give the chosen query's state after some steps."""
        for tile in reversed(self.tiles[:steps]):
            if _holds(tile, self.query):
                row = self.query - tile.queries.start
                return SoftmaxState(*(part[row] for part in tile.state))
        return _empty(np.float64(-np.inf))

    @property
    def before(self) -> SoftmaxState:
        """Maximum, normaliser and accumulator of the chosen query before the present tile."""
        return self._state(max(0, self.step - 1))

    @property
    def after(self) -> SoftmaxState:
        """The same after the present tile."""
        return self._state(self.step)

    @property
    def factor(self) -> float:
        """By what the present tile multiplies what was summed before: e^{μ − μ′}."""
        unit = _empty(self.before.maximum, normaliser=1)
        return float(merge_states(unit, _empty(self.after.maximum)).normaliser)

    @property
    def added(self) -> SoftmaxState:
        """What the present tile adds for the chosen query, measured from the new maximum."""
        tile = self.tile
        keys = tile.keys if tile is not None and _holds(tile, self.query) else slice(0, 0)
        read = softmax_state(self.scores[self.query, keys], self.V[keys])
        return SoftmaxState(read.maximum, *merge_states(_empty(self.after.maximum), read)[1:])

    @property
    def ledger(self) -> np.ndarray:
        """The chosen query's numbers, (6, 2 + d_v): columns μ, ℓ and u.

        Rows: before; rescaled, with the factor in the first column; what this tile adds; after;
        the output so far; the exact one. NaN where there is nothing to say.
        """
        blank = np.full(2 + D_V, np.nan)
        before, after = (np.hstack(state) for state in (self.before, self.after))
        rescaled = added = blank
        if self.holds_query:
            rescaled = self.factor * np.hstack([1, before[1:]])
            added = np.hstack(self.added)
        outputs = (np.hstack([blank[:2], o]) for o in (self.so_far, self.exact[self.query]))
        return np.array([before, rescaled, added, after, *outputs])

    @property
    def so_far(self) -> np.ndarray:
        """The chosen query's attention over the keys it has read, (d_v,)."""
        return self.after.output

    @property
    def difference(self) -> float:
        """Largest |so far − exact| of the chosen query: zero at the end, up to rounding."""
        return float(np.abs(self.so_far - self.exact[self.query]).max())

    @property
    def finished(self) -> bool:
        """Has the chosen query read all it may?"""
        return not any(_holds(tile, self.query) for tile in self.tiles[self.step :])

    @property
    def bytes_held(self) -> int:
        """Bytes of one tile's scores and of the state of its queries."""
        return BYTES * self.tile_queries * (self.tile_keys + 2 + D_V)

    @property
    def bytes_full(self) -> int:
        """Bytes of the full n × n scores."""
        return BYTES * N * N

    def describe(self) -> str:
        """Say which tile is read and what it does to the chosen query's numbers."""
        of, query = len(self.tiles), self.query + 1
        if self.tile is None:
            return f"Nothing is read yet; {of} tiles are to come."
        where = f"queries {_range(self.tile.queries)} meet keys {_range(self.tile.keys)}"
        says = f"Step {self.step} of {of}: {where}. "
        if not self.holds_query:
            return says + f"Query {query} is not among them and keeps its numbers."
        end = "it is done" if self.finished else "it has more to read"
        return says + (
            f"For query {query} what was summed before is multiplied by {self.factor:.2f}; "
            f"its sum of weights is now {self.after.normaliser:.2f}, and {end}."
        )

    def figure(self) -> Figure:
        """Draw the tiles and the chosen query's numbers with matplotlib."""
        return tiling_figure(
            self.scores,
            [(tile.queries, tile.keys) for tile in self.tiles],
            step=self.step,
            tile=(self.tile_queries, self.tile_keys),
            query=self.query,
            ledger=self.ledger,
        )


def _empty(maximum: Any, normaliser: float = 0) -> SoftmaxState:
    """Give the state of one query that has read nothing, measured from a maximum."""
    start: Any = np.float64(normaliser)  # one query's numbers are no arrays
    return SoftmaxState(maximum, start, np.zeros(D_V))


def _holds(tile: Tile, query: int) -> bool:
    return tile.queries.start <= query < tile.queries.stop


def _range(places: slice) -> str:
    """Name places as a reader counts them: from one."""
    first, last = places.start + 1, places.stop
    return str(last) if first == last else f"{first} to {last}"
