"""PositionLab in a browser: every number is attn_lib's, for every kind and every order."""

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

from attn_lib.labs import PositionLab
from attn_lib.labs.position.lab import KINDS, REACH

CONTROLS = ["positions", "mask", "n", "d", "offset", "shift", "seed"]
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


@pytest.fixture
def open_lab(open_page, tmp_path):
    """Return a function that opens PositionLab(**state), saved as one file, and gives a driver."""

    def open_(fragment="", *, options=None, **state) -> ChartDriver:
        file = PositionLab(name="position", **state).save(tmp_path / "lab.html")
        return ChartDriver(open_page(file.as_uri() + fragment, **options or {}))

    return open_


def assert_parity(lab: ChartDriver, python: PositionLab) -> None:
    """Compare heatmaps, curves, gaps and words with Python."""
    shown = lab.shown()
    assert_drawn(shown)
    for panel, expected in (
        ("encodings", python.encodings),
        ("weights", python.weights),
        ("output", python.output),
    ):
        drawn = lab.table(panel, shown)[:, 1:]
        np.testing.assert_allclose(drawn, expected, err_msg=panel, **CLOSE)
    offsets = np.arange(-REACH, REACH + 1)
    curves = np.transpose([offsets, python.curve(), python.curve(python.shift)])
    np.testing.assert_allclose(lab.table("offsets", shown), curves, **CLOSE)
    np.testing.assert_allclose(lab.table("gaps", shown)[:, 1], [*python.gaps.values()], **CLOSE)
    names = [row[0] for row in shown["panels"]["gaps"]["texts"]]
    assert names == list(python.gaps)
    places = [row[0] for row in shown["panels"]["weights"]["texts"]]
    assert places == [f"{place} · {token}" for place, token in enumerate(python.tokens)]
    assert shown["pictures"][0]["label"] == f"Score against offset. {python.describe()}"


def random_state(rng) -> dict:
    n = int(rng.integers(3, 17))
    return {
        "positions": str(rng.choice(KINDS)),
        "n": n,
        "d": 2 * int(rng.integers(1, 17)),
        "offset": int(rng.integers(-12, 13)),
        "shift": int(rng.integers(0, 65)),
        "query": int(rng.integers(n)),
        "order": [int(i) for i in rng.permutation(n)],
        "mask": str(rng.choice(["none", "causal"])),
        "seed": int(rng.integers(10000)),
    }


@pytest.mark.parametrize("seed", range(3))
def test_states_set_through_links(open_lab, seed):
    rng = np.random.default_rng(seed)
    lab = open_lab()
    for _ in range(10):
        state = random_state(rng)
        text = {key: ",".join(map(str, v)) if key == "order" else v for key, v in state.items()}
        lab.follow("#position?" + "&".join(f"{key}={value}" for key, value in text.items()))
        assert lab.shown()["notice"] == ""
        assert_parity(lab, PositionLab(**state))


def test_states_set_through_the_controls(open_lab):
    rng = np.random.default_rng(4)
    lab, state = open_lab(), {"n": 8, "order": [*range(8)], "query": 0}
    for _ in range(20):
        name = str(rng.choice([*CONTROLS, "reverse", "resample", "query", "push"]))
        value = random_state(rng).get(name)
        if name in ("positions", "mask"):
            lab.control(name).select_option(value)
        elif name == "reverse":
            lab.action(name).click()
            name, value = "order", state["order"][::-1]
        elif name == "resample":
            lab.action(name).click()
            name, value = "seed", (state.get("seed", 0) + 1) % 10000
        elif name == "query":
            value = int(rng.integers(state["n"]))
            lab.chip(value).click()
        elif name == "push":
            at = int(rng.integers(1, state["n"]))
            lab.push(state["order"][at], "left")
            name, value = "order", [*state["order"]]
            value[at - 1 : at + 1] = value[at - 1 : at + 1][::-1]
        else:
            lab.control(name).fill(str(value))
            lab.control(name).blur()
        state[name] = value
        if name == "n":
            kept = min(state["query"], value - 1)
            state |= {"order": [*range(value)], "query": kept}
        assert_parity(lab, PositionLab(**state))
    assert lab.said() == PositionLab(**state).describe()
    lab.action("reset").click()
    assert_parity(lab, PositionLab())


