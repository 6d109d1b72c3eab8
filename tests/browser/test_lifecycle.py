"""A lab that is mounted, moved and removed: what is held is given back, and nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest
from browser.driver import LabDriver
from browser.host import assert_same, held, host_page

from attn_lib.labs import AttentionLab


@pytest.fixture
def kernel_page(open_page, tmp_path):
    """Return a function that opens a page which mounts labs as a kernel's host does."""
    return lambda **options: host_page(open_page, tmp_path, **options)


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


def test_a_hundred_removals_in_the_middle_of_everything_leave_nothing_behind(kernel_page):
    page = kernel_page(reduced_motion="no-preference")
    data = AttentionLab().data()
    before, after = (held(page, _MOUNT_AND_REMOVE, [data, times]) for times in (5, 100))
    assert before["result"] == 0
    assert_same(before, after)


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
