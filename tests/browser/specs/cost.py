"""CostLab: what one layer spends, and every variant at 128k tokens."""

from __future__ import annotations

import numpy as np
from browser.driver import LabDriver
from browser.specs.spec import LabSpec

from attn_lib.labs import CostLab
from attn_lib.labs.cost.lab import BYTES, VARIANTS

CONTROLS = ["variant", "n", "d", "h", "window"]
SLIDERS = {"n": (16, 80, 4), "d": (6, 14, 1), "h": (0, 7, 1), "window": (4, 16, 1)}
CLOSE = {"rtol": 1e-9}


def parity(lab: LabDriver, python: CostLab) -> None:
    """Compare formulas, the long context, both charts and the crossings."""
    lab.open()
    shown = lab.shown()
    layer, long, n = python.layer, python.at_128k, python.lengths.astype(float)
    curves_of = python.curves
    expected = [python.operations, layer["projections"], layer["feed_forward"], python.memory]
    np.testing.assert_allclose(shown.formulas.table[:, 1], expected, **CLOSE)
    np.testing.assert_allclose(shown.long.values, [long[name] for name in VARIANTS], **CLOSE)
    others = {
        "operations": [4 * n * python.d**2, 12 * n * python.d**2],
        "memory": [4 * n * python.d * BYTES],
    }
    for k, panel in enumerate(("operations", "memory")):
        table = shown.panels[panel].table
        np.testing.assert_allclose(table[:, 0], n)
        drawn = {tuple(np.round(column, 3)) for column in table[:, 1:].T}
        curves = [*others[panel], *(curves_of[variant][k] for variant in VARIANTS)]
        assert drawn == {tuple(np.round(curve, 3)) for curve in curves}
    names = " ".join(shown.pictures[0]["texts"])
    assert all(name in names for name in python.crossings)
    assert shown.controls["variant"] == python.variant


def random_state(rng) -> dict:
    h = int(rng.choice([1, 2, 3, 8, 12, 64, 128]))
    return {
        "n": int(2 ** rng.uniform(0, 20)),
        "d": h * int(rng.integers(1, 128)),
        "h": h,
        "window": int(2 ** rng.uniform(0, 20)),
        "variant": str(rng.choice(VARIANTS)),
    }


def choose_variant(lab, python, rng):
    python.variant = str(rng.choice(VARIANTS))
    lab.control("variant").select_option(python.variant)


def slide(name):
    def act(lab, python, rng):
        low, high, step = SLIDERS[name]
        position = int(rng.integers(low, high + 1)) / step
        lab.control(name).fill(f"{position:g}")
        state = {key: getattr(python, key) for key in CONTROLS} | {name: round(2**position)}
        # 128 heads do not fit into a width of 64
        python.h = 1
        python.d, python.n, python.window = state["d"], state["n"], state["window"]
        python.h = min(state["h"], state["d"])

    act.__name__ = name
    return act


def keyboard(lab: LabDriver) -> dict:
    press = lab.page.keyboard.press
    lab.control("n").focus()
    for key in ("End", "ArrowLeft"):
        press(key)
    lab.control("variant").focus()
    press("w")
    return {"n": round(2**19.75), "variant": "windowed"}


SPEC = LabSpec(
    CostLab,
    parity=parity,
    random_state=random_state,
    actions=[choose_variant, *map(slide, SLIDERS)],
    stops=["n", "variant", "reset", "link", "more", "d", "h", "window", "summary"],
    keyboard=keyboard,
    bad_links={
        "n=0": {"n": 1},
        "n=1e99": {"n": 2**20},
        "d=abc": {},
        "variant=<img>": {},
        "h=-3": {"h": 1},
        "colour=red": {},
    },
    looks=[{}, {"variant": "windowed"}],
    quick=("n", [16 / 4, 80 / 4, 7, 12.25, 10], {"n": 1024}),
    kernel={"variant": "windowed"},
)
