"""CrossLab: ribbons from a reader to a source."""

from __future__ import annotations

import numpy as np
from browser.driver import LabDriver
from browser.specs.spec import CLOSE, LabSpec

from attn_lib.labs import CrossLab


def parity(lab: LabDriver, python: CrossLab) -> None:
    """Compare numbers, names, controls, and how wide each ribbon is."""
    lab.open()
    shown = lab.shown()
    for name in ("scores", "weights", "output"):
        panel = shown.panels[name]
        np.testing.assert_allclose(panel.values, getattr(python, name), **CLOSE)
        assert panel.rows == python.reader and panel.current == [python.query]
    assert shown.weights.cols == python.source
    assert shown.order == python.order
    value = shown.controls
    assert (int(value["query"]), value["alone"]) == (python.query, python.alone)
    assert abs(float(value["temperature"]) - np.log10(python.temperature)) <= 0.0151
    widths = lab.figure.evaluate(
        """(figure) => [...figure.querySelectorAll(".attn-crossing g[data-reader]")].map((g) => [
          ...["reader", "place"].map((name) => Number(g.dataset[name])),
          Number(g.querySelector(".attn-arc").getAttribute("stroke-width"))])"""
    )
    assert all(i == python.query for i, _, _ in widths) or not python.alone
    drawn = np.zeros_like(python.weights)
    for i, j, width in widths:
        drawn[int(i), int(j)] = width
    row = drawn[python.query]
    np.testing.assert_allclose(row / row.sum(), python.weights[python.query], atol=0.09)


def random_state(rng) -> dict:
    return {
        "query": int(rng.integers(3)),
        "order": [int(j) for j in rng.permutation(3)],
        "temperature": float(f"{10 ** rng.uniform(-2, 2):.4g}"),
        "alone": bool(rng.integers(2)),
    }


def choose(lab, python, rng):
    python.query = int(rng.integers(3))
    how = rng.integers(3)
    if how == 0:
        lab.control("query").select_option(str(python.query))
    elif how == 1:
        lab.figure.locator(f'.attn-askers [data-reader="{python.query}"]').click()
    else:
        lab.cell("weights", python.query, 0).click()


def move_by_key(lab, python, rng):
    token = int(rng.integers(3))
    lab.figure.locator(f'[data-token="{token}"] .attn-chip').press("Shift+Home")
    python.order = [token, *(other for other in python.order if other != token)]


def reverse(lab, python, rng):
    lab.action("reverse").click()
    python.order = python.order[::-1]


def set_temperature(lab, python, rng):
    position = round(0.02 * int(rng.integers(-100, 101)), 2)
    lab.control("temperature").fill(f"{position:g}")
    python.temperature = float(f"{10**position:.3g}")


def set_alone(lab, python, rng):
    python.alone = not python.alone
    lab.control("alone").set_checked(python.alone)


def keyboard(lab: LabDriver) -> dict:
    press = lab.page.keyboard.press
    lab.control("temperature").focus()
    for _ in range(5):
        press("ArrowRight")
    lab.cell("weights", 0, 0).focus()
    press("ArrowDown")
    press("Enter")
    return {"temperature": 1.26, "query": 1}


SPEC = LabSpec(
    CrossLab,
    parity=parity,
    random_state=random_state,
    actions=[choose, move_by_key, reverse, set_temperature, set_alone],
    stops=[
        *("temperature", "token 0", "right", "token 0", "token 1", "token 2"),
        *("reset", "link", "more", "query", "alone", "reverse", "shuffle"),
        *("scores", "weights", "output"),
    ],
    keyboard=keyboard,
    bad_links={
        "query=9": {"query": 2},
        "order=0,0,1": {},
        "temperature=0": {"temperature": 0.01},
        "alone=1": {},
        "z=<b>": {},
    },
    looks=[{}, {"alone": True, "query": 2}],
    quick=("temperature", [f"{k / 20:.2f}" for k in range(-40, 21)], {"temperature": 10.0}),
    kernel={"query": 1},
    press="reverse",
)
