"""What the chapter on heads says of its examples and experiments, measured on other draws."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from attn_lib import (
    attention,
    causal_mask,
    head_contributions,
    merge_heads,
    multi_head_attention,
    softmax,
    split_heads,
)
from attn_lib.checks.heads import MULTI_HEAD_MISTAKES
from attn_lib.interventions import zero_heads
from attn_lib.model import layer_params, transformer
from attn_lib.training import (
    RECIPES,
    every_period,
    head_scores,
    induction_batch,
    induction_score,
    load_checkpoints,
    period_of,
    score,
    start,
    train,
)

DATA = Path(__file__).parents[2] / "book" / "data"


@pytest.fixture(scope="module")
def models():
    return [load_checkpoints(DATA / f"induction{name}.npz") for name in ("", "-two-heads")]


@pytest.fixture(scope="module")
def batches():
    return every_period("induction", seed=2)


class TestOneMixture:
    def test_an_exchange_moves_the_output_by_the_difference_of_the_weights(self):
        rng = np.random.default_rng(0)
        V, exchanged = rng.normal(size=(5, 3)), [0, 3, 2, 1, 4]
        for a, b in [(0.3, 0.3), (0.5, 0.1)]:
            row = np.array([0.2, a, 0.1, b, 0.7 - a - b])
            moved = row @ V - row @ V[exchanged]
            np.testing.assert_allclose(moved, (a - b) * (V[1] - V[3]), atol=1e-15)

    def test_places_in_the_rows_do_not_help(self):
        rng = np.random.default_rng(1)
        words, places, W_V = rng.normal(size=(4, 6)), rng.normal(size=(4, 6)), np.eye(6)[:, :3]
        half, exchanged = np.array([0, 0.5, 0, 0.5]), words[[0, 3, 2, 1]]
        before, after = (half @ (w + places) @ W_V for w in (words, exchanged))
        np.testing.assert_allclose(before, after, atol=1e-15)
        together = [half @ np.tanh(w + places) @ W_V for w in (words, exchanged)]
        assert np.abs(together[0] - together[1]).max() > 0.01  # more than a sum can

    def test_two_heads_tell_as_far_as_they_write_differently(self):
        rng = np.random.default_rng(2)
        u, v = rng.normal(size=(2, 3))
        first, second = rng.normal(size=(2, 3, 4))
        for other, told in [(second, True), (first, False)]:
            moved = (u @ first + v @ other) - (v @ first + u @ other)
            assert (np.abs(moved).max() > 0.1) == told


class TestScale:
    """T02: q · k is 8 and 0 in a head of a model of width 512 with 8 heads."""

    @pytest.mark.parametrize(
        ("divisor", "weight"),
        [
            (np.sqrt(512 / 8), 0.73105858),
            (np.sqrt(512), 0.58747900),
            (np.sqrt(8), 0.94419278),
            (512 / 8, 0.53120937),
        ],
    )
    def test_what_each_divisor_gives(self, divisor, weight):
        assert softmax(np.array([8.0, 0]) / divisor)[0] == pytest.approx(weight, abs=1e-8)

    def test_too_large_a_divisor_only_flattens(self):
        flat = next(m for m in MULTI_HEAD_MISTAKES if m.name == "scale of the model")
        rng = np.random.default_rng(3)
        X, W_V = np.eye(4, 16) * 4, np.eye(16)
        W_Q, W_K = rng.normal(size=(2, 16, 16))
        right = multi_head_attention(X, W_Q, W_K, W_V, W_V, heads=8).weights
        wrong = flat.make(X, W_Q, W_K, W_V, W_V, 8)  # head 0 hands over the first two tokens
        scores = multi_head_attention(X, W_Q, W_K, W_V, W_V, heads=8).scores / np.sqrt(8)
        np.testing.assert_allclose(wrong[:, :2], 4 * softmax(scores)[0][:, :2], atol=1e-12)
        assert (softmax(scores).max(axis=-1) < right.max(axis=-1)).all()


class TestReach:
    """Which tokens reach which outputs, when heads are split right and wrong."""

    n, h, d = 6, 3, 12

    def reach(self, split, merge):
        rng = np.random.default_rng(4)
        X, others = rng.normal(size=(2, self.n, self.d))
        maps = rng.normal(size=(3, self.d, self.d)) / np.sqrt(self.d)

        def run(X):
            Q, K, V = (split(X @ W, self.h) for W in maps)
            return merge(attention(Q, K, V, mask=causal_mask(self.n)).output)

        moved = np.zeros((self.n, self.n), bool)
        for j in range(self.n):
            changed = X.copy()
            changed[j] = others[j]
            moved[:, j] = (run(changed) != run(X)).any(axis=1)
        return moved

    @staticmethod
    def reshaped(M, heads):
        return M.reshape(heads, len(M), -1)

    def test_right(self):
        np.testing.assert_array_equal(self.reach(split_heads, merge_heads), causal_mask(self.n))

    def test_a_wrong_split_opens_the_future(self):
        moved = self.reach(self.reshaped, merge_heads)
        assert (moved & ~causal_mask(self.n)).any() and (~moved & causal_mask(self.n)).any()
        assert moved[0, 4]  # the last head's first row is a piece of token 5

    def test_a_wrong_split_and_merge_cut_the_text_into_stretches(self):
        moved = self.reach(self.reshaped, lambda M: M.reshape(self.n, -1))
        stretches = np.kron(np.eye(3, dtype=bool), np.ones((2, 2), bool))
        np.testing.assert_array_equal(moved, stretches & causal_mask(self.n))

    @pytest.mark.parametrize("blind", ["one token", "one head", "all alike"])
    def test_inputs_that_do_not_show_it(self, blind):
        X, heads = {
            "one token": (np.arange(12.0)[None], 3),
            "one head": (np.arange(24.0).reshape(2, 12), 1),
            "all alike": (np.ones((4, 12)), 3),
        }[blind]
        np.testing.assert_array_equal(split_heads(X, heads), self.reshaped(X, heads))


def removed(model, layer, heads, batches):
    return score(model.final, model.recipe, batches, edit=zero_heads(layer, heads))


def first_copy_only(period, layer, weights):
    weights = weights.copy()
    weights[..., period:, :] *= layer != 0
    return weights


class TestTrainedHeads:
    def test_layer_one_is_needed_for_the_first_copy_only(self, models, batches):
        for model in models:
            for batch in batches[::4]:
                silenced = partial(first_copy_only, period_of(batch))
                assert score(model.final, model.recipe, [batch], edit=silenced).accuracy > 0.98

    def test_the_second_head_reads_its_own_token_and_is_hardly_needed(self, models, batches):
        model, found, even = models[1], [], []
        for batch in batches:
            n, L = batch.tokens.shape[1], period_of(batch)
            A = transformer(model.final, batch.tokens, model.recipe.config).weights[0][:, 1]
            i = np.arange(1, L)
            previous, own = A[:, i, i - 1].mean(), A[:, i, i].mean()
            later = A[:, np.arange(L, n), np.arange(1, n - L + 1)].mean()
            most = (A[:, i].argmax(axis=-1) == i).mean()
            found.append([previous, own, later, most])
            even.append([*[(1 / (i + 1)).mean()] * 2, (1 / np.arange(L + 1, n + 1)).mean(), 0])
        (previous, own, later, most), share = np.mean(found, axis=0), np.mean(even, axis=0)
        assert own > 0.5 > 2 * share[1] and most > 0.6
        assert previous < share[0] and later < share[2] + 0.01
        whole, without = score(model.final, model.recipe, batches), removed(model, 0, [1], batches)
        assert 1.1 * whole.loss < without.loss < 2 * whole.loss and without.accuracy > 0.99

    def test_other_seeds_share_some_of_it(self, models):
        found = np.load(DATA / "induction-seeds.npz")
        here = head_scores(models[1].final, models[1].recipe.config, every_period("induction"))
        np.testing.assert_allclose(found["own"][0], here.own, atol=1e-4)  # a row of this model
        assert (found["induction"][:, 1] > 0.98).all()
        clear = found["previous"][:, 0] > 0.9
        np.testing.assert_array_equal(clear.sum(axis=-1), [1, 1, 1, 1, 2])
        for k in range(4):
            rest = int(not clear[k].argmax())
            assert found["own"][k, 0, rest] > max(
                found["previous"][k, 0, rest], found["induction"][k, 0, rest]
            )
            assert found["without"][k, 0, rest] < 4.5 * found["loss"][k]
        unclear = [found[kind][3, 0, 0] for kind in ("previous", "own", "induction")]
        assert max(unclear) < 0.45 and found["without"][3, 0, 0] > 3 * found["loss"][3]

    def test_no_head_reads_the_earlier_copy(self, models, batches):
        even = np.mean(
            [(1 / np.arange(period_of(b) + 1, 2 * period_of(b))).mean() for b in batches]
        )
        for model in models:
            found = []
            for batch in batches:
                layers = transformer(model.final, batch.tokens, model.recipe.config).weights
                copies = [np.diagonal(A, -period_of(batch), -2, -1) for A in layers]
                found.append([each.mean(axis=(0, 2)) for each in copies])
            assert (np.mean(found, axis=0) < even + 0.02).all()

    def test_twins_raise_the_right_logit_alike_and_add_up(self, models, batches):
        model = models[1]
        pushes = np.zeros((2, 2))
        for batch in batches:
            blocks = transformer(model.final, batch.tokens, model.recipe.config).blocks
            for layer, block in enumerate(blocks):
                W_O = layer_params(model.final, layer)["W_O"]
                logits = head_contributions(block.attention.mixed, W_O) @ model.final["U"]
                logits -= logits.mean(axis=-1, keepdims=True)
                right = np.take_along_axis(logits, batch.targets[:, None, :, None], axis=-1)
                counted = (right[..., 0] * batch.counted[:, None]).sum(axis=(0, 2))
                pushes[layer] += counted / batch.counted.sum() / len(batches)
        assert np.abs(pushes[0]).max() < 0.2 < 10 < pushes[1].min()
        assert pushes[1, 0] == pytest.approx(pushes[1, 1], rel=0.05)

    def test_one_twin_is_enough_and_none_is_not(self, models, batches):
        model = models[1]
        whole = score(model.final, model.recipe, batches)
        for head in (0, 1):
            alone = removed(model, 1, [head], batches)
            assert alone.accuracy > 0.9 and alone.loss > 5 * whole.loss
        assert removed(model, 1, [0, 1], batches).accuracy < 0.05
        assert removed(model, 0, [0], batches).accuracy < 0.25

    def test_the_key_carries_the_token_before_it(self, models):
        """Move the earlier copy: layer 1 does not notice, layer 2 looks elsewhere."""
        model = models[0]
        text = every_period("induction", [6], seed=3)[0].tokens
        moved = text.copy()
        moved[:, [2, 4]] = moved[:, [4, 2]]
        before, after = (
            [b.attention for b in transformer(model.final, t, model.recipe.config).blocks]
            for t in (text, moved)
        )
        for key in (3, 5):  # the tokens after the two that were exchanged
            same = before[0].scores[:, 0, 8, key], after[0].scores[:, 0, 8, key]
            np.testing.assert_array_equal(*same)
        assert before[1].weights[:, 0, 8, 3].mean() > 0.95
        assert after[1].weights[:, 0, 8, 5].mean() > 0.95

    def test_carries_over_in_part_to_lengths_it_never_saw(self, models):
        for model in models:
            two, three = (
                score(model.final, model.recipe, [batch]).accuracy
                for batch in every_period(model.recipe, [2, 3], seed=2)
            )
            assert 0.5 < two < 0.97 and three > 0.8


class TestOneLayer:
    def test_no_head_finds_what_follows_the_earlier_copy(self):
        """Two texts that share tokens at the query and two places; the copy stands before either.

        In one of the two at least, whatever the head, the place after it gets half or less.
        """
        rng = np.random.default_rng(5)
        first = np.array([7, 1, 5, 2, 6, 7])  # the copy of 7 stands before place 1
        second = np.array([5, 1, 7, 2, 6, 7])  # before place 3
        for _ in range(30):
            E, P = 3 * rng.normal(size=(8, 6)), 3 * rng.normal(size=(6, 6))
            maps = rng.normal(size=(2, 6, 6))
            a, b = (
                attention((E[x] + P) @ maps[0], (E[x] + P) @ maps[1], P, mask=causal_mask(6))
                for x in (first, second)
            )
            np.testing.assert_array_equal(a.scores[5, [1, 3]], b.scores[5, [1, 3]])
            assert min(a.weights[5, 1], b.weights[5, 3]) <= 0.5

    def test_a_layer_with_a_head_for_each_place_can_exclude(self, batches):
        for batch in batches[::3]:
            n = batch.tokens.shape[1]
            E, at, one = np.eye(64)[batch.tokens], np.arange(n), np.ones((*batch.tokens.shape, 1))
            logits = attention(0 * E, E, E, mask=causal_mask(n)).output
            for j in range(n):
                place = 60 * (at == j) + 40 * (at == j - 1)
                Q = np.concatenate([40 * E, one], axis=-1)
                K = np.concatenate([E, place[:, None] * one], axis=-1)
                logits += attention(Q, K, -E, mask=causal_mask(n), scale=1).output
            hit = logits.argmax(axis=-1) == batch.targets
            assert hit[batch.counted > 0].all()

    def test_a_fixed_length_is_solved_by_place(self):
        run = train(start("fixed-period", seed=1), 200, progress=False)
        long, short = every_period("induction", [16, 12], seed=1)
        assert score(run.params, run.recipe, [long]).accuracy > 0.95
        assert score(run.params, run.recipe, [short]).accuracy < 0.3
        found = []
        for batch in (long, short):
            A = transformer(run.params, batch.tokens, run.recipe.config).weights[0]
            i = np.arange(15, A.shape[-1])
            found.append((induction_score(A, period_of(batch))[0], A[:, 0, i, i - 15].mean()))
        (high, _), (low, back) = found
        assert high > 0.9 and low < 0.3 and back > 0.6  # it looks 15 back in either

    def test_a_length_drawn_anew_is_not(self):
        run = train(start("induction-one-layer", seed=1), 400, progress=False)
        found = score(run.params, run.recipe, every_period("induction", seed=1)).accuracy
        two_layers = load_checkpoints(DATA / "induction.npz").curves
        at = two_layers["step"].tolist().index(400)
        assert 0.1 < found < 0.5 < 0.9 < two_layers["accuracy"][at]

    def test_training_finds_a_way_with_heads_enough(self):
        """Texts of up to eight: as many heads as places, and as wide as there are tokens."""
        recipe, found = RECIPES["induction-one-layer"], []
        draw = partial(induction_batch, size=32, vocabulary=16, shortest=4, longest=8)
        small = replace(recipe.config, vocabulary=16, context=16, d_k=16)
        for heads in (1, 16):
            trial = replace(recipe, draw=draw, config=replace(small, heads=heads), rate=4e-3)
            run = train(start(trial, seed=1), 300, progress=False)
            found.append(
                score(run.params, trial, every_period(trial, range(4, 9), seed=1)).accuracy
            )
        assert found[0] < 0.75 and found[1] > 0.82

    def test_four_narrow_heads_gain_no_answers(self):
        recipe, found = RECIPES["induction-one-layer"], []
        for changes in ({}, {"heads": 4, "d_k": 8}):
            trial = replace(recipe, config=replace(recipe.config, **changes))
            run = train(start(trial), 500, progress=False)
            found.append(score(run.params, trial, every_period(trial, seed=3)))
        (one, few), (four, less) = found[0][::-1], found[1][::-1]
        assert four < one and less < few


class TestMeanOverHeads:
    def test_what_mean_weights_leave_out(self):
        rng = np.random.default_rng(6)
        X, maps = rng.normal(size=(5, 12)), rng.normal(size=(4, 12, 12)) / np.sqrt(12)
        found = multi_head_attention(X, *maps, heads=3)
        A = found.weights
        U = [found.V[r] @ maps[3][4 * r : 4 * r + 4] for r in range(3)]
        mean = sum(U) / 3
        rest = sum((A[r] - A.mean(axis=0)) @ (U[r] - mean) for r in range(3))
        np.testing.assert_allclose(3 * A.mean(axis=0) @ mean + rest, found.output, atol=1e-12)
        assert np.linalg.norm(rest) > 0.2 * np.linalg.norm(found.output)
        exchanged = A[1] @ U[0] + A[0] @ U[1] + A[2] @ U[2]
        np.testing.assert_allclose(
            found.output - exchanged, (A[0] - A[1]) @ (U[0] - U[1]), atol=1e-12
        )
