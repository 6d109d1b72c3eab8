"""What the chapter on other attentions says of its experiments, measured here on other draws."""

import numpy as np
import pytest

from attn_lib import attention, causal_mask, window_mask
from attn_lib.cost import attention_cost, cache_size
from attn_lib.efficient import (
    attention_tiles,
    elu_plus_one,
    linear_attention,
    windowed_attention,
)
from attn_lib.linear import decay_mask, state_attention
from attn_lib.proofs import state_overflows


def draw(n, d, seed=5):
    return np.random.default_rng(seed).normal(size=(3, n, d))


class TestGain:
    def test_linear_pays_from_the_width_of_a_head_on(self):
        for d in (16, 64):
            for n, pays in ((d, False), (d + 1, True)):
                plain = attention_cost(n, d_k=d).multiply_adds
                linear = attention_cost(n, d_k=d, kind="linear").multiply_adds
                assert (linear < plain) == pays

    def test_fewer_heads_make_a_larger_state(self):
        spent = [
            h * attention_cost(2**17, d_k=512 // h, kind="linear").multiply_adds for h in (8, 1)
        ]
        full = 2 * 2**34 * 512
        assert full / spent[0] == pytest.approx(2032, rel=0.01)
        assert full / spent[1] == pytest.approx(256, rel=0.01)


class TestSinks:
    @pytest.mark.parametrize("seed", [11, 12, 13])
    def test_a_lost_sink_swells_the_output_and_a_kept_one_does_not(self, seed):
        Q, K, V = draw(40, 8, seed)
        bias = np.zeros(40)
        bias[0], V[0] = 7, 0
        causal, near = causal_mask(40), window_mask(40, window=16)
        kept = near | (causal & (np.arange(40) < 1))
        sizes = [
            np.linalg.norm(attention(Q, K, V, mask=np.where(m, bias, -np.inf)).output[-1])
            for m in (causal, near, kept)
        ]
        assert sizes[1] > 3 * max(sizes[0], sizes[2])

    def test_it_is_the_sink_and_not_the_window(self):
        """Without a sink nothing swells: the control."""
        Q, K, V = draw(40, 8, 11)
        sizes = [
            np.linalg.norm(attention(Q, K, V, mask=m).output[-1])
            for m in (causal_mask(40), window_mask(40, window=16))
        ]
        assert sizes[1] < 3 * sizes[0]


class TestLatent:
    def test_keys_need_not_be_made(self):
        rng = np.random.default_rng(14)
        C, Q, U_K, U_V = (rng.normal(size=s) for s in ((9, 3), (2, 9, 5), (2, 3, 5), (2, 3, 4)))
        made = attention(Q, C @ U_K, C @ U_V).output
        short = attention(Q @ U_K.mT, C, C, scale=1 / np.sqrt(5)).output @ U_V
        assert short == pytest.approx(made)
        joined = np.hstack([*(C @ U_K), *(C @ U_V)])
        assert joined.shape[1] == 18 and np.linalg.matrix_rank(joined) == 3

    def test_what_is_kept_of_128k_tokens(self):
        n, sizes = 131072, {"d": 4096, "heads": 32}
        kept = [
            cache_size(n, **sizes),
            cache_size(n, kv_heads=8, **sizes),
            n * 576,
            cache_size(4100, **sizes),
            32 * 128 * 128,
        ]
        assert kept == sorted(kept, reverse=True)


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


class TestWhatAStateHolds:
    def facts(self, rng, n, d=16):
        drawn = rng.normal(size=(2, n, d))
        return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)

    def recall(self, read, n, trials=25):
        rng, hits = np.random.default_rng(80), []
        for _ in range(trials):
            K, V = self.facts(rng, n)
            asked = rng.integers(n, size=8)
            hits.append((read(K[asked], K, V) @ V.T).argmax(axis=1) == asked)
        return np.mean(hits)

    def softmax(self, c):
        return lambda Q, K, V: attention(c * Q, K, V, scale=1).output

    def elu(self, c):
        return lambda Q, K, V: linear_attention(c**0.5 * Q, c**0.5 * K, V)

    def plain(self, Q, K, V):
        return Q @ (K.T @ V)

    def best(self, Q, K, V):
        return Q @ np.linalg.lstsq(K, V)[0]

    def last(self, w):
        return lambda Q, K, V: attention(40 * Q, K[-w:], V[-w:], scale=1).output

    def test_softmax_is_exact_only_when_it_is_sharp(self):
        assert self.recall(self.softmax(1), 16) < 0.7 and self.recall(self.softmax(1), 64) < 0.2
        assert self.recall(self.softmax(40), 256) > 0.98

    def test_16_facts_fit_into_16_rows_and_64_do_not(self):
        assert self.recall(self.best, 16) == 1
        assert 0.25 < self.recall(self.best, 64) < 0.55
        assert 0.75 < self.recall(self.plain, 16) < 0.97
        assert 0.15 < self.recall(self.plain, 64) < self.recall(self.best, 64)

    def test_elu_plus_one_fails_earlier_at_equal_scores_and_not_for_want_of_room(self):
        def best_of_elu(Q, K, V):
            return self.best(*(elu_plus_one(40**0.5 * M) for M in (Q, K)), V)

        for c in (1, 40):
            assert self.recall(self.elu(c), 16) < self.recall(self.softmax(c), 16) - 0.2
            assert self.recall(self.elu(c), 16) < self.recall(self.plain, 16) - 0.4
        assert self.recall(best_of_elu, 16) == 1

    def test_features_that_are_all_positive_overlap(self):
        K, _ = self.facts(np.random.default_rng(81), 50)
        F = elu_plus_one(40**0.5 * K)
        F /= np.linalg.norm(F, axis=1, keepdims=True)
        off = ~np.eye(50, dtype=bool)
        assert abs((K @ K.T)[off].mean()) < 0.05 and (F @ F.T)[off].mean() > 0.3

    def test_a_window_of_equal_size_recalls_less_of_64(self):
        assert 16 * 16 == 8 * 32  # numbers kept
        window = self.recall(self.last(8), 64)
        assert window < 0.2 and window < self.recall(self.plain, 64) - 0.1

    def test_what_every_state_misses(self):
        assert state_overflows().holds
        rng, shares = np.random.default_rng(82), []
        for _ in range(200):
            K, V = rng.normal(size=(40, 16)), rng.normal(size=(40, 3))
            missed = K @ np.linalg.lstsq(K, V)[0] - V
            shares.append((missed**2).sum() / (40 * 3))
        assert np.mean(shares) == pytest.approx(1 - 16 / 40, rel=0.05)

    def test_squares_hold_more_and_a_better_rule_would_hold_more_still(self):
        def squares(X):
            a, b = np.triu_indices(X.shape[1])
            return X[:, a] * X[:, b] * np.where(a == b, 1, np.sqrt(2))

        Q, K, _ = draw(5, 16, 83)
        assert squares(Q).shape[1] == 136 and 136 * 16 == 68 * 32
        assert squares(Q) @ squares(K).T == pytest.approx((Q @ K.T) ** 2)
        total = lambda Q, K, V: self.plain(squares(Q), squares(K), V)  # noqa: E731
        best = lambda Q, K, V: self.best(squares(Q), squares(K), V)  # noqa: E731
        assert self.recall(total, 64) > 0.8 and self.recall(best, 64) > 0.98
        assert self.recall(total, 256) == pytest.approx(self.recall(self.last(68), 256), abs=0.15)
        assert self.recall(best, 256) > self.recall(total, 256) + 0.3


