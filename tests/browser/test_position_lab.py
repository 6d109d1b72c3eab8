"""What PositionLab alone does in a browser; what every lab promises: `test_every_lab`."""

from __future__ import annotations

import numpy as np
import pytest

from attn_lib.labs import PositionLab
from attn_lib.labs.position.lab import KINDS


@pytest.mark.parametrize("positions", KINDS)
def test_the_lab_says_why(open_lab, positions):
    """The reversal's gap, and a reason that fits it."""
    lab = open_lab(PositionLab, positions=positions)
    words = lab.shown().words
    gap = lab.shown().gaps.values[0, 0]
    assert (gap < 1e-9) == (positions in ("none", "alibi"))
    assert ("keeps every distance" in words) == (positions == "alibi")
    assert ("would miss a reversal" in words) is False
    lab.control("mask").select_option("causal")
    words = lab.shown().words
    assert "A causal mask lets a token read only" in words
    assert "the gap is 0" not in words
    assert lab.shown().gaps.values[0, 0] > 0.1


def test_rounding_is_not_shown_as_a_gap_or_a_change(open_lab):
    lab = open_lab(PositionLab, positions="none", order=[7, 6, 5, 4, 3, 2, 1, 0], shift=41)
    shown = lab.shown()
    assert shown.gaps.texts == [["0"]] * 4
    assert "change 0" in " ".join(shown.words.split())


def test_a_key_in_the_future_is_marked_as_forbidden(open_lab):
    """In the chart, in the words under it and in the meters; a key in the past is not."""
    lab = open_lab(PositionLab, mask="causal", offset=3)
    shown = lab.shown()
    assert np.isneginf(shown.panels["offsets"].table[13:, 1:]).all()
    assert np.isfinite(shown.panels["offsets"].table[:13, 1:]).all()
    assert "forbidden by the mask" in shown.pictures[1]["texts"]
    words = " ".join(shown.words.split())
    assert "key 15: forbidden by the mask" in words and "change none" in words
    lab.control("offset").fill("-3")
    words = " ".join(lab.shown().words.split())
    assert "key 9: forbidden" not in words and "change 0" in words
    lab.control("mask").select_option("none")
    assert "forbidden by the mask" not in lab.shown().pictures[1]["texts"]
