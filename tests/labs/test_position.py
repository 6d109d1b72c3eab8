"""PositionLab in Python: shifts, orders, rules, words and the figure."""

import numpy as np
import pytest

from attn_lib import attention, causal_mask
from attn_lib.labs import PositionLab
from attn_lib.labs.position.lab import KINDS, REACH, SLOPE

STATES = [{}, {"seed": 7, "n": 5, "d": 16}, {"query": 3, "offset": 4, "shift": 64}]


def pairwise(positions: str, x: np.ndarray, i: int, j: int, lab: PositionLab) -> float:
    """Score of x at position i for x at position j by the definition, angle by angle."""
    scene, d = lab._scene(), lab.d
    angle = 10000.0 ** (-np.arange(0, d, 2) / d)
    waves = [np.stack([np.sin(p * angle), np.cos(p * angle)], -1).ravel() for p in (i, j)]
    a, b = (x + wave * (positions == "sinusoidal") for wave in waves)
    q, k = a @ scene.W_Q[:, :d], b @ scene.W_K[:, :d]
    if positions == "rope":
        q, k = q[0::2] + 1j * q[1::2], k[0::2] + 1j * k[1::2]
        return (
            float((q * np.exp(1j * i * angle) * np.conj(k * np.exp(1j * j * angle))).sum().real)
            / d**0.5
        )
    return q @ k / d**0.5 - (SLOPE * abs(i - j) if positions == "alibi" else 0)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("positions", ["none", "sinusoidal", "alibi", "rope"])
def test_scores_of_a_pair_by_the_definition(positions, state):
    lab = PositionLab(positions=positions, **state)
    x = lab._scene().X[lab.query]
    i, j = REACH, REACH + lab.offset
    np.testing.assert_allclose(lab.score, pairwise(positions, x, i, j, lab), atol=1e-12)
    moved = pairwise(positions, x, i + lab.shift, j + lab.shift, lab)
    np.testing.assert_allclose(lab.shifted_score, moved, atol=1e-12)


@pytest.mark.parametrize("positions", KINDS)
def test_only_a_table_makes_a_shift_change_the_score(positions):
    """RoPE and ALiBi see i − j alone; sinusoids that are added see more (CORRECTNESS 16, 18)."""
    changes = [
        abs(lab.shifted_score - lab.score)
        for lab in (PositionLab(positions=positions, seed=seed, offset=-2) for seed in range(8))
    ]
    if positions in ("learned", "sinusoidal"):
        assert np.median(changes) > 0.1
    else:
        assert max(changes) < 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_which_orders_are_noticed(seed):
    gaps = {kind: PositionLab(positions=kind, seed=seed, n=6).gaps for kind in KINDS}
    assert max(gaps["none"].values()) < 1e-12
    assert gaps["alibi"]["reversed"] < 1e-12  # a symmetric bias cannot see a reversal
    assert min(gaps["alibi"]["rotated by one"], gaps["alibi"]["first two swapped"]) > 0.05
    for kind in ("learned", "sinusoidal", "rope"):
        noticed = [gap for order, gap in gaps[kind].items() if order != "the present order"]
        assert min(noticed) > 0.05
    assert all(gap["the present order"] == 0 for gap in gaps.values())


def test_a_causal_mask_notices_what_a_symmetric_bias_does_not():
    for kind in KINDS:
        assert PositionLab(positions=kind, mask="causal").gaps["reversed"] > 0.1


@pytest.mark.parametrize("positions", KINDS)
def test_a_causal_mask_forbids_the_keys_after_the_query_and_no_other(positions):
    free, masked = (
        PositionLab(positions=positions, mask=mask, shift=7) for mask in ("none", "causal")
    )
    for shift in (0, 7):
        assert np.isneginf(masked.curve(shift)[REACH + 1 :]).all()
        np.testing.assert_array_equal(
            masked.curve(shift)[: REACH + 1], free.curve(shift)[: REACH + 1]
        )
        assert np.isfinite(free.curve(shift)).all()


def test_the_gap_of_the_present_order_is_that_of_its_outputs():
    order = [2, 0, 3, 1]
    lab = PositionLab(n=4, order=order, positions="sinusoidal")
    still = PositionLab(n=4, positions="sinusoidal").output
    np.testing.assert_allclose(
        lab.gaps["the present order"], np.linalg.norm(lab.output - still[order])
    )


