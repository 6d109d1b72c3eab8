"""ScoreScaleLab: its draw, the formulas it holds it against, and what the division restores."""

import io

import numpy as np
import pytest
import traitlets

from attn_lib.draws import normals, uniforms
from attn_lib.labs import ScoreScaleLab
from attn_lib.labs.score_scale.figure import score_bins
from attn_lib.labs.score_scale.lab import VECTORS, WIDTHS, predicted

POINTS = (1, 4, 16, 64, 256, 512)


class TestDraw:
    def test_a_smaller_width_takes_the_first_coordinates(self):
        for vectors in VECTORS:
            wide, narrow = (ScoreScaleLab(d_k=d, vectors=vectors, seed=4) for d in (48, 6))
            np.testing.assert_array_equal(narrow.Q, wide.Q[..., :6])
            np.testing.assert_array_equal(narrow.K, wide.K[..., :6])

    def test_shapes(self):
        lab = ScoreScaleLab(d_k=5)
        assert lab.Q.shape == lab.K.shape == (128, 8, 5)
        assert lab.V.shape == lab.upstream.shape == (128, 8, 4)
        assert lab.scores.size >= 8000

    def test_coordinates_have_the_moments_they_are_said_to_have(self):
        drawn = {v: ScoreScaleLab(d_k=64, vectors=v, mu=0.5).Q for v in VECTORS[:3]}
        assert drawn["uniform"].min() > -1 and drawn["uniform"].max() < 1
        for vectors, mean, variance in (
            ("independent", 0, 1),
            ("uniform", 0, 1 / 3),
            ("shifted", 0.5, 1),
        ):
            assert drawn[vectors].mean() == pytest.approx(mean, abs=0.02)
            assert drawn[vectors].var() == pytest.approx(variance, rel=0.02)

    def test_tied_tokens_have_the_cosine_they_are_said_to_have(self):
        lab = ScoreScaleLab(d_k=512, vectors="tied-other", cosine=0.3)
        Q = lab.Q
        np.testing.assert_array_equal(Q, lab.K)
        lengths = np.linalg.norm(Q, axis=-1)
        cosines = Q @ Q.mT / (lengths[:, :, None] * lengths[:, None])
        assert cosines[:, ~np.eye(8, dtype=bool)].mean() == pytest.approx(0.3, abs=0.01)

    def test_another_seed_is_another_draw(self):
        assert not np.allclose(ScoreScaleLab(seed=1).scores, ScoreScaleLab(seed=2).scores)

    def test_upstream_directions_have_length_one(self):
        np.testing.assert_allclose(np.linalg.norm(ScoreScaleLab().upstream, axis=-1), 1)

    def test_normals_come_from_pairs_of_uniforms(self):
        u, z = uniforms(5, 2, 6), normals(5, 2, 3, 2)
        np.testing.assert_allclose(np.exp(-(z**2).sum(axis=-1) / 2), u[::2])
        many = uniforms(0, 0, 10_000)
        assert many.min() > 0 and many.max() < 1
        with pytest.raises(ValueError, match="seed must be an integer from 0"):
            uniforms(-1, 0, 3)


class TestFormula:
    @pytest.mark.parametrize(
        ("vectors", "mean", "variance"),
        [
            ("independent", 0, 16),
            ("uniform", 0, 16 / 9),
            ("shifted", 4, 24),  # 16 (1 + ¼ + ¼): mean ½ on both sides
            ("tied-self", 16, 32),
            ("tied-other", 8, 20),
        ],
    )
    def test_by_hand_at_16(self, vectors, mean, variance):
        assert predicted(vectors, 16, mu=0.5, cosine=0.5) == pytest.approx((mean, variance))

    @pytest.mark.parametrize("vectors", VECTORS)
    @pytest.mark.parametrize("d_k", [8, 40])
    def test_measured_agrees_with_predicted(self, vectors, d_k):
        """Over twenty draws: tied tokens share coordinates, so that one draw alone wanders."""
        labs = [ScoreScaleLab(d_k=d_k, vectors=vectors, mu=0.7, seed=seed) for seed in range(20)]
        for side, factor in (("unscaled", 1), ("scaled", d_k**-0.5)):
            measured = [getattr(lab, side) for lab in labs]
            mean, variance = predicted(vectors, d_k, mu=0.7)
            assert measured[0].predicted_mean == pytest.approx(mean * factor)
            assert measured[0].predicted_variance == pytest.approx(variance * factor**2)
            spread = np.sqrt(variance) * factor
            assert np.mean([m.mean for m in measured]) == pytest.approx(
                mean * factor, abs=0.05 * spread
            )
            assert np.mean([m.variance for m in measured]) == pytest.approx(
                variance * factor**2, rel=0.05
            )

    def test_zero_mean_is_needed(self):
        lab = ScoreScaleLab(d_k=64, vectors="shifted", mu=2.0)
        assert lab.unscaled.variance > 8 * 64

    def test_uncorrelated_is_not_enough(self):
        """Tied tokens of cosine 0 are independent; one with itself has twice the variance."""
        other = ScoreScaleLab(vectors="tied-other", cosine=0.0).unscaled.variance
        own = ScoreScaleLab(vectors="tied-self", cosine=0.0).unscaled.variance
        assert own / other == pytest.approx(2, rel=0.15)


