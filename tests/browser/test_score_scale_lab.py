"""ScoreScaleLab in a browser: what JavaScript measures on the draw is what numpy measures."""

from __future__ import annotations

import numpy as np
import pytest
from browser.chart_driver import (
    PHONE,
    ChartDriver,
    assert_drawn,
    assert_nothing_left,
    assert_works_unfolded,
    folded,
    tab_stops,
)

from attn_lib.labs import ScoreScaleLab
from attn_lib.labs.score_scale.figure import score_bins
from attn_lib.labs.score_scale.lab import VECTORS, WIDTHS

ROWS = ("mean", "predicted_mean", "variance", "predicted_variance")
ROWS += ("largest_weight", "entropy", "median_gradient", "mean_gradient")
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


@pytest.fixture
def open_lab(open_page, tmp_path):
    """Return a function that opens ScoreScaleLab(**state), saved as one file, with a driver."""

    def open_(fragment="", *, options=None, **state) -> ChartDriver:
        file = ScoreScaleLab(name="scale", **state).save(tmp_path / "lab.html")
        return ChartDriver(open_page(file.as_uri() + fragment, **options or {}))

    return open_


def assert_parity(lab: ChartDriver, python: ScoreScaleLab) -> None:
    shown = lab.shown()
    assert_drawn(shown)
    raw, scaled = python.unscaled, python.scaled
    expected = [[getattr(raw, name), getattr(scaled, name)] for name in ROWS]
    np.testing.assert_allclose(lab.table("measured", shown)[:, 1:], expected, **CLOSE)
    for panel, each, factor in (("raw", raw, 1), ("scaled", scaled, python.d_k**-0.5)):
        edges = score_bins(each.predicted_mean, each.predicted_variance)
        count, _ = np.histogram(python.scores * factor, edges)
        density = count / (python.scores.size * np.diff(edges))
        centres = (edges[1:] + edges[:-1]) / 2
        drawn = lab.table(panel, shown)
        np.testing.assert_allclose(drawn, np.transpose([centres, density]), **CLOSE)
    assert_curves(lab, shown, python)


def assert_curves(lab: ChartDriver, shown: dict, python: ScoreScaleLab) -> None:
    raw, scaled = python.curves
    columns = {name: [getattr(raw, name), getattr(scaled, name)] for name in ROWS}
    columns["gradient"] = columns["mean_gradient"] + columns["median_gradient"]
    for panel in ("variance", "largest_weight", "entropy", "gradient"):
        expected = np.transpose([python.widths, *columns[panel]])
        np.testing.assert_allclose(lab.table(panel, shown), expected, **CLOSE)


@pytest.mark.parametrize("seed", range(2))
def test_states_set_through_links(open_lab, seed):
    rng = np.random.default_rng(seed)
    lab = open_lab()
    for vectors in VECTORS:
        state = {
            "d_k": int(rng.choice([1, 2, 512, rng.integers(1, 513)])),
            "vectors": vectors,
            "mu": round(rng.uniform(0, 2), 3),
            "cosine": float(rng.choice([0, 1, round(rng.uniform(), 3)])),
            "seed": int(rng.integers(10000)),
        }
        lab.follow("#scale?" + "&".join(f"{key}={value}" for key, value in state.items()))
        assert lab.shown()["notice"] == ""
        assert_parity(lab, ScoreScaleLab(**state))


def test_states_set_through_the_controls(open_lab):
    rng = np.random.default_rng(3)
    lab, state = open_lab(), {}
    for name in ["d_k", "vectors", "mu", "d_k", "vectors", "cosine", "seed", "resample", "d_k"]:
        if name == "d_k":
            stop = int(rng.integers(len(WIDTHS)))
            lab.control("d_k").fill(str(stop))
            state["d_k"] = WIDTHS[stop]
        elif name == "vectors":
            state["vectors"] = "tied-other" if "vectors" in state else "shifted"
            lab.control("vectors").select_option(state["vectors"])
        elif name == "seed":
            lab.control("seed").fill("77")
            lab.control("seed").press("Tab")
            state["seed"] = 77
        elif name == "resample":
            lab.action("resample").click()
            state["seed"] = 78
        else:
            state[name] = 0.05 * int(rng.integers(1, 20))
            lab.control(name).fill(f"{state[name]:.2f}")
        assert_parity(lab, ScoreScaleLab(**state))
    assert lab.said() == ScoreScaleLab(**state).describe()
    lab.action("reset").click()
    assert_parity(lab, ScoreScaleLab())


def test_a_drag_ends_in_the_last_value(open_lab):
    """Quick changes: what is being worked on is ended, then the last one is drawn."""
    lab = open_lab("#scale?vectors=shifted")
    lab.control("mu").evaluate(
        """async (input) => {
          for (let k = 0; k <= 40; k++) {
            input.value = k / 20;
            input.dispatchEvent(new Event("input", {bubbles: true}));
            if (k % 3) await new Promise(requestAnimationFrame);
          }
        }"""
    )
    assert_parity(lab, ScoreScaleLab(vectors="shifted", mu=2.0))


def test_controls_of_other_vectors_are_hidden(open_lab):
    lab = open_lab()
    for vectors, hidden in zip(
        VECTORS, [["mu", "cosine"], ["mu", "cosine"], ["cosine"], ["mu"], ["mu"]], strict=True
    ):
        lab.control("vectors").select_option(vectors)
        assert lab.shown()["hidden"] == hidden


@pytest.mark.parametrize("field", ["d_k=0", "d_k=1e9", "vectors=<b>", "mu=-1", "seed=x", "q=1"])
def test_links_are_limited_and_named(open_lab, field):
    lab = open_lab(f"#scale?{field}")
    shown = lab.shown()
    assert field.split("=")[0] in shown["notice"]
    assert_drawn(shown)


def test_keyboard_alone_reaches_and_moves_everything(open_lab):
    lab = open_lab()
    controls = ["d_k", "vectors", "seed", "resample"]
    assert tab_stops(lab.page) == ["link", "reset", *controls, "summary"]
    lab.control("d_k").focus()
    lab.page.keyboard.press("End")
    lab.page.keyboard.press("ArrowLeft")
    lab.action("resample").press("Enter")
    assert_parity(lab, ScoreScaleLab(d_k=WIDTHS[-2], seed=1))
    lab.figure.locator("summary").press("Enter")
    texts = lab.shown()["panels"]["entropy"]["texts"]
    assert [row[0] for row in texts] == [str(width) for width in WIDTHS]
    assert all(cell for row in texts for cell in row)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(open_lab, axe, scheme, width):
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    for fragment in ("", "#scale?vectors=tied-self&d_k=512"):
        lab = open_lab(fragment, options=options)
        lab.figure.locator("summary").click()
        lab.shown()
        assert axe(lab.page) == []
        assert lab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_in_a_closed_dropdown(open_page, tmp_path):
    page = open_page(folded(ScoreScaleLab(name="scale"), tmp_path / "folded.html"), **PHONE)
    assert_works_unfolded(page, ChartDriver(page))


def test_a_hundred_mounts_leave_nothing_behind(open_page, tmp_path):
    assert_nothing_left(open_page, tmp_path, ScoreScaleLab(d_k=8).data(), "seed")
