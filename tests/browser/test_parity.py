"""Every number a lab shows is attn_lib's, in hundreds of states set as a reader sets them."""

from __future__ import annotations

from urllib.parse import quote

import numpy as np
import pytest
from browser.driver import LabDriver, number

from attn_lib.labs import AttentionLab

TOLERANCE = 1e-6
ROUNDED = 0.005 + 1e-9  # two decimals
FRESH = {"query": 8, "order": list(range(9)), "d_k": 4, "seed": 0}
FRESH |= {"scene": "chef", "scale": True, "temperature": 1.0, "mask": "none"}
SCENES = {"chef": (9, 4, 8), "river": (6, 4, 5), "account": (5, 4, 3), "random": (8, 64, 0)}


# What is shown, against Python ------------------------------------------------


def assert_parity(shown, lab: AttentionLab) -> None:
    """Compare a whole picture with `lab`: numbers, names, sum, meters, controls."""
    result, tokens, row = lab.result, lab.tokens, lab.query_row
    for panel in ("scores", "weights", "output"):
        drawn = getattr(shown, panel)
        np.testing.assert_allclose(
            drawn.values, getattr(result, panel), atol=TOLERANCE, rtol=TOLERANCE, err_msg=panel
        )
        assert drawn.rows == tokens
    assert shown.scores.cols == shown.weights.cols == tokens
    assert shown.order == lab.order
    assert shown.current == [row]
    assert shown.pressed == [tokens[row]]
    assert_sum(shown.sum, tokens, result.weights[row], lab.V, result.output[row])
    assert_meters(shown.meters, result.weights[row])
    assert_controls(shown.controls, lab)


def assert_sum(table, tokens: list[str], a: np.ndarray, V: np.ndarray, o: np.ndarray) -> None:
    """The terms are a_j and a_j v_j, largest weight first; they add up to the output."""
    *terms, total = ([cells[0], *map(number, cells[2:])] for cells in table)
    ranked = np.argsort(-a, kind="stable")
    for rank, (name, *shown) in enumerate(terms):
        rest = ranked[rank:] if name.endswith(" others") else ranked[rank : rank + 1]
        assert name in (
            f"{len(rest)} others",
            *(tokens[j] for j in np.flatnonzero(a == a[rest[0]])),
        )
        np.testing.assert_allclose(shown, [a[rest].sum(), *(a[rest] @ V[rest])], atol=ROUNDED)
    assert len(rest) == len(a) - len(terms) + 1  # nothing is left out
    np.testing.assert_allclose(total[1:], [1, *o], atol=ROUNDED)


def assert_meters(meters, a: np.ndarray) -> None:
    shown = [number(text.removesuffix(" bits")) for text in meters]
    bits = -sum(p * np.log2(p) for p in a if p > 0)
    np.testing.assert_allclose(shown, [a.max(), bits], atol=ROUNDED)


def assert_controls(controls: dict, lab: AttentionLab) -> None:
    """Every control stands where the state is."""
    value = {name: control["value"] for name, control in controls.items()}
    assert value["scene"] == lab.scene and value["mask"] == lab.mask and value["scale"] is lab.scale
    assert (int(value["query"]), int(value["d_k"])) == (lab.query, lab.d_k)
    assert abs(float(value["temperature"]) - np.log10(lab.temperature)) <= 0.0151
    assert controls["d_k"]["disabled"] is (lab.scene != "random")
    assert controls["seed"]["hidden"] is (lab.scene != "random")
    assert lab.scene != "random" or int(value["seed"]) == lab.seed


# One reader's action each: change the lab, return the state it must now be in -


def choose_scene(lab, state, rng):
    name = str(rng.choice([scene for scene in SCENES if scene != state["scene"]]))
    lab.control("scene").select_option(name)
    n, width, query = SCENES[name]
    return state | {
        "scene": name,
        "order": list(range(n)),
        "query": query,
        "d_k": min(16, width) if name == "random" else width,
    }


def choose_query(lab, state, rng):
    token = int(rng.integers(len(state["order"])))
    how = rng.integers(3)
    if how == 0:
        lab.control("query").select_option(str(token))
    elif how == 1:
        lab.chip(token).click()
    else:
        lab.cell("weights", state["order"].index(token), 0).click()
    return state | {"query": token}


def move(state, token, to):
    order = [other for other in state["order"] if other != token]
    order.insert(max(0, to), token)
    return state | {"order": order}


def move_by_button(lab, state, rng):
    at = int(rng.integers(1, len(state["order"])))
    token = state["order"][at]
    lab.push(token, "left")
    return move(state, token, at - 1)


def move_by_key(lab, state, rng):
    at = int(rng.integers(len(state["order"])))
    token = state["order"][at]
    key, to = [("ArrowLeft", at - 1), ("ArrowRight", at + 1), ("Home", 0), ("End", 99)][
        rng.integers(4)
    ]
    lab.chip(token).press(f"Shift+{key}")
    return move(state, token, to)


def move_by_drag(lab, state, rng):
    token, onto = (int(i) for i in rng.choice(state["order"], 2, replace=False))
    lab.drag(token, onto)
    return move(state, token, state["order"].index(onto))


def reverse(lab, state, rng):
    lab.action("reverse").click()
    return state | {"order": state["order"][::-1]}


def shuffle(lab, state, rng):
    lab.action("shuffle").click()
    order = lab.shown().order
    assert sorted(order) == sorted(state["order"])
    return state | {"order": order}


def set_d_k(lab, state, rng):
    if state["scene"] != "random":
        return state
    d_k = int(rng.choice([1, 2, 3, 8, 32, 63, 64, rng.integers(1, 65)]))
    lab.control("d_k").fill(str(d_k))
    return state | {"d_k": d_k}


