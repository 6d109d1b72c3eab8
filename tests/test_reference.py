"""The back matter misses nothing, and what it says of chapters is true."""

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import SimpleNamespace

import jupytext
import pytest
import yaml
from attn_book import reference
from numpydoc.docscrape import FunctionDoc

import attn_lib
from attn_lib import checks, labs, minilm, proofs, training

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
LABS = [name for name in labs.__all__ if name.endswith("Lab")]
PAGES = {path.stem: path.read_text("utf-8") for path in sorted((BOOK / "reference").glob("*.md"))}
CHAPTERS = reference.chapters(ROOT)
TITLES = [
    re.search(r"^# (.+)", (ROOT / f"{file}.md").read_text("utf-8"), re.M)[1] for file in CHAPTERS
]
MEMBERS = re.findall(r"automodule:: ([\w.]+)\n   :members:\n", "".join(PAGES.values()))

# Functions of the mathematics that no chapter names, and why they are public all the same.
UNTAUGHT = {
    "block_backward": "a part of loss_and_gradients",
    "feed_forward_backward": "a part of loss_and_gradients",
    "gelu_backward": "a part of loss_and_gradients",
    "layer_norm_backward": "a part of loss_and_gradients",
    "multi_head_backward": "a part of loss_and_gradients",
    "rms_norm_backward": "the norm of later models, for a reader's own layer",
    "transformer_backward": "a part of loss_and_gradients",
    "numerical_gradient": "a part of check_gradient",
    "rms_norm": "the norm of later models, for a reader's own layer",
    "erf": "a part of gelu",
    "param_shapes": "a part of init_params",
    "convex_hull": "drawn by LookupLab",
    "log_probability": "what edge_effects measures unless told otherwise",
    "copy_batch": "a task that RECIPES name",
    "reverse_batch": "a task that RECIPES name",
    "markov_batch": "a task that RECIPES name",
    "init_reader": "a part of RECIPES",
    "reader_loss_and_gradients": "a part of RECIPES",
    "mean_of_heads": "a part of head_scores",
    "save_arrays": "a part of save_checkpoints",
    "quantise": "a part of save_checkpoints",
    "save_checkpoints": "what load_checkpoints reads, made once for the book",
    "load_minilm": "needs the weights, which the pages do without",
    "read_sentence": "needs the weights, which the pages do without",
    "write_export": "needs the weights, which the pages do without",
    "rename_tensors": "a part of load_minilm",
    "with_a_position": "a part of read_sentence",
    "beyond_mean": "stored in what read_export reads",
    "value_norms": "stored in what read_export reads",
    "value_products": "stored in what read_export reads",
}


# --- labs -----------------------------------------------------------------------------------------
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
    assert f"\n.. autoclass:: attn_lib.labs.{name}\n" in PAGES["labs"]
    said = FunctionDoc(lab)
    given = {part for each in said["Parameters"] for part in each.name.split(", ")}
    named = {p.name for p in inspect.signature(lab.__init__).parameters.values() if p.kind == 3}
    assert given == {*lab.settings, "name", "title"} | named
    assert {each.type for each in said["Raises"]} >= {"TypeError", "ValueError"}


# --- rooms ----------------------------------------------------------------------------------------
def test_the_overview_leads_to_every_page_in_the_order_of_the_contents():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    pages = [page for part in toc["parts"] for page in part["chapters"]]
    below = next(page["sections"] for page in pages if page["file"] == "book/reference")
    listed = [page["file"] for page in below]
    table = re.findall(r"^\| \{doc\}`(\S+)` \|", (BOOK / "reference.md").read_text(), re.M)
    assert listed == [f"book/{name}" for name in table]
    assert sorted(listed) == [f"book/reference/{name}" for name in PAGES]


def test_the_reference_covers_every_module_once():
    found = pkgutil.walk_packages(attn_lib.__path__, "attn_lib.")
    modules = {m.name for m in found if not m.ispkg and not m.name.startswith("attn_lib.labs.")}
    assert sorted(MEMBERS) == sorted(modules)


@pytest.mark.parametrize("room", [checks, proofs])
def test_the_reference_names_every_check_and_proof(room):
    """Each is listed by the file it is written in, which is what the page goes through."""
    listed = []
    for name in MEMBERS:
        if name.startswith(room.__name__):
            module = importlib.import_module(name)
            listed += getattr(module, "__all__", vars(module))
    assert set(room.__all__) <= set(listed)


