"""attn_lib.backward against central differences, h = 1e-5 in float64."""

import itertools
import math
import re

import numpy as np
import pytest

from attn_lib import attention, causal_mask, softmax
from attn_lib.backward import (
    attention_backward,
    block_backward,
    check_gradient,
    cross_entropy_backward,
    embedding_backward,
    feed_forward_backward,
    gelu_backward,
    layer_norm_backward,
    linear_backward,
    loss_and_gradients,
    multi_head_backward,
    numerical_gradient,
    query_jacobian,
    rms_norm_backward,
    softmax_backward,
)
from attn_lib.blocks import block, feed_forward, gelu, layer_norm, rms_norm
from attn_lib.heads import multi_head_layer
from attn_lib.model import Config, cross_entropy, init_params, layer_params, transformer

KINDS = [
    (norm, d_ff, causal)
    for norm, d_ff, causal in itertools.product(("pre", "post", "none"), (0, 9), (True, False))
]


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def agree(forward, inputs, gradients, upstream):
    """Check the gradient of every input: the loss is the output, weighted by `upstream`."""
    for name, gradient in gradients.items():

        def loss(x, name=name):
            return (forward(**{**inputs, name: x}) * upstream).sum()

        found = check_gradient(loss, inputs[name], gradient)
        assert found.ok, f"{name}: {found}"


