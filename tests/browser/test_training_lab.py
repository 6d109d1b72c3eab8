"""TrainingLab in a browser: what JavaScript shows of every stored step is what Python reads."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from browser.chart_driver import PHONE, ChartDriver, assert_nothing_left, folded, host_page
from browser.panel_driver import PanelDriver, link, tab_stops

from attn_lib.labs import TrainingLab
from attn_lib.labs.training.lab import stored_runs
from attn_lib.training import RECIPES, start, train

CLOSE = {"rtol": 1e-6, "atol": 1e-6}
RUNS = ("induction", "reversal", "induction-two-heads")
MOTION = {"reduced_motion": "no-preference"}


@pytest.fixture
def open_lab(open_page, tmp_path):
    """Return a function that opens TrainingLab(**state), saved as one file, with a driver."""

    def open_(fragment="", *, options=None, **state) -> PanelDriver:
        file = TrainingLab(name="lab", **state).save(tmp_path / "lab.html")
        return PanelDriver(open_page(file.as_uri() + fragment, **options or {}))

    return open_


def answers_of(python: TrainingLab) -> np.ndarray:
    """Right answer, given answer, chance of the right one; NaN where none can be known."""
    rows = [[np.nan if x is None else x for x in python.targets], python.said, python.chances]
    return np.where(np.isnan(rows[0]), np.nan, np.array(rows, float))


def assert_parity(lab: PanelDriver, python: TrainingLab) -> None:
    """Compare a whole picture with `python`: numbers, names, frames, curves, words, controls."""
    shown = lab.shown()
    panels = shown["panels"]
    names = [f"weights {r}" for r in range(len(python.heads))]
    assert list(panels)[: 1 + len(names)] == ["answers", *names]
    for name, expected in zip(names, python.weights, strict=True):
        panel = panels[name]
        np.testing.assert_allclose(panel["values"], expected, **CLOSE, err_msg=name)
        assert panel["rows"] == panel["cols"] == python.tokens
        assert panel["current"] == [python.query]
        kinds = np.array(panel["kinds"]) == "forbidden"
        (causal,) = (run["causal"] for run in python.runs if run["name"] == python.run)
        assert (kinds == (causal & ~np.tri(len(kinds), dtype=bool))).all()
    np.testing.assert_allclose(panels["answers"]["values"], answers_of(python), **CLOSE)
    assert panels["answers"]["cols"] == ["model reads", *python.tokens]
    assert_curves(lab, python)
    assert_words(lab, shown, python)


def assert_curves(lab: PanelDriver, python: TrainingLab) -> None:
    charts = ChartDriver(lab.page)
    curves = python.curves
    for panel, name in zip(("loss", "accuracy", "score_1", "score_2"), curves, strict=False):
        expected = np.column_stack([python.steps, curves[name]])
        np.testing.assert_allclose(charts.table(panel), expected, **CLOSE, err_msg=name)


def assert_words(lab: PanelDriver, shown: dict, python: TrainingLab) -> None:
    words, value = shown["words"], shown["controls"]
    assert value["run"] == python.run
    assert shown["hidden"] == (["head"] if len(python.heads) == 1 else [])
    assert python.steps[int(value["step"])] == python.step
    assert (int(value["head"]), int(value["query"])) == (python.head, python.query)
    step = lab.control("step")
    assert step.locator("xpath=following-sibling::output").inner_text() == str(python.step)
    assert step.get_attribute("aria-valuetext") == str(python.step)
    for name in python.heads:
        assert name.capitalize() in words
    marked = lab.figure.evaluate(
        """(figure) => [...figure.querySelectorAll("svg.attn-chart")].map((svg) => {
          const [marks, notes] = [".attn-mark", ".attn-noted"].map((s) => svg.querySelectorAll(s));
          return [marks.length, notes[0].textContent];
        })"""
    )
    expected = [python.loss, python.accuracy]
    expected += [values[python.head] for values in python.scores.values()]
    assert marked == [[1, f"{value:.3f}"] for value in expected]


def random_state(rng) -> dict:
    run = stored_runs()[rng.integers(3)]
    return {
        "run": run["name"],
        "step": int(rng.choice(run["steps"])),
        "head": int(rng.integers(run["layers"] * run["heads"])),
        "query": int(rng.integers(len(run["tokens"]))),
    }


@pytest.mark.parametrize("seed", range(3))
def test_states_set_through_links(open_lab, seed):
    rng = np.random.default_rng(seed)
    lab = open_lab()
    for _ in range(15):
        state = random_state(rng)
        lab.follow(link(state))
        assert lab.shown()["notice"] == ""
        assert_parity(lab, TrainingLab(**state))
    assert lab.said() == TrainingLab(**state).describe()


# One reader's action each: change the lab and the Python lab that it must equal -----------------


def set_step(lab, python, rng):
    at = int(rng.integers(len(python.steps)))
    lab.control("step").fill(str(at))
    python.step = int(python.steps[at])


def go(action, by):
    def act(lab, python, rng):
        lab.action(action).press("Enter")
        at = python.steps.tolist().index(python.step) + by
        python.step = int(python.steps[np.clip(at, 0, len(python.steps) - 1)])

    act.__name__ = action
    return act


def choose_run(lab, python, rng):
    python.run = str(rng.choice(RUNS))
    lab.control("run").select_option(python.run)


def choose_head(lab, python, rng):
    if len(python.heads) == 1:
        return choose_query(lab, python, rng)
    python.head = int(rng.integers(len(python.heads)))
    lab.control("head").select_option(str(python.head))


def choose_query(lab, python, rng):
    python.query = int(rng.integers(len(python.tokens)))
    lab.control("query").select_option(str(python.query))


def choose_by_cell(lab, python, rng):
    python.head, python.query = int(rng.integers(len(python.heads))), int(rng.integers(11))
    panel = lab.figure.locator(f'table[data-panel="weights"][data-head="{python.head}"]')
    panel.locator(f'td[data-row="{python.query}"][data-col="0"]').click()


def choose_by_the_sequence(lab, python, rng):
    python.query = int(rng.integers(len(python.tokens)))
    row = lab.figure.locator('table[data-panel="answers"] thead')
    row.locator(f'[data-col="{python.query}"]').click()


ACTIONS = [set_step, set_step, go("next", 1), go("previous", -1), choose_run, choose_head]
ACTIONS += [choose_query, choose_by_cell, choose_by_the_sequence]


@pytest.mark.parametrize("seed", range(2))
def test_states_set_through_the_controls(open_lab, seed):
    rng = np.random.default_rng(30 + seed)
    lab, python, said = open_lab(), TrainingLab(), []
    for _ in range(25):
        act = ACTIONS[rng.integers(len(ACTIONS))]
        act(lab, python, rng)
        said.append(act.__name__)
        try:
            assert_parity(lab, python)
        except AssertionError as error:
            error.add_note(f"after {', '.join(said)}")
            raise
    assert lab.said() == python.describe()
    lab.action("reset").click()
    assert_parity(lab, TrainingLab())


def test_a_run_of_ones_own(open_page, tmp_path):
    run = train(start("honest", seed=4), 6, keep=range(0, 7, 2), progress=False)
    python = TrainingLab(run=run, name="lab", step=4)
    lab = PanelDriver(open_page(python.save(tmp_path / "own.html")))
    assert_parity(lab, python)
    assert lab.shown()["panels"]["weights 0"]["values"].shape == (16, 16)
    lab.action("next").click()
    python.step = 6
    assert_parity(lab, python)


# Playing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [MOTION, {}], ids=["motion", "less motion"])
def test_play_goes_on_from_step_to_step_and_stops_at_the_end(open_lab, options):
    """Nothing moves across the picture, so it plays for those who ask for less motion too."""
    lab = open_lab(run="reversal", step=90, options=options)
    play = lab.action("play")
    assert lab.control("step").input_value() == "18"  # nothing plays by itself
    play.click()
    assert play.inner_text() == "Pause"
    lab.shown()
    assert lab.control("step").input_value() in ("19", "20")  # at once, and then beat by beat
    lab.page.wait_for_function(
        "document.querySelector('[data-action=play]').textContent === 'Play'"
    )
    assert_parity(lab, TrainingLab(run="reversal", step=100))
    play.press("Enter")  # from the end it begins again
    lab.shown()
    assert int(lab.control("step").input_value()) < 10


@pytest.mark.parametrize("stop", ["play", "previous", "reset", "step", "run"])
def test_playing_is_stopped_by_whoever_moves_the_step(open_lab, stop):
    lab = open_lab(step=100)
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


# What every lab offers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("step=260", TrainingLab()),
        ("step=1e9", TrainingLab(step=1000)),
        ("step=-3", TrainingLab(step=0)),
        ("step=late", TrainingLab()),
        ("head=7", TrainingLab(head=1)),
        ("query=<img src=x onerror=alert(1)>", TrainingLab()),
        ("run=</script>", TrainingLab()),
        ("loss=0", TrainingLab()),
    ],
)
def test_links_are_limited_and_named(open_lab, field, shown):
    lab = open_lab(f"#lab?{field}")
    assert field.split("=")[0] in lab.shown()["notice"]
    assert_parity(lab, shown)


def test_a_copied_link_opens_the_same_state(open_lab, open_page):
    lab = open_lab()
    lab.control("run").select_option("reversal")
    lab.control("step").fill("12")
    lab.action("link").click()
    lab.shown()
    address = lab.page.evaluate("location.href")
    assert address.endswith("#lab?run=reversal&step=60&head=0")
    lab = PanelDriver(open_page(address))
    assert lab.shown()["notice"] == ""
    assert_parity(lab, TrainingLab(run="reversal", step=60))


def test_a_drag_ends_in_the_last_value(open_lab):
    lab = open_lab()
    lab.control("step").evaluate(
        """async (input) => {
          for (let k = 0; k <= 40; k++) {
            input.value = k % 29;
            input.dispatchEvent(new Event("input", {bubbles: true}));
            if (k % 3 === 0) await new Promise(requestAnimationFrame);
          }
        }"""
    )
    assert_parity(lab, TrainingLab(step=275))


def test_a_step_moves_nothing_in_the_page(open_lab):
    lab = open_lab()
    boxes = """(figure) => {
      const seen = "table, svg, input, p:not(.attn-readout, .attn-sentence)";
      return [...figure.querySelectorAll(seen)].filter((e) => e.checkVisibility()).map((e) => {
        const {x, y, width, height} = e.getBoundingClientRect();
        return [x, y, width, height];
      });
    }"""
    lab.shown()
    before = lab.figure.evaluate(boxes)
    for at in (0, 7, 28):
        lab.control("step").fill(str(at))
        lab.said()
        np.testing.assert_allclose(lab.figure.evaluate(boxes), before, atol=0.5)


def test_keyboard_alone_reaches_and_moves_everything(open_lab):
    lab = open_lab()
    controls = ["run", "head", "query", "step", "previous", "play", "next"]
    stops = tab_stops(lab.page)
    assert stops[:9] == ["link", "reset", *controls]
    scroll, *panels, numbers = stops[9:]
    assert "attn-scroll" in scroll and panels == ["weights 0", "weights 1"]
    assert "summary" in numbers
    press = lab.page.keyboard.press
    lab.control("step").focus()
    press("End")
    press("ArrowLeft")
    lab.cell("weights", 0, 0).first.focus()
    press("ArrowDown")
    press("Enter")
    assert_parity(lab, TrainingLab(step=900, head=0, query=1))
    lab.figure.locator("summary").press("Enter")
    texts = ChartDriver(lab.page).shown()["panels"]["accuracy"]["texts"]
    assert [row[0] for row in texts] == [str(step) for step in TrainingLab().steps]
    assert all(cell for row in texts for cell in row)


def test_a_cell_under_the_pointer_is_read_out(open_lab):
    lab, python = open_lab(), TrainingLab()
    readout = lab.figure.locator(".attn-readout")
    cell = lab.figure.locator('table[data-head="1"] td[data-row="7"][data-col="2"]')
    cell.hover()
    assert readout.inner_text() == (
        f"layer 2, 21 (place 8) → 23 (place 3): weight {python.weights[1, 7, 2]:.3f}"
    )
    lab.figure.locator('table[data-head="0"] td[data-row="2"][data-col="7"]').hover()
    assert "still to come" in readout.inner_text()
    lab.page.mouse.move(0, 0)
    assert readout.inner_text().startswith("Point at a cell")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 712, 390])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(open_lab, axe, scheme, width):
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    for run in RUNS:
        lab = open_lab(link({"run": run, "step": 100}), options=options)
        lab.figure.locator("summary").click()
        lab.shown()
        assert axe(lab.page) == []
        assert lab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        maps = "[...document.querySelectorAll('.attn-multiples .attn-scroll')]"
        assert lab.page.evaluate(f"{maps}.every((e) => e.scrollWidth <= e.clientWidth)")


def test_in_a_closed_dropdown(open_page, tmp_path):
    page = open_page(folded(TrainingLab(name="lab"), tmp_path / "folded.html"), **PHONE)
    lab = PanelDriver(page)
    assert lab.shown()["panels"] == {}
    page.locator("summary").first.click()
    page.wait_for_timeout(100)
    assert_parity(lab, TrainingLab())
    assert lab.painted()


def test_two_in_a_page_and_one_model_shown_twice(open_page, page_of, tmp_path):
    page = open_page(page_of(TrainingLab(name="one"), TrainingLab(name="two", run="reversal")))
    page.watch.inside = "file://"
    first, second = (PanelDriver(page, f"figure#{name}") for name in ("one", "two"))
    first.control("step").fill("3")
    first.shown()
    assert first.control("step").input_value() == "3"
    assert second.control("step").input_value() == "8"
    ids = "[...document.querySelectorAll('[id]')].map(({id}) => id)"
    assert page.evaluate(ids) == ["one", "two"]

    page = host_page(open_page, tmp_path)
    page.evaluate(
        "data => { window.model = makeModel(data); for (const k of [1, 2]) mount(model); }",
        TrainingLab().data(),
    )
    one, two = (PanelDriver(page, f"main > div:nth-child({k}) figure") for k in (1, 2))
    one.control("step").fill("20")
    one.shown()
    assert two.control("step").input_value() == "20"
    page.evaluate("model.set('query', 3)")  # from the kernel
    for lab in (one, two):
        values = lab.shown()["panels"]["weights 1"]
        np.testing.assert_allclose(values["values"], TrainingLab(step=500).weights[1], **CLOSE)
        assert values["current"] == [3]


def test_a_hundred_mounts_leave_nothing_behind(open_page, tmp_path):
    """Each is removed while it plays."""
    assert_nothing_left(open_page, tmp_path, TrainingLab().data(), "step", press="play", **MOTION)


def test_the_sequence_says_which_answers_are_right(open_lab):
    lab = open_lab(step=250)
    row = lab.figure.locator('table[data-panel="answers"] tbody tr').nth(1)
    weights = row.locator("td").evaluate_all(
        "(cells) => cells.map((cell) => [cell.textContent, getComputedStyle(cell).fontWeight])"
    )
    python = TrainingLab(step=250)
    for (text, weight), said, right in zip(weights, python.said, python.targets, strict=True):
        assert text == ("" if right is None else str(said))
        assert (weight == "600") is (right == said)
    assert re.search(r"P\(right\)", lab.shown()["words"])


def test_hostile_words_stay_words(open_page, tmp_path):
    """Field case W05: the name of somebody's recipe is text, wherever it stands."""
    name = '</script><img src=x onerror=alert(1)> a" onmouseover="x'
    recipe = dataclasses.replace(RECIPES["copy"], name=name)
    run = train(start(recipe), 2, keep=[0, 2], progress=False)
    python = TrainingLab(run=run, name="lab")
    page = open_page(python.save(tmp_path / "hostile.html"))
    page.on("dialog", lambda dialog: page.watch.complaints.append(f"dialog: {dialog.message}"))
    lab = PanelDriver(page)
    assert_parity(lab, python)
    assert lab.control("run").locator("option").all_inner_texts() == [name]
    assert lab.figure.locator(".attn-live img").count() == 0
