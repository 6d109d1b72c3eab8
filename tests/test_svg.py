"""attn_lib.svg: figures drawn into a page."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attn_lib import figures
from attn_lib.figures import DARK, luminance
from attn_lib.svg import narrowed, on_dark, page_figure


@pytest.fixture
def draw():
    """Return a function that makes a figure of so many panels, in the book's style."""
    made = []

    def draw_(rows=1, columns=1, size=(7.2, 2.4), **options):
        with figures.style():
            figure, panels = plt.subplots(rows, columns, figsize=size, squeeze=False, **options)
        made.append(figure)
        return figure, panels.ravel()

    yield draw_
    for figure in made:
        plt.close(figure)


def wide(drawn):
    """The drawing for a wide screen."""
    return drawn[drawn.index("<svg") : drawn.index("</svg>")]


def test_words_stay_words_in_the_font_of_the_page(draw):
    figure, [ax] = draw()
    ax.set_xlabel("training step")
    drawn = wide(page_figure(figure))
    assert ">training step</text>" in drawn
    assert "var(--figure-font" in drawn and "DejaVu" not in drawn


def test_formulas_are_outlines(draw):
    figure, [ax] = draw()
    ax.set_xlabel("width $d_k$")
    drawn = page_figure(figure)
    assert "d_k" not in re.sub("<!--.*?-->", "", drawn) and drawn.count("<use") > 5


def test_nothing_is_said_twice_in_a_page(draw):
    pages = ""
    for k in range(2):
        figure, [ax] = draw()
        ax.plot(np.arange(9.0) ** k, "o-")
        pages += page_figure(figure)
    ids = re.findall(r' id="([^"]+)"', pages)
    assert ids and len(set(ids)) == len(ids)
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', pages))
    assert {name for pair in used for name in pair if name} == set(ids)
    assert "<style" not in pages and "<?xml" not in pages and "<metadata" not in pages


def test_colours_of_both_themes_stand_in_one_drawing(draw):
    figure, [ax] = draw()
    ax.plot([0, 1], color=figures.ACCENT)
    drawn = page_figure(figure)
    assert f"light-dark({figures.ACCENT},{DARK[figures.ACCENT]})" in drawn
    assert "#fff" not in drawn.replace("#ffffff,", "")  # no white paper


def test_a_map_of_values_is_there_for_each_theme_and_its_digits_can_be_read(draw):
    figure, [ax] = draw(size=(3, 3))
    figures.heatmap(ax, np.array([[0.0, 1.0]]))
    drawn = wide(page_figure(figure))
    assert drawn.count('<image class="attn-light"') == drawn.count('<image class="attn-dark"') == 1
    digits = dict(re.findall(r"fill: (light-dark\([^)]*\))[^>]*>(0|1\.0)</text>", drawn))
    assert set(digits) == {"light-dark(#020202,#fdfdfd)", "light-dark(#fdfdfd,#020202)"}


def test_the_figure_stays_as_it_is_and_pyplot_shows_no_copy(draw):
    figure, [ax] = draw(1, 3)[0], draw(1, 3)[1][:1]
    before = figure.get_size_inches().tolist(), plt.get_fignums()
    first, again = page_figure(figure), page_figure(figure)
    assert first == again
    assert (figure.get_size_inches().tolist(), plt.get_fignums()) == before
    assert ax.patch.get_visible()


def test_words_for_those_who_do_not_see_it_are_escaped(draw):
    drawn = page_figure(draw()[0], 'a "line" & more')
    assert drawn.count('role="img" aria-label="a &quot;line&quot; &amp; more"') == 2


# On a phone


@pytest.mark.parametrize(
    ("columns", "fit"), [(1, 1), (2, 1), (3, 1), (4, 2), (5, 3), (6, 3), (12, 12)]
)
def test_panels_go_below_one_another_as_they_must(draw, columns, fit):
    figure, panels = draw(1, columns, size=(7.2, 6))
    for ax in panels:
        ax.set(xticks=[], yticks=[])
    panels[0].set_ylabel("query")
    phone = narrowed(figure)
    assert phone.get_size_inches()[0] == 3.5
    grid = phone.axes[0].get_subplotspec().get_gridspec()
    assert (grid.ncols, grid.nrows) == (fit, -(-columns // fit))
    assert [ax.get_ylabel() for ax in phone.axes[::fit]] == ["query"] * grid.nrows


def test_a_narrow_figure_is_not_laid_out_again(draw):
    figure, _ = draw(1, 2, size=(3.2, 2))
    assert narrowed(figure).get_size_inches().tolist() == [3.2, 2]


def test_a_legend_beside_the_axes_goes_below(draw):
    figure, [ax] = draw()
    ax.plot([0, 1], label="one")
    ax.plot([1, 0], label="two")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    phone = narrowed(figure)
    assert phone.axes[0].get_legend() is None
    assert [word.get_text() for word in phone.legends[0].get_texts()] == ["one", "two"]
    assert phone.get_size_inches()[1] > 2.4


def test_words_that_would_stand_on_one_another_are_turned(draw):
    figure, [ax] = draw()
    ax.set_xticks(range(6), [f"encoding {k}" for k in range(6)])
    phone = narrowed(figure)
    phone.draw_without_rendering()
    assert {word.get_rotation() for word in phone.axes[0].get_xticklabels()} == {90}


# Colours on dark paper


@pytest.mark.parametrize("colour", ["#440154", "#31688e", "#00008b", "#7f7f7f", "#333333"])
def test_any_colour_is_made_to_read_on_dark_paper(colour):
    made = on_dark(colour)
    channels = [int(made[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    paper = [int(DARK["#ffffff"][k : k + 2], 16) / 255 for k in (1, 3, 5)]
    assert (luminance(channels) + 0.05) / (luminance(paper) + 0.05) >= 3.5


@pytest.mark.parametrize(("colour", "made"), [("#ffffff", "#121417"), ("#1b1f24", "#dfe3e8")])
def test_paper_and_ink_change_places(colour, made):
    assert on_dark(colour) == made
