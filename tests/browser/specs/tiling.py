"""TilingLab: what is kept from tile to tile, and the exact answer at the end."""

from __future__ import annotations

import numpy as np
from browser.driver import LabDriver
from browser.specs.spec import CLOSE, LabSpec

from attn_lib.labs import TilingLab

MASKS = ["none", "causal", "window", "padding"]


def expected_kinds(python: TilingLab) -> list[list[str]]:
    """Name what every cell is: forbidden, still to come (later), or read."""
    kinds = np.where(np.isneginf(python.scores), "forbidden", "")
    for tile in python.tiles[python.step :]:
        part = kinds[tile.queries, tile.keys]
        part[part == ""] = "later"
    return kinds.tolist()


def parity(lab: LabDriver, python: TilingLab) -> None:
    """Compare numbers, tiles, words and controls."""
    lab.open()
    shown = lab.shown()
    scores, state, memory = (shown.panels[name] for name in ("scores", "state", "memory"))
    np.testing.assert_allclose(scores.values, python.scores, **CLOSE)
    np.testing.assert_allclose(state.values, python.ledger, **CLOSE)
    assert memory.values.ravel().tolist() == [python.bytes_held, python.bytes_full]
    assert scores.kinds == expected_kinds(python)
    assert scores.current == [python.query]
    tile = python.tile
    frame = tile and [
        tile.queries.start,
        tile.keys.start,
        tile.queries.stop - tile.queries.start,
        tile.keys.stop - tile.keys.start,
    ]
    assert scores.boxes == ([frame] if tile else [])
    (difference,) = shown.meters
    if python.difference >= 0.001:
        assert difference == f"{python.difference:.3f}"
    else:
        assert difference == "0" or "·10⁻¹" in difference
    values = {key: shown.controls[key] for key in TilingLab.settings}
    assert values == {key: str(getattr(python, key)) for key in TilingLab.settings}
    assert f"{python.step} of {len(python.tiles)}" in shown.words


def random_state(rng) -> dict:
    state = {
        "tile_queries": int(rng.integers(1, 10)),
        "tile_keys": int(rng.integers(1, 10)),
        "mask": str(rng.choice(MASKS)),
        "query": int(rng.integers(9)),
        "seed": int(rng.integers(10000)),
    }
    return state | {"step": int(rng.integers(len(TilingLab(**state, step=0).tiles) + 1))}


def set_tile(lab, python, rng):
    name, value = str(rng.choice(["tile_queries", "tile_keys"])), int(rng.integers(1, 10))
    lab.control(name).fill(str(value))
    setattr(python, name, value)


def set_mask(lab, python, rng):
    python.mask = str(rng.choice(MASKS))
    lab.control("mask").select_option(python.mask)


def set_step(lab, python, rng):
    python.step = int(rng.integers(len(python.tiles) + 1))
    lab.control("step").fill(str(python.step))


def go_on(lab, python, rng):
    lab.action("next").press("Enter")
    python.step = min(python.step + 1, len(python.tiles))


def go_back(lab, python, rng):
    lab.action("previous").press("Enter")
    python.step = max(python.step - 1, 0)


def to_the_end(lab, python, rng):
    """Without motion, playing is one jump."""
    lab.action("play").click()
    python.step = len(python.tiles)


def choose_query(lab, python, rng):
    python.query = int(rng.integers(9))
    if rng.integers(2):
        lab.control("query").select_option(str(python.query))
    else:
        lab.cell("scores", python.query, 3).click()


def resample(lab, python, rng):
    lab.action("resample").click()
    python.seed += 1


def keyboard(lab: LabDriver) -> dict:
    press = lab.page.keyboard.press
    lab.control("tile_keys").focus()
    press("ArrowRight")
    lab.control("step").focus()
    press("End")
    press("ArrowLeft")
    lab.cell("scores", 0, 0).focus()
    press("ArrowDown")
    press("Enter")
    return {"tile_keys": 4, "step": 8, "query": 1}


SPEC = LabSpec(
    TilingLab,
    parity=parity,
    random_state=random_state,
    links=50,
    moves=60,
    actions=[
        *(set_tile, set_mask, set_step, go_on, go_on, go_back, to_the_end, choose_query),
        resample,
    ],
    stops=[
        *("step", "previous", "play", "next", "scores", "reset", "link", "more"),
        *("tile_queries", "tile_keys", "mask", "query", "seed", "resample"),
    ],
    keyboard=keyboard,
    bad_links={
        "tile_queries=0": {"tile_queries": 1},
        "tile_keys=2.4": {"tile_keys": 2},
        "step=10": {"step": 9},
        "mask=<script>": {},
        "query=-1": {"query": 0},
        "seed=1e99": {"seed": 9999},
        "n=12": {},
    },
    looks=[{}, {"mask": "causal", "step": 2}],
    # on the way there were three tiles alone
    quick=("tile_keys", [9, 1, 7, 2, 4], {"tile_keys": 4, "step": 3}),
    kernel={"query": 2},
    press="play",  # each is removed while it plays
    motion=True,
)
