"""What the chapter on the whole block says of its experiments, measured here on other draws."""

from dataclasses import replace

import numpy as np
import pytest

from attn_lib import softmax
from attn_lib.backward import loss_and_gradients
from attn_lib.blocks import block, layer_norm
from attn_lib.model import Config, count_params, generate, init_params, layer_params, transformer
from attn_lib.proofs import equal_tokens, norm_forgets, spread_shrinks, tokens_alone
from attn_lib.training import RECIPES, entropy_rate, held_out, score, start, train

SUMS = RECIPES["sums"]
FLOOR = entropy_rate([[0.91, *[0.01] * 9]])


def trained(*silent, steps=None, seed=1, **changes):
    recipe = replace(SUMS, config=replace(SUMS.config, **changes))
    run = start(recipe, seed, frozen=silent)
    for name in silent:
        run.params[name] = np.zeros_like(run.params[name])
    return train(run, steps, progress=False)


@pytest.fixture(scope="module")
def whole():
    return trained()


def fresh(seed, layers=12, **changes):
    config = Config(
        vocabulary=64, context=16, d=32, layers=layers, heads=2, causal=False, **changes
    )
    tokens = np.random.default_rng([seed, 5]).integers(64, size=16)
    return transformer(init_params(config, seed, np.float64), tokens, config)


def spread(X):
    return np.linalg.norm(X - X.mean(axis=0)) / np.linalg.norm(X)


class TestDeletedPieces:
    def test_whole_comes_near_the_floor_and_writes_by_the_rule(self, whole):
        loss, accuracy = score(whole.params, SUMS)
        assert FLOOR - 0.03 < loss < FLOOR + 0.12 and accuracy > 0.88
        pairs = np.array(np.unravel_index(np.arange(100), (10, 10))).T
        shares = {}
        for T in (None, 1.0, 4.0):
            text = generate(whole.params, pairs, SUMS.config, count=10, temperature=T, seed=2)
            shares[T] = ((text[:, :-2] + text[:, 1:-1]) % 10 == text[:, 2:]).mean()
        assert shares[None] > 0.98 and 0.85 < shares[1.0] < 0.95 and shares[4.0] < 0.4

    def test_a_hot_head_reads_badly_and_a_cold_one_well(self, whole):
        def right(T):
            return score(whole.params | {"0.W_Q": whole.params["0.W_Q"] / T}, SUMS).accuracy

        assert abs(right(0.1) - right(1)) < 0.02 and right(10) < 0.6

    def test_without_its_mask_it_looks_ahead(self, whole):
        """Scores that were hidden in training were never corrected."""
        open_eyed = replace(SUMS.config, causal=False)
        batch = held_out(SUMS, 1)[0]
        A = transformer(whole.params, batch.tokens, open_eyed).weights[0]
        assert np.triu(A, 1)[..., :-1, :].sum(axis=-1).mean() > 0.3

    def test_without_attention_it_guesses_after_as_many_steps(self):
        run = trained("0.W_O")
        assert run.step == SUMS.steps and score(run.params, SUMS).loss > 2.25

    def test_without_norm_as_well_and_without_residual_worse(self, whole):
        bare, alone = (
            score(trained(**k).params, replace(SUMS, config=replace(SUMS.config, **k))).loss
            for k in ({"norm": "none"}, {"residual": False})
        )
        assert abs(bare - score(whole.params, SUMS).loss) < 0.1 < alone - bare

    def test_a_mean_loss_may_lie_below_the_floor_by_the_luck_of_the_slips(self):
        """The true model, asked on single batches: on either side, within its error."""
        below = []
        for batch in held_out(SUMS, 40, seed=3):
            sums = (batch.tokens[:, :-1] + batch.tokens[:, 1:]) % 10
            right = sums == batch.targets[:, 1:]
            each = np.where(right, -np.log(0.91), -np.log(0.01))
            below.append(each.mean() - FLOOR)
        below = np.array(below)
        error = below.std(ddof=1) / np.sqrt(len(below))
        assert 0.2 < (below < 0).mean() < 0.8 and abs(below.mean()) < 3 * error

    def test_without_positions_the_third_digit_is_a_coin(self):
        run = trained("P")
        batches = held_out(SUMS, 20)
        right = np.mean(
            [
                (SUMS.model.logits(run.params, b, SUMS.config).argmax(-1) == b.targets).mean(axis=0)
                for b in batches
            ],
            axis=0,
        )
        assert right[1] > 0.85 and right[2] == pytest.approx(0.5, abs=0.08)

    def test_without_feed_forward_it_adds_badly_and_better_with_depth(self, whole):
        shallow, deep = (trained(d_ff=0, layers=layers) for layers in (1, 2))
        bare = score(shallow.params, shallow.recipe).accuracy
        assert 0.4 < bare < score(whole.params, SUMS).accuracy - 0.15
        assert score(deep.params, deep.recipe).accuracy > bare + 0.08

    def test_four_blocks_without_residual_do_not_learn(self):
        bare, full = (
            trained(layers=4, d_ff=32, residual=keep, steps=100) for keep in (False, True)
        )
        lost, kept = np.mean(bare.losses[-10:]), np.mean(full.losses[-10:])
        assert lost > 2.1 and kept < lost - 0.4
        train(bare, 300, progress=False)  # nor does it later
        assert np.mean(bare.losses[-10:]) > 2.0