class TestPieces:
    def test_softmax(self):
        S, up = normal(3, 4, 5), normal(3, 4, 5, seed=1)
        S[0, 0, 1:3] = -np.inf
        A = softmax(S)
        dS = softmax_backward(up, A)
        finite = np.isfinite(S)

        def loss(x):
            full = S.copy()
            full[finite] = x
            return (softmax(full) * up).sum()

        assert check_gradient(loss, S[finite], dS[finite]).ok
        assert (dS[~finite] == 0).all()
        np.testing.assert_allclose(dS.sum(axis=-1), 0, atol=1e-14)

    def test_softmax_by_hand(self):
        a = np.array([0.5, 0.3, 0.2])
        jacobian = [[0.25, -0.15, -0.1], [-0.15, 0.21, -0.06], [-0.1, -0.06, 0.16]]
        np.testing.assert_allclose(softmax_backward(np.eye(3), [a, a, a]), jacobian, atol=1e-15)

    @pytest.mark.parametrize("scale", [None, 0.7])
    @pytest.mark.parametrize("masked", ["no", "causal", "empty row"])
    def test_attention(self, masked, scale):
        n, m, d_k, d_v = 4, 6, 3, 2
        inputs = {"Q": normal(2, n, d_k), "K": normal(2, m, d_k), "V": normal(2, m, d_v)}
        mask = {"no": None, "causal": causal_mask(n, m), "empty row": causal_mask(n, m, offset=-1)}
        mask, up = mask[masked], normal(2, n, d_v, seed=1)
        A = attention(**inputs, mask=mask, scale=scale).weights
        grads = attention_backward(up, **inputs, weights=A, scale=scale)
        agree(
            lambda **x: attention(**x, mask=mask, scale=scale).output,
            inputs,
            dict(zip("QKV", grads, strict=True)),
            up,
        )

    def test_attention_at_a_temperature(self):
        inputs = {"Q": normal(4, 3), "K": normal(6, 3), "V": normal(6, 2)}
        up, A = normal(4, 2, seed=1), attention(**inputs, temperature=2.5).weights
        grads = attention_backward(up, **inputs, weights=A, scale=1 / (2.5 * math.sqrt(3)))
        agree(
            lambda **x: attention(**x, temperature=2.5).output,
            inputs,
            dict(zip("QKV", grads, strict=True)),
            up,
        )

    def test_attention_collects_over_axes_that_broadcast(self):
        inputs = {"Q": normal(5, 3, 4, 2), "K": normal(1, 6, 2), "V": normal(6, 3)}
        up, A = normal(5, 3, 4, 3, seed=1), attention(**inputs).weights
        grads = attention_backward(up, **inputs, weights=A)
        agree(lambda **x: attention(**x).output, inputs, dict(zip("QKV", grads, strict=True)), up)

    def test_layer_norm(self):
        inputs = {"X": 2 * normal(3, 4, 5) + 1, "gain": normal(5), "bias": normal(5, seed=2)}
        up = normal(3, 4, 5, seed=1)
        grads = layer_norm_backward(up, inputs["X"], inputs["gain"], eps=0.01)
        names = ("X", "gain", "bias")
        agree(
            lambda **x: layer_norm(**x, eps=0.01), inputs, dict(zip(names, grads, strict=True)), up
        )

    def test_a_layer_norm_asks_for_no_shift_and_no_stretch(self):
        X, up = normal(4, 6), normal(4, 6, seed=1)
        dX, _, _ = layer_norm_backward(up, X, eps=0)
        np.testing.assert_allclose(dX.sum(axis=-1), 0, atol=1e-13)
        np.testing.assert_allclose((dX * X).sum(axis=-1), 0, atol=1e-13)

    def test_rms_norm(self):
        inputs = {"X": 2 * normal(3, 4, 5) + 1, "gain": normal(5)}
        up = normal(3, 4, 5, seed=1)
        grads = rms_norm_backward(up, inputs["X"], inputs["gain"], eps=0.01)
        agree(
            lambda **x: rms_norm(**x, eps=0.01),
            inputs,
            dict(zip(("X", "gain"), grads, strict=True)),
            up,
        )

    def test_gelu(self):
        X, up = 3 * normal(4, 5), normal(4, 5, seed=1)
        agree(lambda X: gelu(X), {"X": X}, {"X": gelu_backward(up, X)}, up)

    def test_feed_forward(self):
        inputs = {"X": normal(2, 3, 4), "W_1": normal(4, 7), "b_1": normal(7), "W_2": normal(7, 4)}
        up = normal(2, 3, 4, seed=1)
        grads = feed_forward_backward(up, **inputs)
        agree(feed_forward, inputs | {"b_2": normal(4)}, grads, up)

    def test_linear(self):
        inputs = {"X": normal(2, 3, 4), "W": normal(4, 7), "b": normal(7)}
        up = normal(2, 3, 7, seed=1)
        agree(lambda X, W, b: X @ W + b, inputs, linear_backward(up, inputs["X"], inputs["W"]), up)

    def test_embedding(self):
        tokens, up = np.array([[0, 2, 2], [1, 2, 0]]), normal(2, 3, 4, seed=1)
        dE = embedding_backward(up, tokens, 5)
        agree(lambda E: E[tokens], {"E": normal(5, 4)}, {"E": dE}, up)
        np.testing.assert_allclose(dE[2], up[0, 1] + up[0, 2] + up[1, 1])
        assert (dE[3:] == 0).all()

    @pytest.mark.parametrize("counted", [None, [[1, 0, 2], [0.5, 1, 1]]])
    def test_cross_entropy(self, counted):
        logits, targets = normal(2, 3, 5), np.array([[0, 4, 2], [1, 1, 3]])
        dlogits = cross_entropy_backward(logits, targets, counted)
        assert check_gradient(lambda x: cross_entropy(x, targets, counted), logits, dlogits).ok
        np.testing.assert_allclose(dlogits.sum(axis=-1), 0, atol=1e-15)

    def test_refusals(self):
        with pytest.raises(ValueError, match=r"dX \(2, 4\).*got tokens \(3,\)"):
            embedding_backward(np.ones((2, 4)), [0, 1, 2], 5)
        with pytest.raises(ValueError, match="must agree in d_k"):
            attention_backward(
                np.ones((2, 2)), np.ones((2, 3)), np.ones((4, 5)), np.ones((4, 2)),
                weights=np.ones((2, 4)),
            )  # fmt: skip


