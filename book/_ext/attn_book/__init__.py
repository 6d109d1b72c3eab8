"""The book's own Sphinx extension: each module is one behaviour, and says why the book needs it."""

from . import assets, cache, execute, garbage, mends, notebooks, quiet, reference, values


def setup(app):
    """Connect every behaviour."""
    for behaviour in (garbage, cache, quiet, execute, assets, values, mends, notebooks, reference):
        behaviour.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
