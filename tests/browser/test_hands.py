"""By keyboard, by touch, by mouse; in the dark, without motion, and on a phone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from browser.driver import PHONE, LabDriver, focused, tab_stops

from attn_lib.examples import Scene
from attn_lib.labs import AttentionLab
from attn_lib.labs.base import STATIC

# By keyboard ------------------------------------------------------------------


def tab_to(page, name: str):
    for _ in range(40):
        page.keyboard.press("Tab")
        if (focused(page) or {}).get("name") == name:
            return
    raise AssertionError(f"Tab does not reach {name}")


def test_tab_reaches_the_controls_of_a_random_scene_too(open_page, saved):
    stops = tab_stops(open_page(saved(scene="random")))
    panels = ["scores", "weights", "output"]
    actions = ["link", "reset", "more", "reverse", "shuffle", "resample"]
    controls = ["scene", "query", "d_k", "temperature", "scale", "mask", "seed"]
    assert sorted(stops) == sorted(["token 0", "right", *panels, *actions, *controls])
    assert stops[:3] == ["temperature", "token 0", "right"] and stops[3:6] == panels  # as seen


def test_a_whole_visit_without_a_mouse(open_page, saved):
    page = open_page(saved())
    lab, press = LabDriver(page), page.keyboard.press
    tab_to(page, "token 8")  # the chosen one
    press("ArrowLeft")
    press("ArrowLeft")
    assert focused(page)["name"] == "token 6"
    press("Shift+ArrowLeft")
    press("Shift+ArrowLeft")
    lab.shown()
    assert focused(page)["name"] == "token 6"  # it moved, and kept the focus
    press("Enter")
    state = {"order": [0, 1, 2, 3, 6, 4, 5, 7, 8], "query": 6}
    assert_shows(lab, AttentionLab(**state))
    press("Tab")
    assert focused(page)["name"] == "right"
    press("Space")
    state["order"] = [0, 1, 2, 3, 4, 6, 5, 7, 8]
    assert_shows(lab, AttentionLab(**state))
    tab_to(page, "more")
    press("Enter")
    tab_to(page, "scale")
    press("Space")
    tab_to(page, "mask")
    press("ArrowDown")
    tab_to(page, "temperature")  # round the page
    for _ in range(5):
        press("ArrowRight")
    tab_to(page, "weights")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "End", "ArrowLeft", "Home", "ArrowUp"):
        press(key)
    assert (focused(page)["name"], focused(page)["at"]) == ("weights", [1, 0])
    assert lab.figure.get_by_text("chef → The: score").is_visible()
    press("Enter")
    state |= {"temperature": 1.26, "scale": False, "mask": "causal", "query": 1}
    assert_shows(lab, AttentionLab(**state))
    press("Shift+Tab")
    assert focused(page)["name"] == "scores"
    press("Shift+Tab")
    assert focused(page)["name"] == "right"


def assert_shows(lab: LabDriver, python: AttentionLab) -> None:
    shown = lab.shown()
    for panel in ("scores", "weights", "output"):
        np.testing.assert_allclose(
            shown.panels[panel].values, getattr(python, panel), atol=1e-9, err_msg=panel
        )
    assert shown.weights.current == [python.query_row]


# By mouse and by touch -----------------------------------------------------------


def test_dragging_a_slider_ends_where_the_thumb_is_left(open_page, saved):
    lab = LabDriver(open_page(saved(scene="random", d_k=1)))
    box = lab.control("d_k").bounding_box()
    mouse, y = lab.page.mouse, box["y"] + box["height"] / 2
    mouse.move(box["x"] + 8, y)
    mouse.down()
    mouse.move(box["x"] + box["width"] * 0.9, y, steps=25)
    mouse.move(box["x"] + box["width"] * 0.5, y, steps=10)
    mouse.up()
    d_k = int(lab.control("d_k").input_value())
    assert 28 <= d_k <= 37
    assert_shows(lab, AttentionLab(scene="random", d_k=d_k))


def test_a_click_after_a_drag_is_not_a_choice(open_page, saved):
    lab = LabDriver(open_page(saved()))
    lab.drag(1, 4)
    lab.page.wait_for_timeout(20)
    python = AttentionLab(order=[0, 2, 3, 4, 1, 5, 6, 7, 8])
    assert_shows(lab, python)
    lab.chip(1).click()
    python.query = 1
    assert_shows(lab, python)


def test_a_finger_moves_a_token(open_page, saved):
    page = open_page(saved(), **PHONE)
    lab = LabDriver(page)
    lab.chip(0).tap()
    (x0, y0), (x1, y1) = lab._centre(0), lab._centre(2)
    touch = page.context.new_cdp_session(page)

    def finger(kind, *points):
        at = [{"x": x, "y": y} for x, y in points]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})

    finger("touchStart", (x0, y0))
    for t in (0.1, 0.4, 0.7, 1):
        finger("touchMove", (x0 + t * (x1 - x0), y0 + t * (y1 - y0)))
    finger("touchEnd")
    assert_shows(lab, AttentionLab(query=0, order=[1, 2, 0, 3, 4, 5, 6, 7, 8]))


@pytest.mark.parametrize("state", [{}, {"scene": "random", "n": 32}], ids=["chef", "32 tokens"])
def test_on_a_phone_nothing_scrolls_sideways_but_a_wide_table(open_page, saved, state):
    page = open_page(saved(**state), **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert (
        page.evaluate(
            """[...document.querySelectorAll(".attn-live *")]
          .filter((e) => e.checkVisibility() && !e.closest(".attn-scroll, .attn-sr")
            && e.getBoundingClientRect().right > innerWidth + 0.5)
          .map((e) => e.outerHTML.slice(0, 120))"""
        )
        == []
    )
    lab = LabDriver(page)
    lab.open()
    cell = lab.cell("weights", 0, 0).bounding_box()
    assert cell["width"] >= (14 if "n" in state else 22)  # with digits, and without


def test_chips_and_controls_are_large_enough_for_a_finger(open_page, saved):
    """WCAG 2.2, 2.5.8: targets of 24 px; a cell and a push button are also reached otherwise."""
    page = open_page(saved(scene="random"), **PHONE)
    small = page.evaluate(
        """[...document.querySelectorAll(".attn-live :is(button, input, select, label)")]
          .filter((e) => e.checkVisibility() && !e.matches(".attn-push")
            && !e.closest("label:not(:scope)")?.matches(".attn-check") && !e.labels?.length)
          .filter((e) => e.getBoundingClientRect().height < 24)
          .map((e) => e.outerHTML.slice(0, 90))"""
    )
    assert small == []


# Motion ----------------------------------------------------------------------------

_PIXELS = """(figure) => [...figure.querySelectorAll("table[data-panel] canvas")]
  .map((canvas) => canvas.toDataURL())"""


_JOURNEY = f"""async (figure) => {{
  const pixels = {_PIXELS};
  const pictures = [];
  let moving = 0;
  figure.querySelector('[data-action="reverse"]').click();
  do {{
    await new Promise(requestAnimationFrame);
    pictures.push(pixels(figure));
    moving = Math.max(moving, document.getAnimations().length);
  }} while (pictures.length < 3 || figure.querySelector(".attn-moving"));
  return [pictures, moving];
}}"""


def test_cells_travel_and_arrive(open_page, saved):
    """The picture after the journey is, pixel for pixel, the picture of a lab that stood still."""
    still = LabDriver(open_page(saved()))
    still.action("reverse").click()
    still.shown()
    page = open_page(saved(), reduced_motion="no-preference")
    lab = LabDriver(page)
    start = lab.figure.evaluate(_PIXELS)
    for _ in range(5):  # a busy machine may draw no frame of a journey but the last
        pictures, moving = lab.figure.evaluate(_JOURNEY)
        end = pictures[-1]
        if any(len({start[0], picture[0], end[0]}) == 3 for picture in pictures):
            break
        lab.action("reverse").click()
        page.wait_for_function("!document.querySelector('.attn-moving')")
    assert moving > 9  # labels and chips glide too
    assert end == still.figure.evaluate(_PIXELS)
    for k in range(3):
        assert any(len({start[k], picture[k], end[k]}) == 3 for picture in pictures)
    page.wait_for_function("document.getAnimations().length === 0")


def test_a_journey_that_is_interrupted_ends_in_the_last_place(open_page, saved):
    order = [3, 0, 1, 2, 4, 5, 6, 7, 8]
    still = LabDriver(open_page(saved().as_uri() + "#lab?temperature=3.98&order=3,0,1,2,4,5,6,7,8"))  # fmt: skip # noqa: E501
    page = open_page(saved(), reduced_motion="no-preference")
    lab = LabDriver(page)
    lab.action("reverse").click()
    page.wait_for_timeout(100)
    lab.action("reverse").click()
    lab.chip(3).press("Shift+Home")
    page.wait_for_timeout(50)
    lab.control("temperature").fill("0.6")
    assert_shows(lab, AttentionLab(order=order, temperature=3.98))  # values do not wait
    page.wait_for_function("!document.querySelector('.attn-moving')")
    assert lab.figure.evaluate(_PIXELS) == still.figure.evaluate(_PIXELS)


def test_without_motion_nothing_moves(open_page, saved):
    page = open_page(saved(), reduced_motion="reduce")
    lab = LabDriver(page)
    for act in (lab.action("reverse").click, lab.action("shuffle").click):
        act()
        assert page.evaluate(
            """async () => {
              await new Promise(requestAnimationFrame);
              return [document.getAnimations().length, document.querySelectorAll(".attn-moving").length];
            }"""  # noqa: E501
        ) == [0, 0]


# Light and dark -----------------------------------------------------------------------

_COLOURS = """(figure) => {
  const canvas = figure.querySelector('table[data-panel="weights"] canvas');
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const pen = copy.getContext("2d", {willReadFrequently: true});
  pen.drawImage(canvas, 0, 0);
  const {rows, columns} = canvas.closest("table").style.cssText.match(/--columns: (?<columns>\\d+).*--rows: (?<rows>\\d+)/).groups;
  const [w, h] = [canvas.width / columns, canvas.height / rows];
  return Array.from({length: rows}, (_, i) => Array.from({length: columns}, (_, j) =>
    [...pen.getImageData(Math.floor(j * w) + (w > 9 ? 2 : 0), Math.floor(i * h) + (h > 9 ? 2 : 0), 1, 1).data.slice(0, 3)]));
}"""  # noqa: E501
STOPS = json.loads((STATIC.parents[1] / "colors.json").read_text())["maps"]


def colour_of(t: float, theme: str, kind: str) -> np.ndarray:
    """Interpolate a colour map's stops: what a value at t of its range must look like."""
    stops = [[int(stop[k : k + 2], 16) for k in (1, 3, 5)] for stop in STOPS[theme][kind]]
    at = np.linspace(0, 1, len(stops))
    return np.array([np.interp(t, at, channel) for channel in zip(*stops, strict=True)])


