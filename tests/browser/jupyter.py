"""Start JupyterLab on this machine alone, and work in a notebook as its reader does."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from browser.driver import LabDriver

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 120


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def own_environment(folder: Path) -> dict:
    """Give the environment of ``make lab``, with every folder of the user's replaced."""
    own = {
        f"{name}": str(folder / name.lower())
        for name in (
            "JUPYTER_CONFIG_DIR",
            "JUPYTER_DATA_DIR",
            "JUPYTER_RUNTIME_DIR",
            "JUPYTERLAB_SETTINGS_DIR",
            "JUPYTERLAB_WORKSPACES_DIR",
            "IPYTHONDIR",
        )
    }
    return {
        **os.environ,
        **own,
        "JUPYTER_CONFIG_PATH": str(ROOT / ".jupyter"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYTHONPATH": str(ROOT),
    }


def wait_until_it_answers(server: subprocess.Popen, url: str, log: Path) -> None:
    for _ in range(PATIENCE_S * 2):
        assert server.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.5)
    raise AssertionError(f"JupyterLab does not answer:\n{log.read_text()}")


@contextlib.contextmanager
def serve(folder: Path):
    """Run JupyterLab on a copy of the chapters; give its address and its token."""
    shutil.copytree(ROOT / "book", folder / "root" / "book")
    shutil.copy(ROOT / "jupytext.toml", folder / "root")
    port, token = free_port(), secrets.token_hex(16)
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        *(f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder / 'root'}"),
        "--LabApp.expose_app_in_browser=True",
    ]
    log = folder / "log"
    with log.open("w") as out:
        server = subprocess.Popen(
            command, cwd=folder, env=own_environment(folder), stdout=out, stderr=out
        )
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until_it_answers(server, f"{address}/api/status?token={token}", log)
        yield address, token
    finally:
        server.terminate()  # it ends its kernels first
        server.wait(PATIENCE_S)


class Notebook:
    """A notebook open in JupyterLab: run cells, read what they say."""

    def __init__(self, page):
        self.page = page

    def command(self, name: str):
        self.page.evaluate("(name) => jupyterapp.commands.execute(name)", name)

    def run(self, code: str) -> str:
        """Execute code in a new cell at the end and return its text; an error is an error here."""
        outputs = self.page.evaluate(
            """async (code) => {
              const notebook = jupyterapp.shell.currentWidget.content;
              notebook.activeCellIndex = notebook.widgets.length - 1;
              await jupyterapp.commands.execute("notebook:insert-cell-below");
              const cell = notebook.activeCell;
              cell.model.sharedModel.setSource(code);
              await jupyterapp.commands.execute("notebook:run-cell");
              return cell.model.outputs.toJSON();
            }""",
            code,
        )
        assert not [out for out in outputs if out["output_type"] == "error"], outputs
        return "".join("".join(out.get("text", "")) for out in outputs)

    def read(self, expression: str):
        return json.loads(self.run(f"import json; print(json.dumps({expression}))"))

    def lab(self, nth: int = -1) -> LabDriver:
        """Give a lab on the page, the last by default."""
        return LabDriver(self.page, f"figure.attn-lab[data-ready=true] >> nth={nth}")


def open_notebook(browser, address: str, token: str, chapter: str) -> Notebook:
    """Double-click a chapter in the file browser and wait for its kernel."""
    page = browser.new_context(
        viewport={"width": 1400, "height": 1000}, reduced_motion="reduce"
    ).new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    page.goto(f"{address}/lab/tree/book?token={token}")
    page.locator(".jp-DirListing-item", has_text=chapter).dblclick()
    page.locator(".jp-NotebookPanel:visible .jp-Cell").first.wait_for()
    page.wait_for_function(
        "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
    )
    return Notebook(page)
