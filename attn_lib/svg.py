"""Figures for a page: text as text, light and dark from one drawing, laid out anew for a phone.

Where the book is built, and only there, a figure shows itself in this way: `figures.style` asks for
it. In a reader's own notebook matplotlib shows what it always does.
"""

from __future__ import annotations

import hashlib
import html
import io
import os
import pickle
import re
import sys
from itertools import pairwise
from typing import Any

import numpy as np

from attn_lib.extras import missing
from attn_lib.figures import DARK, INK, dark_cmaps, ink_on, luminance

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import to_hex, to_rgb
    from matplotlib.figure import Figure, FigureBase
    from matplotlib.gridspec import GridSpec
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.patheffects import Normal
    from matplotlib.text import Text
except ModuleNotFoundError as error:
    raise missing(error, "book") from None

__all__ = ["page_figure", "show_in_pages"]

PHONE = 3.5  # inches: 336 of a phone's 390 px
FEWEST = 0.8  # of a panel's width may be given up before panels go below one another
OPTIONS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "book",
    "figure.facecolor": "none",
    "path.simplify_threshold": 0.5,  # of a pixel
}
COLOUR = re.compile(r"#[0-9a-f]{6}\b")
IMAGE = re.compile(r"<image [^>]*?/>", re.S)
# Black is what SVG leaves unsaid, and paper turns dark: digits on cells are neither.
DIGITS = {"black": "#020202", "white": "#fdfdfd"}
PLACES = re.compile(r' (?:d|x|y)="[^"]*"|translate\([^)]*\)')  # not scales, which may be small
FONT = re.compile(r"(font: [^;\"]*?px|font-family:) [^;\"]*")
MANY = 100
TABLE = 8  # more columns than that are a table, whose rows mean something
LEAST_CONTRAST = 4.5
IN_BUILD = "ATTN_LIB_PAGES"


def page_figure(figure: Figure, alt: str = "") -> str:
    """Write a figure for a page: two drawings, of which a page shows the one that fits.

    Parameters
    ----------
    figure : Figure
        It is left as it is.
    alt : str, optional
        What it shows, for those who do not see it.

    Returns
    -------
    str
        A ``div`` with two ``svg``. Colours are CSS ``light-dark()``, fonts those of the page.
    """
    wide, phone = _themed(figure), _themed(narrowed(figure))
    if alt:
        named = f'role="img" aria-label="{html.escape(alt)}"'
        wide, phone = (each.replace('role="img"', named) for each in (wide, phone))
    return (
        '<div class="attn-drawn">'
        f'<div class="attn-wide">{wide}</div><div class="attn-narrow">{phone}</div></div>'
    )


