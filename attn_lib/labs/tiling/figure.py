"""TilingLab's figure: scores read tile by tile, and the numbers that are kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attn_lib.figures import (
    ACCENT,
    INK,
    LINE,
    MUTED,
    frame,
    heatmap,
    name_axes,
    part,
    score_limit,
    style,
)
from attn_lib.words import fixed


def tiling_figure(
    S: np.ndarray,
    tiles: Sequence[tuple[slice, slice]],
    *,
    step: int,
    tile: tuple[int, int],
    query: int,
    ledger: np.ndarray,
) -> Figure:
    """Draw scores read tile by tile, and what is kept of them for one query.

    Parameters
    ----------
    S : ndarray, shape (n, m)
        The scores, −∞ where forbidden.
    tiles : sequence of (queries, keys)
        The tiles in the order in which they are read; the others are never computed.
    step : int
        How many have been read.
    tile : (int, int)
        How many queries and keys a tile holds.
    query : int
        The query whose numbers are shown.
    ledger : ndarray, shape (6, 2 + d_v)
        Running maximum, normaliser and accumulator: before; rescaled, with the factor in the
        first column; added by the present tile; after it; then the output so far and the exact
        one. NaN is left blank.

    Returns
    -------
    Figure
    """
    n, m = S.shape
    read = np.zeros(S.shape, bool)
    for queries, keys in tiles[:step]:
        read[queries, keys] = True
    with style():
        fig = Figure(figsize=(7.2, 3.5))
        left, right = fig.subplots(1, 2, width_ratios=[1, 1.05])
        shown = np.where(read | np.isneginf(S), S, np.nan)
        heatmap(left, shown, kind="scores", title="Scores", limit=score_limit(S))
        left.set_facecolor("#edeff2")  # still to come
        part(left, rows=range(tile[0], n, tile[0]), cols=range(tile[1], m, tile[1]))
        if step:
            frame(left, *tiles[step - 1], width=2.4)
        name_axes(left)
        left.tick_params(axis="x", labelrotation=0)
        left.get_yticklabels()[query].set(color=ACCENT, fontweight="bold")
        _ledger(right, ledger, query=query)
    return fig


def _ledger(ax: Axes, ledger: np.ndarray, *, query: int) -> None:
    """Write the running numbers of one query as a table."""
    d_v = ledger.shape[1] - 2
    rows = [
        "before",
        r"$\times\, e^{\mu - \mu^{\prime}}$",
        "+ this tile",
        "= after",
        r"$u/\ell$",
        "exact",
    ]
    heads = [r"$\mu$", r"$\ell$", *(f"$u_{r + 1}$" for r in range(d_v))]
    ax.set(xlim=(-2.4, len(heads) - 0.4), ylim=(7.6, -0.8), title=f"What query {query + 1} keeps")
    ax.axis("off")
    for c, name in enumerate(heads):
        ax.text(c + 0.45, 0, name, ha="right", color=MUTED, fontsize=10)
    for r, name in enumerate(rows):
        y = r + 1 + (0.25 if r > 3 else 0)
        ax.text(-2.3, y, name, color=INK if r in (3, 4) else MUTED, fontsize=11 if r == 1 else 9)
        for c, value in enumerate(ledger[r]):
            if not np.isnan(value):
                text = "−∞" if np.isneginf(value) else fixed(value)
                weight = "bold" if r == 3 else "normal"
                ax.text(c + 0.45, y, text, ha="right", fontweight=weight)
    ax.axhline(3.38, color=LINE, linewidth=0.8)
    ax.axhline(4.6, color=LINE, linewidth=0.8)
