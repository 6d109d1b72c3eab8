"""Edges of a model: weight, what they carry, what their loss changes; rank correlation."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from attn_lib.interventions import (
    cut_edge,
    edge_effects,
    edge_norms,
    edge_weights,
    intervention,
    log_probability,
    mean_ranks,
    spearman,
    spearman_ceiling,
    zero_heads,
)
from attn_lib.model import Config, cross_entropy, init_params, transformer
from attn_lib.training import every_period, load_checkpoints

DATA = Path(__file__).parents[1] / "book" / "data"
CONFIG = Config(vocabulary=7, context=6, d=8, layers=2, heads=2, d_k=3, norm="none")
TOKENS = np.array([3, 1, 6, 0, 2])


@pytest.fixture(scope="module")
def small():
    return init_params(CONFIG, seed=4, dtype=np.float64)


def test_weights_are_those_of_the_heads_and_nan_where_nobody_may_look(small):
    result = transformer(small, TOKENS, CONFIG)
    weights = edge_weights(result)
    assert weights.shape == (2, 2, 5, 5)
    future = np.triu(np.ones((5, 5), bool), 1)
    assert np.isnan(weights[..., future]).all()
    assert np.array_equal(weights[..., ~future], np.array(result.weights)[..., ~future])


def test_a_norm_is_the_length_of_what_one_edge_adds(small):
    result = transformer(small, TOKENS, CONFIG)
    norms = edge_norms(small, result)
    for layer, head, i, j in [(0, 0, 3, 1), (0, 1, 4, 4), (1, 1, 2, 0)]:
        attention = result.blocks[layer].attention
        v = attention.V[head, j] @ small[f"{layer}.W_O"][3 * head : 3 * head + 3]
        wanted = np.linalg.norm(attention.weights[head, i, j] * v)
        assert norms[layer, head, i, j] == pytest.approx(wanted, abs=1e-14)
    assert np.isnan(norms[0, 0, 0, 1])


def test_an_intervention_joins_cuts_and_silent_heads(small):
    edit = intervention([(0, 1, 4, 2), (0, 1, 4, 0)], [(1, 0)])
    plain = transformer(small, TOKENS, CONFIG).weights
    first, second = transformer(small, TOKENS, CONFIG, edit=edit).weights
    assert np.array_equal(first[0], plain[0][0]) and np.array_equal(first[1, :4], plain[0][1, :4])
    assert first[1, 4, [0, 2]].tolist() == [0, 0]
    assert np.array_equal(first[1, 4, [1, 3, 4]], plain[0][1, 4, [1, 3, 4]])
    assert not second[0].any() and second[1].any()


class TestOutOfRange:
    """An experiment on what is not there has no effect, which would be read as a finding."""

    config = Config(vocabulary=7, context=6, d=8, heads=2, d_k=3, norm="none")

    @pytest.mark.parametrize(
        ("edit", "words"),
        [
            (zero_heads(7), "edit is for layer 7, counted from 0: the model has 1"),
            (zero_heads(1), "edit is for layer 1, counted from 0: the model has 1"),
            (zero_heads(0, [0, 2]), "head must be from 0 to 1, got 2"),
            (zero_heads(0, [-1]), "head must be from 0 to 1, got -1"),
            (cut_edge(7, 0, 0, 0), "edit is for layer 7"),
            (cut_edge(0, 2, 0, 0), "head must be from 0 to 1, got 2"),
            (cut_edge(0, -1, 0, 0), "head must be from 0 to 1, got -1"),
            (cut_edge(0, 0, 5, 0), "query must be from 0 to 4, got 5"),
            (cut_edge(0, 0, -1, 0), "query must be from 0 to 4, got -1"),
            (cut_edge(0, 0, 4, 5), "key must be from 0 to 4, got 5"),
            (cut_edge(0, 0, 4, -2), "key must be from 0 to 4, got -2"),
            (cut_edge(0, 0, 4, 1.0), r"key must be a whole number, got 1\.0"),
            (intervention([(0, 0, 1, 0), (3, 0, 1, 0)]), "edit is for layer 3"),
            (intervention(zero=[(0, 0), (1, 0)]), "edit is for layer 1"),
            (intervention([(0, 5, 1, 0)]), "head must be from 0 to 1, got 5"),
        ],
    )
    def test_is_refused_when_the_model_runs(self, edit, words):
        params = init_params(self.config, seed=0, dtype=np.float64)
        with pytest.raises(ValueError, match=f"^{words}"):
            transformer(params, TOKENS, self.config, edit=edit)

    @pytest.mark.parametrize("layer", [-1, 0.0, True, None])
    def test_a_layer_is_a_whole_number_from_0(self, layer):
        for make in (zero_heads, lambda layer: cut_edge(layer, 0, 0, 0)):
            with pytest.raises(
                ValueError, match=rf"^layer must be a whole number ≥ 0, got {layer}"
            ):
                make(layer)

    def test_an_edit_says_which_layers_it_is_for_and_leaves_others_and_the_weights_alone(self):
        A = np.full((2, 3, 3), 1 / 3)
        for edit in (zero_heads(1), cut_edge(1, 0, 0, 0), intervention([(1, 0, 0, 0)])):
            assert edit.layers == (1,)
            assert edit(0, A) is A
            assert (edit(1, A) != A).any()
        assert (A == 1 / 3).all()
        assert intervention([(2, 0, 1, 0)], [(0, 1)]).layers == (2, 0)


def test_cuts_in_one_row_renormalise_as_one_mask_would(small):
    edit = intervention([(0, 1, 4, 2), (0, 1, 4, 0)], renormalise=True)
    row = transformer(small, TOKENS, CONFIG).weights[0][1, 4] * [0, 1, 0, 1, 1]
    found = transformer(small, TOKENS, CONFIG, edit=edit).weights[0][1, 4]
    assert np.allclose(found, row / row.sum(), atol=1e-15)


def test_a_log_probability_is_the_negative_loss_of_that_answer(small):
    logits = transformer(small, TOKENS, CONFIG).logits
    for query, target in ((-1, 2), (1, 6)):
        wanted = -cross_entropy(logits[[query]], np.array([target]))
        found = log_probability(small, TOKENS, CONFIG, target=target, query=query)
        assert found == pytest.approx(wanted, abs=1e-14)


@pytest.mark.parametrize("renormalise", [False, True])
def test_an_effect_is_the_log_probability_that_a_cut_takes(small, renormalise):
    before = {"cut": [(0, 0, 3, 1)], "zero": [(1, 0)]}
    options = {"target": 2, "query": 3}
    effects = edge_effects(
        small, TOKENS, CONFIG, **options, renormalise=renormalise, cut=before["cut"], zero=[(1, 0)]
    )
    after = [
        log_probability(
            small,
            TOKENS,
            CONFIG,
            **options,
            edit=intervention([*before["cut"], *more], [(1, 0)], renormalise=renormalise),
        )
        for more in ([], [(0, 1, 3, 0)])
    ]
    assert effects[0, 1, 3, 0] == pytest.approx(after[0] - after[1], abs=1e-14)
    assert abs(effects[0, 1, 3, 0]) > 1e-6
    assert effects[0, 0, 3, 1] == 0, "it was cut before"
    assert not np.nan_to_num(effects[1, 0]).any(), "a silent head has nothing to lose"
    assert np.isnan(effects[0, 0, 0, 1])


def test_no_edge_after_the_query_or_beside_it_in_the_last_layer_has_an_effect(small):
    effects = edge_effects(small, TOKENS, CONFIG, target=2, query=3)
    assert not np.nan_to_num(effects[1][:, [0, 1, 2, 4]]).any()
    assert not np.nan_to_num(effects[0][:, 4]).any()
    assert np.abs(effects[1][:, 3, :4]).min() > 0


def test_two_edges_of_weight_one_and_only_one_of_them_matters():
    stored = load_checkpoints(DATA / "induction.npz")
    batch = every_period("induction", [12])[0]
    tokens, target = batch.tokens[0], batch.targets[0, -1]
    result = transformer(stored.final, tokens, stored.recipe.config)
    effects = edge_effects(stored.final, tokens, stored.recipe.config, target=target)
    used, unused = (0, 0, 11, 10), (0, 0, 6, 5)
    assert min(edge_weights(result)[used], edge_weights(result)[unused]) > 0.9
    assert effects[used] > 5 and abs(effects[unused]) < 1e-3


def test_equal_numbers_share_the_mean_of_their_ranks():
    assert mean_ranks([10, 30, 20, 30, 30]).tolist() == [1, 4, 2, 4, 4]


def test_rank_correlation_worked_by_hand():
    # ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4; less their mean: −1.5, 0, 0, 1.5 and −1.5, .5, −.5, 1.5
    assert spearman([1, 2, 2, 3], [5, 7, 6, 8]) == pytest.approx(4.5 / np.sqrt(4.5 * 5))


def test_rank_correlation_sees_order_alone():
    x = np.random.default_rng(0).normal(size=30)
    assert spearman(x, np.exp(x)) == pytest.approx(1)
    assert spearman(x, -(x**3)) == pytest.approx(-1)


def test_rank_correlation_leaves_out_pairs_that_are_not_there():
    assert spearman([1, 2, np.nan, 3], [1, 2, -9, 3]) == pytest.approx(1)
    assert np.isnan(spearman([1, 2, 3], [4, 4, 4]))
    assert np.isnan(spearman([np.nan], [4]))


def test_rank_correlation_can_take_rounding_errors_for_equal():
    x, y = [1, 2, 3, 4], [0, 3e-17, -2e-17, 5]
    assert spearman(x, y) == pytest.approx(0.4)
    assert spearman(x, y, decimals=9) == pytest.approx(spearman(x, [0, 0, 0, 5]))


def test_rank_correlation_needs_pairs():
    with pytest.raises(ValueError, match=r"must have the same axes: got x \(2,\), y \(3,\)"):
        spearman([1, 2], [1, 2, 3])


def test_no_order_has_a_larger_rank_correlation_than_the_ceiling():
    x, y = [3, 1, 4, 1, 5], [0, 2, 0, 0, 7]
    every = [spearman(x, list(order)) for order in permutations(y)]
    assert spearman_ceiling(x, y) == pytest.approx(max(every)) and max(every) < 0.99


def test_without_ties_the_ceiling_is_one():
    assert spearman_ceiling([3, 1, 2, np.nan], [9, 7, 8, 1]) == pytest.approx(1)
    assert spearman_ceiling([1, 2, 3, 4], [0, 3e-17, -2e-17, 5], decimals=9) < 0.9
    assert np.isnan(spearman_ceiling([1, 2], [4, 4]))
