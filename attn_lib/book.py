"""Small helpers that let one chapter read well as a page and as a live notebook."""

from __future__ import annotations

import ast
import base64
import html
import inspect
import io
import re
import textwrap
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

__all__ = ["live", "numbers", "show", "table"]

# What `myst_nb.glue` leaves in a cell's output, a test compares; to import it takes a kernel 1.2 s.
_GLUE = "application/papermill.record/"


class Rounded(float):
    """A float that shows itself with a fixed number of decimals."""

    def __new__(cls, value: float, decimals: int = 2) -> Rounded:
        number = super().__new__(cls, value)
        number.decimals = decimals
        return number

    def __repr__(self) -> str:
        shown = f"{float(self):.{self.decimals}f}"
        if float(shown) == 0:
            shown = shown.lstrip("-")  # no "−0.00" in a sentence
        return shown.replace("-", "−")


def numbers(*, decimals: int = 2, **values: Any) -> None:
    """Name values for the text, so that no figure in a sentence is typed by hand.

    After ``numbers(w=A[3, 1])`` the text may say ``{eval}`w```: in a page and in JupyterLab the
    value stands there.

    Parameters
    ----------
    decimals : int, default 2
        Digits after the point for values that are not whole numbers or text.
    **values
        Names and values. Whole numbers and text are shown as they are.

    Notes
    -----
    Outside IPython nothing happens.
    """
    from IPython import get_ipython
    from IPython.display import display

    shell = get_ipython()
    if shell is None:
        return
    for name, value in values.items():
        shown = value if isinstance(value, Integral | str) else Rounded(value, decimals)
        text = repr(shown) if isinstance(shown, Rounded) else str(shown)
        shell.push({name: shown})
        record = {"scrapbook": {"name": name, "mime_prefix": _GLUE}}
        display({_GLUE + "text/plain": repr(text)}, raw=True, metadata=record)


class Live:
    """A widget for whoever has a kernel, and a stand-in for the page."""

    def __init__(self, widget: Any, page: str) -> None:
        self.widget, self.page = widget, page

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle = self.widget._repr_mimebundle_() or {}
        if isinstance(bundle, tuple):
            bundle = bundle[0]
        return {**bundle, "text/html": self.page}


def live(widget: Any, *, page: Any, alt: str = "", caption: str = "") -> Live:
    """Show `widget` where a kernel runs, and `page` in the built book.

    A slider whose function runs in Python would be dead in a page. This gives the notebook the
    widget and the page a figure, or a lab that needs no kernel.

    Parameters
    ----------
    widget : ipywidgets.Widget
        What moves in a notebook.
    page : matplotlib Figure, or an object with an HTML representation
        What stands in the page.
    alt : str
        For a figure: what it shows, for those who do not see it. Required then.
    caption : str
        Printed under `page`.

    Returns
    -------
    Live
        Make it the last expression of a cell.

    Raises
    ------
    ValueError
        If a figure comes without `alt`, or `page` has no HTML representation.
    """
    if hasattr(page, "savefig"):
        if not alt:
            raise ValueError("a figure in a page needs alt: say in words what it shows")
        picture = f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{_png(page)}">'
    else:
        picture = _html(page)
    under = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return Live(
        widget, f'<figure class="live-page">{picture}{under}</figure>' if under else picture
    )


def _png(figure: Any) -> str:
    """Encode a matplotlib figure; no metadata, so that two builds agree."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144, metadata={"Software": None})
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _html(page: Any) -> str:
    """Take the text/html of an object's representation."""
    bundle = page._repr_mimebundle_() if hasattr(page, "_repr_mimebundle_") else {}
    if isinstance(bundle, tuple):
        bundle = bundle[0]
    text = (bundle or {}).get("text/html") or (
        page._repr_html_() if hasattr(page, "_repr_html_") else None
    )
    if not text:
        raise ValueError(f"{type(page).__name__} has no HTML representation to stand in the page")
    return text


class Table:
    """A labelled matrix that shows itself as a table."""

    def __init__(self, rows: Sequence[str], columns: Sequence[str], cells: list[list[str]]) -> None:
        self.rows, self.columns, self.cells = rows, columns, cells

    def __repr__(self) -> str:
        lines = [["", *self.columns]] + [
            [r, *c] for r, c in zip(self.rows, self.cells, strict=True)
        ]
        wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(f"{text:>{w}}" for text, w in zip(line, wide, strict=True)) for line in lines
        )

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in self.columns)
        body = "".join(
            f'<tr><th scope="row">{html.escape(row)}</th>'
            + "".join(f"<td>{cell}</td>" for cell in cells)
            + "</tr>"
            for row, cells in zip(self.rows, self.cells, strict=True)
        )
        return (
            f'<table class="dataframe"><thead><tr><td></td>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table>"
        )


def table(M: Any, *, rows: Sequence[str], columns: Sequence[str], decimals: int = 2) -> Table:
    """Show a matrix with the names of its rows and columns.

    Parameters
    ----------
    M : array_like, shape (n, m)
        The numbers.
    rows, columns : sequence of str
        n and m names.
    decimals : int, default 2
        Digits after the point.

    Returns
    -------
    Table
        An HTML table in a page or a notebook, aligned text elsewhere.

    Raises
    ------
    ValueError
        If the names do not fit the numbers.
    """
    cells = [[repr(Rounded(x, decimals)) for x in row] for row in M]
    if len(cells) != len(rows) or any(len(row) != len(columns) for row in cells):
        shape = (len(cells), len(cells[0]) if cells else 0)
        raise ValueError(f"{len(rows)} × {len(columns)} names for a matrix of shape {shape}")
    return Table(tuple(rows), tuple(columns), cells)


class Source:
    """Python source that displays as highlighted code where that is possible."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        longest = max((len(run) for run in re.findall("`+", self.text)), default=0)
        fence = "`" * max(3, longest + 1)  # longer than any run of backticks inside
        return f"{fence}python\n{self.text}\n{fence}"


def show(*objects: Callable | type, whole: bool = False) -> Source:
    """Show the very source that runs when a function is called.

    Parameters
    ----------
    *objects : function, class or module
        Written in Python. Several are shown one after the other.
    whole : bool, default False
        Show docstrings in full; otherwise they end where their lists of parameters begin.

    Returns
    -------
    Source
        Make it the last expression of a cell, or print it.

    Raises
    ------
    ValueError
        If there is no Python source to show, as for functions written in C.
    """
    source = _source if whole else _brief
    return Source("\n\n\n".join(source(obj) for obj in objects))


def _source(obj: Callable | type) -> str:
    """Give the source of one object without trailing space."""
    try:
        return textwrap.dedent(inspect.getsource(obj)).rstrip()
    except (TypeError, OSError):
        raise ValueError(f"there is no Python source to show for {obj!r}") from None


def _brief(obj: Callable | type) -> str:
    """Give the source of one object, its docstrings cut at their first section."""
    text = _source(obj)
    lines = text.splitlines()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    quotes = [
        node.body[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, documented) and ast.get_docstring(node) is not None
    ]
    for quoted in sorted(quotes, key=lambda quote: -quote.lineno):  # upwards: line numbers hold
        first, last = quoted.lineno - 1, quoted.end_lineno
        ruled = [i for i in range(first, last) if re.fullmatch(r" *-{3,}", lines[i])]
        if ruled:  # a section: a title over a rule
            kept = "\n".join(lines[first : ruled[0] - 1]).rstrip()
            close = f"\n{' ' * quoted.col_offset}" if "\n" in kept else ""
            lines[first:last] = (kept + close + '"""').splitlines()
    return "\n".join(lines)
