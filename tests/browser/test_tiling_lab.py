"""What TilingLab alone does in a browser; what every lab promises: `test_every_lab`."""

from __future__ import annotations

import numpy as np
import pytest
from browser.specs.tiling import SPEC

from attn_lib.labs import TilingLab


def test_a_first_tile_wholly_masked_for_a_row(open_lab):
    """Field case N07: no NaN, and the output is that of the keys that are allowed."""
    state = {"mask": "window", "tile_queries": 6, "tile_keys": 2, "query": 5}
    lab = open_lab(TilingLab, **state, step=1)
    python = TilingLab(**state, step=1)
    SPEC.parity(lab, python)
    assert lab.shown().panels["state"].values[3].tolist() == [-np.inf, 0, 0, 0, 0]
    lab.action("next").click()
    lab.action("next").click()
    python.step = 3
    SPEC.parity(lab, python)
    assert python.finished and python.difference < 1e-14


def test_words_stand_on_what_is_to_come_and_what_is_skipped(open_lab):
    lab = open_lab(TilingLab, mask="causal", step=0)
    assert lab.shown().panels["scores"].words == ["to come", "skipped"]
    lab.action("play").click()
    assert lab.shown().panels["scores"].words == ["skipped"]
    lab.control("mask").select_option("none")
    lab.control("step").fill("9")
    assert lab.shown().panels["scores"].words == []
    lab.control("step").fill("0")
    lab.cell("scores", 2, 7).hover()
    assert "query 3 → key 8: not read yet" in lab.shown().words


# Playing ------------------------------------------------------------------------------------------


def test_play_reads_tile_after_tile_and_stops_at_the_end(open_lab):
    lab = open_lab(TilingLab, step=6, options={"reduced_motion": "no-preference"})
    play = lab.action("play")
    assert play.inner_text() == "Play"
    play.click()
    assert play.inner_text() == "Pause"
    lab.shown()
    assert lab.control("step").input_value() == "7"  # at once
    lab.page.wait_for_function("document.querySelector('[data-control=step]').value === '9'")
    lab.page.wait_for_function(
        "document.querySelector('[data-action=play]').textContent === 'Play'"
    )
    SPEC.parity(lab, TilingLab(step=9))
    play.click()  # from the end it begins again
    lab.shown()
    assert lab.control("step").input_value() == "0"


@pytest.mark.parametrize("stop", ["play", "previous", "reset", "step"])
def test_playing_is_stopped_by_whoever_moves_the_step(open_lab, stop):
    lab = open_lab(TilingLab, step=2, options={"reduced_motion": "no-preference"})
    lab.action("play").click()
    if stop == "step":
        lab.control("step").fill("5")
    else:
        lab.action(stop).click()
    lab.shown()
    assert lab.action("play").inner_text() == "Play"
    at = lab.control("step").input_value()
    lab.page.wait_for_timeout(1300)  # longer than a beat
    assert lab.control("step").input_value() == at


def test_without_motion_playing_goes_to_the_end_at_once(open_lab):
    lab = open_lab(TilingLab, step=2)
    assert lab.action("play").inner_text() == "To the end"
    lab.action("play").click()
    SPEC.parity(lab, TilingLab(step=9))


def test_the_ends_are_said_and_keep_the_focus(open_lab):
    lab = open_lab(TilingLab, step=8)
    lab.action("next").focus()
    for _ in range(2):
        lab.page.keyboard.press("Enter")
        lab.shown()
    assert lab.action("next").get_attribute("aria-disabled") == "true"
    assert lab.action("next").evaluate("(button) => button === document.activeElement")
    SPEC.parity(lab, TilingLab(step=9))
