"""What holds the house together: entry points, settings, packaging, sources, and the built book
as a whole.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import jupytext
import nbformat
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = sorted([*(ROOT / "book").glob("*.md"), *(ROOT / "book/reference").glob("*.md")])


def run(*command, cwd=ROOT, **options):
    """Run a command and return what it did."""
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, **options
    )


# --- sources --------------------------------------------------------------------------------------
def test_toc_names_every_chapter():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    pages = [page for part in toc["parts"] for page in part["chapters"]]
    pages += [below for page in pages for below in page.get("sections", [])]
    files = [toc["root"], *(page["file"] for page in pages)]
    assert {f"{file}.md" for file in files} == {str(p.relative_to(ROOT)) for p in CHAPTERS}
    assert len(files) == len(CHAPTERS)


OPEN_AND_SAVE = """
import sys
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from jupytext.sync_contentsmanager import build_sync_jupytext_contents_manager_class as jupytext
manager = jupytext(LargeFileManager)(root_dir=".")
for name in sys.argv[1:]:
    model = manager.get(name, type="notebook")
    model["content"]["metadata"]["language_info"] = {"name": "python", "version": "3.99"}
    manager.save(model, name)
"""


def test_jupyterlab_saves_chapters_as_they_are(tmp_path):
    """Open and save every notebook as JupyterLab does: not a byte may change."""
    shutil.copy(ROOT / "jupytext.toml", tmp_path)
    pages = [p for p in CHAPTERS if p.read_text(encoding="utf-8").startswith("---\njupytext:")]
    for path in pages:
        shutil.copy(path, tmp_path)
    names = [path.name for path in pages]
    done = run(sys.executable, "-c", OPEN_AND_SAVE, *names, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for path in pages:
        assert (tmp_path / path.name).read_text(encoding="utf-8") == path.read_text(
            encoding="utf-8"
        )


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_carry_no_outputs_and_no_tex_macros(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\\(newcommand|def|renewcommand)\b", text)
    for cell in jupytext.read(path).cells:
        assert not cell.get("outputs")


def test_jupyterlab_opens_chapters_as_notebooks():
    settings = json.loads((ROOT / ".jupyter/labconfig/default_setting_overrides.json").read_text())
    viewers = settings["@jupyterlab/docmanager-extension:plugin"]["defaultViewers"]
    assert viewers == {"markdown": "Jupytext Notebook", "myst": "Jupytext Notebook"}


# --- the front end's bundle -----------------------------------------------------------------------
def test_bundle_is_fresh(node_modules, tmp_path):
    """What is committed in static/ is what esbuild makes of js/ now."""
    labs = tmp_path / "attn_lib/labs"
    ignore = shutil.ignore_patterns("node_modules", "__pycache__")
    shutil.copytree(ROOT / "attn_lib", labs.parent, ignore=ignore)
    (labs / "js/node_modules").symlink_to(node_modules, target_is_directory=True)
    shutil.rmtree(labs / "static")
    done = run(shutil.which("npm"), "run", "build", cwd=labs / "js")
    assert done.returncode == 0, done.stderr
    for path in (ROOT / "attn_lib/labs/static").iterdir():
        made = labs / "static" / path.name
        assert made.read_bytes() == path.read_bytes(), f"{path.name} is stale: npm run build"


def test_bundle_is_small():
    """What a page loads for all its labs, as servers send it."""
    for name in ("labs.page.js", "labs.mjs"):
        assert len(gzip.compress((ROOT / "attn_lib/labs/static" / name).read_bytes())) <= 70_000


# --- the built book -------------------------------------------------------------------------------
@pytest.mark.build
def test_pictures_say_what_they_show(built_book):
    for path in (built_book / "book").rglob("*.html"):
        for image in re.findall(r"<img\b[^>]*>", path.read_text(encoding="utf-8")):
            alt = re.search(r'alt="([^"]*)"', image)
            assert alt and len(alt[1]) > 10, f"{path.name}: {image[:120]}"
            assert not alt[1].startswith("../_images"), f"{path.name}: {alt[1]}"
        for drawing in re.findall(r"<svg\b[^>]*>", path.read_text(encoding="utf-8")):
            if 'role="img"' in drawing:
                words = re.search(r'aria-label="([^"]*)"', drawing)
                assert words and len(words[1]) > 10, f"{path.name}: {drawing}"


@pytest.mark.build
def test_pages_hold_no_widget_state_and_no_id_twice(built_book):
    for path in built_book.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert "widget-state" not in page
        assert '"_esm"' not in page
        ids = re.findall(r'\sid="([^"]*)"', page)
        assert len(ids) == len(set(ids)), path.name


@pytest.mark.build
def test_notebooks_hold_no_myst(built_book):
    for path in (built_book.parent / "notebooks").glob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                prose = re.sub(r"```.*?```|``.*?``", "", cell.source, flags=re.DOTALL)
                assert not re.search(r":::|\{[a-z][a-z:-]*\}`|^\([\w-]+\)=", prose, re.MULTILINE)


@pytest.mark.build
def test_notebooks_hold_the_cells_of_their_chapters_and_no_dead_links(built_book):
    notebooks = {path.stem: path for path in (built_book.parent / "notebooks").glob("*.ipynb")}
    assert {"index", "qkv", "reference"} <= set(notebooks)
    for name, path in notebooks.items():
        chapter = jupytext.read(ROOT / "book" / f"{name}.md")
        given, written = (
            [(cell.source, cell.metadata) for cell in each.cells if cell.cell_type == "code"]
            for each in (nbformat.read(path, as_version=4), chapter)
        )
        assert given == written
        assert set(re.findall(r"\]\((\S+)\.ipynb\)", path.read_text("utf-8"))) <= set(notebooks)


@pytest.mark.build
def test_zip_of_notebooks_runs_elsewhere(built_book, tmp_path, execute):
    done = run(sys.executable, "book/_ext/attn_book/pack.py")
    assert done.returncode == 0, done.stderr
    (archive,) = (built_book.parent / "notebooks").glob("*.zip")
    zipfile.ZipFile(archive).extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    assert {path.stem for path in folder.glob("*.ipynb")} >= {"index", "qkv"}
    for name in ("attn_lib/labs/static/labs.mjs", "requirements.txt", "LICENSE", "README.txt"):
        assert (folder / name).is_file()
    assert not list(folder.rglob("node_modules"))

    notebook = nbformat.read(folder / "qkv.ipynb", as_version=4)
    where = nbformat.v4.new_code_cell("import attn_lib\nprint(attn_lib.__file__)", id="where")
    notebook.cells.append(where)
    where = execute(notebook, folder).cells[-1]
    assert os.path.realpath(where.outputs[0].text.strip()).startswith(os.path.realpath(folder))


def test_the_readme_names_every_room():
    """A newcomer finds any piece from the tree alone."""
    tree = (ROOT / "README.md").read_text(encoding="utf-8").split("## The tree")[1].split("```")[1]
    rooms = [
        path.name + "/" * path.is_dir()
        for path in (ROOT / "attn_lib").iterdir()
        if path.suffix == ".py" or path.is_dir()
    ]
    missing = {name for name in rooms if name not in tree and not name.startswith("__")}
    assert missing == set()
