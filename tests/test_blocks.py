"""attn_lib.blocks against hand-worked values, plain loops and what a Transformer must do."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attn_lib.blocks import (
    block,
    erf,
    feed_forward,
    gelu,
    layer_norm,
    post_norm_block,
    pre_norm_block,
    rms_norm,
)
from attn_lib.heads import multi_head_attention, multi_head_layer
from attn_lib.interventions import cut_edge, zero_heads
from attn_lib.masks import causal_mask
from attn_lib.model import (
    Config,
    count_operations,
    count_params,
    cross_entropy,
    generate,
    init_params,
    layer_params,
    param_shapes,
    sample,
    transformer,
)

KINDS = [("pre", 10), ("pre", 0), ("post", 10), ("post", 0), ("none", 10), ("none", 0)]


def model(norm="pre", d_ff=10, *, causal=True, layers=2, seed=0):
    """A model whose every parameter is drawn, gains and biases too, and tokens for it."""
    config = Config(
        vocabulary=9, context=8, d=6, layers=layers, heads=2, d_k=4, d_ff=d_ff, norm=norm,
        causal=causal,
    )  # fmt: skip
    rng = np.random.default_rng([seed, 7])
    params = init_params(config, seed, np.float64)
    params = {name: W + 0.2 * rng.normal(size=W.shape) for name, W in params.items()}
    return params, config, rng.integers(9, size=(3, 7))


class TestPartsOnOneToken:
    def test_layer_norm_by_hand(self):
        row = [1.0, 2.0, 3.0]  # mean 2, variance 2/3
        np.testing.assert_allclose(
            layer_norm([row], eps=0), [[-math.sqrt(1.5), 0, math.sqrt(1.5)]], atol=1e-12
        )
        np.testing.assert_allclose(
            layer_norm([row], [2, 2, 2], [1, 0, 0], eps=0),
            [[1 - 2 * math.sqrt(1.5), 0, 2 * math.sqrt(1.5)]],
            atol=1e-12,
        )

    def test_rms_norm_by_hand(self):
        np.testing.assert_allclose(rms_norm([[3.0, 4.0]], eps=0), [[0.6 * 2**0.5, 0.8 * 2**0.5]])

    @given(st.floats(-50, 50), st.floats(0.1, 50), st.integers(0, 2**16))
    def test_layer_norm_ignores_shift_and_scale_and_rms_norm_scale(self, shift, scale, seed):
        X = np.random.default_rng(seed).normal(size=(4, 6))
        np.testing.assert_allclose(
            layer_norm(scale * X + shift, eps=0), layer_norm(X, eps=0), atol=1e-8
        )
        np.testing.assert_allclose(rms_norm(scale * X, eps=0), rms_norm(X, eps=0), atol=1e-10)

    def test_norms_are_per_token(self):
        X = np.random.default_rng(0).normal(size=(2, 4, 6))
        alone = np.stack([[layer_norm(x) for x in sequence] for sequence in X])
        np.testing.assert_allclose(layer_norm(X), alone, atol=1e-14)
        assert np.abs(layer_norm(X).mean(axis=-1)).max() < 1e-14

    def test_rms_norm_is_per_token_and_stretches(self):
        X, gain = np.random.default_rng(0).normal(size=(2, 4, 6)), np.arange(1.0, 7)
        alone = np.stack([[rms_norm(x, gain, eps=0.5) for x in sequence] for sequence in X])
        np.testing.assert_allclose(rms_norm(X, gain, eps=0.5), alone, atol=1e-14)
        by_hand = X[1, 2] / math.sqrt(sum(x * x for x in X[1, 2]) / 6 + 0.5) * gain
        np.testing.assert_allclose(alone[1, 2], by_hand, atol=1e-14)

    @pytest.mark.parametrize("norm", [layer_norm, rms_norm])
    def test_norms_add_a_little_by_default_and_ask_for_what_fits(self, norm):
        small = 1 / math.sqrt(1 + 1e-5)
        np.testing.assert_allclose(norm([[1.0, -1.0]]), [[small, -small]], rtol=1e-14)
        with pytest.raises(
            ValueError, match=r"^X .* and gain .* in d: got X \(2, 3\), gain \(2,\)"
        ):
            norm(np.ones((2, 3)), np.ones(2))
        with pytest.raises(ValueError, match=r"^eps must be ≥ 0 and finite, got -1"):
            norm(np.ones((2, 3)), eps=-1)
        half = np.ones((2, 3), np.float16)
        assert norm(half, np.ones(3)).dtype == np.float16  # like X, whatever the gain's

    def test_the_bias_of_a_norm_fits_too(self):
        with pytest.raises(
            ValueError, match=r"^X .* and bias .* in d: got X \(2, 3\), bias \(2,\)"
        ):
            layer_norm(np.ones((2, 3)), bias=np.ones(2))

    def test_a_constant_row_gives_the_bias(self):
        assert layer_norm([[3.0, 3.0]], 5, [1, 2]).tolist() == [[1, 2]]

    def test_erf_is_that_of_the_standard_library(self):
        x = np.concatenate([np.linspace(-7, 7, 20001), [0.0, -0.0, 1 / 128, 1e300, 5e-324]])
        expected = np.array([math.erf(v) for v in x])
        assert np.abs(erf(x) - expected).max() < 3e-16
        assert erf([np.inf, -np.inf]).tolist() == [1, -1]
        assert np.isnan(erf([np.nan])).all()
        np.testing.assert_allclose(erf(x[:20001].astype(np.float32)), expected[:20001], atol=1e-7)

    def test_gelu_by_the_normal_distribution(self):
        # Φ(1) = 0.8413447460685429, Φ(−2) = 0.02275013194817921
        np.testing.assert_allclose(
            gelu([1, 0, -2]), [0.8413447460685429, 0, -0.04550026389635842], atol=1e-15
        )
        x = np.linspace(-5, 5, 1001)
        by_tanh = x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
        assert 4e-4 < np.abs(gelu(x) - by_tanh).max() < 5e-4  # another function

    def test_feed_forward_by_loops(self):
        rng = np.random.default_rng(0)
        X, W_1, b_1 = rng.normal(size=(3, 2)), rng.normal(size=(2, 5)), rng.normal(size=5)
        W_2, b_2 = rng.normal(size=(5, 2)), rng.normal(size=2)
        expected = np.zeros((3, 2))
        for i in range(3):
            hidden = [sum(X[i, r] * W_1[r, c] for r in range(2)) + b_1[c] for c in range(5)]
            bent = [h * (1 + math.erf(h / 2**0.5)) / 2 for h in hidden]
            for c in range(2):
                expected[i, c] = sum(bent[r] * W_2[r, c] for r in range(5)) + b_2[c]
        np.testing.assert_allclose(feed_forward(X, W_1, b_1, W_2, b_2), expected, atol=1e-12)

    def test_feed_forward_names_shapes_that_do_not_fit(self):
        with pytest.raises(ValueError, match=r"agree in d: got X \(3, 2\), W_1 \(3, 5\), W_2"):
            feed_forward(np.ones((3, 2)), np.ones((3, 5)), 0.0, np.ones((5, 2)), 0.0)
        X, W_1, W_2 = np.ones((3, 2)), np.ones((2, 5)), np.ones((5, 2))
        with pytest.raises(ValueError, match=r"W_1 .* and b_1 .* agree in d_ff: .* b_1 \(1,\)"):
            feed_forward(X, W_1, np.ones(1), W_2, 0.0)
        with pytest.raises(ValueError, match=r"W_2 .* and b_2 .* agree in d_out: .* b_2 \(1,\)"):
            feed_forward(X, W_1, 0.0, W_2, np.ones(1))

    @pytest.mark.parametrize("dtype", [np.float16, np.float32])
    def test_keep_the_precision(self, dtype):
        x = np.linspace(-2, 2, 12, dtype=dtype).reshape(3, 4)
        W = np.eye(4, dtype=dtype)
        zero = np.zeros(4, dtype)
        results = [layer_norm(x), rms_norm(x), erf(x), gelu(x), feed_forward(x, W, zero, W, zero)]
        assert {r.dtype for r in results} == {np.dtype(dtype)}

    def test_float16_does_not_overflow_in_a_norm(self):
        big = np.array([[60000, -60000]], np.float16)
        assert layer_norm(big).tolist() == [[1, -1]]
        assert rms_norm(big).tolist() == [[1, -1]]


class TestBlock:
    @pytest.mark.parametrize(("norm", "d_ff"), KINDS)
    def test_step_by_step(self, norm, d_ff):
        params = model(norm, d_ff)[0]
        layer = layer_params(params, 0)
        X = 3 * np.random.default_rng(1).normal(size=(5, 6))

        def normed(Z, which):
            centred = Z - Z.mean(axis=1, keepdims=True)
            Z = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
            return Z * layer[f"gain_{which}"] + layer[f"bias_{which}"]

        def attended(Z):
            heads = []
            for r in range(2):
                part = slice(4 * r, 4 * r + 4)
                S = (Z @ layer["W_Q"][:, part]) @ (Z @ layer["W_K"][:, part]).T / 2
                A = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
                heads.append(A @ Z @ layer["W_V"][:, part])
            return np.hstack(heads) @ layer["W_O"]

        def thought(Z):
            bent = gelu(Z @ layer["W_1"] + layer["b_1"])
            return bent @ layer["W_2"] + layer["b_2"]

        parts = [(attended, 1)] + ([(thought, 2)] if d_ff else [])
        expected = X
        for part, which in parts:
            if norm == "pre":
                expected = expected + part(normed(expected, which))
            elif norm == "post":
                expected = normed(expected + part(expected), which)
            else:
                expected = expected + part(expected)
        result = block(X, layer, heads=2, norm=norm)
        np.testing.assert_allclose(result.output, expected, atol=1e-12)

    def test_pre_norm_carries_the_raw_stream_and_post_norm_does_not(self):
        X = 10 * np.random.default_rng(0).normal(size=(4, 6))
        for norm in ("pre", "post"):
            layer = layer_params(model(norm)[0], 0)
            silent = layer | {name: 0 * layer[name] for name in ("W_O", "W_2", "b_2")}
            output = block(X, silent, heads=2, norm=norm).output
            assert np.allclose(output, X) == (norm == "pre")

    @pytest.mark.parametrize("norm", ["pre", "post", "none"])
    def test_without_a_residual_only_what_is_written_goes_on(self, norm):
        params, config, tokens = model(norm)
        bare = replace(config, residual=False)
        silent = {name: 0 * W if name == "0.W_O" else W for name, W in params.items()}
        for sizes, differ in ((bare, False), (config, True)):  # nothing written: nothing left
            middle = transformer(silent, tokens, sizes).blocks[0].middle
            assert (np.ptp(middle, axis=(0, 1)) > 0).any() == differ
        result = transformer(params, tokens, bare).blocks[0]
        if norm != "post":
            np.testing.assert_array_equal(result.middle, result.attention.output)

    @pytest.mark.parametrize("short", [pre_norm_block, post_norm_block])
    def test_its_two_lines_are_the_whole_of_it_to_the_bit(self, short):
        norm = short.__name__.partition("_")[0]
        layer = layer_params(model(norm)[0], 0)
        matrices = [layer[name] for name in ("W_Q", "W_K", "W_V", "W_O")]
        mask = causal_mask(5)
        parts = {
            "attend": lambda X: multi_head_attention(X, *matrices, heads=2, mask=mask).output,
            "think": lambda X: feed_forward(X, *(layer[n] for n in ("W_1", "b_1", "W_2", "b_2"))),
            "norm_1": lambda X: layer_norm(X, layer["gain_1"], layer["bias_1"]),
            "norm_2": lambda X: layer_norm(X, layer["gain_2"], layer["bias_2"]),
        }
        X = 3 * np.random.default_rng(2).normal(size=(2, 5, 6))
        whole = block(X, layer, heads=2, norm=norm, mask=mask)
        np.testing.assert_array_equal(short(X, **parts), whole.output)

    def test_says_what_was_in_between(self):
        layer, X = layer_params(model()[0], 0), np.random.default_rng(1).normal(size=(5, 6))
        result = block(X, layer, heads=2)
        np.testing.assert_array_equal(result.middle, X + result.attention.output)
        part = {name: layer[name] for name in layer if "_1" not in name and "_2" not in name}
        norms = {name: layer[name] for name in ("gain_1", "bias_1")}
        alone = block(X, part | norms, heads=2)  # attention alone
        np.testing.assert_array_equal(alone.output, result.middle)

    @pytest.mark.parametrize("norm", ["pre", "post", "none"])
    def test_without_a_residual_what_thinks_nothing_gives_nothing(self, norm):
        layer = layer_params(model(norm)[0], 0)
        layer |= {name: 0 * layer[name] for name in ("W_2", "b_2", "bias_2") if name in layer}
        X = np.random.default_rng(0).normal(size=(4, 6))
        assert not block(X, layer, heads=2, norm=norm, residual=False).output.any()
        assert block(X, layer, heads=2, norm=norm).output.any()

    def test_biases_and_eps_reach_its_parts(self):
        layer = layer_params(model()[0], 0)
        biases = {name: np.full(8, 0.5) for name in ("b_Q", "b_K", "b_V")} | {"b_O": np.ones(6)}
        X = np.random.default_rng(1).normal(size=(5, 6))
        read = layer_norm(X, layer["gain_1"], layer["bias_1"], eps=0.5)
        matrices = [layer[name] for name in ("W_Q", "W_K", "W_V", "W_O")]
        expected = multi_head_layer(read, *matrices, **biases, heads=2).output
        result = block(X, layer | biases, heads=2, eps=0.5)
        np.testing.assert_array_equal(result.attention.output, expected)

    def test_refuses_what_is_no_stream_and_no_number_of_heads(self):
        layer = layer_params(model()[0], 0)
        with pytest.raises(ValueError, match=r"^X must be \(\.\.\., n, d\): got X \(6,\)$"):
            block(np.ones(6), layer, heads=2)
        for heads in (0, 1.0):
            with pytest.raises(ValueError, match=rf"^heads must be a .* ≥ 1, got {heads}"):
                block(np.ones((2, 6)), {}, heads=heads)
        assert block(np.ones((2, 6)), layer, heads=1).attention.weights.shape == (1, 2, 2)

    def test_the_stream_has_the_precision_of_what_is_added_to_it(self):
        X, layer = np.ones((2, 6), np.float16), layer_params(model()[0], 0)
        assert block(X, layer, heads=2).output.dtype == np.float64

    def test_refuses_another_norm(self):
        with pytest.raises(ValueError, match="'pre', 'post', 'none', got 'Pre'"):
            block(np.ones((2, 6)), {}, heads=2, norm="Pre")
        with pytest.raises(ValueError, match="got 'batch'"):
            Config(vocabulary=9, context=8, d=6, norm="batch")


class TestConfig:
    def test_the_smallest_model(self):
        config = Config(vocabulary=9, context=8, d=6)
        assert (config.layers, config.heads, config.d_ff, config.head_width) == (1, 1, 0, 6)
        assert (config.norm, config.causal, config.residual) == ("pre", True, True)
        with pytest.raises(AttributeError):
            config.d = 7

    @pytest.mark.parametrize(
        ("name", "least"),
        [("vocabulary", 1), ("context", 1), ("d", 1), ("heads", 1), ("d_k", 1), ("layers", 0),
         ("d_ff", 0)],
    )  # fmt: skip
    def test_sizes_are_whole(self, name, least):
        sizes = {"vocabulary": 9, "context": 8, "d": 1}
        assert getattr(Config(**(sizes | {name: least})), name) == least
        for value in (least - 1, 2.0, True):
            with pytest.raises(ValueError, match=rf"^{name} must be a .* ≥ {least}, got {value}"):
                Config(**(sizes | {name: value}))

    def test_parameters_come_in_the_order_data_pass_them(self):
        layer = ["W_Q", "W_K", "W_V", "W_O", "W_1", "b_1", "W_2", "b_2"]
        layer += ["gain_1", "bias_1", "gain_2", "bias_2"]
        in_0 = [f"0.{name}" for name in layer]
        sizes = {"vocabulary": 9, "context": 8, "d": 6}
        expected = {
            ("pre", 5): ["E", "P", *in_0, "gain", "bias", "U"],
            ("post", 5): ["E", "P", *in_0, "U"],
            ("none", 5): ["E", "P", *in_0[:8], "U"],
            ("post", 0): ["E", "P", *in_0[:4], *in_0[8:10], "U"],
            ("none", 0): ["E", "P", *in_0[:4], "U"],
        }
        for (norm, d_ff), names in expected.items():
            assert list(param_shapes(Config(**sizes, norm=norm, d_ff=d_ff))) == names


class TestTransformer:
    @pytest.mark.parametrize(("norm", "d_ff"), KINDS)
    def test_the_future_does_not_reach_the_past_through_any_depth(self, norm, d_ff):
        params, config, tokens = model(norm, d_ff, layers=3)
        before = transformer(params, tokens, config)
        changed = tokens.copy()
        changed[:, 4] = (changed[:, 4] + 1) % 9
        after = transformer(params, changed, config)
        for name, stream in before.residuals.items():
            np.testing.assert_array_equal(stream[:, :4], after.residuals[name][:, :4])
        assert (np.abs(before.logits - after.logits)[:, 4:].max(axis=(0, 2)) > 1e-6).all()

    def test_without_the_mask_it_does(self):
        params, config, tokens = model(causal=False)
        changed = tokens.copy()
        changed[:, 4] = (changed[:, 4] + 1) % 9
        moved = (
            transformer(params, tokens, config).logits - transformer(params, changed, config).logits
        )
        assert (np.abs(moved).max(axis=(0, 2)) > 1e-6).all()

    @pytest.mark.parametrize(("norm", "d_ff"), KINDS)
    @pytest.mark.parametrize("cut", [1, 3, 6])
    def test_a_cache_gives_the_full_pass(self, norm, d_ff, cut):
        params, config, tokens = model(norm, d_ff)
        full = transformer(params, tokens, config)
        cache = transformer(params, tokens[:, :cut], config).cache
        for i in range(cut, tokens.shape[1]):
            result = transformer(params, tokens[:, i : i + 1], config, past=cache)
            cache = result.cache
            np.testing.assert_allclose(result.logits[:, 0], full.logits[:, i], atol=1e-12)
        together = transformer(params, tokens[:, cut:], config, past=full_cache(full, cut))
        np.testing.assert_allclose(together.logits, full.logits[:, cut:], atol=1e-12)

    def test_one_sequence_without_a_batch_may_fill_the_context(self):
        params, config, tokens = model(layers=1)
        tokens = np.append(tokens[0], 1)  # 8, the context
        full = transformer(params, tokens, config)
        cache = transformer(params, tokens[:5], config).cache
        rest = transformer(params, tokens[5:], config, past=cache)
        np.testing.assert_allclose(rest.logits, full.logits[5:], atol=1e-12)

    def test_a_cache_gives_the_full_pass_in_float32(self):
        params, config, tokens = model()
        params = {name: W.astype(np.float32) for name, W in params.items()}
        full = transformer(params, tokens, config).logits
        cache = transformer(params, tokens[:, :3], config).cache
        rest = transformer(params, tokens[:, 3:], config, past=cache).logits
        assert rest.dtype == np.float32
        np.testing.assert_allclose(rest, full[:, 3:], atol=1e-5)

    def test_logits_are_those_of_the_last_stream(self):
        params, config, tokens = model("none")
        result = transformer(params, tokens, config)
        assert list(result.residuals) == [
            "embedding",
            "0.middle",
            "0.output",
            "1.middle",
            "1.output",
        ]
        np.testing.assert_allclose(result.residuals["1.output"] @ params["U"], result.logits)
        expected = params["E"][tokens[1, 2]] + params["P"][2]
        np.testing.assert_array_equal(result.residuals["embedding"][1, 2], expected)
        assert [A.shape for A in result.weights] == [(3, 2, 7, 7)] * 2

    def test_a_pre_norm_model_ends_with_a_norm(self):
        params, config, tokens = model("pre")
        result = transformer(params, tokens, config)
        last = layer_norm(result.residuals["1.output"], params["gain"], params["bias"])
        np.testing.assert_allclose(last @ params["U"], result.logits)

    def test_the_order_of_the_past_needs_two_layers(self):
        # Without positions: one causal layer cannot tell orders of the past apart, two can.
        gaps = []
        for layers in (1, 2):
            params, config, _ = model(layers=layers)
            params["P"] = 0 * params["P"]
            a, b = (
                transformer(params, [t], config).logits[0, -1] for t in ([1, 2, 3, 4], [3, 1, 2, 4])
            )
            gaps.append(np.abs(a - b).max())
        assert gaps[0] < 1e-12 < 1e-3 < gaps[1]

    def test_refusals(self):
        params, config, tokens = model()
        with pytest.raises(ValueError, match="9 tokens do not fit the context of 8"):
            transformer(params, np.zeros((1, 9), int), config)
        with pytest.raises(ValueError, match="between 0 and 8, got 0 to 9"):
            transformer(params, [[0, 9]], config)
        with pytest.raises(ValueError, match="whole numbers"):
            transformer(params, [[0.0, 1.0]], config)
        cache = transformer(params, tokens, config).cache
        with pytest.raises(ValueError, match="9 tokens do not fit"):
            transformer(params, tokens[:, :2], config, past=cache)
        with pytest.raises(ValueError, match="past has 1 layers, the model has 2"):
            transformer(params, tokens[:, :1], config, past=cache[:1])
        params, config, tokens = model(causal=False)
        with pytest.raises(ValueError, match="only a causal model"):
            transformer(params, tokens[:, :1], config, past=cache)
        with pytest.raises(ValueError, match="d = 6 does not divide into heads = 4"):
            Config(vocabulary=9, context=8, d=6, heads=4)


def full_cache(result, cut):
    """The first `cut` rows of a longer cache."""
    return [(K[..., :cut, :], V[..., :cut, :]) for K, V in result.cache]


class TestLoss:
    def test_by_hand(self):
        logits = [[0, math.log(3)], [0, 0]]  # ¼ and ¾; ½ and ½
        assert cross_entropy(logits, [0, 1]) == pytest.approx((math.log(4) + math.log(2)) / 2)
        assert cross_entropy(logits, [0, 1], [1, 0]) == pytest.approx(math.log(4))
        assert cross_entropy(logits, [0, 1], [3, 1]) == pytest.approx(
            (3 * math.log(4) + math.log(2)) / 4
        )

    @pytest.mark.parametrize("shape", [(5,), (3,), (2, 3), (2, 3, 4)])
    def test_is_the_mean_over_all_places(self, shape):
        rng = np.random.default_rng(0)
        logits, targets = rng.normal(size=(*shape, 6)), rng.integers(6, size=shape)
        logits[0] += 2000  # a shift of a row changes nothing, and must not drown the others
        counted = rng.random(shape)
        surprise = np.zeros(shape)
        for place in np.ndindex(shape):
            row = logits[place] - logits[place].max()
            surprise[place] = math.log(sum(map(math.exp, row))) - row[targets[place]]
        assert cross_entropy(logits, targets) == pytest.approx(surprise.mean(), rel=1e-12)
        weighed = (surprise * counted).sum() / counted.sum()
        assert cross_entropy(logits, targets, counted) == pytest.approx(weighed, rel=1e-12)

    def test_shares_are_exact_whatever_counts_are_made_of(self):
        logits, counted = [[0.0, 1], [1, 1]], np.array([1, 1 / 3], np.float16)
        exact = cross_entropy(logits, [0, 1], counted.astype(float))
        assert cross_entropy(logits, [0, 1], counted) == exact

    def test_large_logits_do_no_harm(self):
        assert cross_entropy([[1000.0, 0.0]], [1]) == 1000
        assert cross_entropy([[1000.0, 0.0]], [0]) == 0

    def test_refusals(self):
        with pytest.raises(ValueError, match=r"logits \(2, 3\), targets \(3,\)"):
            cross_entropy(np.zeros((2, 3)), [0, 1, 2])
        with pytest.raises(ValueError, match="no position counts"):
            cross_entropy(np.zeros((2, 3)), [0, 1], [0, 0])
        with pytest.raises(ValueError, match="targets must lie between 0 and 2, got 0 to 3"):
            cross_entropy(np.zeros((2, 3)), [0, 3])


class TestWriting:
    def test_the_likeliest(self):
        assert sample([[0, 2, 1], [3, 0, 0]]).tolist() == [1, 0]

    def test_frequencies_follow_the_temperature(self):
        logits = np.tile([0, math.log(3)], (20000, 1))
        for temperature, expected in ((1, 0.75), (0.5, 0.9), (2, 3**0.5 / (1 + 3**0.5))):
            drawn = sample(logits, temperature=temperature, rng=np.random.default_rng(0))
            assert abs(drawn.mean() - expected) < 0.02  # standard error 0.003

    @pytest.mark.parametrize("shape", [(), (4,), (4, 3), (2, 4, 3)])
    def test_one_token_for_each_row(self, shape):
        logits = 9 * np.random.default_rng(0).permuted(
            np.zeros((*shape, 5)) + np.arange(5), axis=-1
        )
        likeliest = sample(logits)
        assert np.shape(likeliest) == shape
        cold = sample(logits, temperature=1e-300, rng=np.random.default_rng(0))
        np.testing.assert_array_equal(cold, likeliest)
        for place in np.ndindex(shape):
            assert likeliest[place] == list(logits[place]).index(max(logits[place]))

    def test_a_dart_on_the_edge_does_not_hit_what_has_no_probability(self):
        class Zero:
            random = staticmethod(np.zeros)

        assert sample([-np.inf, 0.0], temperature=1.0, rng=Zero()) == 1

    def test_never_draws_what_has_no_probability(self):
        logits = np.tile([-np.inf, 0, -np.inf], (5000, 1))
        assert set(sample(logits, temperature=1.0, rng=np.random.default_rng(0))) == {1}

    @pytest.mark.parametrize("causal", [True, False])
    def test_greedy_writing_is_the_full_pass_at_each_step(self, causal):
        params, config, tokens = model(causal=causal)
        written = generate(params, tokens[:, :2], config, count=5)
        expected = tokens[:, :2]
        for _ in range(5):
            last = transformer(params, expected, config).logits[:, -1].argmax(axis=-1)
            expected = np.column_stack([expected, last])
        np.testing.assert_array_equal(written, expected)

    def test_the_seed_decides(self):
        params, config, tokens = model()
        options = {"count": 6, "temperature": 3.0}
        a, b, c = (
            generate(params, tokens[:, :1], config, **options, seed=seed) for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()
        np.testing.assert_array_equal(generate(params, tokens[:, :1], config, **options), a)

    def test_a_prompt_without_a_batch(self):
        params, config, tokens = model()
        many = generate(params, tokens[:, :3], config, count=4)
        np.testing.assert_array_equal(generate(params, tokens[1, :3], config, count=4), many[1])
        with pytest.raises(ValueError, match="prompt of 0 and 2 more tokens need 1 to 8"):
            generate(params, tokens[0, :0], config, count=2)
        with pytest.raises(ValueError, match="prompt of 7 and 2 more tokens need 1 to 8"):
            generate(params, tokens[0], config, count=2)

    def test_refusals(self):
        params, config, tokens = model()
        with pytest.raises(ValueError, match=r"temperature must be > 0.*got 0"):
            sample([1.0, 2.0], temperature=0, rng=np.random.default_rng(0))
        with pytest.raises(ValueError, match="needs rng"):
            sample([1.0, 2.0], temperature=1)
        with pytest.raises(ValueError, match="prompt of 7 and 2 more tokens"):
            generate(params, tokens, config, count=2)
        with pytest.raises(ValueError, match="prompt of 0"):
            generate(params, tokens[:, :0], config, count=2)
        for count in (-1, 2.0, True):
            with pytest.raises(ValueError, match=rf"count must be a whole number ≥ 0, got {count}"):
                generate(params, tokens[:, :2], config, count=count)
        with pytest.raises(ValueError, match="n must be a whole number ≥ 0, got -1"):
            count_operations(config, -1)

    def test_writing_nothing_gives_the_prompt(self):
        params, config, tokens = model()
        np.testing.assert_array_equal(generate(params, tokens, config, count=0), tokens)
        assert generate(params, tokens, config, count=1).shape == (3, 8)  # as far as it goes


class TestCounting:
    @pytest.mark.parametrize(("norm", "d_ff"), KINDS)
    def test_parameters_are_the_sizes_of_the_arrays(self, norm, d_ff):
        params, config, _ = model(norm, d_ff)
        counts = count_params(config)
        assert counts["total"] == sum(W.size for W in params.values())
        assert counts["attention"] == 2 * 4 * 6 * 8
        assert counts["embeddings"] == (9 + 8) * 6
        assert counts["unembedding"] == 6 * 9
        assert counts["feed_forward"] == 2 * (2 * 6 * d_ff + d_ff + 6) * (d_ff > 0)
        norms = {"pre": 2 * (1 + (d_ff > 0)) + 1, "post": 2 * (1 + (d_ff > 0)), "none": 0}
        assert counts["norms"] == norms[norm] * 2 * 6
        assert {n: W.shape for n, W in params.items()} == param_shapes(config)

    def test_where_the_quadratic_part_passes_the_others(self):
        d = 32
        config = Config(vocabulary=5, context=999, d=d, heads=4, d_ff=4 * d)
        at_2d, at_6d = count_operations(config, 2 * d), count_operations(config, 6 * d)
        assert at_2d["scores_and_mixing"] == at_2d["projections"]
        assert at_6d["scores_and_mixing"] == at_6d["projections"] + at_6d["feed_forward"]

    def test_operations_by_hand(self):
        config = Config(vocabulary=5, context=9, d=4, layers=2, heads=2, d_k=3, d_ff=7)
        counts = count_operations(config, 3)
        assert counts == {
            "projections": 2 * 4 * 3 * 4 * 6,
            "scores_and_mixing": 2 * (3 * 3 * 6 + 3 * 3 * 6),
            "feed_forward": 2 * 2 * 3 * 4 * 7,
            "unembedding": 3 * 4 * 5,
            "total": 576 + 216 + 336 + 60,
        }


class TestStart:
    def test_variances(self):
        config = Config(vocabulary=500, context=300, d=200, heads=4, d_ff=400)
        params = init_params(config)
        expected = {"E": 1, "P": 1, "0.W_Q": 1 / 200, "0.W_2": 1 / 400, "U": 1 / 200}
        for name, variance in expected.items():
            assert params[name].var() == pytest.approx(variance, rel=0.05)
        assert params["0.gain_1"].tolist() == [1] * 200
        assert params["0.bias_2"].tolist() == params["0.b_2"].tolist() == [0] * 200

    def test_the_seed_decides(self):
        config = Config(vocabulary=5, context=9, d=4)
        a, b, c = (init_params(config, seed)["E"] for seed in (0, 0, 1))
        assert (a == b).all() and (a != c).all()
        assert (init_params(config)["E"] == a).all()


class TestExperiments:
    def test_a_silent_head_writes_nothing(self):
        params, config, tokens = model("none", 0)
        removed = dict(params)
        removed["0.W_O"] = params["0.W_O"].copy()
        removed["0.W_O"][4:] = 0  # the rows of head 1
        expected = transformer(removed, tokens, config).logits
        silent = transformer(params, tokens, config, edit=zero_heads(0, [1])).logits
        np.testing.assert_allclose(silent, expected, atol=1e-12)
        removed["0.W_O"] = 0 * params["0.W_O"]
        whole = transformer(params, tokens, config, edit=zero_heads(0)).logits
        np.testing.assert_allclose(whole, transformer(removed, tokens, config).logits, atol=1e-12)

    def test_cutting_an_edge_with_and_without_renormalising(self):
        params, config, tokens = model()
        full = transformer(params, tokens, config).weights[1]
        cut = transformer(params, tokens, config, edit=cut_edge(1, 0, query=4, key=2)).weights
        expected = full.copy()
        expected[:, 0, 4, 2] = 0
        np.testing.assert_array_equal(cut[1], expected)
        edit = cut_edge(1, 0, query=4, key=2, renormalise=True)
        renormalised = transformer(params, tokens, config, edit=edit).weights[1]
        expected[:, 0, 4] /= expected[:, 0, 4].sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(renormalised, expected, atol=1e-15)

    def test_a_row_with_its_only_edge_cut_is_zero(self):
        params, config, tokens = model()
        edit = cut_edge(0, 1, query=0, key=0, renormalise=True)
        weights = transformer(params, tokens, config, edit=edit).weights[0]
        assert weights[:, 1, 0].tolist() == [[0] * 7] * 3
