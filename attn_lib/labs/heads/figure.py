"""HeadsLab's figure: every head's weights, and how one matrix joins what they read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attn_lib.figures import ACCENT, INK, frame, frame_row, heatmap, name_axes, part, style
from attn_lib.heads import MultiHeadResult, merge_heads


def heads_figure(
    result: MultiHeadResult,
    W_O: np.ndarray,
    *,
    tokens: Sequence[str],
    head: int | None = None,
    query: int | None = None,
    outputs: Sequence[str] | None = None,
) -> Figure:
    """Draw the weights of every head and their mean; below, how ``W_O`` joins what they read.

    Parameters
    ----------
    result : MultiHeadResult
        Of one sequence, without leading axes.
    W_O : ndarray, shape (h · d_v, d)
    tokens : sequence of str
        The n tokens.
    head, query : int, optional
        A head and a row to frame.
    outputs : sequence of str, optional
        Names of the d columns of the output.

    Returns
    -------
    Figure
    """
    h, n = result.weights.shape[:2]
    per_line = min(h + 1, 5 if h != 6 else 4)
    lines = -(-(h + 1) // per_line)
    tall = 6.4 * n / max(per_line * n + 2, W_O.shape[1])  # inches of a heatmap's rows
    with style():
        heights = [lines * (min(tall, 1.7) + 0.55), 2.9]
        fig = Figure(figsize=(7.2, sum(heights)), layout="constrained")
        ((above,), (below,)) = fig.subfigures(2, 1, squeeze=False, height_ratios=heights)
        axes = above.subplots(lines, per_line, squeeze=False).ravel()
        for r, ax in enumerate(axes):
            ax.axis("off" if r > h else "on")
            if r <= h:
                _one_head(ax, result.weights, r, tokens=tokens, head=head, query=query)
        name_axes(axes[0])
        _joined_heads(below, result, W_O, tokens=tokens, head=head, query=query, outputs=outputs)
    return fig


def _one_head(ax: Axes, weights: np.ndarray, r: int, *, tokens, head, query) -> None:
    """Draw the weights of head r; after the last head, the mean over all."""
    h, n = weights.shape[:2]
    title = f"Head {r + 1}" if r < h else "Mean"
    M = weights[r] if r < h else weights.mean(axis=0)
    heatmap(ax, M, rows=tokens, cols=tokens, numbers=h < 12 and n <= 6)
    ax.set_title(title, color=ACCENT if r == head else INK)
    if query is not None:
        frame_row(ax, query, n)


def _joined_heads(fig, result: MultiHeadResult, W_O, *, tokens, head, query, outputs) -> None:
    """Draw the heads side by side, times ``W_O``, and the output; one head's blocks framed."""
    joined = merge_heads(result.mixed)
    (n, width), (_, d), d_v = joined.shape, W_O.shape, result.mixed.shape[-1]
    places = [str(c + 1) for c in range(width)]
    axes = fig.subplots(1, 3, width_ratios=[width, d, d])
    sizes = f"${n} \\times {width}$", f"${width} \\times {d}$", f"${n} \\times {d}$"
    drawn = (
        (joined, f"$[O_1 \\,\\ldots\\, O_{{{width // d_v}}}]$", tokens, places),
        (W_O, "$\\times\\ W_O$", places, outputs),
        (result.output, "$=\\ O$", tokens, outputs),
    )
    for ax, (M, title, rows, cols), size in zip(axes, drawn, sizes, strict=True):
        heatmap(ax, M, rows=rows, cols=cols, kind="scores", numbers=False, title=f"{title}, {size}")
        ax.set_anchor("N")
        ax.tick_params(labelsize=7)
    cuts = range(d_v, width, d_v)
    part(axes[0], cols=cuts)
    part(axes[1], rows=cuts)
    if head is not None:
        block = slice(head * d_v, (head + 1) * d_v)
        frame(axes[0], slice(0, n), block)
        frame(axes[1], block, slice(0, d))
    if query is not None:
        frame_row(axes[2], query, d)
