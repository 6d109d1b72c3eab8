"""What every lab promises, asked of each in the table of labs (`specs`)."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest
from browser.driver import PHONE, LabDriver, link, tab_stops
from browser.host import assert_nothing_left, host_page, mount_twice
from browser.specs import SPECS

from attn_lib.labs.base import Lab

COLOURS_AND_ROOM = ["color-contrast", "scrollable-region-focusable"]
SIZES = {1280: 900, 712: 900, 390: 844}


@pytest.fixture(params=SPECS.values(), ids=SPECS)
def spec(request):
    return request.param


def each_way(spec):
    """Give each way to open the lab, and the lab in Python."""
    return [(given, spec.kind(**given)) for given in spec.given]


def states(python: Lab) -> dict:
    return {key: getattr(python, key) for key in python.settings}


def test_the_table_holds_every_lab():
    assert {spec.kind for spec in SPECS.values()} == set(Lab.__subclasses__())


def test_states_set_through_links(open_lab, spec):
    """In any order of the fields; the page shows what Python computes of the same state."""
    for given, _ in each_way(spec):
        rng = np.random.default_rng(5)
        lab = open_lab(spec.kind, **given)
        for _ in range(spec.links // len(spec.given)):
            state = spec.random_state(rng, **given)
            lab.follow(link({key: state[key] for key in rng.permutation(list(state))}))
            assert lab.shown().notice == ""
            spec.parity(lab, spec.kind(**given, **state))


def test_states_set_through_the_controls(open_lab, open_page, spec):
    """Then the sentence, the link to that state, and the way back."""
    for given, python in each_way(spec):
        rng = np.random.default_rng(7)
        lab, said = open_lab(spec.kind, **given), []
        for _ in range(spec.moves // len(spec.given)):
            act = spec.actions[rng.integers(len(spec.actions))]
            act(lab, python, rng)
            said.append(act.__name__)
            try:
                spec.parity(lab, python)
            except AssertionError as error:
                error.add_note(f"after {', '.join(said)}")
                raise
        assert lab.said() == python.describe()
        lab.action("link").click()
        lab.shown()
        other = LabDriver(open_page(lab.page.url))
        spec.parity(other, python)
        assert other.shown().notice == ""
        assert_link_is_short(lab.page.url, python, spec.kind(**given))
        lab.action("reset").click()
        spec.parity(lab, spec.kind(**given))
        assert "#" not in lab.page.url


def assert_link_is_short(address: str, python: Lab, given: Lab) -> None:
    """A link names what differs from the lab as it came, and nothing else."""
    fields = dict(parse_qsl(address.partition("?")[2], keep_blank_values=True))
    before, now = states(given), states(python)
    assert set(fields) == {key for key in now if now[key] != before[key]}


def test_a_link_that_cannot_be_followed_says_so_and_leaves_a_lab_that_works(
    open_lab, spec, subtests
):
    lab = open_lab(spec.kind)
    for field, state in spec.bad_links.items():
        with subtests.test(field=field):
            lab.follow(f"#lab?{field}")
            shown = lab.shown()
            assert shown.notice.startswith("The link could not be followed in full.")
            assert field.split("=")[0] in shown.notice
            assert lab.figure.locator(".attn-notice *").count() == 0
            spec.parity(lab, spec.kind(**state))
            lab.action("reset").click()
            assert lab.shown().notice == ""


def test_keyboard_alone_reaches_and_moves_everything(open_lab, spec):
    lab = open_lab(spec.kind)
    assert tab_stops(lab.page) == list(spec.stops)
    spec.parity(lab, spec.kind(**spec.keyboard(lab)))
    for summary in lab.figure.locator("summary").all():
        summary.press("Enter")
    folded = [name for name, panel in lab.shown().panels.items() if not panel.seen]
    assert not set(folded) & set(lab.figure.locator("details table").evaluate_all(_NAMES))
    lab.action("reset").press("Enter")
    spec.parity(lab, spec.kind())


_NAMES = "(tables) => tables.map(({dataset}) => dataset.panel)"


def test_in_every_look_it_is_accessible_and_fits(open_lab, axe, spec, subtests):
    """Every state in two themes at three widths, with everything unfolded and a notice."""
    for given, _ in each_way(spec):
        lab = open_lab(spec.kind, **given)
        page = lab.page
        page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        for state in spec.looks:
            lab.follow(link({**state, "nothing": 1}))
            rules = None  # all of them, once a state
            for width, height in SIZES.items():
                for theme in ("light", "dark"):
                    page.set_viewport_size({"width": width, "height": height})
                    page.emulate_media(color_scheme=theme)
                    with subtests.test(given=given, state=state, width=width, theme=theme):
                        assert lab.shown().notice
                        assert axe(page, rules) == []
                        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                        assert width < 1280 or page.evaluate(_SCROLLING) == []
                    rules = COLOURS_AND_ROOM


_SCROLLING = """[...document.querySelectorAll(".attn-scroll")]
  .filter((frame) => !frame.closest("details") && frame.scrollWidth > frame.clientWidth)
  .map((frame) => [frame.closest(".attn-panel, div").className, frame.scrollWidth])"""


def test_each_control_and_each_panel_can_be_what_is_seen(open_page, page_of, spec):
    """Python's names are those of the front end; what is not chosen is behind More, and alive."""
    kind = spec.kind
    choices = [{"controls": [name], "panels": []} for name in kind.all_controls]
    choices += [{"controls": [], "panels": [name]} for name in kind.all_panels]
    page = open_page(page_of(*(kind(**choice) for choice in choices)), inside=Path("/"))
    seen = page.evaluate(
        """[...document.querySelectorAll("figure.attn-lab")].map((figure) => [
          figure.querySelector(".attn-first")?.children.length ?? 0,
          figure.querySelector(".attn-picture").children.length,
          [...figure.querySelectorAll(".attn-first [data-control]")].map((e) => e.dataset.control),
        ])"""
    )
    more = {name for name in kind.all_controls if name.startswith("zero-")}  # of two heads
    for choice, (controls, panels, names) in zip(choices, seen, strict=True):
        if not {*choice["controls"]} & more:
            assert (controls, panels) == (len(choice["controls"]), len(choice["panels"])), choice
            assert set(names) <= {*choice["controls"]}
    asked = [LabDriver(page, f"figure.attn-lab >> nth={k}") for k in (0, 1)]
    for lab in asked:
        spec.parity(lab, kind())


