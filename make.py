"""Build, test and open the book: ``python make.py help`` lists the commands.

The one entry point behind the Makefile and for machines without make. It needs Python alone;
whatever else a command needs is installed into ``.venv`` beside this file, once, and again only
when a list of requirements changes. This file is kept readable by old Pythons so that it can
say that they are too old.
"""

import difflib
import hashlib
import importlib.util
import inspect
import os
import queue
import re
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "_build"
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
OLDEST = (3, 11)
READER = ["requirements.txt"]
DEVELOPER = ["requirements.txt", "tests/requirements.txt"]
VERSIONS = ["constraints.txt", "pyproject.toml"]  # which the lists lean on
# Without a checker of addresses that nobody here asks, and that takes two seconds to import.
JUPYTER_BOOK = """
import sys
sys.modules["rfc3987_syntax"] = None
from jupyter_book.cli.main import main
sys.exit(main())
"""
PATIENCE = 0.5 if sys.stdout.isatty() else 15  # seconds between two words about an installation


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
    stamp = VENV / (".installed-" + ("developer" if lists == DEVELOPER else "reader"))
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted(lists):
        return
    if not sound():
        print("Making the environment .venv ...", flush=True)
        run(sys.executable, "-m", "venv", "--clear", VENV)
        settle()
    install(lists)
    stamp.write_text(wanted(lists))


def wanted(lists):
    """Return a fingerprint of the requirement files, the Python and the place of this tree."""
    text = [str(ROOT), os.path.realpath(str(PYTHON))]
    text += [(ROOT / name).read_text(encoding="utf-8") for name in [*lists, *VERSIONS]]
    return hashlib.sha256("\0".join(text).encode()).hexdigest()


def sound():
    """Return whether ``.venv`` is worth adding to: whole, of this place, its Python still there."""
    settled = VENV / ".settled"
    if not (PYTHON.exists() and settled.exists() and settled.read_text() == str(ROOT)):
        return False
    return subprocess.call([str(PYTHON), "-c", "import pip"], stderr=subprocess.DEVNULL) == 0


def settle():
    """Note that no installation has been cut short, and where this tree stands."""
    (VENV / ".settled").write_text(str(ROOT))


def install(lists):
    """Run pip, say in one line what it is doing, and in words what went wrong."""
    print("Installing into .venv: " + ", ".join(lists) + " (at first, minutes)", flush=True)
    (VENV / ".settled").unlink()
    command = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off"]
    command += [part for name in lists for part in ("-r", name)]
    pip = Pip(VENV)
    with (VENV / "install.log").open("w", encoding="utf-8") as log:
        code = follow(command, pip, log)
    if code == 0 or not pip.installing:
        settle()
    if code:
        sys.exit(pip.complaint())


