"""PositionLab: a score as a function of offset, and the equivariance gaps."""

from __future__ import annotations

import numpy as np
from browser.driver import LabDriver
from browser.specs.spec import CLOSE, LabSpec

from attn_lib.labs import PositionLab
from attn_lib.labs.position.lab import KINDS, REACH

CONTROLS = ["positions", "mask", "n", "d", "offset", "shift", "seed"]


def parity(lab: LabDriver, python: PositionLab) -> None:
    """Compare heatmaps, curves, gaps and words with Python."""
    lab.open()
    shown = lab.shown()
    for panel, expected in (
        ("encodings", python.encodings),
        ("weights", python.weights),
        ("output", python.output),
    ):
        drawn = shown.panels[panel].table[:, 1:]
        np.testing.assert_allclose(drawn, expected, err_msg=panel, **CLOSE)
    offsets = np.arange(-REACH, REACH + 1)
    curves = np.transpose([offsets, python.curve(), python.curve(python.shift)])
    np.testing.assert_allclose(shown.panels["offsets"].table, curves, **CLOSE)
    np.testing.assert_allclose(shown.panels["gaps"].table[:, 1], [*python.gaps.values()], **CLOSE)
    assert shown.gaps.rows == list(python.gaps)
    places = [f"{place} · {token}" for place, token in enumerate(python.tokens)]
    assert shown.weights.rows == places
    assert shown.pictures[1]["label"] == f"Score against offset. {python.describe()}"


def random_state(rng) -> dict:
    n = int(rng.integers(3, 17))
    return {
        "positions": str(rng.choice(KINDS)),
        "n": n,
        "d": 2 * int(rng.integers(1, 17)),
        "offset": int(rng.integers(-12, 13)),
        "shift": int(rng.integers(0, 65)),
        "query": int(rng.integers(n)),
        "order": [int(i) for i in rng.permutation(n)],
        "mask": str(rng.choice(["none", "causal"])),
        "seed": int(rng.integers(10000)),
    }


def choose(name):
    def act(lab, python, rng):
        setattr(python, name, random_state(rng)[name])
        lab.control(name).select_option(getattr(python, name))

    act.__name__ = name
    return act


def fill(name):
    def act(lab, python, rng):
        setattr(python, name, random_state(rng)[name])
        lab.control(name).fill(str(getattr(python, name)))
        lab.control(name).blur()

    act.__name__ = name
    return act


def reverse(lab, python, rng):
    lab.action("reverse").click()
    python.order = python.order[::-1]


def resample(lab, python, rng):
    lab.action("resample").click()
    python.seed = (python.seed + 1) % 10000


def choose_query(lab, python, rng):
    python.query = int(rng.integers(python.n))
    lab.chip(python.query).click()


def push(lab, python, rng):
    at, order = int(rng.integers(1, python.n)), list(python.order)
    lab.push(order[at], "left")
    order[at - 1 : at + 1] = order[at - 1 : at + 1][::-1]
    python.order = order


def keyboard(lab: LabDriver) -> dict:
    lab.control("offset").focus()
    lab.page.keyboard.press("Home")
    lab.control("shift").focus()
    lab.page.keyboard.press("End")
    lab.chip(0).press("Shift+ArrowRight")
    return {"offset": -12, "shift": 64, "order": [1, 0, *range(2, 8)]}


SPEC = LabSpec(
    PositionLab,
    parity=parity,
    random_state=random_state,
    actions=[
        *(choose("positions"), choose("mask"), *map(fill, CONTROLS[2:])),
        *(reverse, resample, choose_query, push),
    ],
    stops=[
        *("positions", "reset", "link", "more", "mask", "n", "d", "offset", "shift", "seed"),
        *("resample", "reverse", "shuffle", "token 0", "right"),
        *("encodings", "weights", "output", "summary"),
    ],
    keyboard=keyboard,
    bad_links={
        "n=99": {"n": 16},
        "d=7": {"d": 8},
        "order=0,1": {},
        "positions=<b>": {},
        "shift=-1": {"shift": 0},
        "z=1": {},
    },
    looks=[{}, {"positions": "alibi", "mask": "causal"}, {"n": 16, "d": 32}],
    # the number of tokens can change in the middle of a drag
    quick=("n", [9, 16, 3, 5], {"n": 5}),
    kernel={"shift": 7},
)