@pytest.mark.parametrize("room", ["checks", "proofs"])
def test_checks_and_proofs_stand_under_their_chapters_titles(room):
    """The headings of the page, and what the files say of themselves."""
    parts = re.findall(rf"^## (\d.*)\n\n.+\n.*attn_lib\.{room}\.(\w+)$", PAGES[room], re.M)
    files = [file.removeprefix("book/").replace("-", "_") for file in CHAPTERS]
    written = {path.stem for path in (ROOT / "attn_lib" / room).glob("*.py")}
    expected = list(zip(TITLES, files, strict=True))
    assert parts == [each for each in expected if each[1] in written]
    assert len(parts) >= len(files) - 1  # a chapter of measurements proves nothing
    for number, name in enumerate(files, 1):
        if name not in written:
            continue
        module = importlib.import_module(f"attn_lib.{room}.{name}")
        assert f" of chapter {number}" in module.__doc__ or f" chapter {number}," in module.__doc__


# --- where a function is taught -------------------------------------------------------------------
def cells(file):
    """Return the code of a chapter, as jupytext reads it."""
    notebook = jupytext.read(ROOT / f"{file}.md")
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")


def taken(file):
    """Return what a chapter takes from attn_lib, shown and used: the objects, not their names."""
    tree = [*ast.walk(ast.parse(cells(file)))]
    scope = {}
    for node in tree:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("attn_lib"):
            exec(ast.unparse(node), scope)
    scope.pop("__builtins__")

    def value(node):
        """Return what a name stands for; a field of an object is no name of what it holds."""
        if isinstance(node, ast.Name):
            return scope.get(node.id)
        of = value(node.value) if isinstance(node, ast.Attribute) else None
        return getattr(of, node.attr) if inspect.ismodule(of) or inspect.isclass(of) else None

    calls = [node for node in tree if isinstance(node, ast.Call)]
    shows = [node for node in calls if value(node.func) is scope["show"]]
    shown = [part for node in shows for each in node.args for part in ast.walk(each)]
    return [value(node) for node in shown], [value(node) for node in tree]


def documented():
    """Return every function and class of the reference."""
    found = [getattr(labs, name) for name in LABS]
    for name in MEMBERS:
        listed = vars(importlib.import_module(name)).items()
        found += [each for key, each in listed if key[0] != "_" and is_of(each, name)]
    return found


def is_of(each, module):
    """Return whether this is a function or class written in a module."""
    written = inspect.isfunction(each) or inspect.isclass(each)
    return written and each.__module__ == module


def test_what_is_said_of_chapters_is_true():
    """By the objects that their cells name: all that `reference.where` knows is names."""
    takes = {file: taken(file) for file in CHAPTERS}
    for each in documented():
        shown, used = (
            [file for file, both in takes.items() if any(each is one for one in both[i])]
            for i in (0, 1)
        )
        assert reference.where(CHAPTERS, each) == (shown, used), each


@pytest.mark.parametrize("file", CHAPTERS)
def test_cells_are_found_as_jupytext_finds_them(file):
    text = (ROOT / f"{file}.md").read_text(encoding="utf-8")
    assert reference.cells(text).split() == cells(file).split()


def test_the_chapters_are_those_of_the_contents_in_their_order():
    assert [title.split(". ")[0] for title in TITLES] == [str(n + 1) for n in range(len(TITLES))]
    assert len(CHAPTERS) == 14


@pytest.mark.parametrize("room", [attn_lib, training, minilm])
def test_a_public_function_of_the_mathematics_is_used_in_a_chapter_or_excused(room):
    functions = {name for name in room.__all__ if inspect.isfunction(getattr(room, name))}
    used = {name for name in functions if reference.where(CHAPTERS, getattr(room, name))[1]}
    assert functions - used == functions & set(UNTAUGHT)


def test_excuses_are_for_functions_that_there_are():
    public = {*attn_lib.__all__, *training.__all__, *minilm.__all__}
    assert set(UNTAUGHT) <= public and all(UNTAUGHT.values())


def test_no_docstring_names_a_chapter_by_hand():
    for each in documented():
        assert not re.search(r"\b[Cc]hapters? \d", inspect.getdoc(each) or ""), each


