"""What chapter 2 says, measured apart from its cells."""

from pathlib import Path

import numpy as np
import pytest

from attn_lib import attention, self_attention, softmax
from attn_lib.examples import ACCOUNT, CHEF, RIVER, random_scene
from attn_lib.minilm import read_export

DATA = Path(__file__).resolve().parents[2] / "book/data"


def read(scene, X=None):
    return self_attention(scene.X if X is None else X, scene.W_Q, scene.W_K, scene.W_V)


def cosine(u, v):
    return u @ v / np.linalg.norm(u) / np.linalg.norm(v)


# What is read ---------------------------------------------------------------------------------


def test_bland_reads_soup_then_tasted_and_soup_does_not_return_it():
    A, at = read(CHEF).weights, CHEF.tokens.index
    row = dict(zip(CHEF.tokens, A[at("bland")], strict=True))
    assert sorted(row, key=row.get)[-2:] == ["tasted", "soup"]
    others = [a for token, a in row.items() if token not in ("soup", "tasted")]
    assert max(others) < 0.1 and row["chef"] < 0.02
    assert A[at("soup"), at("bland")] < 0.6 * row["soup"]
    assert (A > 0).all() and A.sum(axis=0).max() > 2 and A.sum(axis=0).min() < 0.5


def test_a_word_takes_from_its_sentence_and_only_what_is_there():
    table = dict(zip(map(str.lower, CHEF.tokens), CHEF.X, strict=True))

    def food(sentence):
        words = sentence.split()
        X = np.array([table[word] for word in words])
        return read(CHEF, X).output[words.index("bland"), CHEF.outputs.index("food")]

    assert food("the soup tasted bland") > 0.6
    assert food("the chef tasted bland") == 0
    assert food("bland the tasted soup") == pytest.approx(food("the soup tasted bland"))


def test_one_row_of_bank_becomes_two():
    own = RIVER.X[RIVER.query]
    assert np.array_equal(own, ACCOUNT.X[ACCOUNT.query])
    u, v = read(RIVER).output[RIVER.query], read(ACCOUNT).output[ACCOUNT.query]
    assert cosine(u, v) < 0.5
    nature, money, _ = own @ RIVER.W_V
    assert nature == money == 0.5
    assert u[0] > nature > v[0] and v[1] > money > u[1]


def test_one_map_for_query_and_key_makes_scores_symmetric_and_two_do_not():
    rng = np.random.default_rng(3)
    X, W_Q, W_K, W_V = (rng.normal(size=s) for s in ((6, 5), (5, 3), (5, 3), (5, 2)))
    tied = self_attention(X, W_Q, W_Q, W_V).scores
    np.testing.assert_allclose(tied, tied.T)
    free = self_attention(X, W_Q, W_K, W_V).scores
    assert np.abs(free - free.T).max() > 0.5


def test_three_roles_are_three_views_of_one_sequence():
    """Change one token, and what it asks, how it is found and what it offers change together."""
    rng = np.random.default_rng(4)
    X, W_Q, W_K, W_V = (rng.normal(size=s) for s in ((6, 5), (5, 3), (5, 3), (5, 2)))
    before = self_attention(X, W_Q, W_K, W_V)
    X_new = X.copy()
    X_new[2] += 1
    after = self_attention(X_new, W_Q, W_K, W_V)
    moved = np.abs(after.scores - before.scores) > 1e-12
    assert moved[2].all() and moved[:, 2].all() and moved.sum() == 11
    assert (np.abs(after.output - before.output).max(axis=1) > 1e-6).all()


# Keys as values ---------------------------------------------------------------------------------


def tied(q, K, T=1.0):
    return softmax(q @ K.T / T) @ K


def test_with_keys_as_values_an_answer_never_runs_against_its_question():
    rng = np.random.default_rng(5)
    worst, free = 0.0, 0.0
    for _ in range(300):
        m, d = rng.integers(2, 9), rng.integers(1, 6)
        K, V = rng.normal(size=(2, m, d)) * rng.choice([0.1, 1, 5])
        q, r = 3 * rng.normal(size=(2, 20, d))
        worst = min(worst, ((tied(q, K) - tied(r, K)) * (q - r)).sum(axis=1).min())
        free = min(free, ((softmax(q @ K.T) - softmax(r @ K.T)) @ V * (q - r)).sum(axis=1).min())
    assert worst > -1e-12 and free < -1  # with values of their own, they do


