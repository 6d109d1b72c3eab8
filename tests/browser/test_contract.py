"""What a page, a test or a tool may rely on: each row of the page contract, and every promise."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import numpy as np
import pytest
from browser.driver import LabDriver, number
from playwright.sync_api import expect

from attn_lib.labs import AttentionLab

CONTROLS = {
    "scene": ("combobox", "scene"),
    "query": ("combobox", "query token"),
    "d_k": ("slider", "key width dk"),
    "temperature": ("slider", "temperature T"),
    "scale": ("checkbox", "divide the scores by √dk"),
    "mask": ("combobox", "mask"),
    "seed": ("spinbutton", "seed"),
}


# The rows of the contract -----------------------------------------------------


def test_a_lab_is_a_figure_with_an_id_that_says_when_it_is_alive(open_page, saved):
    page = open_page(saved(picture=True))
    figure = page.locator('figure.attn-lab[data-lab="AttentionLab"]')
    assert figure.count() == 1
    assert figure.get_attribute("id") == "lab"
    assert figure.get_attribute("data-ready") == "true"
    assert figure.get_attribute("aria-label") == "One query against every key"
    assert not figure.locator("img.attn-static").is_visible()
    assert figure.locator("img.attn-static").count() == 1  # hidden, kept for print


def test_controls_are_native_and_have_a_visible_name(open_page, saved):
    lab = LabDriver(open_page(saved(scene="random")))
    for name, (role, words) in CONTROLS.items():
        control = lab.control(name)
        assert control.evaluate("(input) => ['INPUT', 'SELECT'].includes(input.tagName)")
        named = lab.figure.get_by_role(role, name=words, exact=True)
        assert named.get_attribute("data-control") == name
        assert control.evaluate("(input) => input.labels.length") == 1
        assert control.evaluate("(input) => input.labels[0].checkVisibility()")


def test_a_slider_says_its_value_beside_it_and_aloud(open_page, saved):
    lab = LabDriver(open_page(saved(scene="random")))
    for name, position, words in (("d_k", "7", "7"), ("temperature", "-0.3", "0.501")):
        lab.control(name).fill(position)
        lab.shown()
        beside = lab.control(name).locator("xpath=following-sibling::output")
        assert beside.text_content() == words
        assert lab.control(name).get_attribute("aria-valuetext") == words


def test_no_stop_of_the_temperature_slider_shows_binary_dust(open_page, saved):
    """0.3 is shown as 0.3, never as 0.30000000000000004."""
    lab = LabDriver(open_page(saved()))
    stops = lab.control("temperature").evaluate(
        """async (input) => {
          const stops = [];
          for (input.value = input.min; stops.length <= 200; input.stepUp()) {
            input.dispatchEvent(new Event("input", {bubbles: true}));
            await new Promise(requestAnimationFrame);
            stops.push(input.nextElementSibling.textContent);
          }
          return stops;
        }"""
    )
    assert stops[0] == "0.01" and stops[100] == "1" and stops[200] == "100"
    for text, exact in zip(stops, 10 ** np.linspace(-2, 2, 201), strict=True):
        assert len(text) <= 6
        np.testing.assert_allclose(float(text), exact, rtol=0.005)


def test_the_control_of_d_k_says_why_it_is_off(open_page, saved):
    lab = LabDriver(open_page(saved()))
    assert lab.control("d_k").is_disabled()
    fixed = "Fixed here: it is the width of this scene’s vectors."
    assert lab.figure.get_by_text(fixed).is_visible()
    lab.control("scene").select_option("random")
    lab.shown()
    assert lab.control("d_k").is_enabled()
    assert not lab.figure.get_by_text("Fixed here").is_visible()


def test_the_token_order_is_a_list_whose_items_can_be_pushed(open_page, saved):
    lab = LabDriver(open_page(saved()))
    order = lab.control("order")
    assert order.evaluate("(list) => list.tagName") == "UL"
    assert order.locator("> [data-token]").count() == 9
    for token, text in enumerate(AttentionLab().tokens):
        for side in ("left", "right"):
            button = lab.token(token).get_by_role("button", name=f"Move {text} {side}", exact=True)
            assert button.count() == 1
    assert lab.token(0).locator('[data-move="left"]').is_disabled()
    assert lab.token(8).locator('[data-move="right"]').is_disabled()


@pytest.mark.parametrize("panel", ["scores", "weights", "output"])
def test_a_heatmap_is_a_table_with_queries_down_and_keys_across(open_page, saved, panel):
    lab = LabDriver(open_page(saved()))
    table = lab.figure.get_by_role("table", name=re.compile("rows are queries, columns are"))
    assert table.count() == 3
    shown = lab.shown().panels[panel]
    python = AttentionLab()
    assert shown.rows == python.tokens
    assert shown.cols == (["food", "doing", "taste"] if panel == "output" else python.tokens)
    exact = getattr(python, panel)
    assert not np.allclose(exact, exact.T) if panel != "output" else exact.shape == (9, 3)
    # nine significant digits and more: a rounded value would miss this
    np.testing.assert_allclose(shown.values, exact, rtol=1e-9, atol=1e-12)


def test_the_chosen_row_is_framed_in_every_panel(open_page, saved):
    lab = LabDriver(open_page(saved()))
    lab.chip(4).click()
    lab.shown()
    for panel in ("scores", "weights", "output"):
        row = lab.cell(panel, 4, 0).bounding_box()
        frame = lab.figure.locator(f'table[data-panel="{panel}"] .attn-frame').bounding_box()
        np.testing.assert_allclose(
            [frame["x"], frame["y"], frame["height"]], [row["x"], row["y"], row["height"]], atol=1
        )


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("n", [8, 13, 32])
def test_colours_lie_exactly_under_their_cells(open_page, saved, n, width):
    page = open_page(saved(scene="random", n=n), viewport={"width": width, "height": 900})
    lab = LabDriver(page)
    lab.open()
    lab.shown()
    for panel, m in (("scores", n), ("weights", n), ("output", 4)):
        canvas = lab.figure.locator(f'table[data-panel="{panel}"] canvas').bounding_box()
        first = lab.cell(panel, 0, 0).bounding_box()
        last = lab.cell(panel, n - 1, m - 1).bounding_box()
        assert first["width"] == first["height"]
        corners = [first["x"], first["y"], last["x"] + last["width"], last["y"] + last["height"]]
        drawn = [canvas["x"], canvas["y"]]
        drawn += [canvas["x"] + canvas["width"], canvas["y"] + canvas["height"]]
        np.testing.assert_allclose(drawn, corners, atol=0.6)


# Digits on the canvas -----------------------------------------------------------

_RECORD_DIGITS = """
  const {fillText, clearRect} = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...a) {
    this.canvas.digits = [];
    clearRect.apply(this, a);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const {width, height} = this.canvas;
    this.canvas.digits?.push([text, x / width, y / height, this.fillStyle]);
    fillText.call(this, text, x, y);
  };
