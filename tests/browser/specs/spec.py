"""What the tests must know of a lab to ask of it what every lab promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from browser.driver import LabDriver

from attn_lib.labs.base import Lab

CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def from_settings(kind: type[Lab], data: dict) -> Lab:
    """Make the Python lab of a state found in a page, which holds all that differs."""
    return kind(**{key: data[key] for key in kind.settings})


@dataclass(frozen=True)
class LabSpec:
    """One lab in the table of `test_every_lab`; a test says of each field what it does with it."""

    kind: type[Lab]
    # compare the whole picture with a lab in Python: every number, name, word and control
    parity: Callable[[LabDriver, Lab], None]
    # a state that a link can set, random_state(rng, **given)
    random_state: Callable[..., dict]
    # one reader's action each, act(lab, python, rng): change both alike
    actions: Sequence[Callable[[LabDriver, Lab, np.random.Generator], None]]
    # what Tab reaches, in order; then a visit by keys alone, which gives the state it ends in
    stops: Sequence[str]
    keyboard: Callable[[LabDriver], dict]
    # a field of a link that cannot be followed: the state that the lab is in then
    bad_links: dict[str, dict]
    # the states to be looked at in both themes and at several widths
    looks: Sequence[dict]
    # a control, the values it is given faster than frames are drawn, the state that remains
    quick: tuple[str, list, dict]
    # what Python sets while the lab is shown
    kernel: dict
    # how a lab is opened: each way is tested
    given: Sequence[dict] = ({},)
    # pressed in each of a hundred mounts, while the control of `quick` moves; is there motion?
    press: str | None = None
    motion: bool = False
    # how many states are set through links, and through controls
    links: int = 30
    moves: int = 30
    # the lab in Python, from the state found in a page
    from_data: Callable[[type[Lab], dict], Lab] = from_settings

    @property
    def name(self) -> str:
        return self.kind.__name__
