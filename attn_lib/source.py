"""Show the source of a function in a page, a notebook or a terminal."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable


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
