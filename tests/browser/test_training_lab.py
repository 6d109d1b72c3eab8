"""What TrainingLab alone does in a browser; what every lab promises: `test_every_lab`."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from browser.driver import LabDriver
from browser.specs.training import RUNS, SPEC

from attn_lib.labs import TrainingLab
from attn_lib.training import RECIPES, start, train

MOTION = {"reduced_motion": "no-preference"}


def test_a_run_of_ones_own(open_page, tmp_path):
    run = train(start("honest", seed=4), 6, keep=range(0, 7, 2), progress=False)
    python = TrainingLab(run=run, name="lab", step=4)
    lab = LabDriver(open_page(python.save(tmp_path / "own.html")))
    SPEC.parity(lab, python)
    assert lab.shown().panels["weights 0"].values.shape == (16, 16)
    lab.action("next").click()
    python.step = 6
    SPEC.parity(lab, python)


# Playing ------------------------------------------------------------------------------------------


def test_with_less_motion_playing_is_one_jump(open_lab):
    lab = open_lab(TrainingLab, run="reversal", step=90)
    play = lab.action("play")
    assert play.inner_text() == "To the end"
    play.click()
    SPEC.parity(lab, TrainingLab(run="reversal", step=100))


def test_play_goes_on_from_step_to_step_and_stops_at_the_end(open_lab):
    lab = open_lab(TrainingLab, run="reversal", step=90, options=MOTION)
    play = lab.action("play")
    assert lab.control("step").input_value() == "18"  # nothing plays by itself
    play.click()
    assert play.inner_text() == "Pause"
    lab.shown()
    assert lab.control("step").input_value() in ("19", "20")  # at once, and then beat by beat
    lab.page.wait_for_function(
        "document.querySelector('[data-action=play]').textContent === 'Play'"
    )
    SPEC.parity(lab, TrainingLab(run="reversal", step=100))
    play.press("Enter")  # from the end it begins again
    lab.shown()
    assert int(lab.control("step").input_value()) < 10


@pytest.mark.parametrize("stop", ["play", "previous", "reset", "step", "run"])
def test_playing_is_stopped_by_whoever_moves_the_step(open_lab, stop):
    lab = open_lab(TrainingLab, step=100, options=MOTION)
    lab.action("play").click()
    if stop == "step":
        lab.control("step").fill("20")
    elif stop == "run":
        lab.control("run").select_option("reversal")
    else:
        lab.action(stop).click()
    lab.shown()
    assert lab.action("play").inner_text() == "Play"
    at = lab.control("step").input_value()
    lab.page.wait_for_timeout(800)  # longer than two beats
    assert lab.control("step").input_value() == at


def test_a_step_moves_nothing_in_the_page(open_lab):
    lab = open_lab(TrainingLab)
    boxes = """(figure) => {
      const seen = "table, svg, input, p:not(.attn-readout, .attn-sentence)";
      return [...figure.querySelectorAll(seen)].filter((e) => e.checkVisibility()).map((e) => {
        const {x, y, width, height} = e.getBoundingClientRect();
        return [x, y, width, height];
      });
    }"""
    lab.open()
    lab.shown()
    before = lab.figure.evaluate(boxes)
    for at in (0, 7, 28):
        lab.control("step").fill(str(at))
        lab.said()
        np.testing.assert_allclose(lab.figure.evaluate(boxes), before, atol=0.5)


def test_the_table_of_numbers_has_every_step(open_lab):
    lab = open_lab(TrainingLab)
    lab.open()
    lab.figure.locator("summary").press("Enter")
    accuracy = lab.shown().accuracy
    assert accuracy.rows == [str(step) for step in TrainingLab().steps]
    assert all(cell for row in accuracy.texts for cell in row)


@pytest.mark.parametrize("width", [1280, 712, 390])
def test_maps_of_heads_do_not_scroll(open_lab, width):
    lab = open_lab(TrainingLab, options={"viewport": {"width": width, "height": 900}})
    for run in RUNS:
        lab.control("run").select_option(run)
        lab.shown()
        maps = "[...document.querySelectorAll('.attn-multiples .attn-scroll')]"
        assert lab.page.evaluate(f"{maps}.every((e) => e.scrollWidth <= e.clientWidth)")


def test_a_cell_under_the_pointer_is_read_out(open_lab):
    lab, python = open_lab(TrainingLab), TrainingLab()
    readout = lab.figure.locator(".attn-readout")
    lab.cell("weights 1", 7, 2).hover()
    assert readout.inner_text() == (
        f"layer 2, 21 (place 8) → 23 (place 3): weight {python.weights[1, 7, 2]:.3f}"
    )
    lab.cell("weights 0", 2, 7).hover()
    assert "still to come" in readout.inner_text()
    lab.page.mouse.move(0, 0)
    assert readout.inner_text().startswith("Point at a cell")


def test_the_sequence_says_which_answers_are_right(open_lab):
    lab = open_lab(TrainingLab, step=250)
    row = lab.figure.locator('table[data-panel="answers"] tbody tr').nth(1)
    weights = row.locator("td").evaluate_all(
        "(cells) => cells.map((cell) => [cell.textContent, getComputedStyle(cell).fontWeight])"
    )
    python = TrainingLab(step=250)
    for (text, weight), said, right in zip(weights, python.said, python.targets, strict=True):
        assert text == ("" if right is None else str(said))
        assert (weight == "600") is (right == said)
    assert re.search(r"P\(right\)", lab.shown().words)


def test_hostile_words_stay_words(open_page, tmp_path):
    """Field case W05: the name of somebody's recipe is text, wherever it stands."""
    name = '</script><img src=x onerror=alert(1)> a" onmouseover="x'
    recipe = dataclasses.replace(RECIPES["copy"], name=name)
    run = train(start(recipe), 2, keep=[0, 2], progress=False)
    python = TrainingLab(run=run, name="lab")
    page = open_page(python.save(tmp_path / "hostile.html"))
    page.on("dialog", lambda dialog: page.watch.complaints.append(f"dialog: {dialog.message}"))
    lab = LabDriver(page)
    SPEC.parity(lab, python)
    assert lab.control("run").locator("option").all_inner_texts() == [name]
    assert lab.figure.locator(".attn-live img").count() == 0


