"""The built book as a reader opens it: from disk, offline, in either theme, on either screen."""

from __future__ import annotations

import json

import numpy as np
import pytest
from browser.driver import SCREENS, SETTLED, LabDriver

from attn_lib.labs import AttentionLab


def labs_of(page) -> list[LabDriver]:
    ids = page.evaluate("[...document.querySelectorAll('figure.attn-lab')].map(f => f.id)")
    return [LabDriver(page, f'figure[id="{name}"]') for name in ids]


def with_labs(built_book, pages) -> list[str]:
    return [page for page in pages if 'figure class="attn-lab' in (built_book / page).read_text()]


def test_the_folders_own_page_leads_to_the_book(open_page, built_book):
    page = open_page(built_book / "index.html", inside=built_book)  # waits for a lab
    assert page.url == (built_book / "book/index.html").as_uri()


# Drawers and dialogs ----------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("button", "opened"),
    [
        (".primary-toggle:visible", ".bd-sidebar-primary, dialog#pst-primary-sidebar-modal"),
        (".secondary-toggle:visible", ".bd-sidebar-secondary, dialog#pst-secondary-sidebar-modal"),
        (".search-button:visible", "dialog#pst-search-dialog, .search-button__wrapper.show"),
    ],
)
def test_what_a_phone_opens_is_accessible_too(open_book, axe, theme, button, opened):
    page = open_book("book/notation.html", viewport=SCREENS["phone"], color_scheme=theme)
    page.locator(button).first.click()
    page.locator(opened).locator("visible=true").first.wait_for()
    page.wait_for_timeout(400)  # the drawer slides
    assert axe(page) == []


# Labs in pages -----------------------------------------------------------------------


def test_a_reader_moves_a_lab_of_the_chapter(open_book):
    page = open_book("book/qkv.html")
    lab = labs_of(page)[0]
    lab.control("scene").select_option("random")
    lab.control("d_k").fill("3")
    lab.control("temperature").fill("0.5")
    lab.drag(0, 3)
    python = AttentionLab(
        scene="random", d_k=3, temperature=3.16, order=[1, 2, 3, 0, 4, 5, 6, 7],
        mask=lab.shown().controls["mask"],
    )  # fmt: skip
    np.testing.assert_allclose(lab.shown().weights.values, python.weights, atol=1e-6)


def test_a_link_opens_the_chapter_at_its_lab(open_book):
    name = labs_of(open_book("book/qkv.html"))[-1].figure.get_attribute("id")
    page = open_book("book/qkv.html", f"#{name}?temperature=7")
    lab = LabDriver(page, f"#{name}")
    shown = float(lab.control("temperature").input_value())
    assert abs(shown - np.log10(7)) < 0.02
    page.wait_for_function(
        "id => Math.abs(document.getElementById(id).getBoundingClientRect().top) < innerHeight / 2",
        arg=name,
    )


def test_every_link_of_a_sentence_sets_its_lab(open_book, built_book, pages):
    found = 0
    for name in pages:
        if "attn-set" not in (built_book / name).read_text():
            continue
        page = open_book(name)
        for link in page.locator("a.attn-set").all():
            link.evaluate("link => link.closest('details')?.setAttribute('open', '')")
            lab, _, fields = link.get_attribute("href").removeprefix("#").partition("?")
            link.click()
            driver = LabDriver(page, f'figure[id="{lab}"]')
            assert fields and driver.shown().notice == "", (name, link.get_attribute("href"))
            found += 1
    assert found


SEEN = """async (figure) => {
  figure.querySelector("[data-action=skip]")?.click();
  for (let k = 0; k < 3; k++) await new Promise(requestAnimationFrame);
  figure.scrollIntoView({block: "start", behavior: "instant"});
  await new Promise(requestAnimationFrame);
  const bar = document.querySelector(".bd-header-article").getBoundingClientRect().bottom;
  const outside = (element) => {
    const {top, bottom} = element.getBoundingClientRect();
    return top < bar - 1 || bottom > innerHeight + 1;
  };
  const [panel] = figure.querySelector(".attn-picture").children;
  const pictures = [...panel.querySelectorAll("svg:not(.attn-key svg), table, .attn-strip")];
  return {
    controls: [...figure.querySelectorAll(".attn-first [data-control], .attn-says")]
      .filter((e) => e.checkVisibility() && outside(e)).map((e) => e.outerHTML.slice(0, 60)),
    picture: outside(pictures.find((e) => e.checkVisibility() && e.clientHeight > 30)),
    whole: outside(figure.querySelector(".attn-picture")),
  };
}"""


