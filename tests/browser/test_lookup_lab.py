"""LookupLab in a browser: every number is attn_lib's, however the query is moved."""

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

from attn_lib.examples import Dictionary
from attn_lib.labs import LookupLab
from attn_lib.labs.lookup.lab import REACH

CONTROLS = ["query_x", "query_y", "lookup", "kernel", "temperature", "one_length"]
CLOSE = {"rtol": 1e-6, "atol": 1e-6}

# Where the points of a plane stand, in its own coordinates; `reach` is at the ends of its axes.
_MARKS = """(figure, [panel, mark, reach]) => {
  const svg = figure.querySelector(`.attn-panel-${panel} svg`);
  const [low, high] = ["x1", "x2"].map((end) => +svg.querySelector(".attn-grid").getAttribute(end));
  const place = (px) => ((px - low) / (high - low) * 2 - 1) * reach;
  const at = (point, name) => Number(point.getAttribute(name));
  return [...svg.querySelectorAll(mark)].map((p) => [place(at(p, "cx")), -place(at(p, "cy"))]);
}"""


@pytest.fixture
def open_lab(open_page, tmp_path):
    """Return a function that opens LookupLab(**state), saved as one file, and gives a driver."""

    def open_(fragment="", *, options=None, **state) -> ChartDriver:
        file = LookupLab(name="lookup", **state).save(tmp_path / "lab.html")
        return ChartDriver(open_page(file.as_uri() + fragment, **options or {}))

    return open_


def marks(lab: ChartDriver, panel: str, mark: str) -> np.ndarray:
    reach = REACH if panel == "keys" else 1.08
    return np.array(lab.figure.evaluate(_MARKS, [panel, mark, reach]), float).reshape(-1, 2)


def assert_parity(lab: ChartDriver, python: LookupLab) -> None:
    """Compare table, picture and words with Python."""
    shown = lab.shown()
    assert_drawn(shown)
    S, a, o = python.scores, python.weights, python.output
    drawn = lab.table("weights", shown)[:, 1:]
    np.testing.assert_allclose(drawn, np.column_stack([S, a, a[:, None] * python.V]), **CLOSE)
    total = lab.figure.locator('[data-panel="weights"] tfoot td[data-value]')
    total = total.evaluate_all("cells => cells.map((cell) => Number(cell.dataset.value))")
    np.testing.assert_allclose(total, [a.sum(), *o], **CLOSE)
    np.testing.assert_allclose(marks(lab, "keys", ".attn-pigment"), python.K, **CLOSE)
    np.testing.assert_allclose(marks(lab, "keys", ".attn-query"), [python.q], **CLOSE)
    np.testing.assert_allclose(marks(lab, "values", ".attn-pigment"), python.V, **CLOSE)
    read = [o] if a.any() else np.empty((0, 2))
    np.testing.assert_allclose(marks(lab, "values", ".attn-output"), read, **CLOSE)
    assert shown["pictures"][0]["label"] == f"Query and keys. {python.describe()}"
    assert f"nearest key {python.nearest}" in shown["words"]
    assert f"longest projection {python.longest}" in shown["words"]


def random_state(rng) -> dict:
    exact = {"query_x": 0.6, "query_y": 0.75, "lookup": "exact"}  # on a key
    free = {
        "query_x": round(rng.uniform(-2, 2), 2),
        "query_y": round(rng.uniform(-2, 2), 2),
        "lookup": str(rng.choice(["exact", "hard", "soft", "soft"])),
    }
    return (exact if rng.random() < 0.1 else free) | {
        "kernel": str(rng.choice(["gaussian", "dot"])),
        "temperature": float(f"{10 ** rng.uniform(-2, 2):.4g}"),
        "one_length": bool(rng.integers(2)),
    }


@pytest.mark.parametrize("seed", range(3))
def test_states_set_through_links(open_lab, seed):
    rng = np.random.default_rng(seed)
    lab = open_lab()
    for _ in range(15):
        state = random_state(rng)
        fields = "&".join(f"{key}={str(value).lower()}" for key, value in state.items())
        lab.follow(f"#lookup?{fields}")
        assert lab.shown()["notice"] == ""
        assert_parity(lab, LookupLab(**state))


