"""What ContributionLab alone does in a browser; what every lab promises: `test_every_lab`."""

from __future__ import annotations

from browser.specs.contribution import SPEC

from attn_lib.labs import ContributionLab


def test_the_longest_sequence(open_lab):
    state = {"period": 12, "sort": "effect", "cut": [[0, 0, 11, 10]], "renormalise": True}
    SPEC.parity(open_lab(ContributionLab, **state), ContributionLab(**state))


def test_a_cell_of_the_future_is_no_edge(open_lab):
    lab = open_lab(ContributionLab)
    lab.cell("weights", 2, 5).first.click()
    SPEC.parity(lab, ContributionLab())
    assert lab.figure.locator(".attn-readout").inner_text().startswith("Choose a cell")


def test_a_cell_under_the_pointer_is_read_out(open_lab):
    lab, python = open_lab(ContributionLab), ContributionLab()
    readout = lab.figure.locator(".attn-readout")
    assert readout.inner_text().startswith("Choose a cell")
    lab.cell("weights", 5, 4).first.hover()
    edge = (0, 0, 5, 4)
    said = readout.inner_text()
    assert said.startswith("layer 1: F ← E (query 5, key 4, from 0): weight")
    for value in (python.norms[edge], python.effects[edge]):
        assert f"{value:.2f}" in said
    lab.page.mouse.move(0, 0)
    assert readout.inner_text().startswith("Choose a cell")
