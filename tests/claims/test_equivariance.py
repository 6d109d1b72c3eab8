"""What chapter 4 says, measured apart from its cells."""

import itertools

import numpy as np
import pytest

from attn_lib import attention, causal_mask, self_attention, softmax
from attn_lib.model import Config, init_params, transformer
from attn_lib.positions import equivariance_gap

ORDERS = [np.array(order) for order in itertools.permutations(range(4))]


@pytest.fixture
def draw():
    rng = np.random.default_rng(3)
    return rng.normal(size=(4, 5)), rng.normal(size=(3, 5, 5)) / np.sqrt(5)


def test_softmax_moves_with_its_scores_a_forbidden_pair_too(draw):
    S = draw[0][:, :4].copy()
    S[1, 2] = S[3, 0] = -np.inf
    for rho in ORDERS:
        np.testing.assert_allclose(softmax(S[rho][:, rho]), softmax(S)[rho][:, rho], atol=1e-15)


def test_a_layer_is_equivariant_for_every_order_and_not_invariant(draw):
    X, maps = draw
    for rho in ORDERS:
        assert equivariance_gap(lambda X: self_attention(X, *maps), X, rho) < 1e-13
    still = self_attention(X, *maps).output
    assert np.abs(self_attention(X[::-1], *maps).output - still).max() > 0.1


def test_a_deep_model_gives_six_orders_one_pooled_answer_unless_it_has_positions():
    config = Config(vocabulary=3, context=3, d=16, layers=4, heads=2, d_ff=32, causal=False)
    params = init_params(config, dtype=float)

    def answers(params):
        orders = list(itertools.permutations(range(3)))
        return transformer(params, orders, config).logits.mean(axis=-2)

    blind = answers(params | {"P": np.zeros_like(params["P"])})
    assert np.ptp(blind, axis=0).max() < 1e-13
    assert np.ptp(answers(params), axis=0).max() > 0.1


def test_a_fixed_query_and_equal_tokens(draw):
    X, maps = draw
    X = np.vstack([X, X[1]])
    still = self_attention(X, *maps).output
    np.testing.assert_allclose(still[1], still[4], atol=1e-14)
    moved = self_attention(X[[0, 3, 2, 1, 4]], *maps).output
    np.testing.assert_allclose(moved[[0, 2, 4]], still[[0, 2, 4]], atol=1e-14)


@pytest.mark.parametrize("copies", [2, 3])
def test_doubling_every_token_changes_nothing_and_doubling_one_does(draw, copies):
    X, maps = draw

    def stack(X):
        for _ in range(2):
            X = np.tanh(X + self_attention(X, *maps).output)
        return X

    np.testing.assert_allclose(stack(np.repeat(X, copies, axis=0))[::copies], stack(X), atol=1e-13)
    assert np.abs(stack(np.vstack([X, X[0]]))[:4] - stack(X)).max() > 1e-3


def test_a_start_token_counts_the_others():
    for m in (1, 7, 100):
        values = np.zeros((1 + m, 1))
        values[0] = 1
        share = attention(np.zeros((1, 2)), np.ones((1 + m, 2)), values).output[0, 0]
        assert 1 / share - 1 == pytest.approx(m)


def test_one_causal_layer_cannot_order_its_past_and_two_can(draw):
    X, maps = draw
    mask = causal_mask(4)

    def stack(X, depth, mask=mask):
        for _ in range(depth):
            X = X + self_attention(X, *maps, mask=mask).output
        return X

    past_moved = X[[2, 0, 1, 3]]
    assert np.abs(stack(past_moved, 1)[3] - stack(X, 1)[3]).max() < 1e-14
    assert np.abs(stack(past_moved, 2)[3] - stack(X, 2)[3]).max() > 0.01
    rho = np.array([2, 0, 3, 1])
    moved = stack(X[rho], 3, mask[rho][:, rho])
    np.testing.assert_allclose(moved, stack(X, 3)[rho], atol=1e-12)


def test_only_two_kinds_of_linear_mixing_do_not_see_the_order():
    P = [np.eye(4)[rho] for rho in ORDERS]
    commute = np.vstack([np.kron(M, np.eye(4)) - np.kron(np.eye(4), M.T) for M in P])
    assert 16 - np.linalg.matrix_rank(commute) == 2
