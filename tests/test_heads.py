"""attn_lib.heads against plain loops over heads, hand-worked values and ONNX."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx_attention import onnx_attention

from attn_lib import causal_mask, self_attention
from attn_lib.heads import (
    head_contributions,
    merge_heads,
    multi_head_attention,
    multi_head_layer,
    multi_head_parameters,
    split_heads,
)

N, M, D, H, D_K, D_V, D_OUT = 5, 6, 8, 4, 3, 2, 7  # all different, and more than one head


def draw(seed=0, *, kv_heads=H, batch=(), d=D):
    """X and the four matrices, scores of order one."""
    rng = np.random.default_rng(seed)
    widths = {"W_Q": H * D_K, "W_K": kv_heads * D_K, "W_V": kv_heads * D_V}
    matrices = {name: rng.normal(size=(d, w)) / math.sqrt(d) for name, w in widths.items()}
    return rng.normal(size=(*batch, N, d)), matrices | {"W_O": rng.normal(size=(H * D_V, D_OUT))}


def columns(W, head, width):
    return W[:, head * width : (head + 1) * width]


def head_by_head(X, W, *, kv_heads=H, mask=None):
    """One `self_attention` per head, nothing reshaped: scores, weights, readings and their sum."""
    results = []
    for head in range(H):
        group = head * kv_heads // H
        results.append(
            self_attention(
                X,
                columns(W["W_Q"], head, D_K),
                columns(W["W_K"], group, D_K),
                columns(W["W_V"], group, D_V),
                mask=mask,
            )
        )
    written = [r.output @ W["W_O"][i * D_V : (i + 1) * D_V] for i, r in enumerate(results)]
    return results, sum(written)


class TestSplitAndMerge:
    def test_by_hand(self):
        X = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]])  # 3 tokens, width 4
        first, second = [[1, 2], [5, 6], [9, 10]], [[3, 4], [7, 8], [11, 12]]
        assert split_heads(X, 2).tolist() == [first, second]
        assert merge_heads(np.array([first, second])).tolist() == X.tolist()

    def test_a_reshape_alone_mixes_tokens_and_columns(self):
        X = np.arange(1, 13).reshape(3, 4)
        only_reshaped = X.reshape(2, 3, 2)
        assert only_reshaped.shape == split_heads(X, 2).shape  # so nothing complains
        assert only_reshaped[0].tolist() == [[1, 2], [3, 4], [5, 6]]
        assert (only_reshaped != split_heads(X, 2)).any()

    def test_a_merge_without_the_swap_mixes_tokens(self):
        parts = split_heads(np.arange(12).reshape(3, 4), 2)
        assert (parts.reshape(3, 4) != merge_heads(parts)).any()

    @given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3))
    def test_merge_undoes_split(self, heads, n, width, batch):
        X = np.random.default_rng(0).normal(size=(batch, n, heads * width))
        parts = split_heads(X, heads)
        assert parts.shape == (batch, heads, n, width)
        np.testing.assert_array_equal(merge_heads(parts), X)

    @pytest.mark.parametrize("dtype", [bool, np.int32, np.float16])
    def test_numbers_are_moved_and_not_cast(self, dtype):
        X = np.ones((3, 4), dtype)
        assert split_heads(X, 2).dtype == dtype
        assert merge_heads(X.reshape(2, 3, 2)).dtype == dtype

    def test_refuses_what_does_not_divide(self):
        with pytest.raises(ValueError, match=r"heads·width\) with heads = 4: got X \(3, 10\)"):
            split_heads(np.ones((3, 10)), 4)
        with pytest.raises(ValueError, match="heads must be a whole number ≥ 1, got 0"):
            split_heads(np.ones((3, 10)), 0)
        with pytest.raises(ValueError, match=r"heads, n, width\): got X \(3, 10\)"):
            merge_heads(np.ones((3, 10)))


class TestMultiHead:
    @pytest.mark.parametrize("kv_heads", [1, 2, 4])
    @pytest.mark.parametrize("mask", [None, causal_mask(N)])
    def test_is_each_head_by_itself_added_up(self, kv_heads, mask):
        X, W = draw(kv_heads=kv_heads, batch=(3,))
        result = multi_head_layer(X, **W, heads=H, kv_heads=kv_heads, mask=mask)
        single, output = head_by_head(X, W, kv_heads=kv_heads, mask=mask)
        for head, one in enumerate(single):
            np.testing.assert_allclose(result.scores[:, head], one.scores, atol=1e-12)
            np.testing.assert_allclose(result.weights[:, head], one.weights, atol=1e-12)
            np.testing.assert_allclose(result.mixed[:, head], one.output, atol=1e-12)
        np.testing.assert_allclose(result.output, output, atol=1e-12)

    @pytest.mark.parametrize("kv_heads", [1, 2, 4])
    def test_is_the_onnx_operator(self, kv_heads):
        X, W = draw(kv_heads=kv_heads, batch=(2,))
        result = multi_head_layer(X, **W, heads=H, kv_heads=kv_heads, mask=causal_mask(N))
        Q, K, V = (X @ W[name] for name in ("W_Q", "W_K", "W_V"))
        Q = np.stack([Q[..., r * D_K : (r + 1) * D_K] for r in range(H)], axis=1)
        K = np.stack([K[..., r * D_K : (r + 1) * D_K] for r in range(kv_heads)], axis=1)
        V = np.stack([V[..., r * D_V : (r + 1) * D_V] for r in range(kv_heads)], axis=1)
        output, weights = onnx_attention(Q, K, V, causal=True)
        np.testing.assert_allclose(result.weights, weights, atol=1e-12)
        np.testing.assert_allclose(result.mixed, output, atol=1e-12)

    def test_the_scale_is_that_of_one_head(self):
        d, heads = 512, 8  # q·k = 8 and 0 in the first head, so S = 8/√64 and 0
        X = np.zeros((2, d))
        X[0, 0], X[1, 1] = 1, 1
        W_Q, W_K, W_V = np.zeros((3, d, d))
        W_Q[1, 0], W_K[0, 0] = 8, 1
        result = multi_head_layer(X, W_Q, W_K, W_V, np.eye(d), heads=heads)
        np.testing.assert_allclose(result.weights[0, 1], [0.73105858, 0.26894142], atol=1e-8)

    def test_one_head_is_plain_attention(self):
        X, W = draw()
        one = self_attention(X, W["W_Q"], W["W_K"], W["W_V"])
        result = multi_head_layer(X, **W, heads=1)
        np.testing.assert_array_equal(result.weights[0], one.weights)
        np.testing.assert_allclose(result.output, one.output @ W["W_O"], atol=1e-12)

    def test_side_by_side_then_projected_is_a_sum_over_heads(self):
        X, W = draw(batch=(2,))
        result = multi_head_layer(X, **W, heads=H)
        parts = head_contributions(result.mixed, W["W_O"])
        assert parts.shape == (2, H, N, D_OUT)
        np.testing.assert_allclose(parts.sum(axis=1), result.output, atol=1e-12)

    def test_each_head_reads_the_whole_token(self):
        X, W = draw()
        result = multi_head_layer(X, **W, heads=H)
        X[2, 0] += 1  # a column that a cut of the input would give to head 0 alone
        changed = multi_head_layer(X, **W, heads=H)
        assert (np.abs(changed.mixed - result.mixed).max(axis=(1, 2)) > 1e-3).all()

    def test_two_heads_keep_the_roles_that_one_mixture_loses(self):
        # Token 0 asks; tokens 1 and 2 hold two values. One head at ½, ½ gives their mean,
        # whichever way round they stand. Two heads, one for each place, do not.
        values, swapped = np.array([[0, 0], [1, 0], [0, 1.0]]), np.array([[0, 0], [0, 1], [1.0, 0]])
        places = np.eye(3)
        W_Q, W_K, W_V = np.zeros((3, 5, 5))
        W_V[3:, :2] = np.eye(2)
        mask = np.array([[False, True, True]] * 3)
        one = [
            multi_head_layer(
                np.hstack([places, v]), W_Q, W_K, W_V, np.eye(5), heads=1, mask=mask
            ).output[0]
            for v in (values, swapped)
        ]
        np.testing.assert_allclose(one[0][:2], [0.5, 0.5])
        np.testing.assert_allclose(one[0], one[1])
        by_head = np.zeros((2, 1, 3), dtype=bool)
        by_head[0, 0, 1] = by_head[1, 0, 2] = True
        two = [
            multi_head_layer(
                np.hstack([places, v]),
                np.zeros((5, 4)),
                np.zeros((5, 4)),
                np.hstack([W_V[:, :2], W_V[:, :2]]),
                np.eye(4),
                heads=2,
                mask=by_head,
            ).output[0]
            for v in (values, swapped)
        ]
        np.testing.assert_allclose(two[0], [1, 0, 0, 1])
        np.testing.assert_allclose(two[1], [0, 1, 1, 0])

    def test_shared_key_heads_are_repeated_columns(self):
        X, W = draw(kv_heads=2)
        wide = dict(W)
        for name, width in (("W_K", D_K), ("W_V", D_V)):
            wide[name] = np.hstack([columns(W[name], r // 2, width) for r in range(H)])
        shared = multi_head_layer(X, **W, heads=H, kv_heads=2)
        full = multi_head_layer(X, **wide, heads=H)
        np.testing.assert_allclose(shared.output, full.output, atol=1e-12)
        assert shared.K.shape == (2, N, D_K)
        assert full.K.shape == (H, N, D_K)

    def test_keys_and_values_may_come_from_elsewhere(self):
        X, W = draw()
        Y = np.random.default_rng(1).normal(size=(M, D + 1))
        rng = np.random.default_rng(2)
        W |= {"W_K": rng.normal(size=(D + 1, H * D_K)), "W_V": rng.normal(size=(D + 1, H * D_V))}
        result = multi_head_layer(X, **W, heads=H, source=Y)
        assert result.weights.shape == (H, N, M)
        np.testing.assert_allclose(result.V[1], Y @ columns(W["W_V"], 1, D_V), atol=1e-12)

    def test_a_past_stands_before_the_new_tokens(self):
        X, W = draw(kv_heads=2)
        options = {"heads": H, "kv_heads": 2}
        full = multi_head_layer(X, **W, **options, mask=causal_mask(N))
        first = multi_head_layer(X[:3], **W, **options, mask=causal_mask(3))
        mask = causal_mask(N - 3, N, offset=3)
        rest = multi_head_layer(X[3:], **W, **options, mask=mask, past=(first.K, first.V))
        np.testing.assert_allclose(rest.output, full.output[3:], atol=1e-12)
        np.testing.assert_allclose(rest.K, full.K, atol=1e-12)

    def test_biases(self):
        X, W = draw()
        rng = np.random.default_rng(3)
        sizes = {"b_Q": H * D_K, "b_K": H * D_K, "b_V": H * D_V, "b_O": D_OUT}
        biases = {name: rng.normal(size=size) for name, size in sizes.items()}
        result = multi_head_layer(X, **W, **biases, heads=H)
        ones = np.hstack([X, np.ones((N, 1))])  # a bias is a row for a feature that is always 1
        rows = {n: np.vstack([W[n], biases["b" + n[1:]]]) for n in ("W_Q", "W_K", "W_V")}
        expected = multi_head_layer(ones, **rows, W_O=W["W_O"], heads=H).output + biases["b_O"]
        np.testing.assert_allclose(result.output, expected, atol=1e-12)
        np.testing.assert_allclose(merge_heads(result.K), X @ W["W_K"] + biases["b_K"])
        by_key_bias = multi_head_layer(X, **W, **{**biases, "b_K": 0.0}, heads=H)
        np.testing.assert_allclose(by_key_bias.weights, result.weights, atol=1e-12)  # it cancels

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    @pytest.mark.parametrize("mask", [None, causal_mask(N)])
    def test_the_layer_without_options_is_the_short_form_to_the_bit(self, mask, dtype):
        X, W = draw(batch=(3,))
        X, W = X.astype(dtype), {name: M.astype(dtype) for name, M in W.items()}
        short = multi_head_attention(X, **W, heads=H, mask=mask)
        long = multi_head_layer(X, **W, heads=H, mask=mask)
        assert type(short) is type(long)
        for name, M in short._asdict().items():
            assert M.dtype == dtype, name
            np.testing.assert_array_equal(M, getattr(long, name), err_msg=name)

    def test_an_edit_changes_what_is_mixed(self):
        X, W = draw()
        result = multi_head_layer(X, **W, heads=H, edit=lambda A: np.ones_like(A))
        np.testing.assert_allclose(result.mixed[:, 0], result.V.sum(axis=1), atol=1e-12)

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_gives_back_the_precision_it_got(self, dtype):
        X, W = draw()
        W = {name: M.astype(dtype) for name, M in W.items()}
        result = multi_head_layer(X.astype(dtype), **W, heads=H)
        assert {M.dtype for M in result} == {np.dtype(dtype)}


class TestRefusals:
    def test_names_both_numbers(self):
        X, W = draw()
        with pytest.raises(ValueError, match=r"W_Q must be .* heads = 5: got .*W_Q \(8, 12\)"):
            multi_head_layer(X, **W, heads=5)
        with pytest.raises(ValueError, match=r"heads = 4 do not divide into kv_heads = 3"):
            multi_head_layer(X, **W, heads=4, kv_heads=3)
        for kv_heads in (0, -1, 2.0):
            with pytest.raises(ValueError, match=rf"kv_heads must be .* ≥ 1, got {kv_heads}"):
                multi_head_layer(X, **W, heads=4, kv_heads=kv_heads)
        with pytest.raises(ValueError, match=r"^heads must be a whole number ≥ 1, got 0"):
            multi_head_layer(X, **W, heads=0, kv_heads=4)
        with pytest.raises(ValueError, match=r"W_Q .* W_K .* agree in d_k with kv_heads = 2: got"):
            multi_head_layer(X, **W, heads=4, kv_heads=2)
        with pytest.raises(ValueError, match=r"W_V .* W_O .* with heads = 4: got .*W_O \(9, 7\)"):
            multi_head_layer(X, **{**W, "W_O": np.ones((9, 7))}, heads=4)
        with pytest.raises(ValueError, match=r"source .* W_K .* in d_y: got .*source \(3, 5\)"):
            multi_head_layer(X, **W, heads=4, source=np.ones((3, 5)))
        with pytest.raises(ValueError, match=r"agree in .*: got mixed \(4, 5, 2\), W_O \(9, 7\)"):
            head_contributions(np.ones((4, 5, 2)), np.ones((9, 7)))

    @pytest.mark.parametrize("function", [multi_head_attention, multi_head_layer])
    def test_both_forms_name_what_does_not_fit(self, function):
        X, W = draw()
        with pytest.raises(ValueError, match="heads must be a whole number ≥ 1, got 0"):
            function(X, **W, heads=0)
        with pytest.raises(ValueError, match=r"^X must be \(\.\.\., n, d\): got X \(8,\)"):
            function(X[0], **W, heads=H)
        for name, words in (
            ("W_Q", r"X .* and W_Q .* in d"),
            ("W_K", r"W_K .* in d"),
            ("W_V", r"W_V .* in d"),
            ("W_O", r"W_V .* and W_O .* in d_v with heads = 4"),
        ):
            with pytest.raises(ValueError, match=rf"{words}.*: got X \(5, 8\), .*{name} \(9, 12\)"):
                function(X, **(W | {name: np.ones((9, 12))}), heads=H)

    @pytest.mark.parametrize(
        ("K", "V"),
        [
            ((H, 3, D_K + 1), (H, 3, D_V)),
            ((H, 3, D_K), (H, 3, D_V + 1)),
            ((2, 3, D_K), (2, 3, D_V)),
            ((H, 3, D_K), (H, 2, D_V)),
            ((2, H, 3, D_K), (H, 3, D_V)),
            ((3, D_K), (3, D_V)),
        ],
    )
    def test_a_past_has_the_heads_and_widths_of_the_maps(self, K, V):
        X, W = draw()
        words = "past must be keys (..., 4, t, 3) and values (..., 4, t, 2) of the same t tokens: "
        with pytest.raises(ValueError, match=re.escape(f"{words}got {K} and {V}")):
            multi_head_layer(X, **W, heads=H, past=(np.ones(K), np.ones(V)))

    def test_a_past_of_a_batch(self):
        X, W = draw(batch=(2, 3))
        first = multi_head_layer(X[..., :2, :], **W, heads=H)
        both = multi_head_layer(X[..., 2:, :], **W, heads=H, past=(first.K, first.V))
        whole = multi_head_layer(X, **W, heads=H)
        np.testing.assert_allclose(both.output, whole.output[..., 2:, :], atol=1e-12)

    def test_a_past_of_shared_key_heads(self):
        X, W = draw(kv_heads=2)
        past = np.ones((2, 0, D_K)), np.ones((2, 0, D_V))
        plain = multi_head_layer(X, **W, heads=H, kv_heads=2)
        np.testing.assert_array_equal(
            multi_head_layer(X, **W, heads=H, kv_heads=2, past=past).output, plain.output
        )

    @pytest.mark.parametrize(
        ("edit", "got"),
        [
            (lambda A: A[0], r"ndarray \(5, 5\)"),
            (lambda A: A[..., :1], r"ndarray \(4, 5, 1\)"),
            (lambda A: None, r"NoneType \(\)"),
            (lambda A: A.sum(), r"float64 \(\)"),
        ],
    )
    def test_an_edit_gives_weights_of_the_shape_it_takes(self, edit, got):
        X, W = draw()
        words = rf"^edit must give weights \(4, 5, 5\) back, got {got}$"
        with pytest.raises(ValueError, match=words):
            multi_head_layer(X, **W, heads=H, edit=edit)

    def test_biases_fit_their_columns(self):
        X, W = draw()
        for name, width in (("b_Q", 12), ("b_K", 12), ("b_V", 8), ("b_O", D_OUT)):
            with pytest.raises(ValueError, match=rf"and {name} .*: got .*{name} \({width + 1},\)"):
                multi_head_layer(X, **W, heads=H, **{name: np.zeros(width + 1)})


class TestParameters:
    @pytest.mark.parametrize("heads", [1, 2, 8, 64])
    def test_do_not_depend_on_the_number_of_heads(self, heads):
        assert multi_head_parameters(64, heads=heads)["total"] == 4 * 64**2

    def test_shared_key_heads_have_fewer(self):
        assert multi_head_parameters(64, heads=8, kv_heads=2)["total"] == (2 + 2 / 4) * 64**2
        assert multi_head_parameters(64, heads=8, kv_heads=1)["W_K"] == 64 * 8

    def test_are_the_sizes_of_the_matrices(self):
        _, W = draw(kv_heads=2)
        counts = multi_head_parameters(D, heads=H, kv_heads=2, d_k=D_K, d_v=D_V)
        assert [counts[n] for n in ("W_Q", "W_K", "W_V")] == [
            W[n].size for n in ("W_Q", "W_K", "W_V")
        ]
        assert counts["W_O"] == H * D_V * D  # written back into the width it came from

    def test_refuses_what_does_not_divide(self):
        with pytest.raises(ValueError, match="d = 10 does not divide into heads = 4"):
            multi_head_parameters(10, heads=4)

    @pytest.mark.parametrize("name", ["d", "heads", "d_k", "d_v"])
    def test_widths_are_at_least_1(self, name):
        ones = {"d": 1, "heads": 1, "kv_heads": 1, "d_k": 1, "d_v": 1}
        assert multi_head_parameters(**ones)["total"] == 4
        for value in (0, 1.0):
            with pytest.raises(ValueError, match=rf"^{name} must be a .* ≥ 1, got {value}"):
                multi_head_parameters(**(ones | {name: value}))
