"""AttentionLab: scores, weights, outputs, and the sum of one row written out."""

from __future__ import annotations

import numpy as np
from browser.driver import LabDriver, number
from browser.specs.spec import CLOSE, LabSpec

from attn_lib.examples import Scene
from attn_lib.labs import AttentionLab

ROUNDED = 0.005 + 1e-9  # two decimals
# tokens, width, chosen query of each scene as it begins
SCENES = {"chef": (9, 4, 8), "river": (6, 4, 5), "account": (5, 4, 3), "random": (8, 16, 0)}


def parity(lab: LabDriver, python: AttentionLab) -> None:
    """Compare numbers, names, the sum, meters, controls and what is said of the picture."""
    lab.open()
    shown = lab.shown()
    result, tokens, row = python.result, python.tokens, python.query_row
    for panel in ("scores", "weights", "output"):
        drawn = shown.panels[panel]
        np.testing.assert_allclose(drawn.values, getattr(result, panel), **CLOSE, err_msg=panel)
        assert drawn.rows == tokens
    assert shown.scores.cols == shown.weights.cols == tokens
    assert shown.order == python.order
    assert shown.weights.current == [row]
    assert shown.pressed == [tokens[row]]
    assert_sum(shown.sum, tokens, result.weights[row], python.V, result.output[row])
    assert_meters(shown.meters, result.weights[row])
    value = shown.controls
    for key in ("scene", "mask", "scale"):
        assert value[key] == getattr(python, key)
    assert (int(value["query"]), int(value["d_k"])) == (python.query, python.d_k)
    assert abs(float(value["temperature"]) - np.log10(python.temperature)) <= 0.0151
    drawn = python.scene == "random"
    assert ("d_k" in shown.disabled) is ("seed" in shown.hidden) is not drawn
    assert not drawn or int(value["seed"]) == python.seed


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


def from_data(kind, data: dict) -> AttentionLab:
    """Make the lab of a page, whose scenes may be its chapter's own."""
    given = [scene for scene in data["scenes"] if "n" not in scene]
    n = next((scene["n"] for scene in data["scenes"] if "n" in scene), None)
    arrays = ("X", "W_Q", "W_K", "W_V")
    scenes = [
        Scene(**scene | {key: np.array(scene[key]) for key in arrays}, features=())
        for scene in given
    ]
    return kind(scenes=scenes, n=n, **{key: data[key] for key in kind.settings})


def random_state(rng) -> dict:
    scene = str(rng.choice(list(SCENES)))
    n, width, _ = SCENES[scene]
    return {
        "scene": scene,
        "query": int(rng.integers(n)),
        "key": [None, int(rng.integers(n))][rng.integers(2)],
        "order": [int(i) for i in rng.permutation(n)],
        "d_k": int(rng.integers(1, 65)) if scene == "random" else width,
        "scale": bool(rng.integers(2)),
        "temperature": float(f"{10 ** rng.uniform(-2, 2):.4g}"),
        "mask": str(rng.choice(["none", "causal"])),
        "seed": int(rng.integers(10000)),
    }


def choose_scene(lab, python, rng):
    name = str(rng.choice([scene for scene in SCENES if scene != python.scene]))
    lab.control("scene").select_option(name)
    n, width, query = SCENES[name]
    python.scene = name
    python.order, python.query, python.d_k = list(range(n)), query, width
    python.key = None


def choose_query(lab, python, rng):
    python.query = int(rng.integers(len(python.order)))
    how = rng.integers(3)
    if how == 0:
        lab.control("query").select_option(str(python.query))
    elif how == 1:
        lab.chip(python.query).click()
    else:
        col = int(rng.integers(len(python.order)))
        lab.cell("weights", python.query_row, col).click()
    python.key = python.order[col] if how == 2 else None


def move(python, token, to):
    order = [other for other in python.order if other != token]
    order.insert(max(0, to), token)
    python.order = order


def move_by_button(lab, python, rng):
    at = int(rng.integers(1, len(python.order)))
    token = python.order[at]
    lab.push(token, "left")
    move(python, token, at - 1)


def move_by_key(lab, python, rng):
    at = int(rng.integers(len(python.order)))
    token = python.order[at]
    ways = [("ArrowLeft", at - 1), ("ArrowRight", at + 1), ("Home", 0), ("End", 99)]
    key, to = ways[rng.integers(4)]
    lab.chip(token).press(f"Shift+{key}")
    move(python, token, to)


