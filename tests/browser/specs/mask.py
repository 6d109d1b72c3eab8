"""MaskLab: allowed, forbidden, shared out."""

from __future__ import annotations

import numpy as np
from browser.driver import LabDriver
from browser.specs.spec import CLOSE, LabSpec

from attn_lib.labs import MaskLab

RULES = ["causal", "window", "prefix", "none"]
SLIDERS = {
    "n": (1, 12),
    "m": (1, 12),
    "offset": (-12, 12),
    "window": (1, 12),
    "prefix": (0, 12),
    "length": (0, 12),
}


def parity(lab: LabDriver, python: MaskLab) -> None:
    """Compare numbers, hatched cells, counts and controls."""
    lab.open()
    shown = lab.shown()
    panels = shown.panels
    for name in ("scores", "weights", "output"):
        np.testing.assert_allclose(panels[name].values, getattr(python, name), **CLOSE)
    assert panels["allowed"].values.ravel().tolist() == python.allowed.tolist()
    kinds = np.where(python.keep, "", "forbidden").tolist()
    assert panels["scores"].kinds == panels["weights"].kinds == kinds
    assert panels["weights"].current == [python.query_row]
    for key in ("mask", "n", "m", "offset", "window", "prefix", "length", "scores_are"):
        assert shown.controls[key] == str(getattr(python, key)), key
    assert shown.controls["inverted"] == python.inverted


def random_state(rng) -> dict:
    state = {name: int(rng.integers(low, high + 1)) for name, (low, high) in SLIDERS.items()}
    state |= {"mask": str(rng.choice(RULES)), "inverted": bool(rng.integers(2))}
    state |= {"scores_are": str(rng.choice(["equal", "random"])), "seed": int(rng.integers(9999))}
    cells = rng.integers(12, size=(rng.integers(4), 2)).tolist()
    painted = [cell for at, cell in enumerate(cells) if cell not in cells[:at]]
    return state | {"query": int(rng.integers(12)), "painted": painted}


def choose(name, values):
    def act(lab, python, rng):
        value = str(rng.choice(values))
        lab.control(name).select_option(value)
        setattr(python, name, value)

    act.__name__ = name
    return act


def invert(lab, python, rng):
    python.inverted = not python.inverted
    lab.control("inverted").set_checked(python.inverted)


def choose_row(lab, python, rng):
    python.query = int(rng.integers(python.n))
    if rng.integers(2):
        lab.cell("scores", python.query, 0).click()
    else:
        lab.figure.locator('table[data-panel="weights"] th[scope="row"]').nth(python.query).click()


def paint(lab, python, rng):
    """Press a cell: its pair is the opposite of what it was."""
    i, j = int(rng.integers(python.n)), int(rng.integers(python.m))
    if rng.integers(2):
        lab.cell("weights", i, j).click()
    else:
        lab.cell("weights", i, j).press("Enter")
    others = [cell for cell in python.painted if cell != [i, j]]
    python.query = i
    python.painted = others if [i, j] in python.painted else [*others, [i, j]]


def choose_mask(lab, python, rng):
    """Another rule wipes off what was painted, the same one does not."""
    rule = str(rng.choice([rule for rule in RULES if rule != python.mask]))
    lab.control("mask").select_option(rule)
    python.mask, python.painted = rule, []


def slide(name):
    def act(lab, python, rng):
        if lab.control(name).is_enabled():
            value = int(rng.integers(SLIDERS[name][0], SLIDERS[name][1] + 1))
            lab.control(name).fill(str(value))
            setattr(python, name, value)

    act.__name__ = name
    return act


def keyboard(lab: LabDriver) -> dict:
    press = lab.page.keyboard.press
    lab.control("n").focus()
    press("ArrowLeft")
    lab.control("inverted").focus()
    press("Space")
    lab.cell("scores", 0, 0).focus()
    press("ArrowDown")
    press("Enter")
    return {"n": MaskLab().n - 1, "inverted": True, "query": 1}


SPEC = LabSpec(
    MaskLab,
    parity=parity,
    random_state=random_state,
    links=105,
    moves=105,
    actions=[
        choose_mask,
        paint,
        choose("scores_are", ["equal", "random"]),
        *(invert, choose_row, *map(slide, SLIDERS)),
    ],
    stops=[
        *("mask", "weights", "allowed", "output", "reset", "link", "more"),
        *("scores_are", "n", "m", "offset", "length", "query", "inverted", "scores"),
    ],
    keyboard=keyboard,
    bad_links={
        "mask=padding": {},
        "n=0": {"n": 1},
        "offset=-40": {"offset": -12},
        "window=2.5": {"window": 3},
        "inverted=yes": {},
        "painted=1": {},
        "painted=0,12": {},
        "d_k=8": {},
    },
    looks=[{}, {"mask": "prefix", "scores_are": "random", "n": 4}],
    quick=("n", [9, 3, 12, 1, 5], {"n": 5}),
    kernel={"offset": 1},
)
