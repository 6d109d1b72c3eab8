"""attn_lib.figures: colours one can read on, and heatmaps with queries down and keys across."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from attn_lib import attention, causal_mask, figures

COLORS = json.loads((Path(figures.__file__).parent / "colors.json").read_text())
STOPS, ROLES = COLORS["maps"], COLORS["roles"]
THEMES = ("light", "dark")
MAPS = [(theme, kind) for theme in THEMES for kind in ("weights", "scores", "outputs")]

ASYMMETRIC = np.array([[0.7, 0.2, 0.1], [0.0, 0.9, 0.1]])


# Colours -----------------------------------------------------------------------


def channels(hexes: list[str]) -> np.ndarray:
    return np.array([[int(h[k : k + 2], 16) for k in (1, 3, 5)] for h in hexes])


def whole_map(theme: str, kind: str) -> np.ndarray:
    """Interpolate a map's stops to the 256 colours that a lab can draw."""
    stops = channels(STOPS[theme][kind])
    at, fine = np.linspace(0, 1, len(stops)), np.linspace(0, 1, 256)
    return np.column_stack([np.interp(fine, at, c) for c in stops.T])


def luminance(rgb: np.ndarray) -> np.ndarray:
    """Relative luminance as WCAG 2 defines it, of channels 0 … 255."""
    c = rgb / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [
        0.2126,
        0.7152,
        0.0722,
    ]


def lightness(rgb: np.ndarray) -> np.ndarray:
    """CIE L*, from 0 (black) to 100 (white)."""
    y = luminance(rgb)
    return np.where(y > (6 / 29) ** 3, 116 * np.cbrt(y) - 16, y * (29 / 3) ** 3)


@pytest.mark.parametrize(("theme", "kind"), MAPS)
def test_digits_can_be_read_on_every_colour(theme, kind):
    """Black where the luminance exceeds 0.179, else white: a contrast of 4.5 and more."""
    y = luminance(np.round(whole_map(theme, kind)))  # a screen's channels are whole numbers
    contrast = np.where(y > 0.179, (y + 0.05) / 0.05, 1.05 / (y + 0.05))
    assert contrast.min() >= 4.5
    assert (contrast >= np.maximum((y + 0.05) / 0.05, 1.05 / (y + 0.05)) - 0.1).all()


def test_luminance_is_that_of_wcag():
    for rgb in ((0, 0, 0), (1, 1, 1), (0.2, 0.4, 0.6), (0.03, 0.5, 0.04)):
        assert figures.luminance(rgb) == pytest.approx(luminance(255 * np.array(rgb)), abs=1e-12)
    yellow, purple = luminance(channels(["#fde725", "#440154"]))
    assert (yellow + 0.05) / 0.05 == pytest.approx(16.63, abs=0.01)
    assert 1.05 / (purple + 0.05) == pytest.approx(15.24, abs=0.01)


@pytest.mark.parametrize(("theme", "from_", "to"), [("light", 96, 27), ("dark", 14, 68)])
def test_weights_run_from_paper_to_ink_in_even_steps(theme, from_, to):
    L = lightness(channels(STOPS[theme]["weights"]))
    np.testing.assert_allclose(L, np.linspace(from_, to, len(L)), atol=1)
    assert (np.sign(np.diff(lightness(whole_map(theme, "weights")))) == np.sign(to - from_)).all()


@pytest.mark.parametrize("kind", ["scores", "outputs"])
@pytest.mark.parametrize("theme", THEMES)
def test_signed_maps_diverge_in_even_steps_from_a_neutral_middle(theme, kind):
    stops = channels(STOPS[theme][kind])
    L, middle = lightness(stops), len(stops) // 2
    assert len(stops) % 2 == 1
    for half in (L[: middle + 1], L[middle:]):
        np.testing.assert_allclose(np.diff(half), (half[-1] - half[0]) / middle, atol=1)
    assert np.ptp(stops[middle]) <= 11  # hardly a hue
    assert (L[:middle] < L[middle]).all() if theme == "light" else (L[:middle] > L[middle]).all()
    negative, positive = stops[0], stops[-1]
    assert negative[0] > negative[2] and positive[2] > positive[0]  # warm and cool


