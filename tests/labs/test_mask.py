"""MaskLab in Python: the rules, their numbers and their words."""

import numpy as np
import pytest

from attn_lib.labs import MaskLab


def test_two_alignments_of_a_causal_mask():
    """Field case N04: zero scores, two queries, five keys, values 1 … 5."""
    assert MaskLab(n=2, m=5).output.ravel().tolist() == [1, 1.5]
    assert MaskLab(n=2, m=5, offset=3).output.ravel().tolist() == [2.5, 3]
    assert MaskLab(n=5, m=2).allowed.tolist() == [1, 2, 2, 2, 2]
    last = MaskLab(n=5, m=2, offset=-3)
    assert last.allowed.tolist() == [0, 0, 0, 1, 2]
    assert last.output.ravel().tolist() == [0, 0, 0, 1, 1.5]
    assert last.weights[0].tolist() == [0, 0]


def test_a_window_counts_its_own_key():
    """Field case N09."""
    assert MaskLab(mask="window", n=6, m=6, window=3).allowed.tolist() == [1, 2, 3, 3, 3, 3]


def test_a_prefix_is_read_by_everybody():
    lab = MaskLab(mask="prefix", n=4, m=4, prefix=2)
    assert lab.keep.astype(int).tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]


def test_read_the_wrong_way_round():
    """Field case T05: a keep mask handed to a function that reads True as forbidden."""
    wrong = MaskLab(n=3, m=3, inverted=True)
    np.testing.assert_allclose(wrong.weights, [[0, 0.5, 0.5], [0, 0, 1], [0, 0, 0]])
    right = MaskLab(n=3, m=3)
    np.testing.assert_allclose(right.weights, [[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]])


def test_padding_joins_every_rule():
    lab = MaskLab(mask="none", n=2, m=6, length=4)
    assert lab.allowed.tolist() == [4, 4]
    assert MaskLab(n=6, m=6, length=4).allowed.tolist() == [1, 2, 3, 4, 4, 4]
    assert MaskLab(mask="none", n=2, m=3, length=0).allowed.tolist() == [0, 0]


def test_scores_are_equal_or_drawn():
    assert set(MaskLab(mask="none").scores.ravel()) == {0}
    drawn = MaskLab(mask="none", scores_are="random", seed=3)
    assert len(set(drawn.scores.ravel())) == 36
    np.testing.assert_allclose(drawn.weights.sum(axis=1), 1)
    smaller = MaskLab(mask="none", scores_are="random", seed=3, n=3, m=4)
    assert (smaller.scores == drawn.scores[:3, :4]).all()  # the same draw, cut


def test_words():
    lab = MaskLab(n=5, m=2, offset=-3)
    assert lab.describe() == (
        "3 of 10 pairs are allowed. Query 1 may look at 0 of 2 keys. "
        "3 without any key: zero weights, zero output."
    )
    assert MaskLab(n=2, query=9).query_row == 1


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"mask": "padding"}, "mask must be one of causal, window, prefix, none, got 'padding'"),
        ({"n": 0}, "n must be from 1 to 12, got 0"),
        ({"offset": -13}, "offset must be from -12 to 12, got -13"),
        ({"window": 0}, "window must be from 1 to 12, got 0"),
    ],
)
def test_what_is_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        MaskLab(**bad)


def test_a_figure_of_masked_scores():
    figure = MaskLab(n=3, m=5).figure()
    titles = [ax.get_title(loc="left") for ax in figure.axes[:3]]
    assert titles == ["Scores $S$", "Weights $A$", "Outputs $O$"]
    hatched = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == 15 - (1 + 2 + 3)
