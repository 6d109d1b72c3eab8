"""The page gets a picture or a live lab, the notebook the widget, the text its numbers."""

from __future__ import annotations

import matplotlib
import myst_nb
import numpy as np
import pytest

from attn_lib.book import Rounded, live, numbers, table

matplotlib.use("Agg")


class Page:
    def _repr_html_(self):
        return "<figure>lab</figure>"


def slider():
    ipywidgets = pytest.importorskip("ipywidgets")
    return ipywidgets.FloatSlider()


def figure():
    from matplotlib.figure import Figure

    fig = Figure(figsize=(1, 1))
    fig.add_subplot().plot([0, 1])
    return fig


def test_live_offers_the_widget_and_the_figure():
    bundle = live(slider(), page=figure(), alt='a "line"', caption="A & B")._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    page = bundle["text/html"]
    assert 'aria-label="a &quot;line&quot;"' in page and "A &amp; B" in page
    assert page.count("<svg") == 2  # for a wide screen, and for a phone


def test_live_passes_on_the_html_of_a_lab():
    assert live(slider(), page=Page())._repr_mimebundle_()["text/html"] == Page()._repr_html_()


def test_the_same_figure_twice_gives_the_same_page():
    first, second = (live(slider(), page=figure(), alt="x").page for _ in range(2))
    assert first == second


def test_live_refuses_a_page_that_would_be_mute():
    with pytest.raises(ValueError, match="alt"):
        live(slider(), page=figure())
    with pytest.raises(ValueError, match="HTML"):
        live(slider(), page=object())


@pytest.mark.parametrize(
    ("value", "decimals", "shown"),
    [(0.5, 2, "0.50"), (-1.25, 1, "−1.2"), (-0.0001, 2, "0.00"), (2 / 3, 3, "0.667")],
)
def test_numbers_are_shown_with_fixed_decimals(value, decimals, shown):
    assert repr(Rounded(value, decimals)) == shown
    assert Rounded(value, decimals) == value


def test_numbers_are_named_and_left_for_the_text_as_myst_nb_leaves_them():
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()
    try:
        with capture_output() as captured:
            numbers(weight=0.567, comparisons=np.int64(81), word="soup")
        assert repr(shell.user_ns["weight"]) == "0.57" and shell.user_ns["comparisons"] == 81
        with capture_output() as by_myst_nb:
            for name, text in {"weight": "0.57", "comparisons": "81", "word": "soup"}.items():
                myst_nb.glue(name, text, display=False)
        ours, theirs = (
            [(output.data, output.metadata) for output in outputs]
            for outputs in (captured.outputs, by_myst_nb.outputs)
        )
        assert ours == theirs and len(ours) == 3
    finally:
        InteractiveShell.clear_instance()


def test_numbers_outside_a_notebook_do_nothing():
    numbers(weight=0.5)


def test_a_table_names_rows_and_columns():
    shown = table([[1, -0.5]], rows=["a<b"], columns=["x", "y"], decimals=1)
    assert repr(shown).split() == ["x", "y", "a<b", "1.0", "−0.5"]
    page = shown._repr_html_()
    assert '<th scope="row">a&lt;b</th><td>1.0</td><td>−0.5</td>' in page
    assert '<th scope="col">y</th>' in page
    with pytest.raises(ValueError, match=r"1 × 1 names for a matrix of shape \(1, 2\)"):
        table([[1, 2]], rows=["a"], columns=["x"])
