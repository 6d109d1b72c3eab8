"""attn_lib.book.show prints the source that runs."""

import ast
import functools
import importlib
import inspect
import re
import statistics
import textwrap
from pathlib import Path

import jupytext
import numpy as np
import pytest

import attn_lib
from attn_lib.book import show

EXPORTED = [getattr(attn_lib, name) for name in attn_lib.__all__]
BOOK = Path(__file__).resolve().parents[1] / "book"


def shown() -> dict[str, object]:
    """Everything that a chapter shows, by its name there."""
    found = {}
    for page in sorted(BOOK.glob("*.md")):
        cells = jupytext.read(page).cells
        code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
        imported = {}
        for line in ast.walk(ast.parse(re.sub(r"^%.*$", "", code, flags=re.M))):
            if isinstance(line, ast.ImportFrom) and line.module.startswith("attn_lib"):
                room = importlib.import_module(line.module)
                imported |= {a.asname or a.name: getattr(room, a.name) for a in line.names}
        for call in re.findall(r"^show\(([^)]*)\)$", code, re.M):
            for name in re.split(r",\s*", call):
                first, *rest = name.split(".")
                found[name] = functools.reduce(getattr, rest, imported[first])
    return found


SHOWN = shown()


def fenced():
    """Has a fence in its docstring: ``` and ````."""


@pytest.mark.parametrize("function", EXPORTED, ids=attn_lib.__all__)
def test_every_public_name_can_be_shown(function):
    text = repr(show(function, whole=True))
    assert ast.unparse(ast.parse(text)) == ast.unparse(ast.parse(inspect.getsource(function)))
    assert show(function, whole=True)._repr_markdown_() == f"```python\n{text}\n```"


@pytest.mark.parametrize("thing", EXPORTED, ids=attn_lib.__all__)
def test_every_public_name_says_what_it_takes_and_gives(thing):
    doc = inspect.getdoc(thing)
    if inspect.isfunction(thing):
        assert "\nParameters\n---" in doc
        assert "\nReturns\n---" in doc or "\nYields\n---" in doc
    else:
        assert "\nAttributes\n---" in doc or "\n>>> " in doc


def body(function) -> list[ast.stmt]:
    """The statements of a function, its docstring left out."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    return [part for part in node.body if not (isinstance(part, ast.Expr) and part is node.body[0])]


def is_check(statement: ast.stmt) -> bool:
    """Whether a statement checks or casts, and is no step of the computation."""
    refuses = isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Raise)
    return refuses or bool(
        re.search(r"asarray|isinstance|promote|check_|^\w+ = \w+\.astype", ast.unparse(statement))
    )


def measured() -> dict[str, tuple[int, int]]:
    """Lines of code of each function shown, and how many of them check or cast."""
    lines = {}
    for name, function in SHOWN.items():
        if inspect.isfunction(function):
            each = [(ast.unparse(part).count("\n") + 1, is_check(part)) for part in body(function)]
            lines[name] = sum(n for n, _ in each), sum(n for n, check in each if check)
    return lines


def test_what_is_shown_is_short_and_is_the_equation():
    lines = measured()
    assert len(lines) > 30
    assert statistics.median(code for code, _ in lines.values()) <= 6
    assert sum(checks for _, checks in lines.values()) <= 0.1 * sum(n for n, _ in lines.values())
    assert lines["attention"] == (3, 0)


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_fits_a_page_and_hides_nothing(name):
    text = repr(show(SHOWN[name]))
    assert max(map(len, text.splitlines())) <= 72
    assert not re.search(r"(?<![\w.])_\w+\(", text), "a private function that a reader must know"


@pytest.mark.parametrize("name", SHOWN)
def test_in_short_the_code_is_the_same(name):
    """Brief or whole: the same statements, under the summary of the same docstring."""

    def parts(text):
        (tree,) = ast.parse(text).body
        docs = [
            " ".join((ast.get_docstring(n) or "").split("\n\n")[0].split())
            for n in ast.walk(tree)
            if isinstance(n, ast.FunctionDef | ast.ClassDef)
        ]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                node.body = node.body[1:] if ast.get_docstring(node) else node.body
                node.decorator_list = []
            if isinstance(node, ast.FunctionDef):
                node.returns = None
            if isinstance(node, ast.arg):
                node.annotation = None
        return docs, ast.unparse(tree)

    assert parts(repr(show(SHOWN[name]))) == parts(repr(show(SHOWN[name], whole=True)))


def test_shapes_stand_above_the_arguments_without_rules_or_types():
    text = repr(show(attn_lib.attention)).splitlines()
    assert text[0] == '@takes("Q (..., n, d_k≥1)", "K (..., m, d_k)", "V (..., m, d_v)")'
    assert text[1] == "def attention(Q, K, V, *, mask=None, scale=None, temperature=1.0):"
    assert "@takes" not in repr(show(attn_lib.causal_mask))


def test_brief_docstrings_inside_a_class():
    text = repr(show(Documented))
    assert "Parameters" not in text
    assert text.count('"""') == 4 and "two lines" not in text
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
    assert text.index("def softmax") < text.index("\n\n\n@takes")


@pytest.mark.parametrize("thing", [np.exp, len, 3])
def test_refuses_what_has_no_python_source(thing):
    with pytest.raises(ValueError, match="no Python source"):
        show(thing)