def test_the_number_of_tokens_can_change_in_the_middle_of_a_drag(open_lab):
    lab = open_lab()
    lab.control("n").evaluate(
        """(input) => {
          for (const n of [9, 16, 3, 5]) {
            input.value = n;
            input.dispatchEvent(new Event("input", {bubbles: true}));
          }
        }"""
    )
    assert_parity(lab, PositionLab(n=5))


@pytest.mark.parametrize("positions", KINDS)
def test_the_lab_says_why(open_lab, positions):
    """The reversal's gap, and a reason that fits it."""
    lab = open_lab(positions=positions)
    words = lab.shown()["words"]
    gap = lab.table("gaps")[0, 1]
    assert (gap < 1e-9) == (positions in ("none", "alibi"))
    assert ("keeps every distance" in words) == (positions == "alibi")
    assert ("would miss a reversal" in words) is False
    lab.control("mask").select_option("causal")
    words = lab.shown()["words"]
    assert "A causal mask lets a token read only" in words
    assert "the gap is 0" not in words
    assert lab.table("gaps")[0, 1] > 0.1


def test_rounding_is_not_shown_as_a_gap_or_a_change(open_lab):
    lab = open_lab(positions="none", order=[7, 6, 5, 4, 3, 2, 1, 0], shift=41)
    shown = lab.shown()
    assert [row[-1] for row in shown["panels"]["gaps"]["texts"]] == ["0", "0", "0", "0"]
    assert "change 0" in " ".join(shown["words"].split())


# What every lab promises -----------------------------------------------------------


def test_keyboard_alone_reaches_and_moves_everything(open_lab):
    lab = open_lab()
    token = ["button", "button"]  # the chosen one and its push to the right
    actions = ["reverse", "shuffle"]
    panels = ["td", "td", "td"]
    expected = ["link", "reset", *token, *actions, *CONTROLS, "resample", *panels, "summary"]
    assert tab_stops(lab.page) == expected
    lab.control("offset").focus()
    lab.page.keyboard.press("Home")
    lab.control("shift").focus()
    lab.page.keyboard.press("End")
    lab.chip(0).press("Shift+ArrowRight")
    assert_parity(lab, PositionLab(offset=-12, shift=64, order=[1, 0, *range(2, 8)]))
    lab.figure.locator("summary").press("Enter")
    texts = lab.shown()["panels"]["offsets"]["texts"]
    assert all(cell for row in texts for cell in row)


@pytest.mark.parametrize("field", ["n=99", "d=7", "order=0,1", "positions=<b>", "shift=-1", "z=1"])
def test_links_are_limited_and_named(open_lab, field):
    lab = open_lab(f"#position?{field}")
    shown = lab.shown()
    assert field.split("=")[0] in shown["notice"]
    assert_drawn(shown)


@pytest.mark.parametrize(
    ("fields", "width", "scheme"),
    [
        ("", 1280, "light"),
        ("", 390, "dark"),
        ("?positions=alibi&mask=causal", 1280, "dark"),
        ("?n=16&d=32&z=1", 390, "light"),
    ],
)
def test_axe_finds_nothing_and_nothing_scrolls_sideways(open_lab, axe, fields, width, scheme):
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    lab = open_lab(f"#position{fields}", options=options)
    lab.figure.locator("summary").click()
    lab.shown()
    assert axe(lab.page) == []
    assert lab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_in_a_closed_dropdown(open_page, tmp_path):
    page = open_page(folded(PositionLab(name="position"), tmp_path / "folded.html"), **PHONE)
    assert_works_unfolded(page, ChartDriver(page))


def test_a_hundred_mounts_leave_nothing_behind(open_page, tmp_path):
    assert_nothing_left(open_page, tmp_path, PositionLab().data(), "shift")
