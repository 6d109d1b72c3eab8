"""What several test files need: the built book, a browser, the front end's tools."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import find_chromium
import fonts
import hypothesis
import nbformat
import pytest
from filelock import FileLock
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]

# no test is timed: a busy machine is not an error
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_collection_modifyitems(items):
    """Mark what builds a book or drives a browser: the rest is `make test-quick`."""
    for item in items:
        if "browser" in item.path.relative_to(ROOT).parts or "chromium" in item.fixturenames:
            item.add_marker("browser")
        if "built_book" in item.fixturenames:
            item.add_marker("build")


def pytest_terminal_summary(terminalreporter):
    """Say how long each file took, the slowest first: a slow suite is a defect to be found."""
    seconds = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if type(report) is pytest.TestReport:  # not a part of one: its time is in the whole
                seconds[report.nodeid.split("::")[0]] += report.duration
    terminalreporter.section("seconds in each file, summed over processes")
    for name, took in seconds.most_common():
        terminalreporter.write_line(f"{took:8.1f}  {name}")
    terminalreporter.write_line(f"{sum(seconds.values()):8.1f}  all")


@pytest.fixture(scope="session")
def built_book(testrun_uid):
    """Return ``_build/html``, built by the same code as ``make book``, once in a run of tests."""
    build = ROOT / "_build"
    build.mkdir(exist_ok=True)
    mark = build / ".built-for-tests"
    with FileLock(build / ".tests.lock"):  # tests run in several processes
        if not mark.exists() or mark.read_text() != testrun_uid:
            subprocess.run([sys.executable, ROOT / "make.py", "book"], cwd=ROOT, check=True)
            mark.write_text(testrun_uid)
    return build / "html"


@pytest.fixture(scope="session")
def launch(tmp_path_factory):
    """Return a function that starts a browser, which sees the fonts of the tests alone."""
    path = find_chromium.ensure()  # first: it may start a Playwright of its own
    with sync_playwright() as playwright:
        browsers = []
        environment = fonts.environment(tmp_path_factory.mktemp("fonts"))

        def start(**options):
            options |= {"executable_path": path, "args": find_chromium.FLAGS, "env": environment}
            browsers.append(playwright.chromium.launch(**options))
            return browsers[-1]

        yield start
        for browser in browsers:
            browser.close()


@pytest.fixture(scope="session")
def chromium(launch):
    """Return a browser."""
    return launch()


EXECUTE = """
import sys, nbclient, nbformat
notebook = nbformat.read("given.ipynb", as_version=4)
nbclient.NotebookClient(notebook, timeout=600, startup_timeout=300).execute()
nbformat.write(notebook, "executed.ipynb")
"""


@pytest.fixture
def execute():
    """Return a function that runs a notebook in a folder, in a process of its own.

    In this process Playwright's event loop runs, and nbclient would want it. The notebook gets the
    attn_lib of its folder, as a reader's would.
    """

    def run(notebook, folder):
        nbformat.write(notebook, folder / "given.ipynb")
        command = [sys.executable, "-c", EXECUTE]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return nbformat.read(folder / "executed.ipynb", as_version=4)

    return run


@pytest.fixture(scope="session")
def node_modules():
    """Return the front end's development packages; a test that needs them says so without Node."""
    if not shutil.which("npm"):
        pytest.skip(
            "Node.js is not installed: what needs it (bundle freshness, axe) is not checked"
        )
    front_end = ROOT / "attn_lib" / "labs" / "js"
    installed, lock = front_end / "node_modules/.package-lock.json", front_end / "package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run(
            [shutil.which("npm"), "ci", "--no-audit", "--no-fund"], cwd=front_end, check=True
        )
    return front_end / "node_modules"
