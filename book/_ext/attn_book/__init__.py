"""The book's own Sphinx extension: each module is one behaviour, and says why the book needs it."""

from . import assets, cache, notebooks


def setup(app):
    """Connect every behaviour."""
    cache.setup(app)
    assets.setup(app)
    notebooks.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