CALLS = {  # what fits, name by name
    softmax_backward: {"dA": (2, 3), "A": (2, 3)},
    attention_backward: {"dO": (4, 2), "Q": (4, 3), "K": (5, 3), "V": (5, 2), "weights": (4, 5)},
    query_jacobian: {"weights": (4, 5), "K": (5, 3), "V": (5, 2)},
    linear_backward: {"dY": (6, 4, 2), "X": (6, 4, 3), "W": (3, 2)},
    layer_norm_backward: {"dY": (4, 3), "X": (4, 3), "gain": (3,)},
    rms_norm_backward: {"dY": (4, 3), "X": (4, 3), "gain": (3,)},
    gelu_backward: {"dY": (4, 3), "X": (4, 3)},
    feed_forward_backward: {"dY": (4, 2), "X": (4, 3), "W_1": (3, 5), "b_1": (5,), "W_2": (5, 2)},
}
FREE = [(query_jacobian, "weights", 0), (query_jacobian, "K", 1), (query_jacobian, "V", 1)]
ONE_SIZE_OFF = [
    (function, name, axis)
    for function, shapes in CALLS.items()
    for name, shape in shapes.items()
    for axis in range(len(shape))
    if (function, name, axis) not in FREE
]


class TestShapes:
    @pytest.mark.parametrize(("function", "name", "axis"), ONE_SIZE_OFF)
    def test_one_size_off_is_refused_with_all_shapes(self, function, name, axis):
        shapes = CALLS[function]
        function(**{each: np.ones(shape) for each, shape in shapes.items()})
        wrong = tuple(size + (i == axis) for i, size in enumerate(shapes[name]))
        got = ", ".join(f"{each} {wrong if each == name else s}" for each, s in shapes.items())
        with pytest.raises(ValueError, match=rf"must (agree|have) .*: got {re.escape(got)}$"):
            function(**{s: np.ones(wrong if s == name else shapes[s]) for s in shapes})

    @pytest.mark.parametrize("function", [attention_backward, query_jacobian])
    def test_scale_and_width(self, function):
        shapes = CALLS[function]
        inputs = {name: np.ones(shape) for name, shape in shapes.items()}
        with pytest.raises(ValueError, match=r"^scale must be a finite number .* got nan"):
            function(**inputs, scale=math.nan)
        none = {name: M[..., :0] if name in "QK" else M for name, M in inputs.items()}
        with pytest.raises(ValueError, match=r"with d_k ≥ 1: got"):
            function(**none)

    @pytest.mark.parametrize("function", [layer_norm_backward, rms_norm_backward])
    def test_eps(self, function):
        with pytest.raises(ValueError, match=r"^eps must be ≥ 0 and finite, got -1"):
            function(np.ones((2, 3)), np.ones((2, 3)), eps=-1)
        X, up = 1e-3 * normal(2, 3), normal(2, 3, seed=1)
        forward = {layer_norm_backward: layer_norm, rms_norm_backward: rms_norm}[function]
        assert check_gradient(lambda X: (forward(X) * up).sum(), X, function(up, X)[0], h=1e-7,
                              tolerance=1e-5).ok  # fmt: skip

    @pytest.mark.parametrize("dtype", [np.float16, np.float32])
    def test_give_back_the_precision_they_got(self, dtype):
        for function, shapes in CALLS.items():
            result = function(**{name: np.ones(shape, dtype) for name, shape in shapes.items()})
            parts = result.values() if isinstance(result, dict) else result
            parts = [result] if isinstance(result, np.ndarray) else parts
            assert {M.dtype for M in parts} == {np.dtype(dtype)}, function.__name__

    def test_tokens_and_targets(self):
        with pytest.raises(ValueError, match=r"^vocabulary must be a whole number ≥ 1, got 0"):
            embedding_backward(np.ones((2, 4)), [0, 0], 0)
        with pytest.raises(ValueError, match=r"^tokens must lie between 0 and 2, got 0 to 3"):
            embedding_backward(np.ones((2, 4)), [0, 3], 3)
        with pytest.raises(ValueError, match=r"^dX must be \(\.\.\., n, d\): got dX \(4,\)"):
            embedding_backward(np.ones(4), [0], 3)
        with pytest.raises(ValueError, match=r"^targets must lie between 0 and 2, got 0 to 3"):
            cross_entropy_backward(np.ones((2, 3)), [0, 3])
        with pytest.raises(ValueError, match=r"^logits must be \(\.\.\., n, vocabulary\): got"):
            cross_entropy_backward(np.ones(3), [0])
        assert embedding_backward([[1, 2]], [0], 1).tolist() == [[1, 2]]
        assert cross_entropy_backward([[0, 0]], [1]).tolist() == [[0.5, -0.5]]

    def test_multi_head(self):
        shapes = {"X": (4, 6), "W_Q": (6, 8), "W_K": (3, 8), "W_V": (3, 4), "W_O": (4, 7)}
        shapes["source"] = (5, 3)
        inputs = {name: normal(*shape) for name, shape in shapes.items()}
        result, dY = multi_head_layer(**inputs, heads=2), normal(4, 7)
        for name in ("dY", *shapes):
            given = {"dY": dY, **inputs}
            given[name] = given[name][:, :-1]
            if name not in ("W_Q", "W_K", "W_V"):  # whose width the result knows
                with pytest.raises(ValueError, match=r"must agree in \w+: got dY"):
                    multi_head_backward(**given, result=result)
            given[name] = given[name][0]
            with pytest.raises(ValueError, match=rf"^{name} must be .*: got dY"):
                multi_head_backward(**given, result=result)
        with pytest.raises(ValueError, match=r"^scale must be a finite number"):
            multi_head_backward(dY, **inputs, result=result, scale=math.inf)


