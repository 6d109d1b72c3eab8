"""What chapter 1 says, measured apart from its cells."""

import itertools

import numpy as np
import pytest

from attn_lib import (
    attention_weights,
    gaussian_scores,
    hard_weights,
    self_attention,
    softmax,
    with_length,
)
from attn_lib.examples import ACCOUNT, COLOURS, RIVER

TEMPERATURES = np.geomspace(0.01, 1000, 301)


def read(scene, T):
    """Weights and row of *bank*, when its own row is query, keys and values at once."""
    X = scene.X
    powers = np.exp((X @ X[scene.query] - (X @ X[scene.query]).max()) / T)
    a = powers / powers.sum()
    return a, dict(zip(scene.features, a @ X, strict=True))


# Back to the bank ------------------------------------------------------------------------


def test_by_the_river_nature_falls_at_every_temperature_and_money_further():
    for T in TEMPERATURES:
        a, bank = read(RIVER, T)
        others = 1 - a[RIVER.query]
        assert bank["nature"] <= 0.5 + 1e-12 and bank["money"] <= bank["nature"] + 1e-12
        assert a[RIVER.tokens.index("river")] <= others / 3 + 1e-12
        if T > 0.1:
            assert bank["nature"] < 0.5
    assert read(RIVER, 0.3)[1]["nature"] == pytest.approx(0.48, abs=0.005)


def test_sat_and_on_are_why():
    """Take them out, and nature rises: the sentence was diluted, not the idea refuted."""
    kept = [i for i, token in enumerate(RIVER.tokens) if token not in ("sat", "on")]
    X, nature = RIVER.X[kept], RIVER.features.index("nature")
    a = softmax(X @ X[-1] / 0.3)
    assert (a @ X)[nature] > 0.5


def test_a_ratio_rises_while_both_of_its_numbers_fall():
    rows = [read(RIVER, T)[1] for T in (0.1, 0.3, 1, 1e6)]
    ratios = [row["nature"] / row["money"] for row in rows]
    assert ratios == sorted(ratios) and ratios[-1] == pytest.approx(3, abs=1e-3)
    for name in ("nature", "money"):
        values = [row[name] for row in rows]
        assert values == sorted(values, reverse=True)


def test_at_the_account_money_hardly_rises_at_any_temperature():
    most = max(read(ACCOUNT, T)[1]["money"] for T in TEMPERATURES)
    assert 0.5 < most < 0.52


def test_three_maps_bring_nature_up_from_the_same_rows():
    outputs = self_attention(RIVER.X, RIVER.W_Q, RIVER.W_K, RIVER.W_V).output[RIVER.query]
    nature, money, _ = outputs
    assert nature > 0.65 and money < 0.15


# The lookup ----------------------------------------------------------------------------------


def test_a_hard_lookup_can_learn_what_to_store_and_not_where_to_look():
    rng = np.random.default_rng(7)
    K, V, q = rng.normal(size=(5, 3)), rng.normal(size=(5, 2)), rng.normal(size=(300, 3))
    step = 1e-6 * rng.normal(size=(300, 3))

    def hard(q, V):
        return hard_weights(gaussian_scores(q, K)) @ V

    def soft(q):
        return attention_weights(gaussian_scores(q, K), temperature=0.5) @ V

    assert np.array_equal(hard(q + step, V), hard(q, V))
    assert np.abs(soft(q + step) - soft(q)).max(axis=1).min() > 0
    assert (np.abs(hard(q, V + 1e-6) - hard(q, V)) > 0).all()


def test_softmax_is_positive_sums_to_one_keeps_the_order_and_sees_differences_only():
    S = 3 * np.random.default_rng(8).normal(size=(200, 6))
    a = softmax(S)
    assert (a > 0).all()
    np.testing.assert_allclose(a.sum(axis=1), 1)
    assert (a.argsort(axis=1) == S.argsort(axis=1)).all()
    np.testing.assert_allclose(softmax(S - 100), a)
    np.testing.assert_allclose(softmax(2 * S), attention_weights(S, temperature=0.5))
    assert np.abs(softmax(2 * S) - a).max() > 0.1


def test_the_largest_scores_share_as_the_temperature_falls():
    for many, m in itertools.product((1, 2, 3), (4, 7)):
        s = np.r_[np.full(many, 2.0), np.linspace(-1, 1, m - many)][None]
        cold = attention_weights(s, temperature=0.01)[0]
        np.testing.assert_allclose(
            cold, np.r_[np.full(many, 1 / many), np.zeros(m - many)], atol=1e-9
        )
        np.testing.assert_allclose(attention_weights(s, temperature=1e9)[0], 1 / m, atol=1e-8)


def test_no_query_and_no_temperature_leaves_the_hull_and_other_shares_do():
    rng = np.random.default_rng(9)
    directions = rng.normal(size=(2, 50))
    along = COLOURS.V @ directions
    escaped = 0
    for T in (0.02, 0.3, 5):
        q = rng.uniform(-5, 5, size=(200, 2))
        a = attention_weights(gaussian_scores(q, COLOURS.K), temperature=T)
        o = a @ along
        assert (o >= along.min(axis=0) - 1e-12).all() and (o <= along.max(axis=0) + 1e-12).all()
        escaped += (2 * o > along.max(axis=0)).sum()
    assert escaped > 100


# The curve, and the dot product -----------------------------------------------------------------


def test_the_narrowest_bandwidth_wins_only_if_a_measurement_sees_itself():
    rng = np.random.default_rng(10)
    x = rng.uniform(0, 6, size=60)
    y = np.sin(2 * x) + rng.normal(scale=0.35, size=60)
    sigmas = np.geomspace(0.02, 3, 40)

    def error(sigma, own):
        S = -((x[:, None] - x) ** 2) / 2 / sigma**2
        S[np.diag_indices(60)] = own
        return np.mean((softmax(S) @ y - y) ** 2)

    seeing = [error(sigma, 0.0) for sigma in sigmas]
    left_out = [error(sigma, -np.inf) for sigma in sigmas]
    assert np.argmin(seeing) == 0
    assert 0.08 < sigmas[np.argmin(left_out)] < 0.5
    assert left_out[0] > 1.3 * min(left_out) < left_out[-1]


def test_beyond_the_data_the_estimate_becomes_the_last_measurement():
    x, y = np.array([0.0, 1, 2, 3]), np.array([5.0, -1, 2, 0.7])
    for sigma in (0.3, 1.0, 2.0):
        far = 3 + 40 * sigma**2
        assert softmax(gaussian_scores([[far]], x[:, None], bandwidth=sigma)) @ y == pytest.approx(
            0.7
        )


@pytest.mark.parametrize("T", [0.2, 1.0, 30.0])
def test_dot_product_and_distance_agree_for_equal_lengths_and_for_these_only(T):
    rng = np.random.default_rng(11)
    q, K = rng.normal(size=(50, 3)), rng.normal(size=(6, 3))

    def gap(K):
        near = attention_weights(gaussian_scores(q, K), temperature=T)
        return np.abs(near - attention_weights(q @ K.T, temperature=T)).max(axis=1)

    assert gap(with_length(K, 1.3)).max() < 1e-12
    assert gap(K).min() > 1e-10  # for no query at all, and for most far from it
    assert np.median(gap(K)) > 0.01
