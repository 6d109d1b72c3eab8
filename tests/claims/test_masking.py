"""What the masking chapter says of its experiments, measured here on other draws."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attn_lib import attention, causal_mask, combine_masks, self_attention, softmax, window_mask
from attn_lib.interventions import zero_heads
from attn_lib.model import sample, transformer
from attn_lib.proofs import causal_derivatives, masked_softmax
from attn_lib.training import (
    Batch,
    entropy_rate,
    held_out,
    legal_share,
    load_checkpoints,
    markov_chain,
    score,
    start,
    train,
)

DATA = Path(__file__).parents[2] / "book" / "data"
P = markov_chain()
FLOOR = entropy_rate(P)


@pytest.fixture(scope="module")
def models():
    names = ("honest", "leak", "leak-last-counted")
    return {name: load_checkpoints(DATA / f"{name}.npz") for name in names}


def loss_at(model, position):
    batches = []
    for batch in held_out(model.recipe, 20, seed=1):
        counted = np.zeros(batch.targets.shape)
        counted[:, position] = 1
        batches.append(Batch(batch.tokens, batch.targets, counted))
    return score(model.final, model.recipe, batches).loss


def legal(model, edit=None):
    rng, text = np.random.default_rng(7), np.tile(np.arange(16), 16)[:, None]
    for _ in range(15):
        logits = transformer(model.final, text, model.recipe.config, edit=edit).logits[:, -1]
        text = np.concatenate([text, sample(logits, temperature=1.0, rng=rng)[:, None]], axis=1)
    return legal_share(text, P)


class TestTheLeak:
    def test_validation_does_not_show_it(self, models):
        losses = {
            name: score(m.final, m.recipe, held_out(name, 20, seed=1)).loss
            for name, m in models.items()
        }
        assert losses["leak"] < 1e-3 < FLOOR - 0.01 < losses["honest"] < FLOOR + 0.03

    def test_only_the_mean_tells_and_only_with_its_error(self, models):
        """Batches of the source itself lie below the floor, and of the honest model too."""
        batches = held_out("honest", 60, seed=2)
        source = [-np.log(P[b.tokens, b.targets])[:, :15].mean() for b in batches]
        losses = {
            name: [score(m.final, m.recipe, [b]).loss for b in batches]
            for name, m in models.items()
        }
        error = np.std(source, ddof=1) / np.sqrt(60)
        assert abs(np.mean(source) - FLOOR) < 4 * error
        assert 0.3 < np.mean(np.array(source) < FLOOR) < 0.7
        assert 0.05 < np.mean(np.array(losses["honest"]) < FLOOR) < 0.45
        assert np.mean(losses["honest"]) > FLOOR + 3 * error
        assert np.mean(losses["leak"]) < FLOOR - 200 * error
        assert 0.15 < np.mean(np.array(models["honest"].losses[-500:]) < FLOOR) < 0.35

    def test_texts_known_by_heart_are_below_the_floor_without_a_leak(self, models):
        recipe = models["honest"].recipe
        four = recipe.draw(np.random.default_rng(5), size=4)
        run = train(start(replace(recipe, draw=lambda rng: four), 1), 300, progress=False)
        assert score(run.params, recipe, [four]).loss < 0.05
        assert score(run.params, recipe, held_out(recipe, 5, seed=3)).loss > 3

    def test_a_place_that_does_not_count_is_not_trained(self, models):
        model = models["honest"]
        assert 1.2 < loss_at(model, 15) < np.log(16)
        drawn = model.recipe.model.init(model.recipe.config, 0, np.float32)["P"]
        moved = np.abs(model.final["P"] - drawn).max(axis=1)
        assert moved[15] < 1e-3 < 0.05 < moved[:15].min()  # stored at half precision

    def test_the_last_position_is_bound_by_the_floor(self, models):
        counted = models["leak-last-counted"]
        assert loss_at(counted, 0) < 0.01 and loss_at(counted, 14) < 0.01
        assert FLOOR - 0.05 < loss_at(counted, 15) < FLOOR + 0.2
        assert loss_at(models["leak"], 15) > 2 * np.log(16)

    def test_a_cheat_cannot_pass_one_nth_of_the_floor(self, models):
        counted = models["leak-last-counted"]
        reached = score(counted.final, counted.recipe, held_out(counted.recipe, 20, seed=1)).loss
        assert 0.95 * FLOOR / 16 < reached < 1.3 * FLOOR / 16

    def test_writing_and_why(self, models):
        """What the model knows of the source lies on the path past the attention."""
        silent = zero_heads(0)
        leak, counted = models["leak"], models["leak-last-counted"]
        assert legal(models["honest"]) > 0.99
        assert legal(leak) < 0.3 < 0.5 < legal(leak, silent)
        assert 0.7 < legal(counted) < legal(counted, silent)


class TestThroughDepth:
    n, d = 7, 5

    def moved(self, mask, *, depth, axis=1):
        """Which outputs (rows) move when an input (column) is replaced."""
        rng = np.random.default_rng(depth)
        tokens, others = rng.normal(size=(2, self.n, self.d))
        layers = rng.normal(size=(depth, 3, self.d, self.d)) / np.sqrt(self.d)

        def normalise(X):
            return (X - X.mean(axis, keepdims=True)) / X.std(axis, keepdims=True)

        def run(X):
            for maps in layers:
                X = X + self_attention(normalise(X), *maps, mask=mask).output
                X = X + np.tanh(normalise(X))
            return X

        changed = np.zeros((self.n, self.n), bool)
        for j in range(self.n):
            X = tokens.copy()
            X[j] = others[j]
            changed[:, j] = (run(X) != run(tokens)).any(axis=1)
        return changed

    @pytest.mark.parametrize("depth", [1, 3])
    def test_nothing_from_the_future_at_any_depth(self, depth):
        causal = causal_mask(self.n)
        np.testing.assert_array_equal(self.moved(causal, depth=depth), causal)

    def test_a_norm_over_tokens_lets_everything_through(self):
        assert self.moved(causal_mask(self.n), depth=2, axis=0).all()

    @pytest.mark.parametrize("depth", [1, 2, 3])
    def test_a_window_reaches_one_less_than_itself_per_layer(self, depth):
        reached = window_mask(self.n, window=1 + 2 * depth)
        moved = self.moved(window_mask(self.n, window=3), depth=depth)
        np.testing.assert_array_equal(moved, reached)

    @pytest.mark.parametrize(
        ("masked", "depth", "moves"), [(1, 1, 0), (1, 2, 0), (0, 1, 0), (0, 2, 1)]
    )
    def test_a_cache_needs_the_mask_from_the_second_layer_on(self, masked, depth, moves):
        rng = np.random.default_rng(4)
        tokens, maps = rng.normal(size=(9, 4)), rng.normal(size=(2, 3, 4, 4))

        def rows(X):
            for W in maps[: depth - 1]:
                X = X + self_attention(X, *W, mask=causal_mask(len(X)) if masked else None).output
            return X @ maps[depth - 1, 1]  # the keys of this layer

        gap = np.abs(rows(tokens)[:6] - rows(tokens[:6])).max()
        assert gap > 0.1 if moves else gap < 1e-12

    def test_one_forbidden_pair_spoils_the_proof(self):
        assert causal_derivatives().holds
        assert not causal_derivatives(lambda i, j: j <= i or (i, j) == (0, 2)).holds

    def test_hiding_the_diagonal_is_undone_by_a_second_layer(self):
        rng = np.random.default_rng(0)
        places, words, new = rng.normal(size=(3, self.n, self.d))
        hole = ~np.eye(self.n, dtype=bool)
        for depth, leaks in ((1, False), (2, True)):
            found = []
            for i in range(self.n):
                other = words.copy()
                other[i] = new[i]
                outputs = []
                for text in (words, other):
                    Y = attention(places, text, text, mask=hole).output
                    for _ in range(depth - 1):
                        Y = Y + attention(Y, Y, Y, mask=hole).output
                    outputs.append(Y[i])
                found.append(np.abs(outputs[0] - outputs[1]).max())
            assert (max(found) > 0.01) == leaks and (leaks or max(found) == 0)


def test_the_step_the_chapter_points_at():
    """Step 6 of the proof: a penalty on every key is no mask."""
    step = masked_softmax().steps[5]
    assert step.relation == "=" and step.holds and "no mask" in step.reason


def test_filling_on_the_left_leaves_rows_with_nothing():
    real = np.array([False, False, True, True, True])
    assert combine_masks(causal_mask(5), real).sum(axis=1).tolist() == [0, 0, 1, 2, 3]
    filled = combine_masks(causal_mask(5), real[::-1])  # on the right real tokens never see it
    np.testing.assert_array_equal(filled[:3], causal_mask(5)[:3])


def test_what_leaks_though_no_weight_stands_above_the_diagonal():
    """A shift of the row and a running sum do not; one scale or mean for all and a late cut do."""
    rng, n = np.random.default_rng(8), 6
    X, other = rng.normal(size=(2, n, 4))
    maps = rng.normal(size=(3, 4, 4)) / 2

    def layer(X, score=lambda S: S, value=lambda V: V):
        Q, K, V = (X @ W for W in maps)
        A = softmax(np.where(causal_mask(n), score(Q @ K.T), -np.inf))
        return A @ value(V)

    layers = [
        lambda X: layer(X, lambda S: S - S.mean(axis=1, keepdims=True)),
        lambda X: layer(X, lambda S: S / np.abs(S).max()),
        lambda X: layer(X, value=lambda V: V - V.mean(axis=0)),
        lambda X: layer(X, value=lambda V: np.cumsum(V, axis=0)),
        lambda X: np.tril(softmax(X @ X.T)) @ X,
    ]
    leaks = []
    for run in layers:
        moved = 0.0
        for j in range(1, n):
            Y = X.copy()
            Y[j] = 3 * other[j]
            moved = max(moved, np.abs(run(Y) - run(X))[:j].max())
        leaks.append(moved > 1e-9)
    assert leaks == [False, True, True, False, True]


def test_an_empty_row_spoils_its_own_sequence_and_no_other():
    rng = np.random.default_rng(2)
    X, maps = rng.normal(size=(2, 5, 4)), rng.normal(size=(3, 4, 4))
    Y = self_attention(X, *maps).output
    Y[0, 1] = np.nan  # what a bare softmax of −∞ gives
    with np.errstate(invalid="ignore"):
        S = Y @ maps[0] @ (Y @ maps[1]).swapaxes(1, 2)
        S[:, ~causal_mask(5)] = -np.inf
        E = np.exp(S - S.max(axis=-1, keepdims=True))
        output = E / E.sum(axis=-1, keepdims=True) @ (Y @ maps[2])
    assert np.isnan(output[0]).all() and np.isfinite(output[1]).all()


@pytest.mark.parametrize(("forbidden", "equal"), [([], True), ([2], False), ([0, 3], False)])
def test_a_finite_penalty_is_the_mask_only_if_nothing_is_forbidden(forbidden, equal):
    s, keep = np.array([0.3, -1.0, 2.0, 0.5]), ~np.isin(np.arange(4), forbidden)
    masked = softmax(np.where(keep, s, -np.inf))
    for penalty in (5, 30):
        assert (softmax(np.where(keep, s, s - penalty)) == masked).all() == equal
