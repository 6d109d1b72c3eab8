"""What CostLab alone does in a browser; what every lab promises: `test_every_lab`."""

from __future__ import annotations

from browser.specs.cost import SPEC

from attn_lib.labs import CostLab


def test_heads_that_do_not_fit_are_said_to_be_changed(open_lab):
    lab = open_lab(CostLab, "#lab?d=100&h=8")
    assert "h=8: not possible here, so 5 is used" in lab.shown().notice
    SPEC.parity(lab, CostLab(d=100, h=5))
