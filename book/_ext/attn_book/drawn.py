"""Give a figure that is drawn into the page the words that a cell has for it.

A picture in a file gets its ``alt`` from MyST-NB; a drawing is HTML, which it leaves alone.
"""

import html
import os

from docutils import nodes

MARK = 'class="attn-drawn"'
SILENT = 'role="img"'
IN_BUILD = "ATTN_LIB_PAGES"  # what `attn_lib.svg` looks for


def name_drawings(app, doctree):
    """Name the drawings of each cell by its ``alt``."""
    for cell in doctree.findall(nodes.container):
        options = cell.get("cell_metadata", {}).get("mystnb", {})
        words = options.get("image", {}).get("alt", "")
        for raw in cell.findall(nodes.raw):
            if words and MARK in raw.astext():
                named = f'{SILENT} aria-label="{html.escape(" ".join(words.split()))}"'
                raw.children = [nodes.Text(raw.astext().replace(SILENT, named))]
                raw.rawsource = raw.astext()


def setup(app):
    """Ask the kernels for drawings, and name them as soon as a page is read."""
    os.environ[IN_BUILD] = "1"
    app.connect("doctree-read", name_drawings)
