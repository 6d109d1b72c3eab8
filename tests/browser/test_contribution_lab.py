"""ContributionLab in a browser: every edge's three numbers, and the answer, as numpy says."""

from __future__ import annotations

import json

import numpy as np
import pytest
from browser.chart_driver import PHONE, assert_nothing_left, folded, host_page
from browser.panel_driver import PanelDriver, link, tab_stops

from attn_lib.labs import ContributionLab

CLOSE = {"rtol": 1e-6, "atol": 1e-6}
MEASURES = ["weight", "norm", "effect"]


@pytest.fixture
def open_lab(open_page, tmp_path):
    """Return a function that opens ContributionLab(**state), saved as one file, with a driver."""

    def open_(fragment="", *, options=None, **state) -> PanelDriver:
        file = ContributionLab(name="lab", **state).save(tmp_path / "lab.html")
        return PanelDriver(open_page(file.as_uri() + fragment, **options or {}))

    return open_


def assert_parity(lab: PanelDriver, python: ContributionLab) -> None:
    """Compare a whole picture with `python`: edges, their order, the answer, controls, words."""
    shown = lab.shown()
    panels = shown["panels"]
    names = [f"{python.sort}s {head}" for head in range(2 * python.heads)]
    assert list(panels) == [*names, "answers", "edges"]
    values = getattr(python, f"{python.sort}s").reshape(-1, *[len(python.tokens)] * 2)
    for head, name in enumerate(names):
        np.testing.assert_allclose(panels[name]["values"], np.nan_to_num(values[head]), **CLOSE)
        assert panels[name]["rows"] == panels[name]["cols"] == python.names
        assert panels[name]["current"] == [len(python.tokens) - 1]
        place = list(divmod(head, python.heads))
        cuts = [tuple(edge[2:]) for edge in python.cut if edge[:2] == place]
        kinds = np.array(panels[name]["kinds"])
        assert set(map(tuple, np.argwhere(kinds == "later").tolist())) == set(cuts)
        assert (kinds[np.triu_indices(len(python.tokens), 1)] == "forbidden").all()
        assert panels[name]["words"] == ["×"] * len(cuts)
    chances = python.probabilities[python.tokens[: python.period]]
    expected = [*chances, 1 - chances.sum()]
    np.testing.assert_allclose(panels["answers"]["values"].ravel(), expected, **CLOSE)
    assert_ranking(panels["edges"], python)
    found = [python.correlation[name] for name in ("weight", "norm")]
    said = ["none" if np.isnan(x) else f"{x:.2f}".replace("-0.00", "0.00") for x in found]
    assert shown["meters"][1:] == [text.replace("-", "−") for text in said]
    controls = shown["controls"]
    assert controls["renormalise"] is python.renormalise
    for key in ("seed", "period", "sort"):
        assert controls[key] == str(getattr(python, key)), key
    boxes = [[layer, head] for layer in range(2) for head in range(python.heads)]
    assert [place for place in boxes if controls["zero-{}-{}".format(*place)]] == sorted(
        python.zero
    )


def assert_ranking(panel: dict, python: ContributionLab) -> None:
    first = python.ranking[:8]
    names = panel["rows"][: len(first)]
    assert names == [python.name_of(edge) for edge in first]
    wanted = [[getattr(python, f"{name}s")[edge] for name in MEASURES] for edge in first]
    found = panel["values"][: len(first)]
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


def flat(state: dict) -> dict:
    """Write lists of tuples as a link does."""
    return {
        key: ",".join(str(part) for item in value for part in item)
        if isinstance(value, list)
        else value
        for key, value in state.items()
    }


@pytest.mark.parametrize("model", ["induction", "induction-two-heads"])
def test_states_set_through_links(open_lab, model):
    rng = np.random.default_rng(5)
    lab = open_lab(model=model)
    for _ in range(20):
        state = random_state(rng, model)
        lab.follow(link(flat({key: state[key] for key in rng.permutation(list(state))})))
        assert lab.shown()["notice"] == ""
        assert_parity(lab, ContributionLab(model=model, **state))


