"""What MaskLab alone does in a browser; what every lab promises: `test_every_lab`."""

from __future__ import annotations

from browser.driver import tab_stops
from browser.specs.mask import SPEC

from attn_lib.labs import MaskLab


def test_a_rule_switches_off_what_it_does_not_use(open_lab):
    lab = open_lab(MaskLab)
    enabled = {
        "causal": ["offset"],
        "window": ["offset", "window"],
        "prefix": ["offset", "prefix"],
        "none": [],
    }
    for rule, used in enabled.items():
        lab.control("mask").select_option(rule)
        lab.shown()
        names = ["offset", "window", "prefix"]
        assert [name for name in names if lab.control(name).is_enabled()] == used
        for name in set(names) - set(used):  # and says why
            assert lab.control(name).get_attribute("title").startswith("Used by")


def test_a_control_that_a_rule_uses_is_reached_and_moved_by_keyboard(open_lab):
    lab = open_lab(MaskLab, mask="window")
    at = SPEC.stops.index("offset") + 1
    assert tab_stops(lab.page) == [*SPEC.stops[:at], "window", *SPEC.stops[at:]]
    lab.control("window").focus()
    lab.page.keyboard.press("ArrowLeft")
    SPEC.parity(lab, MaskLab(mask="window", window=2))


def test_a_forbidden_cell_says_so(open_lab):
    """Not by colour alone: a pattern, and a word."""
    lab = open_lab(MaskLab, n=3, m=3)
    lab.cell("weights", 0, 2).hover()
    assert "query 1 → key 3: forbidden" in lab.shown().words
    hatching = "(cell) => getComputedStyle(cell).backgroundImage"
    assert "gradient" in lab.cell("weights", 0, 2).evaluate(hatching)
    assert lab.cell("weights", 2, 0).evaluate(hatching) == "none"
