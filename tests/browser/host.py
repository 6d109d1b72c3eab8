"""A page that mounts labs as a kernel's host does, and what it holds afterwards."""

from __future__ import annotations

from pathlib import Path

from attn_lib.labs.base import STATIC

_MOUNTS = (Path(__file__).parent / "mounts.js").read_text(encoding="utf-8")
_IMPORT = """async (source) => {
  const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
  window.front = await import(url);
}"""

_MOUNT_AND_REMOVE = """async ([data, times, control, press]) => {
  for (let k = 0; k < times; k++) {
    const lab = mount(makeModel(structuredClone(data)));
    await frames_(1);
    const input = lab.el.querySelector(`[data-control="${control}"]`);
    input.value = k;
    for (const type of ["input", "change"]) input.dispatchEvent(new Event(type, {bubbles: true}));
    lab.el.querySelector("summary")?.click();
    if (press) lab.el.querySelector(`[data-action="${press}"]`).click();
    if (k % 2) await frames_(2);
    lab.remove();
  }
  await frames_(2);
}"""


def host_page(open_page, folder: Path, **options):
    """Open a page that has loaded the module which a kernel's host loads, as anywidget does."""
    path = folder / "host.html"
    path.write_text('<!doctype html><html lang="en"><title>Host</title><main></main></html>')
    page = open_page(path, init=_MOUNTS, wait=False, **options)
    page.evaluate(_IMPORT, (STATIC / "labs.mjs").read_text(encoding="utf-8"))
    return page


def mount_twice(page, data: dict):
    """Show one model in two views, as two output cells do; it is `model` in the page."""
    page.evaluate(
        "data => { window.model = makeModel(data); for (const k of [1, 2]) mount(model); }", data
    )


def assert_nothing_left(page, data: dict, control: str, press: str | None) -> None:
    """After a hundred mounts and removals a page holds what it held after five."""
    before, after = (
        held(page, _MOUNT_AND_REMOVE, [data, times, control, press]) for times in (5, 100)
    )
    assert_same(before, after)


def assert_same(before: dict, after: dict) -> None:
    """Compare what was held; the engine keeps a few nodes of its own."""
    assert before["timers"] == before["frames"] == before["observers"] == 0
    assert {**after, "nodes": 0} == {**before, "nodes": 0}
    assert after["nodes"] <= before["nodes"] + 20  # one lab has about 800


def held(page, script: str, given: list) -> dict:
    """Run a script; count what the page then holds, once rubbish has been collected."""
    result = page.evaluate(script, given)
    page.wait_for_timeout(700)  # the browser's own animations end
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return {
        "result": result,
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