# One action each: change the lab and the Python lab that it must equal -----------------


def toggle(python: ContributionLab, edge) -> None:
    edge, cut = list(edge), python.cut
    python.cut = [other for other in cut if other != edge] if edge in cut else [*cut, edge]


def cut_by_cell(lab, python, rng):
    edge = random_edge(rng, python)
    head = edge[0] * python.heads + edge[1]
    table = f'table[data-panel="{python.sort}s"][data-head="{head}"]'
    lab.figure.locator(f'{table} td[data-row="{edge[2]}"][data-col="{edge[3]}"]').click()
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


ACTIONS = [cut_by_cell, cut_by_cell, cut_by_name, put_back, silence, choose_sort, renormalise]
ACTIONS += [draw, choose_period]


@pytest.mark.parametrize("model", ["induction", "induction-two-heads"])
def test_states_set_through_the_controls(open_lab, model):
    rng = np.random.default_rng(7)
    lab, python, said = open_lab(model=model), ContributionLab(model=model), []
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
    assert_parity(lab, ContributionLab(model=model))


def test_the_longest_sequence(open_lab):
    state = {"period": 12, "sort": "effect", "cut": [[0, 0, 11, 10]], "renormalise": True}
    assert_parity(open_lab(**state), ContributionLab(**state))


def test_a_cell_of_the_future_is_no_edge(open_lab):
    lab = open_lab()
    lab.cell("weights", 2, 5).first.click()
    assert_parity(lab, ContributionLab())
    assert lab.figure.locator(".attn-readout").inner_text().startswith("Choose a cell")


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("model=induction-two-heads", ContributionLab()),
        ("period=40", ContributionLab(period=12)),
        ("period=1", ContributionLab(period=4)),
        ("sort=size", ContributionLab()),
        ("renormalise=1", ContributionLab()),
        ("cut=0,0,5", ContributionLab()),
        ("cut=0,0,4,5", ContributionLab()),
        ("cut=0,1,5,4", ContributionLab()),
        ("cut=0,0,11,4", ContributionLab()),
        ("cut=0,0,5,-4", ContributionLab()),
        ("cut=<img src=x onerror=alert(1)>", ContributionLab()),
        ("zero=2,0", ContributionLab()),
        ("zero=0", ContributionLab()),
        ("seed=0.5", ContributionLab(seed=1)),
        ("head=0", ContributionLab()),
    ],
)
def test_links_are_limited_and_named(open_lab, field, shown):
    lab = open_lab(f"#lab?{field}")
    assert f"{field.split('=')[0]}" in lab.shown()["notice"]
    assert_parity(lab, shown)


def test_a_copied_link_opens_the_same_state(open_lab, open_page):
    lab, python = open_lab(cut=[[0, 0, 5, 4]]), ContributionLab(cut=[[0, 0, 5, 4], [1, 0, 3, 3]])
    lab.figure.locator('table[data-head="1"] td[data-row="3"][data-col="3"]').click()
    lab.control("zero-1-0").click()
    lab.action("link").click()
    lab.shown()
    address = lab.page.evaluate("location.href")
    assert address.endswith("#lab?cut=0,0,5,4,1,0,3,3&zero=1,0")
    python.zero = [[1, 0]]
    assert_parity(PanelDriver(open_page(address)), python)