def test_maps_end_in_the_colours_of_their_roles():
    for theme in THEMES:
        for kind, high in (("scores", "high"), ("outputs", "output")):
            assert STOPS[theme][kind][0] == ROLES["low"][theme]
            assert STOPS[theme][kind][-1] == ROLES[high][theme]
            assert STOPS[theme][kind][6] == STOPS[theme]["weights"][0]  # nothing looks alike
    assert STOPS["light"]["weights"][-1] == ROLES["weight"]["light"]


@pytest.mark.parametrize(("theme", "paper"), [("light", "#ffffff"), ("dark", "#14171b")])
def test_roles_can_be_read_as_text(theme, paper):
    (ground,) = luminance(channels([paper]))
    for role, both in ROLES.items():
        (y,) = luminance(channels([both[theme]]))
        contrast = (max(y, ground) + 0.05) / (min(y, ground) + 0.05)
        assert contrast >= (2.5 if role == "low" else 4.5), (role, contrast)  # low is a fill only


def test_each_role_has_a_dark_colour():
    for role, light in figures.ROLES.items():
        assert figures.DARK[light] == ROLES[role]["dark"]


def test_matplotlib_uses_the_labs_light_maps():
    for kind, cmap in figures.KINDS.items():
        drawn = cmap(np.linspace(0, 1, 256))[:, :3] * 255
        np.testing.assert_allclose(drawn, whole_map("light", kind), atol=1.5)


# Heatmaps ------------------------------------------------------------------------


@pytest.fixture
def ax():
    return Figure().add_subplot()


def texts(ax) -> dict:
    return {text.get_position(): text.get_text() for text in ax.texts}


def test_rows_are_queries_and_columns_are_keys(ax):
    image = figures.heatmap(ax, ASYMMETRIC, rows=["q1", "q2"], cols=["k1", "k2", "k3"])
    np.testing.assert_array_equal(image.get_array(), ASYMMETRIC)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["q1", "q2"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["k1", "k2", "k3"]
    assert ax.yaxis_inverted() and not ax.xaxis_inverted()  # the first query stands on top
    assert texts(ax)[1, 0] == ".20" and texts(ax)[0, 1] == "0"


def test_a_window_of_a_rectangular_map_keeps_its_labels(ax):
    """290 output queries over 850 tokens: row i is token 560 + i."""
    M = np.zeros((290, 850))
    M[7, 567] = 1
    figures.heatmap(ax, M, rows=[str(560 + i) for i in range(290)], cols=[*map(str, range(850))])
    assert ax.get_yticklabels()[7].get_text() == ax.get_xticklabels()[567].get_text() == "567"
    assert not ax.texts


def test_the_upper_triangle_is_drawn_and_a_forbidden_cell_is_hatched(ax):
    M = np.array([[0.1, 0.9], [0.5, 0.5]])
    image = figures.heatmap(ax, M)
    assert image.get_array()[0, 1] == 0.9 and not ax.patches
    masked = np.where(causal_mask(3), 1.0, -np.inf)
    other = Figure().add_subplot()
    image = figures.heatmap(other, masked, kind="scores")
    assert {patch.get_xy() for patch in other.patches} == {(0.5, -0.5), (1.5, -0.5), (1.5, 0.5)}
    assert all(patch.get_hatch() for patch in other.patches)
    np.testing.assert_array_equal(image.get_array().mask, ~causal_mask(3))
    assert (0, 0) in texts(other) and (1, 0) not in texts(other)


def test_weights_keep_their_scale_and_scores_are_centred(ax):
    flat = figures.heatmap(ax, np.full((4, 4), 0.25))
    assert (flat.norm.vmin, flat.norm.vmax) == (0, 1)
    np.testing.assert_allclose(flat.cmap(flat.norm(0.25)), figures.weights_cmap(0.25))
    for S, limit in (([[0.0, 0.0]], 1), ([[-5.0, 3.0]], 8), ([[0.3, -np.inf]], 0.5), ([[4.0]], 4)):
        image = figures.heatmap(Figure().add_subplot(), np.array(S), kind="scores")
        assert (image.norm.vmin, image.norm.vmax) == (-limit, limit)
    given = figures.heatmap(Figure().add_subplot(), np.eye(2), kind="scores", limit=3)
    assert given.norm.vmax == 3


def test_ink_follows_the_colour_beneath(ax):
    figures.heatmap(ax, np.array([[0.0, 1.0]]))
    assert [text.get_color() for text in ax.texts] == ["black", "white"]


@pytest.mark.parametrize(("n", "numbers", "drawn"), [(12, None, 144), (13, None, 0), (13, True, 169), (3, False, 0)])  # fmt: skip # noqa: E501
def test_numbers_stand_in_cells_up_to_twelve(ax, n, numbers, drawn):
    figures.heatmap(ax, np.full((n, n), 0.5), numbers=numbers)
    assert len(ax.texts) == drawn


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (0.42, 2, ".42"),
        (-0.3, 1, "−.3"),
        (0.004, 2, "0"),
        (-0.004, 2, "0"),
        (1, 2, "1.0"),
        (0.996, 2, "1.0"),
        (12.3, 2, "12"),
        (-9.96, 1, "−10"),
        (0.125, 2, ".13"),
    ],
)
def test_a_number_is_as_short_as_a_cell_needs(value, digits, shown):
    assert figures.in_cell(value, digits) == shown


