"""LookupLab's figure: keys and a query in one plane, values and the output in another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.patheffects
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attn_lib.figures import ACCENT, INK, LINE, MUTED, style
from attn_lib.lookup import convex_hull
from attn_lib.words import fixed


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
    red, green, blue = map(float, srgb)
    return red, green, blue


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
        _plane(left, 2.0, f"Query and keys, $q$ = ({fixed(q[0])}, {fixed(q[1])})")
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
    look: dict[str, Any] = {"color": MUTED, "fontsize": 7.5}
    ax.text(0.97 * reach, -0.03 * reach, x, ha="right", va="top", **look)
    ax.text(-0.97 * reach, -0.03 * reach, opposite.get(x, f"−{x}"), va="top", **look)
    ax.text(0.03 * reach, 0.97 * reach, y, va="top", **look)
    ax.text(0.03 * reach, -0.97 * reach, opposite.get(y, f"−{y}"), va="bottom", **look)


def _entries(ax: Axes, at, V, weights, names, *, away, avoid, reach: float, say=False) -> None:
    """Draw entries as points in their colours, with a halo for the weight and a name outside."""
    colours = [pigment(v) for v in V]
    x, y = at.T
    ax.scatter(x, y, s=(5.5 + 16 * np.sqrt(weights)) ** 2 * 1.9, c=colours, alpha=0.32, lw=0)
    ax.scatter(x, y, s=48, c=colours, lw=0, zorder=3)
    for point, weight, name in zip(at, weights, names, strict=True):
        text = f"{name} {weight:.2f}" if say and weight >= 0.005 else name
        step, align = _beside(point, away, avoid, reach, len(text))
        step = step * (9 + 10 * np.sqrt(weight))
        ax.annotate(text, point, step, **_TAG, ha=align, fontsize=8.5, zorder=4)


_PAPER = [mpl.patheffects.withStroke(linewidth=2.5, foreground="white")]
_TAG: dict[str, Any] = {"textcoords": "offset points", "va": "center", "path_effects": _PAPER}


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
    ax.add_patch(
        mpl.patches.Circle((q[0], q[1]), radius, fill=False, ec=ACCENT, lw=1, ls=(0, (4, 3)))
    )


def _projection_guide(ax: Axes, q: np.ndarray, K: np.ndarray) -> None:
    """Draw the line through the query, each key's foot on it, and the longest projection."""
    if not q.any():
        return
    feet = np.outer(K @ q, q) / (q @ q)
    ax.axline((0, 0), (q[0], q[1]), color=ACCENT, lw=1, ls=(0, (4, 3)), zorder=1)
    for key, foot in zip(K, feet, strict=True):
        ax.plot(*np.transpose([key, foot]), color=MUTED, lw=0.9, ls=(0, (1, 2.5)), zorder=1)
    longest = feet[(K @ q).argmax()]
    ax.plot([0, longest[0]], [0, longest[1]], color=ACCENT, lw=2.4, zorder=2)
