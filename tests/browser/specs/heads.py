"""HeadsLab: what every head reads, the heads joined, and the parameters they cost."""

from __future__ import annotations

import re

import numpy as np
from browser.driver import LabDriver, Shown, number
from browser.specs.spec import CLOSE, LabSpec

from attn_lib.labs import HeadsLab

HEADS = {"random": [1, 2, 3, 4, 6, 12], "roles": [1, 2]}
TOKENS = {"random": 4, "roles": 3}


def parity(lab: LabDriver, python: HeadsLab) -> None:
    """Compare numbers, names, frames, words and controls."""
    lab.open()
    shown = lab.shown()
    panels = shown.panels
    names = [f"weights {r}" for r in range(python.heads)]
    assert shown.seen == [*names, "mean", "joined", "W_O", "output"]
    expected = dict(zip(names, python.weights, strict=True))
    expected |= {"mean": python.mean_weights, "joined": python.concatenated}
    expected |= {"W_O": python.maps["W_O"], "output": python.output}
    for name, values in expected.items():
        np.testing.assert_allclose(panels[name].values, values, **CLOSE, err_msg=name)
    for name in [*names, "mean"]:
        assert panels[name].rows == panels[name].cols == python.tokens
        assert panels[name].current == [python.query]
    block = [python.head * python.d_k, python.d_k]
    assert panels["joined"].boxes == [[0, block[0], len(python.tokens), block[1]]]
    assert panels["W_O"].boxes == [[block[0], 0, block[1], python.d]]
    assert panels["output"].cols == python.outputs
    assert_words(shown, python)
    assert_controls(shown, python)


def assert_words(shown: Shown, python: HeadsLab) -> None:
    words, d, total = shown.words, python.d, python.parameters["total"]
    assert f"The width {d} is shared out: {python.heads} × {python.d_k}" in words
    assert f"\n{total} parameters" in words
    assert ("whatever the number of heads" in words) is (total == 4 * d * d)
    (difference,) = re.findall(r"is the same output: the difference is (.+?)\.\n", words)
    assert difference == "0" or re.fullmatch("[1-9]·10⁻¹[⁴-⁹]", difference)
    meters = [number(text.removesuffix(" bits")) for text in shown.meters]
    expected = [*python.entropies] + ([python.swap_effect] if python.scene == "roles" else [])
    np.testing.assert_allclose(meters, expected, atol=0.005 + 1e-9)


def assert_controls(shown: Shown, python: HeadsLab) -> None:
    value = shown.controls
    assert value["scene"] == python.scene
    assert HEADS[python.scene][int(value["heads"])] == python.heads
    assert int(value["kv_heads"]) == python.groups
    assert (int(value["head"]), int(value["query"])) == (python.head, python.query)
    random = python.scene == "random"
    assert shown.hidden == (["swapped"] if random else ["seed"])
    assert not random or int(value["seed"]) == python.seed
    assert random or value["swapped"] is python.swapped


def random_state(rng) -> dict:
    scene = str(rng.choice(["random", "random", "roles"]))
    heads = int(rng.choice(HEADS[scene]))
    groups = [g for g in range(1, heads) if heads % g == 0]
    return {
        "scene": scene,
        "heads": heads,
        "kv_heads": int(rng.choice(groups)) if groups and rng.integers(2) else None,
        "head": int(rng.integers(heads)),
        "query": int(rng.integers(TOKENS[scene])),
        "swapped": bool(rng.integers(2)),
        "seed": int(rng.integers(10000)),
    }


def set_heads(lab, python, rng):
    heads = int(rng.choice(HEADS[python.scene]))
    lab.control("heads").fill(str(HEADS[python.scene].index(heads)))
    python.heads = heads


def set_kv_heads(lab, python, rng):
    groups = int(rng.choice([g for g in range(1, python.heads + 1) if python.heads % g == 0]))
    lab.control("kv_heads").select_option(str(groups))
    python.kv_heads = None if groups == python.heads else groups


def choose_head(lab, python, rng):
    python.head = int(rng.integers(python.heads))
    lab.control("head").select_option(str(python.head))


def choose_head_and_query_by_cell(lab, python, rng):
    python.head, python.query = int(rng.integers(python.heads)), int(rng.integers(3))
    lab.cell(f"weights {python.head}", python.query, 1).click()


def choose_head_by_its_rows(lab, python, rng):
    row = int(rng.integers(python.d))
    lab.cell("W_O", row, 0).click()
    python.head = row // python.d_k


def choose_query(lab, python, rng):
    python.query = int(rng.integers(TOKENS[python.scene]))
    lab.control("query").select_option(str(python.query))


def draw_or_swap(lab, python, rng):
    if python.scene == "roles":
        lab.control("swapped").click()
        python.swapped = not python.swapped
    elif rng.integers(2):
        lab.action("resample").click()
        python.seed += 1
    else:
        python.seed = int(rng.integers(9990))
        lab.control("seed").fill(str(python.seed))
        lab.control("seed").press("Tab")


def choose_scene(lab, python, rng):
    name = "roles" if python.scene == "random" else "random"
    lab.control("scene").select_option(name)
    fresh = HeadsLab(scene=name)
    python.scene = name
    python.heads, python.kv_heads = fresh.heads, None
    python.head, python.query = fresh.head, fresh.query


def keyboard(lab: LabDriver) -> dict:
    press = lab.page.keyboard.press
    lab.control("heads").focus()
    press("ArrowLeft")  # three heads
    lab.cell("mean", 0, 0).focus()
    press("ArrowDown")
    press("Enter")  # the second token asks
    lab.cell("W_O", 0, 0).focus()
    press("ArrowDown")
    press("Enter")  # the first head's second row
    return {"heads": 3, "query": 1, "head": 0}


SPEC = LabSpec(
    HeadsLab,
    parity=parity,
    random_state=random_state,
    links=60,
    moves=60,
    actions=[
        *(set_heads, set_heads, set_kv_heads, choose_head, choose_head_and_query_by_cell),
        *(choose_head_by_its_rows, choose_query, draw_or_swap, choose_scene),
    ],
    stops=[
        *("heads", "reset", "link", "more", "scene", "seed", "resample", "kv_heads", "head"),
        "query",
        *(f"weights {r}" for r in range(4)),
        *("mean", "joined", "W_O", "output"),
    ],
    keyboard=keyboard,
    bad_links={
        "heads=5": {},
        "heads=1e9": {},
        "kv_heads=3": {},
        "kv_heads=-1": {},
        "head=99": {"head": 3},
        "query=<img src=x onerror=alert(1)>": {},
        "scene=chef": {},
        "swapped=1": {},
        "seed=0.5": {"seed": 1},
        "rows=2": {},
    },
    looks=[{}, {"heads": 12, "kv_heads": 3}, {"scene": "roles"}],
    # on the way there was one head alone
    quick=("heads", [k % 6 for k in range(42)], {"heads": 12, "head": 0}),
    kernel={"seed": 7},
    press="resample",
)
