"""attn_lib.book.show prints the source that runs."""

import ast
import functools
import inspect

import numpy as np
import pytest

import attn_lib
from attn_lib.book import show

FUNCTIONS = [getattr(attn_lib, name) for name in attn_lib.__all__]


def fenced():
    """Has a fence in its docstring: ``` and ````."""


@pytest.mark.parametrize("function", FUNCTIONS, ids=attn_lib.__all__)
def test_every_public_name_can_be_shown(function):
    text = repr(show(function, whole=True))
    assert ast.unparse(ast.parse(text)) == ast.unparse(ast.parse(inspect.getsource(function)))
    assert show(function, whole=True)._repr_markdown_() == f"```python\n{text}\n```"


@pytest.mark.parametrize("function", FUNCTIONS, ids=attn_lib.__all__)
def test_every_public_name_fits_a_page(function):
    """A reader sees this source: its docstring has the sections, its code at most 20 lines."""
    doc = inspect.getdoc(function)
    sections = ["Attributes"] if inspect.isclass(function) else ["Parameters", "Returns"]
    assert all(f"\n{section}\n---" in doc for section in sections)
    tree = ast.parse(inspect.getsource(function)).body[0]
    code = [line for statement in tree.body[1:] for line in ast.unparse(statement).splitlines()]
    assert len(code) <= 20
    assert max(len(line) for line in repr(show(function)).splitlines()) <= 100


@pytest.mark.parametrize("function", FUNCTIONS, ids=attn_lib.__all__)
def test_without_its_lists_the_code_is_the_same(function):
    """Brief or whole, the same summary above the same statements."""

    def parts(text):
        tree = ast.parse(text).body[0]
        return ast.get_docstring(tree), [ast.unparse(statement) for statement in tree.body[1:]]

    brief, code = parts(repr(show(function)))
    whole, same_code = parts(inspect.getsource(function))
    assert code == same_code
    assert whole.startswith(brief) and whole[len(brief) :].lstrip().startswith(
        ("Parameters\n-", "Attributes\n-")
    )


def test_brief_docstrings_inside_a_class():
    text = repr(show(Documented))
    assert "Parameters" not in text
    assert text.count('"""') == 4
    assert ast.unparse(ast.parse(text)).endswith("return number")


class Documented:
    """A class.

    Parameters
    ----------
    none
    """

    def method(self, number):
        """Give it back.

        Over two lines.

        Parameters
        ----------
        number
        """
        return number


def test_a_fence_inside_does_not_end_the_code():
    markdown = show(fenced)._repr_markdown_()
    assert markdown.startswith("`````python\n") and markdown.endswith("\n`````")


def test_wrapped_functions_show_themselves():
    @functools.wraps(fenced)
    def wrapper():
        return fenced()

    assert repr(show(wrapper)).startswith("def fenced")


def test_several_at_once():
    text = repr(show(attn_lib.softmax, attn_lib.attention))
    assert text.index("def softmax") < text.index("\n\n\ndef attention")


@pytest.mark.parametrize("thing", [np.exp, len, 3])
def test_refuses_what_has_no_python_source(thing):
    with pytest.raises(ValueError, match="no Python source"):
        show(thing)
