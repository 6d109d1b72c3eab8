"""Small helpers that let one chapter read well as a page and as a notebook."""

from __future__ import annotations

import ast
import html
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import Any

from attn_lib.words import fixed

__all__ = ["numbers", "show", "table"]

# What `myst_nb.glue` leaves in a cell's output, a test compares; to import it takes a kernel 1.2 s.
_GLUE = "application/papermill.record/"


class Rounded(float):
    """A float that shows itself with a fixed number of decimals."""

    decimals: int

    def __new__(cls, value: float, decimals: int = 2) -> Rounded:
        number = super().__new__(cls, value)
        number.decimals = decimals
        return number

    def __repr__(self) -> str:
        return fixed(float(self), self.decimals)


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


WIDTH = 72  # columns of code that a page holds without scrolling


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
    """Show the very source that runs when a function is called, cut to what teaches.

    The statements are those of the file, comments included. Above them stand the shapes that the
    arguments must have, the arguments without their types, and the docstring's summary, each
    wrapped to the width of a page.

    Parameters
    ----------
    *objects : function or class
        Written in Python. Several are shown one after the other.
    whole : bool, default False
        Show the file's text unchanged, with types and the whole docstring.

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
    """Give the source of one object with its head and its docstrings in short."""
    text = _source(obj)
    node: Any = ast.parse(text).body[0]
    return "\n".join(_short(node, text, text.splitlines()))


def _short(node: Any, text: str, lines: list[str]) -> Iterator[str]:
    """Give the lines of a function or a class in short."""
    indent = " " * node.col_offset
    inner = indent + "    "
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and not decorator.args:
            continue  # rules for numbers: no shapes to show
        if isinstance(decorator, ast.Call):
            words = [str(ast.get_source_segment(text, shape)) for shape in decorator.args]
            yield from _wrapped(indent + f"@{ast.unparse(decorator.func)}", words, "")
        else:
            yield f"{indent}@{ast.unparse(decorator)}"
    if isinstance(node, ast.ClassDef):
        yield lines[node.lineno - 1]
    else:
        yield from _wrapped(f"{indent}def {node.name}", _arguments(node.args, text), ":")
    first = node.body[0]
    documented = ast.get_docstring(node)
    if documented:
        summary = " ".join(documented.split("\n\n")[0].split())
        quoted = textwrap.wrap(f'"""{summary}"""', WIDTH - len(inner))
        yield from (inner + line for line in quoted)
    parts = node.body[1:] if documented else node.body
    start = first.end_lineno + 1 if documented else first.lineno
    for part in parts:
        if isinstance(node, ast.ClassDef) and isinstance(part, ast.FunctionDef):
            head = min([part.lineno, *(each.lineno for each in part.decorator_list)])
            yield from lines[start - 1 : head - 1]
            yield from _short(part, text, lines)
        else:
            yield from lines[start - 1 : part.end_lineno]
        start = part.end_lineno + 1


def _arguments(args: ast.arguments, text: str) -> list[str]:
    """Give the arguments of a function as they are written, without their types."""
    named = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(named) - len(args.defaults)) + args.defaults
    words = [_argument(each, default, text) for each, default in zip(named, defaults, strict=True)]
    if args.vararg or args.kwonlyargs:
        words.append(f"*{args.vararg.arg if args.vararg else ''}")
    for each, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        words.append(_argument(each, default, text))
    return words + ([f"**{args.kwarg.arg}"] if args.kwarg else [])


def _argument(argument: ast.arg, default: ast.expr | None, text: str) -> str:
    """Give one argument with its default."""
    given = "" if default is None else f"={ast.get_source_segment(text, default)}"
    return argument.arg + given


def _wrapped(head: str, words: list[str], end: str) -> list[str]:
    """Give ``head(words)`` on one line if it fits, else wrapped between the brackets."""
    line = f"{head}({', '.join(words)}){end}"
    if len(line) <= WIDTH:
        return [line]
    indent = " " * (len(head) - len(head.lstrip()))
    lines, inner = [], indent + "   "
    for word in words:
        if len(inner) + len(word) + 2 > WIDTH:
            lines.append(inner)
            inner = indent + "   "
        inner += f" {word},"
    return [f"{head}(", *lines, inner, f"{indent}){end}"]
