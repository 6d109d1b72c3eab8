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
from types import SimpleNamespace

import nbformat
import pytest
from attn_book import assets, cache, notebooks
from sphinx.errors import ExtensionError

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
# 3. A page

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

See {prf:ref}`two` and {eq}`one`.

$$
x = 1
$$ (one)

```{code-cell} ipython3
from attn_lib.toy import Lab, VALUE
from attn_lib.book import numbers
Lab()
```

Now it is named.

```{code-cell} ipython3
:tags: [remove-cell]

numbers(value=VALUE, half=0.5)
```

The value is {eval}`value`, half of 1 is {eval}`half`.

:::{exercise} Add
:label: add
What is $2 + 2$?
:::

:::{solution-start} add
:class: dropdown
:::

Count.

```{code-cell} ipython3
print("run", VALUE)
```

:::{solution-end}
:::

:::{dropdown} *Why* so?
For no reason.
:::
"""
)
NOTEBOOK = [
    (
        "markdown",
        "# 3. A page\n\n**Theorem 3.1 (Two)**\n\n$1 + 1 = 2$\n\n*Proof.* Count.\n\n∎\n\n"
        "*Proof.* Count again.\n\n∎\n\nSee Theorem 3.1 and (3.1).\n\n$$\nx = 1\n\\tag{3.1}\n$$",
    ),
    ("markdown", notebooks.NEEDS),
    ("code", "from attn_lib.toy import Lab, VALUE\nfrom attn_lib.book import numbers\nLab()"),
    ("markdown", "Now it is named."),
    ("code", "numbers(value=VALUE, half=0.5)"),
    (
        "markdown",
        "The value is 1, half of 1 is 0.50.\n\n**Exercise 3.1 (Add)**\n\nWhat is $2 + 2$?\n\n"
        "**Solution to Exercise 3.1 (Add)**\n\nCount.",
    ),
    ("code", 'print("run", VALUE)'),
    (
        "markdown",
        "<details>\n<summary><b>Why so?</b></summary>\n\nFor no reason.\n\n</details>",
    ),
]
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
        (library / "__init__.py").write_text("")
        for name in ("book.py", "words.py"):
            shutil.copy(ROOT / "attn_lib" / name, library)
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

    def build(self, *, killed=False):
        """Run ``make.py book`` with the packages of these tests; return (exit code, output).

        A `killed` build has no time to take away what it has written.
        """
        code = "import make, sys, pathlib; make.prepare = lambda lists: None; "
        code += "make.forget = lambda *names: None; " if killed else ""
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


def test_a_cell_that_raises_leaves_no_page(fresh):
    fresh.write("book/page.md", PAGE + RAISES)
    assert_refused(fresh, "ZeroDivisionError")


def test_warnings_fail_twice_and_leave_no_page(fresh):
    """A build that is killed has read its pages; the next must complain about them all the same."""
    fresh.write("book/page.md", PAGE + WARNS)
    code, output = fresh.build(killed=True)
    assert code != 0, output
    assert fresh.html.exists()
    assert_refused(fresh, "nowhere", "unnamed", "stderr")


def assert_refused(book, *complaints):
    """A build must fail, say why, and leave nothing that the next could go on with."""
    code, output = book.build()
    assert code != 0, output
    for complaint in complaints:
        assert complaint in output
    for left in ("html", "notebooks", ".doctrees", "jupyter_execute"):
        assert not (book.root / "_build" / left).exists()


def test_missing_lab_script_is_named(tmp_path):
    config = SimpleNamespace(html_static_path=[])
    with pytest.raises(ExtensionError, match=r"labs\.page\.js and labs\.css missing in attn_lib"):
        assets.add_labs(SimpleNamespace(srcdir=tmp_path), config)


# --- what changes are noticed ---------------------------------------------------------------------
def test_changes_are_noticed_reverts_find_their_cache_and_two_cold_builds_are_equal(fresh, book):
    toy = fresh.root / "attn_lib/toy.py"
    seen = []
    for source in (TOY, TOY.replace("VALUE = 1", "VALUE = 2"), TOY):
        toy.write_text(source)
        code, output = fresh.build()
        assert code == 0, output
        assert "Executing notebook" not in output  # each is run before MyST-NB asks for it
        seen.append("Executed book/page" in output)
        if len(seen) == 1:
            assert fresh.bytes() == book.bytes()
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
        "attn_lib/colors.json": "cells",
        "attn_lib/labs/toy/data.json": "cells",
        "book/data/numbers.txt": "cells",
        "attn_lib/labs/static/labs.css": "pages",
        "book/_ext/attn_book/mends.py": "pages",
        "book/_static/book.css": "pages",
        "book/_templates/page.html": "pages",
        "_toc.yml": "pages",
        "attn_lib/labs/js/dom.js": "neither",
        "attn_lib/labs/js/package.json": "neither",
        "attn_lib/labs/toy/lab.js": "neither",
        "attn_lib/labs/toy/lab.css": "neither",
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


def test_numbers_are_those_of_the_chapter(book):
    page = book.page()
    for kind in ("Theorem", "Exercise"):
        assert f"{kind} 3.1" in page
    assert "(3.1)" in page and "(1)" not in page
    # Sphinx puts no number of its own before a title
    assert set(re.findall(r"<h1>(.*?)<", page)) == {"3. A page"}


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
    assert [(cell.cell_type, cell.source) for cell in notebook.cells] == NOTEBOOK
    assert "run 1" in json.dumps(execute(notebook, book.root).cells[-2].outputs)


def test_page_offers_no_markdown_source(book):
    assert "_sources" not in book.page()
    assert not (book.html / "_sources").exists()


def test_jupyter_book_is_version_one():
    assert version("jupyter-book").split(".")[0] == "1"