SHOWING = reference.read(
    "from attn_lib import KVCache, rope\nfrom attn_lib.book import show\nshow(KVCache.attend)\nrope"
)
USING = reference.read("from attn_lib import figures as f, rope\nf.style(rope.a, x.rope)")


def test_a_cell_is_read_by_what_it_imports():
    assert SHOWING.shown == {"attn_lib.KVCache", "attn_lib.KVCache.attend"}
    assert SHOWING.used == {*SHOWING.shown, "attn_lib.book.show", "attn_lib.rope"}
    names = ("figures", "figures.style", "rope", "rope.a")
    assert not USING.shown and USING.used == {f"attn_lib.{name}" for name in names}


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (attn_lib.KVCache, "Taught in :doc:`/one`."),
        (attn_lib.figures.style, "Used in :doc:`/two`."),
        (attn_lib.rope, "Used in chapters :doc:`1 </one>` and :doc:`2 </two>`."),
        (attn_lib.erf, ""),
    ],
)
def test_a_chapter_that_shows_a_function_is_named_alone(obj, text):
    assert reference.sentence({"one": SHOWING, "two": USING}, obj) == text


def test_a_function_shown_twice_is_taught_twice():
    text = reference.sentence({"one": SHOWING, "two": SHOWING}, attn_lib.KVCache)
    assert text == "Taught in :doc:`/one` and :doc:`/two`."


def test_many_chapters_are_named_by_number():
    chapters = {"one": reference.read(""), "two": USING, "three": USING, "four": USING}
    text = reference.sentence(chapters, attn_lib.rope)
    assert text == "Used in chapters :doc:`2 </two>`, :doc:`3 </three>` and :doc:`4 </four>`."


def test_another_function_of_the_same_name_is_not_meant():
    """The proofs have a softmax of their own, of symbols."""
    assert reference.where(CHAPTERS, attn_lib.softmax)[0] == ["book/qkv"]
    assert reference.where(CHAPTERS, proofs.steps.softmax) == ([], [])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["", "Sum", "up.", "", "More."], ["", "Sum", "up.", "*", "", "More."]),
        (["Sum up."], ["Sum up.", "*"]),
    ],
)
def test_chapters_stand_below_the_summary(before, after):
    app = SimpleNamespace(env=SimpleNamespace(attn_book_chapters=CHAPTERS))
    said = ["", ".. rst-class:: taught", "", "   Taught in :doc:`/book/qkv`.", ""]
    reference.say_where(app, "function", "softmax", attn_lib.softmax, None, before)
    at = after.index("*")
    assert before == after[:at] + said + after[at + 1 :]


def test_nothing_is_said_of_methods_and_of_what_no_chapter_names():
    app, lines = SimpleNamespace(env=SimpleNamespace(attn_book_chapters=CHAPTERS)), ["Sum up."]
    reference.say_where(app, "method", "attend", attn_lib.KVCache.attend, None, lines)
    reference.say_where(app, "function", "erf", attn_lib.erf, None, lines)
    assert lines == ["Sum up."]


def test_the_reference_is_read_again_when_chapters_use_other_functions(tmp_path):
    page = "# 1. One\n\n```{code-cell} ipython3\nfrom attn_lib import softmax\n\nsoftmax([1])\n"
    (tmp_path / "_toc.yml").write_text("parts: [{chapters: [{file: one}]}]")
    app = SimpleNamespace(srcdir=tmp_path)
    env = SimpleNamespace(found_docs={"one", "book/reference/attention"})

    def outdated(text):
        (tmp_path / "one.md").write_text(text)
        return reference.outdated(app, env, set(), set(), set())

    assert outdated(page + "```\n") == ["book/reference/attention"]
    assert outdated(page + "```\n\nMore.\n") == []
    assert outdated(page + "softmax([2])\n```\n") == []
    assert outdated(page.replace("softmax", "rope") + "```\n") == ["book/reference/attention"]


@pytest.mark.build
def test_the_built_pages_lead_to_the_chapters(built_book):
    page = (built_book / "book/reference/attention.html").read_text(encoding="utf-8")
    entry = page.split('id="attn_lib.dot_product.softmax"')[1].split("</dl>")[0]
    link = r'<p class="taught">Taught in <a [^>]*href="\.\./qkv\.html"><span[^>]*>(.*?)</span>'
    assert re.search(link, entry)[1] == TITLES[1]
