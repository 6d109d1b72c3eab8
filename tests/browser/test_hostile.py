"""Text that would be markup somewhere else is text everywhere here (tokens, titles, links)."""

from __future__ import annotations

from urllib.parse import quote

import numpy as np
import pytest
from browser.driver import LabDriver

from attn_lib.examples import Scene
from attn_lib.labs import AttentionLab

TOKENS = (
    "<img src=x onerror=alert(1)>",
    'a" onmouseover="alert(2)',
    "</script><script>alert(3)</script>",
    "a<b & c>d",
    "' onfocus='alert(4)",
    "<!--",
    "\u202egnp.exe\u2028",  # right-to-left override, line separator
    "{title} %s ${alert(5)}",
)
OUTPUTS = ("<svg onload=alert(6)>", "]]>", "&lt;")
NOTE = "</figure><b id=stolen>bold</b>"
NAME = 'x"><i>'


def hostile_lab(**state) -> AttentionLab:
    rng = np.random.default_rng(0)
    n, d, d_k, d_v = len(TOKENS), 5, 4, len(OUTPUTS)
    scene = Scene(
        name="<hostile>",
        label="</option><option>label",
        tokens=TOKENS,
        features=tuple("abcde"),
        X=rng.normal(size=(n, d)),
        W_Q=rng.normal(size=(d, d_k)),
        W_K=rng.normal(size=(d, d_k)),
        W_V=rng.normal(size=(d, d_v)),
        outputs=OUTPUTS,
        query=2,
        note=NOTE,
    )
    return AttentionLab(scenes=[scene], name=NAME, title="<script>alert(7)</script>", **state)


@pytest.fixture(scope="module")
def files(page_of, tmp_path_factory):
    """Return the hostile lab, saved alone and in a page like the book's."""
    alone = hostile_lab().save(tmp_path_factory.mktemp("hostile") / "lab.html")
    others = page_of(hostile_lab(), AttentionLab(name="other"), picture=True)
    return {"alone": alone, "among others": others}


@pytest.fixture(params=["alone", "among others"])
def page(request, open_page, files):
    page = open_page(files[request.param])
    page.watch.inside = "file://"
    page.on("dialog", lambda dialog: page.watch.complaints.append(f"dialog: {dialog.message}"))
    return page


def lab_of(page) -> LabDriver:
    return LabDriver(page, "figure.attn-lab >> nth=0")


def test_tokens_are_shown_literally(page):
    lab = lab_of(page)
    lab.open()
    shown, python = lab.shown(), hostile_lab()
    assert shown.weights.rows == shown.scores.cols == list(TOKENS)
    assert shown.output.cols == list(OUTPUTS)
    np.testing.assert_allclose(shown.weights.values, python.weights, atol=1e-9)
    assert shown.spoken == python.describe()
    assert {terms[0] for terms in shown.sum[:-1]} < set(TOKENS) | {"2 others"}
    assert lab.figure.locator(".attn-title").text_content() == "<script>alert(7)</script>"
    assert lab.figure.get_by_text(NOTE, exact=True).is_visible()
    for token, text in enumerate(TOKENS):
        assert lab.chip(token).text_content() == text
        assert lab.token(token).locator("button").first.get_attribute("aria-label") == (
            f"Move {text} left"
        )
    options = lab.control("query").locator("option")
    assert options.all_text_contents() == list(TOKENS)
    assert "</option><option>label" in lab.control("scene").locator("option").all_text_contents()


def test_no_element_and_no_handler_comes_of_them(page):
    lab = lab_of(page)
    for token in range(len(TOKENS)):
        lab.chip(token).click()
        lab.cell("scores", token, 0).hover()
        lab.cell("scores", token, 0).focus()
    lab.action("reverse").click()
    lab.action("link").click()
    lab.shown()
    found = page.evaluate(
        """() => ({
          made: [...document.querySelectorAll("svg, #stolen, img:not(.attn-static)")]
            .filter((element) => !element.matches(".attn-chart, .attn-arcs")).length,
          scripts: [...document.scripts].filter((script) => !script.src)
            .map((script) => script.className),
          handlers: [...document.querySelectorAll("*")]
            .flatMap((element) => [...element.attributes])
            .filter((attribute) => attribute.name.startsWith("on")).length,
        })"""
    )
    assert found["made"] == found["handlers"] == 0
    assert set(found["scripts"]) <= {"attn-state", ""} and found["scripts"].count("") <= 1


def test_the_picture_is_described_literally(page):
    picture = lab_of(page).figure.locator("img.attn-static")
    python = hostile_lab()
    assert picture.get_attribute("alt") == f"{python.title}. {python.describe()}"


def test_links_to_such_a_scene_work(page):
    lab = lab_of(page)
    lab.control("mask").select_option("causal")
    lab.control("scene").select_option("random")
    lab.action("link").click()
    lab.shown()
    address = page.url
    assert "<" not in address and '"' not in address
    page.goto("about:blank")
    page.goto(address)
    lab = lab_of(page)
    assert lab.shown().controls["mask"] == "causal"
    assert lab.shown().controls["scene"] == "random"
    lab.follow(f"#{quote(NAME)}?scene={quote('<hostile>')}")
    assert lab.shown().weights.rows == list(TOKENS)


FIELDS = [
    "d_k=<img src=x onerror=alert(1)>",
    "<img src=x onerror=alert(1)>=1",
    "scene=</p><script>alert(1)</script>",
    'order="><svg onload=alert(1)>',
    "scene=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
    "toString=1&__proto__=2&hasOwnProperty=3",
]


def test_what_a_link_says_is_quoted_as_text(open_page, saved, subtests):
    page = open_page(saved())
    page.on("dialog", lambda dialog: page.watch.complaints.append(f"dialog: {dialog.message}"))
    lab = LabDriver(page)
    for field in FIELDS:
        with subtests.test(field=field):
            lab.follow(f"#lab?{field}")
            shown = lab.shown()
            assert shown.notice.startswith("The link could not be followed in full.")
            assert lab.figure.locator(".attn-notice *").count() == 0
            np.testing.assert_allclose(shown.weights.values, AttentionLab().weights, atol=1e-9)
