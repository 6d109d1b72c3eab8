"""Real builds of a small copy of the book: what `make book` promises, and what it must refuse."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import nbformat
import pytest
from attn_book import cache

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.build

HEADER = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

"""
PAGE = (
    HEADER
    + r"""
(page)=
# A page

:::{prf:theorem} Two
:label: two
$1 + 1 = 2$
:::

:::{prf:proof}
Count.
:::

:::{prf:proof}
Count again.
:::

See {prf:ref}`two`.

```{code-cell} ipython3
from attn_lib.toy import Lab, VALUE
from attn_lib.book import numbers
numbers(value=VALUE)
Lab()
```

The value is {eval}`value`.

```{code-cell} ipython3
print("run", VALUE)
```
"""
)
TOY = """\
import anywidget

VALUE = 1


class Lab(anywidget.AnyWidget):
    _esm = "export default { render() { /* MARK OF THE FRONT END */ } }"

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {**data, "text/html": '<figure class="attn-lab">picture</figure>'}, metadata
"""


class Book:
    """A small book in its own folder, with this book's configuration and extension."""

    def __init__(self, folder):
        self.root = folder
        for name in ("make.py", "_config.yml", "pyproject.toml", "requirements.txt", "LICENSE"):
            shutil.copy(ROOT / name, folder)
        for name in ("_ext", "_static", "_templates"):
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / "book" / name, folder / "book" / name, ignore=ignore)
        library = folder / "attn_lib"
        (library / "labs/static").mkdir(parents=True)
        for name in ("__init__.py", "pages.py"):
            (library / name).write_text("")
        shutil.copy(ROOT / "attn_lib/pages.py", library)
        (library / "toy.py").write_text(TOY)
        (library / "labs/static/labs.page.js").write_text("// labs")
        (library / "labs/static/labs.css").write_text(".attn-lab {}")
        self.write("_toc.yml", "format: jb-book\nroot: book/page\n")
        self.write("book/references.bib", "")
        self.write("book/page.md", PAGE)
        self.html = folder / "_build/html"

    def write(self, name, text):
        """Write a file of the book."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def build(self):
        """Run ``make.py book`` with the packages of these tests; return (exit code, output)."""
        code = "import make, sys, pathlib; make.prepare = lambda lists: None; "
        code += "make.PYTHON = pathlib.Path(sys.executable); make.book()"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    def page(self):
        """Return the HTML of the page."""
        return (self.html / "book/page.html").read_text(encoding="utf-8")

    def bytes(self):
        """Return a hash of each file of the built pages."""
        return {
            path.relative_to(self.html).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.html.rglob("*")
            if path.is_file()
        }


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Return a small book, built."""
    book = Book(tmp_path_factory.mktemp("book"))
    code, output = book.build()
    assert code == 0, output
    return book


@pytest.fixture
def fresh(tmp_path):
    """Return a small book, not built."""
    return Book(tmp_path)


# --- what is refused ------------------------------------------------------------------------------
RAISES = "\n```{code-cell} ipython3\n1 / 0\n```\n"
WARNS = """
See {ref}`nowhere`. It is {eval}`unnamed`.

```{code-cell} ipython3
import warnings
warnings.warn("hm")
```
"""


@pytest.mark.parametrize(
    ("addition", "complaints"),
    [(RAISES, ["ZeroDivisionError"]), (WARNS, ["nowhere", "unnamed", "stderr"])],
    ids=["a cell raises", "warnings"],
)
def test_failing_page_fails_twice_and_leaves_no_page(fresh, addition, complaints):
    fresh.write("book/page.md", PAGE + addition)
    for _ in range(2):
        code, output = fresh.build()
        assert code != 0, output
        for complaint in complaints:
            assert complaint in output
        assert not fresh.html.exists()


def test_interrupted_build_does_not_hide_a_warning(fresh):
    """A build that is killed has read its pages; the next must complain about them all the same."""
    fresh.write("book/page.md", PAGE + "\nIt is {eval}`unnamed`.\n")
    jupyter_book = "import sys; from jupyter_book.cli.main import main; sys.exit(main())"
    lenient = [sys.executable, "-c", jupyter_book, "build", ".", "-n"]  # keeps what it has read
    environment = {**os.environ, "PYTHONPATH": str(fresh.root)}
    subprocess.run(lenient, cwd=fresh.root, env=environment, check=True, capture_output=True)
    assert fresh.html.exists()
    code, output = fresh.build()
    assert code != 0
    assert "unnamed" in output
    assert not fresh.html.exists()


def test_missing_lab_script_is_named(fresh):
    (fresh.root / "attn_lib/labs/static/labs.page.js").unlink()
    code, output = fresh.build()
    assert code != 0
    assert "labs.page.js missing in attn_lib/labs/static" in output


