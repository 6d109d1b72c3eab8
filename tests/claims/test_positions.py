"""What chapter 5 says, measured apart from its cells."""

import itertools

import numpy as np
import pytest

from attn_lib import attention, self_attention, softmax
from attn_lib.positions import (
    add_positions,
    alibi_bias,
    alibi_slopes,
    equivariance_gap,
    relative_bias,
    rope,
    sinusoidal_positions,
)

N, D = 5, 8
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, D))
MAPS = RNG.normal(size=(3, D, D)) / np.sqrt(D)
LEARNED = RNG.normal(size=(64, D))
STEP = np.arange(N) - np.arange(N)[:, None]
AROUND = np.minimum(abs(STEP), N - abs(STEP))


def with_bias(B):
    return lambda X: self_attention(X, *MAPS, mask=B)


def with_table(T, shift=0):
    return lambda X: self_attention(add_positions(X, T, np.arange(len(X)) + shift), *MAPS)


def with_rope(shift=0):
    def layer(X):
        Q, K, V = (X @ W for W in MAPS)
        places = np.arange(len(X)) + shift
        return attention(rope(Q, places), rope(K, places), V)

    return layer


@pytest.mark.parametrize(
    ("layer", "hidden"),
    [
        (with_bias(None), 120),
        (with_bias(alibi_bias(N, slopes=0.5, kind="symmetric")), 2),
        (with_bias(alibi_bias(N, slopes=0.5)), 1),
        (with_bias(relative_bias(RNG.normal(size=2 * N - 1), N)), 1),
        (with_table(LEARNED), 1),
        (with_table(sinusoidal_positions(64, D)), 1),
        (with_rope(), 1),
        (with_bias(-0.5 * AROUND), 10),
        (with_bias(RNG.normal(size=N)[STEP % N]), 5),
    ],
)
def test_how_many_of_all_orders_are_not_noticed(layer, hidden):
    orders = itertools.permutations(range(N))
    missed = [rho for rho in orders if equivariance_gap(layer, X, np.array(rho)) < 1e-9]
    assert len(missed) == hidden
    if hidden == 2:
        assert missed[-1] == (4, 3, 2, 1, 0)


def test_a_bias_is_missed_exactly_if_it_comes_back_up_to_a_constant_in_each_row():
    B = RNG.normal(size=(N, N))
    exchange = np.array([1, 0, 2, 3, 4])
    kept = (B + B[exchange][:, exchange]) / 2
    assert equivariance_gap(with_bias(kept), X, exchange) < 1e-12
    shifted = kept + RNG.normal(size=(N, 1))
    assert equivariance_gap(with_bias(shifted), X, exchange) < 1e-12
    assert equivariance_gap(with_bias(B), X, exchange) > 0.01


def test_rules_do_not_tell_equal_tokens_apart_and_tables_do():
    laugh = np.tile(X[0], (N, 1))
    for layer in (with_bias(alibi_bias(N, slopes=0.5)), with_rope()):
        assert np.ptp(layer(laugh).output, axis=0).max() < 1e-12
    assert np.ptp(with_table(LEARNED)(laugh).output, axis=0).max() > 0.1


def test_a_shift_leaves_rules_alone_and_not_tables():
    def moved_by(layer):
        return np.abs(layer(7)(X).output - layer(0)(X).output).max()

    assert moved_by(with_rope) < 1e-12
    assert moved_by(lambda shift: with_table(LEARNED, shift)) > 0.1
    assert moved_by(lambda shift: with_table(sinusoidal_positions(64, D), shift)) > 0.1


def test_each_step_nearer_multiplies_an_alibi_weight_by_the_same_factor():
    slope = alibi_slopes(8)[1]
    weights = softmax(alibi_bias(6, slopes=slope))
    np.testing.assert_allclose(weights[5, 1:] / weights[5, :-1], np.exp(slope))
    far_share = softmax(-0.5 * np.arange(200))[4:].sum()
    assert far_share == pytest.approx(np.exp(-0.5) ** 4)


def test_a_head_made_of_waves_reads_the_previous_token():
    waves = sinusoidal_positions(12, 64)
    one_step = rope(np.eye(64), np.full(64, -1))
    np.testing.assert_allclose(waves[:-1] @ one_step, waves[1:], atol=1e-12)
    read = attention(8 * waves, waves @ one_step, waves).weights.argmax(axis=1)
    np.testing.assert_array_equal(read[1:], np.arange(11))


def test_a_row_of_waves_has_one_length():
    lengths = np.linalg.norm(sinusoidal_positions(40, 512), axis=1)
    np.testing.assert_allclose(lengths, np.sqrt(256))
