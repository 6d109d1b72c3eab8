"""What CrossLab alone does in a browser; what every lab promises: `test_every_lab`."""

from __future__ import annotations

from browser.specs.cross import SPEC

from attn_lib.labs import CrossLab


def test_a_pot_is_dragged_and_no_answer_changes(open_lab):
    lab = open_lab(CrossLab)
    answers = lab.figure.locator(".attn-gets").inner_text()
    lab.drag(0, 2)
    SPEC.parity(lab, CrossLab(order=[1, 2, 0]))
    assert lab.figure.locator(".attn-gets").inner_text() == answers


def test_it_asks_first_and_turns_the_source_round(open_lab):
    lab = open_lab(CrossLab, ask="moved")
    hidden = lab.figure.locator(".attn-crossing svg")
    assert not hidden.is_visible()
    assert lab.figure.locator(".attn-question").is_visible()
    show = lab.figure.locator("[data-action=show]")
    assert show.is_disabled()
    lab.figure.get_by_label("it changes").check()
    show.click()
    assert lab.figure.locator(".attn-says").inner_text().endswith("It stays.")
    SPEC.parity(lab, CrossLab(order=[2, 1, 0]))
    lab.action("reset").click()
    assert lab.figure.locator(".attn-question").is_visible()
    lab.figure.locator("[data-action=skip]").click()
    SPEC.parity(lab, CrossLab())
    assert hidden.is_visible()
