"""ContributionLab: every edge's three numbers, the edges that are cut, and the answer."""

from __future__ import annotations

import numpy as np
from browser.driver import LabDriver, Panel
from browser.specs.spec import CLOSE, LabSpec

from attn_lib.labs import ContributionLab
from attn_lib.words import fixed

MODELS = ["induction", "induction-two-heads"]
MEASURES = ["weight", "norm", "effect"]


def parity(lab: LabDriver, python: ContributionLab) -> None:
    """Compare edges, their order, the answer, controls and words."""
    lab.open()
    shown = lab.shown()
    panels = shown.panels
    names = [f"{python.sort}s {head}" for head in range(2 * python.heads)]
    assert shown.seen == ["answers", *names, "edges"]
    values = getattr(python, f"{python.sort}s").reshape(-1, *[len(python.tokens)] * 2)
    for head, name in enumerate(names):
        np.testing.assert_allclose(panels[name].values, np.nan_to_num(values[head]), **CLOSE)
        assert panels[name].rows == panels[name].cols == python.names
        assert panels[name].current == [len(python.tokens) - 1]
        place = list(divmod(head, python.heads))
        cuts = [tuple(edge[2:]) for edge in python.cut if edge[:2] == place]
        kinds = np.array(panels[name].kinds)
        assert set(map(tuple, np.argwhere(kinds == "later").tolist())) == set(cuts)
        assert (kinds[np.triu_indices(len(python.tokens), 1)] == "forbidden").all()
        assert panels[name].words == ["×"] * len(cuts)
    chances = python.probabilities[python.tokens[: python.period]]
    expected = [*chances, 1 - chances.sum()]
    np.testing.assert_allclose(panels["answers"].values.ravel(), expected, **CLOSE)
    assert_ranking(panels["edges"], python)
    pairs = [(python.correlation[name], python.ceiling[name]) for name in ("weight", "norm")]
    said = [
        "none" if np.isnan(found) else f"{fixed(found)} of at most {fixed(ceiling)}"
        for found, ceiling in pairs
    ]
    assert shown.meters[1:] == said
    controls = shown.controls
    assert controls["renormalise"] is python.renormalise
    for key in ("seed", "period", "sort"):
        assert controls[key] == str(getattr(python, key)), key
    boxes = [[layer, head] for layer in range(2) for head in range(python.heads)]
    assert [place for place in boxes if controls["zero-{}-{}".format(*place)]] == sorted(
        python.zero
    )


def assert_ranking(panel: Panel, python: ContributionLab) -> None:
    first = python.ranking[:8]
    names = panel.rows[: len(first)]
    assert names == [python.name_of(edge) for edge in first]
    wanted = [[getattr(python, f"{name}s")[edge] for name in MEASURES] for edge in first]
    found = panel.values[: len(first)]
    np.testing.assert_allclose(found, np.reshape(wanted, (-1, 3)), **CLOSE)


def random_edge(rng, python: ContributionLab) -> list[int]:
    query = int(rng.integers(len(python.tokens)))
    place = [int(rng.integers(2)), int(rng.integers(python.heads)), query]
    return [*place, int(rng.integers(query + 1))]


def random_state(rng, model: str) -> dict:
    lab = ContributionLab(model=model, period=int(rng.integers(4, 9)), seed=int(rng.integers(9999)))
    cut = [random_edge(rng, lab) for _ in range(rng.integers(4))]
    strong = np.argwhere(np.nan_to_num(lab.weights) > 0.9).tolist()
    cut += [strong[at] for at in rng.integers(len(strong), size=rng.integers(4))]
    heads = [[layer, head] for layer in range(2) for head in range(lab.heads)]
    return {
        "period": lab.period,
        "seed": lab.seed,
        "sort": str(rng.choice(MEASURES)),
        "renormalise": bool(rng.integers(2)),
        "cut": cut,
        "zero": [head for head in heads if rng.random() < 0.15],
    }