def test_states_set_through_the_controls(open_lab):
    rng = np.random.default_rng(9)
    lab, state = open_lab(), {}
    for _ in range(25):
        name = str(rng.choice(CONTROLS))
        control, before = lab.control(name), state
        state = state | {name: random_state(rng)[name]}
        if name == "one_length":
            control.set_checked(state[name])
        elif name in ("lookup", "kernel"):
            if control.is_disabled():
                state = before
                continue
            control.select_option(state[name])
        elif name == "temperature":
            if control.is_disabled():
                state = before
                continue
            position = 0.02 * int(rng.integers(-100, 101))
            control.fill(f"{position:.2f}")
            state[name] = float(f"{10**position:.3g}")
        else:
            control.fill(f"{state[name]:.2f}")
        assert_parity(lab, LookupLab(**state))
    lab.action("reset").click()
    assert_parity(lab, LookupLab())
    assert lab.said() == LookupLab().describe()


@pytest.mark.parametrize("x", [0.6, 0.61, 0.595])
def test_a_dictionary_finds_what_python_finds(open_lab, x):
    lab = open_lab(lookup="exact", query_x=x, query_y=0.75)
    assert_parity(lab, LookupLab(lookup="exact", query_x=x, query_y=0.75))


# The query itself ---------------------------------------------------------------


def spot(lab: ChartDriver, x: float, y: float) -> tuple[float, float]:
    """Where a point of the keys' plane stands in the window."""
    box = lab.figure.locator(".attn-panel-keys svg").bounding_box()
    inner = box["width"] - 16
    right, up = (8 + (c / REACH + 1) / 2 * inner for c in (x, y))
    return box["x"] + right, box["y"] + box["height"] - up


def query(lab: ChartDriver) -> tuple[float, float]:
    controls = lab.shown()["controls"]
    return float(controls["query_x"]), float(controls["query_y"])


def test_the_query_is_dragged_and_follows_a_press_on_the_plane(open_lab):
    lab = open_lab()
    mouse = lab.page.mouse
    mouse.move(*spot(lab, 0.9, 0.6))
    mouse.down()
    mouse.move(*spot(lab, -1, 1.5), steps=4)
    mouse.move(*spot(lab, -5, -1.2))  # beyond the edge: it stops there
    mouse.up()
    assert query(lab) == (-2, pytest.approx(-1.2, abs=0.02))
    mouse.move(*spot(lab, 1, 1))
    assert query(lab)[0] == -2  # let go
    mouse.click(*spot(lab, 1, -0.5))
    assert query(lab) == pytest.approx((1, -0.5), abs=0.02)
    x, y = query(lab)
    assert_parity(lab, LookupLab(query_x=x, query_y=y))


def test_arrow_keys_move_the_query(open_lab):
    lab = open_lab()
    lab.figure.locator("[data-point=query]").focus()
    for key in ("ArrowLeft", "ArrowUp", "Shift+ArrowUp", "Shift+ArrowLeft", "ArrowRight"):
        lab.page.keyboard.press(key)
        lab.shown()
    x, y = 0.9 - 0.05 - 0.25 + 0.05, 0.6 + 0.05 + 0.25
    assert query(lab) == pytest.approx((x, y))
    assert_parity(lab, LookupLab(query_x=round(x, 2), query_y=round(y, 2)))
    name = lab.figure.locator("[data-point=query]").get_attribute("aria-label")
    assert name == "query: 0.65, 0.90. The arrow keys move it."
    for _ in range(12):
        lab.page.keyboard.press("Shift+ArrowRight")
        lab.shown()
    assert query(lab)[0] == 2


def test_quick_presses_are_all_counted(open_lab):
    lab = open_lab()
    lab.figure.locator("[data-point=query]").evaluate(
        """(grip) => {
          const key = {key: "ArrowLeft", bubbles: true};
          for (let k = 0; k < 4; k++) grip.dispatchEvent(new KeyboardEvent("keydown", key));
        }"""
    )
    assert query(lab) == pytest.approx((0.7, 0.6))


