"""Offer each chapter as a notebook that reads well in Colab and VS Code, which know no MyST.

The link is a ``data:`` address: from ``file://`` browsers ignore ``download`` on an ordinary
link and show the notebook's JSON. The same notebooks stay in ``_build/notebooks`` for the zip.
"""

import base64
from pathlib import Path

import jupytext
import nbformat
from docutils import nodes

from .plain_markdown import Code, PlainMarkdown

NEEDS = (
    "*The cells import `attn_lib`, the library of this book: keep the notebook beside the "
    "book's folder `attn_lib`, or install that with pip.*"
)


def offer_notebook(app, pagename, templatename, context, doctree):
    """Put the chapter's notebook where notebook-download.html finds it."""
    if not is_notebook(app.env, pagename):
        return
    text = nbformat.writes(readers_notebook(app, pagename, doctree)) + "\n"
    target = Path(app.outdir).parent / "notebooks" / name_of(pagename)
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, encoding="utf-8")
    data = base64.b64encode(text.encode()).decode()
    url = f"data:application/x-ipynb+json;base64,{data}"
    context["notebook"] = {"name": target.name, "url": url}


def is_notebook(env, docname):
    """Return whether a page has code cells."""
    return bool(env.metadata.get(docname, {}).get("kernelspec"))


def name_of(docname):
    """Return the file name of a page's notebook."""
    return docname.rpartition("/")[2] + ".ipynb"


def readers_notebook(app, docname, doctree):
    """Return the page as a notebook in plain Markdown, the same whenever it is built."""
    notebook = jupytext.read(app.env.doc2path(docname))
    writer = PlainMarkdown(
        numbers=app.env.toc_fignumbers.get(docname),
        links={
            app.builder.get_relative_uri(docname, other): name_of(other)
            for other in app.env.found_docs
            if other != docname and is_notebook(app.env, other)
        },
        hidden=hidden_cells(doctree, notebook.cells, app.env.metadata[docname]["source_map"]),
    )
    notebook.cells = [*cells(writer.blocks(doctree), notebook.cells)]
    kinds = [cell.cell_type for cell in notebook.cells]
    if "code" in kinds:
        notebook.cells.insert(kinds.index("code"), nbformat.v4.new_markdown_cell(NEEDS))
    for i, cell in enumerate(notebook.cells):
        cell.id = f"cell-{i}"  # random otherwise
    notebook.metadata.pop("jupytext", None)
    return notebook


def hidden_cells(doctree, source, lines):
    """Yield line and place of the code cells that the page leaves out."""
    shown = {node.get("cell_index") for node in doctree.findall(nodes.container)}
    for i, (cell, line) in enumerate(zip(source, lines, strict=True)):
        if cell.cell_type == "code" and i not in shown:
            yield line + 1, Code(i)


def cells(blocks, source):
    """Yield the blocks between two code cells as one Markdown cell, code cells as they are."""
    prose = []
    for block in [*blocks, None]:
        if isinstance(block, str):
            prose.append(block)
            continue
        if prose:
            yield nbformat.v4.new_markdown_cell("\n\n".join(prose))
            prose = []
        if block:
            yield source[block.index]


def setup(app):
    """Connect before the theme drops templates that come out empty (priority 500)."""
    app.connect("html-page-context", offer_notebook, priority=400)
