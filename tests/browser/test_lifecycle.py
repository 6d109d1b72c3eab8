"""A lab that is mounted, moved and removed: what is held is given back, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from browser.driver import LabDriver

from attn_lib.labs import AttentionLab
from attn_lib.labs.base import STATIC

MOUNTS = (Path(__file__).parent / "mounts.js").read_text(encoding="utf-8")

_IMPORT = """async (source) => {
  const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
  window.front = await import(url);
}"""


@pytest.fixture
def kernel_page(open_page, tmp_path):
    """Return a page that has loaded the module that a kernel's host loads, as anywidget does."""
    path = tmp_path / "host.html"
    path.write_text('<!doctype html><html lang="en"><title>Host</title><main></main></html>')

    def open_(**options):
        page = open_page(path, init=MOUNTS, wait=False, **options)
        page.evaluate(_IMPORT, (STATIC / "labs.mjs").read_text(encoding="utf-8"))
        return page

    return open_


def held(page) -> dict:
    """Count what the page holds once rubbish has been collected."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return {
        "listeners": metrics["JSEventListeners"],
        "nodes": metrics["Nodes"],
        **page.evaluate(
            """() => ({
              elements: document.querySelectorAll("*").length,
              timers: ledger.timers.size,
              frames: ledger.frames.size,
              observers: ledger.observers.size,
            })"""
        ),
    }


_MOUNT_AND_REMOVE = """async ([data, times]) => {
  let left_behind = 0;
  for (let k = 0; k < times; k++) {
    const lab = mount(makeModel(structuredClone(data)));
    const find = (selector) => lab.el.querySelector(selector);
    const {left, top} = find("[data-token]").getBoundingClientRect();
    const at = {bubbles: true, pointerId: 1, clientX: left + 9, clientY: top + 9};
    find('[data-action="reverse"]').click();             // cells begin to travel
    await frames_(2);
    find("table td[data-row]").dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
    find("[data-query]").dispatchEvent(new PointerEvent("pointerdown", at));  // a drag begins
    window.dispatchEvent(new PointerEvent("pointermove", {...at, clientX: at.clientX + 90}));
    find('[data-control="temperature"]').value = "0.5";
    find('[data-control="temperature"]').dispatchEvent(new Event("input", {bubbles: true}));
    lab.remove();                                        // in the middle of all that
    left_behind += lab.model.listening() + ledger.timers.size + ledger.frames.size;
  }
  await frames_(2);
  return left_behind;
}"""


def test_a_hundred_mounts_and_removals_leave_nothing_behind(kernel_page):
    page = kernel_page(reduced_motion="no-preference")
    data = AttentionLab().data()
    page.evaluate(_MOUNT_AND_REMOVE, [data, 5])  # what is made once is made now
    page.wait_for_timeout(700)  # the browser's own animations end
    before = held(page)
    assert before["timers"] == before["frames"] == before["observers"] == 0
    assert page.evaluate(_MOUNT_AND_REMOVE, [data, 100]) == 0
    page.wait_for_timeout(700)
    after = held(page)
    assert {**after, "nodes": 0} == {**before, "nodes": 0}
    assert after["nodes"] <= before["nodes"] + 20  # one lab has about 800


def test_one_model_shown_twice_stays_in_step(kernel_page):
    page = kernel_page()
    page.evaluate(
        "data => { window.model = makeModel(data); for (const k of [1, 2]) mount(model); }",
        AttentionLab().data(),
    )
    first, second = (LabDriver(page, f"main > div:nth-child({k}) figure") for k in (1, 2))
    first.control("temperature").fill("1")
    second.action("reverse").click()
    first.shown()
    page.evaluate("model.set('mask', 'causal')")  # from the kernel
    expected = AttentionLab(temperature=10.0, order=list(range(9))[::-1], mask="causal").weights
    for lab in (first, second):
        np.testing.assert_allclose(lab.shown().weights.values, expected, atol=1e-9)
        assert lab.shown().order == list(range(9))[::-1]
    assert page.evaluate("[...document.querySelectorAll('[id]')].length") == 0


def test_a_change_from_the_kernel_is_not_sent_back(kernel_page):
    page = kernel_page()
    page.evaluate(
        "data => { window.model = makeModel(data); mount(model); }", AttentionLab().data()
    )
    page.evaluate("model.set('temperature', 0.3)")
    lab = LabDriver(page)
    np.testing.assert_allclose(
        lab.shown().weights.values, AttentionLab(temperature=0.3).weights, atol=1e-9
    )
    assert page.evaluate("[ledger.saves, model.data.temperature]") == [0, 0.3]


_STORM = """async (data) => {
  const lab = mount(makeModel(data));
  await frames_(3);
  const slider = lab.el.querySelector('[data-control="temperature"]');
  Object.assign(ledger, {saves: 0, paints: 0});
  let frames = 0, counting = true;
  const count = () => { frames++; if (counting) requestAnimationFrame(count); };
  requestAnimationFrame(count);
  for (let k = 1; k <= 100; k++) {
    slider.value = (k / 50).toFixed(2);
    slider.dispatchEvent(new Event("input", {bubbles: true}));
    if (k % 10 === 0) await new Promise((done) => setTimeout(done, 30));
  }
  counting = false;
  await frames_(2);
  const {saves, paints} = ledger;
  return {frames, saves, paints, temperature: lab.model.data.temperature};
}"""


def test_a_hundred_events_draw_at_most_once_a_frame_and_end_in_the_last(kernel_page):
    page = kernel_page()
    seen = page.evaluate(_STORM, AttentionLab().data())
    assert seen["temperature"] == 100
    assert 1 <= seen["saves"] <= min(11, seen["frames"] + 2)  # ten bursts, each sent once
    assert seen["paints"] <= 3 * seen["saves"]  # three panels
    shown = LabDriver(page).shown()
    expected = AttentionLab(temperature=100.0)
    np.testing.assert_allclose(shown.weights.values, expected.weights, atol=1e-9)


def test_two_presses_within_a_frame_are_two_steps(kernel_page):
    page = kernel_page()
    order = page.evaluate(
        """async (data) => {
          const lab = mount(makeModel(data));
          const chip = lab.el.querySelector('[data-query="6"]');
          const key = {key: "ArrowLeft", shiftKey: true, bubbles: true};
          for (let k = 0; k < 2; k++) chip.dispatchEvent(new KeyboardEvent("keydown", key));
          lab.el.querySelector('[data-token="0"] [data-move="right"]').click();
          lab.el.querySelector('[data-action="reverse"]').click();
          await frames_(2);
          return lab.model.data.order;
        }""",
        AttentionLab().data(),
    )
    assert order == [8, 7, 5, 4, 6, 3, 2, 0, 1]


def test_the_last_change_before_removal_is_not_lost(kernel_page):
    page = kernel_page()
    sent = page.evaluate(
        """async (data) => {
          const lab = mount(makeModel(data));
          const slider = lab.el.querySelector('[data-control="temperature"]');
          slider.value = "1";
          slider.dispatchEvent(new Event("input", {bubbles: true}));
          lab.remove();
          return [lab.model.data.temperature, ledger.saves];
        }""",
        AttentionLab().data(),
    )
    assert sent == [10, 1]


def test_copy_code_gives_the_python_that_makes_the_lab(kernel_page):
    page = kernel_page(permissions=["clipboard-read", "clipboard-write"])
    page.evaluate("data => void mount(makeModel(data))", AttentionLab().data())
    lab = LabDriver(page)
    lab.control("scale").click()
    lab.control("mask").select_option("causal")
    lab.action("reverse").click()
    lab.shown()
    lab.figure.get_by_role("button", name="Copy code").click()
    code = page.evaluate("navigator.clipboard.readText()")
    copied = eval(code, {"AttentionLab": AttentionLab})
    assert copied.data() == AttentionLab(scale=False, mask="causal", order=[*range(9)][::-1]).data()
