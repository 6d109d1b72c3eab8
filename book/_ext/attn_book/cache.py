"""Notice every change: outputs are kept under a fingerprint of what cells import, pages under
one of what shapes them.

MyST-NB's cache knows a chapter by the source of its cells alone: it would show yesterday's
numbers after a change of attn_lib or of the book's data. Sphinx does not look at its extensions
at all.
"""

import hashlib
import importlib.metadata
import os
import shutil
import sys
from fnmatch import fnmatch
from pathlib import Path

CELLS = ("attn_lib", "book/data")
PAGES = ("_toc.yml", "book/_ext", "book/_static", "book/_templates", "attn_lib/labs/static")
FRONT_END = ("attn_lib/labs/js/*", "attn_lib/labs/static/*", "*/labs/*.js", "*/labs/*.css")
LIBRARIES = ("anywidget", "ipykernel", "ipywidgets", "matplotlib", "myst-nb", "numpy", "sympy")
BYTECODE = "*__pycache__*"
KEPT = 4


def fingerprint(root, tops, *, without=()):
    """Return a short hash of the names and bytes of all files below ``tops``."""
    digest = hashlib.sha256()
    for top in tops:
        for path in sorted([root / top, *(root / top).rglob("*")]):
            name = path.relative_to(root).as_posix()
            if path.is_file() and not any(fnmatch(name, each) for each in (BYTECODE, *without)):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()[:16]


def libraries():
    """Return the versions that decide what a cell prints and draws."""
    versions = [f"{name}-{importlib.metadata.version(name)}" for name in LIBRARIES]
    return hashlib.sha256(" ".join([sys.version, *versions]).encode()).hexdigest()[:8]


def set_fingerprints(app, config):
    """Choose the execution cache for this content, and tell Sphinx what else the pages depend
    on.
    """
    root = Path(app.srcdir)
    caches = Path(app.outdir).parent / ".jupyter_cache"
    cache = caches / f"{fingerprint(root, CELLS, without=FRONT_END)}-{libraries()}"
    cache.mkdir(parents=True, exist_ok=True)
    os.utime(cache)
    config.nb_execution_cache_path = str(cache)
    config.attn_book_fingerprint = fingerprint(root, PAGES)
    prune(caches)


def prune(caches):
    """Keep the caches used last: a revert finds its outputs, and the disk does not fill."""
    for old in sorted(caches.iterdir(), key=os.path.getmtime, reverse=True)[KEPT:]:
        shutil.rmtree(old)


def setup(app):
    """Set both before any other extension reads its configuration."""
    app.add_config_value("attn_book_fingerprint", "", "env")  # "env": a change re-reads every page
    app.connect("config-inited", set_fingerprints, priority=1)
