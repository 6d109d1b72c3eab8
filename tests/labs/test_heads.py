"""HeadsLab in Python: its heads, how they are joined, what their mean hides, its words."""

import json

import numpy as np
import pytest

from attn_lib import self_attention
from attn_lib.labs import HeadsLab

DIVISORS = {h: [g for g in range(1, h + 1) if h % g == 0] for h in (1, 2, 3, 4, 6, 12)}
SPLITS = [(h, g) for h, groups in DIVISORS.items() for g in groups]


def head_by_head(lab):
    """One layer of attention per head, nothing reshaped, each with its own columns and rows."""
    maps, width = lab.maps, lab.d_k
    part = lambda W, k: W[:, k * width : (k + 1) * width]  # noqa: E731
    results = []
    for r in range(lab.heads):
        g = r * lab.groups // lab.heads
        results.append(
            self_attention(lab.X, part(maps["W_Q"], r), part(maps["W_K"], g), part(maps["W_V"], g))
        )
    rows = [maps["W_O"][r * width : (r + 1) * width] for r in range(lab.heads)]
    return results, sum(result.output @ W for result, W in zip(results, rows, strict=True))


class TestNumbers:
    @pytest.mark.parametrize(("heads", "kv_heads"), SPLITS)
    def test_against_one_layer_per_head(self, heads, kv_heads):
        lab = HeadsLab(heads=heads, kv_heads=kv_heads, seed=heads)
        results, output = head_by_head(lab)
        np.testing.assert_allclose(lab.weights, [r.weights for r in results], atol=1e-12)
        np.testing.assert_allclose(
            lab.concatenated, np.hstack([r.output for r in results]), atol=1e-12
        )
        np.testing.assert_allclose(lab.output, output, atol=1e-12)
        np.testing.assert_allclose(lab.contributions.sum(axis=0), output, atol=1e-12)
        assert lab.difference < 1e-13

    @pytest.mark.parametrize(("heads", "kv_heads"), SPLITS)
    def test_parameters_are_the_entries_of_the_maps(self, heads, kv_heads):
        lab = HeadsLab(heads=heads, kv_heads=kv_heads)
        sizes = {name: W.size for name, W in lab.maps.items()}
        assert lab.parameters == sizes | {"total": sum(sizes.values())}

    def test_parameters_do_not_grow_with_the_heads(self):
        assert {HeadsLab(heads=h).parameters["total"] for h in DIVISORS} == {4 * 12**2}
        shared = [HeadsLab(heads=12, kv_heads=g).parameters["total"] for g in DIVISORS[12]]
        assert shared == [312, 336, 360, 384, 432, 576]  # 288 for W_Q and W_O, 24 a key head

    def test_fewer_key_heads_are_the_first_of_more(self):
        every, shared = HeadsLab(heads=4), HeadsLab(heads=4, kv_heads=2)
        for name, width in (("W_Q", 12), ("W_K", 6), ("W_V", 6), ("W_O", 12)):
            assert (shared.maps[name] == every.maps[name][:, :width]).all()
        np.testing.assert_array_equal(shared.weights[0], every.weights[0])
        assert np.abs(shared.weights[1] - every.weights[1]).max() > 0.01

    def test_scores_have_variance_near_one(self):
        """Over 200 draws: the model of chapter 3, whatever the width of a head."""
        for heads in (1, 4, 12):
            lab, scores = HeadsLab(heads=heads), []
            for lab.seed in range(200):
                scores.append(lab.result.scores)
            assert abs(np.mean(np.square(scores)) - 1) < 0.15


class TestTheMeanOverHeads:
    def test_two_one_hot_heads_average_to_a_half(self):
        """Field case T06: rows are queries, and the mean is nobody's picture."""
        lab = HeadsLab(scene="roles")
        first, second = lab.weights.round(3)
        assert first.tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]  # not its own transpose
        assert second.tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0]]
        assert lab.mean_weights.round(3)[1].tolist() == [0.5, 0, 0.5]
        np.testing.assert_allclose(lab.entropies, [0, 1], atol=0.001)

    def test_it_is_never_sharper_than_the_heads(self):
        """Entropy is concave."""
        for seed in range(20):
            own, blurred = HeadsLab(heads=6, seed=seed).entropies
            assert own < blurred


