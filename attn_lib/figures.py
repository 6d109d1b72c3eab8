"""The book's matplotlib figures: the same colours and the same orientation as its labs.

Rows are queries, columns are keys. Figures are made without pyplot, so that drawing one neither
shows it nor keeps it alive.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from itertools import zip_longest
from pathlib import Path

import matplotlib as mpl
import matplotlib.patheffects
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from attn_lib.dot_product import AttentionResult
from attn_lib.heads import MultiHeadResult, merge_heads
from attn_lib.lookup import convex_hull

_STOPS = json.loads((Path(__file__).parent / "labs" / "colors.json").read_text())["light"]
weights_cmap = LinearSegmentedColormap.from_list("attention_weights", _STOPS["weights"])
scores_cmap = LinearSegmentedColormap.from_list("attention_scores", _STOPS["scores"])
ACCENT, INK, MUTED, LINE = "#a34a17", "#1b1f24", "#57606a", "#d9dee4"
COOL = "#2d6a8e"
DASHES = ("-", (0, (6, 3)), (0, (2, 3)), (0, (8, 3, 2, 3)))  # no two lines differ in colour alone

STYLE = {
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.prop_cycle": mpl.cycler(color=[ACCENT, COOL, "#6742b5", "#4a7a3a"]),
    "figure.facecolor": "white",
    "figure.dpi": 96,
    "figure.constrained_layout.use": True,
    "lines.linewidth": 1.6,
    "mathtext.fontset": "stix",
    "savefig.facecolor": "white",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
}


def style():
    """Draw in the book's style inside a ``with`` block."""
    return mpl.rc_context(STYLE)


def score_limit(S: np.ndarray) -> float:
    """Give the end of a score map: the power of two that holds every finite score."""
    finite = np.abs(S[np.isfinite(S)])
    largest = finite.max(initial=0)
    return 1.0 if largest == 0 else float(2 ** np.ceil(np.log2(largest)))


def heatmap(
    ax: Axes,
    M: np.ndarray,
    *,
    rows: Sequence[str] | None = None,
    cols: Sequence[str] | None = None,
    kind: str = "weights",
    numbers: bool | None = None,
    digits: int | None = None,
    title: str | None = None,
    limit: float | None = None,
):
    """Draw a matrix as the labs do: one cell per entry, rows downwards.

    Parameters
    ----------
    ax : Axes
    M : ndarray, shape (n, m)
        −∞ is drawn as a hatched cell: forbidden, which is not weight zero.
    rows, cols : sequence of str, optional
        Labels of the n rows (queries) and m columns (keys).
    kind : {"weights", "scores"}
        Weights run from 0 to `limit` on the sequential map; scores from −limit to limit on the
        diverging one.
    numbers : bool, optional
        Write each entry in its cell; by default up to 12 rows and columns.
    digits : int, optional
        With how many decimals; by default 2 for weights, 1 for scores.
    title : str, optional
    limit : float, optional
        The end of the map: by default 1 for weights, for scores the power of two that holds
        them all.

    Returns
    -------
    matplotlib.image.AxesImage
        For a colour bar.

    Raises
    ------
    ValueError
        If `M` is no matrix, `kind` is unknown, or a list of labels has another length.
    """
    M = np.asarray(M, float)
    if M.ndim != 2:
        raise ValueError(f"a heatmap shows a matrix (n, m), got shape {M.shape}")
    if kind not in ("weights", "scores"):
        raise ValueError(f'kind must be "weights" or "scores", got {kind!r}')
    for name, labels, size in (("rows", rows, M.shape[0]), ("cols", cols, M.shape[1])):
        if labels is not None and len(labels) != size:
            raise ValueError(f"{name} must name all {size}, got {len(labels)} labels")
    low, high = (0, 1) if kind == "weights" else (-1, 1)
    scale = limit or (1 if kind == "weights" else score_limit(M))
    cmap = weights_cmap if kind == "weights" else scores_cmap
    image = ax.imshow(
        np.where(np.isfinite(M), M, np.nan), cmap=cmap, vmin=low * scale, vmax=high * scale
    )
    _cells(ax, M, rows, cols)
    if numbers if numbers is not None else max(M.shape) <= 12:
        _numbers(ax, M, image, digits or (2 if kind == "weights" else 1))
    if title:
        ax.set_title(title)
    return image


