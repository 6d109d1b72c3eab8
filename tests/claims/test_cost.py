"""What the chapter on cost says of its experiments, measured here on other draws."""

import numpy as np
import pytest

from attn_lib import attention, causal_mask, self_attention, softmax, window_mask
from attn_lib.cost import attention_cost, cache_size, data_moved, generation_cost, layer_cost
from attn_lib.efficient import softmax_state, tiled_attention
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
        assert share == pytest.approx(2000 / (2000 + 6 * 4096)) and share / 2 < 1 / 20

    def test_below_the_crossing_the_square_is_not_nothing(self):
        for d in (64, 512):
            shares = []
            for n in (2 * d, 3 * d, 6 * d):
                cost = layer_cost(n, d)
                shares.append((cost["scores"] + cost["mixing"]) / cost["total"])
            assert shares == pytest.approx([1 / 4, 1 / 3, 1 / 2])


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


class Matrix:
    """A matrix that knows only when it is there, if each product takes one beat."""

    def __init__(self, there=0):
        self.there = there

    def __matmul__(self, other):
        return Matrix(max(self.there, other.there) + 1)

    def __add__(self, other):
        return Matrix(max(self.there, other.there))

    @property
    def T(self):
        return self


class TestWhatMustWait:
    def attend(self, n):
        X, W_Q, W_K, W_V, W_O = (Matrix() for _ in range(5))
        return (((X @ W_Q) @ (X @ W_K).T) @ (X @ W_V)) @ W_O

    def recur(self, n):
        X, W, U = Matrix(), Matrix(), Matrix()
        inputs, state = X @ U, Matrix()
        for _ in range(n):
            state = state @ W + inputs
        return state

    @pytest.mark.parametrize("n", [7, 50, 300])
    def test_the_chain_of_attention_does_not_grow_and_that_of_a_recurrent_net_does(self, n):
        assert self.attend(n).there == 4  # with the output map
        assert self.recur(n).there == n

    def test_the_control_does_the_same_work_without_the_chain(self):
        """What is timed against the loop gives the states of the loop, from them, in one chain."""
        rng = np.random.default_rng(9)
        X, (W, U) = rng.normal(size=(3, 30, 8)), rng.normal(size=(2, 8, 8)) / 3
        state, states = np.zeros((3, 8)), []
        for t in range(30):
            state = np.tanh(state @ W + X[:, t] @ U)
            states.append(state)
        states = np.stack(states, axis=1)
        before = np.concatenate([np.zeros((3, 1, 8)), states[:, :-1]], axis=1)
        assert np.tanh(before @ W + X @ U) == pytest.approx(states)
        assert (Matrix() @ Matrix() + Matrix() @ Matrix()).there == 1


class TestWhatArrives:
    def carried(self, read, n):
        """By how much a small move of the first token is multiplied: the median of 15 draws."""
        factors = []
        for seed in range(200, 215):
            rng = np.random.default_rng(seed)
            maps, X = rng.normal(size=(3, 16, 16)) / 4, rng.normal(size=(n, 16))
            other, step = X.copy(), rng.normal(size=16)
            other[0] += 1e-7 * step / np.linalg.norm(step)
            factors.append(np.linalg.norm(read(other, *maps) - read(X, *maps)) / 1e-7)
        return np.median(factors)

    def net(self, scale):
        def read(X, W, U, _):
            state = np.zeros(16)
            for x in X:
                state = np.tanh(scale * state @ W + x @ U)
            return state

        return read

    def test_a_recurrent_net_lets_it_vanish_or_explode_by_the_scale_of_its_map(self):
        small, large = self.net(1), self.net(3)
        assert self.carried(small, 40) < 1e-6 < 1e-3 < self.carried(small, 5) < 1
        assert self.carried(large, 40) > 5 * self.carried(large, 5)
        assert self.carried(large, 40) > 1
        assert 1e-3 < self.carried(self.net(2), 40) < 1  # between them

    def test_attention_shares_it_out(self):
        def attend(X, *maps):
            return self_attention(X, *maps).output[-1]

        few, many = self.carried(attend, 5), self.carried(attend, 40)
        assert few / 30 < many < few / 3  # about as 1/n


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

    def test_two_halves_are_joined_by_one_number_each(self):
        rng = np.random.default_rng(12)
        S, V = 3 * rng.normal(size=20), rng.normal(size=(20, 3))
        states = [softmax_state(S[part], V[part]) for part in (slice(8), slice(8, 20))]
        first, second = (state.maximum + np.log(state.normaliser) for state in states)
        t = 1 / (1 + np.exp(second - first))
        joined = t * states[0].output + (1 - t) * states[1].output
        assert joined == pytest.approx(softmax(S) @ V)

    def test_the_tile_changes_memory_and_data_moved_in_opposite_directions(self):
        low = {"d_k": 64, "kind": "tiled"}
        held, moved = [], []
        for tile in ((16, 64), (256, 1024), (2000, 2000)):
            held.append(attention_cost(2000, tile=tile, **low).memory)
            moved.append(data_moved(2000, rows=tile[0], **low))
        assert held == sorted(held) and moved == sorted(moved, reverse=True)
        Q, K, V = draw(400, 16, seed=6).astype(np.float32)
        exact = attention(*(M.astype(float) for M in (Q, K, V))).output
        errors = [
            np.abs(tiled_attention(Q, K, V, tile=tile) - exact).max()
            for tile in ((16, 64), (256, 1024))
        ]
        assert max(errors) < 5 * min(errors)