def show_in_pages() -> None:
    """Let figures show themselves as pages need them, if this is the kernel of a build."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if shell and os.environ.get(IN_BUILD):
        # Not for Figure itself: what matplotlib has registered there it removes with its backend.
        shell.display_formatter.formatters["text/html"].for_type(FigureBase, page_figure)


def _copy(figure: Figure) -> Any:
    """Copy a figure without its window, or pyplot would show the copy too."""
    window, figure.canvas.manager = figure.canvas.manager, None
    try:
        return pickle.loads(pickle.dumps(figure))
    finally:
        figure.canvas.manager = window


def narrowed(figure: Figure) -> Figure:
    """Copy a figure for a phone: as wide as its screen, its panels below one another if need be."""
    figure = _copy(figure)
    width, height = figure.get_size_inches()
    if width <= PHONE:
        return figure
    panels: list[Any] = [ax for ax in figure.axes if ax.get_subplotspec() is not None]
    grids = [ax.get_subplotspec().get_gridspec() for ax in panels]
    columns = grids[0].ncols if grids else 1
    fit = min(columns, max(1, int(PHONE / (FEWEST * width / columns))))
    if columns > TABLE:
        fit = columns
    if fit < columns:
        rows = -(-len(panels) // fit)
        below = GridSpec(rows, fit, figure=figure)
        for at, ax in enumerate(panels):
            ax.set_subplotspec(below[at])
            if at % fit == 0:
                _label_rows(ax, panels[at - at % columns])
        height *= rows / grids[0].nrows
    figure.set_size_inches(PHONE, height)
    figure.draw_without_rendering()
    legends = []
    for ax in figure.axes:
        _turn_crowded(ax)
        legend = ax.get_legend()
        if legend and _in_the_way(legend, ax):
            legends.append(legend)
    if legends:
        height += _move_below(legends, figure)
    figure.set_size_inches(PHONE, height)
    return figure


def _turn_crowded(ax: Axes) -> None:
    """Turn words under an axis that would stand on one another."""
    boxes = [word.get_window_extent() for word in ax.get_xticklabels() if word.get_text()]
    if any(left.x1 > right.x0 for left, right in pairwise(boxes)) and len(boxes) > 1:
        ax.tick_params(axis="x", labelrotation=90)


def _in_the_way(legend: Legend, ax: Axes) -> bool:
    """Tell a legend that stands beside its axes, or takes half of them."""
    box, area = legend.get_window_extent(), ax.get_window_extent()
    return box.x0 > area.x1 or box.width > 0.5 * area.width


def _move_below(legends: list[Legend], figure: Figure) -> float:
    """Set what legends say under the figure; return how much room it needs, in inches."""
    lines: dict[str, Any] = {}
    for legend in legends:
        words = (word.get_text() for word in legend.get_texts())
        lines |= dict(zip(words, legend.legend_handles, strict=True))
        legend.remove()
    columns = 1 if max(map(len, lines)) > 18 else 2
    options: Any = {"loc": "outside lower left", "ncols": columns, "frameon": False}
    figure.legend(list(lines.values()), list(lines), **options)
    return 0.2 * -(-len(lines) // columns)


def _label_rows(ax: Axes, first: Axes) -> None:
    """Give a panel that has come to stand at the left what the first of its row had alone."""
    ax.tick_params(labelleft=True)
    if not ax.get_ylabel():
        ax.set_ylabel(first.get_ylabel())


def _themed(figure: Figure) -> str:
    """Write the SVG with each colour as a pair, and each map of values as two images."""
    light, dark = (_inline(_svg(each)) for each in (_copy(figure), _darkened(figure)))
    name = "f" + hashlib.sha1(light.encode()).hexdigest()[:8]
    images = [m[0] for m in IMAGE.finditer(dark)]
    colours = iter(COLOUR.findall(IMAGE.sub("", dark)))

    def pair(found: re.Match) -> str:
        if found[0].startswith("<image"):
            return _twice(found[0], images.pop(0))
        return _pair(found[0], next(colours))

    themed = re.sub(f"{IMAGE.pattern}|{COLOUR.pattern}", pair, light, flags=re.S)
    return re.sub(r'((?:id="|href="#|url\(#))', rf"\g<1>{name}-", themed)


def on_dark(colour: str) -> str:
    """Give the colour that stands for another one on dark paper.

    The book's colours have theirs; greys are turned round; others are lightened until they read.
    """
    if colour in DARK or colour in DIGITS.values():
        return DARK.get(colour, colour)
    rgb = np.array(to_rgb(colour))
    ink, paper = (np.array(to_rgb(DARK[each])) for each in ("#000000", "#ffffff"))
    if np.ptp(rgb) < 0.04:
        return to_hex(tuple(ink + rgb.mean() * (paper - ink)))
    while luminance(rgb) + 0.05 < LEAST_CONTRAST * (luminance(paper) + 0.05):
        rgb = rgb + 0.1 * (1 - rgb)
    return to_hex(tuple(rgb))


def _pair(light: str, dark: str) -> str:
    """Name a colour in both themes; what no map of values has changed follows the palette."""
    dark = on_dark(light) if dark == light else dark
    return light if dark == light else f"light-dark({light},{dark})"


def _twice(light: str, dark: str) -> str:
    if light == dark:
        return light
    return light.replace("<image", '<image class="attn-light"', 1) + dark.replace(
        "<image", '<image class="attn-dark"', 1
    )


def _darkened(figure: Figure) -> Figure:
    """Copy a figure with the dark maps of values, and the digits that can be read on them."""
    figure = _copy(figure)
    mapped: Any = figure.findobj(lambda artist: isinstance(artist, ScalarMappable))
    for artist in mapped:
        artist.set_cmap(dark_cmaps.get(artist.get_cmap().name, artist.get_cmap()))
    dense: Any = figure.findobj(is_dense)
    for line in dense:  # its colours will be in an image
        line.set_color(on_dark(to_hex(line.get_color())))
    for ax in figure.axes:
        for text in ax.texts:
            if text.get_color() in DIGITS and ax.images:
                _read_on(text, ax.images[0])
    return figure


def _read_on(text: Text, image: Any) -> None:
    """Choose black or white for a digit in a cell by the cell's new colour."""
    j, i = (round(x) for x in text.get_position())
    text.set_color(ink_on(image.cmap(image.norm(image.get_array()[i, j]))))


def is_dense(artist: Any) -> bool:
    """Tell a cloud of many points, which is lighter as an image."""
    cloud = isinstance(artist, Line2D) and artist.get_linestyle() == "None"
    return cloud and len(artist.get_xdata(orig=False)) > MANY


def _prepare(figure: Figure) -> None:
    """Let paper show through, draw formulas as outlines, and give digits colours of their own."""
    for ax in figure.axes:
        ax.patch.set_visible(False)
    for line in figure.findobj(is_dense):
        line.set_rasterized(True)
    for image in (image for ax in figure.axes for image in ax.images):
        image.set_interpolation("none")  # a cell is a pixel, and the page enlarges it
    texts: Any = figure.findobj(Text)
    for text in texts:
        if text.get_parse_math() and text.get_text().count("$") > 1:
            text.set_path_effects([Normal()])  # a page lacks the fonts that the spacing is made for
        text.set_color(DIGITS.get(text.get_color(), text.get_color()))


def _svg(figure: Figure) -> str:
    _prepare(figure)
    with mpl.rc_context(OPTIONS):
        buffer = io.StringIO()
        metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(buffer, format="svg", facecolor="none", metadata=metadata)
    return buffer.getvalue()


def _inline(svg: str) -> str:
    """Take from a file what a page has already: the prologue, its fonts, names nobody refers to."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.S)
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg))
    used = {name for pair in used for name in pair if name}
    svg = re.sub(r' id="([^"]+)"', lambda m: m[0] if m[1] in used else "", svg)
    svg = FONT.sub(r"\1 var(--figure-font, sans-serif)", svg)
    [(width, height)] = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    size = [f"{float(x) * 96 / 72:.0f}" for x in (width, height)]
    head = f'<svg viewBox="0 0 {width} {height}" width="{size[0]}" height="{size[1]}" '
    head += f'role="img" fill="{INK}">'
    svg = head + svg[svg.index(">") + 1 :]
    svg = PLACES.sub(lambda place: re.sub(r"(\.\d)\d+", r"\1", place[0]), svg)
    return re.sub(r"\n\s*", "\n", svg).strip()
