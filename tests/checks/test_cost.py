"""Answers to the exercises of chapter 11: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted

from attn_lib.checks import check_linear_attention, check_online_softmax
from attn_lib.efficient import elu_plus_one, linear_attention_step, online_softmax, tiled_attention


def online_with_merged_states(S, V, tile):
    tiles = ((S[None, j : j + tile], V[j : j + tile]) for j in range(0, len(S), tile))
    *_, last = online_softmax(tiles)
    return last.output[0]


def online_one_key_at_a_time(S, V, tile):
    m, l, u = -np.inf, 0.0, np.zeros(V.shape[1])
    for s, v in zip(S, V, strict=True):
        if s == -np.inf:
            continue
        new = max(m, s)
        l, u = l * np.exp(m - new) + np.exp(s - new), u * np.exp(m - new) + np.exp(s - new) * v
        m = new
    return u / l if l else u


def linear_by_steps(Q, K, V):
    rows, state = [], None
    for q, k, v in zip(Q, K, V, strict=True):
        row, state = linear_attention_step(state, q, k, v)
        rows.append(row)
    return np.array(rows)


def linear_by_loops(Q, K, V):
    O = np.zeros(V.shape)
    for i in range(len(Q)):
        a = np.array([elu_plus_one(Q[i]) @ elu_plus_one(K[j]) for j in range(i + 1)])
        O[i] = a @ V[: i + 1] / a.sum()
    return O


def by_attention(S, V, tile):
    return tiled_attention(np.ones((1, 1)), np.zeros((len(S), 1)), V, mask=S, tile=(1, tile))[0]


RIGHT = [
    (check_online_softmax, online_with_merged_states),
    (check_online_softmax, online_one_key_at_a_time),
    (check_online_softmax, by_attention),
    (check_linear_attention, linear_by_steps),
    (check_linear_attention, linear_by_loops),
]

test_right_answers_pass = accepted(RIGHT)


def test_another_tile_than_the_one_given_is_no_mistake_in_the_numbers():
    """The check looks at numbers: the output does not depend on the tile."""
    assert check_online_softmax(lambda S, V, tile: online_with_merged_states(S, V, 1)).ok


def test_the_whole_row_at_once_without_care_is_refused():
    def at_once(S, V, tile):
        powers = np.exp(S - S.max())
        return powers @ V / powers.sum()

    assert not check_online_softmax(at_once).ok  # nothing allowed: NaN
