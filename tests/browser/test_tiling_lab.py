"""TilingLab in a browser: every number kept from tile to tile is numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from browser.chart_driver import PHONE, assert_nothing_left, folded
from browser.panel_driver import PanelDriver, link, tab_stops

from attn_lib.labs import TilingLab

CLOSE = {"rtol": 1e-6, "atol": 1e-6}
MASKS = ["none", "causal", "window", "padding"]


@pytest.fixture
def open_lab(open_page, tmp_path):
    """Return a function that opens TilingLab(**state), saved as one file, with a driver."""

    def open_(fragment="", *, options=None, **state) -> PanelDriver:
        file = TilingLab(name="lab", **state).save(tmp_path / "lab.html")
        return PanelDriver(open_page(file.as_uri() + fragment, **options or {}))

    return open_


def expected_kinds(python: TilingLab) -> list[list[str]]:
    """Name what every cell is: forbidden, still to come (later), or read."""
    kinds = np.where(np.isneginf(python.scores), "forbidden", "")
    for tile in python.tiles[python.step :]:
        part = kinds[tile.queries, tile.keys]
        part[part == ""] = "later"
    return kinds.tolist()


def assert_parity(lab: PanelDriver, python: TilingLab) -> None:
    """Compare a whole picture with `python`: numbers, tiles, words, controls."""
    shown = lab.shown()
    scores, state, memory = (shown["panels"][name] for name in ("scores", "state", "memory"))
    np.testing.assert_allclose(scores["values"], python.scores, **CLOSE)
    np.testing.assert_allclose(state["values"], python.ledger, **CLOSE)
    assert memory["values"].ravel().tolist() == [python.bytes_held, python.bytes_full]
    assert scores["kinds"] == expected_kinds(python)
    assert scores["current"] == [python.query]
    tile = python.tile
    frame = tile and [
        tile.queries.start,
        tile.keys.start,
        tile.queries.stop - tile.queries.start,
        tile.keys.stop - tile.keys.start,
    ]
    assert scores["boxes"] == ([frame] if tile else [])
    (difference,) = shown["meters"]
    if python.difference >= 0.001:
        assert difference == f"{python.difference:.3f}"
    else:
        assert difference == "0" or "·10⁻¹" in difference
    values = {key: shown["controls"][key] for key in TilingLab.settings}
    assert values == {key: str(getattr(python, key)) for key in TilingLab.settings}
    assert f"{python.step} of {len(python.tiles)}" in shown["words"]


def random_state(rng) -> dict:
    state = {
        "tile_queries": int(rng.integers(1, 10)),
        "tile_keys": int(rng.integers(1, 10)),
        "mask": str(rng.choice(MASKS)),
        "query": int(rng.integers(9)),
        "seed": int(rng.integers(10000)),
    }
    return state | {"step": int(rng.integers(len(TilingLab(**state, step=0).tiles) + 1))}


@pytest.mark.parametrize("seed", range(2))
def test_states_set_through_links(open_lab, seed):
    rng = np.random.default_rng(seed)
    lab = open_lab()
    for _ in range(25):
        state = random_state(rng)
        lab.follow(link({key: state[key] for key in rng.permutation(list(state))}))
        assert lab.shown()["notice"] == ""
        assert_parity(lab, TilingLab(**state))


# One reader's action each: change the lab and the Python lab that it must equal -----------------


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


ACTIONS = [set_tile, set_mask, set_step, go_on, go_on, go_back, to_the_end, choose_query, resample]


@pytest.mark.parametrize("seed", range(2))
def test_states_set_through_the_controls(open_lab, seed):
    rng = np.random.default_rng(20 + seed)
    lab, python, said = open_lab(), TilingLab(), []
    for _ in range(30):
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
    assert_parity(lab, TilingLab())


def test_a_first_tile_wholly_masked_for_a_row(open_lab):
    """Field case N07: no NaN, and the output is that of the keys that are allowed."""
    state = {"mask": "window", "tile_queries": 6, "tile_keys": 2, "query": 5}
    lab = open_lab(**state, step=1)
    python = TilingLab(**state, step=1)
    assert_parity(lab, python)
    assert lab.shown()["panels"]["state"]["values"][3].tolist() == [-np.inf, 0, 0, 0, 0]
    lab.action("next").click()
    lab.action("next").click()
    python.step = 3
    assert_parity(lab, python)
    assert python.finished and python.difference < 1e-14


def test_words_stand_on_what_is_to_come_and_what_is_skipped(open_lab):
    lab = open_lab(mask="causal", step=0)
    assert lab.shown()["panels"]["scores"]["words"] == ["to come", "skipped"]
    lab.action("play").click()
    assert lab.shown()["panels"]["scores"]["words"] == ["skipped"]
    lab.control("mask").select_option("none")
    lab.control("step").fill("9")
    assert lab.shown()["panels"]["scores"]["words"] == []
    lab.control("step").fill("0")
    lab.cell("scores", 2, 7).hover()
    assert "query 3 → key 8: not read yet" in lab.shown()["words"]


# Playing ------------------------------------------------------------------------------------------


def test_play_reads_tile_after_tile_and_stops_at_the_end(open_lab):
    lab = open_lab(step=6, options={"reduced_motion": "no-preference"})
    play = lab.action("play")
    assert play.inner_text() == "Play"
    play.click()
    assert play.inner_text() == "Pause"
    lab.shown()
    assert lab.control("step").input_value() == "7"  # at once
    lab.page.wait_for_function("document.querySelector('[data-control=step]').value === '9'")
    lab.page.wait_for_function(
        "document.querySelector('[data-action=play]').textContent === 'Play'"
    )
    assert_parity(lab, TilingLab(step=9))
    play.click()  # from the end it begins again
    lab.shown()
    assert lab.control("step").input_value() == "0"


@pytest.mark.parametrize("stop", ["play", "previous", "reset", "step"])
def test_playing_is_stopped_by_whoever_moves_the_step(open_lab, stop):
    lab = open_lab(step=2, options={"reduced_motion": "no-preference"})
    lab.action("play").click()
    if stop == "step":
        lab.control("step").fill("5")
    else:
        lab.action(stop).click()
    lab.shown()
    assert lab.action("play").inner_text() == "Play"
    at = lab.control("step").input_value()
    lab.page.wait_for_timeout(1300)  # longer than a beat
    assert lab.control("step").input_value() == at


def test_without_motion_playing_goes_to_the_end_at_once(open_lab):
    lab = open_lab(step=2)
    assert lab.action("play").inner_text() == "To the end"
    lab.action("play").click()
    assert_parity(lab, TilingLab(step=9))


def test_the_ends_are_said_and_keep_the_focus(open_lab):
    lab = open_lab(step=8)
    lab.action("next").focus()
    for _ in range(2):
        lab.page.keyboard.press("Enter")
        lab.shown()
    assert lab.action("next").get_attribute("aria-disabled") == "true"
    assert lab.action("next").evaluate("(button) => button === document.activeElement")
    assert_parity(lab, TilingLab(step=9))


# What every lab offers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("tile_queries=0", TilingLab(tile_queries=1)),
        ("tile_keys=2.4", TilingLab(tile_keys=2)),
        ("step=10", TilingLab(step=9)),
        ("mask=<script>", TilingLab()),
        ("query=-1", TilingLab(query=0)),
        ("seed=1e99", TilingLab(seed=9999)),
        ("n=12", TilingLab()),
    ],
)
def test_links_are_limited_and_named(open_lab, field, shown):
    lab = open_lab(f"#lab?{field}")
    assert field.split("=")[0] in lab.shown()["notice"]
    assert_parity(lab, shown)


def test_keyboard_alone_reaches_and_moves_everything(open_lab):
    lab = open_lab()
    controls = ["tile_queries", "tile_keys", "mask", "query", "seed", "resample"]
    steps = ["step", "previous", "play", "next"]
    assert tab_stops(lab.page) == ["link", "reset", *controls, *steps, "scores"]
    press = lab.page.keyboard.press
    lab.control("tile_keys").focus()
    press("ArrowRight")
    lab.control("step").focus()
    press("End")
    press("ArrowLeft")
    lab.cell("scores", 0, 0).focus()
    press("ArrowDown")
    press("Enter")
    assert_parity(lab, TilingLab(tile_keys=4, step=8, query=1))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 712, 390])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(open_lab, axe, scheme, width):
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    for state in ({}, {"mask": "causal", "step": 2}):
        lab = open_lab(link(state), options=options)
        lab.shown()
        assert axe(lab.page) == []
        assert lab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        frames = "[...document.querySelectorAll('.attn-scroll')]"
        assert lab.page.evaluate(f"{frames}.every((e) => e.scrollWidth <= e.clientWidth)")


def test_in_a_closed_dropdown(open_page, tmp_path):
    page = open_page(folded(TilingLab(name="lab"), tmp_path / "folded.html"), **PHONE)
    lab = PanelDriver(page)
    assert lab.shown()["panels"] == {}
    page.locator("summary").click()
    page.wait_for_timeout(100)
    assert_parity(lab, TilingLab())
    assert lab.painted()


def test_a_hundred_mounts_leave_nothing_behind(open_page, tmp_path):
    """Each is removed while it plays."""
    data = TilingLab().data()
    assert_nothing_left(
        open_page, tmp_path, data, "tile_keys", press="play", reduced_motion="no-preference"
    )
