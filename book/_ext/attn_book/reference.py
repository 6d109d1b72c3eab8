"""Say on the reference pages which chapter teaches a function: the one that shows its source, else
those that use it. Nobody types it, so it is true: it is read from the chapters' cells.

And leave out what a named tuple says of each field: "Alias for field number 0".
"""

import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

import yaml

OPTIONS = r"(?:---\n[\s\S]*?^---\n|(?:^:.*\n)*)"
CELL = re.compile(r"^```\{code-cell\} ipython3\n" + OPTIONS + r"([\s\S]*?)^```$", re.M)
CHAPTER = re.compile(r"^# \d+\. ", re.M)
PAGES = "book/reference/"


class Chapter(NamedTuple):
    """What the code cells of a chapter take from attn_lib, under the names it is imported by."""

    shown: set  # by `show`
    used: set


def chapters(root):
    """Return a `Chapter` for each chapter, in the book's order."""
    contents = root / "_toc.yml"
    toc = yaml.safe_load(contents.read_text(encoding="utf-8")) if contents.exists() else {}
    files = [entry["file"] for part in toc.get("parts", []) for entry in part["chapters"]]
    pages = {name: (root / f"{name}.md").read_text(encoding="utf-8") for name in files}
    return {name: read(cells(text)) for name, text in pages.items() if CHAPTER.search(text)}


def cells(page):
    """Return the code of a page."""
    return "\n".join(CELL.findall(page))


def read(code):
    """Return what a piece of code takes from attn_lib."""
    tree = [*ast.walk(ast.parse(code))]
    imports = [node for node in tree if isinstance(node, ast.ImportFrom)]
    names = {
        each.asname or each.name: f"{node.module}.{each.name}"
        for node in imports
        for each in node.names
        if node.module.split(".")[0] == "attn_lib"
    }

    def meant(node):
        """Return the names of all that an expression takes, from its first dot to its last."""
        if isinstance(node, ast.Name):
            return [names[node.id]] if node.id in names else []
        before = meant(node.value) if isinstance(node, ast.Attribute) else []
        return [*before, f"{before[-1]}.{node.attr}"] if before else []

    calls = [node for node in tree if isinstance(node, ast.Call)]
    shows = [node for node in calls if "attn_lib.book.show" in meant(node.func)]
    shown = {name for node in shows for each in node.args for name in meant(each)}
    return Chapter(shown, {name for node in tree for name in meant(node)})


def where(chapters, obj):
    """Return the chapters that show a function or class, and those that use it."""
    rooms = obj.__module__.split(".")
    rooms = [".".join(rooms[:i]) for i in range(1, len(rooms) + 1)]
    name = obj.__qualname__
    ways = {f"{room}.{name}" for room in rooms if vars(sys.modules[room]).get(name) is obj}
    shown = [file for file, chapter in chapters.items() if ways & chapter.shown]
    return shown, [file for file, chapter in chapters.items() if ways & chapter.used]


def sentence(chapters, obj):
    """Return where a function or class is taught, with links, or nothing."""
    shown, used = where(chapters, obj)
    number = {file: i for i, file in enumerate(chapters, 1)}
    if shown or len(used) == 1:
        links = " and ".join(f":doc:`/{file}`" for file in shown or used)
        return f"{'Taught' if shown else 'Used'} in {links}."
    *first, last = [f":doc:`{number[file]} </{file}>`" for file in used] or [""]
    return f"Used in chapters {', '.join(first)} and {last}." if used else ""


def say_where(app, what, name, obj, options, lines):
    """Put that below the summary of a function or class."""
    if what not in ("function", "class"):
        return
    text = sentence(app.env.attn_book_chapters, obj)
    if text:
        first = next((i for i, line in enumerate(lines) if line), 0)
        after = lines.index("", first) if "" in lines[first:] else len(lines)
        lines[after:after] = ["", ".. rst-class:: taught", "", f"   {text}", ""]


def outdated(app, env, added, changed, removed):
    """Read the reference again when chapters begin or cease to use a function."""
    before = getattr(env, "attn_book_chapters", None)
    env.attn_book_chapters = chapters(Path(app.srcdir))
    if env.attn_book_chapters == before:
        return []
    return [name for name in env.found_docs if name.startswith(PAGES)]


def skip_aliases(app, what, name, obj, skip, options):
    """Skip a field of a named tuple; the class's own docstring lists it."""
    return skip or (getattr(obj, "__doc__", None) or "").startswith("Alias for field number")


def setup(app):
    """Connect to autodoc, after numpydoc, and before pages are read."""
    app.connect("autodoc-skip-member", skip_aliases)
    app.connect("autodoc-process-docstring", say_where, priority=600)
    app.connect("env-get-outdated", outdated)
