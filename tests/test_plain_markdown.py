"""A doctree into plain Markdown: what a reader sees in Colab, VS Code and on GitHub."""

import warnings

import pytest
from attn_book.notebooks import cells
from attn_book.plain_markdown import Code, PlainMarkdown
from docutils import nodes
from docutils.core import publish_doctree
from myst_parser.parsers.docutils_ import Parser
from nbformat.v4 import new_code_cell, new_markdown_cell
from sphinx.addnodes import (
    desc,
    desc_content,
    desc_name,
    desc_parameterlist,
    desc_signature,
    number_reference,
)

NUMBERS = {
    "theorem": {"thm": (2,)},
    "exercise": {"ex": (1, 3)},
    "figure": {"fig": (4,)},
    "table": {"tab": (5,)},
    "displaymath": {"eq": (14,)},
}
LINKS = {"qkv.html": "qkv.ipynb"}


def parsed(myst):
    """Return the doctree of some MyST, as docutils alone reads it."""
    settings = {
        "myst_enable_extensions": ["dollarmath", "colon_fence", "deflist"],
        "doctitle_xform": False,
        "report_level": 5,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of docutils, about its own future
        return publish_doctree(myst, parser=Parser(), settings_overrides=settings)


def page(*children):
    """Return nodes as a document."""
    document = nodes.document(None, None)
    document.extend(children)
    return document


def written(*children):
    """Return nodes as Markdown."""
    writer = PlainMarkdown(numbers=NUMBERS, links=LINKS)
    return "\n\n".join(writer.blocks(page(*children)))


@pytest.mark.parametrize(
    "text",
    [
        "# T\n\n## U\n\nA *b* **c** `d` $d_k$ $p|q$ [e](https://f.org).\n\n## V",
        "Code `{ref}` and `` a `b` {eq} `` stay.",
        "<https://a.org/x.md>",
        "- item\n- *other*",
        "- item\n\n  more\n\n- other\n\n  1. inner",
        "3. three\n4. four",
        "> said\n>\n> and done",
        "```\n:::{note}\n{eq}`att`\n\n\nx\n```",
        "````\n```\nx\n```\n````",
        "$$\nx\n$$",
        "| a | b |\n| --- | --- |\n| 1 | $x$ |",
        "![A cat](a.png)",
        "a\n\n---\n\nb",
        r"2 \* 3 \* 4, \$5, a \\ b, \`c\`, \<b>, \_d_k\_, [a]\(b)",
        r"\# no heading",
        "a_b 2 < 3 [0, 1] 1.5 (x)",
        "1\\. no list",
        "\\- no list",
    ],
)
def test_plain_text_is_left_alone(text):
    assert written(*parsed(text).children) == text


@pytest.mark.parametrize(
    ("myst", "expected"),
    [
        ("(label)=\n# Title\n\n% a note\none\ntext", "# Title\n\none text"),
        ("$$\nx\n\n y\n$$", "$$\nx\n y\n$$"),
        (":::{note}\nWords.\n:::", "**Note**\n\nWords."),
        (":::{admonition} You *will*\n- do\n:::", "**You *will***\n\n- do"),
        (
            '::::{admonition} *a* < $b$ "c"?\n:class: dropdown\n\n:::{tip}\nYes.\n:::\n::::',
            '<details>\n<summary><b>a &lt; $b$ "c"?</b></summary>\n\n**Tip**\n\nYes.\n\n</details>',
        ),
        ("$a\nb$", "$a b$"),
        ("word\n: what *it* says", "- **word**\n\n  what *it* says"),
        ("Said.[^a]\n\n[^a]: By *whom*.", "Said.[1]\n\n---\n\n[1] By *whom*."),
        ("| a |\n|---|\n| `x\\|y` $p\\|q$ |", "| a |\n| --- |\n| `x\\|y` $p\\vert q$ |"),
        (
            "```{list-table} T\n* - *a*\n  - b\n```",
            "T\n\n|  |  |\n| --- | --- |\n| *a* | b |",
        ),
        (
            "```{figure} a.png\n:alt: A cat\n\nA *cat*.\n```",
            "![A cat](a.png)\n\nA *cat*.",
        ),
        ("a <kbd>b</kbd>", "a <kbd>b</kbd>"),
    ],
)
def test_myst_becomes_words(myst, expected):
    assert written(*parsed(myst).children) == expected


def theorem(*children, **attributes):
    return type("theorem_node", (nodes.Admonition, nodes.Element), {})("", *children, **attributes)


def words(text, kind=nodes.paragraph):
    return kind("", "", nodes.Text(text))


def test_numbers_stand_where_the_page_has_them():
    title = words(" (Name)", nodes.title)
    proved = theorem(title, words("A."), realtype="theorem", countertype="theorem", ids=["thm"])
    assert written(proved) == "**Theorem 2 (Name)**\n\nA."
    untitled = theorem(words(" ", nodes.title), realtype="lemma", countertype="lemma")
    assert written(untitled) == "**Lemma**"
    unnumbered = theorem(words("A."), realtype="axiom")
    assert written(unnumbered) == "**Axiom**\n\nA."
    title = nodes.title("", "", nodes.Text(" (Add)"), title="Exercise %s")
    assert written(theorem(title, ids=["ex"], type="exercise")) == "**Exercise 1.3 (Add)**"
    figure = nodes.figure("", words("Weights.", nodes.caption), ids=["fig"])
    assert written(figure) == "**Figure 4.** Weights."
    equation = nodes.math_block("", "x", label="eq", number=1, ids=["equation-eq", "eq"])
    assert written(equation) == "$$\nx\n\\tag{14}\n$$"
    equation = nodes.math_block("", "\\begin{align}\nx\n\\end{align}", nowrap=True)
    assert written(equation) == "\\begin{align}\nx\n\\end{align}"


@pytest.mark.parametrize(("language", "named"), [("python", "python"), ("none", "")])
def test_code_keeps_its_language(language, named):
    assert written(nodes.literal_block("", "x", language=language)) == f"```{named}\nx\n```"


def test_a_proof_ends_with_a_square():
    proof = type("proof_node", (nodes.Admonition, nodes.Element), {})
    assert written(proof("", nodes.admonition("", words("A.")))) == "A.\n\n∎"


def test_links_between_chapters_lead_to_notebooks_and_others_are_words():
    def link(uri):
        return nodes.paragraph("", "", nodes.reference("", "two", refuri=uri))

    assert written(link("qkv.html#x")) == "[two](qkv.ipynb)"
    figure = number_reference("", "Figure 4", refuri="qkv.html#fig")
    assert written(nodes.paragraph("", "", figure)) == "[Figure 4](qkv.ipynb)"
    assert written(link("notation.html")) == "two"
    assert written(link("#here")) == "two"
    assert written(link("https://a.org/x.html")) == "[two](https://a.org/x.html)"


def test_works_of_a_bibliography_keep_their_labels():
    assert written(nodes.citation("", nodes.label("", "A17"), words("A (2017)."))) == (
        "[A17] A (2017)."
    )


def test_a_bar_does_not_end_a_cell_of_a_table():
    """In math it is not escaped: a host may take the formula out before it reads the table."""
    norm = nodes.paragraph("", "", nodes.math("", r"\|x\| | y"), nodes.Text(" |"))
    row = nodes.row("", nodes.entry("", norm))
    table = nodes.table("", nodes.tgroup("", nodes.thead("", row), nodes.tbody()))
    assert written(table) == "| $\\Vert x\\Vert  \\vert  y$ \\| |\n| --- |"


def test_a_function_of_the_reference_is_its_first_line():
    signature = desc_signature("", "", desc_name("", "f"), desc_parameterlist("", "x"))
    content = desc_content("", words("Says *so*."), words("At length."))
    assert written(desc("", signature, content)) == r"`f(x)` Says \*so\*."
    assert written(desc("", signature, desc_content())) == "`f(x)`"


def test_dropdowns_are_folded():
    title = nodes.inline("", "", words("Why", nodes.emphasis), classes=["sd-summary-text"])
    title = nodes.rubric("", "", title, nodes.inline("", "", nodes.raw("", "<svg>", format="html")))
    kind = type("dropdown_main", (nodes.General, nodes.Element), {})
    dropdown = kind("", title, nodes.container("", words("A.")), classes=["sd-dropdown"])
    assert written(dropdown) == "<details>\n<summary><b>Why</b></summary>\n\nA.\n\n</details>"


def test_what_says_nothing_leaves_no_gap():
    assert (
        written(words("A."), nodes.paragraph(), nodes.comment("", "B."), words("C.")) == "A.\n\nC."
    )


def test_an_unknown_node_is_written_as_its_children_are():
    block = type("thing", (nodes.General, nodes.Element), {})("", words("A."), words("B."))
    inline = type("word", (nodes.Inline, nodes.TextElement), {})("", "", nodes.Text("C"))
    assert written(block, nodes.paragraph("", "", inline)) == "A.\n\nB.\n\nC"


def cell(index, *children):
    return nodes.container("", *children, nb_element="cell_code", cell_index=index)


def at(line, text):
    paragraph = words(text)
    paragraph.line = line
    return paragraph


def test_hidden_cells_keep_their_place_and_folds_open_for_cells():
    """Cell 1 stands on line 20 and is not on the page; cell 3, on line 50, ends the chapter."""
    folded = nodes.admonition("", words("S", nodes.title), at(30, "b"), cell(2), at(40, "c"))
    folded["classes"].append("dropdown")
    writer = PlainMarkdown(hidden=[(50, Code(3)), (20, Code(1))])
    found = [*writer.blocks(page(cell(0), at(10, "a"), folded))]
    assert found == [Code(0), "a", Code(1), "**S**", "b", Code(2), "c", Code(3)]


def test_a_cell_is_taken_from_the_source_and_its_captions_follow_it():
    output = nodes.figure("", nodes.image(uri="x.png"), words("W.", nodes.caption), ids=["fig"])
    blocks = PlainMarkdown(numbers=NUMBERS).blocks(cell(1, nodes.container("", output)))
    code = new_code_cell("x")
    found = [*cells(["A", "B", *blocks, "C"], [new_markdown_cell("old"), code])]
    assert [each.source for each in found] == ["A\n\nB", "x", "**Figure 4.** W.\n\nC"]
    assert found[1] is code
    assert [*cells([Code(0), Code(0)], [code])] == [code, code]
