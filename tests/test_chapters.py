"""What every chapter must have, read from its source; the build runs the cells."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import jupytext
import pytest
import yaml
from pybtex.database import parse_string

import attn_lib
from attn_lib import checks, labs
from attn_lib.examples import CHEF

ROOT = Path(__file__).parents[1]
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
LISTED = [page for part in TOC["parts"] for page in part["chapters"]]
LISTED += [below for page in LISTED for below in page.get("sections", [])]
FILES = [TOC["root"], *(page["file"] for page in LISTED)]
PAGES = {f[len("book/") :]: (ROOT / f"{f}.md").read_text(encoding="utf-8") for f in FILES}
CHAPTERS = {name: text for name, text in PAGES.items() if re.search(r"^# \d+\. ", text, re.M)}
NOTEBOOKS = {name: text for name, text in PAGES.items() if text.startswith("---\njupytext:")}
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```$", re.M | re.S)
FENCE = re.compile(r"^ *(`{3,}|:{3,})\{(?P<name>[\w:.+-]+)\} *(?P<title>.*)$", re.M)

chapter = pytest.mark.parametrize("text", CHAPTERS.values(), ids=CHAPTERS)
notebook = pytest.mark.parametrize("name", NOTEBOOKS)
page = pytest.mark.parametrize("text", PAGES.values(), ids=PAGES)


def directives(text: str, *names: str) -> list[str]:
    """Titles or arguments of the directives with these names."""
    return [found["title"].strip() for found in FENCE.finditer(text) if found["name"] in names]


def labels(text: str, name: str) -> list[str]:
    """Labels of the directives of one kind."""
    opened = rf"^ *(?:`{{3,}}|:{{3,}})\{{{name}\}}[^\n]*\n(?:[^\n]*\n)??:label: (\S+)"
    return re.findall(opened, text, re.M)


def section(text: str, heading: str) -> str:
    """Text of one section, up to the next heading of its level."""
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert found, f"there is no section {heading!r}"
    return found[1]


def test_there_is_a_chapter():
    assert CHAPTERS and "index" in NOTEBOOKS


@notebook
def test_source_survives_a_round_trip(name):
    source = NOTEBOOKS[name]
    config = jupytext.config.load_jupytext_configuration_file(str(ROOT / "jupytext.toml"))
    read = jupytext.reads(source, fmt="md:myst")
    kept = jupytext.writes(read, fmt="md:myst", config=config)
    assert kept.rstrip("\n") == source.rstrip("\n")
    outputs = [cell for cell in read.cells if cell.get("outputs")]
    assert not outputs


@page
def test_only_markdown_that_jupyterlab_shows_too(text):
    prose = CELL.sub("", text)
    assert r"\newcommand" not in prose and r"\def" not in prose
    assert "literalinclude" not in prose
    assert not re.search(
        r"!\[[^\]]*\]\(https?:|:{3,}\{figure\} https?:|`{3}\{figure\} https?:", prose
    )
    assert not re.search(
        r"<(?!https?:)[a-zA-Z/][^>\n]*>", re.sub(r"`[^`\n]*`|\$[^$\n]*\$", "", prose)
    )


@chapter
def test_opens_with_objectives_needs_and_time(text):
    box = re.search(r"^:::\{dropdown\} What you will be able to do\n(.*?)^:::$", text, re.M | re.S)
    assert box, "the objectives come first"
    assert 3 <= len(re.findall(r"^- \*\*\w+\*\*", box[1], re.M)) <= 5
    assert "*You need:*" in box[1]
    assert text.index(box[0]) < text.index("\n## ")


@chapter
def test_the_time_it_takes_is_measured(text):
    """Half an hour for 4000 words, half a minute for code one reads, three for a lab, ten to solve.

    Who reads with a pencil takes longer; but all chapters are measured alike.
    """
    said = re.search(r"\*Time:\* about (\d+) minutes; exercises (\d+) more\.", text)
    assert said, "*Time:* about 45 minutes; exercises 60 more."
    rest = text.replace(section(text, "Exercises"), "")
    cells = CELL.findall(rest)
    code = [cell for cell in cells if not re.search(r"tags: \[.*(?:remove|hide)-(?:cell|in)", cell)]
    prose = re.sub(r"\$\$.*?\$\$|\$[^$]*\$", " x ", CELL.sub("", rest), flags=re.S)
    words = len(re.findall(r"[A-Za-z][A-Za-z'’-]*", prose))
    labs_of = len(re.findall(r"^\w+Lab\(", "".join(cells), re.M))
    minutes = words / 4000 * 30 + len(code) / 2 + 3 * labs_of
    assert int(said[1]) == pytest.approx(minutes, rel=0.15), (words, len(code), labs_of, minutes)
    assert int(said[2]) == pytest.approx(
        10 * len(directives(text, "exercise", "exercise-start")), rel=0.25
    )


@chapter
def test_labs_are_opened_by_a_prediction(text):
    """All but the small one at the top of a chapter, which is there to be played with."""
    calls = re.finditer(r"^\w+Lab\(.*?\)$", text, re.M | re.S)
    places = [call.start() for call in calls if '-first"' not in call[0]]
    assert places, "a chapter has a lab"
    for before, at in zip([0, *places], places, strict=False):
        assert "**Predict.**" in text[before:at] and "**Try.**" in text[before:at]
    assert directives(text, "dropdown").count("Explain") == len(places)


def test_every_lab_has_a_name_of_its_own():
    names: Counter[str] = Counter()
    for text in PAGES.values():
        for cell in CELL.findall(text):
            for call in re.findall(r"\b\w+Lab\((.*?)\)$", cell, re.M | re.S):
                found = re.search(r'name="([a-z0-9-]+)"', call)
                assert found, f"a lab without name=: {call}"
                names[found[1]] += 1
    assert names and max(names.values()) == 1, names


@notebook
def test_every_lab_it_imports_exists(name):
    cells = "".join(CELL.findall(NOTEBOOKS[name]))
    imported = ", ".join(re.findall(r"^from attn_lib\.labs import \(?([\w, \n]+)", cells, re.M))
    assert set(re.findall(r"\w+Lab\b", imported)) <= set(labs.__all__)


@chapter
def test_exercises_have_solutions(text):
    asked = labels(text, "exercise") + labels(text, "exercise-start")
    solved = directives(text, "solution", "solution-start")
    assert len(asked) >= 6
    assert sorted(asked) == sorted(solved)
    assert len(directives(text, "solution-start")) == len(directives(text, "solution-end"))
    folded = re.findall(r"\{solution(?:-start)?\} \S+\n:class: dropdown\n", text)
    assert len(folded) == len(solved), "every solution is folded"
    for kind in ("By hand", "In code", "Proof", "Open"):
        assert re.search(rf"^{kind}: ", text, re.M), f"no exercise begins with {kind!r}"


@chapter
def test_check_yourself_asks_five_questions(text):
    questions = re.split(r"^\*\*\d+\. ", section(text, "Check yourself"), flags=re.M)[1:]
    assert len(questions) >= 5
    for question in questions:
        options = directives(question, "dropdown")
        assert [option[:2] for option in options] == ["A.", "B.", "C.", "D."][: len(options)]
        assert len(options) >= 3
        assert len(re.findall(r"^(?:Yes|It is impossible)\b", question, re.M)) == 1


def right_options():
    """Yield chapter, right letter, and whether the right option is the longest, by question."""
    for name, text in CHAPTERS.items():
        for question in re.split(r"^\*\*\d+\. ", section(text, "Check yourself"), flags=re.M)[1:]:
            option = r"^(?:`{3,}|:{3,})\{dropdown\} ([A-D])\. (.*)\n([^\n]*)"
            options = re.findall(option, question, re.M)
            [right] = [o for o in options if re.match(r"Yes\b|It is impossible\b", o[2])]
            yield name, right[0], len(right[1]) == max(len(o[1]) for o in options)


def test_a_question_cannot_be_answered_by_its_letter_or_length():
    found = [*right_options()]
    letters = Counter(letter for _, letter, _ in found)
    assert max(letters.values()) < 0.35 * len(found) and min(letters.values()) > 0.15 * len(found)
    assert set(letters) == set("ABCD")
    longest = Counter(name for name, _, long in found if long)
    assert max(longest.values()) <= 2 and sum(longest.values()) < 0.3 * len(found)


@chapter
def test_no_answer_stands_open(text):
    """Right values are in the checks, and every exercise that can be checked is."""
    code = "".join(CELL.findall(text))
    assert "check_value" not in code and "mistakes=" not in code and "right=" not in code
    asked = set(re.findall(r'\bcheck\("([\w-]+)"', code))
    box = r"\{exercise(?:-start)?\}[^\n]*\n:label: (\S+)\n(?::[^\n]*\n)*(?:`{3,}\n)?"
    kinds = dict(re.findall(box + r"\s*(In code|By hand)?", text))
    assert asked <= set(kinds)
    assert {name for name, kind in kinds.items() if kind} <= asked


def test_every_check_is_asked_for_in_a_chapter():
    code = "".join("".join(CELL.findall(text)) for text in CHAPTERS.values())
    assert set(re.findall(r'\bcheck\("([\w-]+)"', code)) == set(checks.EXERCISES)


@page
def test_a_chapter_is_called_by_its_number(text):
    for said, name in re.findall(r"\[[Cc]hapter (\d+)\]\(([\w-]+)\.md", text):
        assert re.search(rf"^# {said}\. ", PAGES[name], re.M), (said, name)


ENTRIES = re.search(r"^```\{glossary\}\n(.*?)^```$", PAGES["glossary"], re.M | re.S)[1].split(
    "\n\n"
)
GLOSSARY = [[line for line in entry.split("\n") if re.match(r"\S", line)] for entry in ENTRIES]


def test_the_glossary_is_in_order_and_every_word_is_used():
    first = [names[0].lower() for names in GLOSSARY]
    assert first == sorted(set(first)) and len(first) > 60
    used = {term.lower() for text in CHAPTERS.values() for term in terms(text)}
    assert used <= {name.lower() for names in GLOSSARY for name in names}
    unused = [names[0] for names in GLOSSARY if not used & {name.lower() for name in names}]
    assert not unused


def terms(text):
    """Words of the glossary that a text links to."""
    return [
        found[1] or found[2]
        for found in re.finditer(r"\{term\}`(?:[^`<]*<([^`>]+)>|([^`<]+))`", text)
    ]


@chapter
def test_words_of_the_field_lead_to_the_glossary_at_their_first_use(text):
    assert len(set(terms(text))) >= 4
    assert len(set(terms(text))) == len(terms(text)), "once, at the first use"


@chapter
def test_ends_with_mistakes_summary_and_sources(text):
    mistakes = section(text, "Common mistakes")
    assert mistakes.count("*Symptom:*") == mistakes.count("*Cause:*") == mistakes.count("*Fix:*")
    assert mistakes.count("*Symptom:*") >= 3
    assert section(text, "Summary").count("\n- ") >= 3
    assert "{cite:t}" in section(text, "Further reading")
    assert "{bibliography}" not in text  # one page holds it: a source may serve several chapters


@page
def test_figures_say_what_they_show(text):
    for cell in CELL.findall(text):
        if "plt.show()" in cell or "savefig" in cell:
            assert re.search(r"^ +alt: \S", cell, re.M) and re.search(r"^ +caption: \S", cell, re.M)
        if re.search(r"page=\w+\(", cell):
            assert "alt=" in cell


@page
def test_every_number_in_the_text_is_named_by_a_cell_before_it(text):
    for use in re.finditer(r"\{eval\}`([a-zA-Z]\w*)`", CELL.sub(lambda m: " " * len(m[0]), text)):
        before = "".join(CELL.findall(text[: use.start()]))
        prefixed = any(use[1].startswith(p) for p in re.findall(r'\("(\w+_)", \w+\)', before))
        assert prefixed or re.search(rf"\bnumbers\([^`]*?\b{use[1]}=", before), use[1]


@page
def test_references_exist(text):
    everything = "\n".join(PAGES.values())
    known = set(re.findall(r"^\(([\w-]+)\)=$", everything, re.M))
    known |= set(re.findall(r"^\s*:label: (\S+)$", everything, re.M))
    known |= set(re.findall(r"^\$\$ \(([\w-]+)\)$", everything, re.M))
    known |= set(re.findall(r"^ +name: (\S+)$", everything, re.M))
    entries = re.findall(r"^@\w+\{(\S+),$", (ROOT / "book/references.bib").read_text("utf-8"), re.M)
    for role, target in re.findall(r"\{(eq|ref|numref|prf:ref|cite:[tp])\}`([^`]+)`", text):
        assert target in (entries if role.startswith("cite") else known), (role, target)


def test_every_source_stands_once_and_whole():
    text = (ROOT / "book/references.bib").read_text("utf-8")
    assert not re.search(r"[^\n]\n@", text), "an empty line stands before each entry"
    keys = parse_string(text, "bibtex").entries.keys()  # refuses what is cut off or stands twice
    assert len(keys) == text.count("\n@") + text.startswith("@")


def test_the_landing_page_links_to_every_page_and_no_other():
    linked = set(re.findall(r"\]\(([\w-]+)\.md\)", PAGES["index"]))
    assert linked == {name for name in PAGES if "/" not in name} - {"index"}


def test_the_shapes_the_text_speaks_of():
    assert "nine tokens" in PAGES["qkv"] and len(CHEF.tokens) == 9
    assert "four coordinates" in PAGES["qkv"] and len(CHEF.keys) == 4


@notebook
def test_the_mathematics_comes_from_attn_lib_and_all_else_from_its_room(name):
    """One way to import: whoever reads a chapter knows where a name lives."""
    cells = jupytext.reads(NOTEBOOKS[name], fmt="md:myst").cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    rooms = {
        "book",
        "checks",
        "diagrams",
        "examples",
        "figures",
        "labs",
        "minilm",
        "proofs",
        "training",
    }
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            assert not any(each.name.startswith("attn_lib") for each in node.names)
        if isinstance(node, ast.ImportFrom) and node.module == "attn_lib":
            assert {each.name for each in node.names} <= {*attn_lib.__all__, *rooms}
        elif isinstance(node, ast.ImportFrom) and node.module.startswith("attn_lib"):
            assert node.module.split(".")[1] in rooms