SIZES = ((1280, 720), (1366, 768), (390, 844))


def test_a_hand_and_what_it_moves_are_in_one_view(open_book, built_book, pages, subtests):
    """On a wide screen the whole picture is, on a phone its first part: the one that moves."""
    for name in with_labs(built_book, pages):
        if name.endswith("gallery.html"):
            continue  # every lab as it comes, to look up
        page = open_book(name)
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            for lab in labs_of(page):
                with subtests.test(lab=lab.figure.get_attribute("id"), width=width):
                    seen = lab.figure.evaluate(SEEN)
                    assert seen["controls"] == [] and not seen["picture"]
                    assert width < 600 or not seen["whole"]
        page.close()


def test_a_link_sets_its_lab_again_after_a_reader_has_moved_it(open_book):
    page = open_book("book/index.html")
    link, lab = page.locator("a.attn-set").first, labs_of(page)[0]
    link.click()
    chosen = lab.shown().words
    lab.chip(0).click()
    assert lab.shown().words != chosen
    link.click()
    assert lab.shown().words == chosen


def test_the_books_theme_button_recolours_its_labs(open_book):
    page = open_book("book/index.html", color_scheme="light")
    seen = set()
    for _ in range(3):  # auto, light, dark in some order
        page.locator(".theme-switch-button:visible").first.click()
        page.evaluate(SETTLED)
        theme = page.evaluate("document.documentElement.dataset.theme")
        assert page.evaluate("document.querySelector('.attn-live').dataset.theme") == theme
        seen.add(theme)
    assert seen == {"light", "dark"}


def test_where_scrollbars_take_room_none_stands_under_a_panel(open_page, built_book, launch):
    """Playwright hides scrollbars; most readers' browsers show them."""
    page = open_page(
        built_book / "book/gallery.html",
        inside=built_book,
        browser=launch(ignore_default_args=["--hide-scrollbars"]),
    )
    page.evaluate(SETTLED)
    assert page.evaluate("innerWidth > document.documentElement.clientWidth")
    bars = """[...document.querySelectorAll(".attn-scroll")]
      .filter((frame) => frame.checkVisibility() && frame.offsetHeight > frame.clientHeight)
      .map((frame) => [frame.closest("figure").dataset.lab, frame.parentElement.className])"""
    assert page.evaluate(bars) == []


# Without a script, and on paper ---------------------------------------------------------


def test_without_a_script_the_pictures_stand(open_book, built_book, pages):
    for name in with_labs(built_book, pages):
        page = open_book(name, java_script_enabled=False)
        figures = page.locator("figure.attn-lab")
        for k in range(figures.count()):
            picture = figures.nth(k).locator("img.attn-static")
            assert picture.is_visible() and len(picture.get_attribute("alt")) > 60
            box = picture.bounding_box()
            assert box["width"] > 300 and box["height"] > 100
            assert picture.evaluate("(img) => img.naturalWidth") > 600
            dead = figures.nth(k).locator("input, select, button, canvas")
            assert dead.count() == 0


def test_on_paper_the_pictures_stand_and_everything_is_unfolded(open_book):
    page = open_book("book/qkv.html")
    page.emulate_media(media="print")
    for lab in labs_of(page):
        assert lab.figure.locator("img.attn-static").is_visible()
        assert not lab.figure.locator(".attn-live").is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.locator("details:not([open])").count() > 0
    assert labs_of(page)[0].figure.locator(".attn-live").is_visible()


def test_the_notebook_of_a_chapter_can_be_saved_from_disk(open_book, tmp_path):
    page = open_book("book/qkv.html", accept_downloads=True)
    with page.expect_download() as download:
        page.locator("a[href^='data:application/x-ipynb+json']").first.click()
    notebook = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    assert any("attn_lib" in "".join(cell["source"]) for cell in notebook["cells"])
