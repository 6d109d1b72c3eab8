"""Mends of what other extensions write.

sphinx-proof and sphinx-exercise give every box of a kind the same HTML id, which a page may hold
only once; a proof's opening word is plain text, which no stylesheet can reach; and MyST-Parser
escapes the address of a link that sets a lab, which docutils does again.
"""

import html

from docutils import nodes

REPEATED = ({"proof"}, {"proof-content"}, {"exercise-content"}, {"solution-content"})


def mend_boxes(app, doctree, docname):
    """Drop the repeated ids, set "Proof." in italics, and let "&" be one in links to labs."""
    for node in doctree.findall(nodes.Element):
        if set(node.get("ids", ())) in REPEATED:
            node["ids"] = []
        if isinstance(node, nodes.admonition) and "proof" in node["classes"]:
            set_opening(node)
        if isinstance(node, nodes.reference) and "attn-set" in node["classes"]:
            node["refuri"] = html.unescape(node["refuri"])


def set_opening(proof):
    """Wrap the "Proof." that opens the first paragraph of a proof."""
    text = next(proof.findall(nodes.Text), None)
    if text is not None and text.startswith("Proof. "):
        opening = [nodes.emphasis("", "Proof."), nodes.Text(text.removeprefix("Proof."))]
        text.parent.replace(text, opening)


def setup(app):
    """Connect when Sphinx has numbered everything: it does so by those ids."""
    app.connect("doctree-resolved", mend_boxes)
