"""make.py and the Makefile: what they offer, what they install, and what they say when they
cannot.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import make

ROOT = Path(make.__file__).parent


def run(*command, **options):
    """Run a command at the root of the tree and return what it did, as outside of any make."""
    options["env"] = {k: v for k, v in options.get("env", os.environ).items() if "MAKE" not in k}
    return subprocess.run(
        [str(part) for part in command], cwd=ROOT, capture_output=True, text=True, **options
    )


def script(path, text):
    """Write an executable script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


# --- the command line -----------------------------------------------------------------------------
@pytest.mark.parametrize("word", [(), ("help",), ("--help",)], ids=["none", "help", "--help"])
def test_help_gives_every_command_a_whole_sentence(word, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    make.main(*word)
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 70
    text = " ".join(said.split())
    assert "lab Open JupyterLab on the chapters; arguments go to it. notebooks" in text
    assert "everything in tests/, on up to four cores; arguments go to pytest. test-quick" in text
    for name in make.COMMANDS:
        assert f"\n  {name} " in said


def test_unknown_command_is_named_with_the_nearest_one():
    done = run(sys.executable, "make.py", "bok")
    assert done.returncode != 0
    assert "There is no command bok. Did you mean book?" in done.stderr
    assert "notebooks" in done.stderr
    assert "Did you mean" not in run(sys.executable, "make.py", "xyzzy").stderr


def test_arguments_that_nobody_takes_are_refused(monkeypatch):
    monkeypatch.setitem(make.COMMANDS, "clean", lambda: pytest.fail("carried out"))
    with pytest.raises(SystemExit, match="clean takes no arguments; it was given: -x html"):
        make.main("clean", "-x", "html")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("lab", "--port", "8890"), "-m jupyterlab"),
        (("test", "-k", "masks"), "-m pytest"),
        (("test-quick", "-k", "masks"), "-m pytest"),
    ],
    ids=["lab", "test", "test-quick"],
)
def test_arguments_go_to_the_program_behind(words, command, monkeypatch):
    calls = []
    monkeypatch.setattr(make, "prepare", lambda lists: None)
    monkeypatch.setattr(make, "run", lambda *words: calls.append(" ".join(map(str, words[1:]))))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # which running tests would set
    make.main(*words)
    assert calls[-1].startswith(command)
    assert calls[-1].endswith(" ".join(words[1:]))
    assert ("not build and not browser" in calls[-1]) == (words[0] == "test-quick")


def test_interrupted_command_says_so_in_a_word(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setitem(make.COMMANDS, "book", interrupted)
    with pytest.raises(SystemExit, match="Stopped"):
        make.main("book")


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed: Makefile not tried")
def test_makefile_hands_every_word_and_its_options_to_make_py(tmp_path):
    echo = script(tmp_path / "echo", '#!/bin/sh\nprintf "<%s>" "$@"\necho\n')
    for words, heard in (
        ([], "<make.py><book>"),  # there is a folder of that name
        (["test", "ARGS=-k 'a or b' -x"], "<make.py><test><-k><a or b><-x>"),
        (["bok"], "<make.py><bok>"),
        (["clean", "book"], "<make.py><clean>\n<make.py><book>"),
    ):
        done = run("make", *words, f"PYTHON={echo}")
        assert (done.returncode, done.stdout.strip()) == (0, heard), done.stderr


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed: Makefile not tried")
def test_makefile_says_that_python_is_missing():
    done = run("make", "book", "PYTHON=python-of-the-future")
    assert done.returncode != 0
    assert "Python 3.11 or newer" in done.stdout


def test_jupyter_book_starts_without_the_checker_that_is_left_out():
    done = run(sys.executable, "-c", make.JUPYTER_BOOK, "--version")
    assert done.returncode == 0, done.stderr


# --- the environment ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("broken", "word"),
    [
        ("sys.version_info = (3, 10, 4)", "needs Python 3.11 or newer"),
        ("importlib.util.find_spec = lambda name: None", "python3-venv"),
    ],
    ids=["old Python", "no venv"],
)
def test_unfit_python_is_told_so(broken, word):
    done = run(sys.executable, "-c", f"import make, sys, importlib.util; {broken}; make.book()")
    assert done.returncode != 0
    assert word in done.stderr


