"""The book's own Sphinx extension: each module is one behaviour, and says why the book needs it."""

from . import (
    assets,
    cache,
    drawn,
    execute,
    garbage,
    mends,
    notebooks,
    numbering,
    quiet,
    reference,
    values,
)

BEHAVIOURS = (
    garbage,
    cache,
    quiet,
    execute,
    assets,
    values,
    drawn,
    numbering,
    mends,
    notebooks,
    reference,
)


def setup(app):
    """Connect every behaviour."""
    for behaviour in BEHAVIOURS:
        behaviour.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
