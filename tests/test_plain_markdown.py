"""MyST into plain Markdown: what a reader sees in Colab, VS Code and on GitHub."""

import pytest
from attn_book.plain_markdown import plain

WORDS = {
    ("prf:ref", "thm"): "Theorem 2",
    ("prf:ref", "ex"): "Exercise 1",
    ("ref", "thm"): "Theorem 2",
    ("ref", "ex"): "Exercise 1",
    ("eq", "att"): "(3)",
    ("cite:p", "a,b"): "(A, 2017; B, 2020)",
    ("numref", "fig"): "Figure 4",
    ("doc", "notation"): "Notation",
    ("eval", "w"): "0.41",
}


def words(role, target):
    return WORDS.get((role, target))


@pytest.mark.parametrize(
    ("myst", "expected"),
    [
        ("See {prf:ref}`thm` and {eq}`att`.", "See Theorem 2 and (3)."),
        ("As {cite:p}`a,b` say.", "As (A, 2017; B, 2020) say."),
        ("Weight {eval}`w`, {math}`x^2`.", "Weight 0.41, $x^2$."),
        ("The {ref}`long way <thm>` {ref}`to-nowhere`.", "The long way to nowhere."),
        ("Code `{ref}` and ``a `b` {eq}`` stay.", "Code `{ref}` and ``a `b` {eq}`` stay."),
        ("[two](qkv.md#x) [](notation.md)", "[two](qkv.ipynb) [Notation](notation.ipynb)"),
        ("[here](#thm), [web](https://a.org/x.md)", "here, [web](https://a.org/x.md)"),
        ("(label)=\n# Title\n\n% a note\ntext", "# Title\n\ntext"),
        ("$$\nx\n$$ (att)", "$$\nx\n\\tag{3}\n$$"),
        ("$$\nx\n$$ (unknown)", "$$\nx\n$$"),
        ("```{math}\n:label: att\nx\n```", "$$\nx\n\\tag{3}\n$$"),
        (":::{note}\nWords.\n:::", "**Note**\n\nWords."),
        (":::{admonition} You will\n:class: tip\n- do\n:::", "**You will**\n\n- do"),
        (":::{prf:theorem} Name\n:label: thm\nA.\n:::", "**Theorem 2 (Name)**\n\nA."),
        (":::{prf:lemma}\nA.\n:::", "**Lemma**\n\nA."),
        (":::{prf:proof}\nA.\n:::", "**Proof**\n\nA.\n\n∎"),
        (":::{exercise} Add\n:label: ex\n1 + 1\n:::", "**Exercise 1 (Add)**\n\n1 + 1"),
        (
            ":::{exercise-start}\n:label: ex\n:::\nA\n\n:::{exercise-end}\n:::",
            "**Exercise 1**\n\nA",
        ),
        (":::{solution-start} ex\n:class: dropdown\n:::\nA", "**Solution to Exercise 1**\n\nA"),
        (
            ":::{solution} ex\n:class: dropdown\n2\n:::",
            "<details>\n<summary><b>Solution to Exercise 1</b></summary>\n\n2\n\n</details>",
        ),
        (
            "::::{dropdown} *a* < `b`?\n:::{tip}\nYes, {eq}`att`.\n:::\n::::",
            "<details>\n<summary><b>a &lt; b?</b></summary>\n\n**Tip**\n\nYes, (3).\n\n</details>",
        ),
        ("```python\n:::{note}\n{eq}`att`\n```", "```python\n:::{note}\n{eq}`att`\n```"),
        ("```{code-block} python\nx = 1\n```", "```python\nx = 1\n```"),
        ("```{image} a.png\n:alt: A cat\n```", "![A cat](a.png)"),
        ("```{glue:figure} f\n:name: fig\nWeights.\n```", "*Figure 4. Weights.*"),
        (
            "```{list-table} T\n:header-rows: 1\n* - a\n  - b\n* - {eq}`att`\n  - d\n```",
            "**T**\n\n| a | b |\n| --- | --- |\n| (3) | d |",
        ),
        ("```{toctree}\nx\n```", ""),
        ("```{card} Title\nText\n+++\nFoot\n```", "**Title**\n\nText\nFoot"),
        ("- item\n\n  :::{note}\n  In.\n  :::", "- item\n\n  **Note**\n\n  In."),
        ("```{unheard-of} Thing\n---\nkey: value\n---\nBody\n```", "**Thing**\n\nBody"),
    ],
)
def test_plain(myst, expected):
    assert plain(myst, words) == expected


def test_plain_text_is_left_alone():
    text = "# T\n\nA *b* `c` $d_k$ [e](https://f.org).\n\n| a |\n|---|\n| 1 |\n\n```\n\n\nx\n```"
    assert plain(text, words) == text
