"""What the chapter on reading weights says of its experiments, measured here on other draws."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attn_lib import feed_forward, layer_norm, layer_params, multi_head_layer, softmax
from attn_lib.interventions import (
    cut_edge,
    edge_effects,
    edge_norms,
    edge_weights,
    intervention,
    spearman,
    spearman_ceiling,
    zero_heads,
)
from attn_lib.masks import causal_mask
from attn_lib.minilm import read_export
from attn_lib.model import transformer
from attn_lib.proofs import cut_key, other_weights
from attn_lib.training import (
    RECIPES,
    every_period,
    induction_batch,
    load_checkpoints,
    score,
    start,
    sums_batch,
    train,
)

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

    def test_the_exceptions_keep_their_key_by_chance(self, one):
        """Not for another reason: its score falls as usual, and that of the others is low."""
        batch = repeats(4, 200)
        cut = cut_edge(0, 0, 3, 2)
        cost = effect(one, batch, cut)
        runs = [transformer(one[0], batch.tokens, one[1].config, edit=e) for e in (None, cut)]
        before, after = (run.blocks[1].attention.scores[:, 0, -1] for run in runs)
        others = np.delete(after, 3, axis=1).max(axis=1)
        spared = cost < 0.1
        assert 3 <= spared.sum() < 20
        assert (after[spared, 3] > others[spared]).all()
        assert np.mean(after[~spared, 3] > others[~spared]) < 0.15
        fall = (before - after)[:, 3]
        assert np.median(fall[spared]) > 15 and np.median(fall) > 18
        assert np.median(others[spared]) < np.median(others[~spared]) - 4

    @pytest.mark.parametrize("period", [6, 9])
    def test_dark_cells_of_the_first_copy_are_chance_and_idle(self, one, period):
        batch = repeats(period, 100)
        run = transformer(one[0], batch.tokens, one[1].config)
        scores, weights = run.blocks[1].attention.scores[:, 0], run.weights[1][:, 0]
        for query in range(3, period):
            row = weights[:, query, : query + 1]
            assert np.median(row.max(axis=1)) > 0.8  # dark
            assert np.bincount(row.argmax(axis=1)).max() < 60  # not the same cell each time
        by_chance = np.median(scores[:, 3:period].max(axis=-1))
        assert np.median(scores[:, -1, period - 1]) > by_chance + 12

        def silent(layer, A):
            A = A.copy()
            A[..., :period, :] *= layer == 0
            return A

        assert np.abs(effect(one, batch, silent)).max() < 1e-9

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

    def test_what_falls_with_the_ties_is_the_ceiling(self, measured):
        for weights, lengths, costs in measured:
            sizes = np.abs(costs)
            for measure in (weights, lengths):
                found, most = (
                    [f(measure, sizes, decimals=d) for d in (None, 9, 3)]
                    for f in (spearman, spearman_ceiling)
                )
                assert found[0] > found[1] > found[2] and most[0] > most[1] > most[2]
                assert found[0] < 0.7 * most[0] and found[2] > 0.85 * most[2]
                assert found[2] < most[2] < 0.2 < 0.6 < most[0]

    def test_weight_finds_the_needed_edges_and_does_not_single_them_out(self, measured):
        for weights, lengths, costs in measured:
            known = ~np.isnan(weights)
            needed = np.abs(costs[known]) > 0.01
            assert known.sum() == 552 and needed.sum() == 2
            strong = weights[known] > 0.9
            assert needed[strong].sum() == 2 and strong.sum() > 25
            for measure in (weights[known], lengths[known]):
                wins = measure[needed][:, None] > measure[~needed]
                assert 0.93 < wins.mean() < 0.99
            rng = np.random.default_rng(1)
            assert wins.mean() > np.mean(rng.random(2)[:, None] > rng.random(550)) + 0.05

    def test_most_effects_are_exactly_zero_and_some_are_rounding(self, measured):
        for weights, _, costs in measured:
            sizes = np.abs(costs[~np.isnan(weights)])
            assert 0.5 < np.mean(sizes == 0) < 0.9
            assert 0.08 < np.mean((sizes > 0) & (sizes < 1e-9)) < 0.45


# What later parts make of an edge, with forward passes of this file's own


def by_steps(params, tokens, change=lambda layer, X: X):
    """The induction model without `transformer`; `change` acts on the direct path."""
    n = tokens.shape[1]
    X, written = params["E"][tokens] + params["P"][:n], []
    for layer in (0, 1):
        Q, K, V = (X @ params[f"{layer}.W_{name}"] for name in "QKV")
        S = Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[-1])
        S[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
        written.append(softmax(S) @ V @ params[f"{layer}.W_O"])
        X = change(layer, X) + written[-1]
    return X, written


class TestTheDirectPath:
    PERIOD = 9

    @pytest.fixture()
    def batch(self):
        return repeats(self.PERIOD, 60)

    def right(self, one, batch, layer, place, rows):
        def change(which, X):
            X = X.copy()
            if which == layer:
                X[:, place] = rows
            return X

        logits = by_steps(one[0], batch.tokens, change)[0][:, -1] @ one[0]["U"]
        return logits.argmax(axis=-1)

    def test_carries_who_asks_and_what_is_handed_over_and_nothing_else(self, one, batch):
        answers, n = batch.targets[:, -1], batch.tokens.shape[1]
        for layer in (0, 1):
            for place in range(n):
                share = np.mean(self.right(one, batch, layer, place, 0) == answers)
                needed = layer == 0 and place in (self.PERIOD - 1, n - 1)
                assert share < 0.3 if needed else share > 0.98, (layer, place)

    def test_says_what_is_said(self, one, batch):
        pool = [np.setdiff1d(np.arange(64), row) for row in batch.tokens]
        other = np.array([tokens[7] for tokens in pool])
        for place, expected in ((self.PERIOD - 1, other), (3, batch.targets[:, -1])):
            rows = one[0]["E"][other] + one[0]["P"][place]
            assert np.mean(self.right(one, batch, 0, place, rows) == expected) > 0.98

    def test_pushes_its_own_token_down(self, one):
        push = one[0]["E"] @ (one[0]["U"] - one[0]["U"].mean(axis=1, keepdims=True))
        others = push[~np.eye(64, dtype=bool)]
        assert np.mean(np.diag(push) < 0) > 0.95 and 0.4 < np.mean(others < 0) < 0.6

    def test_layer_two_lifts_the_token_of_the_mark_more_often_than_not(self, one, batch):
        U = one[0]["U"] - one[0]["U"].mean(axis=1, keepdims=True)
        pushes = by_steps(one[0], batch.tokens)[1][1][:, -1] @ U
        lifted = [np.mean(pushes[range(60), batch.tokens[:, at]] > 0) for at in (-1, 2)]
        assert 0.55 < lifted[0] < 0.9 and lifted[1] < lifted[0]


class TestALaterLayer:
    @pytest.mark.parametrize("period", [6, 7])
    def test_amplifies_loses_and_passes_on_edges_of_equal_weight(self, one, period):
        params, batch, n = one[0], repeats(period, 60), 2 * period - 1
        U = params["U"] - params["U"].mean(axis=1, keepdims=True)
        answers, each = batch.targets[:, -1], np.arange(60)
        intact = transformer(params, batch.tokens, one[1].config)
        found = []
        for i in (period - 1, period - 2, n - 1):
            cut = transformer(params, batch.tokens, one[1].config, edit=cut_edge(0, 0, i, i - 1))
            moved = intact.blocks[0].output[:, i] - cut.blocks[0].output[:, i]
            arrived = intact.blocks[1].output[:, -1] - cut.blocks[1].output[:, -1]
            sizes = [np.median(np.linalg.norm(M, axis=1)) for M in (moved, arrived)]
            says = [np.median((M @ U)[each, answers]) for M in (moved, arrived)]
            found.append((sizes[0], sizes[1] / sizes[0], *says))
        (a, grows, before, after), (b, lost, *_), (c, kept, _, idle) = found
        assert max(a, b, c) < 1.2 * min(a, b, c)
        assert grows > 2 and abs(before) < 0.5 and after > 15
        assert lost < 1e-6
        assert abs(kept - 1) < 0.01 and abs(idle) < 0.5


@pytest.fixture(scope="module", params=[1, 2])
def adder(request):
    """A model of the sums from another start, with the parts of its last step, at place 8."""
    run = train(start(RECIPES["sums"], seed=request.param), progress=False)
    net = {name: W.astype(float) for name, W in run.params.items()}
    W = layer_params(net, 0)
    digits = sums_batch(np.random.default_rng(11), size=300, length=12, slips=0).tokens
    stream = net["E"][digits] + net["P"][:12]
    maps = [W[f"W_{name}"] for name in "QKVO"]
    X = layer_norm(stream, W["gain_1"], W["bias_1"])
    heads = multi_head_layer(X, *maps, heads=2, mask=causal_mask(12))
    written = heads.weights[:, :, 8, 7, None] * np.stack(
        [heads.V[:, r, 7] @ W["W_O"][16 * r : 16 * r + 16] for r in (0, 1)], axis=1
    )
    reader = heads.weights[:, :, 8, 7].mean(axis=0).argmax()

    def norm(rows):
        return layer_norm(rows, W["gain_2"], W["bias_2"])

    def think(rows):
        return feed_forward(norm(rows), W["W_1"], W["b_1"], W["W_2"], W["b_2"])

    def logits(rows):
        return layer_norm(rows, net["gain"], net["bias"]) @ net["U"]

    total = (digits[:, 8] + digits[:, 7]) % 10
    return stream[:, 8], heads.output[:, 8], written[:, reader], norm, think, logits, total


class TestTheFeedForwardPart:
    def effects(self, adder, gone):
        direct, read, _, _, think, logits, total = adder
        row = direct + read

        def best(rows):
            gaps = rows - rows.max(axis=1, keepdims=True)
            return gaps[range(300), total] - np.log(np.exp(gaps).sum(axis=1))

        usual, less = best(logits(row + think(row))), row - gone
        tries = [(less, less), (less, row), (row, less)]
        return [np.median(usual - best(logits(d + think(seen)))) for d, seen in tries]

    def noise(self, c):
        random = np.random.default_rng(3).normal(size=c.shape)
        lengths = [np.linalg.norm(M, axis=1, keepdims=True) for M in (c, random)]
        return random * lengths[0] / lengths[1]

    def test_nearly_all_of_the_effect_goes_through_it(self, adder):
        everywhere, direct, through = self.effects(adder, adder[2])
        control = self.effects(adder, self.noise(adder[2]))[0]
        assert everywhere > 0.8 and through > 0.8 * everywhere and abs(direct) < 0.1
        assert everywhere > 3 * control

    def test_it_takes_back_what_was_written_and_writes_more_across(self, adder):
        direct, read, c, _, think, *_ = adder
        row, found = direct + read, []
        for gone in (c, self.noise(c)):
            change = think(row) - think(row - gone)
            share = (change * gone).sum(axis=1) / (gone**2).sum(axis=1)
            rest = np.linalg.norm(change - share[:, None] * gone, axis=1)
            found.append([np.median(share), np.median(rest / np.linalg.norm(gone, axis=1))])
        (along, across), (along_random, across_random) = found
        assert along < -0.4 and along < along_random - 0.15
        assert across > 1.9 and across > across_random + 0.4

    def test_a_louder_direct_path_makes_the_edge_quieter(self, adder):
        direct, read, c, norm, think, logits, total = adder
        lengths, right = [], []
        for volume in (0, 1, 2):
            row = volume * direct + read
            lengths.append(np.median(np.linalg.norm(norm(row) - norm(row - c), axis=1)))
            right.append(np.mean(logits(row + think(row)).argmax(axis=1) == total))
        assert lengths[2] < 0.75 * lengths[1] and lengths[1] < lengths[0]
        assert right[0] < 0.4 and right[1] > 0.98  # its own digit came by the direct path


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
