"""attn_lib.diagrams: each drawing can be read, in both themes, by everyone, and is true."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from attn_lib import diagrams, softmax
from attn_lib.diagrams.sketch import COLOURS, Sketch, colour

BOOK = Path(__file__).parents[1] / "book"
PHONE = 326  # px that a drawing gets on a phone
GIVEN = {
    "target_shift": (("The", "chef", "added", "salt"),),
    "many_heads": (softmax(np.random.default_rng(0).normal(size=(2, 3, 5, 5))), 4),
}
DRAWINGS = [name for name in diagrams.__all__ if name != "Sketch"]


def drawn(name: str) -> Sketch:
    return getattr(diagrams, name)(*GIVEN.get(name, ()))


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_svg_with_words_for_those_who_do_not_see_it(name):
    sketch = drawn(name)
    picture = ElementTree.fromstring(sketch.svg())
    assert picture.get("role") == "img" and len(picture.get("aria-label")) > 30
    assert sketch.svg() in sketch._repr_html_() and sketch.says in repr(sketch)
    for part in picture.iter():
        for number in re.findall(r"-?\d+\.?\d*", " ".join(part.get(a, "") for a in "dxy")):
            assert abs(float(number)) < 700
    assert "nan" not in sketch.svg()


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_uses_the_colours_of_both_themes_alone(name):
    found = set(re.findall(r"light-dark\([^)]*\)", drawn(name).svg()))
    assert found <= {colour(each) for each in COLOURS}
    assert not re.findall(r"#[0-9a-f]{6}", re.sub(r"light-dark\([^)]*\)", "", drawn(name).svg()))


@pytest.mark.parametrize("name", [name for name in DRAWINGS if name != "target_shift"])
def test_words_can_be_read_on_a_phone(name):
    sketch = drawn(name)
    sizes = [float(size) for size in re.findall(r"([\d.]+)px", sketch.svg())]
    assert min(sizes, default=99) * min(1, PHONE / sketch.width) >= 11


def widths(svg: str, name: str) -> list[float]:
    """How wide the lines of a colour are."""
    return [
        float(wide)
        for wide in re.findall(rf"stroke:{re.escape(colour(name))};stroke-width:([\d.]+)", svg)
    ]


def test_arcs_are_as_wide_as_their_weights():
    weights = softmax([0.3, 1.4, 0.7, 0.1])
    sketch = Sketch(200, 100, "four tokens, the last reads")
    sketch.reading([20, 60, 100, 140], 80, 3, weights, whole=30)
    assert sorted(widths(sketch.svg(), "weight")) == pytest.approx(
        sorted(np.maximum(0.8, 30 * weights)), abs=0.06
    )


def test_the_mix_of_chapter_2_adds_up_to_one_whole():
    svg = drawn("queries_keys_values").svg()
    bands = sorted(wide for wide in widths(svg, "value") if wide not in (1.6, 1.8))
    expected = sorted(np.maximum(0.8, 46 * softmax([-0.4, 1.0, -0.9, 0.35]) - 0.8))
    assert bands == pytest.approx(expected, abs=0.06)


def test_the_clocks_of_chapter_5_show_one_angle():
    """RoPE turns both by their places: between q and k the angle is the same."""
    svg = drawn("clock_hands").svg()
    tips = re.findall(r"M(\d+\.\d) (\d+\.\d)L(\d+\.\d) (\d+\.\d)", svg)
    angles = [np.arctan2(float(y0) - float(y1), float(x1) - float(x0)) for x0, y0, x1, y1 in tips]
    between = [(angles[k] - angles[k + 1]) % (2 * np.pi) for k in (0, 2)]
    assert between[0] == pytest.approx(between[1], abs=0.01)


def test_an_unknown_colour_is_refused():
    with pytest.raises(KeyError):
        colour("purple")


CHAPTERS = [path for path in BOOK.glob("*.md") if re.search(r"^# \d+\. ", path.read_text(), re.M)]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_opens_with_its_question_and_a_drawing(path):
    text = path.read_text(encoding="utf-8")
    opening = text[re.search(r"^# \d+\. ", text, re.M).end() : text.index(":::{dropdown}")]
    assert re.search(r"\n\n\*[A-Z][^*]+\?\*\n\n", opening)
    (made,) = re.findall(r"^diagrams\.(\w+)\(", opening, re.M)
    assert made in DRAWINGS and ":tags: [remove-input, opening]" in opening


def test_each_chapter_has_a_drawing_of_its_own():
    made = re.findall(r"^diagrams\.(\w+)\(", "".join(p.read_text() for p in CHAPTERS), re.M)
    assert sorted(made) == sorted(DRAWINGS)