@pytest.mark.parametrize("n", [8, 20])
def test_the_theme_switch_recolours_at_once(open_page, saved, n):
    lab = LabDriver(open_page(saved(scene="random", n=n), color_scheme="light"))
    weights = lab.shown().weights.values
    switches = (
        ("light", "() => {}"),
        ("dark", "() => document.documentElement.dataset.theme = 'dark'"),
        ("light", "() => document.documentElement.dataset.theme = 'light'"),
    )
    for theme, switch in switches:
        lab.page.evaluate(switch)
        lab.shown()
        colours = np.array(lab.figure.evaluate(_COLOURS))
        expected = [[colour_of(w, theme, "weights") for w in row] for row in weights]
        # 256 steps, and rounding to whole channels
        np.testing.assert_allclose(colours, expected, atol=3)


def test_the_system_and_jupyterlab_are_asked_too(open_page, saved):
    page = open_page(saved(), color_scheme="dark")
    theme = "document.querySelector('.attn-live').dataset.theme"
    assert page.evaluate(theme) == "dark"
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"{theme} === 'light'")
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    page.wait_for_function(f"{theme} === 'dark'")
    page.evaluate("document.documentElement.dataset.theme = 'light'")  # the book has the last word
    page.wait_for_function(f"{theme} === 'light'")


def flat_scene() -> Scene:
    zero = np.zeros((3, 2))
    tokens = tuple("abcd")
    return Scene("flat", "flat", tokens, tuple("xyz"), np.ones((4, 3)), zero, zero, zero, ("o", "p"), 0, "")  # fmt: skip # noqa: E501


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_flat_matrix_has_one_defined_colour(open_page, tmp_path, theme):
    """Equal scores are the middle of their map, equal weights ¼ of theirs: the scale is fixed."""
    path = AttentionLab(scenes=[flat_scene()]).save(tmp_path / "flat.html")
    lab = LabDriver(open_page(path, color_scheme=theme))
    assert (lab.shown().weights.values == 0.25).all() and not lab.shown().scores.values.any()
    colours = np.array(lab.figure.evaluate(_COLOURS)).reshape(-1, 3)
    np.testing.assert_allclose(colours, [colour_of(0.25, theme, "weights")] * 16, atol=3)


# For everyone ---------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_in_a_large_scene(open_page, saved, axe, width):
    page = open_page(
        saved(scene="random", n=32), viewport={"width": width, "height": 900}, color_scheme="light"
    )
    LabDriver(page).shown()
    assert axe(page) == []