def test_the_step_is_pulled_along_the_loss(open_lab):
    """A stored step is taken, the nearest; the arcs follow."""
    lab = open_lab(TrainingLab, step=0)
    picture, mouse = lab.figure.locator("svg.attn-pullable"), lab.page.mouse
    arcs = lab.figure.locator(".attn-strips")
    before = arcs.inner_html()
    box = picture.bounding_box()
    mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    mouse.down()
    lab.shown()
    at = int(lab.control("step").get_attribute("aria-valuetext"))
    assert 300 < at < 650 and at in TrainingLab().steps
    assert arcs.inner_html() != before
    mouse.move(box["x"] + box["width"] + 300, box["y"], steps=3)
    mouse.up()
    SPEC.parity(lab, TrainingLab(step=1000))


def test_the_path_goes_through_the_word_that_is_read_most(open_lab):
    """Layer 2 reads a word; the strip below shows what layer 1 had read there."""
    lab, python = open_lab(TrainingLab, step=1000, query=9), TrainingLab(step=1000, query=9)
    via = int(python.weights[1, 9].argmax())
    asked = lab.figure.locator(".attn-strips .attn-word-asks").evaluate_all(
        "(words) => words.map((word) => Number(word.dataset.place))"
    )
    assert asked == [9, via]
    assert int(python.weights[0, via].argmax()) == via - 1  # the previous-token head
    lab.figure.locator('.attn-strips text[data-strip="0"][data-place="7"]').click()
    SPEC.parity(lab, TrainingLab(step=1000, query=7))
