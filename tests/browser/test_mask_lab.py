"""MaskLab in a browser: allowed, forbidden, shared out, as numpy says."""

from __future__ import annotations

import numpy as np
import pytest
from browser.chart_driver import PHONE, assert_nothing_left, folded
from browser.panel_driver import PanelDriver, link, tab_stops

from attn_lib.labs import MaskLab

CLOSE = {"rtol": 1e-6, "atol": 1e-6}
RULES = ["causal", "window", "prefix", "none"]
SLIDERS = {
    "n": (1, 12),
    "m": (1, 12),
    "offset": (-12, 12),
    "window": (1, 12),
    "prefix": (0, 12),
    "length": (0, 12),
}


@pytest.fixture
def open_lab(open_page, tmp_path):
    """Return a function that opens MaskLab(**state), saved as one file, with a driver."""

    def open_(fragment="", *, options=None, **state) -> PanelDriver:
        file = MaskLab(name="lab", **state).save(tmp_path / "lab.html")
        return PanelDriver(open_page(file.as_uri() + fragment, **options or {}))

    return open_


def assert_parity(lab: PanelDriver, python: MaskLab) -> None:
    """Compare a whole picture with `python`: numbers, hatched cells, counts, controls."""
    shown = lab.shown()
    panels = shown["panels"]
    for name in ("scores", "weights", "output"):
        np.testing.assert_allclose(panels[name]["values"], getattr(python, name), **CLOSE)
    assert panels["allowed"]["values"].ravel().tolist() == python.allowed.tolist()
    kinds = np.where(python.keep, "", "forbidden").tolist()
    assert panels["scores"]["kinds"] == panels["weights"]["kinds"] == kinds
    assert panels["weights"]["current"] == [python.query_row]
    for key in ("mask", "n", "m", "offset", "window", "prefix", "length", "scores_are"):
        assert shown["controls"][key] == str(getattr(python, key)), key
    assert shown["controls"]["inverted"] == python.inverted


def random_state(rng) -> dict:
    state = {name: int(rng.integers(low, high + 1)) for name, (low, high) in SLIDERS.items()}
    state |= {"mask": str(rng.choice(RULES)), "inverted": bool(rng.integers(2))}
    state |= {"scores_are": str(rng.choice(["equal", "random"])), "seed": int(rng.integers(9999))}
    return state | {"query": int(rng.integers(12))}


@pytest.mark.parametrize("seed", range(3))
def test_states_set_through_links(open_lab, seed):
    rng = np.random.default_rng(seed)
    lab = open_lab()
    for _ in range(35):
        state = random_state(rng)
        lab.follow(link({key: state[key] for key in rng.permutation(list(state))}))
        assert lab.shown()["notice"] == ""
        assert_parity(lab, MaskLab(**state))


@pytest.mark.parametrize("seed", range(3))
def test_states_set_through_the_controls(open_lab, seed):
    rng = np.random.default_rng(50 + seed)
    lab, python = open_lab(), MaskLab()
    for _ in range(35):
        name = str(rng.choice(["mask", "scores_are", "inverted", "row", *SLIDERS]))
        if name == "mask":
            python.mask = str(rng.choice(RULES))
            lab.control("mask").select_option(python.mask)
        elif name == "scores_are":
            python.scores_are = str(rng.choice(["equal", "random"]))
            lab.control(name).select_option(python.scores_are)
        elif name == "inverted":
            python.inverted = not python.inverted
            lab.control(name).set_checked(python.inverted)
        elif name == "row":
            python.query = int(rng.integers(python.n))
            lab.cell("weights", python.query, 0).click()
        elif lab.control(name).is_enabled():
            value = int(rng.integers(SLIDERS[name][0], SLIDERS[name][1] + 1))
            lab.control(name).fill(str(value))
            setattr(python, name, value)
        assert_parity(lab, python)
    assert lab.said() == python.describe()
    lab.action("reset").click()
    assert_parity(lab, MaskLab())


def test_a_rule_switches_off_what_it_does_not_use(open_lab):
    lab = open_lab()
    enabled = {
        "causal": ["offset"],
        "window": ["offset", "window"],
        "prefix": ["offset", "prefix"],
        "none": [],
    }
    for rule, used in enabled.items():
        lab.control("mask").select_option(rule)
        lab.shown()
        names = ["offset", "window", "prefix"]
        assert [name for name in names if lab.control(name).is_enabled()] == used
        for name in set(names) - set(used):  # and says why
            assert lab.control(name).get_attribute("title").startswith("Used by")


def test_a_forbidden_cell_says_so(open_lab):
    """Not by colour alone: a pattern, and a word."""
    lab = open_lab(n=3, m=3)
    lab.cell("weights", 0, 2).hover()
    assert "query 1 → key 3: forbidden" in lab.shown()["words"]
    hatching = "(cell) => getComputedStyle(cell).backgroundImage"
    assert "gradient" in lab.cell("weights", 0, 2).evaluate(hatching)
    assert lab.cell("weights", 2, 0).evaluate(hatching) == "none"


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("mask=padding", MaskLab()),
        ("n=0", MaskLab(n=1)),
        ("offset=-40", MaskLab(offset=-12)),
        ("window=2.5", MaskLab(window=3)),
        ("inverted=yes", MaskLab()),
        ("d_k=8", MaskLab()),
    ],
)
def test_links_are_limited_and_named(open_lab, field, shown):
    lab = open_lab(f"#lab?{field}")
    assert field.split("=")[0] in lab.shown()["notice"]
    assert_parity(lab, shown)


def test_keyboard_alone_reaches_and_moves_everything(open_lab):
    lab = open_lab(mask="window")
    used = ["mask", "scores_are", "n", "m", "offset", "window", "length", "query", "inverted"]
    panels = ["scores", "weights", "allowed", "output"]
    assert tab_stops(lab.page) == ["link", "reset", *used, *panels]
    press = lab.page.keyboard.press
    lab.control("window").focus()
    press("ArrowLeft")
    lab.control("inverted").focus()
    press("Space")
    lab.cell("scores", 0, 0).focus()
    press("ArrowDown")
    press("Enter")
    assert_parity(lab, MaskLab(mask="window", window=2, inverted=True, query=1))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(open_lab, axe, scheme, width):
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    for state in ({}, {"mask": "prefix", "scores_are": "random", "n": 4}):
        lab = open_lab(link(state), options=options)
        lab.shown()
        assert axe(lab.page) == []
        assert lab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_in_a_closed_dropdown(open_page, tmp_path):
    page = open_page(folded(MaskLab(name="lab"), tmp_path / "folded.html"), **PHONE)
    lab = PanelDriver(page)
    assert lab.shown()["panels"] == {}
    page.locator("summary").click()
    page.wait_for_timeout(100)
    assert_parity(lab, MaskLab())


def test_a_hundred_mounts_leave_nothing_behind(open_page, tmp_path):
    assert_nothing_left(open_page, tmp_path, MaskLab().data(), "n")
