"""TrainingLab's figure: the weights at one step, and curves over all steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from attn_lib.figures import ACCENT, DASHES, INK, curves, frame_row, heatmap, name_axes, style


def training_figure(
    weights: np.ndarray,
    *,
    tokens: Sequence[str],
    names: Sequence[str],
    steps: np.ndarray,
    curves: dict[str, np.ndarray],
    at: int,
    head: int | None = None,
    query: int | None = None,
) -> Figure:
    """Draw the weights of every head at one training step; below, curves over all steps.

    Parameters
    ----------
    weights : ndarray, shape (heads, n, n)
        At the step `at`; −∞ is drawn as forbidden.
    tokens : sequence of str
        The n tokens.
    names : sequence of str
        One for each head.
    steps : ndarray, shape (moments,)
        The steps of the curves.
    curves : dict of ndarray, each of shape (moments,) or (moments, heads)
        What was measured, by name: of the whole model or of each head.
    at : int
        The step to mark.
    head, query : int, optional
        A head and a row to point out.

    Returns
    -------
    Figure
    """
    h, n = weights.shape[:2]
    with style():
        if h == 1:
            fig = Figure(figsize=(7.2, 4.2), layout="constrained")
            ((maps, beside),) = fig.subfigures(1, 2, squeeze=False, width_ratios=[1.55, 1])
            axes = maps.subplots(1, 1, squeeze=False)
            charts = beside.subplots(len(curves), 1, squeeze=False)
        else:
            lines, rows = -(-h // 2), -(-len(curves) // 2)
            heights = [3.5 * lines, 1.6 * rows]
            fig = Figure(figsize=(7.2, sum(heights)), layout="constrained")
            ((maps,), (below,)) = fig.subfigures(2, 1, squeeze=False, height_ratios=heights)
            axes, charts = maps.subplots(lines, 2, squeeze=False), below.subplots(rows, 2)
        for r, ax in enumerate(axes.ravel()):
            ax.axis("off" if r >= h else "on")
            if r < h:
                heatmap(ax, weights[r], rows=tokens, cols=tokens)
                ax.set_title(names[r].capitalize(), color=ACCENT if r == head and h > 1 else INK)
                if query is not None:
                    frame_row(ax, query, n)
        name_axes(axes[0, 0])
        _over_steps(np.atleast_2d(charts), names, steps, curves, at=at)
    return fig


def _over_steps(axes, names: Sequence[str], steps, measured: dict, *, at: int) -> None:
    """Draw each quantity over the training steps: one line, or one named line for each head."""
    for ax in axes.ravel()[len(measured) :]:
        ax.axis("off")
    for ax, (name, values) in zip(axes.ravel(), measured.items(), strict=False):
        many = values.ndim == 2 and values.shape[1] > 1
        lines = [
            {"y": y, "label": names[r] if many else None, "linestyle": DASHES[r % len(DASHES)]}
            for r, y in enumerate(values.reshape(len(steps), -1).T)
        ]
        top = None if name == "loss" else 1.02
        title = "Loss, nats" if name == "loss" else name.capitalize()
        curves(ax, steps, lines, at=at, over="linear", title=title, apart=0.15)
        ax.set_ylim(0, top)
    for ax in axes[-1]:
        ax.set_xlabel("training step")
