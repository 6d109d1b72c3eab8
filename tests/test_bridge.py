"""The bridge to other frameworks: its cells run, where the framework is installed.

None of them is needed for the book: ``pip install torch jax keras onnx`` and ``KERAS_BACKEND=jax``
run all of it. PyTorch, JAX and Keras are opt-in; onnx is among the packages of the tests.
"""

from pathlib import Path

import jupytext
import pytest

PAGE = Path(__file__).parents[1] / "book/bridge.md"
CELLS = [cell for cell in jupytext.read(PAGE).cells if cell.cell_type == "code"]
SETUP = [cell.source for cell in CELLS if "skip-execution" not in cell.metadata.get("tags", [])]
FRAMEWORKS = ("torch", "jax", "keras", "onnx")


def cells_of(framework):
    """The cells whose first line installs this framework first."""
    return [c.source for c in CELLS if c.source.startswith(f"# pip install {framework}")]


def test_every_cell_belongs_to_a_framework_or_to_the_page():
    assert len(SETUP) == 1
    assert len(SETUP) + sum(len(cells_of(name)) for name in FRAMEWORKS) == len(CELLS)
    assert all("same(" in cell for name in FRAMEWORKS for cell in cells_of(name))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_framework_agrees_with_the_book(framework, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    if framework == "keras":
        pytest.importorskip("jax")
    pytest.importorskip(framework)
    names = {}
    for cell in SETUP + cells_of(framework):
        exec(compile(cell, str(PAGE), "exec"), names)
