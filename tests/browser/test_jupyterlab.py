"""JupyterLab for real: a chapter opens as a notebook; a lab and its Python object move together.

The server is started on this machine alone, with folders of its own for settings and workspaces.
"""

from __future__ import annotations

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

import numpy as np
import pytest
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


@pytest.fixture(scope="module")
def jupyterlab(tmp_path_factory):
    """Start JupyterLab on a copy of the chapters; give its address and its token."""
    folder = tmp_path_factory.mktemp("jupyterlab")
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
        server.terminate()
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


@pytest.fixture(scope="module")
def notebook(chromium, jupyterlab):
    """Open the chapter by double click in the file browser and run it from top to bottom."""
    address, token = jupyterlab
    context = chromium.new_context(
        viewport={"width": 1400, "height": 1000}, reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    page.goto(f"{address}/lab/tree/book?token={token}")
    page.locator(".jp-DirListing-item", has_text="qkv.md").dblclick()
    page.locator(".jp-NotebookPanel:visible .jp-Cell").first.wait_for()
    page.wait_for_function(
        "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
    )
    notebook = Notebook(page)
    notebook.command("notebook:run-all-cells")
    yield notebook
    context.close()


def test_a_chapter_opens_as_a_notebook_and_runs_to_its_end(notebook):
    cells = notebook.page.evaluate(
        """jupyterapp.shell.currentWidget.content.widgets
          .filter(({model}) => model.type === "code")
          .map(({model}) => ({
            count: model.executionCount,
            errors: model.outputs.toJSON().filter((out) => out.output_type === "error"),
            stderr: model.outputs.toJSON().filter((out) => out.name === "stderr"),
          }))"""
    )
    assert len(cells) > 5
    for cell in cells:
        assert cell["count"] and not cell["errors"] and not cell["stderr"], cell
    notebook.page.locator("figure.attn-lab[data-ready=true]").first.wait_for()


def assert_in_step(notebook, lab: LabDriver) -> None:
    """What the lab shows is what its Python object computes."""
    shown = lab.shown()
    for panel in ("scores", "weights", "output"):
        python = np.array(notebook.read(f"[[float(x) for x in row] for row in probe.{panel}]"))
        np.testing.assert_allclose(getattr(shown, panel).values, python, atol=1e-6)


@pytest.fixture(scope="module")
def probe(notebook):
    """Show a lab in a new cell."""
    notebook.run(
        "from attn_lib.labs import AttentionLab\n"
        "probe = AttentionLab(scene='random', title='probe')\nprobe"
    )
    lab = notebook.page.locator('figure.attn-lab[aria-label="probe"][data-ready="true"]')
    lab.wait_for()
    return LabDriver(notebook.page, 'figure.attn-lab[aria-label="probe"] >> nth=0')


def test_what_a_reader_moves_arrives_in_python(notebook, probe):
    probe.control("temperature").fill("0.6")
    probe.control("d_k").fill("5")
    probe.shown()
    assert notebook.read("[probe.temperature, probe.d_k]") == [3.98, 5]
    assert_in_step(notebook, probe)
    probe.control("scene").select_option("river")
    probe.control("mask").select_option("causal")
    probe.action("reverse").click()
    probe.chip(2).click()
    probe.shown()
    state = notebook.read("[probe.scene, probe.order, probe.query, probe.mask, probe.d_k]")
    assert state == ["river", [5, 4, 3, 2, 1, 0], 2, "causal", 4]
    assert_in_step(notebook, probe)


def test_what_python_sets_arrives_in_the_page(notebook, probe):
    notebook.run("probe.scene = 'random'; probe.temperature = 0.25; probe.d_k = 33")
    notebook.run("probe.order = [7, 0, 1, 2, 3, 4, 6, 5]; probe.query = 3; probe.mask = 'none'")
    notebook.page.wait_for_function(
        """() => document.querySelector('figure[aria-label="probe"] [data-control=d_k]').value === "33"
          && document.querySelector('figure[aria-label="probe"] [data-control=query]').value === "3"
        """  # noqa: E501
    )
    assert abs(float(probe.control("temperature").input_value()) - np.log10(0.25)) < 0.02
    assert probe.shown().order == [7, 0, 1, 2, 3, 4, 6, 5]
    assert_in_step(notebook, probe)


def test_two_views_and_a_linked_slider_stay_in_step(notebook, probe):
    notebook.run(
        "import ipywidgets\nslider = ipywidgets.FloatSlider(min=0.1, max=10, step=0.1)\n"
        "link = ipywidgets.link((slider, 'value'), (probe, 'temperature'))\n"
        "ipywidgets.VBox([slider, probe])"
    )
    second = LabDriver(notebook.page, 'figure.attn-lab[aria-label="probe"] >> nth=1')
    second.figure.wait_for()
    second.control("temperature").fill("0.3")
    probe.action("shuffle").click()
    second.shown()
    assert notebook.read("slider.value") == pytest.approx(2)  # ipywidgets' slider leaves dust
    notebook.run("slider.value = 5.0")
    notebook.page.wait_for_function(
        """() => [...document.querySelectorAll('figure[aria-label="probe"] [data-control=temperature]')]
          .every((input) => Math.abs(input.value - Math.log10(5)) < 0.02)"""  # noqa: E501
    )
    assert_in_step(notebook, probe)
    np.testing.assert_array_equal(probe.shown().weights.values, second.shown().weights.values)


def test_bad_values_are_refused_in_python_and_the_page_stays(notebook, probe):
    before = probe.shown().weights.values
    said = notebook.run("try:\n    probe.temperature = -1\nexcept ValueError as no:\n    print(no)")
    assert said.startswith("temperature must be from 0.01 to 100")
    np.testing.assert_array_equal(probe.shown().weights.values, before)


def test_jupyterlabs_dark_theme_recolours_labs(notebook, probe):
    theme = probe.figure.locator(".attn-live")
    notebook.page.evaluate(
        """(theme) => jupyterapp.commands.execute("apputils:change-theme", {theme})""",
        "JupyterLab Dark",
    )
    notebook.page.wait_for_function(
        "document.querySelector('figure[aria-label=\"probe\"] .attn-live').dataset.theme === 'dark'"
    )
    assert theme.evaluate("(e) => getComputedStyle(e).colorScheme") == "dark"