# a Python that has pip, unless a file says otherwise
FAKE_PYTHON = '#!/bin/sh\ntest ! -e "$(dirname "$0")/no-pip"\n'


class Tree:
    """A tree whose commands are noted, not run; ``venv`` makes an environment like a real one."""

    def __init__(self, folder, monkeypatch):
        self.root, self.venv, self.python = folder, folder / ".venv", folder / ".venv/bin/python"
        self.made = self.installed = 0
        self.interrupted = False
        for name in (*make.DEVELOPER, *make.VERSIONS):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("")
        monkeypatch.setattr(make, "ROOT", folder)
        monkeypatch.setattr(make, "VENV", self.venv)
        monkeypatch.setattr(make, "PYTHON", self.python)
        monkeypatch.setattr(make, "run", self._run)
        monkeypatch.setattr(make, "follow", self._follow)

    def _run(self, *command):
        assert command[1:] == ("-m", "venv", "--clear", self.venv)
        shutil.rmtree(self.venv, ignore_errors=True)
        script(self.python, FAKE_PYTHON)
        self.made += 1

    def _follow(self, command, pip, log):
        self.installed += 1
        if self.interrupted:
            raise KeyboardInterrupt
        return 0

    def prepare(self, lists=make.READER):
        """Return what had to be done: (environments made, installations)."""
        self.made = self.installed = 0
        make.prepare(lists)
        return self.made, self.installed


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Return a tree without an environment."""
    if os.name == "nt":
        pytest.skip("the Python of this test is a shell script")
    return Tree(tmp_path, monkeypatch)


def test_environment_is_made_once_and_installed_again_after_a_change(tree):
    assert tree.prepare() == (1, 1)
    for lists, change, done in (
        (make.READER, None, (0, 0)),
        (make.DEVELOPER, None, (0, 1)),
        (make.READER, None, (0, 0)),
        (make.READER, "requirements.txt", (0, 1)),
        (make.DEVELOPER, "tests/requirements.txt", (0, 1)),
        (make.READER, "pyproject.toml", (0, 1)),
        (make.READER, "constraints.txt", (0, 1)),
    ):
        if change:
            (tree.root / change).write_text(f"# {change}")
        assert tree.prepare(lists) == done, (lists, change)


@pytest.mark.parametrize("harm", ["half made", "no pip", "no python", "another python"])
def test_broken_environment_is_made_anew(tree, harm):
    tree.prepare()
    if harm == "half made":  # no note that all is well, as when making it was interrupted
        shutil.rmtree(tree.venv)
        script(tree.python, FAKE_PYTHON)
    elif harm == "no pip":
        (tree.venv / "bin/no-pip").touch()
        (tree.root / "requirements.txt").write_text("more")
    elif harm == "no python":
        tree.python.unlink()
    else:  # an upgrade: the link leads elsewhere, where pip is not
        other = script(tree.root / "other/bin/python", FAKE_PYTHON)
        (tree.venv / "bin/no-pip").touch()
        tree.python.unlink()
        tree.python.symlink_to(other)
    assert tree.prepare() == (1, 1)
    assert tree.prepare() == (0, 0)


def test_moved_tree_gets_an_environment_of_its_place(tree, monkeypatch):
    tree.prepare()
    moved = tree.root.rename(tree.root.with_name("moved"))
    again = Tree(moved, monkeypatch)
    assert again.prepare() == (1, 1)


def test_interrupted_installation_begins_from_scratch(tree):
    tree.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        tree.prepare()
    tree.interrupted = False
    assert tree.prepare() == (1, 1)
    assert tree.prepare() == (0, 0)


# --- pip ------------------------------------------------------------------------------------------
REFUSED = (
    "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by "
    "'NewConnectionError('<pip._vendor.HTTPSConnection object at 0x7>: Failed to establish a new "
    "connection: [Errno -2] Name or service not known')': /simple/numpy/"
)
PROXY = (
    "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by "
    "'ReadTimeoutError(\"HTTPSConnectionPool: Read timed out.\")': /simple/numpy/"
)
COLLECTS = "Collecting numpy<3,>=2.0 (from attn_lib)"
INSTALLS = "Installing collected packages: numpy, sympy, tqdm"


def learnt(tmp_path, *lines):
    """Return what is known of a pip that has said these lines."""
    pip = make.Pip(tmp_path)
    for line in lines:
        pip.read(line + "\n")
    return pip


def test_progress_is_told_in_a_few_words(tmp_path):
    site = tmp_path / "lib/python3.11/site-packages"
    (site / "pip-1.dist-info").mkdir(parents=True)
    pip = learnt(tmp_path, "Obtaining file:///here", COLLECTS, "  Downloading numpy-2.whl (16 MB)")
    assert pip.doing() == "finding and downloading: 2 packages numpy"
    pip.read(REFUSED)
    assert pip.doing() == (
        "no answer from the package index (Name or service not known); trying again"
    )
    pip.read("Processing /wheels/sympy-1.14.0-py3-none-any.whl (from attn_lib)")
    assert pip.doing() == "finding and downloading: 3 packages sympy"
    pip.read(INSTALLS)
    assert pip.doing() == "installing: 0 of 3 packages"
    (site / "numpy-2.dist-info").mkdir()
    assert pip.doing() == "installing: 1 of 3 packages"


def test_no_network_is_said_in_words(tmp_path):
    none = "ERROR: No matching distribution found for numpy"
    looking = "Looking in indexes: https://mirror.example/simple"
    for lines, reason, index in (
        ((looking, REFUSED, none), "Name or service not known", "https://mirror.example/simple"),
        ((PROXY, none), "ReadTimeoutError", "its usual index"),
    ):
        said = learnt(tmp_path, *lines).complaint()
        assert f"No package index could be reached ({reason}); pip asked {index}." in said
        assert "PIP_INDEX_URL" in said
        assert "Retrying" not in said
        assert "ERROR" not in said


def test_other_failures_are_told_by_the_end_of_what_pip_said(tmp_path):
    failed = "ERROR: [Errno 28] No space left on device"
    chatter = [f"Collecting package{i}" for i in range(30)]
    pip = learnt(tmp_path, REFUSED, *chatter, "WARNING: never mind", failed)
    said = pip.complaint()
    assert failed in said
    assert "install.log" in said
    assert "package29" in said
    assert "package5\n" not in said
    assert "WARNING" not in said


PIP = """\
import sys, time
for line in {lines!r}:
    print(line, flush=True)
    time.sleep(0.1)