def move_by_drag(lab, python, rng):
    token, onto = (int(i) for i in rng.choice(python.order, 2, replace=False))
    lab.drag(token, onto)
    move(python, token, python.order.index(onto))


def reverse(lab, python, rng):
    lab.action("reverse").click()
    python.order = python.order[::-1]


def shuffle(lab, python, rng):
    lab.action("shuffle").click()
    order = lab.shown().order
    assert sorted(order) == sorted(python.order)
    python.order = order


def set_d_k(lab, python, rng):
    if python.scene != "random":
        return choose_scene(lab, python, rng)
    python.d_k = int(rng.choice([1, 2, 3, 8, 32, 63, 64, rng.integers(1, 65)]))
    lab.control("d_k").fill(str(python.d_k))


def toggle_scale(lab, python, rng):
    lab.control("scale").click()
    python.scale = not python.scale


def set_temperature(lab, python, rng):
    position = round(0.02 * int(rng.integers(-100, 101)), 2)
    lab.control("temperature").fill(f"{position:g}")
    python.temperature = float(f"{10**position:.3g}")


def set_mask(lab, python, rng):
    python.mask = str(rng.choice(["none", "causal"]))
    lab.control("mask").select_option(python.mask)


def set_seed(lab, python, rng):
    if python.scene != "random":
        return choose_query(lab, python, rng)
    lab.shown()  # another draw, still to be shown, would take the place of what is typed
    if rng.integers(2):
        lab.action("resample").click()
        python.seed = (python.seed + 1) % 10000
    else:
        python.seed = int(rng.choice([0, 9999, rng.integers(10000)]))
        lab.control("seed").fill(str(python.seed))
        lab.control("seed").press("Tab")


def several(lab, python, rng):
    """Two or three actions, and only then a look."""
    for at in rng.integers(len(ACTIONS), size=rng.integers(2, 4)):
        ACTIONS[at](lab, python, rng)


ACTIONS = [choose_query, move_by_button, move_by_key, move_by_drag, reverse, shuffle]
ACTIONS += [set_d_k, set_d_k, toggle_scale, set_temperature, set_mask, set_seed, set_seed]


def keyboard(lab: LabDriver) -> dict:
    press = lab.page.keyboard.press
    lab.chip(8).press("Shift+ArrowLeft")
    lab.control("temperature").focus()
    for _ in range(5):
        press("ArrowRight")
    lab.control("scale").focus()
    press("Space")
    lab.cell("weights", 0, 0).focus()
    press("ArrowDown")
    press("Enter")
    order = [0, 1, 2, 3, 4, 5, 6, 8, 7]
    return {"order": order, "temperature": 1.26, "scale": False, "query": 1, "key": 0}


SPEC = LabSpec(
    AttentionLab,
    parity=parity,
    from_data=from_data,
    random_state=random_state,
    links=80,
    moves=140,
    actions=[*ACTIONS, *[several] * len(ACTIONS), choose_scene],
    stops=[
        *("temperature", "left", "token 8", "scores", "weights", "output"),
        *("reset", "link", "more", "scene", "query", "scale", "mask", "reverse", "shuffle"),
    ],
    keyboard=keyboard,
    bad_links={
        "d_k=nonsense": {},
        "temperature=": {},
        "temperature=NaN": {},
        "temperature=Infinity": {"temperature": 100.0},
        "temperature=-1": {"temperature": 0.01},
        "temperature=0": {"temperature": 0.01},
        "query=99": {},
        "query=-1": {"query": 0},
        "key=99": {},
        "key=-1": {},
        "order=0,1": {},
        "order=0,0,1,2,3,4,5,6,7": {},
        "order=8,7,6,5,4,3,2,1,0.5": {},
        "scene=moon": {},
        "scene=__proto__": {},
        "mask=upper": {},
        "scale=maybe": {},
        "seed=1e99": {"seed": 9999},
        "colour=red": {},
        "constructor=1": {},
        "d_k=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E": {},
    },
    looks=[{"mask": "causal"}, {"scene": "random"}],
    quick=("temperature", [f"{k / 20:.2f}" for k in range(-40, 21)], {"temperature": 10.0}),
    kernel={"mask": "causal"},
    press="reverse",
)
