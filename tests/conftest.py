"""What several test files need: the built book, a browser, the front end's tools."""

import shutil
import subprocess
import sys
from pathlib import Path

import find_chromium
import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def built_book():
    """Return ``_build/html``, built by the same code as ``make book``."""
    subprocess.run([sys.executable, ROOT / "make.py", "book"], cwd=ROOT, check=True)
    return ROOT / "_build" / "html"


@pytest.fixture(scope="session")
def chromium():
    """Return a Playwright browser."""
    path = find_chromium.ensure()  # first: it may start a Playwright of its own
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=find_chromium.FLAGS)
        yield browser
        browser.close()


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
