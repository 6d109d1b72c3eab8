"""What LookupLab alone does in a browser; what every lab promises: `test_every_lab`."""

from __future__ import annotations

import numpy as np
import pytest
from browser.driver import PHONE, LabDriver, tab_stops
from browser.specs.lookup import SPEC

from attn_lib.examples import Dictionary
from attn_lib.labs import LookupLab
from attn_lib.labs.lookup.lab import REACH


@pytest.mark.parametrize("x", [0.6, 0.61, 0.595])
def test_a_dictionary_finds_what_python_finds(open_lab, x):
    lab = open_lab(LookupLab, lookup="exact", query_x=x, query_y=0.75)
    SPEC.parity(lab, LookupLab(lookup="exact", query_x=x, query_y=0.75))


# The query itself ---------------------------------------------------------------


def spot(lab: LabDriver, x: float, y: float) -> tuple[float, float]:
    """Where a point of the keys' plane stands in the window."""
    box = lab.figure.locator(".attn-panel-keys svg").bounding_box()
    inner = box["width"] - 16
    right, up = (8 + (c / REACH + 1) / 2 * inner for c in (x, y))
    return box["x"] + right, box["y"] + box["height"] - up


def query(lab: LabDriver) -> tuple[float, float]:
    controls = lab.shown().controls
    return float(controls["query_x"]), float(controls["query_y"])


def test_the_query_is_dragged_and_follows_a_press_on_the_plane(open_lab):
    lab = open_lab(LookupLab)
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
    SPEC.parity(lab, LookupLab(query_x=x, query_y=y))


def test_arrow_keys_move_the_query(open_lab):
    lab = open_lab(LookupLab)
    lab.figure.locator("[data-point=query]").focus()
    for key in ("ArrowLeft", "ArrowUp", "Shift+ArrowUp", "Shift+ArrowLeft", "ArrowRight"):
        lab.page.keyboard.press(key)
        lab.shown()
    x, y = 0.9 - 0.05 - 0.25 + 0.05, 0.6 + 0.05 + 0.25
    assert query(lab) == pytest.approx((x, y))
    SPEC.parity(lab, LookupLab(query_x=round(x, 2), query_y=round(y, 2)))
    name = lab.figure.locator("[data-point=query]").get_attribute("aria-label")
    assert name == "query: 0.65, 0.90. The arrow keys move it."
    for _ in range(12):
        lab.page.keyboard.press("Shift+ArrowRight")
        lab.shown()
    assert query(lab)[0] == 2


def test_quick_presses_are_all_counted(open_lab):
    lab = open_lab(LookupLab)
    lab.figure.locator("[data-point=query]").evaluate(
        """(grip) => {
          const key = {key: "ArrowLeft", bubbles: true};
          for (let k = 0; k < 4; k++) grip.dispatchEvent(new KeyboardEvent("keydown", key));
        }"""
    )
    assert query(lab) == pytest.approx((0.7, 0.6))


def test_a_finger_moves_the_query_and_a_finger_elsewhere_scrolls(open_lab):
    lab = open_lab(LookupLab, options=PHONE)
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


# Names ------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["gaussian", "dot"])
def test_names_stay_inside_the_plane_wherever_the_query_is(open_lab, kernel):
    lab = open_lab(LookupLab, kernel=kernel)
    for x, y in ((-2, -2), (-2, 2), (2, 2), (2, -2), (0, 0)):
        lab.follow(f"#lab?kernel={kernel}&query_x={x}&query_y={y}")
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


def test_what_a_dictionary_does_not_use_cannot_be_reached(open_lab):
    unused = {"kernel", "temperature"}
    stops = [stop for stop in SPEC.stops if stop not in unused]
    assert tab_stops(open_lab(LookupLab, lookup="exact").page) == stops


def test_names_are_shown_literally(open_lab):
    names = ("<img src=x onerror=alert(1)>", 'a" onmouseover="x', "</script>")
    points = np.array([[0.5, 0.5], [1, -1], [-1, 0.5]])
    lab = open_lab(LookupLab, entries=Dictionary(names, points, points / 2, ("a<b", "&amp;")))
    words = lab.shown().words
    assert all(name in words for name in (*names, "a<b", "&amp;"))
    assert lab.figure.locator("img:not(.attn-static)").count() == 0