"""


@pytest.mark.parametrize("panel", ["scores", "weights", "output"])
def test_digits_are_drawn_and_written_in_their_own_cells(open_page, saved, panel):
    """The canvas shows each value, rounded, in its cell; the cell says the same as text."""
    page = open_page(saved(), init=_RECORD_DIGITS)
    lab = LabDriver(page)
    lab.control("mask").select_option("causal")
    lab.action("reverse").click()
    lab.shown()
    page.wait_for_timeout(400)  # the cells' own text follows when the picture rests
    matrix = lab.shown().panels[panel]
    n, m = matrix.values.shape
    canvas = lab.figure.locator(f'table[data-panel="{panel}"] canvas')
    drawn = {(int(y * n), int(x * m)): text for text, x, y, _ in canvas.evaluate("c => c.digits")}
    for (i, j), value in np.ndenumerate(matrix.values):
        text = matrix.texts[i][j]
        if np.isneginf(value) or (panel == "weights" and j > i):
            assert text == "" and (i, j) not in drawn
        else:
            assert drawn[i, j] == text
            decimals = len(text.partition(".")[2])
            assert decimals >= 1 or text == "0" or abs(value) >= 0.9
            assert abs(number(text) - value) <= 0.5 * 10**-decimals + 1e-9


# Reset and links ------------------------------------------------------------------


def test_reset_returns_to_the_state_the_lab_came_with(open_page, saved):
    given = {"scene": "random", "d_k": 9, "mask": "causal", "temperature": 2.5, "seed": 7}
    page = open_page(saved(**given).as_uri() + "#lab?d_k=3&seed=1")
    lab = LabDriver(page)
    lab.action("reverse").click()
    lab.control("temperature").fill("1")
    lab.action("reset").click()
    shown = lab.shown()
    np.testing.assert_allclose(shown.scores.values, AttentionLab(**given).scores, atol=1e-9)
    np.testing.assert_allclose(shown.weights.values, AttentionLab(**given).weights, atol=1e-9)
    assert shown.order == list(range(8))
    assert "#" not in page.url  # the address says the same as the lab


def test_copy_link_gives_an_address_that_opens_the_same_state(open_page, saved):
    page = open_page(saved(), permissions=["clipboard-read", "clipboard-write"])
    lab = LabDriver(page)
    lab.control("scene").select_option("random")
    lab.control("d_k").fill("5")
    lab.control("temperature").fill("-0.4")
    lab.control("scale").click()
    lab.chip(3).press("Shift+Home")
    lab.action("link").click()
    before = lab.shown()
    assert lab.action("link").text_content() == "Copied"
    address = page.evaluate("navigator.clipboard.readText()")
    assert address == page.url and address.startswith(saved().as_uri() + "#lab?")
    after = LabDriver(open_page(address)).shown()
    for panel in ("scores", "weights", "output"):
        np.testing.assert_array_equal(after.panels[panel].values, before.panels[panel].values)
    assert after.controls == before.controls and after.order == before.order


def test_where_the_clipboard_is_closed_the_link_can_be_copied_by_hand(open_page, saved):
    closed = "navigator.clipboard.writeText = () => Promise.reject(new Error('closed'))"
    page = open_page(saved(), init=closed)
    lab = LabDriver(page)
    lab.control("mask").select_option("causal")
    lab.action("link").click()
    field = lab.figure.locator(".attn-notice input")
    assert field.input_value() == page.url == saved().as_uri() + "#lab?mask=causal"
    assert field.evaluate("(input) => input === document.activeElement")


def test_what_a_link_says_well_is_taken_beside_what_it_says_badly(open_page, saved):
    lab = LabDriver(open_page(saved()))
    for field, good in (("d_k=nonsense", "mask=causal"), ("mask=upper", "query=2")):
        lab.follow(f"#lab?{field}&{good}")
        shown, (control, value) = lab.shown(), good.split("=")
        assert field.split("=")[0] in shown.notice
        assert shown.controls[control] == value
        lab.control("temperature").fill("1")
        assert lab.shown().notice == ""


NOT_OURS = ["#", "#other?d_k=3", "#lab?", "#%", "#%E0%A4%A", "#?&&=", "#lab?%"]


def test_other_fragments_leave_the_lab_alone(open_page, saved, subtests):
    for fragment in NOT_OURS:
        with subtests.test(fragment=fragment):
            lab = LabDriver(open_page(saved().as_uri() + fragment))
            np.testing.assert_allclose(
                lab.shown().weights.values, AttentionLab().weights, atol=1e-9
            )


# Words ------------------------------------------------------------------------------


STATES = [
    {"query": 0, "mask": "causal"},
    {"scene": "random", "seed": 3, "d_k": 64, "scale": False, "query": 0},
    {"scene": "river", "temperature": 100.0},
    {"scene": "account", "temperature": 0.01},
]


def test_page_and_python_say_the_same_sentence(open_page, saved, subtests):
    lab = LabDriver(open_page(saved()))
    for state in STATES:
        with subtests.test(state=state):
            lab.follow("#lab?" + urlencode(state).replace("False", "false"))
            sentence = lab.figure.locator("[aria-live=polite]")
            expect(sentence).to_have_text(AttentionLab(**state).describe(), timeout=60_000)


def test_the_sentence_is_spoken_once_when_a_slider_rests(open_page, saved):
    page = open_page(saved())
    lab = LabDriver(page)
    page.evaluate(
        """() => {
          window.said = [];
          const region = document.querySelector("[aria-live=polite]");
          new MutationObserver(() => said.push(region.textContent))
            .observe(region, {childList: true, characterData: true, subtree: true});
        }"""
    )
    for position in ("-0.1", "-0.2", "-0.3", "-0.4", "-0.5"):
        lab.control("temperature").fill(position)
    page.wait_for_function("said.length")
    page.wait_for_timeout(450)
    assert page.evaluate("said") == [AttentionLab(temperature=0.316).describe()]


def test_pointing_at_a_cell_reads_out_its_numbers(open_page, saved):
    lab = LabDriver(open_page(saved()))
    lab.cell("weights", 8, 6).hover()
    python = AttentionLab()
    score, weight = python.scores[8, 6], python.weights[8, 6]
    expected = f"bland → soup: score {score:.2f}, weight {weight:.3f}"
    assert lab.figure.get_by_text(expected).is_visible()
    lab.control("mask").select_option("causal")
    lab.cell("scores", 2, 5).hover()
    assert lab.figure.get_by_text("added → the: forbidden by the mask, weight 0").is_visible()


# Two labs on a page ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_labs(page_of):
    first = AttentionLab(name="lab")
    second = AttentionLab(name="second-look", scene="random", seed=5, title="A random one")
    return page_of(first, second)


def test_two_labs_on_a_page_are_independent(open_page, two_labs):
    page = open_page(two_labs)
    page.watch.inside = "file://"
    first, second = LabDriver(page, "#lab"), LabDriver(page, "#second-look")
    before = second.shown()
    first.control("temperature").fill("1")
    first.action("reverse").click()
    first.chip(0).click()
    assert vars(second.shown()).keys() == vars(before).keys()
    np.testing.assert_array_equal(second.shown().weights.values, before.weights.values)
    assert second.shown().order == before.order
    changed = first.shown().weights.values
    second.control("d_k").fill("3")
    second.action("reset").click()
    np.testing.assert_array_equal(first.shown().weights.values, changed)
    python = AttentionLab(temperature=10.0, order=[8, 7, 6, 5, 4, 3, 2, 1, 0], query=0)
    np.testing.assert_allclose(changed, python.weights, atol=1e-9)


def test_no_id_stands_twice(open_page, page_of):
    """Labs with one name, or none, get ids of their own."""
    labs = [AttentionLab(name="twin"), AttentionLab(name="twin"), AttentionLab(), AttentionLab()]
    page = open_page(page_of(*labs))
    page.watch.inside = "file://"
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((element) => element.id)")
    assert len(set(ids)) == len(ids)
    figures = page.evaluate("[...document.querySelectorAll('figure')].map((figure) => figure.id)")
    assert len(set(figures)) == 4 and figures[0] == "twin"


def test_a_link_addresses_one_lab_and_brings_it_into_view(open_page, two_labs):
    page = open_page(two_labs.as_uri() + "#second-look?seed=9&d_k=2")
    page.watch.inside = "file://"
    first, second = LabDriver(page, "#lab"), LabDriver(page, "#second-look")
    np.testing.assert_allclose(first.shown().weights.values, AttentionLab().weights, atol=1e-9)
    python = AttentionLab(scene="random", seed=9, d_k=2)
    np.testing.assert_allclose(second.shown().weights.values, python.weights, atol=1e-9)
    assert page.evaluate("document.querySelector('#second-look').getBoundingClientRect().top") < 450
    first.action("reset").click()
    assert page.url.endswith("#second-look?seed=9&d_k=2")  # that link is not the first lab's
