"""Answers to the exercises of chapter 11: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted, named

from attn_lib import KVCache, softmax
from attn_lib.checks import check_cached_step, check_online_softmax
from attn_lib.efficient import merge_states, online_softmax, softmax_state, tiled_attention


def online_with_merged_states(S, V, tile):
    tiles = ((S[None, j : j + tile], V[j : j + tile]) for j in range(0, len(S), tile))
    *_, last = online_softmax(tiles)
    return last.output[0]


def online_one_key_at_a_time(S, V, tile):
    mu, l, u = -np.inf, 0.0, np.zeros(V.shape[1])
    for s, v in zip(S, V, strict=True):
        if s == -np.inf:
            continue
        new = max(mu, s)
        l, u = l * np.exp(mu - new) + np.exp(s - new), u * np.exp(mu - new) + np.exp(s - new) * v
        mu = new
    return u / l if l else u


def by_attention(S, V, tile):
    return tiled_attention(np.ones((1, 1)), np.zeros((len(S), 1)), V, mask=S, tile=(1, tile))[0]


def with_a_sum_beside_the_values(S, V, tile):
    """The normaliser as one more column of the weighted sum."""
    mu, held = -1e300, np.zeros(V.shape[1] + 1)
    for j in range(0, len(S), tile):
        s = S[j : j + tile]
        both = np.hstack([V[j : j + tile], np.ones((len(s), 1))])
        new = max(mu, s.max(initial=-1e300))
        powers = np.where(np.isneginf(s), 0, np.exp(s - new))
        held, mu = held * np.exp(mu - new) + powers @ both, new
    return held[:-1] / held[-1] if held[-1] else held[:-1]


def by_pairs(S, V, tile):
    """Backwards, which is allowed: order does not matter."""
    state = softmax_state(S[:0][None], V[:0])
    for j in reversed(range(0, len(S), tile)):
        state = merge_states(state, softmax_state(S[None, j : j + tile], V[j : j + tile]))
    return state.output[0]


def step_by_hand(K, V, q, k, v):
    K, V = np.concatenate([K, k[None]]), np.concatenate([V, v[None]])
    powers = np.exp(K @ q / len(q) ** 0.5)
    return K, V, (powers[:, None] * V).sum(axis=0) / powers.sum()


def step_with_lists(K, V, q, k, v):
    K, V = np.array([*K, k]), np.array([*V, v])
    return [K, V, softmax(q @ K.T / np.sqrt(K.shape[-1])) @ V]


def step_with_the_library(K, V, q, k, v):
    cache = KVCache()
    cache.append(np.vstack([K, k]), np.vstack([V, v]))
    return cache.keys, cache.values, cache.attend(q[None]).output[0]


RIGHT = [
    (check_online_softmax, online_with_merged_states),
    (check_online_softmax, online_one_key_at_a_time),
    (check_online_softmax, by_attention),
    (check_online_softmax, with_a_sum_beside_the_values),
    ("ex-cost-online", by_pairs),
    (check_cached_step, step_by_hand),
    ("ex-cost-cache", step_with_lists),
    ("ex-cost-cache", step_with_the_library),
    ("ex-cost-pieces", [2, 5.5, 2.75]),
    ("ex-cost-pieces", (2.0, 5.5, 5.5 / 2)),
    ("ex-cost-pieces", np.array([[2, 5.5, 2.75]])),
    ("ex-cost-pieces", [2, 5.5, 2.76]),
    ("ex-cost-bill", [32, 688, 176, 10]),
    ("ex-cost-bill", (32.0, 688.0, 176.0, 10.0)),
    ("ex-cost-bill", np.array([[32, 688, 176, 10]])),
]

test_right_answers_pass = accepted(RIGHT)


def at_once(S, V, tile):
    if np.isneginf(S).all():
        return np.zeros(V.shape[1])
    powers = np.exp(S - S.max())
    return powers @ V / powers.sum()


def scores_known_before(S, V, tile):
    """Two passes: the maximum of the whole row first."""
    if np.isneginf(S.max()):
        return np.zeros(V.shape[1])
    top, l, u = S.max(), 0.0, np.zeros(V.shape[1])
    for j in range(0, len(S), tile):
        powers = np.exp(S[j : j + tile] - top)
        l, u = l + powers.sum(), u + powers @ V[j : j + tile]
    return u / l


def two_tiles_at_a_time(S, V, tile):
    return by_attention_of(S, V, 2 * tile)


def by_attention_of(S, V, tile):
    l, u, mu = 0.0, np.zeros(V.shape[1]), -np.inf
    for j in range(0, len(S), tile):
        s = S[j : j + tile]
        new = max(mu, s.max())
        if new > -np.inf:
            powers = np.exp(s - new)
            l = l * np.exp(mu - new) + powers.sum()
            u = u * np.exp(mu - new) + powers @ V[j : j + tile]
            mu = new
    return u / l if l else u


def gathered_first(S, V, tile):
    """Reads in tiles, and keeps them all."""
    pieces = [S[j : j + tile] for j in range(0, len(S), tile)]
    return softmax(np.concatenate(pieces)) @ V


WRONG = [
    (check_online_softmax, lambda S, V, tile: softmax(S) @ V, "reads more than a tile"),
    (check_online_softmax, at_once, "reads more than a tile"),
    (check_online_softmax, scores_known_before, "reads more than a tile"),
    (check_online_softmax, two_tiles_at_a_time, "reads more than a tile"),
    (check_online_softmax, gathered_first, "reads more than a tile"),
    (
        check_online_softmax,
        lambda S, V, tile: np.exp(S - S.max()) @ V / np.exp(S - S.max()).sum(),
        "nothing allowed",
    ),
    (check_cached_step, lambda K, V, q, k, v: (K, V, softmax(K @ q) @ V), None),
    (
        check_cached_step,
        lambda K, V, q, k, v: (K, V, step_by_hand(K, V, q, k, v)[2]),
        "cache not kept",
    ),
    (
        check_cached_step,
        lambda K, V, q, k, v: (
            np.vstack([K, k]),
            np.vstack([V, v]),
            softmax(K @ q / np.sqrt(len(q))) @ V,
        ),
        "own token left out",
    ),
    (check_cached_step, lambda K, V, q, k, v: step_by_hand(K, V, q, k, v)[2], None),
    (check_cached_step, lambda K, V, q, k, v: step_by_hand(K, V, q, q, v), "query cached"),
    (check_cached_step, lambda K, V, q, k, v: step_by_hand(K, V, k, k, v), None),
    (
        check_cached_step,
        lambda K, V, q, k, v: step_by_hand(K, V, q * np.sqrt(len(q)), k, v),
        "not scaled",
    ),
    (
        check_cached_step,
        lambda K, V, q, k, v: (*step_by_hand(K, V, q, k, v)[:2], v),
        "newest only",
    ),
    ("ex-cost-pieces", [3.75, 16, 16 / 3.75], "each piece is measured from a maximum of its own"),
    ("ex-cost-pieces", [16, 44, 2.75], "not measured from the largest score"),
    ("ex-cost-pieces", [3, 11, 11 / 3], "the last piece raises the maximum"),
    ("ex-cost-pieces", [2, 11, 5.5], "you rescaled ℓ and not u"),
    ("ex-cost-pieces", [3, 5.5, 5.5 / 3], "you rescaled u and not ℓ"),
    ("ex-cost-pieces", [1, 5.5, 5.5], "the last piece has the value 0"),
    ("ex-cost-pieces", [1, 2, 3], None),
    ("ex-cost-bill", [48, 688, 176, 10], "(a): 6d is for"),
    ("ex-cost-bill", [16, 688, 176, 10], "(a): you left the feed-forward part out"),
    ("ex-cost-bill", [32, 672, 176, 10], "(b): its own key"),
    ("ex-cost-bill", [32, 432, 176, 10], "(b): you left the feed-forward part out"),
    ("ex-cost-bill", [32, 688, 160, 10], "(c): the eleventh token"),
    ("ex-cost-bill", [32, 688, 88, 10], "(c): a key *and* a value"),
    ("ex-cost-bill", [32, 688, 176, 7], "(d): a layer carries w − 1"),
    ("ex-cost-bill", [32, 688, 176, 9], "(d): from token 1"),
]

test_wrong_answers_are_named = named(WRONG)


def test_an_answer_that_stumbles_over_the_notes_is_not_blamed():
    """What is asked is what it does, and a plain list cannot tell."""

    def in_lists(S, V, tile):
        if type(S) is not np.ndarray:
            raise TypeError("arrays only")
        return online_one_key_at_a_time(S, V, tile)

    assert check_online_softmax(in_lists).ok
