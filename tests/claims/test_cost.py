"""What the chapter on cost says of its experiments, measured here on other draws."""

import numpy as np
import pytest

from attn_lib import attention, causal_mask, self_attention, softmax, window_mask
from attn_lib.cost import cache_size, data_moved, generation_cost, layer_cost
from attn_lib.efficient import (
    attention_tiles,
    elu_plus_one,
    linear_attention,
    tiled_attention,
    windowed_attention,
)
from attn_lib.model import Config, init_params, transformer
from attn_lib.proofs import layer_crossings, window_reach


def draw(n, d, seed=5):
    return np.random.default_rng(seed).normal(size=(3, n, d))


class TestCrossings:
    @pytest.mark.parametrize("d", [8, 96])
    @pytest.mark.parametrize(
        ("narrow", "f", "pairs", "n"),
        [
            (1, 0, lambda n: n * n, lambda d: 2 * d),
            (2, 0, lambda n: n * n, lambda d: 2 * d),
            (1, 4, lambda n: n * n, lambda d: 6 * d),
            (2, 4, lambda n: n * n, lambda d: 10 * d),
            (1, 0, lambda n: n * (n + 1) // 2, lambda d: 4 * d - 1),
            (1, 4, lambda n: n * (n + 1) // 2, lambda d: 12 * d - 1),
        ],
    )
    def test_where_they_are(self, d, narrow, f, pairs, n):
        n, b = n(d), d // narrow
        assert 2 * pairs(n) * b == 4 * n * d * b + 2 * n * d * f * d
        assert layer_crossings().holds

    def test_share_of_a_layer(self):
        cost = layer_cost(2000, 4096)
        share = (cost["scores"] + cost["mixing"]) / cost["total"]
        assert share == pytest.approx(2000 / (2000 + 6 * 4096)) and share < 0.1


class TestPaths:
    def layers(self, n, mask):
        ways, depth = mask, 1
        while not ways[-1, 0]:
            ways, depth = ways @ mask, depth + 1
        return depth

    @pytest.mark.parametrize("w", [2, 3, 5, 12, 13])
    @pytest.mark.parametrize("n", [2, 3, 13, 14])
    def test_through_windows(self, n, w):
        assert self.layers(n, window_mask(n, window=w)) == -(-(n - 1) // (w - 1))

    def test_one_place_further_takes_a_layer_more(self):
        assert window_reach().holds
        assert self.layers(7, window_mask(7, window=3)) == 3
        assert self.layers(8, window_mask(8, window=3)) == 4


def test_steps_shrink_what_came_first_and_attention_shares_it_out():
    def recurrent(X, W, U, _):
        state = np.zeros(16)
        for x in X:
            state = np.tanh(state @ W + x @ U)
        return state

    def attend(X, *maps):
        return self_attention(X, *maps).output[-1]

    moved = {}
    for read in (recurrent, attend):
        for n in (5, 20, 80):
            gaps = []
            for seed in range(100, 110):
                rng = np.random.default_rng(seed)
                maps, X = rng.normal(size=(3, 16, 16)) / 4, rng.normal(size=(n, 16))
                other = np.vstack([rng.normal(size=16), X[1:]])
                gaps.append(np.abs(read(X, *maps) - read(other, *maps)).max())
            moved[read, n] = np.mean(gaps)
    assert moved[recurrent, 20] < moved[recurrent, 5] / 100 and moved[recurrent, 80] < 1e-9
    assert moved[attend, 80] > moved[attend, 5] / 60


class TestCache:
    def test_cached_is_full(self):
        config = Config(vocabulary=9, context=12, d=8, layers=2, heads=2, d_ff=16)
        params, text = init_params(config, 3, np.float64), np.arange(12) % 9
        full, past, gap = transformer(params, text, config).logits, None, 0
        for t, token in enumerate(text):
            result = transformer(params, [token], config, past=past)
            past, gap = result.cache, max(gap, np.abs(result.logits[0] - full[t]).max())
        assert 0 < gap < 1e-6

    @pytest.mark.parametrize("causal", [True, False])
    def test_keys_of_the_second_layer_stay_only_under_a_causal_mask(self, causal):
        rng = np.random.default_rng(6)
        X, W = rng.normal(size=(6, 4)), rng.normal(size=(4, 4, 4)) / 2

        def second(X):
            mask = causal_mask(len(X)) if causal else None
            return (X + self_attention(X, *W[:3], mask=mask).output) @ W[3]

        moved = np.abs(second(X)[:5] - second(X[:5])).max()
        assert (moved < 1e-12) == causal and (causal or moved > 0.05)

    def test_saves_a_power_of_n(self):
        for n in (3000, 6000):
            factor = generation_cost(n, 4, cached=False, d_ff=0) / generation_cost(n, 4, d_ff=0)
            assert factor == pytest.approx(2 * n / 3, rel=0.01)

    def test_size_at_128k(self):
        sizes = {"layers": 32, "heads": 32}
        assert 2 * cache_size(128 * 1024, 4096, **sizes) == 2**36
        assert 2 * cache_size(128 * 1024, 4096, kv_heads=8, **sizes) == 2**34


class TestTiles:
    def test_float32_errors_are_of_one_size_and_bits_differ(self):
        Q, K, V = draw(1024, 64).astype(np.float32)
        exact = attention(*(a.astype(np.float64) for a in (Q, K, V))).output
        once = attention(Q, K, V).output
        assert np.abs(once - exact).max() < 2e-6
        for tile in (1024, 17, 1):
            output = tiled_attention(Q, K, V, tile=(1024, tile))
            assert np.abs(output - exact).max() < 2e-6
            assert not np.array_equal(output, once)

    def test_the_formula_without_its_guard_gives_nan_and_a_test_at_the_end_gives_0(self):
        S, V = np.array([-np.inf, -np.inf, 1, 2]), np.array([5.0, 5, 1, 3])
        top, total, mixed = -np.inf, 0.0, 0.0
        with np.errstate(invalid="ignore"):
            for j in (0, 2):
                new = max(top, S[j : j + 2].max())
                powers = np.exp(S[j : j + 2] - new)
                total = np.exp(top - new) * total + powers.sum()
                mixed = np.exp(top - new) * mixed + powers @ V[j : j + 2]
                top = new
        assert np.isnan(mixed / total)
        hidden = mixed / total if total > 0 else 0.0
        assert hidden == 0.0 and softmax(S) @ V == pytest.approx(2.46211716)

    def test_only_tall_tiles_move_less(self):
        plain = data_moved(2**16, d_k=64)
        for rows in (128, 256, 1024):
            saved = plain / data_moved(2**16, d_k=64, kind="tiled", rows=rows)
            assert saved == pytest.approx(2 * rows / 64, rel=0.02)
        assert plain / data_moved(2**16, d_k=64, kind="tiled", rows=32) < 1.01
        assert plain < data_moved(2**16, d_k=64, kind="tiled", rows=16)


class TestPatterns:
    i, j = np.arange(64)[:, None], np.arange(64)
    strided = causal_mask(64) & ((i - j < 8) | ((i - j) % 8 == 0))

    def tiles(self, mask):
        zeros = np.zeros((64, 1))
        return len(list(attention_tiles(zeros, zeros, zeros, mask=mask, tile=(8, 8))))

    def test_a_thin_pattern_skips_no_tile(self):
        assert self.strided.sum() < window_mask(64, window=16).sum() < causal_mask(64).sum() / 2
        assert self.tiles(self.strided) == self.tiles(causal_mask(64)) == 36
        assert self.tiles(window_mask(64, window=16)) == 21

    def test_but_reaches_everything_in_two_layers(self):
        np.testing.assert_array_equal(self.strided @ self.strided, causal_mask(64))
        near = window_mask(64, window=16)
        assert (near @ near).sum() < causal_mask(64).sum()
        for stride in (5, 7):  # 64 is no multiple of these
            mask = causal_mask(64) & (
                (self.i - self.j < stride) | ((self.i - self.j) % stride == 0)
            )
            np.testing.assert_array_equal(mask @ mask, causal_mask(64))
            assert mask.sum(axis=1).max() <= stride + 63 // stride

    @pytest.mark.parametrize(("n", "w"), [(6, 3), (9, 9), (20, 1)])
    def test_a_window_counts_its_own_key(self, n, w):
        assert window_mask(n, window=w).sum() == n * w - w * (w - 1) // 2


class TestLinear:
    def off(self, output, wanted):
        return np.sqrt(((output - wanted) ** 2).mean() / (wanted**2).mean())

    def test_how_far_it_is_from_softmax(self):
        Q, K, V = draw(256, 16)
        mean = linear_attention(0 * Q, 0 * K, V, causal=True)
        errors = []
        for c in (0, 1, 4):
            wanted = attention(c * Q, K, V, mask=causal_mask(256)).output
            errors.append(self.off(linear_attention(c * Q, K, V, causal=True), wanted))
            near = self.off(windowed_attention(c * Q, K, V, window=64), wanted)
            assert near > 0.4  # and the other cheap way is another function too
            if c == 1:
                assert 0.8 < errors[-1] / self.off(mean, wanted) < 1
        assert errors[0] < 0.15 < 0.5 < errors[1] < 0.9 < errors[2] < 1

    def test_no_finite_number_of_features_is_softmax(self):
        x = np.arange(4.0)[:, None]
        A = attention(x, x, x, scale=1.0).weights
        assert np.linalg.matrix_rank(A) == 4
        phi = np.random.default_rng(7).random(size=(2, 4, 3))
        assert np.linalg.matrix_rank(phi[0] @ phi[1].T) == 3

    def test_a_sum_over_all_keys_shows_the_future(self):
        Q, K, V = draw(6, 4)
        other = V.copy()
        other[5] += 10
        for causal in (False, True):
            outputs = (linear_attention(Q, K, v, causal=causal)[0] for v in (V, other))
            assert (np.abs(np.subtract(*outputs)).max() == 0) == causal

    def test_without_its_normaliser_it_grows_with_the_text(self):
        sizes = []
        for n in (50, 500):
            Q, K, V = draw(n, 4)
            sizes.append((elu_plus_one(Q) @ (elu_plus_one(K).T @ (V + 1))).mean())
        assert sizes[1] / sizes[0] == pytest.approx(10, rel=0.3)


class TestRecall:
    def recall(self, attend, n, d=16, trials=20):
        rng, hits = np.random.default_rng(8), []
        for _ in range(trials):
            K, V = rng.normal(size=(2, n, d))
            K /= np.linalg.norm(K, axis=1, keepdims=True)
            V /= np.linalg.norm(V, axis=1, keepdims=True)
            asked = rng.integers(n, size=8)
            hits.append((attend(K[asked], K, V) @ V.T).argmax(axis=1) == asked)
        return np.mean(hits)

    def squares(self, Q, K, V):
        weights = (Q @ K.T) ** 2
        return weights / weights.sum(axis=1, keepdims=True) @ V

    def test_a_state_of_fixed_size_mixes_up_what_it_holds(self):
        def sharp(Q, K, V):
            return attention(40 * Q, K, V).output

        def longer(Q, K, V):
            return linear_attention(10 * Q, 10 * K, V)

        assert self.recall(sharp, 256) > 0.98
        assert self.recall(longer, 4) > 0.6 > 0.2 > self.recall(longer, 64)
        assert self.recall(longer, 16) > self.recall(linear_attention, 16) + 0.1

    def test_a_window_of_the_same_memory_holds_more_than_squares(self):
        assert abs(16**2 * 17 - 128 * 32) < 0.1 * 128 * 32

        def last(Q, K, V):
            return attention(40 * Q, K[-128:], V[-128:]).output

        assert self.recall(last, 64) > 0.98 > self.recall(self.squares, 64) > 0.75
        assert self.recall(last, 256) > 0.4 > self.recall(self.squares, 256) + 0.05
