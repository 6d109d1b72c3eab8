"""Every proof of every chapter holds, breaks with any of its steps, and can be printed.

A new proof is tried here without being named: in its chapter's test stand the false statements
that it must find out.
"""

import inspect
import re
from pathlib import Path

import pytest
import yaml
from proving import built, changed

import attn_lib
from attn_lib import proofs
from attn_lib.proofs import Proof

ROOM = Path(proofs.__file__).parent
BOOK = Path(__file__).parents[2] / "book"
TOC = yaml.safe_load((BOOK.parent / "_toc.yml").read_text(encoding="utf-8"))
CHAPTERS = {path.stem: getattr(proofs, path.stem) for path in sorted(ROOM.glob("[a-z]*.py"))}
STEPS = CHAPTERS.pop("steps")
NAMES = [name for name in proofs.__all__ if name not in ("Proof", "Step")]

every_proof = pytest.mark.parametrize("proof", [getattr(proofs, name) for name in NAMES], ids=NAMES)


@every_proof
def test_holds(proof):
    assert built(proof).holds, built(proof)
    assert built(proof).failing == ()
    assert built(proof).steps[-1].relation in "=≥"  # the theorem comes last


@every_proof
def test_no_step_survives_a_change(proof):
    for i, step in enumerate(built(proof).steps):
        if step.relation == ":=":
            with pytest.raises(ValueError, match="claims nothing"):
                built(proof).claiming(0, step=i)
        else:
            false = built(proof).claiming(changed(step), step=i).steps[i]
            assert not false.holds, false


@every_proof
def test_prints_as_text_and_as_markdown(proof):
    text, markdown = repr(built(proof)), built(proof)._repr_markdown_()
    assert not re.search(r"[\\${}]|\*\*[A-Z]", text), text
    assert markdown.count("$$") == 2 * len(built(proof).steps)
    for step in built(proof).steps:
        assert len(step.reason) > 15 and step.reason in markdown
    environments = set(re.findall(r"\\begin\{(\w+)\}", markdown))
    assert environments <= {"matrix", "cases"}  # plain TeX: nothing to define in a page
    assert not re.search(r"\\(?:newcommand|def|mbox|require)\b", markdown)


@pytest.mark.parametrize("chapter", CHAPTERS.values(), ids=CHAPTERS)
def test_a_chapter_lists_all_its_proofs(chapter):
    made = [
        name
        for name, function in vars(chapter).items()
        if inspect.isfunction(function)
        and function.__module__ == chapter.__name__
        and inspect.signature(function).return_annotation is Proof
    ]
    assert sorted(made) == chapter.__all__ != []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_shows_its_proofs(chapter):
    """In the open or behind a fold: the last line of a cell, on its page or on one below it."""
    name = f"book/{chapter.replace('_', '-')}"
    listed = [page for part in TOC["parts"] for page in part["chapters"]]
    [entry] = [page for page in listed if page["file"] == name]
    files = [name, *(below["file"] for below in entry.get("sections", []))]
    page = "\n".join((BOOK.parent / f"{file}.md").read_text(encoding="utf-8") for file in files)
    shown = set(re.findall(r"^(\w+)\(\)\n```$", page, re.M))
    assert set(CHAPTERS[chapter].__all__) <= shown


def test_no_proof_hides_another_name():
    """In a chapter proofs stand beside the functions of attn_lib and the names of its rooms."""
    assert len(set(NAMES)) == len(NAMES)
    assert not set(NAMES) & {*attn_lib.__all__, *CHAPTERS}
