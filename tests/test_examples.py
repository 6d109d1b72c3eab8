"""The hand-built scenes say what the chapters say they say."""

from __future__ import annotations

import numpy as np
import pytest

from attn_lib.examples import ACCOUNT, CHEF, RIVER, SCENES, Scene


def layer(scene: Scene):
    """Scores, weights and outputs by the definition, independent of attn_lib.attention."""
    Q, K, V = scene.X @ scene.W_Q, scene.X @ scene.W_K, scene.X @ scene.W_V
    S = Q @ K.T / np.sqrt(K.shape[1])
    A = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
    return S, A, A @ V


def reads(scene: Scene, word: str) -> dict[str, float]:
    """Weights of one query by token; repeated words are added up."""
    row = layer(scene)[1][scene.tokens.index(word)]
    out: dict[str, float] = {}
    for token, weight in zip(scene.tokens, row, strict=True):
        out[token.lower()] = out.get(token.lower(), 0.0) + float(weight)
    return out


def ranked(scene: Scene, word: str) -> list[str]:
    weights = reads(scene, word)
    return sorted(weights, key=weights.get, reverse=True)


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_shapes_and_names(scene):
    n, d = scene.X.shape
    d_k, d_v = scene.W_K.shape[1], scene.W_V.shape[1]
    assert (len(scene.tokens), len(scene.features)) == (n, d)
    assert scene.W_Q.shape == (d, d_k) and scene.W_V.shape == (d, d_v)
    assert (len(scene.keys), len(scene.outputs)) == (d_k, d_v)
    assert d_k != d_v and d_k > 1
    assert 0 <= scene.query < n
    assert not scene.X.flags.writeable and not scene.W_Q.flags.writeable


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_numbers_are_short_and_rows_belong_to_words(scene):
    for M in (scene.X, scene.W_Q, scene.W_K, scene.W_V):
        np.testing.assert_array_equal(M, np.round(M, 1))
    rows: dict[str, np.ndarray] = {}
    for token, row in zip(scene.tokens, scene.X, strict=True):
        np.testing.assert_array_equal(rows.setdefault(token.lower(), row), row)


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_scores_are_a_fair_picture(scene):
    S, A, O = layer(scene)
    assert S.min() < -1 < 1 < S.max()  # both signs: the diverging map has work to do
    assert np.abs(S - S.T).max() > 1  # a transposed heatmap would be seen
    assert not np.array_equal(scene.W_Q, scene.W_K)
    assert np.linalg.matrix_rank(S) <= scene.W_K.shape[1]
    assert A.max() < 0.75  # no row is nearly one-hot
    distinct = {t.lower() for t in scene.tokens} - {"because", "on"}
    assert len({tuple(o.round(2)) for o in O}) >= len(distinct)


def test_bland_reads_soup_then_tasted_and_hardly_the_chef():
    weights = reads(CHEF, "bland")
    assert ranked(CHEF, "bland")[:2] == ["soup", "tasted"]
    assert 0.5 < weights["soup"] < 0.6 and 0.22 < weights["tasted"] < 0.3
    assert max(w for t, w in weights.items() if t not in ("soup", "tasted")) < 0.08
    assert weights["chef"] < 0.02


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("chef", ["added", "tasted"]),
        ("added", ["salt", "chef"]),
        ("salt", ["added", "soup"]),
        ("soup", ["tasted", "bland"]),
        ("tasted", ["soup"]),
    ],
)
def test_other_rows_make_sense(query, first):
    assert ranked(CHEF, query)[: len(first)] == first


def test_articles_read_nouns_and_agree():
    _, A, O = layer(CHEF)
    first, second = (i for i, t in enumerate(CHEF.tokens) if t.lower() == "the")
    np.testing.assert_array_equal(A[first], A[second])
    np.testing.assert_array_equal(O[first], O[second])
    assert set(ranked(CHEF, "The")[:3]) == {"chef", "soup", "salt"}


def test_bland_now_carries_food_and_taste():
    _, _, O = layer(CHEF)
    bland = dict(zip(CHEF.outputs, O[CHEF.query], strict=True))
    own = dict(zip(CHEF.outputs, CHEF.X[CHEF.query] @ CHEF.W_V, strict=True))
    assert own["food"] == 0 and bland["food"] > 0.5
    assert bland["taste"] > 0.2


def test_bank_starts_as_one_row_and_ends_as_two():
    np.testing.assert_array_equal(RIVER.X[RIVER.query], ACCOUNT.X[ACCOUNT.query])
    for name in ("W_Q", "W_K", "W_V"):
        np.testing.assert_array_equal(getattr(RIVER, name), getattr(ACCOUNT, name))
    assert RIVER.features == ACCOUNT.features and RIVER.outputs == ACCOUNT.outputs
    assert ranked(RIVER, "bank")[0] == "river" and ranked(ACCOUNT, "bank")[0] == "account"
    wet = dict(zip(RIVER.outputs, layer(RIVER)[2][RIVER.query], strict=True))
    rich = dict(zip(ACCOUNT.outputs, layer(ACCOUNT)[2][ACCOUNT.query], strict=True))
    assert wet["nature"] > 5 * wet["money"] and rich["money"] > 5 * rich["nature"]
