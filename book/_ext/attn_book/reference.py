"""Leave out of the reference what a named tuple says of each field: "Alias for field number 0"."""


def skip_aliases(app, what, name, obj, skip, options):
    """Skip a field of a named tuple; the class's own docstring lists it."""
    return skip or (getattr(obj, "__doc__", None) or "").startswith("Alias for field number")


def setup(app):
    """Connect to autodoc."""
    app.connect("autodoc-skip-member", skip_aliases)