class TestCovariance:
    def test_is_how_the_output_moves_with_the_query(self):
        Q, K, V = normal(2, 3, 4), normal(2, 6, 4), normal(2, 6, 5)
        jacobian = query_jacobian(attention(Q, K, V).weights, K, V)
        assert jacobian.shape == (2, 3, 5, 4)
        for c in range(5):

            def output(x, c=c):
                return attention(x, K, V).output[..., c].sum()

            assert check_gradient(output, Q, jacobian[:, :, c]).ok

    def test_is_the_covariance_over_the_root_of_the_key_width(self):
        a, K, V = np.array([0.5, 0.3, 0.2]), normal(3, 4), normal(3, 2)
        covariance = sum(a[j] * np.outer(V[j] - a @ V, K[j] - a @ K) for j in range(3))
        np.testing.assert_allclose(query_jacobian(a[None], K, V)[0], covariance / 2, atol=1e-15)
        raw = query_jacobian(a[None], K, V, scale=1.0)[0]
        np.testing.assert_allclose(raw, covariance, atol=1e-15)

    def test_agrees_with_the_backward_pass(self):
        Q, K, V, up = normal(3, 4), normal(6, 4), normal(6, 5), normal(3, 5)
        A = attention(Q, K, V).weights
        dQ, _, _ = attention_backward(up, Q, K, V, weights=A)
        by_covariance = np.einsum("nv,nvk->nk", up, query_jacobian(A, K, V))
        np.testing.assert_allclose(dQ, by_covariance, atol=1e-14)

    def test_is_zero_for_a_query_with_one_key(self):
        a = np.eye(3)[[1]]
        assert (query_jacobian(a, normal(3, 4), normal(3, 2)) == 0).all()