# --- what changes are noticed ---------------------------------------------------------------------
def test_changes_are_noticed_and_reverts_find_their_cache(fresh):
    toy = fresh.root / "attn_lib/toy.py"
    seen = []
    for source in (TOY, TOY.replace("VALUE = 1", "VALUE = 2"), TOY):
        toy.write_text(source)
        code, output = fresh.build()
        assert code == 0, output
        assert "Executing notebook" not in output  # each is run before MyST-NB asks for it
        seen.append("Executed book/page" in output)
        value = re.search(r"VALUE = (\d)", source)[1]
        assert f"run {value}" in fresh.page()
        assert f'<span class="pasted-text">{value}</span>' in fresh.page()
    assert seen == [True, True, False]

    before = fresh.page()
    extension = fresh.root / "book/_ext/attn_book/mends.py"
    extension.write_text(extension.read_text().replace('"Proof."', '"Proof!"'))
    code, output = fresh.build()
    assert code == 0, output
    assert "Executed book/page" not in output
    assert fresh.page() != before


def test_fingerprints_see_what_shapes_cells_and_what_shapes_pages(tmp_path):
    changes = {
        "attn_lib/toy.py": "cells",
        "attn_lib/labs/colors.json": "cells",
        "book/data/numbers.txt": "cells",
        "attn_lib/labs/static/labs.css": "pages",
        "book/_ext/attn_book/mends.py": "pages",
        "book/_static/book.css": "pages",
        "book/_templates/page.html": "pages",
        "_toc.yml": "pages",
        "attn_lib/labs/js/lab.js": "neither",
        "attn_lib/__pycache__/toy.pyc": "neither",
        "book/page.md": "neither",
    }
    for name in changes:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before")

    def prints():
        cells = cache.fingerprint(tmp_path, cache.CELLS, without=cache.FRONT_END)
        return {"cells": cells, "pages": cache.fingerprint(tmp_path, cache.PAGES)}

    for name, kind in changes.items():
        before = prints()
        (tmp_path / name).write_text("after")
        after = prints()
        assert {k for k in before if before[k] != after[k]} == {kind} - {"neither"}, name


def test_old_caches_go_and_the_latest_stay(tmp_path):
    for age in range(cache.KEPT + 2):
        (tmp_path / str(age)).mkdir()
        os.utime(tmp_path / str(age), (1e9 - age, 1e9 - age))
    cache.prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(map(str, range(cache.KEPT)))


# --- what is built --------------------------------------------------------------------------------
def test_two_cold_builds_are_equal(book, tmp_path):
    other = Book(tmp_path)
    code, output = other.build()
    assert code == 0, output
    assert book.bytes() == other.bytes()


def test_index_opens_the_landing_page(book):
    index = (book.html / "index.html").read_text(encoding="utf-8")
    assert 'url=book/page.html"' in index
    assert '<html lang="en">' in index


def test_labs_stand_in_the_page_without_widget_state(book):
    page = book.page()
    assert '<figure class="attn-lab">' in page
    assert "MARK OF THE FRONT END" not in page
    assert "widget-state" not in page
    assert "_esm" not in page
    assert re.search(r'<script defer="defer" src="\.\./_static/labs\.page\.js\?v=\w+">', page)
    assert (book.html / "_static/labs.css").exists()


def test_pages_ask_nobody_but_the_book(book):
    for path in book.html.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", path.read_text()):
            assert not re.search(r"""(src|href)=["']?(https?:)?//""", tag), f"{path.name}: {tag}"


def test_mathjax_is_local_and_small(book):
    assert '<script defer="defer" src="../_static/mathjax/startup.js' in book.page()
    folder = book.html / "_static/mathjax"
    assert (folder / "output/chtml/fonts/woff-v2/MathJax_Main-Regular.woff").exists()
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 1.5e6


def test_no_html_id_twice(book):
    ids = re.findall(r'\sid="([^"]*)"', book.page())
    assert len(ids) == len(set(ids))


def test_proofs_open_in_italics(book):
    assert book.page().count("<em>Proof.</em>") == 2


def test_notebook_link_gives_a_notebook_that_runs(book, execute):
    link = re.search(
        r'href="data:application/x-ipynb\+json;base64,([^"]+)" download="([^"]+)"', book.page()
    )
    assert link[2] == "page.ipynb"
    text = base64.b64decode(link[1]).decode()
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert [cell.id for cell in notebook.cells] == [f"cell-{i}" for i in range(len(notebook.cells))]
    assert text == (book.root / "_build/notebooks/page.ipynb").read_text(encoding="utf-8")
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert "**Theorem 1 (Two)**" in prose
    assert "See Theorem 1." in prose
    assert "The value is 1." in prose
    assert not re.search(r":::|\{[a-z:]+\}`|^\(\w+\)=", prose, re.MULTILINE)
    assert "run 1" in json.dumps(execute(notebook, book.root).cells[-1].outputs)


def test_page_offers_no_markdown_source(book):
    assert "_sources" not in book.page()
    assert not (book.html / "_sources").exists()


def test_jupyter_book_is_version_one():
    assert version("jupyter-book").split(".")[0] == "1"
