"""Show the source of a function in a page, a notebook or a terminal."""

import inspect
import re
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


def show(*objects: Callable | type) -> Source:
    """Show the very source that runs when a function is called.

    Parameters
    ----------
    *objects : function, class or module
        Written in Python. Several are shown one after the other.

    Returns
    -------
    Source
        Make it the last expression of a cell, or print it.

    Raises
    ------
    ValueError
        If there is no Python source to show, as for functions written in C.
    """
    return Source("\n\n\n".join(_source(obj) for obj in objects))


def _source(obj: Callable | type) -> str:
    """Give the source of one object without trailing space."""
    try:
        return inspect.getsource(obj).rstrip()
    except (TypeError, OSError):
        raise ValueError(f"there is no Python source to show for {obj!r}") from None
