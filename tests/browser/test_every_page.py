"""Every page of the built book, visited once on a wide screen and once on a phone.

A visit asks everything of a page that can be asked there; the console and what the page requests
are watched by `open_page`.
"""

from __future__ import annotations

import json

import fonts
import pytest
from browser.driver import SCREENS, SETTLED, LabDriver
from browser.specs import SPECS
from conftest import ROOT

SOURCES = (path.relative_to(ROOT) for path in (ROOT / "book").rglob("*.md"))
PAGES = sorted(
    [path.with_suffix(".html").as_posix() for path in SOURCES if "_ext" not in path.parts]
    + ["search.html"]
)
WHAT_THEME_AND_WIDTH_CHANGE = ["color-contrast", "scrollable-region-focusable"]

# Before the page: note whatever moves while it loads.
SHIFTS = """window.shifts = [];
  new PerformanceObserver((list) => shifts.push(...list.getEntries().map((entry) => ({
    value: entry.value,
    of: entry.sources.map(({node}) => (node?.closest?.(".attn-lab") ? "lab" : node?.nodeName)),
  })))).observe({type: "layout-shift", buffered: true});"""
SHIFTED = "shifts.reduce((sum, {value}) => sum + value, 0)"
UNTYPESET = """[...document.querySelectorAll("main p, main li")]
  .filter((p) => /\\\\\\(|\\\\\\[/.test(p.innerText)).map((p) => p.innerText)"""
CUT = """[...document.querySelectorAll("span.math, mjx-container[display]")].filter((formula) =>
  formula.scrollWidth > formula.clientWidth + 1 && formula.clientWidth
    && (getComputedStyle(formula).overflowX !== "auto" || formula.tabIndex < 0))
  .map(({textContent}) => textContent)"""
SCROLLING = """[...document.querySelectorAll(".attn-scroll")].filter((frame) =>
  frame.checkVisibility() && !frame.closest(".attn-numbers")
    && frame.scrollWidth > frame.clientWidth)
  .map((frame) => [frame.closest("figure").id, frame.parentElement.className])"""
UNFOLD = "(which) => document.querySelectorAll(which).forEach((details) => (details.open = true))"


def assert_fits(page) -> None:
    """Nothing is wider than the window, and no formula is cut off."""
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate(CUT) == []


def assert_stood_still(page) -> None:
    """A page with labs, that is; where formulas alone are set, lines may break anew."""
    if page.locator("figure.attn-lab").count():
        page.wait_for_timeout(300)
        assert page.evaluate(SHIFTED) < 0.1, page.evaluate("shifts")


def look(page, theme: str, width: int) -> None:
    """Change the theme and the width, and wait until the page has followed."""
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_timeout(500)  # the theme looks again what scrolls when resizing rests
    page.evaluate(SETTLED)
    assert page.evaluate("document.documentElement.dataset.theme") == theme


def test_the_list_holds_every_page(pages):
    assert pages == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_on_a_wide_screen(open_book, axe, subtests, name):
    """Whole, alive, accessible; every lab shows the numbers of its Python."""
    page = open_book(name, color_scheme="light", init=SHIFTS)
    with subtests.test("labs come alive without a jump"):
        assert_stood_still(page)
    with subtests.test("formulas are typeset"):
        assert page.locator("mjx-merror").count() == 0
        assert page.evaluate(UNTYPESET) == []
    page.evaluate(UNFOLD, "details:not(.attn-lab *)")
    for figure in page.locator("figure.attn-lab").all():
        with subtests.test("a lab and its Python", lab=figure.get_attribute("id")):
            assert_shows_its_python(page, figure)
    with subtests.test("no panel scrolls"):
        assert page.evaluate(SCROLLING) == []
    page.evaluate(UNFOLD, "details")
    for theme, rules in (("light", None), ("dark", WHAT_THEME_AND_WIDTH_CHANGE)):
        look(page, theme, SCREENS["wide"]["width"])
        with subtests.test("fits and is accessible", theme=theme):
            assert_fits(page)
            assert axe(page, rules) == []


def assert_shows_its_python(page, figure) -> None:
    """Make the lab in Python from the state that stands in the page, and compare the pictures."""
    assert figure.get_attribute("data-ready") == "true"
    for skip in figure.locator("[data-action=skip]").all():  # a question hides what answers it
        skip.click()
        page.wait_for_timeout(450)  # what is said follows a little later
    data = json.loads(figure.locator("script.attn-state").text_content())
    spec, lab = SPECS[data["kind"]], LabDriver(page, f'figure[id="{figure.get_attribute("id")}"]')
    python = spec.from_data(spec.kind, data)
    spec.parity(lab, python)
    assert lab.shown().spoken == python.describe()


@pytest.mark.parametrize("name", PAGES)
def test_on_a_phone(open_book, axe, subtests, name):
    """It stands still, fits, is accessible; on a narrower one, and with wide letters, it fits."""
    page = open_book(name, color_scheme="dark", viewport=SCREENS["phone"], init=SHIFTS)
    with subtests.test("labs come alive without a jump"):
        assert_stood_still(page)
    page.evaluate(UNFOLD, "details")
    for theme in ("dark", "light"):
        look(page, theme, SCREENS["phone"]["width"])
        with subtests.test("fits and is accessible", theme=theme):
            assert_fits(page)
            assert axe(page, WHAT_THEME_AND_WIDTH_CHANGE) == []
    page.add_style_tag(content=fonts.WIDE)
    for width in (320, SCREENS["phone"]["width"]):
        look(page, "light", width)
        with subtests.test("fits with wide letters", width=width):
            assert_fits(page)