class TestWhatTheDivisionRestores:
    def entropies(self, side):
        return np.array([getattr(ScoreScaleLab(d_k=d), side).entropy for d in POINTS])

    def test_scaled_entropy_is_nearly_flat(self):
        """1024 rows at each width: within 5 % of what the smallest width has."""
        entropies = self.entropies("scaled")
        np.testing.assert_allclose(entropies, entropies[0], rtol=0.05)

    def test_unscaled_entropy_falls(self):
        entropies = self.entropies("unscaled")
        assert (np.diff(entropies) < 0).all()
        assert entropies[-1] < 0.1 * entropies[0]

    def test_without_the_division_the_median_gradient_collapses_and_the_mean_does_not(self):
        near, far = (ScoreScaleLab(d_k=d).unscaled for d in (16, 512))
        assert far.median_gradient < 0.02 * near.median_gradient
        assert far.mean_gradient > near.mean_gradient
        with_it = ScoreScaleLab(d_k=512).scaled
        assert with_it.median_gradient == pytest.approx(with_it.mean_gradient, rel=0.15)

    def test_tied_maps_collapse_although_scaled(self):
        assert ScoreScaleLab(d_k=512, vectors="tied-other", cosine=0.0).scaled.entropy < 0.01

    def test_at_width_one_there_is_nothing_to_divide(self):
        lab = ScoreScaleLab(d_k=1)
        np.testing.assert_allclose(lab.scaled, lab.unscaled)


def test_the_gradient_is_that_of_the_loss():
    """‖∇_q L‖ of single queries against central differences of L = g·o."""
    for scale in (True, False):
        lab = ScoreScaleLab(d_k=3, seed=11)
        lengths = []
        for layer, query in np.ndindex(128, 8):
            K, V, g = lab.K[layer], lab.V[layer], lab.upstream[layer, query]
            factor = lab.d_k**-0.5 if scale else 1

            def loss(q, K=K, V=V, g=g, factor=factor):
                a = np.exp(factor * K @ q)
                return g @ (a / a.sum() @ V)

            q, h = lab.Q[layer, query], 1e-5 * np.eye(3)
            lengths.append(np.linalg.norm([(loss(q + e) - loss(q - e)) / 2e-5 for e in h]))
            if layer == 9:
                break
        np.testing.assert_allclose(
            lengths, _lengths(lab, None if scale else 1.0)[: len(lengths)], atol=1e-8
        )


def _lengths(lab, scale):
    """∇_q L = f Kᵀ (diag(a) − a aᵀ) V g, written out for every query."""
    factor = lab.d_k**-0.5 if scale is None else scale
    found = []
    for layer, query in np.ndindex(128, 8):
        K, V, g = lab.K[layer], lab.V[layer], lab.upstream[layer, query]
        a = np.exp(factor * K @ lab.Q[layer, query])
        a /= a.sum()
        found.append(np.linalg.norm(factor * K.T @ (np.diag(a) - np.outer(a, a)) @ V @ g))
    return found


@pytest.mark.parametrize(("side", "scale"), [("scaled", None), ("unscaled", 1.0)])
def test_median_and_mean_are_of_these_lengths(side, scale):
    lab = ScoreScaleLab(d_k=7, seed=2)
    lengths, measured = _lengths(lab, scale), getattr(lab, side)
    assert measured.median_gradient == pytest.approx(np.median(lengths))
    assert measured.mean_gradient == pytest.approx(np.mean(lengths))


