"""What CostLab alone does in a browser; what every lab promises: `test_every_lab`."""

from __future__ import annotations

from browser.specs.cost import SPEC

from attn_lib.labs import CostLab


def test_heads_that_do_not_fit_are_said_to_be_changed(open_lab):
    lab = open_lab(CostLab, "#lab?d=100&h=8")
    assert "h=8: not possible here, so 5 is used" in lab.shown().notice
    SPEC.parity(lab, CostLab(d=100, h=5))


def test_the_context_is_pulled_along_the_axis(open_lab):
    """The handle follows the pointer in quarter powers of two, and stays within the axis."""
    lab = open_lab(CostLab)
    picture = lab.figure.locator("svg.attn-pullable").first
    handle = picture.locator(".attn-handle")
    handle.scroll_into_view_if_needed()
    box, mouse = handle.bounding_box(), lab.page.mouse
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = int(lab.control("n").get_attribute("aria-valuetext"))
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + 80, y - 30, steps=4)
    lab.shown()
    after = int(lab.control("n").get_attribute("aria-valuetext"))
    assert before == 4096 < after
    assert abs(handle.bounding_box()["x"] - box["x"] - 80) < 8  # a step is a 64th of the axis
    mouse.move(5000, y)
    mouse.up()
    SPEC.parity(lab, CostLab(n=2**20))
    mouse.move(x, y)  # released: it stays
    SPEC.parity(lab, CostLab(n=2**20))
