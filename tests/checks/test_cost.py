"""check_online_softmax and check_linear_attention: right ones pass, known wrong ones are named."""

import itertools

import numpy as np
import pytest

from attn_lib.checks import check_linear_attention, check_online_softmax, random_inputs
from attn_lib.checks.mistakes import LINEAR_ATTENTION_MISTAKES, ONLINE_SOFTMAX_MISTAKES
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


@pytest.mark.parametrize(
    ("check", "right"),
    [
        (check_online_softmax, online_with_merged_states),
        (check_online_softmax, online_one_key_at_a_time),
        (check_linear_attention, linear_by_steps),
        (check_linear_attention, linear_by_loops),
    ],
)
def test_right_answers_pass(check, right):
    assert check(right).ok, check(right)


@pytest.mark.parametrize(
    ("check", "mistake"),
    [(check_online_softmax, m) for m in ONLINE_SOFTMAX_MISTAKES]
    + [(check_linear_attention, m) for m in LINEAR_ATTENTION_MISTAKES],
    ids=lambda x: getattr(x, "name", ""),
)
def test_each_mistake_is_named(check, mistake):
    report = check(mistake.make)
    assert not report.ok and report.mistake == mistake.name
    assert report.text.startswith(mistake.why)  # and told in its own words


def test_mistakes_of_linear_attention_differ():
    inputs = random_inputs(0, Q=(6, 3), K=(6, 3), V=(6, 2)).values()
    given = {}
    for i, (name, _, make) in enumerate(LINEAR_ATTENTION_MISTAKES):
        try:
            with np.errstate(invalid="ignore"):
                given[i, name] = make(*inputs)
        except ValueError:
            continue  # shapes do not fit: told by the error
    assert len(given) == len(LINEAR_ATTENTION_MISTAKES) - 1
    for (a, one), (b, other) in itertools.combinations(given.items(), 2):
        assert not np.allclose(one, other, equal_nan=True), (a, b)


def test_another_tile_than_the_one_given_is_no_mistake_in_the_numbers():
    """The check looks at numbers: the output does not depend on the tile."""
    assert check_online_softmax(lambda S, V, tile: online_with_merged_states(S, V, 1)).ok


def test_the_whole_row_at_once_without_care_is_refused():
    def at_once(S, V, tile):
        powers = np.exp(S - S.max())
        return powers @ V / powers.sum()

    assert not check_online_softmax(at_once).ok  # nothing allowed: NaN


def test_tiled_attention_agrees_with_the_check():
    def by_attention(S, V, tile):
        return tiled_attention(np.ones((1, 1)), np.zeros((len(S), 1)), V, mask=S, tile=(1, tile))[0]

    assert check_online_softmax(by_attention).ok
