"""What chapter 5 says, measured apart from its cells."""

import itertools
from pathlib import Path

import jupytext
import numpy as np
import pytest

import attn_lib
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


def notice(B, W_V, tokens, rho):
    W_Q, W_K = MAPS[:2]
    return equivariance_gap(lambda Y: self_attention(Y, W_Q, W_K, W_V, mask=B), tokens, rho)


@pytest.mark.parametrize("kind", ["random", "distance", "causal"])
@pytest.mark.parametrize("d_v", [1, 2])
def test_a_bias_that_does_not_come_back_is_noticed_however_narrow_the_values(kind, d_v):
    """By the input of the proof: x_j = D_ij u, made small."""
    W_V = MAPS[2][:, :d_v]
    B = {
        "random": np.random.default_rng(9).normal(size=(N, N)),
        "distance": alibi_bias(N, slopes=0.7, kind="symmetric"),
        "causal": alibi_bias(N, slopes=0.7),  # −∞ ahead of a query
    }[kind]
    u = W_V[:, 0]
    for rho in map(np.array, itertools.permutations(range(N))):
        back = np.argsort(rho)
        D = softmax(B[back][:, back]) - softmax(B)
        i = np.abs(D).sum(axis=1).argmax()
        if np.abs(D[i]).max() < 1e-9:
            assert notice(B, W_V, X, rho) < 1e-9
            continue
        tokens, small = np.outer(D[i], u), 1e-3
        limit = np.linalg.norm(D @ tokens @ W_V)
        assert limit > 1e-3
        assert notice(B, W_V, small * tokens, rho) / small == pytest.approx(limit, rel=1e-3)


@pytest.mark.parametrize(
    ("columns", "factor", "missed"), [(8, 1, 2), (2, 1, 2), (1, 1, 2), (8, 0, 120)]
)
def test_a_bias_by_distance_misses_all_orders_only_if_there_are_no_values(columns, factor, missed):
    B, W_V = alibi_bias(N, slopes=0.3, kind="symmetric"), factor * MAPS[2][:, :columns]
    orders = [np.array(rho) for rho in itertools.permutations(range(N))]
    assert sum(notice(B, W_V, X, rho) < 1e-9 for rho in orders) == missed


def test_equal_biases_at_different_distances_may_hide_more():
    """The hypothesis of the theorem: a window of even weights that holds all tokens."""
    assert notice(np.full((N, N), -0.5), MAPS[2], X, np.array([2, 0, 1, 4, 3])) < 1e-12


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


@pytest.fixture(scope="module")
def longer():
    """Shares of right answers at lengths 16 and 64, by the chapter's training from other starts."""
    room = {name: getattr(attn_lib, name) for name in attn_lib.__all__} | {"np": np}
    chapter = jupytext.read(Path(__file__).parents[2] / "book/positions.md")
    [cell] = [c.source for c in chapter.cells if "def trained_on_16" in c.source]
    exec(cell, room)
    found = {}
    for kind in room["KINDS"]:
        models = [room["trained_on_16"](kind, seed) for seed in (4, 5, 6)]
        lengths = (16,) if kind == "learned table" else (16, 64)
        found[kind] = np.array([[room["share_right"](m, kind, L) for L in lengths] for m in models])
    return found


def test_the_distance_without_a_mask_stays_at_one_half(longer):
    assert (np.abs(longer["distance"] - 0.5) < 0.07).all()


def test_waves_do_not_carry_on_and_causal_distance_does(longer):
    assert (longer["sinusoidal table"][:, 0] > 0.99).all()
    assert (longer["sinusoidal table"][:, 1] < 0.6).all()
    assert (longer["learned table"] > 0.99).all()
    assert (np.abs(longer["distance, causal"] - 0.96) < 0.025).all()


def test_rope_does_better_than_waves_and_not_for_every_start(longer):
    rope_short, rope_long = longer["RoPE"].T
    assert (rope_short > 0.9).all()
    assert np.ptp(rope_long) > 0.2 and rope_long.max() > 0.95
    assert rope_long.mean() > longer["sinusoidal table"][:, 1].mean() + 0.2
