"""Offer each chapter as a notebook that reads well in Colab and VS Code, which know no MyST.

The link is a ``data:`` address: from ``file://`` browsers ignore ``download`` on an ordinary
link and show the notebook's JSON. The same notebooks stay in ``_build/notebooks`` for the zip.
"""

import base64
from pathlib import Path

import jupytext
import nbformat
from myst_nb.core.variables import format_plain_text
from myst_nb.ext.glue.crossref import read_glue_cache

from .plain_markdown import plain

NEEDS = (
    "*The cells import `attn_lib`, the library of this book: keep the notebook beside the "
    "book's folder `attn_lib`, or install that with pip.*"
)


def offer_notebook(app, pagename, templatename, context, doctree):
    """Put the chapter's notebook where notebook-download.html finds it."""
    if not app.env.metadata.get(pagename, {}).get("kernelspec"):
        return
    name = pagename.rpartition("/")[2] + ".ipynb"
    text = nbformat.writes(readers_notebook(app, pagename)) + "\n"
    target = Path(app.outdir).parent / "notebooks" / name
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, encoding="utf-8")
    data = base64.b64encode(text.encode()).decode()
    context["notebook"] = {"name": name, "url": f"data:application/x-ipynb+json;base64,{data}"}


def readers_notebook(app, docname):
    """Return the chapter as a notebook in plain Markdown, the same whenever it is built."""
    notebook = jupytext.read(app.env.doc2path(docname))
    words = References(app, docname)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = plain(cell.source, words.resolve)
    notebook.cells = [cell for cell in notebook.cells if cell.source]
    kinds = [cell.cell_type for cell in notebook.cells]
    if "code" in kinds:
        notebook.cells.insert(kinds.index("code"), nbformat.v4.new_markdown_cell(NEEDS))
    for i, cell in enumerate(notebook.cells):
        cell.id = f"cell-{i}"  # random otherwise
    notebook.metadata.pop("jupytext", None)
    return notebook


class References:
    """The words of references, from what Sphinx has gathered about the whole book."""

    def __init__(self, app, docname):
        self.app, self.env, self.docname = app, app.env, docname

    def resolve(self, role, target):
        """Return the words for ``{role}`target```, or None."""
        kind = role.partition(":")[0]
        method = getattr(self, kind.replace("prf", "ref"), None)
        return method(target, role) if method else None

    def ref(self, label, role=""):
        """A section's title, or the kind and number of a theorem, an exercise or a figure."""
        proof = getattr(self.env, "proof_list", {}).get(label)
        if proof:
            return self.numbered(
                proof["realtype"].capitalize(), proof["countertype"], proof["docname"], label
            )
        exercise = getattr(self.env, "sphinx_exercise_registry", {}).get(label)
        if exercise:
            return self.numbered("Exercise", "exercise", exercise["docname"], label)
        std = self.env.get_domain("std")
        if label in std.labels:
            return std.labels[label][2]
        return self.numref(label)

    def numref(self, label, role=""):
        """``Figure 3``, ``Table 1``."""
        std = self.env.get_domain("std")
        docname, node_id = std.anonlabels.get(label, (None, None))
        for kind, word in (("figure", "Figure"), ("table", "Table"), ("exercise", "Exercise")):
            if node_id in self.env.toc_fignumbers.get(docname, {}).get(kind, {}):
                return self.numbered(word, kind, docname, node_id)
        return None

    def numbered(self, word, kind, docname, node_id):
        """Return ``word`` with the number Sphinx has given, if any."""
        number = self.env.toc_fignumbers.get(docname, {}).get(kind, {}).get(node_id, ())
        return " ".join([word, ".".join(map(str, number))]).strip()

    def eq(self, label, role=""):
        """``(4)``."""
        docname, number = self.env.get_domain("math").equations.get(label, (None, None))
        return f"({number})" if docname else None

    def doc(self, target, role=""):
        """A chapter's title."""
        docname = (Path("/", self.docname).parent / target).as_posix().lstrip("/")
        title = self.env.titles.get(docname)
        return title.astext() if title else None

    def cite(self, keys, role="cite"):
        """``(Vaswani et al., 2017)``, or ``Vaswani et al. (2017)`` for ``cite:t``."""
        cited = [self.authors_year(key.strip()) for key in keys.split(",")]
        if None in cited:
            return None
        if role == "cite:t":
            return ", ".join(f"{authors} ({year})" for authors, year in cited)
        return "(" + "; ".join(f"{authors}, {year}" for authors, year in cited) + ")"

    def authors_year(self, key):
        """Return who and when of an entry of the bibliography."""
        entry = self.env.get_domain("cite").bibdata.data.entries.get(key)
        if entry is None:
            return None
        names = [" ".join(person.last_names) for person in entry.persons.get("author", [])]
        if len(names) > 2:
            names = [f"{names[0]} et al."]
        return " and ".join(names) or entry.fields.get("title", key), entry.fields.get(
            "year", "n.d."
        )

    def bibliography(self, target="", role=""):
        """The works a chapter cites, one a line."""
        domain = self.env.get_domain("cite")
        keys = sorted(
            {
                key
                for c in domain.citation_refs
                if c.docname == self.docname
                for key in (target.key for target in c.targets)
            }
        )
        return "\n".join(f"- {self.entry(key)}" for key in keys)

    def entry(self, key):
        """One work: who, when, what, where."""
        fields = self.env.get_domain("cite").bibdata.data.entries[key].fields
        authors, year = self.authors_year(key)
        place = [f"https://doi.org/{fields['doi']}"] if "doi" in fields else []
        place = place or [fields[name] for name in ("url",) if name in fields]
        title = fields.get("title", key).replace("{", "").replace("}", "")
        return " ".join([f"{authors} ({year}).", f"*{title}*.", *place])

    def glue(self, target, role=""):
        """The value a cell has glued, as the page shows it."""
        key, _, spec = target.rpartition(":") if role == "glue:text" else (target, "", "")
        text = self.value(key or target)
        return None if text is None else format_plain_text(text, spec if key else "s")

    def eval(self, name, role=""):
        """The text of a named value."""
        return self.value(name)

    def value(self, name):
        """The text a cell has kept under a name, if any."""
        kept = read_glue_cache(self.env.mystnb_config.output_folder, self.docname)
        return kept.get(name, {}).get("data", {}).get("text/plain")


def setup(app):
    """Connect before the theme drops templates that come out empty (priority 500)."""
    app.connect("html-page-context", offer_notebook, priority=400)
