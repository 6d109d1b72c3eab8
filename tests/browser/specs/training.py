"""TrainingLab: every stored step of a run."""

from __future__ import annotations

import numpy as np
from browser.driver import LabDriver, Shown
from browser.specs.spec import CLOSE, LabSpec

from attn_lib.labs import TrainingLab
from attn_lib.labs.training.lab import stored_runs

RUNS = ("induction", "reversal", "induction-two-heads")


def answers_of(python: TrainingLab) -> np.ndarray:
    """Right answer, given answer, chance of the right one; NaN where none can be known."""
    rows = [[np.nan if x is None else x for x in python.targets], python.said, python.chances]
    return np.where(np.isnan(rows[0]), np.nan, np.array(rows, float))


def parity(lab: LabDriver, python: TrainingLab) -> None:
    """Compare numbers, names, frames, curves, words and controls."""
    lab.open()
    shown = lab.shown()
    panels = shown.panels
    names = [f"weights {r}" for r in range(len(python.heads))]
    assert [name for name in shown.seen if name in ["answers", *names]] == [*names, "answers"]
    for name, expected in zip(names, python.weights, strict=True):
        panel = panels[name]
        np.testing.assert_allclose(panel.values, expected, **CLOSE, err_msg=name)
        assert panel.rows == panel.cols == python.tokens
        assert panel.current == [python.query]
        kinds = np.array(panel.kinds) == "forbidden"
        (causal,) = (run["causal"] for run in python.runs if run["name"] == python.run)
        assert (kinds == (causal & ~np.tri(len(kinds), dtype=bool))).all()
    np.testing.assert_allclose(panels["answers"].values, answers_of(python), **CLOSE)
    assert panels["answers"].cols == ["model reads", *python.tokens]
    assert_curves(shown, python)
    assert_words(lab, shown, python)


def assert_curves(shown: Shown, python: TrainingLab) -> None:
    curves = python.curves
    for panel, name in zip(("loss", "accuracy", "score_1", "score_2"), curves, strict=False):
        expected = np.column_stack([python.steps, curves[name]])
        np.testing.assert_allclose(shown.panels[panel].table, expected, **CLOSE, err_msg=name)


def assert_words(lab: LabDriver, shown: Shown, python: TrainingLab) -> None:
    words, value = shown.words, shown.controls
    assert value["run"] == python.run
    assert shown.hidden == (["head"] if len(python.heads) == 1 else [])
    assert python.steps[int(value["step"])] == python.step
    assert (int(value["head"]), int(value["query"])) == (python.head, python.query)
    step = lab.control("step")
    assert step.locator("xpath=following-sibling::output").inner_text() == str(python.step)
    assert step.get_attribute("aria-valuetext") == str(python.step)
    for name in python.heads:
        assert name.capitalize() in words
    marked = lab.figure.evaluate(
        """(figure) => [...figure.querySelectorAll(".attn-chart:not(.attn-strips)")].map((svg) => {
          const [marks, notes] = [".attn-mark", ".attn-noted"].map((s) => svg.querySelectorAll(s));
          return [marks.length, notes[0].textContent];
        })"""
    )
    scores = [values[python.head] for values in python.scores.values()]
    expected = [python.loss, *scores, python.accuracy]
    assert marked == [[1, f"{value:.3f}"] for value in expected]


def random_state(rng) -> dict:
    run = stored_runs()[rng.integers(3)]
    return {
        "run": run["name"],
        "step": int(rng.choice(run["steps"])),
        "head": int(rng.integers(run["layers"] * run["heads"])),
        "query": int(rng.integers(len(run["tokens"]))),
    }


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
    lab.cell(f"weights {python.head}", python.query, 0).click()


def choose_by_the_sequence(lab, python, rng):
    python.query = int(rng.integers(len(python.tokens)))
    row = lab.figure.locator('table[data-panel="answers"] thead')
    row.locator(f'[data-col="{python.query}"]').click()


def keyboard(lab: LabDriver) -> dict:
    press = lab.page.keyboard.press
    lab.control("step").focus()
    press("End")
    press("ArrowLeft")
    lab.cell("weights 0", 0, 0).focus()
    press("ArrowDown")
    press("Enter")
    return {"step": 900, "head": 0, "query": 1}


SPEC = LabSpec(
    TrainingLab,
    parity=parity,
    random_state=random_state,
    links=45,
    moves=50,
    actions=[
        *(set_step, set_step, go("next", 1), go("previous", -1), choose_run, choose_head),
        *(choose_query, choose_by_cell, choose_by_the_sequence),
    ],
    stops=[
        *("step", "previous", "play", "next", "reset", "link", "more", "run", "head", "query"),
        *("weights 0", "weights 1", "scroll", "summary"),
    ],
    keyboard=keyboard,
    bad_links={
        "step=260": {},
        "step=1e9": {"step": 1000},
        "step=-3": {"step": 0},
        "step=late": {},
        "head=7": {"head": 1},
        "query=<img src=x onerror=alert(1)>": {},
        "run=</script>": {},
        "loss=0": {},
    },
    looks=[{"run": run, "step": 100} for run in RUNS],
    quick=("step", [k % 29 for k in range(41)], {"step": 275}),
    kernel={"query": 3},
    press="play",  # each is removed while it plays
    motion=True,
)
