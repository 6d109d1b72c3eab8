"""Build, test and open the book: ``python make.py book | test | lab | notebooks | clean``.

The one entry point behind the Makefile and for machines without make. It needs Python alone;
whatever else a command needs is installed into ``.venv`` beside this file, once, and again only
when a list of requirements changes. This file is kept readable by old Pythons so that it can
say that they are too old.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "_build"
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
OLDEST = (3, 11)
READER = ["requirements.txt"]
DEVELOPER = ["requirements.txt", "tests/requirements.txt"]


# --- environment ----------------------------------------------------------------------------------
def prepare(lists):
    """Create ``.venv`` and install the given requirement lists, unless that is done."""
    if sys.version_info < OLDEST:
        have = ".".join(map(str, sys.version_info[:3]))
        sys.exit(f"This book needs Python 3.11 or newer; {sys.executable} is {have}.")
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        sys.exit(
            f"{sys.executable} cannot make virtual environments: its venv or ensurepip module is "
            "missing.\nOn Debian or Ubuntu: sudo apt-get install python3-venv"
        )
    wanted = digest([*lists, "pyproject.toml"])
    stamp = VENV / (".installed-" + ("developer" if lists == DEVELOPER else "reader"))
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    print("Installing into .venv: " + ", ".join(lists) + " (at first, minutes) ...", flush=True)
    if not PYTHON.exists():
        run(sys.executable, "-m", "venv", "--clear", VENV)
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, *(part for name in lists for part in ("-r", name)))
    stamp.write_text(wanted)


def digest(names):
    """Return a fingerprint of the requirement files and the place of this tree."""
    text = [str(ROOT)] + [(ROOT / name).read_text(encoding="utf-8") for name in names]
    return hashlib.sha256("\0".join(text).encode()).hexdigest()


def run(*command):
    """Run a command from the root of the tree; stop this program when it fails."""
    code = subprocess.call([str(part) for part in command], cwd=str(ROOT), env=environment())
    if code:
        sys.exit(code)


def environment():
    """Return the environment of commands: this tree's attn_lib, this venv's kernel."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "JUPYTER_CONFIG_PATH": str(ROOT / ".jupyter"),
    }


# --- commands -------------------------------------------------------------------------------------
def book():
    """Run every chapter and write the pages to ``_build/html``; a warning is an error.

    Every page is written anew from the kept doctrees, so no page can quote an old title or
    outlive its chapter. A build that fails, or is interrupted, leaves neither pages nor
    doctrees: Sphinx reports a page's warnings only when it reads the page, so kept doctrees
    would let the second try pass.
    """
    prepare(READER)
    good = BUILD / ".good"
    if not good.exists():
        forget("html", ".doctrees", "jupyter_execute")
    good.unlink(missing_ok=True)
    forget("html", "notebooks")
    jupyter_book = "import sys; from jupyter_book.cli.main import main; sys.exit(main())"
    try:
        run(PYTHON, "-c", jupyter_book, "build", ".", "-n", "-W", "--keep-going")
    except BaseException:
        forget("html", "notebooks", ".doctrees", "jupyter_execute")
        raise
    good.touch()


def forget(*names):
    """Delete folders of ``_build``."""
    for name in names:
        shutil.rmtree(BUILD / name, ignore_errors=True)


def notebooks():
    """Pack the chapters as .ipynb, with attn_lib and its requirements, into one zip that runs
    anywhere.
    """
    book()
    run(PYTHON, ROOT / "book/_ext/attn_book/pack.py")


def lab():
    """Open JupyterLab on the chapters."""
    prepare(READER)
    run(
        PYTHON,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={ROOT}",
        "--LabApp.default_url=/lab/tree/book",
    )


def test(*arguments):
    """Check the style, then everything in ``tests/``, on up to four cores; arguments go to
    pytest.
    """
    prepare(DEVELOPER)
    run(PYTHON, "-m", "ruff", "check", ".")
    run(PYTHON, "-m", "ruff", "format", "--check", ".")
    run(PYTHON, ROOT / "tests/find_chromium.py")
    cores = ["-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"]
    run(PYTHON, "-m", "pytest", *cores, *arguments)


def clean():
    """Delete everything built, the environment excepted."""
    shutil.rmtree(BUILD, ignore_errors=True)


COMMANDS = {f.__name__: f for f in (book, test, lab, notebooks, clean)}

if __name__ == "__main__":
    name, *rest = sys.argv[1:] or ["help"]
    if name not in COMMANDS or (rest and name != "test"):
        summary = [f"  {c:10} {f.__doc__.strip().splitlines()[0]}" for c, f in COMMANDS.items()]
        sys.exit("usage: python make.py COMMAND\n\n" + "\n".join(summary))
    COMMANDS[name](*rest)
