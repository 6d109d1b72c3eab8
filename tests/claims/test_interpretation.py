"""What the chapter on reading weights says of its experiments, measured here on other draws."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attn_lib import softmax
from attn_lib.interventions import (
    cut_edge,
    edge_effects,
    edge_norms,
    edge_weights,
    intervention,
    spearman,
    zero_heads,
)
from attn_lib.minilm import read_export
from attn_lib.model import transformer
from attn_lib.proofs import cut_key, other_weights
from attn_lib.training import every_period, induction_batch, load_checkpoints, score

DATA = Path(__file__).parents[2] / "book" / "data"


def repeats(period, size):
    rng = np.random.default_rng([9, period])
    return induction_batch(rng, size=size, vocabulary=64, shortest=period, longest=period)


@pytest.fixture(scope="module")
def one():
    saved = load_checkpoints(DATA / "induction.npz")
    return {name: W.astype(float) for name, W in saved.final.items()}, saved.recipe


@pytest.fixture(scope="module")
def two():
    saved = load_checkpoints(DATA / "induction-two-heads.npz")
    return saved.final, saved.recipe


def log_p(model, batch, edit=None):
    params, recipe = model
    logits = transformer(params, batch.tokens, recipe.config, edit=edit).logits[:, -1]
    logits = logits - logits.max(axis=-1, keepdims=True)
    right = np.take_along_axis(logits, batch.targets[:, -1:], axis=-1)[:, 0]
    return right - np.log(np.exp(logits).sum(axis=-1))


def effect(model, batch, edit):
    return log_p(model, batch) - log_p(model, batch, edit)


class TestTwoEdges:
    @pytest.mark.parametrize("period", [6, 8, 12])
    def test_same_weight_other_effect(self, one, period):
        batch = repeats(period, 60)
        A = transformer(one[0], batch.tokens, one[1].config).weights[0][:, 0]
        for i in (period - 1, period - 2):
            assert np.quantile(A[:, i, i - 1], 0.1) > 0.98
        needed = effect(one, batch, cut_edge(0, 0, period - 1, period - 2))
        idle = effect(one, batch, cut_edge(0, 0, period - 2, period - 3))
        assert 10 < np.median(needed) < 20 and np.mean(needed > 1) > 0.9
        assert np.abs(idle).max() < 0.01

    def test_the_effect_goes_through_where_the_next_layer_looks(self, one):
        batch = repeats(6, 60)
        usual = transformer(one[0], batch.tokens, one[1].config).weights[1]
        cut = cut_edge(0, 0, 5, 4)
        held = effect(one, batch, lambda layer, A: usual if layer else cut(layer, A))
        assert np.abs(held).max() < 0.2 < 5 < np.median(effect(one, batch, cut))

    def test_the_exceptions_find_their_key_without_the_mark(self, one):
        batch = repeats(4, 200)
        cut = cut_edge(0, 0, 3, 2)
        cost = effect(one, batch, cut)
        seen = transformer(one[0], batch.tokens, one[1].config, edit=cut).weights[1][:, 0, -1, 3]
        assert (cost < 0.1).any()
        assert seen[cost < 0.1].min() > 0.5 and np.median(seen[cost > 1]) < 0.1

    def test_rollout_counts_a_place_that_does_nothing(self, one):
        batch, joint = repeats(6, 40), np.eye(11)
        for A in transformer(one[0], batch.tokens, one[1].config).weights:
            joint = (A[:, 0] / 2 + np.eye(11) / 2) @ joint
        np.testing.assert_allclose(joint[:, -1, [4, 5, 9, 10]].mean(axis=0), 0.25, atol=0.01)
        other = batch.tokens.copy()
        for row in other:
            row[9] = np.setdiff1d(np.arange(64), row)[0]
        changed = log_p(one, batch) - log_p(one, batch._replace(tokens=other))
        assert np.abs(np.median(changed)) < 0.01


class TestHeads:
    def test_either_of_two_can_go_but_not_both(self, two):
        batches = every_period("induction-two-heads", seed=3)
        without = {
            heads: score(*two, batches, edit=zero_heads(1, heads)).accuracy
            for heads in ((0,), (1,), (0, 1))
        }
        assert min(without[0,], without[1,]) > 0.9 and without[0, 1] < 0.05

    def test_the_two_cuts_disagree_about_a_redundant_edge(self, two):
        batch = repeats(12, 60)
        plain, grown = (
            effect(two, batch, intervention([(1, 1, 22, 11)], renormalise=which))
            for which in (False, True)
        )
        assert np.median(plain) < 0.1 < np.median(grown) and np.quantile(grown, 0.9) > 3

    def test_opposite_heads_cancel_whatever_their_weights(self, one):
        params, recipe = one
        three = dict(params)
        for layer in (0, 1):
            for name in ("W_Q", "W_K", "W_V"):
                three[f"{layer}.{name}"] = np.hstack([params[f"{layer}.{name}"]] * 3)
            W_O = params[f"{layer}.W_O"]
            three[f"{layer}.W_O"] = np.vstack([W_O, W_O, -W_O])
        wide = replace(recipe, config=replace(recipe.config, heads=3))
        batches = every_period("induction", [6, 12], seed=3)

        def right(*heads):
            return score(three, wide, batches, edit=zero_heads(1, heads)).accuracy

        assert right() == right(1, 2) == score(params, recipe, batches).accuracy > 0.99
        assert right(0) < 0.1 and right(1) < 0.1 and right(2) > 0.9


@pytest.fixture(scope="module")
def measured(one):
    params, recipe = one
    batch, found = repeats(12, 3), []
    for tokens, targets in zip(batch.tokens, batch.targets, strict=True):
        result = transformer(params, tokens, recipe.config)
        costs = edge_effects(params, tokens, recipe.config, target=targets[-1])
        found.append((edge_weights(result), edge_norms(params, result), costs))
    return found


class TestAllEdges:
    def test_most_strong_edges_do_nothing(self, measured):
        for weights, _, costs in measured:
            strong = weights[0] > 0.9
            assert 0.85 < np.mean(np.abs(costs[0][strong]) < 0.01) < 1
            assert np.nanmax(np.abs(costs)[weights < 0.1]) < 0.1

    def test_the_correlation_falls_when_what_is_equal_counts_as_equal(self, measured):
        for weights, lengths, costs in measured:
            raw, nine, three = (spearman(weights, np.abs(costs), decimals=d) for d in (None, 9, 3))
            assert raw > nine > three and 0.15 < nine < 0.3 and three < 0.15
            assert abs(spearman(lengths, np.abs(costs), decimals=9) - nine) < 0.03


class TestSinks:
    def test_a_sink_has_the_weight_and_not_the_length(self):
        for name, sentence in read_export(DATA / "minilm.npz").items():
            A, size = sentence.weights[2, 7], sentence.norms[2, 7]
            share = A * size / (A * size).sum(axis=1, keepdims=True)
            assert A[:, 0].mean() > 0.6 and share[:, 0].mean() < 0.2, name
            assert size[0] < 0.1 * np.median(size[1:]), name


class TestOtherWeights:
    def test_proofs_hold(self):
        assert other_weights().holds and cut_key().holds

    @pytest.mark.parametrize(("n", "d_v"), [(4, 2), (7, 3), (5, 4), (4, 4), (3, 3)])
    def test_others_exist_from_two_keys_more_than_the_width(self, n, d_v):
        rng = np.random.default_rng([n, d_v])
        V, a = rng.normal(size=(n, d_v)), softmax(rng.normal(size=n))
        M = np.column_stack([V, np.ones(n)])
        rank = np.linalg.matrix_rank(M)
        assert (rank < n) == (n >= d_v + 2)
        if rank < n:
            z = np.linalg.svd(M.T)[2][rank]
            b = a + 0.9 * a.min() / np.abs(z).max() * z
            assert b.min() > 0 and not np.allclose(a, b, atol=1e-3)
            np.testing.assert_allclose(b @ V, a @ V, atol=1e-12)
            assert np.isclose(b.sum(), 1)

    def test_the_trained_heads_have_none(self, one):
        result = transformer(one[0], repeats(16, 1).tokens, one[1].config)
        for block in result.blocks:
            V = block.attention.V[0, 0]
            assert np.linalg.matrix_rank(np.column_stack([V, np.ones(len(V))])) == len(V) == 31

    def test_reachable_rows_have_the_dimension_of_the_query(self):
        K = np.random.default_rng(0).normal(size=(6, 2))
        rows = np.log(softmax(np.random.default_rng(1).normal(size=(50, 2)) @ K.T))
        centred = rows - rows.mean(axis=1, keepdims=True)
        assert np.linalg.matrix_rank(centred, tol=1e-10) == 2


class TestBorrowedWeights:
    @pytest.mark.parametrize(("layers", "uniform"), [((0, 1), False), ((0,), True), ((1,), True)])
    def test_places_can_be_borrowed_and_are_needed(self, one, layers, uniform):
        params, recipe = one
        batch = every_period("induction", [9], seed=4)[0]
        own = transformer(params, batch.tokens, recipe.config).weights
        past = np.tri(17) / np.tri(17).sum(axis=1, keepdims=True)

        def edit(layer, A):
            if layer not in layers:
                return A
            return np.broadcast_to(past, A.shape) if uniform else np.roll(own[layer], 1, axis=0)

        right = score(params, recipe, [batch], edit=edit).accuracy
        assert right < 0.4 if uniform else right > 0.99
