"""Serve everything from the book itself: the labs' script, MathJax, and nothing else.

A page opened from disk, offline, must be whole; a page on the web must ask nobody but its own host.
"""

import importlib.util
import shutil
from pathlib import Path

from sphinx.errors import ExtensionError

STATIC = "attn_lib/labs/static"
LABS = ("labs.page.js", "labs.css")
MATHJAX = (
    "startup.js",
    "core.js",
    "input/tex.js",
    "output/chtml.js",
    "output/chtml/fonts/tex.js",
    "output/chtml/fonts/woff-v2",
    "a11y/assistive-mml.js",
)


def add_labs(app, config):
    """Give every page the labs' style and script; a module script would not run from ``file://``."""
    missing = [name for name in LABS if not Path(app.srcdir, STATIC, name).is_file()]
    if missing:
        raise ExtensionError(
            f"{' and '.join(missing)} missing in {STATIC}: no lab would run in the pages. "
            "These files are committed; to make them anew, run the build in attn_lib/labs/js."
        )
    config.html_static_path += [f"{STATIC}/{name}" for name in LABS]
    app.add_css_file("labs.css")
    app.add_js_file("labs.page.js", loading_method="defer")


def copy_mathjax(app, exception):
    """Copy the files of MathJax that pages use: 1 MB of the 24 the package holds."""
    if exception or app.builder.format != "html":
        return
    source = (
        Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax"
    )
    target = Path(app.outdir, "_static/mathjax")
    for name in MATHJAX:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, dirs_exist_ok=True)
        else:
            shutil.copyfile(source / name, target / name)


def setup(app):
    """Connect both."""
    app.connect("config-inited", add_labs)
    app.connect("build-finished", copy_mathjax)
