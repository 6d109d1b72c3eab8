"""Chapters run beside one another before Sphinx reads them: small books of one or two cells."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.build

CONF = """
from attn_book import execute
execute.cores = lambda: {cores}
execute.REPORT = 0.2
extensions = ["myst_nb", "attn_book.execute"]
exclude_patterns = ["_build"]
root_doc = "long"
suppress_warnings = ["toc.not_included"]
nb_execution_mode = "cache"
nb_execution_timeout = {timeout}
nb_execution_raise_on_error = True
nb_merge_streams = True
"""
PAGE = """\
---
jupytext: {{text_representation: {{extension: .md, format_name: myst}}}}
kernelspec: {{display_name: Python 3, language: python, name: {kernel}}}
---

# {title}

```{{code-cell}} ipython3
{code}
```
"""
# each waits for the other: they end only when they run at the same time
MEET = """\
import pathlib, time
pathlib.Path("{here}").touch()
while not pathlib.Path("{there}").exists():
    time.sleep(0.05)
time.sleep(0.5)
print("met", "{there}")"""
THREADS = 'import os; print("threads", os.environ["OMP_NUM_THREADS"])'
SLOW = 'import time; print("a", end="", flush=True); time.sleep(0.5); print("b")'
WIDGET = """\
import ipywidgets
out = ipywidgets.Output()
with out:
    print("caught")
out"""


class Book:
    """Pages in a folder, and Sphinx with MyST-NB and the module under test."""

    def __init__(self, folder, cores, timeout=60):
        self.folder = folder
        self.html = folder / "_build/html"
        (folder / "conf.py").write_text(CONF.format(cores=cores, timeout=timeout))

    def write(self, name, code, kernel="python3", more=""):
        """Write a page with one cell."""
        text = PAGE.format(title=name, code=code, kernel=kernel) + more
        (self.folder / f"{name}.md").write_text(text)

    def build(self):
        """Return the exit code and what was said."""
        unset = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
        path = os.pathsep.join(map(str, (ROOT, ROOT / "book/_ext")))
        done = subprocess.run(
            [sys.executable, "-m", "sphinx", "--no-color", ".", self.html],
            cwd=self.folder,
            env={**unset, "PYTHONPATH": path, "JUPYTER_PREFER_ENV_PATH": "1"},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    def text(self, name):
        """Return the HTML of a page."""
        return (self.html / f"{name}.html").read_text()


def test_chapters_run_at_the_same_time_and_sphinx_finds_their_outputs(tmp_path):
    book = Book(tmp_path, cores=2)
    book.write("long", MEET.format(here="a", there="b"), more="\nProse.\n" * 50)
    book.write("short", MEET.format(here="b", there="a"))
    (tmp_path / "prose.md").write_text("# Nothing to run\n")
    code, said = book.build()
    assert code == 0, said
    assert "met b" in book.text("long")
    assert "met a" in book.text("short")
    assert "Executing 2 chapters, 2 at a time" in said
    assert "(0 of 2); running: long, short" in said
    assert "(2 of 2)" in said
    assert said.count("Using cached notebook") == 2
    assert "Executing notebook" not in said  # MyST-NB's word for running one itself


def test_what_a_killed_build_left_half_written_is_made_anew(tmp_path):
    book = Book(tmp_path, cores=1)
    book.write("long", 'print("out" + "put")')
    assert book.build()[0] == 0
    for harm in (lambda path: path.write_text('{"cells": ['), Path.unlink):
        harm(next(tmp_path.glob("_build/.jupyter_cache/executed/*/base.ipynb")))
        os.utime(tmp_path / "long.md")
        code, said = book.build()
        assert code == 0, said
        assert "Executing 1 chapter, 1 at a time" in said
        assert "output" in book.text("long")


def test_failing_chapters_are_all_named_and_the_others_kept(tmp_path):
    book = Book(tmp_path, cores=1, timeout=3)
    book.write("long", "1", more="\nProse.\n" * 50)
    book.write("breaks", "1 / 0")
    book.write("hangs", "import time; time.sleep(60)")
    code, said = book.build()
    assert code != 0
    assert "A chapter does not run" in said
    assert "breaks:" in said
    assert "ZeroDivisionError" in said
    assert "hangs:" in said
    assert "timed out" in said
    assert "Executed long" in said
    assert "Executing notebook" not in said

    # A chapter that could not begin is left to MyST-NB, which says why.
    book.write("breaks", "2")
    book.write("hangs", "1", kernel="python-of-the-future")
    code, said = book.build()
    assert code != 0
    assert "No such kernel named python-of-the-future" in said
    assert "Executed breaks" in said
    assert "Executed long" not in said


def test_longest_chapter_runs_first_and_outputs_depend_on_no_speed(tmp_path):
    book = Book(tmp_path, cores=1)
    book.write("a", SLOW)
    book.write("w", WIDGET)
    book.write("long", THREADS, more="\nProse.\n" * 50)
    code, said = book.build()
    assert code == 0, said
    assert said.index("Executed long") < said.index("Executed a")
    assert "threads 1" in book.text("long")
    assert "<span></span>ab\n" in book.text("a")
    assert "Executing notebook" not in said
    assert "widget-state" not in book.text("w")