def test_a_finger_moves_the_query_and_a_finger_elsewhere_scrolls(open_lab):
    lab = open_lab(options=PHONE)
    lab.page.evaluate("document.querySelector('.attn-panel-keys').scrollIntoView()")
    session = lab.page.context.new_cdp_session(lab.page)

    def swipe(*points):
        for kind, at in zip(
            ["touchStart", *["touchMove"] * (len(points) - 1)], points, strict=True
        ):
            x, y = spot(lab, *at)
            touches = [{"x": x, "y": y}]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    swipe((0.9, 0.6), (0.5, 0.2), (0, -0.5))
    assert query(lab) == pytest.approx((0, -0.5), abs=0.03)
    swipe((-1.2, 0), (-1.2, 0.5), (-1.2, 1))
    assert query(lab) == pytest.approx((0, -0.5), abs=0.03)


# What every lab promises -----------------------------------------------------------


def test_keyboard_alone_reaches_everything(open_lab):
    lab = open_lab()
    assert tab_stops(lab.page) == ["link", "reset", *CONTROLS, "button"]
    lab = open_lab("#lookup?lookup=exact")
    assert tab_stops(lab.page) == [
        *("link", "reset", "query_x", "query_y", "lookup", "one_length", "button"),
    ]


@pytest.mark.parametrize(
    "field", ["query_x=9", "lookup=<b>", "temperature=0", "one_length=1", "z=1"]
)
def test_links_are_limited_and_named(open_lab, field):
    lab = open_lab(f"#lookup?{field}")
    shown = lab.shown()
    assert field.split("=")[0] in shown["notice"]
    assert_drawn(shown)


@pytest.mark.parametrize(
    ("fields", "width", "scheme"),
    [
        ("", 1280, "light"),
        ("", 390, "dark"),
        ("?kernel=dot&one_length=true", 1280, "dark"),
        ("?lookup=exact&q=1", 390, "light"),
    ],
)
def test_axe_finds_nothing_and_nothing_scrolls_sideways(open_lab, axe, fields, width, scheme):
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    lab = open_lab(f"#lookup{fields}", options=options)
    lab.shown()
    assert axe(lab.page) == []
    assert lab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("kernel", ["gaussian", "dot"])
def test_names_stay_inside_the_plane_wherever_the_query_is(open_lab, kernel):
    lab = open_lab(kernel=kernel)
    for x, y in ((-2, -2), (-2, 2), (2, 2), (2, -2), (0, 0)):
        lab.follow(f"#lookup?kernel={kernel}&query_x={x}&query_y={y}")
        lab.shown()
        beyond = lab.figure.evaluate(
            """(figure) => [...figure.querySelectorAll(".attn-name")].filter((name) => {
              const box = name.getBoundingClientRect();
              const field = name.ownerSVGElement.getBoundingClientRect();
              return box.left < field.left || box.right > field.right || box.top < field.top
                || box.bottom > field.bottom;
            }).map((name) => name.textContent)"""
        )
        assert beyond == []


def test_in_a_closed_dropdown(open_page, tmp_path):
    page = open_page(folded(LookupLab(name="lookup"), tmp_path / "folded.html"), **PHONE)
    assert_works_unfolded(page, ChartDriver(page))


def test_a_hundred_mounts_leave_nothing_behind(open_page, tmp_path):
    assert_nothing_left(open_page, tmp_path, LookupLab().data(), "temperature")


def test_names_are_shown_literally(open_lab):
    names = ("<img src=x onerror=alert(1)>", 'a" onmouseover="x', "</script>")
    points = np.array([[0.5, 0.5], [1, -1], [-1, 0.5]])
    lab = open_lab(entries=Dictionary(names, points, points / 2, ("a<b", "&amp;")))
    words = lab.shown()["words"]
    assert all(name in words for name in (*names, "a<b", "&amp;"))
    assert lab.figure.locator("img:not(.attn-static)").count() == 0