class TestMultiHead:
    @pytest.mark.parametrize("kv_heads", [1, 2, 4])
    @pytest.mark.parametrize("mask", [None, causal_mask(5)])
    def test_agrees(self, kv_heads, mask):
        d, d_k, d_v = 6, 3, 2
        widths = {"W_Q": 4 * d_k, "W_K": kv_heads * d_k, "W_V": kv_heads * d_v}
        inputs = {name: normal(d, width) for name, width in widths.items()}
        inputs |= {"X": normal(2, 5, d), "W_O": normal(4 * d_v, 7)}
        biases = {"b" + n[1:]: normal(inputs[n].shape[1], seed=2) for n in (*widths, "W_O")}
        up, options = normal(2, 5, 7, seed=1), {"heads": 4, "kv_heads": kv_heads, "mask": mask}
        result = multi_head_layer(**inputs, **biases, **options)
        grads = multi_head_backward(up, **inputs, result=result)
        assert set(grads) == {*inputs, *biases}
        agree(lambda **x: multi_head_layer(**x, **options).output, inputs | biases, grads, up)

    def test_agrees_across_two_sequences(self):
        inputs = {"X": normal(2, 4, 6), "source": normal(2, 5, 3), "W_Q": normal(6, 8)}
        inputs |= {"W_K": normal(3, 8), "W_V": normal(3, 4), "W_O": normal(4, 7)}
        up = normal(2, 4, 7, seed=1)
        result = multi_head_layer(**inputs, heads=2)
        grads = multi_head_backward(up, **inputs, result=result)
        grads = {name: grads[name] for name in inputs}
        agree(lambda **x: multi_head_layer(**x, heads=2).output, inputs, grads, up)


class TestWholeModel:
    @pytest.mark.parametrize("residual", [True, False])
    @pytest.mark.parametrize("norm", ["pre", "post", "none"])
    def test_a_block_with_every_bias(self, norm, residual):
        config = Config(vocabulary=5, context=4, d=4, heads=2, d_ff=6, norm=norm)
        layer = layer_params(init_params(config, 0, np.float64), 0)
        layer |= {name: normal(4, seed=i) for i, name in enumerate(("b_Q", "b_K", "b_V", "b_O"))}
        layer = {name: W + 0.3 * normal(*W.shape, seed=5) for name, W in layer.items()}
        X, up = normal(2, 4, 4), normal(2, 4, 4, seed=1)
        options = {"norm": norm, "residual": residual, "eps": 0.01}
        result = block(X, layer, heads=2, mask=causal_mask(4), **options)
        grads = block_backward(up, X, layer, result=result, **options)
        assert set(grads) == {"X", *layer}

        def forward(X, **layer):
            return block(X, layer, heads=2, mask=causal_mask(4), **options).output

        agree(forward, {"X": X, **layer}, grads, up)

    @pytest.mark.parametrize(("norm", "d_ff", "causal"), KINDS)
    def test_every_parameter_of_a_model(self, norm, d_ff, causal):
        config = Config(
            vocabulary=7, context=6, d=4, layers=2, heads=2, d_k=3, d_ff=d_ff, norm=norm,
            causal=causal,
        )  # fmt: skip
        params = init_params(config, 0, np.float64)
        params = {name: W + 0.1 * normal(*W.shape) for name, W in params.items()}
        rng = np.random.default_rng(1)
        tokens, targets = rng.integers(7, size=(2, 2, 5))
        counted = np.array([[1, 0, 1, 1, 0.5]] * 2)
        loss, grads = loss_and_gradients(params, tokens, targets, config, counted=counted)

        def loss_of(**params):
            return cross_entropy(transformer(params, tokens, config).logits, targets, counted)

        assert loss == loss_of(**params)
        assert list(grads) == list(params)
        agree(loss_of, params, grads, 1.0)

    def test_a_loss_on_the_past_asks_nothing_of_the_future(self):
        config = Config(vocabulary=7, context=6, d=4, layers=2)
        params = init_params(config, 0, np.float64)
        counted = np.array([[1, 1, 1, 0, 0, 0]])
        _, grads = loss_and_gradients(
            params, [[0, 1, 2, 3, 4, 5]], [[1, 2, 3, 4, 5, 6]], config, counted=counted
        )
        assert (grads["E"][3:] == 0).all() and (grads["P"][3:] == 0).all()
        assert (grads["E"][:3] != 0).all()


