"""One folder a lab: to copy a folder is to make a lab, in Python and in the front end."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attn_lib import labs, softmax

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(path.parent for path in (ROOT / "attn_lib/labs").glob("*/lab.py"))
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def test_every_folder_holds_the_lab_of_its_name():
    names = ["".join(word.title() for word in path.name.split("_")) + "Lab" for path in FOLDERS]
    assert [*sorted(names), "overview"] == labs.__all__
    for folder, name in zip(FOLDERS, names, strict=True):
        assert getattr(labs, name).__module__ == f"attn_lib.labs.{folder.name}.lab"
        assert (folder / "lab.js").is_file() and (folder / "__init__.py").is_file()


@pytest.fixture
def library(node_modules, tmp_path):
    """Return a copy of attn_lib, with what its front end is built by."""
    ignore = shutil.ignore_patterns("node_modules", "__pycache__")
    copy = Path(shutil.copytree(ROOT / "attn_lib", tmp_path / "attn_lib", ignore=ignore))
    (copy / "labs/js/node_modules").symlink_to(node_modules, target_is_directory=True)
    return copy


def run(library, *command):
    environment = {**os.environ, "PYTHONPATH": str(library.parent)}
    return subprocess.run(command, cwd=library, capture_output=True, text=True, env=environment)


def built(library, name):
    """Build the front end, save the lab, and give the file."""
    save = f"from attn_lib.labs import {name}; {name}(name='new').save('lab.html')"
    for command in (["node", "labs/js/build.mjs"], [sys.executable, "-W", "error", "-c", save]):
        done = run(library, *command)
        assert done.returncode == 0, done.stderr
    return library / "lab.html"


def test_a_copied_folder_is_a_lab(library):
    pair = Path(shutil.copytree(library / "labs/heads", library / "labs/two_heads"))
    for path in pair.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        text = text.replace("HeadsLab", "TwoHeadsLab").replace("labs.heads", "labs.two_heads")
        path.write_text(text, encoding="utf-8")
    page = built(library, "TwoHeadsLab").read_text(encoding="utf-8")
    assert 'data-lab="TwoHeadsLab"' in page
    assert "TwoHeadsLab" in page[page.rindex("<script>") :]


def test_a_new_lab_works_before_anything_is_written(library, chromium):
    done = run(library, "node", "labs/js/new.mjs", "two_keys")
    assert done.returncode == 0, done.stderr
    page, complaints = chromium.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(built(library, "TwoKeysLab").as_uri())
    figure = page.locator("figure[data-lab=TwoKeysLab][data-ready=true]")
    cells = figure.locator("td[data-value]")
    for gap in (1.0, -2.5):
        figure.locator("[data-control=gap]").fill(str(gap))
        page.evaluate(DRAWN)
        expected = softmax([gap, 0.0])
        shown = [float(cells.nth(j).get_attribute("data-value")) for j in range(2)]
        np.testing.assert_allclose(shown, expected, rtol=1e-12)
    page.close()
    assert complaints == []


@pytest.mark.parametrize(
    ("name", "words"),
    [("Pair", "small letters"), ("", "small letters"), ("heads", "there already")],
)
def test_a_new_lab_needs_a_name_of_its_own(library, name, words):
    done = run(library, "node", "labs/js/new.mjs", name)
    assert done.returncode != 0 and words in done.stderr
