"""The back matter misses nothing: every lab in the gallery, every module on the reference page."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
import yaml
from numpydoc.docscrape import FunctionDoc

import attn_lib
from attn_lib import checks, labs, proofs

BOOK = Path(__file__).parents[1] / "book"
LABS = [name for name in labs.__all__ if name.endswith("Lab")]


def test_the_gallery_shows_each_lab_once():
    made = re.findall(r"^labs\.(\w+)\(", (BOOK / "gallery.md").read_text(), re.M)
    assert sorted(made) == sorted(LABS)


def test_the_overview_lists_each_lab_with_its_settings():
    rows = labs.overview().rows()
    assert [name for name, _, _ in rows] == sorted(LABS)
    for name, what, settings in rows:
        assert what.endswith(".") and set(settings) <= set(getattr(labs, name).class_trait_names())
    assert labs.overview()._repr_markdown_().count("\n| `") == len(LABS)


@pytest.mark.parametrize("name", LABS)
def test_the_reference_says_how_a_lab_is_made(name):
    lab = getattr(labs, name)
    assert f"\n.. autoclass:: attn_lib.labs.{name}\n" in (BOOK / "reference.md").read_text()
    said = FunctionDoc(lab)
    given = {part for each in said["Parameters"] for part in each.name.split(", ")}
    named = {p.name for p in inspect.signature(lab.__init__).parameters.values() if p.kind == 3}
    assert given == {*lab.settings, "name", "title"} | named
    assert {each.type for each in said["Raises"]} >= {"TypeError", "ValueError"}


@pytest.mark.parametrize("name", LABS)
def test_a_lab_names_a_chapter_that_shows_it(name):
    toc = yaml.safe_load((BOOK.parent / "_toc.yml").read_text())
    chapters = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    number = int(re.search(r"Chapter (\d+)", inspect.getdoc(getattr(labs, name)))[1])
    assert f"{name}(" in (BOOK.parent / f"{chapters[number - 1]}.md").read_text()


def members_on_the_page():
    """The modules that the page goes through, with all that it says of each."""
    page = (BOOK / "reference.md").read_text()
    return re.findall(r"automodule:: ([\w.]+)\n   :members:\n", page)


def test_the_reference_covers_every_module():
    found = pkgutil.walk_packages(attn_lib.__path__, "attn_lib.")
    modules = {m.name for m in found if not m.ispkg and not m.name.startswith("attn_lib.labs.")}
    assert sorted(members_on_the_page()) == sorted(modules)


@pytest.mark.parametrize("room", [checks, proofs])
def test_the_reference_names_every_check_and_proof(room):
    """Each is listed by the file it is written in, which is what the page goes through."""
    listed = []
    for name in members_on_the_page():
        if name.startswith(room.__name__):
            module = importlib.import_module(name)
            listed += getattr(module, "__all__", vars(module))
    assert set(room.__all__) <= set(listed)