def test_words_from_anywhere_are_drawn_as_they_are():
    """A dollar sign is no formula, and half a formula is no error."""
    words = [r"$\frac{$", "$$", "$5 or $6", "a$b"]
    fig = figures.attention_figure(layer(), tokens=words, outputs=["$", "$x$", "y"])
    fig.draw_without_rendering()
    for ax in fig.axes[:2]:
        assert not any(
            label._preprocess_math(label.get_text())[1] for label in ax.get_xticklabels()
        )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"M": np.zeros(3)}, r"matrix \(n, m\), got shape \(3,\)"),
        ({"M": np.zeros((2, 2, 2))}, r"got shape \(2, 2, 2\)"),
        ({"kind": "heat"}, "kind must be one of weights, scores, outputs, got 'heat'"),
        ({"rows": ["a"]}, "rows must name all 2, got 1 labels"),
        ({"cols": ["a", "b", "c", "d"]}, "cols must name all 3, got 4 labels"),
    ],
)
def test_what_cannot_be_drawn_is_named(ax, arguments, said):
    with pytest.raises(ValueError, match=said):
        figures.heatmap(ax, **{"M": ASYMMETRIC, **arguments})


# A whole layer -----------------------------------------------------------------------


def layer(mask=None):
    rng = np.random.default_rng(3)
    Q, K, V = rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), rng.normal(size=(4, 3))
    return attention(Q, K, V, mask=mask)


def test_a_layer_reads_from_left_to_right():
    result = layer()
    fig = figures.attention_figure(result, tokens=list("abcd"), query=2, outputs=list("xyz"))
    panels = fig.axes[:3]
    for ax, M in zip(panels, (result.scores, result.weights, result.output), strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), M)
        frame = ax.patches[-1]
        assert (frame.get_xy(), frame.get_width()) == ((-0.5, 1.5), M.shape[1])
    titles = [ax.get_title(loc="left") or ax.get_title() for ax in panels]
    assert [title.split()[0] for title in titles] == ["Scores", "Weights", "Outputs"]
    assert panels[0].get_ylabel() == "query"
    assert [ax.get_xlabel() for ax in panels] == ["key", "key", ""]
    assert panels[0].get_yticklabels()[2].get_color() == figures.QUERY
    assert [label.get_text() for label in panels[2].get_xticklabels()] == list("xyz")


def test_a_masked_layer_is_hatched_in_its_scores_alone():
    fig = figures.attention_figure(layer(causal_mask(4)), tokens=list("abcd"))
    assert [len(ax.patches) for ax in fig.axes[:3]] == [6, 0, 0]


def test_a_figure_is_drawn_alike_twice_and_leaves_matplotlib_as_it_was(tmp_path):
    before = dict(mpl.rcParams)
    for k in range(2):
        fig = figures.attention_figure(layer(), tokens=list("abcd"), query=0)
        fig.savefig(tmp_path / f"{k}.png", metadata={"Software": None})
    assert (tmp_path / "0.png").read_bytes() == (tmp_path / "1.png").read_bytes()
    assert dict(mpl.rcParams) == before
    with figures.style():
        assert mpl.rcParams["axes.spines.top"] is False


def test_drawing_keeps_no_figure_alive():
    from matplotlib import pyplot

    figures.attention_figure(layer(), tokens=list("abcd"))
    assert pyplot.get_fignums() == []
