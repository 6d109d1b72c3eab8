"""attn_lib.efficient against plain attention, loops, hand-worked values and field cases."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attn_lib import (
    attention,
    causal_mask,
    combine_masks,
    cost,
    efficient,
    padding_mask,
    softmax,
    window_mask,
)
from attn_lib.efficient import (
    KVCache,
    SoftmaxState,
    attention_in_tiles,
    attention_tiles,
    elu_plus_one,
    key_range,
    linear_attention,
    linear_attention_step,
    merge_states,
    online_softmax,
    softmax_state,
    tiled_attention,
    windowed_attention,
)

DTYPES = [np.float16, np.float32, np.float64]
ROUNDING = {np.float16: 2e-3, np.float32: 2e-6, np.float64: 1e-12}
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 9)
tiles = st.tuples(st.integers(1, 10), st.integers(1, 10))


def draw(seed, n=9, m=7, d_k=3, d_v=2, batch=()):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*batch, *s)) for s in ((n, d_k), (m, d_k), (m, d_v))]


def cut(S, V, tile):
    """The tiles of a row of scores, as `online_softmax` takes them."""
    for j in range(0, S.shape[-1], tile):
        yield S[..., j : j + tile], V[..., j : j + tile, :]


class TestOnlineSoftmax:
    def test_two_keys_by_hand(self):
        V = np.array([[10.0], [20.0]])
        first, second = online_softmax(cut(np.array([[0, math.log(3)]]), V, 1))
        assert first == (0, 1, 10)  # μ = 0: 1, 1 · 10
        np.testing.assert_allclose(second.maximum, math.log(3))
        np.testing.assert_allclose(second.normaliser, 1 / 3 + 1)
        np.testing.assert_allclose(second.accumulator, [[10 / 3 + 20]])
        np.testing.assert_allclose(second.output, [[17.5]])  # weights ¼ and ¾

    @pytest.mark.parametrize("tile", [1, 2, 3, 4])
    def test_a_first_tile_with_nothing_allowed(self, tile):
        S, V = np.array([[-np.inf, -np.inf, 1, 2]]), np.array([[5.0], [5], [1], [3]])
        *_, last = online_softmax(cut(S, V, tile))
        np.testing.assert_allclose(last.output, [[2.46211716]], atol=1e-8)

    @pytest.mark.parametrize("tile", [1, 2, 3])
    def test_nothing_allowed_at_all(self, tile):
        S = np.array([[-np.inf] * 3, [0.0, -np.inf, 0]])
        *_, last = online_softmax(cut(S, np.array([[2.0], [4], [6]]), tile))
        assert last.maximum.tolist() == [-np.inf, 0]
        assert last.normaliser.tolist() == [0, 2]
        assert last.output.tolist() == [[0], [4]]

    def test_a_last_tile_with_nothing_allowed_changes_nothing(self):
        before = softmax_state([[1.0, 2]], [[1.0], [3]])
        after = merge_states(before, softmax_state([[-np.inf] * 2], [[5.0], [5]]))
        assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))

    @given(seeds, st.integers(1, 8), st.floats(1, 500))
    def test_is_the_softmax_whatever_the_tile_and_the_size(self, seed, tile, size):
        S, V = draw(seed, m=8)[0] @ np.eye(3, 8) * size, draw(seed, m=8)[2]
        *_, last = online_softmax(cut(S, V, tile))
        np.testing.assert_allclose(last.output, softmax(S) @ V, atol=1e-12)
        np.testing.assert_array_equal(last.maximum, S.max(axis=-1))

    @given(seeds)
    def test_merging_is_associative_and_commutative(self, seed):
        rng = np.random.default_rng(seed)
        a, b, c = (
            softmax_state(rng.normal(scale=9, size=(2, 3)), rng.normal(size=(3, 2)))
            for _ in range(3)
        )
        ways = [
            merge_states(merge_states(a, b), c),
            merge_states(a, merge_states(b, c)),
            merge_states(c, merge_states(b, a)),
        ]
        for way, part in itertools.product(ways[1:], range(3)):
            np.testing.assert_allclose(way[part], ways[0][part], rtol=1e-12, atol=1e-12)

    def test_the_running_maximum_keeps_exp_from_overflowing(self):
        S, V = np.array([[0.0, 1000, 2000]], np.float32), np.eye(3, dtype=np.float32)
        states = list(online_softmax(cut(S, V, 1)))
        assert [s.output.tolist() for s in states] == [[[1, 0, 0]], [[0, 1, 0]], [[0, 0, 1]]]

    def test_leaves_the_scores_as_they_were(self):
        S = np.array([[1.0, 2, 3]])
        softmax_state(S, np.eye(3))
        assert S.tolist() == [[1, 2, 3]]

    def test_reads_float16_in_float32(self):
        state = softmax_state(np.zeros((1, 4096), np.float16), np.ones((4096, 1), np.float16))
        assert {part.dtype for part in state} == {np.dtype(np.float32)}
        assert state.normaliser == 4096  # in float16 it would stop at 2048


class TestTiled:
    @given(seeds, sizes, sizes, tiles)
    def test_equals_attention(self, seed, n, m, tile):
        Q, K, V = draw(seed, n, m)
        got = tiled_attention(Q, K, V, tile=tile)
        np.testing.assert_allclose(got, attention(Q, K, V).output, atol=1e-12)

    @given(seeds, sizes, sizes, tiles, st.integers(-10, 10))
    def test_causal(self, seed, n, m, tile, offset):
        Q, K, V = draw(seed, n, m)
        got = tiled_attention(Q, K, V, causal=True, offset=offset, tile=tile)
        keep = causal_mask(n, m, offset=offset)
        np.testing.assert_allclose(got, attention(Q, K, V, mask=keep).output, atol=1e-12)

    @given(seeds, sizes, sizes, tiles, st.booleans(), st.booleans())
    def test_masks(self, seed, n, m, tile, causal, additive):
        Q, K, V = draw(seed, n, m)
        rng = np.random.default_rng(seed)
        mask = rng.random((n, m)) < 0.3  # so few that whole tiles and rows are hidden
        if additive:
            mask = np.where(mask, rng.normal(size=(n, m)), -np.inf)
        got = tiled_attention(Q, K, V, mask=mask, causal=causal, tile=tile)
        both = combine_masks(mask, causal_mask(n, m) if causal else None)
        np.testing.assert_allclose(got, attention(Q, K, V, mask=both).output, atol=1e-12)

    @pytest.mark.parametrize("shape", [(7,), (1, 7), (9, 1), (2, 1, 9, 7), (3, 1, 7), ()])
    @pytest.mark.parametrize("tile", [(2, 3), (9, 7)])
    def test_masks_that_broadcast(self, shape, tile):
        Q, K, V = draw(3, batch=(2, 3))
        mask = np.random.default_rng(3).random(shape) < 0.7
        got = tiled_attention(Q, K, V, mask=mask, tile=tile)
        np.testing.assert_allclose(got, attention(Q, K, V, mask=mask).output, atol=1e-12)

    def test_leading_axes_broadcast_and_values_may_have_more_of_them(self):
        Q, K, V = draw(4, batch=(2, 3))
        for q, k, v in [(Q, K[0], V), (Q[:, :1], K, V[1]), (Q[0, 0], K[0, 0], V)]:
            got = tiled_attention(q, k, v, tile=(2, 3), causal=True)
            expected = attention(q, k, v, mask=causal_mask(9, 7)).output
            assert got.shape == expected.shape
            np.testing.assert_allclose(got, expected, atol=1e-12)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("scale", [None, 1.0, 0.3])
    def test_dtype_and_scale(self, dtype, scale):
        Q, K, V = (a.astype(dtype) for a in draw(5))
        got = tiled_attention(Q, K, V, scale=scale, tile=(4, 2))
        assert got.dtype == dtype
        exact = attention(*(a.astype(np.float64) for a in (Q, K, V)), scale=scale).output
        np.testing.assert_allclose(got, exact, atol=ROUNDING[dtype])

    def test_float16_does_not_overflow(self):
        Q = K = np.full((2, 16), 80, np.float16)  # q · k = 102400; float16 ends at 65504
        got = tiled_attention(Q, K, np.array([[1], [3]], np.float16), tile=(1, 1))
        assert got.tolist() == [[2], [2]]

    def test_a_float64_mask_keeps_float32_what_it_is(self):
        Q, K, V = (a.astype(np.float32) for a in draw(5))
        assert tiled_attention(Q, K, V, mask=np.zeros((9, 7))).dtype == np.float32

    @pytest.mark.parametrize("tile", [1024, 17, 1])
    def test_float32_is_as_exact_as_the_plain_formula_but_not_equal(self, tile):
        Q, K, V = (a.astype(np.float32) for a in draw(6, n=1024, m=1024, d_k=64, d_v=64))
        exact = attention(*(a.astype(np.float64) for a in (Q, K, V))).output
        got = tiled_attention(Q, K, V, tile=(256, tile))
        assert 0 < abs(got - exact).max() < 2e-6
        assert 0 < abs(attention(Q, K, V).output - exact).max() < 2e-6
        assert (got != attention(Q, K, V).output).any()

    def test_never_holds_a_matrix_of_queries_by_keys(self):
        Q, K, V = (a.astype(np.float32) for a in draw(7, n=2048, m=2048, d_k=8, d_v=8))
        keep = padding_mask(2000, 2048)
        for options in [{}, {"causal": True}, {"mask": keep}, {"mask": keep, "causal": True}]:
            used = cost.peak_memory(
                lambda options=options: tiled_attention(Q, K, V, tile=(64, 64), **options)
            )
            assert used < 2048 * 2048 / 4  # even as booleans, n × n would take four times this

    def test_holds_one_tile_of_scores_and_one_state_for_the_queries(self):
        Q, K, V = (a.astype(np.float32) for a in draw(7, n=2048, m=2048, d_k=8, d_v=8))
        for tile, rows in [((16, 2048), slice(None)), ((64, 1), slice(64))]:
            used = cost.peak_memory(
                lambda tile=tile, rows=rows: tiled_attention(Q[rows], K, V, tile=tile)
            )
            assert used < 2048 * 2048 / 4

    def test_no_queries_no_keys(self):
        Q, K, V = draw(8)
        np.testing.assert_array_equal(tiled_attention(Q, K[:0], V[:0]), np.zeros((9, 2)))
        assert tiled_attention(Q[:0], K, V, causal=True).shape == (0, 2)

    def test_skips_tiles_in_which_all_is_hidden(self):
        Q, K, V = draw(9, n=4, m=6)
        K[4:], V[4:] = np.nan, np.nan  # touched, these would show
        keep = np.ones((4, 6), bool)
        keep[:, 4:] = False
        got = tiled_attention(Q, K, V, mask=keep, tile=(2, 2))
        np.testing.assert_allclose(got, attention(Q, K[:4], V[:4]).output, atol=1e-12)


class TestInTiles:
    """The short form that chapter 11 shows."""

    @given(seeds, sizes, sizes, tiles)
    def test_equals_attention(self, seed, n, m, tile):
        Q, K, V = draw(seed, n, m)
        got = attention_in_tiles(Q, K, V, tile=tile)
        np.testing.assert_allclose(got, attention(Q, K, V).output, atol=1e-12)

    @pytest.mark.parametrize(("n", "m"), [(0, 7), (9, 0), (0, 0), (5, 3)])
    @pytest.mark.parametrize("batch", [(), (2, 3)])
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_sizes_batches_and_precision(self, n, m, batch, dtype):
        Q, K, V = (M.astype(dtype) for M in draw(1, n, m, batch=batch))
        got = attention_in_tiles(Q, K, V, tile=(2, 2))
        assert (got.dtype, got.shape) == (dtype, (*batch, n, 2))
        exact = attention(*(M.astype(np.float64) for M in (Q, K, V))).output
        np.testing.assert_allclose(got, exact, atol=ROUNDING[dtype])

    def test_leading_axes_broadcast(self):
        Q, K, V = draw(4, batch=(2, 3))
        for q, k, v in [(Q, K[0], V), (Q[:, :1], K, V[1]), (Q[0, 0], K[0, 0], V)]:
            got, expected = attention_in_tiles(q, k, v, tile=(4, 3)), attention(q, k, v).output
            assert got.shape == expected.shape
            np.testing.assert_allclose(got, expected, atol=1e-12)

    def test_one_tile_is_the_default(self):
        Q, K, V = draw(5)
        np.testing.assert_allclose(
            attention_in_tiles(Q, K, V), attention(Q, K, V).output, atol=1e-12
        )

    def test_large_scores_do_no_harm(self):
        Q = K = np.full((2, 16), 80, np.float16)
        got = attention_in_tiles(Q, K, np.array([[1], [3]], np.float16), tile=(1, 1))
        assert got.tolist() == [[2], [2]]

    def test_refuses(self):
        Q, K, V = draw(6)
        with pytest.raises(ValueError, match=r"tile\[1\] must be a whole number ≥ 1, got 0"):
            attention_in_tiles(Q, K, V, tile=(1, 0))
        with pytest.raises(ValueError, match="must agree in m: got Q"):
            attention_in_tiles(Q, K, V[:3])
        with pytest.raises(ValueError, match=r"d_k ≥ 1: got Q .*, V \(7, 2\)"):
            attention_in_tiles(Q[:, :0], K[:, :0], V)


class TestTiles:
    def test_says_after_each_tile_what_is_known(self):
        Q, K, V = draw(10)
        steps = list(attention_tiles(Q, K, V, tile=(4, 3)))
        corners = [(s.queries.start, s.keys.start) for s in steps]
        assert corners == list(itertools.product((0, 4, 8), (0, 3, 6)))
        for queries, keys, state in steps:
            seen = attention(Q[queries], K[: keys.stop], V[: keys.stop])
            np.testing.assert_allclose(state.output, seen.output, atol=1e-12)
            np.testing.assert_allclose(state.maximum, seen.scores.max(axis=1), atol=1e-12)

    def test_tiles_hold_256_queries_and_1024_keys(self):
        Q, K, V = draw(10, n=300, m=1100)
        (first, *_) = steps = list(attention_tiles(Q, K, V))
        assert first[:2] == (slice(0, 256), slice(0, 1024))
        assert [(s.queries.stop, s.keys.stop) for s in steps[1:]] == [
            (256, 1100), (300, 1024), (300, 1100)
        ]  # fmt: skip

    def test_the_first_query_is_aligned_with_the_first_key(self):
        (step,) = attention_tiles(*draw(10), causal=True)
        expected = attention(*draw(10), mask=causal_mask(9, 7)).output
        np.testing.assert_allclose(step.state.output, expected, atol=1e-12)

    def test_stays_below_the_diagonal(self):
        Q, K, V = draw(11, n=8, m=8)
        steps = attention_tiles(Q, K, V, causal=True, tile=(2, 2))
        corners = {(s.queries.start, s.keys.start) for s in steps}
        assert corners == {(i, j) for i in range(0, 8, 2) for j in range(0, i + 1, 2)}

    def test_ends_at_the_output(self):
        Q, K, V = draw(12)
        O = np.zeros((9, 2))
        for queries, _, state in attention_tiles(Q, K, V, causal=True, offset=-2, tile=(2, 2)):
            O[queries] = state.output
        got = tiled_attention(Q, K, V, causal=True, offset=-2, tile=(2, 2))
        np.testing.assert_array_equal(O, got)


class TestKeyRange:
    def test_by_hand(self):
        queries = slice(4, 6)
        assert key_range(queries, 20) == (0, 20)
        assert key_range(queries, 20, window=3) == (2, 6)  # query 4 reads from 2, query 5 up to 5
        assert key_range(queries, 20, window=3, offset=1) == (3, 7)
        assert key_range(queries, 20, window=9) == (0, 6)
        assert key_range(queries, 5, window=1) == (4, 5)

    def test_no_mask_is_made_for_what_lies_outside(self, monkeypatch):
        made, tile_mask = [], efficient._tile_mask

        def spy(plan, queries, keys):
            made.append((queries.start, keys.start))
            return tile_mask(plan, queries, keys)

        monkeypatch.setattr(efficient, "_tile_mask", spy)
        windowed_attention(*draw(13, n=8, m=8), window=2, tile=(2, 2))
        assert made == [(0, 0), (2, 1), (2, 3), (4, 3), (4, 5), (6, 5), (6, 7)]


class TestWindowed:
    @given(seeds, sizes, sizes, tiles, st.integers(1, 12), st.integers(-10, 10))
    def test_equals_attention_with_the_mask(self, seed, n, m, tile, window, offset):
        Q, K, V = draw(seed, n, m)
        got = windowed_attention(Q, K, V, window=window, offset=offset, tile=tile)
        keep = window_mask(n, m, window=window, offset=offset)
        np.testing.assert_allclose(got, attention(Q, K, V, mask=keep).output, atol=1e-12)

    def test_counts_the_own_key(self):
        V = np.arange(6.0)[:, None]
        got = windowed_attention(np.zeros((6, 1)), np.zeros((6, 1)), V, window=3)
        np.testing.assert_allclose(got[:, 0], [0, 0.5, 1, 2, 3, 4])  # means of the last three

    def test_with_padding(self):
        Q, K, V = draw(13, batch=(2,))
        pad = padding_mask(np.array([7, 4]), 7)
        got = windowed_attention(Q, K, V, window=3, mask=pad, tile=(2, 2))
        keep = combine_masks(pad, window_mask(9, 7, window=3))
        np.testing.assert_allclose(got, attention(Q, K, V, mask=keep).output, atol=1e-12)

    def test_the_tile_is_as_high_as_the_window_within_bounds_or_as_asked(self, monkeypatch):
        monkeypatch.setattr(efficient, "_attend", lambda *plan: plan[-1])
        heights = {1: 32, 32: 32, 33: 33, 256: 256, 600: 256}
        for window, height in heights.items():
            assert windowed_attention(*draw(13), window=window) == (height, 1024)
        assert windowed_attention(*draw(13), window=40, tile=(2, 3)) == (2, 3)

    def test_default_tile(self):
        Q, K, V = draw(14, n=700, m=700)
        for window in (1, 40, 600):
            keep = window_mask(700, window=window)
            got = windowed_attention(Q, K, V, window=window)
            np.testing.assert_allclose(got, attention(Q, K, V, mask=keep).output, atol=1e-12)


def linear_by_loops(Q, K, V, causal):
    """One pair at a time: weights φ(q)·φ(k), each written out."""

    def phi(x):
        return [c + 1 if c > 0 else math.exp(c) for c in x]

    O = np.zeros((len(Q), V.shape[1]))
    for i, q in enumerate(Q):
        seen = range(i + 1) if causal else range(len(K))
        weights = [math.fsum(a * b for a, b in zip(phi(q), phi(K[j]), strict=True)) for j in seen]
        for c in range(V.shape[1]):
            O[i, c] = math.fsum(w * V[j, c] for w, j in zip(weights, seen, strict=True))
        O[i] /= math.fsum(weights)
    return O


class TestLinear:
    @given(seeds, sizes, sizes, st.integers(1, 10))
    def test_equals_loops(self, seed, n, m, chunk):
        Q, K, V = draw(seed, n, m)
        got = linear_attention(Q, K, V, chunk=chunk)
        np.testing.assert_allclose(got, linear_by_loops(Q, K, V, False), atol=1e-12)

    @given(seeds, sizes, st.integers(1, 10))
    def test_causal_equals_loops(self, seed, n, chunk):
        Q, K, V = draw(seed, n, n)
        got = linear_attention(Q, K, V, causal=True, chunk=chunk)
        np.testing.assert_allclose(got, linear_by_loops(Q, K, V, True), atol=1e-12)

    @pytest.mark.parametrize("batch", [(), (2, 4)])
    def test_the_recurrent_form_equals_the_parallel_one(self, batch):
        Q, K, V = draw(20, n=9, m=9, batch=batch)
        state, rows = None, []
        for i in range(9):
            row, state = linear_attention_step(state, Q[..., i, :], K[..., i, :], V[..., i, :])
            rows.append(row)
        parallel = linear_attention(Q, K, V, causal=True, chunk=9)
        np.testing.assert_allclose(np.stack(rows, axis=-2), parallel, atol=1e-12)
        assert [part.shape for part in state] == [(*batch, 3, 2), (*batch, 3)]

    def test_the_order_of_the_products_is_what_makes_it_linear(self):
        Q, K, V = draw(21)
        Fq, Fk = elu_plus_one(Q), elu_plus_one(K)
        weights = Fq @ Fk.T
        expected = (weights @ V) / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(linear_attention(Q, K, V), expected, atol=1e-12)

    def test_is_another_function_than_softmax_attention(self):
        Q, K, V = draw(22)
        assert abs(linear_attention(Q, K, V) - attention(Q, K, V).output).max() > 0.1

    def test_features_by_hand(self):
        got = elu_plus_one(np.array([-2.0, 0, 3, -800, 800]))
        np.testing.assert_allclose(got, [math.exp(-2), 1, 4, 0, 801])

    def test_a_kernel_of_exponentials_comes_near_softmax(self):
        """Many positive random features estimate exp(q·k), so the machinery itself is right."""
        Q, K, V = (0.5 * a for a in draw(23))
        W = np.random.default_rng(0).normal(size=(3, 40_000))
        root = 3**0.25

        def features(x):
            return np.exp(x / root @ W - (x**2).sum(-1, keepdims=True) / (2 * root**2))

        got = linear_attention(Q, K, V, features=features)
        np.testing.assert_allclose(got, attention(Q, K, V).output, atol=5e-3)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("causal", [False, True])
    def test_dtype(self, dtype, causal):
        Q, K, V = (a.astype(dtype) for a in draw(24, n=7))
        got = linear_attention(Q, K, V, causal=causal, chunk=3)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, linear_by_loops(Q, K, V, causal), atol=ROUNDING[dtype])
        row, state = linear_attention_step(None, Q[0], K[0], V[0])
        assert (row.dtype, state.memory.dtype) == (dtype, max(np.dtype(dtype), np.dtype("f4")))

    def test_nothing_to_read_gives_zeros(self):
        Q, K, V = draw(25)
        np.testing.assert_array_equal(linear_attention(Q, K[:0], V[:0]), np.zeros((9, 2)))
        np.testing.assert_array_equal(linear_attention(Q - 900, K, V), np.zeros((9, 2)))

    def test_refuses_negative_features(self):
        Q, K, V = draw(26)
        words = r"^features must not be negative, or weights could be: got -0\.\d+$"
        with pytest.raises(ValueError, match=words):
            linear_attention(Q, K, V, features=lambda x: x / 100)
        with pytest.raises(ValueError, match=words):
            linear_attention_step(None, Q[0], K[0], V[0], features=lambda x: x / 100)

    def test_works_on_128_rows_at_a_time(self):
        seen = []

        def features(x):
            seen.append(x.shape[-2])
            return np.exp(x)

        linear_attention(*draw(27, n=200, m=300), features=features)
        assert seen == [0, 128, 128, 44, 128, 72]

    def test_a_step_takes_lists_and_names_shapes(self):
        row, _ = linear_attention_step(None, [1, 2], [3, 4], [5, 6, 7])
        np.testing.assert_allclose(row, [5, 6, 7])
        with pytest.raises(ValueError, match=r"agree in d_k: got q \(2,\), k \(3,\), v \(1,\)"):
            linear_attention_step(None, np.ones(2), np.ones(3), np.ones(1))
        with pytest.raises(ValueError, match="v must be an array of real numbers"):
            linear_attention_step(None, [1], [1], ["a"])


class TestCache:
    @pytest.mark.parametrize("steps", [[9], [1] * 9, [4, 1, 1, 3], [0, 5, 4]])
    @pytest.mark.parametrize("batch", [(), (2, 3)])
    def test_equals_causal_attention_over_everything(self, steps, batch):
        Q, K, V = draw(30, n=9, m=9, batch=batch)
        full, cache, start = attention(Q, K, V, mask=causal_mask(9)), KVCache(), 0
        for step in steps:
            new = (..., slice(start, start + step), slice(None))
            cache.append(K[new], V[new])
            result = cache.attend(Q[new])
            np.testing.assert_allclose(result.output, full.output[new], atol=1e-12)
            expected = full.weights[new][..., : start + step]
            np.testing.assert_allclose(result.weights, expected, atol=1e-12)
            start += step
        assert len(cache) == 9
        np.testing.assert_array_equal(cache.keys, K)
        np.testing.assert_array_equal(cache.values, V)
        assert cache.nbytes == K.nbytes + V.nbytes

    def test_copies_what_it_is_given(self):
        _, K, V = draw(31)
        cache = KVCache()
        cache.append(K, V)
        kept = K.copy()
        K[:] = 0
        np.testing.assert_array_equal(cache.keys, kept)

    def test_takes_lists(self):
        cache = KVCache()
        cache.append([[1.0, 0]], [[2.0]])
        assert cache.attend([[1, 1]]).output.tolist() == [[2]]
        assert cache.attend(np.ones((1, 2), np.float16)).output.dtype == np.float64
        with pytest.raises(ValueError, match=r"^Q must be \(\.\.\., n, d_k\): got Q \(2,\)"):
            cache.attend([1, 1])
        with pytest.raises(ValueError, match=r"differ in width alone: got \(2,\) and \(1,\)"):
            KVCache().append([1, 0], [2])

    def test_grows_by_doubling(self):
        cache, rooms = KVCache(), set()
        for _ in range(1000):
            cache.append(np.zeros((1, 1)), np.zeros((1, 1)))
            rooms.add(cache.keys.base.shape[0])
        assert sorted(rooms) == [2**k for k in range(11)]

    def test_keeps_the_scale(self):
        Q, K, V = draw(32, n=7)
        cache = KVCache()
        cache.append(K, V)
        expected = attention(Q, K, V, mask=causal_mask(7), scale=1.0).weights
        np.testing.assert_allclose(cache.attend(Q, scale=1.0).weights, expected, atol=1e-12)

    def test_refuses(self):
        Q, K, V = draw(33)
        cache = KVCache()
        assert (len(cache), cache.nbytes) == (0, 0)
        with pytest.raises(ValueError, match="the cache is empty"):
            _ = cache.keys
        with pytest.raises(ValueError, match=r"append a token's key.*9 queries, the cache 0 keys"):
            cache.attend(Q)
        with pytest.raises(ValueError, match=r"differ in width alone: got \(7, 3\) and \(6, 2\)"):
            cache.append(K, V[:6])
        cache.append(K, V)
        for k, v, name in [(K[:, :2], V, "K"), (K, V[:, :1], "V"), (K.astype("f4"), V, "K")]:
            with pytest.raises(ValueError, match=rf"{name} \(7, .*does not continue the cache"):
                cache.append(k, v)
        np.testing.assert_array_equal(cache.keys, K)  # a refused token leaves no trace
        with pytest.raises(ValueError, match="has 9 queries, the cache 7 keys"):
            cache.attend(Q)


def tiles_of(*arrays, **given):
    return list(attention_tiles(*arrays, **given))


EVERY_TILED = [tiled_attention, tiles_of, partial(windowed_attention, window=3)]


class TestRefusals:
    @pytest.mark.parametrize("function", [*EVERY_TILED, linear_attention])
    def test_shapes(self, function):
        Q, K, V = draw(40)
        for name in "QKV":
            wrong = {"Q": Q, "K": K, "V": V} | {name: np.ones(3)}
            with pytest.raises(ValueError, match=rf"^{name} must be .*: got Q .*, K .*, V "):
                function(**wrong)
        if function is not linear_attention:
            with pytest.raises(ValueError, match=r"d_k ≥ 1: got Q \(9, 0\), K \(7, 0\), V"):
                function(Q[:, :0], K[:, :0], V)
        for bad in [(Q[:, :2], K, V), (Q, K, V[:6]), (Q[0], K, V)]:
            with pytest.raises(ValueError, match=r"got Q \("):
                function(*bad)
        with pytest.raises(ValueError, match="real numbers"):
            function(Q.astype(complex), K, V)

    @pytest.mark.parametrize("function", EVERY_TILED)
    @pytest.mark.parametrize("tile", [(0, 2), (2, 0), (2, 1.5), 4, (1, 2, 3), (True, 2)])
    def test_tiles(self, tile, function):
        with pytest.raises(ValueError, match=r"^tile.* must be"):
            function(*draw(41), tile=tile)

    def test_no_tile(self):
        with pytest.raises(ValueError, match=r"tile must be \(queries, keys\), .*: got None"):
            tiled_attention(*draw(41), tile=None)

    @pytest.mark.parametrize("function", EVERY_TILED)
    def test_options(self, function):
        Q, K, V = draw(42)
        with pytest.raises(ValueError, match=r"mask \(2, 9, 7\) does not broadcast to the scores"):
            function(Q, K, V, mask=np.ones((2, 9, 7), bool))
        with pytest.raises(ValueError, match=r"boolean .* got dtype int64"):
            function(Q, K, V, mask=np.ones((9, 7), int))
        with pytest.raises(ValueError, match=r"^scale must be a finite number .* got nan"):
            function(Q, K, V, scale=np.nan)
        with pytest.raises(ValueError, match=r"^offset must be a whole number, got 0\.5"):
            function(Q, K, V, offset=0.5)

    def test_windows(self):
        for window in (0, -3, 2.0, None):
            with pytest.raises(ValueError, match=rf"^window must be a .* ≥ 1, got {window}"):
                windowed_attention(*draw(42), window=window)

    def test_states(self):
        with pytest.raises(ValueError, match=r"agree in m: got S \(2, 3\), V \(4, 1\)"):
            softmax_state(np.ones((2, 3)), np.ones((4, 1)))

    def test_masks(self):
        Q, K, V = draw(42)
        with pytest.raises(ValueError, match=r"mask \(7, 9\) does not broadcast to the scores"):
            tiled_attention(Q, K, V, mask=np.ones((7, 9), bool))
        with pytest.raises(ValueError, match=r"mask \(2, 9, 7\) does not broadcast"):
            tiled_attention(Q, K, V, mask=np.ones((2, 9, 7), bool))
        with pytest.raises(ValueError, match="boolean"):
            tiled_attention(Q, K, V, mask=np.ones((9, 7), int))

    def test_numbers(self):
        Q, K, V = draw(43)
        with pytest.raises(ValueError, match="scale must be a finite number"):
            tiled_attention(Q, K, V, scale=np.nan)
        with pytest.raises(ValueError, match="offset must be a whole number"):
            tiled_attention(Q, K, V, offset=0.5)
        with pytest.raises(ValueError, match="window must be a whole number ≥ 1, got 0"):
            windowed_attention(Q, K, V, window=0)
        with pytest.raises(ValueError, match="chunk must be a whole number ≥ 1, got 0"):
            linear_attention(Q, K, V, chunk=0)
        with pytest.raises(ValueError, match=r"needs n = m: got Q \(9, 3\) and K \(7, 3\)"):
            linear_attention(Q, K, V, causal=True)

    def test_a_state_is_a_plain_tuple(self):
        assert SoftmaxState._fields == ("maximum", "normaliser", "accumulator")
