"""``{eval}`name```: a value of the run, in a sentence, from the outputs kept in the cache.

MyST-NB evaluates this role in a running kernel, as JupyterLab does, and so not from its cache.
Here it reads what ``attn_lib.book.numbers`` has named: one text for the page and for
JupyterLab, no figure typed by hand.
"""

from docutils import nodes
from myst_nb.core.variables import RetrievalError
from myst_nb.ext.glue.utils import glue_warning, retrieve_glue_data
from myst_nb.ext.utils import RoleBase


class Value(RoleBase):
    """The text of a named value, exactly as the cell gave it."""

    def run(self):
        """Return the text, or a warning, which stops the build."""
        try:
            text = retrieve_glue_data(self.document, self.text).data["text/plain"]
        except (RetrievalError, KeyError):
            message = f"no cell of this chapter names {self.text!r}: numbers({self.text}=...)"
            return [], [glue_warning(message, self.document, self.line)]
        return [nodes.inline(text, text, classes=["pasted-text"])], []


def setup(app):
    """Take the role's place."""
    app.add_role("eval", Value(), override=True)