class TestCheck:
    def test_differences_of_a_cube(self):
        x = np.array([1.0, -2.0])
        np.testing.assert_allclose(numerical_gradient(lambda x: (x**3).sum(), x), [3, 12], 1e-9)

    def test_hands_out_arrays_of_its_own(self):
        """A loss that keeps or changes what it is given must not change the answer."""
        x, kept = np.array([1.0, -2.0]), []

        def careless(z):
            kept.append(z)
            loss = (z**3).sum()
            z[:] = 0
            return loss

        np.testing.assert_allclose(numerical_gradient(careless, x), [3, 12], 1e-9)
        assert x.tolist() == [1, -2]
        assert len({id(z) for z in kept}) == 4

    def test_takes_whole_numbers_and_a_step(self):
        assert numerical_gradient(lambda x: x**2, 3) == pytest.approx(6, abs=1e-9)
        coarse = numerical_gradient(lambda x: (x**3).sum(), [2], h=0.5)
        assert coarse == pytest.approx(12 + 0.5**2)  # the formula's own error, h²

    def test_finds_one_wrong_entry(self):
        x = normal(3, 4)
        gradient = 2 * x
        gradient[1, 2] += 1e-3
        found = check_gradient(lambda x: (x**2).sum(), x, gradient)
        assert not found.ok and found.index == (1, 2)
        assert str(found).startswith("Not yet: largest error 2.0e-04, at [1, 2], where")
        assert check_gradient(lambda x: (x**2).sum(), x, 2 * x).ok

    def test_says_how_large_and_where(self):
        x, wrong = np.array([[1.0, 2], [3, 4]]), np.array([[2.0, 4], [6, 8.5]])
        found = check_gradient(lambda x: (x**2).sum(), x, wrong)
        assert found.index == (1, 1) and found.given == 8.5
        assert found.numerical == pytest.approx(8)
        assert found.error == pytest.approx(0.5 / 8)  # relative to the largest entry
        assert check_gradient(lambda x: (x**2).sum(), x, wrong, tolerance=0.07).ok
        small = check_gradient(lambda x: (x**2).sum() / 100, x[0], x[0] / 50 + 1e-3)
        assert small.error == pytest.approx(1e-3)  # absolute where all are below 1
        assert str(check_gradient(lambda x: (x**2).sum(), x, 2 * x)).startswith("Right: largest")
        coarse = check_gradient(lambda x: (x**3).sum(), [2.0], [12.0], h=0.5)
        assert coarse.numerical == pytest.approx(12.25)

    def test_the_default_tolerance_is_1e_7(self):
        x = np.ones(2)
        assert check_gradient(lambda x: x.sum(), x, x + 9e-8).ok
        assert not check_gradient(lambda x: x.sum(), x, x + 1.1e-7).ok

    def test_a_missing_factor_is_found(self):
        Q, K, V, up = normal(3, 4), normal(6, 4), normal(6, 5), normal(3, 5)
        A = attention(Q, K, V).weights
        forgot_scale, _, _ = attention_backward(up, Q, K, V, weights=A, scale=1.0)
        assert not check_gradient(
            lambda q: (attention(q, K, V).output * up).sum(), Q, forgot_scale
        ).ok

    def test_nan_is_never_right(self):
        assert not check_gradient(lambda x: x.sum(), [1.0, 2.0], [1.0, np.nan]).ok

    def test_refusals(self):
        with pytest.raises(ValueError, match=r"got gradient \(3,\), x \(2,\)"):
            check_gradient(lambda x: x.sum(), np.ones(2), np.ones(3))
        with pytest.raises(ValueError, match=r"must give one number, got shape \(2,\)"):
            check_gradient(lambda x: x, np.ones(2), np.ones(2))
