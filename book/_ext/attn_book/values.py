"""``{eval}`name```: a value of the run, in a sentence, from the outputs kept in the cache.

MyST-NB evaluates this role in a running kernel, as JupyterLab does, and so not from its cache.
Here it is another name for ``{glue:text}``, which finds what ``attn_lib.book.numbers`` has
glued: one text for the page and for JupyterLab, no figure typed by hand.
"""


def value(name, rawtext, text, lineno, inliner, options=None, content=()):
    """Return the glued text; a name that no cell has glued is a warning, which stops the build."""
    glued = inliner.document.settings.env.get_domain("glue").role("text")
    return glued(name, rawtext, text, lineno, inliner, options or {}, content)


def setup(app):
    """Take the role's place."""
    app.add_role("eval", value, override=True)
