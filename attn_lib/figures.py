"""The book's matplotlib figures: the same colours and the same orientation as its labs.

Rows are queries, columns are keys. Figures are made without pyplot, so that drawing one neither
shows it nor keeps it alive.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np

from attn_lib.arrays import Array
from attn_lib.dot_product import AttentionResult
from attn_lib.extras import missing
from attn_lib.words import minus

try:
    import matplotlib as mpl
    from cycler import cycler
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
except ModuleNotFoundError as error:
    raise missing(error, "book") from None

_COLORS = json.loads((Path(__file__).parent / "colors.json").read_text())


def _cmaps(theme: str) -> dict[str, LinearSegmentedColormap]:
    named = {f"attention_{kind}": stops for kind, stops in _COLORS["maps"][theme].items()}
    return {name: LinearSegmentedColormap.from_list(name, stops) for name, stops in named.items()}


weights_cmap, scores_cmap, outputs_cmap = _cmaps("light").values()
KINDS = {"weights": weights_cmap, "scores": scores_cmap, "outputs": outputs_cmap}
dark_cmaps = _cmaps("dark")
# One colour a role, everywhere: query, key, value, weight, output, scores above and below 0.
ROLES: dict[str, str] = {role: both["light"] for role, both in _COLORS["roles"].items()}
QUERY = ROLES["query"]
ACCENT, INK, MUTED, LINE = ROLES["accent"], "#1b1f24", "#57606a", "#d9dee4"
COOL = "#2d6a8e"
DARK = {  # the same role on dark paper
    **{both["light"]: both["dark"] for both in _COLORS["roles"].values()},
    COOL: "#7db8dd",
    "#6742b5": "#bdaafd",
    "#4a7a3a": "#8fc27c",
    INK: "#dfe3e8",
    MUTED: "#9aa4af",
    LINE: "#3a424b",
    "#cccccc": "#3a424b",  # matplotlib's frame of a legend
    "#000000": "#dfe3e8",
    "#ffffff": "#121417",
}
DASHES = ("-", (0, (6, 3)), (0, (2, 3)), (0, (8, 3, 2, 3)))  # no two lines differ in colour alone

STYLE: dict[Any, Any] = {
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
    "axes.prop_cycle": cycler(color=[ACCENT, COOL, "#4a7a3a", "#6742b5"]),
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


def style() -> AbstractContextManager[None]:
    """Draw in the book's style inside a ``with`` block."""
    from attn_lib.svg import show_in_pages  # which draws with this module

    show_in_pages()
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
) -> AxesImage:
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
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    for name, labels, size in (("rows", rows, M.shape[0]), ("cols", cols, M.shape[1])):
        if labels is not None and len(labels) != size:
            raise ValueError(f"{name} must name all {size}, got {len(labels)} labels")
    low, high = (0, 1) if kind == "weights" else (-1, 1)
    scale = limit or (1 if kind == "weights" else score_limit(M))
    image = ax.imshow(
        np.where(np.isfinite(M), M, np.nan), cmap=KINDS[kind], vmin=low * scale, vmax=high * scale
    )
    _cells(ax, M, rows, cols)
    if numbers if numbers is not None else max(M.shape) <= 12:
        _numbers(ax, M, image, digits or (2 if kind == "weights" else 1))
    if title:
        ax.set_title(title)
    return image


def _cells(ax: Axes, M: np.ndarray, rows: Sequence[str] | None, cols: Sequence[str] | None) -> None:
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


def _numbers(ax: Axes, M: np.ndarray, image: AxesImage, digits: int) -> None:
    """Write each finite entry in its cell, black or white, whichever reads better."""
    for (i, j), value in np.ndenumerate(M):
        if np.isfinite(value):
            ink = ink_on(image.cmap(image.norm(value)))
            ax.text(j, i, in_cell(value, digits), ha="center", va="center", color=ink, fontsize=7)


def ink_on(color: Array) -> str:
    """Choose black or white, whichever reads better on a colour."""
    return "black" if luminance(color[:3]) > 0.179 else "white"


def luminance(rgb: Array) -> float:
    """Relative luminance of an sRGB colour with channels from 0 to 1 (WCAG 2)."""
    c = np.asarray(rgb, float)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def in_cell(value: float, digits: int) -> str:
    """Write a number as short as a cell needs: .42, −.3, 0, 12."""
    size = abs(value)
    decimals = 0 if size >= 9.95 else min(1, digits) if size >= 0.995 else digits
    text = str(Decimal(value).quantize(Decimal(10) ** -decimals, ROUND_HALF_UP))  # as the labs
    return "0" if float(text) == 0 else minus(text.replace("0.", "."))


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
            (result.output, "outputs", "Outputs $O$", outputs, 2),
        )
        for ax, (M, kind, title, cols, digits) in zip(panels, drawn, strict=True):
            image = heatmap(ax, M, rows=tokens, cols=cols, kind=kind, digits=digits, title=title)
            bar = fig.colorbar(image, ax=ax, location="bottom", shrink=0.5, aspect=14, pad=0.03)
            ends: Any = image.get_clim()
            bar.set_ticks(ends)
            bar.ax.tick_params(length=0, labelsize=7)
            bar.outline.set_visible(False)
            if query is not None:
                frame_row(ax, query, M.shape[1])
        panels[0].set_ylabel("query")
        for ax in panels[:2]:
            ax.set_xlabel("key")
            ax.xaxis.set_label_position("top")
        if query is not None:
            label = panels[0].get_yticklabels()[query]
            label.set(color=QUERY, fontweight="bold")
    return fig


def frame_row(ax: Axes, row: int, columns: int) -> None:
    """Frame one query's row."""
    frame(ax, slice(row, row + 1), slice(0, columns))


def frame(ax: Axes, rows: slice, cols: slice, *, width: float = 1.6) -> None:
    """Frame a block of cells."""
    size = cols.stop - cols.start, rows.stop - rows.start
    ax.add_patch(
        mpl.patches.Rectangle(
            (cols.start - 0.5, rows.start - 0.5),
            *size,
            fill=False,
            edgecolor=QUERY,
            linewidth=width,
            zorder=4,
        )
    )


def part(ax: Axes, *, rows: Sequence[int] = (), cols: Sequence[int] = ()) -> None:
    """Part blocks of cells by a wider gap, above the given rows and left of the given columns."""
    for row in rows:
        ax.axhline(row - 0.5, color="white", linewidth=3, zorder=3)
    for col in cols:
        ax.axvline(col - 0.5, color="white", linewidth=3, zorder=3)


# Scores and their scale -----------------------------------------------------------


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
    named: list[tuple[float, str, Any]] = []
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


def _name_lines(ax: Axes, named: Sequence[tuple[float, str, Any]], apart: float) -> None:
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


def name_axes(ax: Axes) -> None:
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
