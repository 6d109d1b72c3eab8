"""Find a Chromium for the browser tests, or install one: ``python tests/find_chromium.py`` says
which.

Browser tests are never skipped for want of a browser: where none can be had, this says what to
type.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
)
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HELP = """No Chromium or Chrome was found, and installing one failed. The browser tests need it:
  Debian, Ubuntu:  sudo apt-get install chromium
  elsewhere:       python -m playwright install chromium   (in .venv), or install Google Chrome"""


def find():
    """Return the path of an installed browser, or None."""
    installed = [shutil.which(name) for name in NAMES]
    installed += [place for place in PLACES if Path(place).exists()]
    return next(filter(None, installed), None) or playwrights_own()


def playwrights_own():
    """Return the browser that ``playwright install`` put there, or None."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def install():
    """Install a browser: Debian's package for root on Debian, Playwright's own build elsewhere."""
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (
            ["update", "-qq"],
            ["install", "-y", "-qq", "--no-install-recommends", "chromium"],
        ):
            subprocess.run(["apt-get", *step], env=environment, check=False)
    else:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


def ensure():
    """Return the path of a browser; exit with advice when there is none and none can be
    installed.
    """
    path = find()
    if path is None:
        print("No Chromium or Chrome here: installing one for the browser tests ...", flush=True)
        install()
        path = find()
    if path is None:
        sys.exit(HELP)
    return path


if __name__ == "__main__":
    print(f"Browser tests use {ensure()}")