sys.exit({code})
"""


@pytest.mark.parametrize(
    ("lines", "code", "settled"),
    [
        ([COLLECTS, INSTALLS], 0, True),
        ([COLLECTS, "ERROR: no such thing"], 1, True),
        ([COLLECTS, INSTALLS, "ERROR: disk full"], 1, False),
    ],
    ids=["good", "nothing installed", "half installed"],
)
def test_pip_is_followed_and_its_failure_told(lines, code, settled, tmp_path, monkeypatch, capsys):
    """A real process in pip's place; an installation that broke off half way is not built on."""
    (tmp_path / ".settled").touch()
    pip = [sys.executable, "-c", PIP.format(lines=lines, code=code)]
    follow = make.follow
    monkeypatch.setattr(make, "follow", lambda command, *rest: follow(pip, *rest))
    monkeypatch.setattr(make, "VENV", tmp_path)
    monkeypatch.setattr(make, "PATIENCE", 0)
    if code:
        with pytest.raises(SystemExit, match=lines[-1]):
            make.install(["requirements.txt"])
    else:
        make.install(["requirements.txt"])
    assert (tmp_path / ".settled").exists() == settled
    assert (tmp_path / "install.log").read_text().splitlines() == lines
    said = capsys.readouterr().out
    assert "Installing into .venv: requirements.txt" in said
    assert "0:00  finding and downloading: 1 packages numpy" in said