class TestDepthAtTheStart:
    @pytest.mark.parametrize("changes", [{"norm": "none"}, {"norm": "pre"}, {"d_ff": 128}])
    def test_without_residual_all_tokens_become_one(self, changes):
        for seed in range(3):
            result = fresh(seed, residual=False, **changes)
            assert spread(result.embedding) > 0.9 and spread(result.blocks[-1].output) < 1e-12

    def test_with_a_residual_they_do_not(self):
        for changes in ({"norm": "none"}, {"d_ff": 128}):
            ends = [spread(fresh(seed, **changes).blocks[-1].output) for seed in range(5)]
            assert np.mean(ends) > 0.5

    def test_without_norm_sizes_grow_and_weights_saturate(self):
        result = fresh(0, norm="none", d_ff=128)
        sizes = [np.sqrt((b.output**2).mean()) for b in result.blocks]
        assert sizes[-1] > 50 * sizes[0]
        assert result.weights[-1].max(axis=-1).mean() > 0.99
        with_norm = fresh(0, d_ff=128)
        assert np.sqrt((with_norm.blocks[-1].output ** 2).mean()) < 6
        assert with_norm.weights[-1].max(axis=-1).mean() < 0.5

    def test_gradients_before_and_after(self):
        def sizes(norm, layers, name):
            config = Config(
                vocabulary=64, context=16, d=32, layers=layers, heads=2, d_ff=128, norm=norm
            )
            found = []
            for seed in (5, 6):
                text = np.random.default_rng(seed).integers(64, size=(4, 17))
                params = init_params(config, seed, np.float64)
                _, grads = loss_and_gradients(params, text[:, :-1], text[:, 1:], config)
                found.append([np.linalg.norm(grads[f"{b}.{name}"]) for b in range(layers)])
            return np.mean(found, axis=0)

        assert sizes("pre", 16, "W_2")[-1] < 0.75 * sizes("pre", 4, "W_2")[-1]
        deep = sizes("post", 16, "W_2")
        assert deep[-1] > 0.8 * sizes("post", 4, "W_2")[-1] and deep[0] > 0.4 * deep[-1]
        assert sizes("post", 16, "W_Q")[-1] < 0.1 * sizes("post", 4, "W_Q")[-1]