def _cells(ax: Axes, M: np.ndarray, rows, cols) -> None:
    """Rule the cells apart, label them, and hatch the forbidden ones."""
    n, m = M.shape
    words = {"parse_math": False}  # a token may hold a dollar sign
    ax.set_xticks(range(m), cols or [str(j + 1) for j in range(m)], rotation=90, **words)
    ax.set_yticks(range(n), rows or [str(i + 1) for i in range(n)], **words)
    ax.xaxis.tick_top()
    ax.set_xticks(np.arange(m + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(n + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)
    for i, j in np.argwhere(np.isneginf(M)):
        cell = mpl.patches.Rectangle(
            (j - 0.5, i - 0.5), 1, 1, facecolor="none", edgecolor=LINE, hatch="////", linewidth=0
        )
        ax.add_patch(cell)


def _numbers(ax: Axes, M: np.ndarray, image, digits: int) -> None:
    """Write each finite entry in its cell, black or white, whichever reads better."""
    for (i, j), value in np.ndenumerate(M):
        if np.isfinite(value):
            color = image.cmap(image.norm(value))
            ink = "black" if luminance(color[:3]) > 0.179 else "white"
            ax.text(j, i, in_cell(value, digits), ha="center", va="center", color=ink, fontsize=7)


def luminance(rgb: Sequence[float]) -> float:
    """Relative luminance of an sRGB colour with channels from 0 to 1 (WCAG 2)."""
    c = np.asarray(rgb, float)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def in_cell(value: float, digits: int) -> str:
    """Write a number as short as a cell needs: .42, −.3, 0, 12."""
    size = abs(value)
    decimals = 0 if size >= 9.95 else min(1, digits) if size >= 0.995 else digits
    text = str(Decimal(value).quantize(Decimal(10) ** -decimals, ROUND_HALF_UP))  # as the labs
    return "0" if float(text) == 0 else text.replace("0.", ".").replace("-", "−")


def attention_figure(
    result: AttentionResult,
    *,
    tokens: Sequence[str],
    keys: Sequence[str] | None = None,
    query: int | None = None,
    outputs: Sequence[str] | None = None,
) -> Figure:
    """Draw a layer from left to right: scores, weights, outputs, the chosen query framed.

    Parameters
    ----------
    result : AttentionResult
        Without leading axes: scores and weights (n, m), output (n, d_v).
    tokens : sequence of str
        The n tokens that ask: they name the rows.
    keys : sequence of str, optional
        The m tokens that are asked, which name the columns; by default the same.
    query : int, optional
        The row to frame.
    outputs : sequence of str, optional
        Names of the d_v coordinates of the output.

    Returns
    -------
    Figure
    """
    keys = tokens if keys is None else keys
    n, m, d_v = len(tokens), len(keys), result.output.shape[1]
    with style():
        fig = Figure(figsize=(7.2, 1.5 + 5.2 * n / (2 * m + d_v + 2)))
        panels = fig.subplots(1, 3, sharey=True, width_ratios=[m, m, max(d_v, 1.5)])
        drawn = (
            (result.scores, "scores", "Scores $S$", keys, 1),
            (result.weights, "weights", "Weights $A$", keys, 2),
            (result.output, "scores", "Outputs $O$", outputs, 2),
        )
        for ax, (M, kind, title, cols, digits) in zip(panels, drawn, strict=True):
            image = heatmap(ax, M, rows=tokens, cols=cols, kind=kind, digits=digits, title=title)
            bar = fig.colorbar(image, ax=ax, location="bottom", shrink=0.5, aspect=14, pad=0.03)
            bar.set_ticks([image.norm.vmin, image.norm.vmax])
            bar.ax.tick_params(length=0, labelsize=7)
            bar.outline.set_visible(False)
            if query is not None:
                _frame_row(ax, query, M.shape[1])
        panels[0].set_ylabel("query")
        for ax in panels[:2]:
            ax.set_xlabel("key")
            ax.xaxis.set_label_position("top")
        if query is not None:
            label = panels[0].get_yticklabels()[query]
            label.set(color=ACCENT, fontweight="bold")
    return fig


def _frame_row(ax: Axes, row: int, columns: int) -> None:
    """Frame one query's row."""
    _frame(ax, slice(row, row + 1), slice(0, columns))


def _frame(ax: Axes, rows: slice, cols: slice, *, width: float = 1.6) -> None:
    """Frame a block of cells."""
    size = cols.stop - cols.start, rows.stop - rows.start
    ax.add_patch(
        mpl.patches.Rectangle(
            (cols.start - 0.5, rows.start - 0.5),
            *size,
            fill=False,
            edgecolor=ACCENT,
            linewidth=width,
            zorder=4,
        )
    )


def _cut(ax: Axes, *, rows: Sequence[int] = (), cols: Sequence[int] = ()) -> None:
    """Part blocks of cells by a wider gap, above the given rows and left of the given columns."""
    for row in rows:
        ax.axhline(row - 0.5, color="white", linewidth=3, zorder=3)
    for col in cols:
        ax.axvline(col - 0.5, color="white", linewidth=3, zorder=3)


# Scores and their scale -----------------------------------------------------------


def score_bins(mean: float, variance: float, count: int = 40) -> np.ndarray:
    """Give the edges of a histogram's bins around a predicted mean.

    They reach to each side four times the power of two above the predicted standard deviation,
    so that the axis of a growing spread changes seldom.

    Parameters
    ----------
    mean, variance : float
        As predicted.
    count : int, default 40

    Returns
    -------
    ndarray, shape (count + 1,)
    """
    reach = 4 * 2.0 ** np.ceil(np.log2(variance) / 2 - 1e-9)  # 1 may have come out as 1 + 2⁻⁵²
    return np.linspace(mean - reach, mean + reach, count + 1)


def score_histogram(
    ax: Axes,
    scores: np.ndarray,
    *,
    mean: float,
    variance: float,
    color: str = ACCENT,
    title: str | None = None,
) -> None:
    """Draw a histogram of scores and the normal curve of the predicted mean and variance.

    Parameters
    ----------
    ax : Axes
    scores : ndarray
        Any shape.
    mean, variance : float
        As predicted.
    color : str, optional
    title : str, optional
    """
    edges = score_bins(mean, variance)
    x = np.linspace(edges[0], edges[-1], 201)
    curve = np.exp(-((x - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    count, _ = np.histogram(scores, edges)
    density = count / (np.size(scores) * np.diff(edges))  # what lies beyond counts too
    ax.bar(edges[:-1], density, np.diff(edges), align="edge", color=color, alpha=0.4, lw=0)
    ax.plot(x, curve, color=INK, linewidth=1.1)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_yticks([])
    ax.spines.left.set_visible(False)
    if title:
        ax.set_title(title)


def curves(
    ax: Axes,
    x: np.ndarray,
    lines: Sequence[dict],
    *,
    at: float | None = None,
    over: str = "log",
    scale: str = "linear",
    limits: tuple[float, float] | None = None,
    title: str | None = None,
    apart: float = 0.13,
) -> None:
    """Draw lines over a logarithmic axis or an even one, each named at its end.

    Parameters
    ----------
    ax : Axes
    x : ndarray, shape (k,)
    lines : sequence of dict
        Each with ``y`` of shape (k,), and as wished ``label``, ``dot`` (False for no dot at
        the marked x) and matplotlib's options.
    at : float, optional
        An x to mark, with a dot on each line.
    over : {"log", "linear"}, default "log"
        The axis of x, in powers of two or even.
    scale : {"linear", "log"}, default "linear"
        Of the other axis.
    limits : tuple of float, optional
        Of the other axis.
    title : str, optional
    apart : float, default 0.13
        How far names keep from each other, as a part of the height.
    """
    if over == "log":
        ax.set_xscale("log", base=2)
    ax.margins(x=0)
    named = []
    for line in lines:
        y, label, options = line["y"], line.get("label"), _without(line, "y", "label", "dot")
        (drawn,) = ax.plot(x, y, **options)
        if label:
            named.append((y[-1], label, drawn.get_color()))
        if at is not None and at in x and line.get("dot", True):
            ax.plot(at, y[np.flatnonzero(x == at)], "o", color=drawn.get_color(), ms=4)
    if at is not None:
        ax.axvline(at, color=MUTED, linewidth=0.8, linestyle=(0, (3, 3)), zorder=0)
    if scale == "log":
        ax.set_yscale("log")
    if limits:
        ax.set_ylim(*limits)
    _name_lines(ax, named, apart)
    ax.grid(axis="y", color=LINE, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(which="both", length=0)
    ax.minorticks_off()
    if title:
        ax.set_title(title)


def _name_lines(ax: Axes, named: Sequence[tuple[float, str, str]], apart: float) -> None:
    """Write names at the right ends of lines, moved apart where they would overlap."""
    if not named:
        return
    limits = ax.transScale.transform([(1, limit) for limit in ax.get_ylim()])[:, 1]
    ends = np.array([ax.transScale.transform((1, y))[1] for y, _, _ in named])
    order = np.argsort(ends, kind="stable")
    heights = _spread(np.interp(ends[order], limits, (0, 1)), apart)
    for height, k in zip(heights, order, strict=True):
        _, label, color = named[k]
        at = {"x": 1.02, "y": height, "transform": ax.transAxes, "va": "center"}
        ax.text(s=label, color=color, fontsize=8, **at)


def _spread(heights: np.ndarray, apart: float) -> np.ndarray:
    """Move rising heights apart: upwards from the lowest, then down again from the top, 1."""
    steps = apart * np.arange(len(heights))
    risen = np.maximum.accumulate(heights - steps) + steps
    return np.minimum(risen, 1 - steps[::-1])


def _without(options: dict, *keys: str) -> dict:
    """Leave some keys out."""
    return {key: value for key, value in options.items() if key not in keys}


def score_scale_figure(scores: np.ndarray, d_k: int, widths: np.ndarray, raw, scaled) -> Figure:
    """Draw one width's scores, raw and divided by √d_k, and what all widths do.

    Parameters
    ----------
    scores : ndarray
        Raw scores at width `d_k`.
    d_k : int
        One of the `widths`.
    widths : ndarray, shape (k,)
    raw, scaled : attn_lib.labs.score_scale_lab.Measured
        What was measured at each width, arrays of shape (k,).

    Returns
    -------
    Figure
    """
    now = int(np.flatnonzero(np.equal(widths, d_k))[0])
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
                ax, scaled_scores, mean=mean, variance=variance, color=color, title=title
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


# Lookup in a plane ------------------------------------------------------------------


def pigment(value: Sequence[float], lightness: float = 0.62) -> tuple[float, float, float]:
    """Give the colour a value stands for: green to red and blue to yellow, as sRGB.

    Parameters
    ----------
    value : (red, yellow)
        From −1 to 1 each. 0, 0 is grey.
    lightness : float
        Of OKLab, where equal steps look equal and a mixture lies on the line between two colours.

    Returns
    -------
    tuple of float
        Channels from 0 to 1, clipped where the screen has no such colour.
    """
    a, b = 0.14 * np.asarray(value, float)
    roots = (
        lightness + 0.3963377774 * a + 0.2158037573 * b,
        lightness - 0.1055613458 * a - 0.0638541728 * b,
        lightness - 0.0894841775 * a - 1.2914855480 * b,
    )
    to_linear = (
        (4.0767416621, -3.3077115913, 0.2309699292),
        (-1.2684380046, 2.6097574011, -0.3413193965),
        (-0.0041960863, -0.7034186147, 1.7076147010),
    )
    linear = np.clip(to_linear @ np.power(roots, 3), 0, 1)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return tuple(map(float, srgb))


def lookup_figure(
    q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    weights: np.ndarray,
    *,
    names: Sequence[str],
    outputs: Sequence[str] = ("red", "yellow"),
    guide: str | None = None,
) -> Figure:
    """Draw a lookup in the plane: the query among the keys, the output among the values.

    Parameters
    ----------
    q : ndarray, shape (2,)
        The query.
    K, V : ndarray, shape (m, 2)
        Keys, from −2 to 2, and values, from −1 to 1; a value is shown as its colour.
    weights : ndarray, shape (m,)
        What each value weighs: the area of its halo. All 0 if nothing was found.
    names : sequence of str
        The m entries.
    outputs : (str, str)
        Names of the two coordinates of a value.
    guide : {"gaussian", "dot"}, optional
        Show how keys are compared: a circle to the nearest one, or projections onto the query.

    Returns
    -------
    Figure
    """
    with style():
        fig = Figure(figsize=(7.2, 3.9))
        left, right = fig.subplots(1, 2)
        _plane(left, 2.0, f"Query and keys, $q$ = ({q[0]:.2f}, {q[1]:.2f})".replace("-", "−"))
        if guide:
            {"gaussian": _circle_guide, "dot": _projection_guide}[guide](left, q, K)
        _entries(left, K, V, weights, names, away=(0, 0), reach=2.0, avoid=q, say=True)
        left.plot(*q, "o", color=ACCENT, ms=7, mec="white", zorder=5)
        _letter(left, "$q$", q, K[np.linalg.norm(K - q, axis=1).argmin()])
        _plane(right, 1.08, "Values and output")
        corners = V[convex_hull(V)]
        right.fill(*corners.T, fc=LINE + "55", ec=MUTED, lw=0.8, zorder=1)
        _entries(right, V, V, weights, names, away=V.mean(0), reach=1.08, avoid=V.mean(0))
        _ends(right, 1.08, outputs)
        if weights.any():
            o = weights @ V
            right.plot(*o, "o", color=pigment(o), ms=9, mec=INK, mew=1.2, zorder=5)
            _letter(right, "$o$", o, V[weights.argmax()])
    return fig


def _plane(ax: Axes, reach: float, title: str) -> None:
    """Prepare a square field with its two axes through the middle."""
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set(visible=True, color=LINE)
    ax.axhline(0, color=LINE, lw=0.8, zorder=0)
    ax.axvline(0, color=LINE, lw=0.8, zorder=0)
    ax.set_title(title)


def _ends(ax: Axes, reach: float, outputs: Sequence[str]) -> None:
    """Name the ends of the axes of values; the book's own colours have names for both ends."""
    opposite = {"red": "green", "yellow": "blue"}
    x, y = outputs
    look = {"color": MUTED, "fontsize": 7.5}
    ax.text(0.97 * reach, -0.03 * reach, x, ha="right", va="top", **look)
    ax.text(-0.97 * reach, -0.03 * reach, opposite.get(x, f"−{x}"), va="top", **look)
    ax.text(0.03 * reach, 0.97 * reach, y, va="top", **look)
    ax.text(0.03 * reach, -0.97 * reach, opposite.get(y, f"−{y}"), va="bottom", **look)


def _entries(ax: Axes, at, V, weights, names, *, away, avoid, reach: float, say=False) -> None:
    """Draw entries as points in their colours, with a halo for the weight and a name outside."""
    colours = [pigment(v) for v in V]
    ax.scatter(*at.T, s=(5.5 + 16 * np.sqrt(weights)) ** 2 * 1.9, c=colours, alpha=0.32, lw=0)
    ax.scatter(*at.T, s=48, c=colours, lw=0, zorder=3)
    for point, weight, name in zip(at, weights, names, strict=True):
        text = f"{name} {weight:.2f}" if say and weight >= 0.005 else name
        step, align = _beside(point, away, avoid, reach, len(text))
        step = step * (9 + 10 * np.sqrt(weight))
        ax.annotate(text, point, step, **_TAG, ha=align, fontsize=8.5, zorder=4)


_PAPER = [mpl.patheffects.withStroke(linewidth=2.5, foreground="white")]
_TAG = {"textcoords": "offset points", "va": "center", "path_effects": _PAPER}


def _beside(point, away, avoid, reach: float, letters: int) -> tuple[np.ndarray, str]:
    """Choose where the name of a point stands: away from a centre, inside the field."""
    step = np.subtract(point, away)
    step = step / (np.hypot(*step) or 1)
    room = (reach - abs(point[0])) / reach > 0.06 + 0.034 * letters
    if room and abs(step[0]) > 0.45 * abs(step[1]):
        return step, "left" if step[0] > 0 else "right"
    end = "center" if (reach - abs(point[0])) / reach > 0.02 * letters else "right"
    return np.array([0, 1.15 if point[1] >= avoid[1] else -1.15]), end


def _letter(ax: Axes, letter: str, point, other) -> None:
    """Write a letter beside a point, away from its neighbour."""
    step = np.subtract(point, other)
    length = np.hypot(*step)
    step = step / length * 11 if length > 0.01 else (0, 11)
    ax.annotate(letter, point, step, **_TAG, ha="center", zorder=6)


def _circle_guide(ax: Axes, q: np.ndarray, K: np.ndarray) -> None:
    """Draw the circle around the query on which its nearest key stands."""
    radius = np.linalg.norm(K - q, axis=1).min()
    ax.add_patch(mpl.patches.Circle(q, radius, fill=False, ec=ACCENT, lw=1, ls=(0, (4, 3))))


def _projection_guide(ax: Axes, q: np.ndarray, K: np.ndarray) -> None:
    """Draw the line through the query, each key's foot on it, and the longest projection."""
    if not q.any():
        return
    feet = np.outer(K @ q, q) / (q @ q)
    ax.axline((0, 0), q, color=ACCENT, lw=1, ls=(0, (4, 3)), zorder=1)
    for key, foot in zip(K, feet, strict=True):
        ax.plot(*np.transpose([key, foot]), color=MUTED, lw=0.9, ls=(0, (1, 2.5)), zorder=1)
    longest = feet[(K @ q).argmax()]
    ax.plot([0, longest[0]], [0, longest[1]], color=ACCENT, lw=2.4, zorder=2)


# Positions ----------------------------------------------------------------------------


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
        Scores against the offset, by the name of the curve.
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


# Many heads, and tiles ------------------------------------------------------------


def _name_axes(ax: Axes) -> None:
    """Say in the corner of a heatmap what columns and rows are, as the labs do."""
    ax.annotate(
        "key →\nquery ↓",
        (0, 1),
        (-4, 3),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=MUTED,
        fontsize=6.5,
    )


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
        fig = Figure(figsize=(7.2, lines * (min(tall, 1.7) + 0.55) + 2.9), layout="constrained")
        above, below = fig.subfigures(2, 1, height_ratios=[lines * (min(tall, 1.7) + 0.55), 2.9])
        axes = above.subplots(lines, per_line, squeeze=False).ravel()
        for r, ax in enumerate(axes):
            ax.axis("off" if r > h else "on")
            if r <= h:
                _one_head(ax, result.weights, r, tokens=tokens, head=head, query=query)
        _name_axes(axes[0])
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
        _frame_row(ax, query, n)


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
    _cut(axes[0], cols=cuts)
    _cut(axes[1], rows=cuts)
    if head is not None:
        block = slice(head * d_v, (head + 1) * d_v)
        _frame(axes[0], slice(0, n), block)
        _frame(axes[1], block, slice(0, d))
    if query is not None:
        _frame_row(axes[2], query, d)


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
        above, below = fig.subfigures(2, 1, height_ratios=[3.3 * lines, 2.7])
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
    _frame_row(ax, n - 1, n)
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
    beside = {"loc": "lower right", "bbox_to_anchor": (1.02, 0.97), "ncols": 2}
    ax.legend(frameon=False, fontsize=8, handletextpad=0.2, columnspacing=1.2, **beside)
    ax.set_title("What its cut costs, edge by edge")


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
        _cut(left, rows=range(tile[0], n, tile[0]), cols=range(tile[1], m, tile[1]))
        if step:
            _frame(left, *tiles[step - 1], width=2.4)
        _name_axes(left)
        left.tick_params(axis="x", labelrotation=0)
        left.get_yticklabels()[query].set(color=ACCENT, fontweight="bold")
        _ledger(right, ledger, query=query)
    return fig


def _ledger(ax: Axes, ledger: np.ndarray, *, query: int) -> None:
    """Write the running numbers of one query as a table."""
    d_v = ledger.shape[1] - 2
    rows = [
        "before",
        r"$\times\, e^{m - m^{\prime}}$",
        "+ this tile",
        "= after",
        r"$a/\ell$",
        "exact",
    ]
    heads = ["$m$", r"$\ell$", *(f"$a_{r + 1}$" for r in range(d_v))]
    ax.set(xlim=(-2.4, len(heads) - 0.4), ylim=(7.6, -0.8), title=f"What query {query + 1} keeps")
    ax.axis("off")
    for c, name in enumerate(heads):
        ax.text(c + 0.45, 0, name, ha="right", color=MUTED, fontsize=10)
    for r, name in enumerate(rows):
        y = r + 1 + (0.25 if r > 3 else 0)
        ax.text(-2.3, y, name, color=INK if r in (3, 4) else MUTED, fontsize=11 if r == 1 else 9)
        for c, value in enumerate(ledger[r]):
            if not np.isnan(value):
                text = "−∞" if np.isneginf(value) else f"{value:.2f}".replace("-", "−")
                weight = "bold" if r == 3 else "normal"
                ax.text(c + 0.45, y, text, ha="right", fontweight=weight)
    ax.axhline(3.38, color=LINE, linewidth=0.8)
    ax.axhline(4.6, color=LINE, linewidth=0.8)


# What attention costs ---------------------------------------------------------------


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
            maps, beside = fig.subfigures(1, 2, width_ratios=[1.55, 1])
            axes = maps.subplots(1, 1, squeeze=False)
            charts = beside.subplots(len(curves), 1, squeeze=False)
        else:
            lines, rows = -(-h // 2), -(-len(curves) // 2)
            heights = [3.5 * lines, 1.6 * rows]
            fig = Figure(figsize=(7.2, sum(heights)), layout="constrained")
            maps, below = fig.subfigures(2, 1, height_ratios=heights)
            axes, charts = maps.subplots(lines, 2, squeeze=False), below.subplots(rows, 2)
        for r, ax in enumerate(axes.ravel()):
            ax.axis("off" if r >= h else "on")
            if r < h:
                heatmap(ax, weights[r], rows=tokens, cols=tokens)
                ax.set_title(names[r].capitalize(), color=ACCENT if r == head and h > 1 else INK)
                if query is not None:
                    _frame_row(ax, query, n)
        _name_axes(axes[0, 0])
        _over_steps(np.atleast_2d(charts), names, steps, curves, at=at)
    return fig


def _over_steps(axes, names: Sequence[str], steps, measured: dict, *, at: int) -> None:
    """Draw each quantity over the training steps: one line, or one named line for each head."""
    for ax, (name, values) in zip_longest(axes.ravel(), measured.items(), fillvalue=(None, None)):
        if name is None:
            ax.axis("off")
            continue
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


def cost_figure(
    lengths: np.ndarray,
    spent: dict[str, np.ndarray],
    variant: str,
    others: dict[str, np.ndarray],
    inputs: dict[str, np.ndarray],
    *,
    at: float | None = None,
    crossings: dict[str, tuple[float, float]] | None = None,
) -> Figure:
    """Draw operations and memory of several ways to attend over the context length.

    Parameters
    ----------
    lengths : ndarray, shape (k,)
    spent : dict of ndarray, shape (2, k)
        By the variant's name: operations and bytes.
    variant : str
        The one to stress.
    others, inputs : dict of ndarray, shape (k,)
        What else takes operations, and what else takes bytes.
    at : float, optional
        A context length to mark.
    crossings : dict, optional
        Points (n, operations) to ring, by name.

    Returns
    -------
    Figure
    """
    with style():
        fig = Figure(figsize=(7.2, 3.4))
        panels = fig.subplots(1, 2)
        for k, (ax, beside, title) in enumerate(
            zip(panels, (others, inputs), ("Multiply-adds", "Bytes held"), strict=True)
        ):
            lines = _cost_lines({name: each[k] for name, each in spent.items()}, variant)
            lines += [
                {"y": y, "label": name, "color": COOL, "linewidth": 1, "linestyle": (0, (4, 2))}
                | {"dot": False}
                for name, y in beside.items()
            ]
            curves(ax, lengths, lines, at=at, scale="log", title=title, apart=0.075)
            ax.set_xticks([2**6, 2**10, 2**14, 2**17, 2**20], ["64", "1k", "16k", "128k", "1M"])
            ax.set_xlabel("context length $n$")
        for name, point in (crossings or {}).items():
            panels[0].plot(*point, "o", mfc="white", mec=INK, ms=5, zorder=3)
            panels[0].annotate(
                name, point, (-5, 4), textcoords="offset points", ha="right", fontsize=8, color=INK
            )
    return fig


def _cost_lines(costs: dict[str, np.ndarray], variant: str) -> list[dict]:
    """Give one line for each cost, equal ones together; the chosen one is stressed."""
    names: dict[bytes, list[str]] = {}
    for name, y in costs.items():
        names.setdefault(y.tobytes(), []).append(name)
    lines = []
    for together in names.values():
        chosen = variant in together
        color, width = (ACCENT, 2) if chosen else (MUTED, 1)
        label = {"y": costs[together[0]], "label": ", ".join(together)}
        lines.append(
            label | {"color": color, "linewidth": width, "zorder": 2 + chosen, "dot": chosen}
        )
    return lines
