"""One hand for all drawings: an SVG whose colours are those of the roles, in both themes."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path

from attn_lib.arrays import Array

_ROLES = json.loads((Path(__file__).parents[1] / "colors.json").read_text())["roles"]
COLOURS: dict[str, tuple[str, str]] = {
    **{role: (both["light"], both["dark"]) for role, both in _ROLES.items()},
    "ink": ("#1b1f24", "#dfe3e8"),
    "muted": ("#57606a", "#9aa4af"),
    "line": ("#d9dee4", "#3a424b"),
    "paper": ("#ffffff", "#121417"),
}
WHOLE = 30.0  # the width of weight 1
CASING = 3.4  # paper around a band where it crosses others
FAMILY = {"sans": "var(--figure-font, sans-serif)", "serif": "var(--book-serif, Georgia, serif)"}


def colour(name: str) -> str:
    """Give a colour of both themes as CSS.

    Raises
    ------
    KeyError
        If there is no such colour.
    """
    light, dark = COLOURS[name]
    return f"light-dark({light}, {dark})"


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".").replace("-0", "0") if value else "0"


class Sketch:
    """A drawing that is written part by part; a later part lies on the earlier ones.

    Parameters
    ----------
    width, height : float
        In px, as it stands in a page; on a phone it shrinks by a tenth.
    says : str
        What it shows, for those who do not see it.
    """

    def __init__(self, width: float, height: float, says: str):
        self.width, self.height, self.says = width, height, says
        self.parts: list[str] = []

    def path(
        self, d: str, stroke: str = "ink", width: float = 1.6, *, dash: str = "", fill: str = ""
    ) -> None:
        """Draw a line along an SVG path."""
        style = f"fill:{colour(fill) if fill else 'none'};stroke:{colour(stroke)}"
        style += f";stroke-width:{_number(width)};stroke-linejoin:round"
        style += ";stroke-linecap:" + ("butt" if width > 3 else "round")
        style += f";stroke-dasharray:{dash}" if dash else ""
        self.parts.append(f'<path d="{d}" style="{style}"/>')

    def band(self, d: str, stroke: str, width: float) -> None:
        """Draw a line with paper at both sides, so that crossings can be followed."""
        if width > 2:
            self.path(d, "paper", width + CASING)
        self.path(d, stroke, max(0.8, width))

    def dot(self, x: float, y: float, r: float = 7, fill: str = "paper", edge: str = "ink") -> None:
        """Draw a token."""
        at = f'cx="{_number(x)}" cy="{_number(y)}" r="{_number(r)}"'
        style = f"fill:{colour(fill)};stroke:{colour(edge)};stroke-width:1.6"
        self.parts.append(f'<circle {at} style="{style}"/>')

    def box(
        self, x: float, y: float, width: float, height: float, fill: str = "", edge: str = ""
    ) -> None:
        """Draw a rectangle."""
        at = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}"'
        at += f' height="{_number(height)}"'
        style = f"fill:{colour(fill) if fill else 'none'}"
        style += f";stroke:{colour(edge)};stroke-width:1.6" if edge else ""
        self.parts.append(f'<rect {at} style="{style}"/>')

    def word(
        self,
        x: float,
        y: float,
        text: str,
        fill: str = "muted",
        *,
        size: float = 14,
        anchor: str = "start",
        serif: bool = False,
        italic: bool = False,
    ) -> None:
        """Write a word."""
        style = f"fill:{colour(fill)};font:{'italic ' if italic else ''}{_number(size)}px "
        style += FAMILY["serif" if serif or italic else "sans"]
        self.parts.append(
            f'<text x="{_number(x)}" y="{_number(y)}" text-anchor="{anchor}" style="{style}">'
            f"{html.escape(text)}</text>"
        )

    def reading(
        self,
        xs: Sequence[float],
        y: float,
        row: int,
        weights: Array,
        *,
        rise: float = 0.5,
        below: bool = False,
        whole: float = WHOLE,
    ) -> None:
        """Draw an arc from the token at place `row` to each that it reads, as wide as its weight.

        All arcs of a query together are as wide as one whole; the nearest token has the outermost
        slot, so that arcs of one side do not cross.
        """
        places = range(len(xs))
        left = [j for j in places if j < row][::-1]
        right = [j for j in places if j > row][::-1]
        slot, arcs = xs[row] - whole / 2, []
        for j in [*left, row, *right]:
            width = float(weights[j]) * whole
            arcs.append((abs(xs[j] - xs[row]), j, slot + width / 2, width))
            slot += width
        for far, j, start, width in sorted(arcs, reverse=True):
            if width < 0.15:
                continue
            sign = 1 if below else -1
            if j == row:
                self.band(f"M{_number(start)} {y}v{_number(sign * 16)}", "weight", width)
                continue
            end, high = xs[j], 10 + rise * far
            sweep = int((end > start) != below)
            arc = f"A{_number(abs(end - start) / 2)} {_number(high)} 0 0 {sweep} {_number(end)} {y}"
            self.band(f"M{_number(start)} {y}{arc}", "weight", width)

    def svg(self) -> str:
        """Give the drawing as SVG."""
        size = f'width="{_number(self.width)}" height="{_number(self.height)}"'
        return (
            f'<svg viewBox="0 0 {_number(self.width)} {_number(self.height)}" {size} role="img" '
            f'aria-label="{html.escape(self.says, quote=True)}">{"".join(self.parts)}</svg>'
        )

    def _repr_html_(self) -> str:
        return f'<div class="attn-diagram">{self.svg()}</div>'

    def __repr__(self) -> str:
        return f"Drawing: {self.says}"
