"""JupyterLab for real: a chapter opens as a notebook; a lab and its Python object move together.

The server is started on this machine alone, with folders of its own for settings and workspaces.
"""

from __future__ import annotations

import numpy as np
import pytest
from browser.driver import LabDriver
from browser.jupyter import open_notebook, serve


@pytest.fixture(scope="module")
def notebook(chromium, tmp_path_factory):
    """Open the chapter by double click in the file browser and run it from top to bottom."""
    with serve(tmp_path_factory.mktemp("jupyterlab")) as (address, token):
        notebook = open_notebook(chromium, address, token, "qkv.md")
        notebook.command("notebook:run-all-cells")
        yield notebook
        notebook.page.context.close()


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
        np.testing.assert_allclose(shown.panels[panel].values, python, atol=1e-6)


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


def test_a_lab_of_another_kind_moves_both_ways_too(notebook):
    notebook.run("from attn_lib.labs import MaskLab\nrules = MaskLab(title='rules')\nrules")
    lab = LabDriver(notebook.page, 'figure.attn-lab[aria-label="rules"]')
    lab.figure.wait_for()
    lab.control("mask").select_option("window")
    lab.control("n").fill("4")
    lab.shown()
    assert notebook.read("[rules.mask, rules.n]") == ["window", 4]
    notebook.run("rules.offset = 2")
    notebook.page.wait_for_function(
        """() => document.querySelector('figure[aria-label="rules"] [data-control=offset]').value === "2"
        """  # noqa: E501
    )
    python = np.array(notebook.read("rules.weights.tolist()"))
    np.testing.assert_allclose(lab.shown().weights.values, python, atol=1e-6)


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
