"""Numbers for the text, and tables."""

from __future__ import annotations

import matplotlib
import myst_nb
import numpy as np
import pytest

from attn_lib.book import Rounded, numbers, table

matplotlib.use("Agg")


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