def test_keyboard_alone_reaches_and_moves_everything(open_lab):
    lab = open_lab()
    controls = ["seed", "resample", "period", "sort", "renormalise", "zero-0-0", "zero-1-0"]
    stops = tab_stops(lab.page)
    assert stops == ["link", "reset", *controls, "weights 0", "weights 1", *["cut"] * 8]
    press = lab.page.keyboard.press
    lab.figure.locator('table[data-head="0"] td[data-row="0"][data-col="0"]').focus()
    for key in [*["ArrowDown"] * 5, *["ArrowRight"] * 4, "Enter"]:
        press(key)
    lab.control("renormalise").focus()
    press("Space")
    lab.action("cut").nth(2).focus()
    press("Enter")
    python = ContributionLab(cut=[[0, 0, 5, 4]], renormalise=True)
    toggle(python, python.ranking[2])
    assert_parity(lab, python)
    lab.figure.locator("[data-edge]").first.focus()
    press("Enter")  # and back: the button goes, the focus stays near
    toggle(python, [0, 0, 5, 4])
    assert_parity(lab, python)
    assert lab.page.evaluate("document.activeElement.className") == "attn-cuts"


def test_a_cell_under_the_pointer_is_read_out(open_lab):
    lab, python = open_lab(), ContributionLab()
    readout = lab.figure.locator(".attn-readout")
    assert readout.inner_text().startswith("Choose a cell")
    lab.cell("weights", 5, 4).first.hover()
    edge = (0, 0, 5, 4)
    said = readout.inner_text()
    assert said.startswith("layer 1: F ← E (query 5, key 4, from 0): weight")
    for value in (python.norms[edge], python.effects[edge]):
        assert f"{value:.2f}" in said
    lab.page.mouse.move(0, 0)
    assert readout.inner_text().startswith("Choose a cell")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(open_lab, axe, scheme, width):
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    for model, state in (
        ("induction", {"cut": [[0, 0, 5, 4]], "sort": "effect"}),
        ("induction-two-heads", {"sort": "norm", "zero": [[1, 0]]}),
    ):
        lab = open_lab(link(flat(state)), options=options, model=model)
        lab.shown()
        assert axe(lab.page) == []
        assert lab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_in_a_closed_dropdown(open_page, tmp_path):
    page = open_page(folded(ContributionLab(name="lab"), tmp_path / "folded.html"), **PHONE)
    lab = PanelDriver(page)
    assert lab.shown()["panels"] == {}
    page.locator("summary").click()
    page.wait_for_timeout(100)
    assert_parity(lab, ContributionLab())
    assert lab.painted()


def test_one_model_shown_twice_stays_in_step(open_page, tmp_path):
    page = host_page(open_page, tmp_path)
    page.evaluate(
        "data => { window.model = makeModel(data); for (const k of [1, 2]) mount(model); }",
        ContributionLab().data(),
    )
    first, second = (PanelDriver(page, f"main > div:nth-child({k}) figure") for k in (1, 2))
    first.control("zero-1-0").click()
    first.shown()
    page.evaluate("model.set('cut', [[0, 0, 5, 4]])")  # from the kernel
    for lab in (first, second):
        assert_parity(lab, ContributionLab(zero=[[1, 0]], cut=[[0, 0, 5, 4]]))
    assert page.evaluate("document.querySelectorAll('[id]').length") == 0


def test_copy_code_gives_the_python_that_makes_the_lab(open_page, tmp_path):
    page = host_page(open_page, tmp_path, permissions=["clipboard-read", "clipboard-write"])
    given = ContributionLab(model="induction-two-heads")
    page.evaluate("data => void mount(makeModel(data))", given.data())
    lab = PanelDriver(page)
    lab.control("zero-1-1").click()
    lab.figure.locator('table[data-head="2"] td[data-row="3"][data-col="1"]').click()
    lab.shown()
    lab.action("link").click()
    code = page.evaluate("navigator.clipboard.readText()")
    copied = eval(code, {"ContributionLab": ContributionLab})
    given.zero, given.cut = [[1, 1]], [[1, 0, 3, 1]]
    assert json.loads(json.dumps(copied.data())) == json.loads(json.dumps(given.data()))


def test_a_hundred_mounts_leave_nothing_behind(open_page, tmp_path):
    data = ContributionLab().data()
    assert_nothing_left(open_page, tmp_path, data, "period", press="resample")