def test_no_quarter_turn_the_jacobian_is_symmetric():
    rng = np.random.default_rng(6)
    K, q, eps = rng.normal(size=(5, 2)), rng.normal(size=2), 1e-6
    J = np.array([(tied(q + e, K) - tied(q - e, K)) / 2 / eps for e in eps * np.eye(2)])
    np.testing.assert_allclose(J, J.T, atol=1e-8)
    assert np.linalg.eigvalsh((J + J.T) / 2).min() > 0


def test_the_best_tied_answer_to_the_opposite_is_to_say_nothing():
    """Also by descent, not by draws alone."""
    q = np.array([-2.0, -1, 0, 1, 2])
    rng = np.random.default_rng(7)
    zero = np.sqrt(np.mean(q**2))

    def loss(k):
        return np.sqrt(np.mean((tied(q[:, None], k[:, None])[:, 0] + q) ** 2))

    for _ in range(5):
        k = rng.normal(size=7)
        for _ in range(300):
            steps = 1e-5 * np.eye(7)
            k -= 0.1 * np.array([loss(k + e) - loss(k - e) for e in steps]) / 2e-5
        assert zero - 1e-9 <= loss(k) < zero + 0.05


def test_keys_as_values_serve_where_the_query_is_blind_to_the_content():
    rng = np.random.default_rng(8)
    address, content = 40 * np.eye(6), rng.normal(size=(6, 3))
    K = np.hstack([address, content])
    q = np.hstack([np.eye(6), np.zeros((6, 3))])
    np.testing.assert_allclose((softmax(q @ K.T) @ K)[:, 6:], content, atol=1e-9)


# What softmax and scores promise ----------------------------------------------------------------


def test_equal_weights_mean_scores_that_differ_by_a_constant():
    rng = np.random.default_rng(9)
    a = softmax(rng.normal(size=7))
    np.testing.assert_allclose(softmax(np.log(a) + 17), a)
    other = np.log(a) + np.r_[1e-3, np.zeros(6)]
    assert np.abs(softmax(other) - a).max() > 1e-5


def test_a_bias_on_keys_does_nothing_and_one_on_queries_does():
    rng = np.random.default_rng(10)
    Q, K, V, b = (rng.normal(size=s) for s in ((5, 3), (7, 3), (7, 2), (3,)))
    still = attention(Q, K, V).weights
    np.testing.assert_allclose(attention(Q, K + b, V).weights, still)
    assert np.abs(attention(Q + b, K, V).weights - still).max() > 0.05


def test_scores_have_rank_d_k_and_weights_need_not():
    rng = np.random.default_rng(11)
    for _ in range(50):
        Q, K = 2 * rng.normal(size=(2, 5, 1))
        result = attention(Q, K, np.eye(5))
        assert np.linalg.matrix_rank(result.scores) == 1
        assert np.linalg.matrix_rank(result.weights, tol=1e-12) == 5
        assert len({tuple(row.argsort()) for row in result.scores}) <= 2  # orders of the keys


def test_the_temperature_at_which_soup_loses_half():
    Q, K, V = (CHEF.X @ W for W in (CHEF.W_Q, CHEF.W_K, CHEF.W_V))
    soup = CHEF.tokens.index("soup")
    share = [attention(Q, K, V, temperature=T).weights[CHEF.query, soup] for T in (1.2, 1.4)]
    assert share[0] > 0.5 > share[1]


def test_without_scaling_wide_keys_sharpen():
    scene = random_scene(seed=3)
    Q, K, V = (scene.X @ W for W in (scene.W_Q, scene.W_K, scene.W_V))
    on, off = (attention(Q, K, V, scale=s).weights.max(axis=1).mean() for s in (None, 1.0))
    assert off > on + 0.2


def test_a_trained_head_like_ours_is_the_exception():
    trained = read_export(DATA / "minilm.npz")["chef"]
    at = list(trained.tokens).index
    row = trained.weights[:, :, at("bland")]
    assert trained.weights[..., 0, 0].size == 72
    ours = row[0, 10]
    assert ours.argmax() == at("soup") and ours[at("tasted")] > ours[at("chef")] > 0.1
    like = (row.argmax(axis=-1) == at("soup")).sum()
    assert 1 <= like < 36  # most heads read something else first
