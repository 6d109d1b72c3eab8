"""What cannot be followed or started is said, briefly, and harms nothing else."""

from __future__ import annotations

import re

import pytest
from browser.driver import LabDriver

from attn_lib.labs import AttentionLab, MaskLab, TilingLab


@pytest.fixture
def broken_page(open_page, page_of):
    """Open three labs, of which the second is broken by a change of its HTML."""

    def open_(old: str, new: str):
        labs = AttentionLab(name="first"), MaskLab(name="second"), TilingLab(name="third")
        path = page_of(*labs, picture=True)
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
        page = open_page(path)
        page.watch.inside = "file://"
        return page

    return open_


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('data-lab="MaskLab"', 'data-lab="PairLab"', "no lab is called PairLab here; there are"),
        ('data-lab="MaskLab"', 'data-lab="toString"', "no lab is called toString here"),
        ('{"kind": "MaskLab"', '{"kind": "MaskLab', "This lab could not start: "),
    ],
)
def test_a_lab_that_cannot_start_says_so_and_stops_no_other(broken_page, old, new, words):
    page = broken_page(old, new)
    for name in ("first", "third"):
        assert page.locator(f"#{name}").get_attribute("data-ready") == "true"
    figure = page.locator("#second")
    assert words in figure.locator(".attn-failed").inner_text()
    assert figure.locator(".attn-static").is_visible()
    assert figure.locator(".attn-live").count() == 0
    (complaint,) = page.watch.complaints
    assert "could not start" in complaint
    page.watch.complaints.clear()
    room = figure.bounding_box()["height"] - figure.locator(".attn-static").bounding_box()["height"]
    assert room < 120  # only the words stand beneath the picture


@pytest.mark.parametrize(
    "fields",
    [
        "seed=" + 3000 * "x",
        "&".join(f"k{k}=1" for k in range(5000)),
        200_000 * "y" + "=1",
        "temperature=1" + 3000 * "0",
    ],
)
def test_a_bad_link_is_quoted_in_brief(open_page, saved, fields):
    page = open_page(saved().as_uri() + "#lab?" + fields)
    notice = LabDriver(page).figure.locator(".attn-notice")
    assert "The link could not be followed in full" in notice.inner_text()
    assert len(notice.inner_text()) < 500
    assert notice.bounding_box()["height"] < 200


def test_a_notice_counts_what_it_leaves_out(open_page, saved):
    page = open_page(saved().as_uri() + "#lab?" + "&".join(f"k{k}=1" for k in range(9)))
    notice = LabDriver(page).figure.locator(".attn-notice").inner_text()
    assert len(re.findall("no such setting", notice)) == 5 and "; and 4 more." in notice


def test_an_unknown_scene_is_answered_with_each_scene_once(open_page, saved):
    page = open_page(saved().as_uri() + "#lab?scene=x")
    notice = LabDriver(page).figure.locator(".attn-notice").inner_text()
    assert "scene=x: expected one of chef, river, account, random." in notice