def toggle(python: ContributionLab, edge) -> None:
    edge, cut = list(edge), python.cut
    python.cut = [other for other in cut if other != edge] if edge in cut else [*cut, edge]


def cut_by_cell(lab, python, rng):
    edge = random_edge(rng, python)
    lab.cell(f"{python.sort}s {edge[0] * python.heads + edge[1]}", *edge[2:]).click()
    toggle(python, edge)


def cut_by_name(lab, python, rng):
    rank = int(rng.integers(min(8, len(python.ranking) or 1)))
    if python.ranking:
        edge = python.ranking[rank]
        lab.action("cut").nth(rank).click()
        toggle(python, edge)


def put_back(lab, python, rng):
    if python.cut:
        at = int(rng.integers(len(python.cut)))
        lab.figure.locator("[data-edge]").nth(at).click()
        toggle(python, python.cut[at])


def silence(lab, python, rng):
    head = [int(rng.integers(2)), int(rng.integers(python.heads))]
    lab.control("zero-{}-{}".format(*head)).click()
    zero = python.zero
    python.zero = [other for other in zero if other != head] if head in zero else [*zero, head]


def choose_sort(lab, python, rng):
    python.sort = str(rng.choice(MEASURES))
    lab.control("sort").select_option(python.sort)


def renormalise(lab, python, rng):
    python.renormalise = not python.renormalise
    lab.control("renormalise").click()


def draw(lab, python, rng):
    lab.action("resample").click()
    python.seed += 1


def choose_period(lab, python, rng):
    python.period = int(rng.integers(4, 9))
    lab.control("period").fill(str(python.period))


def keyboard(lab: LabDriver) -> dict:
    press = lab.page.keyboard.press
    lab.cell("weights 0", 0, 0).focus()
    for key in [*["ArrowDown"] * 5, *["ArrowRight"] * 4, "Enter"]:
        press(key)
    lab.control("renormalise").focus()
    press("Space")
    lab.action("cut").nth(2).focus()
    press("Enter")
    python = ContributionLab(cut=[[0, 0, 5, 4]], renormalise=True)
    toggle(python, python.ranking[2])
    parity(lab, python)
    lab.figure.locator("[data-edge]").first.focus()
    press("Enter")  # and back: the button goes, the focus stays near
    toggle(python, [0, 0, 5, 4])
    assert lab.page.evaluate("document.activeElement.className") == "attn-cuts"
    return {"cut": python.cut, "renormalise": True}


SPEC = LabSpec(
    ContributionLab,
    parity=parity,
    random_state=random_state,
    given=[{"model": model} for model in MODELS],
    links=40,
    moves=60,
    actions=[
        *(cut_by_cell, cut_by_cell, cut_by_name, put_back, silence, choose_sort, renormalise),
        *(draw, choose_period),
    ],
    stops=[
        *("seed", "resample", "reset", "link", "more", "period", "sort", "renormalise"),
        *("zero-0-0", "zero-1-0", "weights 0", "weights 1", *["cut"] * 8),
    ],
    keyboard=keyboard,
    bad_links={
        "model=induction-two-heads": {},
        "period=40": {"period": 12},
        "period=1": {"period": 4},
        "sort=size": {},
        "renormalise=1": {},
        "cut=0,0,5": {},
        "cut=0,0,4,5": {},
        "cut=0,1,5,4": {},
        "cut=0,0,11,4": {},
        "cut=0,0,5,-4": {},
        "cut=<img src=x onerror=alert(1)>": {},
        "zero=2,0": {},
        "zero=0": {},
        "seed=0.5": {"seed": 1},
        "head=0": {},
    },
    looks=[{"cut": [[0, 0, 5, 4]], "sort": "effect"}, {"sort": "norm", "zero": [[1, 0]]}],
    quick=("period", [4, 8, 12, 7, 5], {"period": 5}),
    kernel={"cut": [[0, 0, 5, 4]]},
    press="resample",
)
