"""REACHES.md names every place that leans on what other people have not documented."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXTENSION = ROOT / "book/_ext/attn_book"
LIST = (EXTENSION / "REACHES.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1:-1] for line in LIST.splitlines() if line.startswith("| `")]
DOCUMENTED = {"docutils", "jupyter_cache", "jupytext", "nbclient", "nbformat", "sphinx", "yaml"}


def imports():
    """Yield every import of the extension as a module and a statement."""
    for path in sorted(EXTENSION.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((alias.name, f"import {alias.name}") for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = ", ".join(alias.name for alias in node.names)
                yield node.module, f"from {node.module} import {names}"


def test_every_import_of_what_is_not_documented_is_named():
    found = dict(imports())
    assert {"sphinx.errors", "jupytext"} <= set(found)
    for module, statement in found.items():
        top, private = module.split(".")[0], re.search(r"(^|[. ])_[a-z]", statement)
        if top not in sys.stdlib_module_names and (private or top not in DOCUMENTED):
            assert f"`{statement}`" in LIST


def test_every_mend_of_the_themes_pages_is_named():
    script = (ROOT / "book/_static/book.js").read_text(encoding="utf-8")
    selectors = re.findall(r'\ball\("([^"]+)"', script)
    assert len(selectors) >= 5
    for selector in selectors:
        assert f"`{selector}`" in LIST


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_a_row_is_about_something_and_its_test_exists(row):
    where, what, why, test, ends = (cell.strip() for cell in row)
    path, token = re.fullmatch(r"`([^`]+)`: `([^`]+)`", where).groups()
    assert token in (ROOT / path).read_text(encoding="utf-8")
    assert what and why and ends
    path, _, name = test.strip("`").partition("::")
    tests = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    names = {node.name for node in tests if isinstance(node, ast.FunctionDef)}
    assert name in names if name else any(each.startswith("test_") for each in names)