class TestCurves:
    def test_pass_through_the_present_point(self):
        lab = ScoreScaleLab(d_k=100, vectors="shifted", mu=0.3, seed=5)
        raw, scaled = lab.curves
        now = list(lab.widths).index(100)
        np.testing.assert_allclose([each[now] for each in raw], lab.unscaled)
        np.testing.assert_allclose([each[now] for each in scaled], lab.scaled)
        assert set(WIDTHS) < set(lab.widths)

    def test_at_every_width_are_what_a_lab_of_that_width_measures(self):
        raw, _ = ScoreScaleLab(vectors="uniform").curves
        for d_k in (1, 32, 512):
            alone = ScoreScaleLab(d_k=d_k, vectors="uniform").unscaled
            np.testing.assert_allclose([each[WIDTHS.index(d_k)] for each in raw], alone)


class TestClass:
    @pytest.mark.parametrize(
        ("state", "message"),
        [
            ({"d_k": 0}, "d_k must be from 1 to 512, got 0"),
            ({"d_k": 513}, "d_k must be from 1 to 512, got 513"),
            ({"mu": -0.1}, "mu must be from 0.0 to 2.0, got -0.1"),
            ({"cosine": 1.5}, "cosine must be from 0.0 to 1.0, got 1.5"),
            ({"seed": 10000}, "seed must be from 0 to 9999, got 10000"),
            ({"vectors": "gaussian"}, "vectors must be one of independent, uniform, shifted"),
        ],
    )
    def test_refuses(self, state, message):
        with pytest.raises(ValueError, match=message):
            ScoreScaleLab(**state)

    def test_refuses_other_types(self):
        with pytest.raises(traitlets.TraitError):
            ScoreScaleLab(d_k="64")

    def test_says_what_it_shows(self):
        said = ScoreScaleLab().describe()
        assert "At dₖ = 64" in said and "(predicted 8)" in said and "(predicted 1)" in said

    def test_page_holds_the_state_and_a_picture(self):
        page = ScoreScaleLab(name="scale", d_k=16).to_html()
        assert 'data-lab="ScoreScaleLab" id="scale"' in page
        assert '"d_k": 16' in page and "data:image/png;base64," in page

    @pytest.mark.parametrize("vectors", VECTORS)
    def test_figure_can_be_printed(self, vectors):
        figure = ScoreScaleLab(vectors=vectors, d_k=100, cosine=1.0).figure()
        figure.savefig(io.BytesIO(), format="pdf")
        assert len(figure.axes) == 6


def test_bins_reach_four_powers_of_two_to_each_side():
    np.testing.assert_allclose(score_bins(0, 64)[[0, -1]], [-32, 32])
    np.testing.assert_allclose(score_bins(10, 65)[[0, -1]], [-54, 74])
    np.testing.assert_allclose(score_bins(0, 1 + 2**-52)[[0, -1]], [-4, 4])
    assert len(score_bins(0, 1)) == 41
    np.testing.assert_allclose(score_bins(0, 512, side=40.0)[[0, -1]], [-40, 40])
    np.testing.assert_allclose(score_bins(0, 64, side=40.0)[[0, -1]], [-32, 32])


@pytest.mark.parametrize("vectors", VECTORS)
def test_both_histograms_keep_one_axis_while_the_width_moves(vectors):
    """Else a bell that widens would be the same picture at every width."""
    spans = [
        ax.get_xlim()[1] - ax.get_xlim()[0]
        for d_k in (4, 16, 64, 512)
        for ax in ScoreScaleLab(vectors=vectors, d_k=d_k).figure().axes[:2]
    ]
    np.testing.assert_allclose(spans, spans[0])


def test_what_lies_beyond_the_axis_is_counted():
    raw, scaled = (ax.texts for ax in ScoreScaleLab(d_k=512).figure().axes[:2])
    share = np.mean(np.abs(ScoreScaleLab(d_k=512).scores) > 40)
    assert [text.get_text() for text in raw] == [f"{100 * share:.0f} % beyond"]
    assert not scaled and not ScoreScaleLab(d_k=16).figure().axes[0].texts