def follow(command, pip, log):
    """Run pip, show what it does, keep what it says; return its exit code."""
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    with subprocess.Popen(
        [str(part) for part in command],
        cwd=str(ROOT),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        threading.Thread(target=read, daemon=True).start()
        began = shown = time.monotonic()
        line = ""
        while line is not None:
            try:
                line = lines.get(timeout=0.5)
                log.write(line or "")
                pip.read(line or "")
            except queue.Empty:
                pass
            if line is None or time.monotonic() - shown > PATIENCE:
                shown = time.monotonic()
                minutes, seconds = divmod(int(shown - began), 60)
                tell(f"  {minutes}:{seconds:02d}  {pip.doing()}", last=line is None)
        return process.wait()


def tell(status, last):
    """Show where an installation stands: in one line of a terminal, elsewhere in one more line."""
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns - 1
        print("\r" + status[:width].ljust(width), end="\n" if last else "", flush=True)
    else:
        print(status, flush=True)


class Pip:
    """What pip is doing, learnt from its lines."""

    def __init__(self, venv):
        self.site = next(venv.glob("[Ll]ib/**/site-packages"), venv)
        self.before = self.installed()
        self.found = 0
        self.installing = 0  # how many packages, when it comes to that
        self.waiting = ""  # why no answer comes
        self.package = ""
        self.index = "its usual index"
        self.lines = []

    def installed(self):
        """Return how many packages are there."""
        return len(list(self.site.glob("*.dist-info")))

    def read(self, line):
        """Learn from one line."""
        line = line.rstrip()
        word = line.split(" ")[0]
        refused = re.search(r"Retrying \(Retry\(.*connection broken by '(\w+)", line)
        if refused:
            reason = re.findall(r"\] ([^'\"()]+)", line)  # what the system says
            self.waiting = reason[0] if reason else refused[1]
        elif word in ("Collecting", "Processing", "Obtaining", "Requirement"):
            self.found += 1
            self.waiting = ""
            self.package = re.split(r"[ (;<>=!~\[]", line[len(word) + 1 :])[0].split("/")[-1]
            if word == "Processing":  # the name of a file
                self.package = self.package.split("-")[0]
        elif line.startswith("Looking in indexes: "):
            self.index = line[len("Looking in indexes: ") :]
        elif line.startswith("Installing collected packages: "):
            self.installing = line.count(",") + 1
        self.lines.append(line)

    def doing(self):
        """Return what pip is doing, in a few words."""
        if self.installing:
            done = min(self.installed() - self.before, self.installing)
            return f"installing: {done} of {self.installing} packages"
        if self.waiting:
            return f"no answer from the package index ({self.waiting}); trying again"
        return f"finding and downloading: {self.found} packages {self.package}".rstrip()

    def complaint(self):
        """Return what went wrong, and what to do."""
        rest = "What pip said is in .venv/install.log."
        if self.waiting:
            return (
                f"No package index could be reached ({self.waiting}); pip asked {self.index}.\n"
                "Connect this machine to the Internet, or name a mirror of the index in the "
                f"variable PIP_INDEX_URL, and run this again.\n{rest}"
            )
        said = [line for line in self.lines if line and not line.startswith("WARNING")][-12:]
        return "\n".join([*said, f"pip could not install what the book needs. {rest}"])


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
    try:
        run(PYTHON, "-c", JUPYTER_BOOK, "build", ".", "-n", "-W", "--keep-going")
    except BaseException:
        forget("html", "notebooks", ".doctrees", "jupyter_execute")
        raise
    good.touch()


def forget(*names):
    """Delete folders of ``_build``."""
    for name in names:
        shutil.rmtree(BUILD / name, ignore_errors=True)


def lab(*arguments):
    """Open JupyterLab on the chapters; arguments go to it."""
    prepare(READER)
    where = [f"--ServerApp.root_dir={ROOT}", "--LabApp.default_url=/lab/tree/book"]
    run(PYTHON, "-m", "jupyterlab", *where, *arguments)


def notebooks():
    """Pack the chapters as .ipynb, with attn_lib and its requirements, into one zip that runs
    anywhere.
    """
    book()
    run(PYTHON, ROOT / "book/_ext/attn_book/pack.py")


def test(*arguments):
    """Check the style, then everything in ``tests/``, on up to four cores; arguments go to
    pytest.
    """
    prepare(DEVELOPER)
    style()
    run(PYTHON, ROOT / "tests/find_chromium.py")
    pytest(*arguments)


def test_quick(*arguments):
    """Check the style and the units: no builds, no browser; arguments go to pytest."""
    prepare(DEVELOPER)
    style()
    pytest("-m", "not build and not browser", *arguments)


def style():
    """Check style and format of every Python file."""
    run(PYTHON, "-m", "ruff", "check", ".")
    run(PYTHON, "-m", "ruff", "format", "--check", ".")


def pytest(*arguments):
    """Run tests on up to four cores, each with one thread: more would wait for one another."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    cores = ["-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"]
    run(PYTHON, "-m", "pytest", *cores, *arguments)


def clean():
    """Delete everything built, the environment excepted."""
    shutil.rmtree(BUILD, ignore_errors=True)


def help():
    """Say what the commands do."""
    print(usage())


COMMANDS = {f.__name__: f for f in (book, lab, notebooks, test, test_quick, clean, help)}
COMMANDS = {name.replace("_", "-"): f for name, f in COMMANDS.items()}


# --- the command line -----------------------------------------------------------------------------
def usage():
    """Return the commands, each with the first paragraph of its docstring."""
    width = min(shutil.get_terminal_size().columns, 100)
    lines = ["usage: make COMMAND [ARGS=...]   or   python make.py COMMAND [...]", ""]
    for name, command in COMMANDS.items():
        summary = " ".join(inspect.getdoc(command).split("\n\n")[0].split())
        text = f"  {name:12}{summary.replace('``', '')}"
        lines += textwrap.wrap(text, width, subsequent_indent=" " * 14)
    return "\n".join(lines)


def main(name="help", *arguments):
    """Carry out one command."""
    name = {"-h": "help", "--help": "help"}.get(name, name)
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        sys.exit(f"There is no command {name}.{hint}\n\n{usage()}")
    if arguments and not inspect.signature(COMMANDS[name]).parameters:
        sys.exit(f"{name} takes no arguments; it was given: {' '.join(arguments)}")
    try:
        COMMANDS[name](*arguments)
    except KeyboardInterrupt:
        sys.exit("\nStopped.")


if __name__ == "__main__":
    main(*sys.argv[1:])