class TestRoles:
    """CORRECTNESS 36: one head at ½, ½ carries both values and loses which is which."""

    def test_one_head_carries_both_words_and_not_their_roles(self):
        lab = HeadsLab(scene="roles", heads=1)
        assert lab.weights[0, 1].round(3).tolist() == [0.5, 0, 0.5]
        words = dict(zip(lab.outputs[:3], lab.output[1], strict=False))
        assert words == pytest.approx({"dog": 0.5, "man": 0.5, "bites": 0}, abs=0.001)
        swapped = HeadsLab(scene="roles", heads=1, swapped=True)
        assert swapped.tokens == ["man", "bites", "dog"]
        np.testing.assert_allclose(swapped.output[1], lab.output[1], atol=1e-15)
        assert lab.swap_effect < 1e-15

    @pytest.mark.parametrize("kv_heads", [1, 2])
    def test_two_heads_keep_them(self, kv_heads):
        lab = HeadsLab(scene="roles", kv_heads=kv_heads)
        said = lambda lab: {  # noqa: E731
            name for name, value in zip(lab.outputs, lab.output[1], strict=True) if value > 0.99
        }
        assert said(lab) == {"who: dog", "whom: man"}
        lab.swapped = True
        assert said(lab) == {"who: man", "whom: dog"}
        assert lab.swap_effect == pytest.approx(2, abs=0.001)  # four entries change by one

    @pytest.mark.parametrize(
        "lab", [HeadsLab(), *(HeadsLab(scene="roles", heads=h) for h in (1, 2))]
    )
    def test_each_column_of_the_output_has_a_name_of_its_own(self, lab):
        """Columns of one name are drawn on top of each other."""
        assert len(set(lab.outputs)) == lab.output.shape[1]

    def test_random_vectors_have_no_nouns(self):
        assert HeadsLab().swap_effect is None


class TestState:
    def test_what_it_begins_with(self):
        lab = HeadsLab()
        assert (lab.scene, lab.heads, lab.kv_heads, lab.head, lab.query) == (
            "random",
            4,
            None,
            1,
            2,
        )
        roles = HeadsLab(scene="roles")
        assert (roles.heads, roles.head, roles.query) == (2, 0, 1)
        assert HeadsLab(heads=1).head == 0

    def test_what_does_not_fit_more_or_fewer_heads_is_let_go(self):
        lab = HeadsLab(heads=12, kv_heads=4, head=11)
        lab.heads = 4
        assert (lab.kv_heads, lab.head) == (4, 3)
        lab.heads = 6
        assert (lab.kv_heads, lab.groups, lab.head) == (None, 6, 3)

    def test_a_scene_keeps_what_fits_it(self):
        lab = HeadsLab(heads=6, head=5, query=3)
        lab.scene = "roles"
        assert (lab.heads, lab.head, lab.query) == (2, 1, 1)
        lab.scene = "random"
        assert (lab.heads, lab.query) == (2, 1)

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ({"heads": 5}, r"heads must divide the width d = 12: 1, 2, 3, 4, 6 or 12, got 5"),
            ({"heads": 0}, "got 0"),
            (
                {"scene": "roles", "heads": 3},
                "heads must be those that scene 'roles' is built for: 1 or 2, got 3",
            ),
            ({"heads": 6, "kv_heads": 4}, "kv_heads must divide heads = 6, got 4"),
            ({"kv_heads": 0}, "kv_heads must divide heads = 4, got 0"),
            ({"head": 4}, "head must be from 0 to 3, got 4"),
            ({"query": 4}, "query must be from 0 to 3, got 4"),
            ({"scene": "chef"}, "scene must be one of random, roles, got 'chef'"),
            ({"seed": -1}, "seed must be from 0 to 9999, got -1"),
        ],
    )
    def test_what_is_refused(self, bad, message):
        with pytest.raises(ValueError, match=message):
            HeadsLab(**bad)

    def test_the_front_end_gets_plain_json(self):
        data = json.loads(json.dumps(HeadsLab(scene="roles").data(), allow_nan=False))
        assert {key: data[key] for key in ("kind", "heads", "kv_heads", "swapped")} == {
            "kind": "HeadsLab",
            "heads": 2,
            "kv_heads": None,
            "swapped": False,
        }


def test_words():
    assert HeadsLab(scene="roles").describe() == (
        "In head 1 of 2, bites reads dog most (weight 1.00); averaged over the heads that weight "
        "is 0.50. 144 parameters = 4 · 6². Exchange the two nouns, and the output of bites moves "
        "by 2.00."
    )
    assert (
        HeadsLab(scene="roles", heads=1).describe().endswith("the output of bites moves by 0.00.")
    )
    assert "336 parameters." in HeadsLab(heads=6, kv_heads=1).describe()


@pytest.mark.parametrize(("heads", "panels"), [(1, 2), (4, 5), (6, 7), (12, 13)])
def test_a_figure_with_every_head_their_mean_and_the_joining(heads, panels):
    figure = HeadsLab(heads=heads, head=0).figure()
    shown = [ax for ax in figure.axes if ax.axison]
    titles = [ax.get_title(loc="left") for ax in shown]
    assert titles[:panels] == [*(f"Head {r + 1}" for r in range(heads)), "Mean"]
    assert len(shown) == panels + 3
    weights = shown[0].images[0].get_array()
    np.testing.assert_array_equal(weights, HeadsLab(heads=heads).weights[0])