def test_without_positions_it_is_attention():
    lab = PositionLab(positions="none", mask="causal", order=[3, 1, 0, 2, 4, 5, 6, 7])
    scene = lab._scene()
    plain = attention(lab.X @ scene.W_Q, lab.X @ scene.W_K, lab.X @ scene.W_V, mask=causal_mask(8))
    np.testing.assert_allclose(lab.scores, plain.scores)
    np.testing.assert_allclose(lab.weights, plain.weights)
    np.testing.assert_allclose(lab.output, plain.output)
    assert lab.tokens[:2] == ["x₄", "x₂"] and lab.query_row == 2


def test_a_table_is_added_before_all_three_maps():
    lab = PositionLab(positions="sinusoidal")
    scene, X = lab._scene(), lab.X + lab.encodings
    plain = attention(X @ scene.W_Q, X @ scene.W_K, X @ scene.W_V)
    np.testing.assert_allclose(lab.output, plain.output)


def test_what_a_position_contributes():
    assert not PositionLab(positions="none").encodings.any()
    table = PositionLab(positions="sinusoidal", n=3, d=2).encodings
    np.testing.assert_allclose(table, [[0, 1], [np.sin(1), np.cos(1)], [np.sin(2), np.cos(2)]])
    turns = PositionLab(positions="rope", n=3, d=2).encodings
    np.testing.assert_allclose(turns, table[:, ::-1], atol=1e-15)
    bias = PositionLab(positions="alibi", n=3).encodings
    np.testing.assert_allclose(bias, [[0, -0.5, -1], [-0.5, 0, -0.5], [-1, -0.5, 0]])
    causal = PositionLab(positions="alibi", n=3, mask="causal").encodings
    assert np.isneginf(causal[0, 1]) and causal[2, 0] == -1


def test_what_is_refused_and_what_follows():
    with pytest.raises(ValueError, match="d must be even, RoPE turns pairs: got 7"):
        PositionLab(d=7)
    with pytest.raises(ValueError, match=r"order must hold each of 0 to 7 once .* got \[0, 0\]"):
        PositionLab(order=[0, 0])
    with pytest.raises(ValueError, match="query must be from 0 to 7, got 8"):
        PositionLab(query=8)
    with pytest.raises(ValueError, match=r"positions must be one of none, .*, got 'absolute'"):
        PositionLab(positions="absolute")
    lab = PositionLab(n=8, query=7, order=[7, 6, 5, 4, 3, 2, 1, 0])
    lab.n = 4
    assert (lab.order, lab.query) == ([0, 1, 2, 3], 3)
    assert PositionLab(n=4, order=[3, 2, 1, 0]).order == [3, 2, 1, 0]


def test_words():
    assert PositionLab(positions="alibi", shift=9).describe() == (
        "With ALiBi the score at offset −3 is −3.76 and stays when both tokens move on by 9. "
        "The gap is 0 for the reversed order, 0.96 for the rotated one."
    )
    assert "becomes" in PositionLab(positions="sinusoidal").describe()
    said = PositionLab(mask="causal", offset=3).describe()
    assert "the score at offset 3 is forbidden by the mask: the key stands after its query." in said
    assert "forbidden" not in PositionLab(mask="causal", offset=0).describe()


@pytest.mark.parametrize("positions", KINDS)
def test_the_figure_has_a_table_two_curves_and_the_gaps(positions):
    table, curve, bars = (
        PositionLab(positions=positions, order=[1, 0, 2, 3, 4, 5, 6, 7]).figure().axes
    )
    assert table.get_ylabel() == "position"
    lab = PositionLab(positions=positions)
    solid, dots = curve.get_lines()
    assert (solid.get_linestyle(), dots.get_linestyle()) == ("-", "None")
    np.testing.assert_allclose(solid.get_ydata(), lab.curve())
    np.testing.assert_allclose(dots.get_ydata(), lab.curve(lab.shift))
    assert "forbidden" not in [text.get_text() for text in curve.texts]
    masked = PositionLab(positions=positions, mask="causal").figure().axes[1]
    assert [text.get_text() for text in masked.texts] == ["forbidden"]
    assert [label.get_text() for label in bars.get_yticklabels()] == list(lab.gaps)
    assert len(lab.figure().axes[2].patches) == 3  # the order of the sentence has no gap to show