class TestTheorems:
    def test_sympy_agrees(self):
        for proof in (norm_forgets, tokens_alone, spread_shrinks, equal_tokens):
            assert proof().holds

    def test_a_forbidden_key_is_not_in_the_output(self):
        config = Config(vocabulary=5, context=5, d=8, heads=2, d_ff=16)
        layer = layer_params(init_params(config, 0, np.float64), 0)
        rng = np.random.default_rng(0)
        X, mask = rng.normal(size=(5, 8)), np.ones((5, 5), bool)
        mask[1, 3] = False
        changed = X.copy()
        changed[3] = rng.normal(size=8)  # a shift would be forgotten by the norm
        one, other = (block(Z, layer, heads=2, mask=mask).output for Z in (X, changed))
        assert np.array_equal(one[1], other[1]) and not np.allclose(one[2], other[2])

    def test_a_token_that_may_not_read_itself_still_depends_on_itself(self):
        config = Config(vocabulary=5, context=5, d=8, heads=2, d_ff=16)
        layer = layer_params(init_params(config, 0, np.float64), 0)
        X, mask = np.random.default_rng(1).normal(size=(5, 8)), ~np.eye(5, dtype=bool)
        changed = X.copy()
        changed[3] = np.random.default_rng(2).normal(size=8)
        one, other = (block(Z, layer, heads=2, mask=mask).output for Z in (X, changed))
        assert np.abs(one[3] - other[3]).max() > 1

    def test_what_the_theorem_on_averaging_does_not_say(self):
        """A steep value map, one that drops the common part, and a second head: many draws."""
        rng = np.random.default_rng(4)
        apart, two, steep = [], [], []
        for _ in range(100):
            X = rng.normal(size=4) + 0.1 * rng.normal(size=(6, 4))
            A, B = softmax(rng.normal(size=(2, 6, 6)))
            W, mean = rng.normal(size=(4, 4)), X.mean(axis=0)
            drop = np.eye(4) - np.outer(mean, mean) / (mean @ mean)
            steep.append(np.ptp(A @ X * 4, axis=0).max() > np.ptp(X, axis=0).max())
            apart.append(spread(A @ X @ drop) > spread(X))
            two.append(spread(A @ X @ W - B @ X @ W) > spread(X))
            for u in np.eye(4):  # what it does say: against the same map without mixing
                for M in (4 * np.eye(4), drop, W):
                    assert np.ptp(A @ X @ M @ u) <= np.ptp(X @ M @ u) + 1e-12
        assert np.mean(steep) > 0.8 and np.mean(apart) > 0.95 and np.mean(two) > 0.95

    def test_spread_shrinks_by_delta(self):
        rng = np.random.default_rng(1)
        for size in (0.3, 1.0, 8.0):
            A, y = softmax(size * rng.normal(size=(6, 9))), rng.normal(size=(9, 50))
            shared = np.minimum(A[:, None], A[None]).sum(axis=-1)
            delta = (1 - shared).max()
            assert (np.ptp(A @ y, axis=0) <= delta * np.ptp(y, axis=0) + 1e-12).all()
            scores = np.log(A)
            B = np.ptp(scores, axis=1).max() / 2  # a shift of each row makes them −B … B
            assert delta <= 1 - np.exp(-2 * B) + 1e-12

    def test_attention_among_equal_tokens_is_linear(self):
        rng = np.random.default_rng(2)
        layer = {name: rng.normal(size=(4, 4)) for name in ("W_Q", "W_K", "W_V", "W_O")}

        def first(x):
            X = np.tile(x, (3, 1))
            for _ in range(3):
                X = block(X, layer, heads=2, norm="none").output
            return X[0]

        x, y = rng.normal(size=(2, 4))
        np.testing.assert_allclose(first(2 * x - y), 2 * first(x) - first(y), rtol=1e-9)

    def test_scores_behind_a_norm_are_bounded(self):
        rng = np.random.default_rng(3)
        W_Q, W_K = rng.normal(size=(2, 8, 3))
        Z = layer_norm(1e4 * rng.normal(size=(50, 8)) + 7, eps=0)
        S = Z @ W_Q @ (Z @ W_K).T / np.sqrt(3)
        assert np.abs(S).max() <= 8 / np.sqrt(3) * np.linalg.norm(W_Q @ W_K.T, 2)

    def test_two_thirds_of_the_large_matrices(self):
        counts = count_params(Config(vocabulary=2, context=2, d=64, heads=4, d_ff=256))
        assert counts["attention"] == 4 * 64**2 and counts["norms"] == 6 * 64  # a last one too
        assert counts["feed_forward"] == 8 * 64**2 + 5 * 64
