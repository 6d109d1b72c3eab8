"""ContributionLab's figure: the edges of every head, and what their cuts cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attn_lib.figures import ACCENT, LINE, MUTED, frame_row, heatmap, score_limit, style


def contributions_figure(
    values: np.ndarray,
    edges: dict[tuple[int, int, int, int], Sequence[float]],
    *,
    measure: str,
    tokens: Sequence[str],
    cut: Sequence[Sequence[int]] = (),
    chances: Sequence[float],
) -> Figure:
    """Draw a number of every edge, head by head; below, what comes next, and what cuts cost.

    Parameters
    ----------
    values : ndarray, shape (layers, h, n, n)
        What the heatmaps show: nan where a query may not look.
    edges : dict
        For each edge (layer, head, query, key) that is left: its weight, the length of what it
        carries, and its effect.
    measure : {"weight", "norm", "effect"}
        Which of the three `values` are. Effects are drawn over lengths for "norm", else over
        weights.
    tokens : sequence of str
        The n tokens.
    cut : sequence of (layer, head, query, key), optional
        Edges to cross out.
    chances : sequence of float
        How likely each token of the first copy is to come next; the last is right.

    Returns
    -------
    Figure
    """
    layers, h = values.shape[:2]
    lines = layers if h > 1 else 1
    with style():
        fig = Figure(figsize=(7.2, 3.3 * lines + 2.7), layout="constrained")
        ratios = [3.3 * lines, 2.7]
        ((above,), (below,)) = fig.subfigures(2, 1, squeeze=False, height_ratios=ratios)
        axes = above.subplots(lines, layers * h // lines, squeeze=False).reshape(layers, h)
        for (layer, head), ax in np.ndenumerate(axes):
            _edges_of_head(ax, values, layer, head, measure=measure, tokens=tokens, cut=cut)
        left, right = below.subplots(1, 2, width_ratios=[1, 2.2])
        _chances(left, chances, tokens)
        _effects(right, edges, measure, tokens)
    return fig


def _edges_of_head(ax: Axes, values: np.ndarray, layer: int, head: int, *, measure, tokens, cut):
    """Draw one head's edges, those that are cut crossed out, the answering row framed."""
    n, h = len(tokens), values.shape[1]
    M = np.where(np.isnan(values[layer, head]), -np.inf, values[layer, head])
    kind = "scores" if measure == "effect" else "weights"
    limit = 1 if measure == "weight" else score_limit(values)
    look = {"rows": tokens, "cols": tokens, "kind": kind, "limit": limit}
    heatmap(ax, M, numbers=n <= 12 and h == 1, digits=2, **look)
    for _, _, i, j in (edge for edge in cut if tuple(edge[:2]) == (layer, head)):
        ax.text(j, i, "×", ha="center", va="center", color=ACCENT, fontsize=11, fontweight="bold")
    frame_row(ax, n - 1, n)
    said = {"weight": "$a_{ij}$", "norm": r"$\|a_{ij} v_j W_O\|$", "effect": "nats lost by its cut"}
    ax.set_title(
        f"Layer {layer + 1}" + (f", head {head + 1}" if h > 1 else "") + f": {said[measure]}"
    )


def _chances(ax: Axes, chances: Sequence[float], tokens: Sequence[str]) -> None:
    """Draw how likely each token is to come next."""
    names = [*tokens[: len(chances)]]
    colors = [MUTED] * (len(names) - 1) + [ACCENT]
    ax.barh(names, chances, color=colors, height=0.6)
    ax.set(xlim=(0, 1), xlabel="probability")
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.set_title(f"What comes next? Right: {names[-1]}")


def _effects(ax: Axes, edges: dict, measure: str, tokens: Sequence[str]) -> None:
    """Draw what each edge's cut costs over its weight or its length; name the dearest."""
    across = 1 if measure == "norm" else 0
    for layer, marker in enumerate("os"):
        points = [(M[across], M[2]) for edge, M in edges.items() if edge[0] == layer]
        x, y = np.array(points).reshape(-1, 2).T
        ax.plot(x, y, marker, ms=4, alpha=0.75, label=f"layer {layer + 1}", clip_on=False)
    dear = sorted(edges, key=lambda edge: -abs(edges[edge][2]))[:3]
    for edge in (edge for edge in dear if abs(edges[edge][2]) >= 0.01):
        at, name = (edges[edge][across], edges[edge][2]), f"{tokens[edge[2]]} ← {tokens[edge[3]]}"
        ax.annotate(
            name, at, (-6, 0), textcoords="offset points", ha="right", va="center", fontsize=8
        )
    costs = [0.0, 1.0, *(M[2] for M in edges.values())]
    room = 0.06 * (max(costs) - min(costs))
    ax.set_ylim(min(costs) - room / 2, max(costs) + room)
    ax.set_xlim(0, None if across else 1)
    ax.set(xlabel=r"length $\|a v W_O\|$" if across else "weight $a$", ylabel="nats lost")
    ax.grid(axis="y", color=LINE, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    beside: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.02, 0.97), "ncols": 2}
    ax.legend(frameon=False, fontsize=8, handletextpad=0.2, columnspacing=1.2, **beside)
    ax.set_title("What its cut costs, edge by edge")
