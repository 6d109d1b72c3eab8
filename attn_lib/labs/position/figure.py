"""PositionLab's figure: a table of positions, a score over the offset, gaps."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attn_lib.figures import ACCENT, heatmap, style


def position_figure(
    encodings: np.ndarray,
    *,
    offsets: np.ndarray,
    curves: dict[str, np.ndarray],
    gaps: dict[str, float],
    title: str,
) -> Figure:
    """Draw a kind of position: its table, the score against the offset, the orders it notices.

    Parameters
    ----------
    encodings : ndarray, shape (n, d) or (n, n)
        What each position contributes, one row per position.
    offsets : ndarray, shape (k,)
        How many places the key stands after the query.
    curves : dict of str to ndarray, shape (k,)
        Scores against the offset, by the name of the curve. Where they are −∞, the picture says
        that a mask forbids to read.
    gaps : dict of str to float
        ‖Attention(PX) − P Attention(X)‖ by the name of the order.
    title : str
        The kind of position.

    Returns
    -------
    Figure
    """
    with style():
        fig = Figure(figsize=(7.2, 3.9))
        panels = fig.subplot_mosaic("tc;bc", width_ratios=[1, 1.25], height_ratios=[2.6, 1])
        table, curve, bars = panels["t"], panels["c"], panels["b"]
        rows = [str(i) for i in range(len(encodings))]
        heatmap(table, encodings, rows=rows, kind="scores", numbers=False)
        table.set_anchor("NW")
        table.set(title=title[0].upper() + title[1:], ylabel="position", xticks=[])
        for (name, scores), look in zip(curves.items(), ("-", "o"), strict=True):
            curve.plot(offsets, scores, look, ms=3.5, label=name)
        curve.set(title="Score against offset", xlabel="offset $j − i$")
        hidden = np.isneginf(next(iter(curves.values())))
        if hidden.any():
            curve.axvspan(offsets[hidden].min() - 0.5, offsets[-1], color="0.93", lw=0)
            curve.text(
                offsets[hidden].mean(),
                0.5,
                "forbidden",
                ha="center",
                color="0.35",
                transform=curve.get_xaxis_transform(),
            )
        curve.margins(y=0.15)
        curve.legend(frameon=False, fontsize=7.5, handlelength=2.2, loc="upper left", ncols=2)
        _gap_bars(bars, gaps)
    return fig


def _gap_bars(ax: Axes, gaps: dict[str, float]) -> None:
    """Draw the gap of each order as a bar with its number."""
    sizes = list(gaps.values())
    most = max(*sizes, 1e-6)
    ax.barh(range(len(sizes)), sizes, height=0.45, color=ACCENT)
    for at, size in enumerate(sizes):
        text = "0" if size < 1e-9 else f"{size:.2f}"
        ax.text(size + 0.04 * most, at, text, va="center", fontsize=8)
    ax.set_yticks(range(len(sizes)), list(gaps))
    ax.set(title="What the layer notices", xlim=(0, 1.35 * most), xticks=[])
    ax.invert_yaxis()
    ax.spines[["bottom"]].set_visible(False)
    ax.tick_params(length=0)
