"""States of fixed size: against loops written out, and against the masked product."""

import numpy as np
import pytest

from attn_lib import attention, linear_attention
from attn_lib.linear import decay_mask, state_attention


def draw(seed, n=6, d_k=3, d_v=2, batch=()):
    rng = np.random.default_rng(seed)
    Q, K = rng.normal(size=(2, *batch, n, d_k))
    return Q, K, rng.normal(size=(*batch, n, d_v)), rng.random((*batch, n))


def by_loops(Q, K, V, gates, strengths):
    """Every entry of the state by itself."""
    Z, rows = np.zeros((K.shape[1], V.shape[1])), []
    for q, k, v, g, b in zip(Q, K, V, gates, strengths, strict=True):
        faded = np.array([[g[r] * Z[r, c] for c in range(len(v))] for r in range(len(k))])
        said = [sum(k[r] * faded[r, c] for r in range(len(k))) for c in range(len(v))]
        for r in range(len(k)):
            for c in range(len(v)):
                Z[r, c] = faded[r, c] + b * k[r] * (v[c] - said[c])
        rows.append(q @ Z)
    return np.array(rows), Z


class TestState:
    @pytest.mark.parametrize("seed", range(3))
    def test_equals_loops(self, seed):
        Q, K, V, strengths = draw(seed)
        gates = np.random.default_rng(seed + 10).random(K.shape)
        output, Z = state_attention(Q, K, V, gates=gates, strengths=strengths)
        rows, held = by_loops(Q, K, V, gates, strengths)
        np.testing.assert_allclose(output, rows)
        np.testing.assert_allclose(Z, held)

    def test_one_gate_a_token_fades_every_row(self):
        Q, K, V, gates = draw(3)
        one = state_attention(Q, K, V, gates=gates[:, None])[0]
        each = state_attention(Q, K, V, gates=np.repeat(gates[:, None], 3, axis=1))[0]
        np.testing.assert_allclose(one, each)

    def test_without_either_it_is_linear_attention_before_its_normaliser(self):
        Q, K, V, _ = draw(4)
        Q, K = abs(Q), abs(K)
        summed = state_attention(Q, K, V)[0] / np.sum(Q * K.cumsum(axis=0), axis=1)[:, None]
        same = linear_attention(Q, K, V, causal=True, features=lambda x: x)
        np.testing.assert_allclose(summed, same)

    @pytest.mark.parametrize("at", [0, 2, 6])
    def test_goes_on_where_it_stopped(self, at):
        Q, K, V, strengths = draw(5, batch=(2,))
        whole, last = state_attention(Q, K, V, strengths=strengths)
        first = [M[:, :at] for M in (Q, K, V)], strengths[:, :at]
        rest = [M[:, at:] for M in (Q, K, V)], strengths[:, at:]
        before, state = state_attention(*first[0], strengths=first[1])
        after, state = state_attention(*rest[0], strengths=rest[1], state=state)
        np.testing.assert_allclose(np.concatenate([before, after], axis=1), whole)
        np.testing.assert_allclose(state, last)

    def test_keeps_float32_and_rounds_float16_once(self):
        Q, K, V, _ = (M.astype(np.float16) for M in draw(6))
        output = state_attention(Q, K, V)[0]
        fine = state_attention(*(M.astype(np.float32) for M in (Q, K, V)))[0]
        assert output.dtype == np.float16 and fine.dtype == np.float32
        np.testing.assert_array_equal(output, fine.astype(np.float16))

    @pytest.mark.parametrize(
        ("gates", "strengths", "words"),
        [
            ((6, 2), (6,), "gates must be one or d_k"),
            ((5, 1), (6,), "gates"),
            ((6, 1), (5,), "str"),
        ],
    )
    def test_refuses(self, gates, strengths, words):
        Q, K, V, _ = draw(7)
        with pytest.raises(ValueError, match=words):
            state_attention(Q, K, V, gates=np.ones(gates), strengths=np.ones(strengths))


class TestDecay:
    def test_by_hand(self):
        expected = [[1, 0, 0], [0.5, 1, 0], [0.1, 0.2, 1]]
        np.testing.assert_allclose(decay_mask([0.9, 0.5, 0.2]), expected)

    @pytest.mark.parametrize("batch", [(), (2,)])
    def test_is_what_the_steps_do(self, batch):
        Q, K, V, gates = draw(8, batch=batch)
        steps = state_attention(Q, K, V, gates=gates[..., None])[0]
        np.testing.assert_allclose((Q @ K.mT * decay_mask(gates)) @ V, steps)

    def test_gates_of_0_leave_each_token_alone(self):
        np.testing.assert_array_equal(decay_mask(np.zeros(3)), np.eye(3))

    def test_is_no_softmax(self):
        Q, K, V, _ = draw(9)
        assert not np.allclose(state_attention(Q, K, V)[0], attention(Q, K, V).output)