def toggle_scale(lab, state, rng):
    lab.control("scale").click()
    return state | {"scale": not state["scale"]}


def set_temperature(lab, state, rng):
    position = round(0.02 * int(rng.integers(-100, 101)), 2)
    lab.control("temperature").fill(f"{position:g}")
    return state | {"temperature": float(f"{10**position:.3g}")}


def set_mask(lab, state, rng):
    mask = str(rng.choice(["none", "causal"]))
    lab.control("mask").select_option(mask)
    return state | {"mask": mask}


def set_seed(lab, state, rng):
    if state["scene"] != "random":
        return state
    if rng.integers(2):
        lab.action("resample").click()
        return state | {"seed": (state["seed"] + 1) % 10000}
    seed = int(rng.choice([0, 9999, rng.integers(10000)]))
    lab.control("seed").fill(str(seed))
    lab.control("seed").press("Tab")
    return state | {"seed": seed}


def reset(lab, state, rng):
    lab.action("reset").click()
    return dict(FRESH)


ACTIONS = [choose_query, move_by_button, move_by_key, move_by_drag, reverse, shuffle]
ACTIONS += [set_d_k, set_d_k, toggle_scale, set_temperature, set_mask, set_seed]


def random_action(rng):
    """Scenes change now and then, so that each is stayed in; resets are rare."""
    chance = rng.random()
    if chance < 0.15:
        return choose_scene
    return reset if chance > 0.98 else ACTIONS[rng.integers(len(ACTIONS))]


@pytest.mark.parametrize("seed", range(5))
def test_states_set_through_the_controls(open_page, saved, seed):
    rng = np.random.default_rng(seed)
    lab, state, seen = LabDriver(open_page(saved())), dict(FRESH), set()
    for _ in range(28):
        said = []
        for _ in range(rng.integers(1, 4)):
            act = random_action(rng)
            state = act(lab, state, rng)
            said.append(act.__name__)
        try:
            assert_parity(lab.shown(), AttentionLab(**state))
        except AssertionError as error:
            error.add_note(f"after {', '.join(said)} in {state}")
            raise
        seen.add(str(state))
    assert len(seen) > 20


# Through links ----------------------------------------------------------------


def random_state(rng) -> dict:
    scene = str(rng.choice(list(SCENES)))
    n, width, _ = SCENES[scene]
    return {
        "scene": scene,
        "query": int(rng.integers(n)),
        "order": [int(i) for i in rng.permutation(n)],
        "d_k": int(rng.integers(1, 65)) if scene == "random" else width,
        "scale": bool(rng.integers(2)),
        "temperature": float(f"{10 ** rng.uniform(-2, 2):.4g}"),
        "mask": str(rng.choice(["none", "causal"])),
        "seed": int(rng.integers(10000)),
    }


def as_fragment(state: dict, rng) -> str:
    """Write a link to a state; fields in any order, commas plain or encoded."""
    fields = []
    for key in rng.permutation(list(state)):
        value = state[key]
        text = ",".join(map(str, value)) if key == "order" else str(value)
        text = text.lower() if isinstance(value, bool) else text
        fields.append(f"{key}={quote(text, safe=',' if rng.integers(2) else '')}")
    return f"#first-look?{'&'.join(fields)}"


@pytest.mark.parametrize("seed", range(4))
def test_states_set_through_links_followed_in_the_page(open_page, saved, seed):
    rng = np.random.default_rng(100 + seed)
    lab = LabDriver(open_page(saved()))
    for _ in range(20):
        state = random_state(rng)
        lab.follow(as_fragment(state, rng))
        shown = lab.shown()
        assert shown.notice == ""
        assert_parity(shown, AttentionLab(**state))


@pytest.mark.parametrize("seed", range(8))
def test_a_state_set_through_the_address_when_the_page_opens(open_page, saved, seed):
    rng = np.random.default_rng(200 + seed)
    state = random_state(rng)
    page = open_page(saved().as_uri() + as_fragment(state, rng))
    assert_parity(LabDriver(page).shown(), AttentionLab(**state))


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ("?temperature=0.37", {"temperature": 0.37}),
        ("?order=8,7,6,5,4,3,2,1,0", {"order": [8, 7, 6, 5, 4, 3, 2, 1, 0]}),
        ("?scale=false&mask=causal", {"scale": False, "mask": "causal"}),
        ("?query=3", {"query": 3}),
        ("", {}),
    ],
)
def test_a_link_that_says_a_little_leaves_the_rest_as_it_was(open_page, saved, fields, changes):
    page = open_page(saved().as_uri() + "#first-look" + fields)
    assert_parity(LabDriver(page).shown(), AttentionLab(**FRESH | changes))


# Beyond the book's scenes -----------------------------------------------------


@pytest.mark.parametrize("n", [2, 13, 32])
def test_random_scenes_of_other_sizes(open_page, saved, n):
    given = {"n": n, "scene": "random", "d_k": 64, "mask": "causal", "order": list(range(n))[::-1]}
    lab = LabDriver(open_page(saved(**given)))
    assert_parity(lab.shown(), AttentionLab(**given))
    lab.control("d_k").fill("5")
    lab.control("temperature").fill("0.3")
    assert_parity(lab.shown(), AttentionLab(**given | {"d_k": 5, "temperature": 2.0}))


@pytest.mark.parametrize("temperature", [0.01, 100.0])
def test_extreme_temperatures_without_scaling(open_page, saved, temperature):
    given = {"scene": "random", "d_k": 64, "scale": False, "temperature": temperature}
    lab = LabDriver(open_page(saved(**given)))
    shown = lab.shown()
    assert_parity(shown, AttentionLab(**given))
    assert np.isfinite(shown.weights.values).all()
