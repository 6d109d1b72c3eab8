"""HeadsLab in a browser: what JavaScript shows of every head is what numpy computes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from browser.chart_driver import PHONE, assert_nothing_left, folded, host_page
from browser.driver import number
from browser.panel_driver import PanelDriver, link, tab_stops

from attn_lib.labs import HeadsLab

CLOSE = {"rtol": 1e-6, "atol": 1e-6}
HEADS = {"random": [1, 2, 3, 4, 6, 12], "roles": [1, 2]}
TOKENS = {"random": 4, "roles": 3}


@pytest.fixture
def open_lab(open_page, tmp_path):
    """Return a function that opens HeadsLab(**state), saved as one file, with a driver."""

    def open_(fragment="", *, options=None, **state) -> PanelDriver:
        file = HeadsLab(name="lab", **state).save(tmp_path / "lab.html")
        return PanelDriver(open_page(file.as_uri() + fragment, **options or {}))

    return open_


def assert_parity(lab: PanelDriver, python: HeadsLab) -> None:
    """Compare a whole picture with `python`: numbers, names, frames, words, controls."""
    shown = lab.shown()
    panels = shown["panels"]
    names = [f"weights {r}" for r in range(python.heads)]
    assert list(panels) == [*names, "mean", "joined", "W_O", "output"]
    expected = dict(zip(names, python.weights, strict=True))
    expected |= {"mean": python.mean_weights, "joined": python.concatenated}
    expected |= {"W_O": python.maps["W_O"], "output": python.output}
    for name, values in expected.items():
        np.testing.assert_allclose(panels[name]["values"], values, **CLOSE, err_msg=name)
    for name in [*names, "mean"]:
        assert panels[name]["rows"] == panels[name]["cols"] == python.tokens
        assert panels[name]["current"] == [python.query]
    block = [python.head * python.d_k, python.d_k]
    assert panels["joined"]["boxes"] == [[0, block[0], len(python.tokens), block[1]]]
    assert panels["W_O"]["boxes"] == [[block[0], 0, block[1], python.d]]
    assert panels["output"]["cols"] == python.outputs
    assert_words(shown, python)
    assert_controls(shown, python)


def assert_words(shown: dict, python: HeadsLab) -> None:
    words, d, total = shown["words"], python.d, python.parameters["total"]
    assert f"The width {d} is shared out: {python.heads} × {python.d_k}" in words
    assert f"\n{total} parameters" in words
    assert ("whatever the number of heads" in words) is (total == 4 * d * d)
    (difference,) = re.findall(r"is the same output: the difference is (.+?)\.\n", words)
    assert difference == "0" or re.fullmatch("[1-9]·10⁻¹[⁴-⁹]", difference)
    meters = [number(text.removesuffix(" bits")) for text in shown["meters"]]
    expected = [*python.entropies] + ([python.swap_effect] if python.scene == "roles" else [])
    np.testing.assert_allclose(meters, expected, atol=0.005 + 1e-9)


def assert_controls(shown: dict, python: HeadsLab) -> None:
    value = shown["controls"]
    assert value["scene"] == python.scene
    assert HEADS[python.scene][int(value["heads"])] == python.heads
    assert int(value["kv_heads"]) == python.groups
    assert (int(value["head"]), int(value["query"])) == (python.head, python.query)
    random = python.scene == "random"
    assert shown["hidden"] == (["swapped"] if random else ["seed"])
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


@pytest.mark.parametrize("seed", range(3))
def test_states_set_through_links(open_lab, seed):
    rng = np.random.default_rng(seed)
    lab = open_lab()
    for _ in range(20):
        state = random_state(rng)
        lab.follow(link({key: state[key] for key in rng.permutation(list(state))}))
        assert lab.shown()["notice"] == ""
        assert_parity(lab, HeadsLab(**state))


# One reader's action each: change the lab and the Python lab that it must equal -----------------


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
    panel = lab.figure.locator(f'table[data-panel="weights"][data-head="{python.head}"]')
    panel.locator(f'td[data-row="{python.query}"][data-col="1"]').click()


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


ACTIONS = [set_heads, set_heads, set_kv_heads, choose_head, choose_head_and_query_by_cell]
ACTIONS += [choose_head_by_its_rows, choose_query, draw_or_swap, choose_scene]


@pytest.mark.parametrize("seed", range(2))
def test_states_set_through_the_controls(open_lab, seed):
    rng = np.random.default_rng(10 + seed)
    lab, python, said = open_lab(), HeadsLab(), []
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
    assert_parity(lab, HeadsLab())


def test_the_blocks_are_drawn_to_scale(open_lab):
    """Twelve heads share three key heads: three of twelve columns are left of W_K and W_V."""
    lab = open_lab(heads=12, kv_heads=3, head=5)
    lab.shown()
    blocks = lab.figure.evaluate(
        """(figure) => [...figure.querySelectorAll(".attn-parameters .attn-block")].map((rect) =>
          [rect.width.baseVal.value, rect.height.baseVal.value, rect.matches(".attn-chosen")])"""
    )
    areas = [width * height for width, height, _ in blocks]
    assert len(blocks) == 12 + 3 + 3 + 12
    np.testing.assert_allclose(areas, areas[0], rtol=1e-6)
    assert [at for at, block in enumerate(blocks) if block[2]] == [5, 12 + 1, 15 + 1, 18 + 5]


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("heads=5", HeadsLab()),
        ("heads=1e9", HeadsLab()),
        ("kv_heads=3", HeadsLab()),
        ("kv_heads=-1", HeadsLab()),
        ("head=99", HeadsLab(head=3)),
        ("query=<img src=x onerror=alert(1)>", HeadsLab()),
        ("scene=chef", HeadsLab()),
        ("swapped=1", HeadsLab()),
        ("seed=0.5", HeadsLab(seed=1)),
        ("rows=2", HeadsLab()),
    ],
)
def test_links_are_limited_and_named(open_lab, field, shown):
    lab = open_lab(f"#lab?{field}")
    assert f"{field.split('=')[0]}" in lab.shown()["notice"]
    assert_parity(lab, shown)


def test_a_copied_link_opens_the_same_state(open_lab, open_page):
    lab = open_lab(heads=6, kv_heads=2)
    set_kv_heads(lab, HeadsLab(heads=6), np.random.default_rng(3))  # any: first back to one each
    lab.control("kv_heads").select_option("6")
    lab.control("query").select_option("1")
    lab.action("link").click()
    lab.shown()
    address = lab.page.evaluate("location.href")
    assert address.endswith("#lab?kv_heads=&query=1")
    assert_parity(PanelDriver(open_page(address)), HeadsLab(heads=6, query=1))


def test_a_drag_ends_in_the_last_value(open_lab):
    lab = open_lab()
    lab.control("heads").evaluate(
        """async (input) => {
          for (let k = 0; k <= 41; k++) {
            input.value = k % 6;
            input.dispatchEvent(new Event("input", {bubbles: true}));
            if (k % 3 === 0) await new Promise(requestAnimationFrame);
          }
        }"""
    )
    assert_parity(lab, HeadsLab(heads=12, head=0))  # on the way there was one head alone


def test_keyboard_alone_reaches_and_moves_everything(open_lab):
    lab, press = open_lab(), None
    controls = ["scene", "seed", "resample", "heads", "kv_heads", "head", "query"]
    panels = [*(f"weights {r}" for r in range(4)), "mean", "joined", "W_O", "output"]
    assert tab_stops(lab.page) == ["link", "reset", *controls, *panels]
    press = lab.page.keyboard.press
    lab.control("heads").focus()
    press("ArrowLeft")  # three heads
    lab.cell("mean", 0, 0).focus()
    press("ArrowDown")
    press("Enter")  # the second token asks
    lab.cell("W_O", 0, 0).focus()
    press("ArrowDown")
    press("Enter")  # the first head's second row
    assert_parity(lab, HeadsLab(heads=3, query=1, head=0))


def test_a_cell_under_the_pointer_is_read_out(open_lab):
    lab, python = open_lab(), HeadsLab()
    readout = lab.figure.locator(".attn-readout").last
    lab.cell("output", 2, 4).hover()
    parts = [number(x) for x in re.findall(r"−?\d\.\d\d(?!\d)", readout.inner_text())]
    np.testing.assert_allclose(parts[-4:], np.abs(python.contributions[:, 2, 4]), atol=0.0051)
    lab.cell("mean", 0, 1).hover()
    assert f"{python.mean_weights[0, 1]:.3f}" in readout.inner_text()
    lab.page.mouse.move(0, 0)
    assert readout.inner_text().startswith("Point at a cell")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 712, 390])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(open_lab, axe, scheme, width):
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    for state in ({}, {"heads": 12, "kv_heads": 3}, {"scene": "roles"}):
        lab = open_lab(link(state), options=options)
        lab.shown()
        assert axe(lab.page) == []
        assert lab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_in_a_closed_dropdown(open_page, tmp_path):
    page = open_page(folded(HeadsLab(name="lab"), tmp_path / "folded.html"), **PHONE)
    lab = PanelDriver(page)
    assert lab.shown()["panels"] == {}
    page.locator("summary").click()
    page.wait_for_timeout(100)
    assert_parity(lab, HeadsLab())
    assert lab.painted()


def test_one_model_shown_twice_stays_in_step(open_page, tmp_path):
    page = host_page(open_page, tmp_path)
    page.evaluate(
        "data => { window.model = makeModel(data); for (const k of [1, 2]) mount(model); }",
        HeadsLab().data(),
    )
    first, second = (PanelDriver(page, f"main > div:nth-child({k}) figure") for k in (1, 2))
    first.control("heads").fill("1")
    first.shown()
    page.evaluate("model.set('seed', 7)")  # from the kernel
    for lab in (first, second):
        assert_parity(lab, HeadsLab(heads=2, seed=7))
    assert page.evaluate("document.querySelectorAll('[id]').length") == 0


def test_a_hundred_mounts_leave_nothing_behind(open_page, tmp_path):
    data = HeadsLab().data()
    assert_nothing_left(open_page, tmp_path, data, "heads", press="resample")
