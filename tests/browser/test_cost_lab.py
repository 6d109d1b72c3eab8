"""CostLab in a browser: every number is attn_lib.cost's, by every way to set a state."""

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

from attn_lib.labs import CostLab
from attn_lib.labs.cost.lab import BYTES, VARIANTS

CONTROLS = ["variant", "n", "d", "h", "window"]


@pytest.fixture
def open_lab(open_page, tmp_path):
    """Return a function that opens CostLab(**state), saved as one file, and gives a driver."""

    def open_(fragment="", *, options=None, **state) -> ChartDriver:
        file = CostLab(name="cost", **state).save(tmp_path / "lab.html")
        return ChartDriver(open_page(file.as_uri() + fragment, **options or {}))

    return open_


def assert_parity(lab: ChartDriver, python: CostLab) -> None:
    shown = lab.shown()
    assert_drawn(shown)
    close = {"rtol": 1e-9}
    layer = python.layer
    formulas = lab.table("formulas", shown)[:, 1]
    expected = [python.operations, layer["projections"], layer["feed_forward"], python.memory]
    np.testing.assert_allclose(formulas, expected, **close)
    long = python.at_128k
    np.testing.assert_allclose(
        lab.table("long", shown)[:, 1:], [long[variant] for variant in VARIANTS], **close
    )
    n = python.lengths.astype(float)
    others = {
        "operations": [4 * n * python.d**2, 12 * n * python.d**2],
        "memory": [4 * n * python.d * BYTES],
    }
    for k, panel in enumerate(("operations", "memory")):
        table = lab.table(panel, shown)
        np.testing.assert_allclose(table[:, 0], n)
        drawn = {tuple(np.round(column, 3)) for column in table[:, 1:].T}
        curves = [*others[panel], *(python.curves[variant][k] for variant in VARIANTS)]
        assert drawn == {tuple(np.round(curve, 3)) for curve in curves}
    names = " ".join(shown["pictures"][0]["texts"])
    assert all(name in names for name in python.crossings)


def random_state(rng) -> dict:
    h = int(rng.choice([1, 2, 3, 8, 12, 64, 128]))
    return {
        "n": int(2 ** rng.uniform(0, 20)),
        "d": h * int(rng.integers(1, 128)),
        "h": h,
        "window": int(2 ** rng.uniform(0, 20)),
        "variant": str(rng.choice(VARIANTS)),
    }


@pytest.mark.parametrize("seed", range(2))
def test_states_set_through_links(open_lab, seed):
    rng = np.random.default_rng(seed)
    lab = open_lab()
    for _ in range(15):
        state = random_state(rng)
        lab.follow("#cost?" + "&".join(f"{key}={value}" for key, value in state.items()))
        assert lab.shown()["notice"] == ""
        assert_parity(lab, CostLab(**state))


def test_states_set_through_the_controls(open_lab):
    rng = np.random.default_rng(5)
    lab, state = open_lab(), CostLab().data()
    for _ in range(25):
        name = str(rng.choice(CONTROLS))
        if name == "variant":
            state["variant"] = str(rng.choice(VARIANTS))
            lab.control(name).select_option(state["variant"])
        else:
            low, high, step = {"n": (16, 80, 4), "d": (6, 14, 1), "h": (0, 7, 1)}.get(
                name, (4, 16, 1)
            )
            position = int(rng.integers(low, high + 1)) / step
            lab.control(name).fill(f"{position:g}")
            state[name] = round(2**position)
            state["h"] = min(state["h"], state["d"])  # 128 heads do not fit into a width of 64
        python = CostLab(**{key: state[key] for key in CONTROLS})
        assert_parity(lab, python)
    assert lab.said() == python.describe()


def test_heads_that_do_not_fit_are_said_to_be_changed(open_lab):
    lab = open_lab("#cost?d=100&h=8")
    assert "h=8: not possible here, so 5 is used" in lab.shown()["notice"]
    assert_parity(lab, CostLab(d=100, h=5))


@pytest.mark.parametrize("field", ["n=0", "n=1e99", "d=abc", "variant=<img>", "h=-3", "colour=red"])
def test_links_are_limited_and_named(open_lab, field):
    lab = open_lab(f"#cost?{field}")
    shown = lab.shown()
    assert field.split("=")[0] in shown["notice"]
    assert_drawn(shown)


def test_keyboard_alone_reaches_and_moves_everything(open_lab):
    lab = open_lab()
    assert tab_stops(lab.page) == ["link", "reset", *CONTROLS, "summary"]
    lab.control("n").focus()
    for key in ("End", "ArrowLeft"):
        lab.page.keyboard.press(key)
    lab.control("variant").focus()
    lab.page.keyboard.press("w")
    assert_parity(lab, CostLab(n=round(2**19.75), variant="windowed"))
    lab.figure.locator("summary").focus()
    lab.page.keyboard.press("Enter")
    texts = lab.shown()["panels"]["operations"]["texts"]
    assert all(cell for row in texts for cell in row)
    lab.action("reset").press("Enter")
    assert_parity(lab, CostLab())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(open_lab, axe, scheme, width):
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    for variant in ("full", "windowed"):
        lab = open_lab(f"#cost?variant={variant}", options=options)
        lab.figure.locator("summary").click()
        lab.shown()
        assert axe(lab.page) == []
        assert lab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_in_a_closed_dropdown(open_page, tmp_path):
    page = open_page(folded(CostLab(name="cost"), tmp_path / "folded.html"), **PHONE)
    assert_works_unfolded(page, ChartDriver(page))


def test_a_hundred_mounts_leave_nothing_behind(open_page, tmp_path):
    assert_nothing_left(open_page, tmp_path, CostLab().data(), "n")
