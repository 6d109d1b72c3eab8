"""A resolved page as the plain Markdown that Colab, VS Code and GitHub show.

Sphinx has put words in the place of every reference, value and citation by then, so nothing is
looked up here but the numbers in titles, which docutils leaves to its writers. A node that has no
method of its own is written as its children are: no word of a page can get lost.
"""

import html
import re
from dataclasses import dataclass
from textwrap import indent

from docutils import nodes
from sphinx.locale import admonitionlabels

SPECIAL = re.compile(r"[\\`*$]|<(?=[\w/!?])|(?<!\w)_|_(?!\w)|(?<=\])\(")
OPENING = re.compile(r"^(\d+)?((?<=\d)[.)](?=\s)|[+-](?=\s)|[#>])")


@dataclass(frozen=True)
class Code:
    """The place of a code cell; `index` counts the cells of the chapter's source."""

    index: int


class PlainMarkdown:
    """Writes nodes as blocks, each a string of Markdown or a `Code`.

    `numbers` holds the page's numbers by kind and id, `links` the notebook for each address of
    another page, and `hidden` pairs of line and `Code` for the cells that the page does not show.
    """

    def __init__(self, *, numbers=None, links=None, hidden=()):
        self.numbers, self.links, self.hidden = numbers or {}, links or {}, sorted(hidden)
        self.depth = 0

    def blocks(self, node):
        """Yield the blocks of a node."""
        method = getattr(self, f"_block_{node.tagname}", None)
        if isinstance(node, nodes.Invisible):
            return
        if method:
            yield from method(node)
        elif isinstance(node, nodes.Admonition):
            yield from self.box(node, node.children)
        elif isinstance(node, nodes.TextElement):
            words = self.inline(node)
            yield from [OPENING.sub(r"\1\\\2", words)] if words else []
        else:
            yield from self.flow(node.children)

    def flow(self, children):
        """Yield the blocks of nodes in a row, and each hidden cell before what follows its line."""
        for child in children:
            line = next((part.line for part in child.findall() if part.line), 0)
            while self.hidden and self.hidden[0][0] < line:
                yield self.hidden.pop(0)[1]
            yield from self.blocks(child)

    def inline(self, node):
        """Return a node as a run of Markdown."""
        if isinstance(node, nodes.Text):
            return SPECIAL.sub(r"\\\g<0>", node.astext().replace("\n", " "))
        method = getattr(self, f"_inline_{node.tagname}", None)
        return method(node) if method else self.run(node)

    def run(self, node):
        """Return the children of a node as a run of Markdown."""
        return "".join(self.inline(child) for child in node.children)

    # --- the page ---------------------------------------------------------------------------------
    def _block_document(self, node):
        yield from self.flow(node.children)
        yield from (code for _, code in self.hidden)

    def _block_section(self, node):
        self.depth += 1
        yield from self.flow(node.children)
        self.depth -= 1

    def _block_title(self, node):
        yield f"{'#' * self.depth} {self.run(node)}"

    def _block_container(self, node):
        if node.get("nb_element") != "cell_code":
            yield from self.flow(node.children)
            return
        yield Code(node["cell_index"])
        for figure in node.findall(nodes.figure):
            yield from self.caption(figure)

    # --- what has a title -------------------------------------------------------------------------
    def box(self, node, children):
        """Yield a theorem, an exercise, a note; folded as on the page, unless a cell is in it."""
        title = children[0] if children and isinstance(children[0], nodes.title) else None
        kind = self.kind(node, title)
        inside = [*self.flow(children[1:] if title else children)]
        folds = {"dropdown", "sd-dropdown"} & set(node["classes"])
        if folds and not any(isinstance(block, Code) for block in inside):
            words = html.escape(kind + (words_of(title) if title else ""), quote=False)
            inside = [f"<details>\n<summary><b>{words}</b></summary>", *inside, "</details>"]
        elif kind or title:
            yield f"**{kind}{self.run(title).rstrip() if title else ''}**"
        yield from inside

    def kind(self, node, title):
        """Return what a box is, if its title does not say it: a number, or a word for a note."""
        if "realtype" in node:  # sphinx-proof
            number = self.number(node["countertype"], node) if "countertype" in node else ""
            return f"{node['realtype'].title()} {number}".strip()
        if title is not None and "%s" in title.get("title", ""):  # sphinx-exercise
            return title["title"] % self.number(node["type"], node)
        return "" if title else str(admonitionlabels.get(node.tagname, ""))

    def number(self, kind, node):
        """Return the number of a node among those of its kind."""
        found = [self.numbers.get(kind, {}).get(name, ()) for name in node["ids"]]
        return ".".join(map(str, next(filter(None, found), ())))

    def _block_proof_node(self, node):
        yield from self.flow(node.children)
        yield "∎"

    def _block_dropdown_main(self, node):
        title = next(part for part in node[0].findall(nodes.inline))  # beside it stands an icon
        yield from self.box(node, [nodes.title("", "", *title.children), *node.children[1:]])

    def caption(self, node):
        """Yield the number and the words under a figure or over a table."""
        kind = node.tagname
        for words in node.children:
            if isinstance(words, nodes.caption | nodes.title):
                number = self.number(kind, node)
                label = f"**{kind.capitalize()} {number}.** " if number else ""
                yield label + self.run(words)

    def _block_figure(self, node):
        yield from self.flow(part for part in node if not isinstance(part, nodes.caption))
        yield from self.caption(node)

    # --- lists, tables, quotations ----------------------------------------------------------------
    def items(self, node, marks):
        """Yield a list; an empty line between its items only if they hold several blocks."""
        items = []
        for mark, item in zip(marks, node.children, strict=True):
            text = "\n\n".join(self.flow(item.children))
            items.append(mark + indent(text, " " * len(mark)).strip())
        yield ("\n\n" if any("\n\n" in item for item in items) else "\n").join(items)

    def _block_bullet_list(self, node):
        yield from self.items(node, ["- "] * len(node))

    def _block_enumerated_list(self, node):
        first = node.get("start", 1)
        yield from self.items(node, [f"{first + i}. " for i in range(len(node))])

    def _block_definition_list(self, node):
        yield from self.items(node, ["- "] * len(node))

    def _block_term(self, node):
        yield f"**{self.run(node)}**"

    def _block_table(self, node):
        yield from self.caption(node)
        rows = [[self.cell(entry) for entry in row] for row in node.findall(nodes.row)]
        if not any(node.findall(nodes.thead)):
            rows.insert(0, [""] * len(rows[0]))
        rows.insert(1, ["---"] * len(rows[0]))
        yield "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def cell(self, entry):
        """Return a cell of a table, in which a bar must not end it."""
        return " ".join(self.flow(entry.children)).replace("|", r"\|")

    def _block_block_quote(self, node):
        lines = "\n\n".join(self.flow(node.children)).split("\n")
        yield "\n".join(f"> {line}".rstrip() for line in lines)

    def _block_footnote(self, node):
        label, *rest = node.children
        yield " ".join([f"[{label.astext()}]", *self.flow(rest)])

    _block_citation = _block_footnote

    def _block_desc(self, node):
        """A function of the reference: how it is called, and the first line of its docstring."""
        words = [self.run(part) for part in node[-1].children if isinstance(part, nodes.paragraph)]
        yield f"`{node[0].astext().strip()}` {''.join(words[:1])}".strip()

    def _block_transition(self, node):
        yield "---"

    # --- code, math, pictures ---------------------------------------------------------------------
    def _block_literal_block(self, node):
        text, language = node.astext().rstrip("\n"), node.get("language", "")
        fence = "`" * max(3, 1 + longest_run_of_ticks(text))
        yield f"{fence}{'' if language in {'none', 'default'} else language}\n{text}\n{fence}"

    def _block_math_block(self, node):
        lines = [line for line in node.astext().split("\n") if line.strip()]
        number = self.number("displaymath", node)
        tag = [rf"\tag{{{number}}}"] if number else []
        yield "\n".join(lines if node.get("nowrap") else ["$$", *lines, *tag, "$$"])

    def _block_raw(self, node):
        yield from [node.astext()] if "html" in node["format"].split() else []

    def _block_image(self, node):
        yield self._inline_image(node)

    def _inline_image(self, node):
        return f"![{node.get('alt', '')}]({node['uri']})"

    def _inline_raw(self, node):
        return "".join(self._block_raw(node))

    def _inline_math(self, node):
        latex = " ".join(node.astext().split())
        if "|" in latex and within(node, nodes.entry):
            latex = latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
        return f"${latex}$"

    def _inline_literal(self, node):
        text = node.astext()
        ticks = "`" * (1 + longest_run_of_ticks(text))
        return f"{ticks} {text} {ticks}" if "`" in text else f"{ticks}{text}{ticks}"

    def _inline_emphasis(self, node):
        return f"*{self.run(node)}*"

    def _inline_strong(self, node):
        return f"**{self.run(node)}**"

    def _inline_footnote_reference(self, node):
        return f"[{node.astext()}]"

    def _inline_reference(self, node):
        """A link to the web or to another chapter's notebook; words, if neither is there."""
        uri, words = node.get("refuri", ""), self.run(node)
        target = self.links.get(uri.partition("#")[0], uri if ":" in uri else "")
        if not target:
            return words
        return f"<{uri}>" if node.astext() == uri else f"[{words}]({target})"

    _inline_number_reference = _inline_reference


def words_of(node):
    """Return the text of a title for HTML, in which only formulas keep their marks."""
    if isinstance(node, nodes.math):
        return f"${node.astext()}$"
    return "".join(map(words_of, node.children)) if node.children else node.astext()


def within(node, kind):
    """Return whether a node stands in one of this kind."""
    return node is not None and (isinstance(node, kind) or within(node.parent, kind))


def longest_run_of_ticks(text):
    """Return how many backticks follow each other."""
    return max(map(len, re.findall("`+", text)), default=0)
