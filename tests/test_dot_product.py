"""attn_lib.dot_product against hand-worked values, plain loops, its theorems and ONNX."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from onnx_attention import onnx_attention

from attn_lib import (
    AttentionResult,
    attention,
    attention_scores,
    attention_weights,
    causal_mask,
    combine_masks,
    cross_attention,
    entropy,
    self_attention,
    softmax,
)

DTYPES = [np.float16, np.float32, np.float64]
ROUNDING = {np.float16: 2e-3, np.float32: 2e-6, np.float64: 1e-12}
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 6)
rows = arrays(np.float64, array_shapes(min_dims=1, max_dims=3), elements=st.floats(-300, 300))


def draw(seed, n=4, m=5, d_k=3, d_v=2, batch=()):
    """Q, K, V and a mask that leaves every query at least one key."""
    rng = np.random.default_rng(seed)
    Q, K, V = (rng.normal(size=(*batch, *s)) for s in ((n, d_k), (m, d_k), (m, d_v)))
    keep = rng.random((n, m)) < 0.6
    keep[np.arange(n), rng.integers(m, size=n)] = True
    return Q, K, V, keep


def attention_by_loops(Q, K, V, keep):
    """One query, one key, one number at a time: nothing shared with attn_lib."""
    weights, output = np.zeros((len(Q), len(K))), np.zeros((len(Q), V.shape[1]))
    for i, q in enumerate(Q):
        powers = {
            j: math.exp(math.fsum(x * y for x, y in zip(q, k, strict=True)) / math.sqrt(len(k)))
            for j, k in enumerate(K)
            if keep[i, j]
        }
        for j, power in powers.items():
            weights[i, j] = power / math.fsum(powers.values())
        for c in range(V.shape[1]):
            output[i, c] = math.fsum(weights[i, j] * V[j, c] for j in powers)
    return weights, output


class TestHandWorked:
    def test_rows_of_very_different_size_keep_their_own_maximum(self):
        expected = [0.03205860, 0.08714432, 0.23688282, 0.64391426]
        A = softmax([[0, 1, 2, 3], [10000, 10001, 10002, 10003]])
        np.testing.assert_allclose(A, [expected, expected], atol=1e-8)

    def test_softmax_runs_along_a_row(self):
        S = [[1, 2], [3, 5]]
        by_query = [[0.26894142, 0.73105858], [0.11920292, 0.88079708]]
        by_key = [[0.11920292, 0.04742587], [0.88079708, 0.95257413]]
        np.testing.assert_allclose(attention_weights(S), by_query, atol=1e-8)
        np.testing.assert_allclose(softmax(S), by_query, atol=1e-8)
        np.testing.assert_allclose(softmax(S, axis=0), by_key, atol=1e-8)

    def test_the_divisor_is_the_root_of_the_key_width(self):
        q, K = np.zeros((1, 64)), np.zeros((2, 64))
        q[0, 0] = K[0, 0] = math.sqrt(8)
        result = attention(q, K, np.eye(2))
        np.testing.assert_allclose(result.scores, [[1, 0]], atol=1e-12)
        np.testing.assert_allclose(result.weights, [[0.73105858, 0.26894142]], atol=1e-8)

    def test_masked_scores_get_no_share(self):
        S = np.array([0.43, -0.21, 0.99, 0.32, -0.35, 0.04])
        S[3:] = -np.inf
        expected = [0.30506733, 0.16085969, 0.53407298, 0, 0, 0]
        np.testing.assert_allclose(attention_weights(S), expected, atol=1e-8)

    def test_true_means_may_look(self):
        Q, K = np.zeros((3, 2)), np.zeros((3, 2))
        past, future = np.tri(3, dtype=bool), ~np.tri(3, dtype=bool)
        right = [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]
        swapped = [[0, 1 / 2, 1 / 2], [0, 0, 1], [0, 0, 0]]
        np.testing.assert_allclose(attention(Q, K, np.eye(3), mask=past).output, right)
        np.testing.assert_allclose(attention(Q, K, np.eye(3), mask=future).output, swapped)

    @pytest.mark.parametrize(
        ("temperature", "expected", "atol"),
        [
            (0.1, [1.03e-9, 0.49998865, 2.27e-5, 0.49998865], 1e-8),
            (0.001, [0, 0.5, 0, 0.5], 1e-15),
            (5e-324, [0, 0.5, 0, 0.5], 1e-15),
            (np.inf, [0.25] * 4, 1e-15),
        ],
    )
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_temperature(self, temperature, expected, atol, dtype):
        A = attention_weights(np.array([1, 3, 2, 3], dtype), temperature=temperature)
        np.testing.assert_allclose(A, expected, atol=max(atol, 1e-7))

    @pytest.mark.parametrize("temperature", [0, 0.0, -1, np.nan, -np.inf])
    def test_refuses_a_temperature_that_has_no_meaning(self, temperature):
        with pytest.raises(ValueError, match=rf"must be > 0.*got {temperature}"):
            attention_weights([1, 3, 2, 3], temperature=temperature)
        with pytest.raises(ValueError, match="must be > 0"):
            attention(np.eye(2), np.eye(2), np.eye(2), temperature=temperature)


class TestNothingToLookAt:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_gives_zeros_and_leaves_other_rows_alone(self, dtype):
        Q = np.array([[1.0], [1.0]], dtype)
        K = V = np.array([[1.0], [2.0], [3.0]], dtype)
        keep = np.array([[False] * 3, [True] * 3])
        result = attention(Q, K, V, mask=keep)  # warnings are errors in this suite
        assert result.weights[0].tolist() == [0, 0, 0]
        assert result.output[0].tolist() == [0]
        np.testing.assert_array_equal(result.weights[1], attention(Q, K, V).weights[1])
        np.testing.assert_allclose(
            result.weights[1], [0.09003057, 0.24472847, 0.66524096], atol=ROUNDING[dtype]
        )

    @pytest.mark.parametrize("temperature", [1e-9, 1, np.inf])
    def test_at_any_temperature(self, temperature):
        S = [[-np.inf, -np.inf], [-np.inf, 1]]
        assert attention_weights(S, temperature=temperature).tolist() == [[0, 0], [0, 1]]

    def test_no_keys_at_all(self):
        result = attention(np.ones((2, 3)), np.ones((0, 3)), np.ones((0, 4)))
        assert result.weights.shape == (2, 0)
        np.testing.assert_array_equal(result.output, np.zeros((2, 4)))

    def test_no_queries_at_all(self):
        result = attention(np.ones((0, 3)), np.ones((2, 3)), np.ones((2, 4)))
        assert [M.shape for M in result] == [(0, 2), (0, 2), (0, 4)]

    def test_float_mask_of_minus_infinity(self):
        bias = np.full((1, 2), -np.inf)
        assert attention(np.eye(2), np.eye(2), np.eye(2), mask=bias).output.tolist() == [[0, 0]] * 2


class TestPrecision:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtype_in_is_dtype_out_and_close_to_float64(self, dtype):
        Q, K, V, keep = (M.astype(dtype) if M.dtype != bool else M for M in draw(0))
        exact = attention(*(M.astype(np.float64) for M in (Q, K, V)), mask=keep)
        got = attention(Q, K, V, mask=keep)
        for M, reference in zip(got, exact, strict=True):
            assert M.dtype == dtype
            np.testing.assert_allclose(M, reference, rtol=0, atol=ROUNDING[dtype] * 2)
        assert attention_scores(Q, K).dtype == dtype
        assert attention_weights(Q, temperature=3).dtype == dtype
        assert softmax(Q).dtype == dtype

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("layer", [self_attention, cross_attention])
    def test_layers_keep_the_dtype(self, dtype, layer):
        X, W = np.ones((3, 2), dtype), np.eye(2, dtype=dtype)
        inputs = (X, W, W, W) if layer is self_attention else (X, X, W, W, W)
        assert {M.dtype for M in layer(*inputs)} == {np.dtype(dtype)}

    @pytest.mark.parametrize("mask_dtype", DTYPES)
    def test_a_mask_or_scale_does_not_change_the_dtype(self, mask_dtype):
        Q = np.eye(2, dtype=np.float32)
        bias = np.array([[0, -np.inf], [0, 0]], mask_dtype)
        assert attention_scores(Q, Q, mask=bias, scale=np.float64(0.5)).dtype == np.float32

    def test_lists_and_integers_count_as_float64(self):
        S = attention_scores([[1, 2]], [[3, 4], [5, 6]])
        assert S.dtype == np.float64
        np.testing.assert_allclose(S, [[11 / math.sqrt(2), 17 / math.sqrt(2)]])
        assert softmax([True, False]).dtype == np.float64

    def test_float16_dot_products_may_pass_its_range_before_scaling(self):
        q = np.full((1, 16), 80, np.float16)
        assert attention_scores(q, q).tolist() == [[25600]]  # 102400 / 4
        np.testing.assert_array_equal(attention(q, q, q).output, q)

    def test_float16_third_key_masked(self):
        S = np.array([1, 2, -np.inf], np.float16)
        np.testing.assert_allclose(attention_weights(S), [0.26894142, 0.73105858, 0], atol=5e-4)

    def test_float16_lowest_number_as_a_mask(self):
        Q = np.ones((2, 1), np.float16)
        lowest = np.full((2, 2), np.finfo(np.float16).min)
        with np.errstate(over="ignore"):  # two lowest numbers add up to −∞
            twice = combine_masks(lowest, lowest)
        assert np.isneginf(twice).all()
        assert attention(Q, Q, Q, mask=twice).output.tolist() == [[0], [0]]


class TestNotANumber:
    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_spoils_its_own_row_only(self, bad):
        with np.errstate(invalid="ignore"):
            A = softmax([[1, bad, -np.inf], [1, 2, 3]])
            B = attention_weights([[1, bad, -np.inf], [1, 2, 3]])
        for weights in (A, B):
            assert np.isnan(weights[0]).all()
            np.testing.assert_allclose(weights[1], softmax([1, 2, 3]))

    def test_infinite_scores_are_announced(self):
        with pytest.warns(RuntimeWarning, match="invalid value"):
            softmax([np.inf, np.inf])

    def test_a_forbidden_score_may_be_nan(self):
        K = np.array([[1.0], [np.nan]])
        assert attention_weights(attention_scores([[1]], K, mask=[[True, False]])).tolist() == [
            [1, 0]
        ]


class TestRefusals:
    @pytest.mark.parametrize(
        ("Q", "K", "V", "words"),
        [
            ((4, 3), (5, 2), (5, 2), ["must agree in d_k", "Q (4, 3)", "K (5, 2)"]),
            ((4, 3), (5, 3), (4, 2), ["must agree in m", "K (5, 3)", "V (4, 2)"]),
            ((3,), (5, 3), (5, 2), ["Q must be (..., n, d_k)", "Q (3,)"]),
            ((4, 3), (3,), (5, 2), ["K must be", "K (3,)"]),
            ((4, 3), (5, 3), (5,), ["V must be", "V (5,)"]),
            ((2, 4, 3), (3, 5, 3), (5, 2), ["leading axes", "Q (2, 4, 3)", "K (3, 5, 3)"]),
            ((2, 4, 3), (5, 3), (3, 5, 2), ["leading axes", "V (3, 5, 2)"]),
            ((4, 0), (5, 0), (5, 2), ["d_k ≥ 1", "Q (4, 0)"]),
        ],
    )
    def test_shapes_are_named(self, Q, K, V, words):
        with pytest.raises(ValueError) as error:
            attention(np.ones(Q), np.ones(K), np.ones(V))
        assert all(word in str(error.value) for word in words), error.value

    def test_keys_have_a_width(self):
        with pytest.raises(ValueError, match=r"d_k ≥ 1: got Q \(4, 0\), K \(5, 0\)$"):
            attention_scores(np.ones((4, 0)), np.ones((5, 0)))
        with pytest.raises(ValueError, match=r"d_k ≥ 1: got Q .*, V \(5, 2\)$"):  # all are named
            attention(np.ones((4, 0)), np.ones((5, 0)), np.ones((5, 2)))

    @pytest.mark.parametrize("shape", [(4, 4), (5,), (4,), (2, 4, 5), (4, 5, 1), (1, 1, 1, 4, 5)])
    def test_a_mask_never_enlarges_the_scores(self, shape):
        fits = shape == (5,)
        Q, K = np.ones((4, 3)), np.ones((5, 3))
        for mask in (np.ones(shape, bool), np.zeros(shape)):
            if fits:
                assert attention_scores(Q, K, mask=mask).shape == (4, 5)
                continue
            with pytest.raises(ValueError, match=r"mask .* does not broadcast to the scores"):
                attention_scores(Q, K, mask=mask)

    @pytest.mark.parametrize("mask", [np.ones((4, 5), int), np.full((4, 5), "x")])
    def test_a_mask_is_boolean_or_float(self, mask):
        with pytest.raises(ValueError, match=r"boolean .* or float"):
            attention_scores(np.ones((4, 3)), np.ones((5, 3)), mask=mask)

    @pytest.mark.parametrize("scale", [np.nan, np.inf, True, False, np.True_])
    def test_scale_is_a_finite_number(self, scale):
        with pytest.raises(ValueError, match="scale must be a finite number"):
            attention_scores(np.eye(2), np.eye(2), scale=scale)

    @pytest.mark.parametrize("x", [[1j], ["a"], [None]])
    def test_numbers_are_real(self, x):
        with pytest.raises(ValueError, match="real numbers"):
            softmax(x)

    def test_axis_exists(self):
        with pytest.raises(ValueError, match="out of bounds"):
            softmax([1, 2], axis=1)

    def test_projections_are_named(self):
        X, W = np.ones((3, 4)), np.ones((5, 2))
        fits = np.ones((4, 2))
        for wrong, name in enumerate(("W_Q", "W_K", "W_V")):
            matrices = [W if place == wrong else fits for place in range(3)]
            words = rf"^X .* and {name} .* must agree in d: got X \(3, 4\), W_Q \("
            with pytest.raises(ValueError, match=words):
                self_attention(X, *matrices)
            source, size = ("X", "d") if name == "W_Q" else ("Y", "d_y")
            words = rf"^{source} .* and {name} .* must agree in {size}: got X .*Y .*{name} \(5, 2\)"
            with pytest.raises(ValueError, match=words):
                cross_attention(X, X, *matrices)
        for name, inputs in (("X", (X[0], X)), ("Y", (X, X[0]))):
            with pytest.raises(ValueError, match=rf"^{name} must be .*: got X .*W_V \(4, 2\)$"):
                cross_attention(*inputs, fits, fits, fits)
        with pytest.raises(ValueError, match=r"X must be \(\.\.\., n, d\): got X \(4,\)"):
            self_attention(X[0], fits, fits, fits)


class TestTheorems:
    @given(rows, st.floats(-1e3, 1e3))
    def test_a_shift_of_a_row_changes_nothing(self, S, shift):
        np.testing.assert_allclose(softmax(S + shift), softmax(S), atol=1e-10)

    @given(rows)
    def test_weights_are_positive_and_sum_to_one(self, S):
        A = attention_weights(S)
        assert (A > 0).all()
        np.testing.assert_allclose(A.sum(axis=-1), 1, atol=1e-12)

    @given(rows, st.floats(1e-3, 1e3))
    def test_temperature_divides_the_scores(self, S, T):
        np.testing.assert_allclose(attention_weights(S, temperature=T), softmax(S / T), atol=1e-10)

    @given(seeds, sizes, sizes, sizes, sizes)
    def test_equals_the_loops(self, seed, n, m, d_k, d_v):
        Q, K, V, keep = draw(seed, n, m, d_k, d_v)
        weights, output = attention_by_loops(Q, K, V, keep)
        result = attention(Q, K, V, mask=keep)
        np.testing.assert_allclose(result.weights, weights, atol=1e-12)
        np.testing.assert_allclose(result.output, output, atol=1e-12)

    @given(seeds)
    def test_result_is_scores_then_weights_then_output(self, seed):
        Q, K, V, keep = draw(seed)
        S, A, O = attention(Q, K, V, mask=keep, temperature=0.3)
        np.testing.assert_array_equal(S, attention_scores(Q, K, mask=keep))
        np.testing.assert_array_equal(A, attention_weights(S, temperature=0.3))
        np.testing.assert_array_equal(O, A @ V)

    @given(seeds, st.permutations(range(5)))
    def test_permuting_tokens_permutes_everything(self, seed, order):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(5, 4))
        W = [rng.normal(size=(4, d)) for d in (3, 3, 2)]
        S, A, O = self_attention(X, *W)
        S_P, A_P, O_P = self_attention(X[order], *W)
        np.testing.assert_allclose(S_P, S[order][:, order], atol=1e-12)
        np.testing.assert_allclose(A_P, A[order][:, order], atol=1e-12)
        np.testing.assert_allclose(O_P, O[order], atol=1e-12)

    @given(seeds, st.permutations(range(5)))
    def test_permuting_the_mask_too(self, seed, order):
        rng = np.random.default_rng(seed)
        X, W, keep = rng.normal(size=(5, 3)), np.eye(3), np.tri(5, dtype=bool)
        moved = self_attention(X[order], W, W, W, mask=keep[order][:, order]).output
        np.testing.assert_allclose(moved, self_attention(X, W, W, W, mask=keep).output[order])

    @given(seeds)
    def test_output_lies_in_the_convex_hull_of_the_values(self, seed):
        Q, K, V, _ = draw(seed)
        O = attention(Q, K, V).output
        directions = np.random.default_rng(seed).normal(size=(2, 20))
        assert (O @ directions <= (V @ directions).max(axis=0) + 1e-12).all()

    @given(seeds, st.integers(1, 3))
    def test_scores_have_rank_at_most_d_k(self, seed, d_k):
        Q, K, _, _ = draw(seed, n=6, m=5, d_k=d_k)
        assert np.linalg.matrix_rank(attention_scores(Q, K)) <= d_k

    @given(seeds)
    def test_only_the_product_of_the_two_maps_matters(self, seed):
        rng = np.random.default_rng(seed)
        X, W_Q, W_K = rng.normal(size=(4, 5)), rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
        M = np.linalg.qr(rng.normal(size=(3, 3)))[0] * rng.uniform(0.5, 2, size=3)
        S = self_attention(X, W_Q, W_K, W_K).scores
        S_M = self_attention(X, W_Q @ M, W_K @ np.linalg.inv(M).T, W_K).scores
        np.testing.assert_allclose(S_M, S, atol=1e-10)

    @given(seeds)
    def test_when_values_are_keys_the_output_never_turns_against_the_query(self, seed):
        rng = np.random.default_rng(seed)
        K, q, q2 = rng.normal(size=(5, 3)), *rng.normal(size=(2, 3))
        o, o2 = attention([q, q2], K, K).output
        assert (o - o2) @ (q - q2) >= -1e-12

    @given(seeds)
    def test_other_values_can_turn_against_the_query(self, seed):
        K = np.random.default_rng(seed).normal(size=(5, 1))
        o, o2 = attention([[1.0], [-1.0]], K, -K).output
        assert o[0] < o2[0]

    @given(seeds)
    def test_a_bias_common_to_all_keys_cancels(self, seed):
        Q, K, V, _ = draw(seed)
        moved = attention(Q, K + np.array([1.0, -2.0, 3.0]), V)
        np.testing.assert_allclose(moved.weights, attention(Q, K, V).weights, atol=1e-12)

    @given(seeds)
    def test_layers_are_attention_between_projections(self, seed):
        rng = np.random.default_rng(seed)
        X, W = rng.normal(size=(4, 5)), [rng.normal(size=(5, d)) for d in (3, 3, 2)]
        options = {"mask": causal_mask(4), "scale": 0.3, "temperature": 2.0}
        expected = attention(*(X @ M for M in W), **options)
        by_default = attention(*(X @ M for M in W))
        for layer in (partial(self_attention, X, *W), partial(cross_attention, X, X, *W)):
            for result, wanted in ((layer(**options), expected), (layer(), by_default)):
                for M, reference in zip(result, wanted, strict=True):
                    np.testing.assert_array_equal(M, reference)

    def test_cross_attention_reads_the_source(self):
        rng = np.random.default_rng(3)
        X, Y = rng.normal(size=(4, 5)), rng.normal(size=(6, 7))
        W_Q, W_K, W_V = (rng.normal(size=s) for s in ((5, 3), (7, 3), (7, 2)))
        keep = np.arange(6) < 4
        expected = attention_by_loops(X @ W_Q, Y @ W_K, Y @ W_V, np.tile(keep, (4, 1)))
        result = cross_attention(X, Y, W_Q, W_K, W_V, mask=keep)
        np.testing.assert_allclose(result.weights, expected[0], atol=1e-12)
        np.testing.assert_allclose(result.output, expected[1], atol=1e-12)

    @given(seeds)
    def test_weights_are_not_symmetric_so_rows_are_queries(self, seed):
        Q, K, V, _ = draw(seed, n=4, m=4)
        A = attention(Q, K, V).weights
        np.testing.assert_allclose(A[2], softmax(K @ Q[2] / math.sqrt(3)), atol=1e-12)
        assert not np.allclose(A, A.T)


class TestBatches:
    @pytest.mark.parametrize(
        ("q", "k", "v", "mask"),
        [
            ((2, 3), (2, 3), (2, 3), (2, 3)),
            ((2, 3), (2, 3), (2, 3), ()),
            ((2, 1), (3,), (), (2, 1)),
            ((), (3,), (2, 1), ()),
            ((3,), (), (2, 3), (1,)),
        ],
    )
    def test_leading_axes_equal_a_loop(self, q, k, v, mask):
        rng = np.random.default_rng(1)
        n, m, d_k, d_v = 4, 5, 3, 2
        Q, K, V = (rng.normal(size=s) for s in ((*q, n, d_k), (*k, m, d_k), (*v, m, d_v)))
        keep = rng.random((*mask, n, m)) < 0.7
        got = attention(Q, K, V, mask=keep)
        batch = np.broadcast_shapes(q, k, v)
        assert got.output.shape == (*batch, n, d_v)
        assert got.scores.shape == (*np.broadcast_shapes(q, k), n, m)
        Q, K, V, keep = (np.broadcast_to(M, batch + M.shape[-2:]) for M in (Q, K, V, keep))
        for index in np.ndindex(batch):
            one = attention(Q[index], K[index], V[index], mask=keep[index])
            np.testing.assert_allclose(got.output[index], one.output, atol=1e-12)

    def test_layers_take_batches(self):
        rng = np.random.default_rng(2)
        X, W = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 5))
        one = self_attention(X[1], W, W, W).output
        np.testing.assert_allclose(self_attention(X, W, W, W).output[1], one, atol=1e-12)

    def test_a_mask_with_one_column_switches_queries_off(self):
        keep = np.array([[True], [False]])
        O = attention(np.eye(2), np.eye(2), np.eye(2), mask=keep).output
        assert O[0].all() and not O[1].any()


class TestManners:
    def test_inputs_are_left_alone(self):
        inputs = draw(0)
        before = [M.copy() for M in inputs]
        Q, K, V, keep = inputs
        attention(Q, K, V, mask=keep, temperature=2)
        softmax(Q)
        attention_weights(Q, temperature=2)
        for M, copy in zip(inputs, before, strict=True):
            np.testing.assert_array_equal(M, copy)

    def test_result_has_names(self):
        result = attention(*draw(0)[:3])
        assert isinstance(result, AttentionResult)
        assert result._fields == ("scores", "weights", "output")

    def test_scores_are_shown_before_the_temperature(self):
        Q, K, V, _ = draw(0)
        warm = attention(Q, K, V, temperature=5)
        np.testing.assert_array_equal(warm.scores, attention(Q, K, V).scores)
        np.testing.assert_allclose(warm.weights, softmax(warm.scores / 5), atol=1e-12)

    def test_scale_one_gives_the_raw_dot_products(self):
        Q, K, _, _ = draw(0)
        np.testing.assert_allclose(attention_scores(Q, K, scale=1.0), Q @ K.T)
        np.testing.assert_allclose(attention_scores(Q, K), Q @ K.T / np.sqrt(3))


class TestOnnx:
    """The reference implementation of the ONNX operator Attention, by other authors."""

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("mask", ["none", "bool", "float", "empty row"])
    @pytest.mark.parametrize("scale", [None, 0.25])  # onnx takes its root in float32: exact here
    def test_agrees(self, dtype, mask, scale):
        Q, K, V, keep = draw(5, batch=(2, 3))
        Q, K, V = (M.astype(dtype) for M in (Q, K, V))
        mask = {
            "none": None,
            "bool": keep,
            "float": np.where(keep, 0.25, -1.5).astype(dtype),
            "empty row": keep & (np.arange(4) != 1)[:, None],
        }[mask]
        output, weights = onnx_attention(Q, K, V, mask=mask, scale=scale)
        ours = attention(Q, K, V, mask=mask, scale=scale)
        assert ours.output.dtype == output.dtype
        np.testing.assert_allclose(ours.weights, weights, rtol=0, atol=ROUNDING[dtype])
        np.testing.assert_allclose(ours.output, output, rtol=0, atol=ROUNDING[dtype])

    @pytest.mark.parametrize("n", [1, 2, 5])
    def test_agrees_on_causal_attention_without_a_cache(self, n):
        Q, K, V, keep = draw(6, n=n, batch=(2, 3))
        mask = combine_masks(keep, causal_mask(n, 5))
        ours = attention(Q, K, V, mask=mask)
        output, _ = onnx_attention(Q, K, V, mask=keep, causal=True)
        np.testing.assert_allclose(ours.output, output, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("n", [1, 2, 5, 7])
    def test_agrees_on_the_last_query_with_the_last_key(self, n):
        Q, K, V, _ = draw(7, n=n, batch=(2, 3))
        ours = attention(Q, K, V, mask=causal_mask(n, 5, offset=5 - n))
        output, weights = onnx_attention(Q, K, V, causal=True, valid_keys=[5, 5])
        np.testing.assert_allclose(ours.weights, weights, rtol=0, atol=1e-12)
        np.testing.assert_allclose(ours.output, output, rtol=0, atol=1e-12)


# How widely weights are spread -----------------------------------------------------


def test_entropy_by_hand():
    assert entropy([0.5, 0.25, 0.25]) == 1.5
    assert str(entropy([1.0, 0.0, 0.0])) == "0.0"  # and no −0
    assert entropy(np.full((3, 8), 1 / 8)).tolist() == [3, 3, 3]
    np.testing.assert_array_equal(entropy(np.eye(4), axis=0), np.zeros(4))


def test_entropy_against_a_sum_without_rounding():
    A = softmax(np.random.default_rng(0).normal(size=(50, 9)))
    exact = [-math.fsum(a * math.log2(a) for a in row) for row in A]
    np.testing.assert_allclose(entropy(A), exact, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_entropy_keeps_the_dtype(dtype):
    assert entropy(np.full((2, 4), 0.25, dtype)).dtype == dtype
