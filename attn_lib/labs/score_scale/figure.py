"""ScoreScaleLab's figure: histograms of scores, and what every key width does."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attn_lib.figures import ACCENT, COOL, INK, curves, style

SIDE = 40.0  # of a histogram's axis, in predicted deviations of a scaled score


def score_bins(
    mean: float, variance: float, count: int = 40, *, side: float = np.inf
) -> np.ndarray:
    """Give the edges of a histogram's bins around a predicted mean.

    They reach to each side four times the power of two above the predicted standard deviation,
    so that they change seldom while a spread grows, and no further than the axis.

    Parameters
    ----------
    mean, variance : float
        As predicted.
    count : int, default 40
    side : float, optional
        How far the axis reaches to each side of the mean.

    Returns
    -------
    ndarray, shape (count + 1,)
    """
    reach = 4 * 2.0 ** np.ceil(np.log2(variance) / 2 - 1e-9)  # 1 may have come out as 1 + 2⁻⁵²
    reach = min(side, reach)
    return np.linspace(mean - reach, mean + reach, count + 1)


def score_histogram(
    ax: Axes,
    scores: np.ndarray,
    *,
    mean: float,
    variance: float,
    side: float,
    color: str = ACCENT,
    title: str | None = None,
) -> None:
    """Draw a histogram of scores and the normal curve of the predicted mean and variance.

    What lies beyond the axis is counted beside its end.

    Parameters
    ----------
    ax : Axes
    scores : ndarray
        Any shape.
    mean, variance : float
        As predicted.
    side : float
        How far the axis reaches to each side of the mean.
    color : str, optional
    title : str, optional
    """
    edges = score_bins(mean, variance, side=side)
    x = np.linspace(edges[0], edges[-1], 201)
    curve = np.exp(-((x - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    count, _ = np.histogram(scores, edges)
    density = count / (np.size(scores) * np.diff(edges))  # what lies beyond counts too
    ax.bar(edges[:-1], density, np.diff(edges), align="edge", color=color, alpha=0.4, lw=0)
    ax.plot(x, curve, color=INK, linewidth=1.1)
    ax.set_xlim(mean - side, mean + side)
    beyond = round(100 * np.mean(np.abs(scores - mean) > side))
    if beyond:
        ax.text(0.98, 0.9, f"{beyond} % beyond", ha="right", transform=ax.transAxes, fontsize=8)
    ax.set_yticks([])
    ax.spines.left.set_visible(False)
    if title:
        ax.set_title(title)


def score_scale_figure(
    scores: np.ndarray, d_k: int, widths: np.ndarray, raw: Any, scaled: Any
) -> Figure:
    """Draw one width's scores, raw and divided by √d_k, and what all widths do.

    Parameters
    ----------
    scores : ndarray
        Raw scores at width `d_k`.
    d_k : int
        One of the `widths`.
    widths : ndarray, shape (k,)
    raw, scaled : Measured
        What was measured at each width, arrays of shape (k,).

    Returns
    -------
    Figure
    """
    now = int(np.flatnonzero(np.equal(widths, d_k))[0])
    side = SIDE * float(np.sqrt(scaled.predicted_variance[now]))  # the same at every width
    with style():
        fig = Figure(figsize=(7.2, 5.6))
        axes = fig.subplots(3, 2)
        for ax, each, factor, color, name in (
            (axes[0, 0], raw, 1, ACCENT, r"$q\cdot k$"),
            (axes[0, 1], scaled, d_k**-0.5, COOL, r"$q\cdot k/\sqrt{d_k}$"),
        ):
            mean, variance = each.predicted_mean[now], each.predicted_variance[now]
            title = f"{name}: variance {each.variance[now]:.3g}, predicted {variance:.3g}"
            scaled_scores = np.asarray(scores) * factor
            score_histogram(
                ax,
                scaled_scores,
                mean=mean,
                variance=variance,
                side=side,
                color=color,
                title=title,
            )
        for ax, (name, title) in zip(axes[1:].flat, _WIDTH_PANELS, strict=True):
            _over_width(ax, widths, raw, scaled, name, at=d_k, title=title)
        for ax in axes[2]:
            ax.set_xlabel("key width $d_k$")
    return fig


_WIDTH_PANELS = (
    ("variance", "Variance"),
    ("largest_weight", "Largest weight of a row"),
    ("entropy", "Entropy of a row, bits"),
    ("gradient", r"Length of $\nabla_q L$: median and mean (dashed)"),
)


def _over_width(ax: Axes, widths, raw, scaled, name: str, *, at: int, title: str) -> None:
    """Draw one quantity over the key width, of raw and of scaled scores."""
    both = ((raw, ACCENT, "raw"), (scaled, COOL, "scaled"))
    if name == "gradient":
        lines = [
            {"y": getattr(each, f"{which}_gradient"), "color": color, "linestyle": dash}
            | {"label": label if which == "mean" else None}
            for each, color, label in both
            for which, dash in (("median", "-"), ("mean", (0, (4, 2))))
        ]
    else:
        lines = [{"y": getattr(each, name), "color": c, "label": label} for each, c, label in both]
    limits = {"largest_weight": (0, 1), "entropy": (0, 3)}.get(name)
    scale = "log" if name == "variance" else "linear"
    curves(ax, widths, lines, at=at, scale=scale, limits=limits, title=title)
    ax.set_xticks([1, 8, 64, 512], ["1", "8", "64", "512"])
    if name == "gradient":
        ax.set_ylim(bottom=0)
