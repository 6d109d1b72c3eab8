"""LookupLab: a query in the plane among keys, and what it reads."""

from __future__ import annotations

import numpy as np
from browser.driver import LabDriver
from browser.specs.spec import CLOSE, LabSpec

from attn_lib.examples import COLOURS
from attn_lib.labs import LookupLab
from attn_lib.labs.lookup.lab import REACH

# Where the points of a plane stand, in its own coordinates; `reach` is at the ends of its axes.
_MARKS = """(figure, [panel, mark, reach]) => {
  const svg = figure.querySelector(`.attn-panel-${panel} svg`);
  const [low, high] = ["x1", "x2"].map((end) => +svg.querySelector(".attn-grid").getAttribute(end));
  const place = (px) => ((px - low) / (high - low) * 2 - 1) * reach;
  const at = (point, name) => Number(point.getAttribute(name));
  return [...svg.querySelectorAll(mark)].map((p) => [place(at(p, "cx")), -place(at(p, "cy"))]);
}"""


def marks(lab: LabDriver, panel: str, mark: str) -> np.ndarray:
    reach = REACH if panel == "keys" else 1.08
    return np.array(lab.figure.evaluate(_MARKS, [panel, mark, reach]), float).reshape(-1, 2)


def parity(lab: LabDriver, python: LookupLab) -> None:
    """Compare table, both planes and words."""
    lab.open()
    shown = lab.shown()
    S, a, o = python.scores, python.weights, python.output
    table = shown.weights
    np.testing.assert_allclose(
        table.values, np.column_stack([S, a, a[:, None] * python.V]), **CLOSE
    )
    np.testing.assert_allclose(table.total, [a.sum(), *o], **CLOSE)
    np.testing.assert_allclose(marks(lab, "keys", ".attn-pigment"), python.K, **CLOSE)
    np.testing.assert_allclose(marks(lab, "keys", ".attn-query"), [python.q], **CLOSE)
    np.testing.assert_allclose(marks(lab, "values", ".attn-pigment"), python.V, **CLOSE)
    read = [o] if a.any() else np.empty((0, 2))
    np.testing.assert_allclose(marks(lab, "values", ".attn-output"), read, **CLOSE)
    assert shown.pictures[0]["label"] == f"Query and keys. {python.describe()}"
    assert f"nearest key {python.nearest}" in shown.words
    assert f"longest projection {python.longest}" in shown.words


def random_state(rng) -> dict:
    exact = {"query_x": 0.6, "query_y": 0.75, "lookup": "exact"}  # on a key
    free = {
        "query_x": round(rng.uniform(-2, 2), 2),
        "query_y": round(rng.uniform(-2, 2), 2),
        "lookup": str(rng.choice(["exact", "hard", "soft", "soft"])),
    }
    moved = {
        "key_points": rng.uniform(-2, 2, 12).round(2).tolist() if rng.random() < 0.3 else [],
        "value_points": rng.uniform(-1, 1, 12).round(2).tolist() if rng.random() < 0.3 else [],
    }
    return (exact if rng.random() < 0.1 else free | moved) | {
        "kernel": str(rng.choice(["gaussian", "dot"])),
        "temperature": float(f"{10 ** rng.uniform(-2, 2):.4g}"),
        "one_length": bool(rng.integers(2)),
    }


def choose(name, values):
    def act(lab, python, rng):
        if lab.control(name).is_enabled():
            setattr(python, name, str(rng.choice(values)))
            lab.control(name).select_option(getattr(python, name))

    act.__name__ = name
    return act


def slide(name):
    def act(lab, python, rng):
        setattr(python, name, round(rng.uniform(-2, 2), 2))
        lab.control(name).fill(f"{getattr(python, name):.2f}")

    act.__name__ = name
    return act


def set_temperature(lab, python, rng):
    if lab.control("temperature").is_enabled():
        position = 0.02 * int(rng.integers(-100, 101))
        lab.control("temperature").fill(f"{position:.2f}")
        python.temperature = float(f"{10**position:.3g}")


def set_one_length(lab, python, rng):
    python.one_length = bool(rng.integers(2))
    lab.control("one_length").set_checked(python.one_length)


def keyboard(lab: LabDriver) -> dict:
    press = lab.page.keyboard.press
    lab.control("query_x").focus()
    press("Home")
    lab.control("kernel").focus()
    press("ArrowDown")
    lab.control("one_length").focus()
    press("Space")
    return {"query_x": -2.0, "kernel": "dot", "one_length": True}


SPEC = LabSpec(
    LookupLab,
    parity=parity,
    random_state=random_state,
    links=45,
    actions=[
        choose("lookup", ["exact", "hard", "soft", "soft"]),
        choose("kernel", ["gaussian", "dot"]),
        *(slide("query_x"), slide("query_y"), set_temperature, set_one_length),
    ],
    stops=[
        *("temperature", "query", *(f"key of {name}" for name in COLOURS.names)),
        *(f"value of {name}" for name in COLOURS.names),
        *("reset", "link", "more", "query_x", "query_y", "lookup", "kernel", "one_length"),
    ],
    keyboard=keyboard,
    bad_links={
        "query_x=9": {"query_x": 2.0},
        "lookup=<b>": {},
        "temperature=0": {"temperature": 0.01},
        "one_length=1": {},
        "z=1": {},
    },
    looks=[{}, {"kernel": "dot", "one_length": True}, {"lookup": "exact"}],
    quick=("query_x", [k / 20 for k in range(-40, 11)], {"query_x": 0.5}),
    kernel={"kernel": "dot"},
)