@pytest.mark.parametrize("width", [1280, 390])
def test_a_lab_asks_before_it_answers(open_page, page_of, spec, width):
    """What answers is not seen; a guess, or none, brings it; a link wants to see it at once."""
    kind = spec.kind
    labs = [kind(ask=ask, name=ask) for ask in kind.asks]
    assert labs
    page = open_page(page_of(*labs), inside=Path("/"), viewport={"width": width, "height": 900})
    for ask in kind.asks:
        lab = LabDriver(page, f"#{ask}")
        question = lab.figure.locator(".attn-question")
        assert question.inner_text().endswith("?") and question.is_visible()
        lab.figure.locator("[data-action=skip]").click()
        assert question.count() == 0
        spec.parity(lab, kind())
        lab.action("reset").click()
        assert question.is_visible()  # asked again
        guess = lab.figure.locator("[data-control=guess]").first
        if guess.evaluate("(input) => input.type") == "radio":
            guess.check()
        elif guess.evaluate("(input) => input.localName") == "select":
            guess.select_option(index=1)
        else:
            guess.press("ArrowRight")
        lab.figure.locator("[data-action=show]").click()
        assert len(lab.figure.locator(".attn-verdict").inner_text()) > 3
        assert question.count() == 0
        assert lab.figure.locator(":focus").count() == 1  # the focus is not lost with the button
        lab.action("reset").click()
        lab.follow(f"#{ask}?nothing=1")
        assert question.count() == 0


def test_in_a_closed_dropdown(open_page, page_of, spec):
    """A lab that was mounted without a width is drawn when its dropdown opens."""
    folded = "<details><summary>Open</summary>{}</details>"
    path = page_of(spec.kind(name="lab"), around=folded)
    page = open_page(path, inside=Path("/"), **PHONE)
    lab = LabDriver(page)
    assert lab.shown().seen == []
    page.locator("summary").first.click()
    page.wait_for_timeout(100)
    spec.parity(lab, spec.kind())
    assert lab.painted()
    assert all(picture["width"] > 100 for picture in lab.shown().pictures)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_two_on_a_page_are_independent_and_a_drag_ends_in_the_last_value(open_page, page_of, spec):
    path = page_of(spec.kind(name="one"), spec.kind(name="two"))
    page = open_page(path, inside=Path("/"))
    first, second = LabDriver(page, "#one"), LabDriver(page, "#two")
    control, values, state = spec.quick
    first.quickly(control, values)
    spec.parity(first, spec.kind(**state))
    spec.parity(second, spec.kind())
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(({id}) => id)")
    assert ids == ["one", "two"]


def test_one_model_shown_twice_stays_in_step_and_gives_its_code(open_page, tmp_path, spec):
    page = host_page(open_page, tmp_path, permissions=["clipboard-read", "clipboard-write"])
    given = spec.given[-1]
    mount_twice(page, spec.kind(**given).data())
    first, second = (LabDriver(page, f"main > div:nth-child({k}) figure") for k in (1, 2))
    control, values, state = spec.quick
    first.quickly(control, values)
    first.shown()
    page.evaluate(
        "(state) => { for (const key in state) model.set(key, state[key]); }", spec.kernel
    )
    python, rng = spec.kind(**given | state | spec.kernel), np.random.default_rng(9)
    for lab in (first, second):
        spec.parity(lab, python)
    for _ in range(6):
        spec.actions[rng.integers(len(spec.actions))](first, python, rng)
    spec.parity(second, python)
    assert page.evaluate("document.querySelectorAll('[id]').length") == 0
    first.figure.get_by_role("button", name="Copy code").click()
    code = page.evaluate("navigator.clipboard.readText()")
    copied = eval(code, {spec.name: spec.kind})
    assert json.loads(json.dumps(copied.data())) == json.loads(json.dumps(python.data()))


def test_a_hundred_mounts_leave_nothing_behind(open_page, tmp_path, spec):
    options = {"reduced_motion": "no-preference"} if spec.motion else {}
    page = host_page(open_page, tmp_path, **options)
    assert_nothing_left(page, spec.kind().data(), spec.quick[0], spec.press)
