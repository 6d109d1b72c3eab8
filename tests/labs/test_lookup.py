"""LookupLab in Python: its numbers, its rules, its words and its figure."""

import numpy as np
import pytest
import traitlets

from attn_lib.examples import Dictionary
from attn_lib.labs import LookupLab
from attn_lib.labs.lookup.lab import FOUND
from attn_lib.lookup import convex_hull

PAIR = Dictionary(
    ("a", "b"), np.array([[0.0, 1], [1, 0]]), np.array([[1.0, 0], [0, 1]]), ("u", "v")
)


def test_numbers_by_hand():
    """Distances² 1 and 5 to two keys: weights in the ratio e^2 at T = 1."""
    lab = LookupLab(entries=PAIR, query_x=0, query_y=2, temperature=1.0)
    np.testing.assert_allclose(lab.scores, [-0.5, -2.5])
    near = 1 / (1 + np.exp(-2))
    np.testing.assert_allclose(lab.weights, [near, 1 - near])
    np.testing.assert_allclose(lab.output, [near, 1 - near])
    np.testing.assert_allclose(
        LookupLab(entries=PAIR, kernel="dot", query_x=0.5, query_y=2).scores, [2, 0.5]
    )


def test_the_dot_product_picks_the_longest_projection_and_the_gaussian_the_nearest():
    dot, gaussian = LookupLab(kernel="dot"), LookupLab()
    assert gaussian.names[gaussian.weights.argmax()] == gaussian.nearest == "plum"
    assert dot.names[dot.weights.argmax()] == dot.longest == "moss"


@pytest.mark.parametrize("seed", range(20))
def test_keys_of_one_length_let_them_agree(seed):
    x, y = np.random.default_rng(seed).uniform(-2, 2, 2)
    labs = [LookupLab(kernel=k, one_length=True, query_x=x, query_y=y) for k in ("dot", "gaussian")]
    np.testing.assert_allclose(labs[0].weights, labs[1].weights, atol=1e-12)
    assert labs[0].nearest == labs[0].longest
    assert np.ptp(np.linalg.norm(labs[0].K, axis=1)) < 1e-12


@pytest.mark.parametrize("kernel", ["dot", "gaussian"])
def test_the_temperature_leads_from_the_mean_to_the_hard_lookup(kernel):
    hard = LookupLab(kernel=kernel, lookup="hard")
    assert sorted(hard.weights) == [0, 0, 0, 0, 0, 1]
    cold = LookupLab(kernel=kernel, temperature=0.01)
    np.testing.assert_allclose(cold.output, hard.output, atol=1e-3)
    hot = LookupLab(kernel=kernel, temperature=100.0)
    np.testing.assert_allclose(hot.output, hot.V.mean(axis=0), atol=0.02)


def test_the_output_stays_in_the_hull():
    rng = np.random.default_rng(3)
    lab = LookupLab()
    corners = lab.V[convex_hull(lab.V)]
    ahead = np.roll(corners, -1, axis=0) - corners
    for _ in range(50):
        lab.query_x, lab.query_y = rng.uniform(-2, 2, 2)
        lab.temperature = float(10 ** rng.uniform(-2, 2))
        lab.kernel = str(rng.choice(["dot", "gaussian"]))
        to = lab.output - corners
        assert (ahead[:, 0] * to[:, 1] - ahead[:, 1] * to[:, 0] > -1e-12).all()


def test_a_dictionary_finds_a_key_or_nothing():
    found = LookupLab(lookup="exact", query_x=0.6, query_y=0.75)
    np.testing.assert_array_equal(found.output, found.V[0])
    missed = LookupLab(lookup="exact", query_x=0.61, query_y=0.75)
    assert not missed.weights.any() and not missed.output.any()
    assert FOUND < 0.01  # a hundredth away is not the key


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"query_x must be from -2.0 to 2.0, got 2.5"):
        LookupLab(query_x=2.5)
    with pytest.raises(ValueError, match="lookup must be one of exact, hard, soft, got 'best'"):
        LookupLab(lookup="best")
    with pytest.raises(ValueError, match=r"temperature must be from 0.01 to 100.0, got 0"):
        LookupLab(temperature=0)
    with pytest.raises(traitlets.TraitError):
        LookupLab().entries = {}


def test_words():
    assert LookupLab().describe() == (
        "By the Gaussian kernel the query reads plum most (weight 0.66), then moss (0.26). "
        "Nearest key and longest projection differ."
    )
    assert LookupLab(lookup="hard", kernel="dot").describe() == (
        "The longest projection is moss; a hard lookup reads it alone."
    )
    assert "finds nothing" in LookupLab(lookup="exact").describe()
    assert "stands on plum" in LookupLab(lookup="exact", query_x=0.6, query_y=0.75).describe()
    assert (
        LookupLab(temperature=0.01)
        .describe()
        .startswith("By the Gaussian kernel the query reads plum most (weight 1.00).")
    )


@pytest.mark.parametrize(
    "state", [{}, {"kernel": "dot"}, {"lookup": "exact"}, {"one_length": True}]
)
def test_the_figure_shows_both_planes_and_every_name(state):
    lab = LookupLab(**state)
    left, right = lab.figure().axes
    for ax in (left, right):
        words = [text.get_text().split(" ")[0] for text in ax.texts]
        assert set(lab.names) <= set(words)
    assert ("$o$" in [text.get_text() for text in right.texts]) == bool(lab.weights.any())
    corners = right.patches[0].get_xy()
    np.testing.assert_allclose(corners[:-1], lab.V[convex_hull(lab.V)])


def test_a_query_at_the_origin_has_no_projection():
    lab = LookupLab(kernel="dot", query_x=0, query_y=0)
    np.testing.assert_allclose(lab.weights, 1 / 6)
    lab.figure().canvas.draw()


def test_entries_with_names_of_any_kind(tmp_path):
    hostile = Dictionary(("</script>", "<b>"), PAIR.K, PAIR.V, PAIR.outputs)
    page = LookupLab(entries=hostile).save(tmp_path / "lab.html").read_text(encoding="utf-8")
    assert "<b>" not in page and "\\u003c/script>" in page
