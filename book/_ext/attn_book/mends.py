"""Two mends of what sphinx-proof and sphinx-exercise write.

They give every box of a kind the same HTML id, which a page may hold only once; and a proof's
opening word is plain text, which no stylesheet can reach.
"""

from docutils import nodes

REPEATED = ({"proof"}, {"proof-content"}, {"exercise-content"}, {"solution-content"})


def mend_boxes(app, doctree, docname):
    """Drop the repeated ids, and set "Proof." in italics."""
    for node in doctree.findall(nodes.Element):
        if set(node.get("ids", ())) in REPEATED:
            node["ids"] = []
        if isinstance(node, nodes.admonition) and "proof" in node["classes"]:
            set_opening(node)


def set_opening(proof):
    """Wrap the "Proof." that opens the first paragraph of a proof."""
    text = next(proof.findall(nodes.Text), None)
    if text is not None and text.startswith("Proof. "):
        opening = [nodes.emphasis("", "Proof."), nodes.Text(text.removeprefix("Proof."))]
        text.parent.replace(text, opening)


def setup(app):
    """Connect when Sphinx has numbered everything: it does so by those ids."""
    app.connect("doctree-resolved", mend_boxes)