class TestForgetting:
    def newest(self, read, keys, rewrites, trials=25):
        rng, hits = np.random.default_rng(90), []
        for _ in range(trials):
            drawn = [rng.normal(size=(n, 16)) for n in (keys, keys * rewrites)]
            K, V = (M / np.linalg.norm(M, axis=1, keepdims=True) for M in drawn)
            order = np.concatenate([rng.permutation(keys) for _ in range(rewrites)])
            last = [np.flatnonzero(order == key)[-1] for key in range(keys)]
            hits.append((read(K, K[order], V) @ V.T).argmax(axis=1) == last)
        return np.mean(hits)

    def state(self, gate=1.0, strength=None):
        def read(Q, K, V):
            Z = np.zeros((16, 16))
            for k, v in zip(K, V, strict=True):
                Z = gate * Z
                Z = Z + np.outer(k, v if strength is None else strength * (v - k @ Z))
            return Q @ Z

        return read

    def test_a_sum_never_forgets_and_rules_that_do_find_the_newest(self):
        assert self.newest(self.state(), 8, 8) < 0.2
        assert self.newest(self.state(gate=0.9), 8, 8) > 0.6
        for strength in (0.5, 1):
            assert self.newest(self.state(strength=strength), 8, 8) > 0.75

    @pytest.mark.parametrize("keys", [8, 16])
    def test_where_nothing_is_rewritten_full_strength_recalls_less_than_the_sum(self, keys):
        exact, added = self.state(strength=1), self.state()
        assert self.newest(exact, keys, 1) < self.newest(added, keys, 1) - 0.02

    def test_softmax_does_not_know_which_of_equal_keys_is_newer(self):
        def sharp(Q, K, V):
            return attention(40 * Q, K, V, scale=1).output

        assert self.newest(sharp, 8, 1) == 1
        assert self.newest(sharp, 8, 8) == pytest.approx(1 / 8, abs=0.06)

    def test_the_window_has_the_task_that_flatters_it(self):
        def last_8(Q, K, V):
            return attention(40 * Q, K[-8:], V[-8:], scale=1).output

        assert self.newest(last_8, 8, 4) > 0.99
        assert self.newest(last_8, 12, 4) == pytest.approx(2 / 3, abs=0.05)

    def test_long_keys_make_the_delta_rule_explode(self):
        K, V = np.random.default_rng(91).normal(size=(2, 200, 16))
        K /= np.linalg.norm(K, axis=1, keepdims=True)
        sizes = [
            np.abs(state_attention(K, length * K, V, strengths=np.ones(200))[1]).max()
            for length in (1, 2)
        ]
        assert sizes[0] < 10 and sizes[1] > 1e6

    def test_a_fading_state_is_a_masked_product_and_the_delta_rule_is_not(self):
        Q, K, V = draw(30, 4, 92)
        gates = np.random.default_rng(93).random(30)
        steps = state_attention(Q, K, V, gates=gates[:, None])[0]
        assert (Q @ K.T * decay_mask(gates)) @ V == pytest.approx(steps)
        delta = state_attention(Q, K, V, strengths=gates)[0]
        assert not np.allclose(delta, (Q @ K.T * decay_mask(gates)) @ V)
