"""What ScoreScaleLab alone does in a browser; what every lab promises: `test_every_lab`."""

from __future__ import annotations

from browser.specs.score_scale import SPEC

from attn_lib.labs import ScoreScaleLab
from attn_lib.labs.score_scale.lab import VECTORS, WIDTHS


def test_a_drag_through_heavy_work_ends_in_the_last_value(open_lab):
    """Quick changes: what is being worked on is ended, then the last one is drawn."""
    lab = open_lab(ScoreScaleLab, "#lab?vectors=shifted")
    lab.quickly("mu", [k / 20 for k in range(41)])
    SPEC.parity(lab, ScoreScaleLab(vectors="shifted", mu=2.0))


def test_controls_of_other_vectors_are_hidden(open_lab):
    lab = open_lab(ScoreScaleLab)
    for vectors, hidden in zip(
        VECTORS, [["mu", "cosine"], ["mu", "cosine"], ["cosine"], ["mu"], ["mu"]], strict=True
    ):
        lab.control("vectors").select_option(vectors)
        assert lab.shown().hidden == hidden


def test_the_table_of_numbers_has_every_width(open_lab):
    lab = open_lab(ScoreScaleLab)
    lab.open()
    lab.figure.locator("summary").press("Enter")
    entropy = lab.shown().entropy
    assert entropy.rows == [str(width) for width in WIDTHS]
    assert all(cell for row in entropy.texts for cell in row)
