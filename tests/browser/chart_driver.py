"""Drive a lab of charts: read every table it holds, and ask of it what every lab must do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from browser.driver import LabDriver

from attn_lib.labs.base import STATIC

MOUNTS = (Path(__file__).parent / "mounts.js").read_text(encoding="utf-8")
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}

# Waits until nothing is being worked on; a row is its heading's value, then its cells'.
_READ = """async (figure) => {
  const busy = () => figure.querySelector("[aria-busy=true]");
  for (let k = 0; k < 3 || busy(); k++) await new Promise(requestAnimationFrame);
  const number = (cell) => ("value" in cell.dataset ? Number(cell.dataset.value) : null);
  const panel = (table) => ({
    values: [...table.tBodies[0].rows].map((row) => [
      number(row.cells[0]), ...[...row.querySelectorAll("td[data-row]")].map(number)]),
    texts: [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent)),
  });
  const tables = [...figure.querySelectorAll("table[data-panel]")];
  const inputs = [...figure.querySelectorAll("[data-control]")];
  return {
    panels: Object.fromEntries(tables.map((table) => [table.dataset.panel, panel(table)])),
    controls: Object.fromEntries(inputs.map((input) => [input.dataset.control, input.value])),
    hidden: inputs.filter((input) => !input.checkVisibility()).map(({dataset}) => dataset.control),
    notice: figure.querySelector(".attn-notice").textContent,
    words: figure.querySelector(".attn-live").innerText,
    pictures: [...figure.querySelectorAll("svg.attn-chart")].map((svg) => ({
      label: svg.getAttribute("aria-label"),
      width: svg.getBoundingClientRect().width,
      texts: [...svg.querySelectorAll("text")].map((text) => text.textContent),
      marks: [...svg.querySelectorAll("path, circle, line")].flatMap((mark) =>
        [...mark.attributes].map(({ value }) => value)).join(" "),
    })),
  };
}"""


class ChartDriver(LabDriver):
    """A reader's hands on one lab of charts."""

    def shown(self) -> dict:
        return self.figure.evaluate(_READ)

    def table(self, panel: str, shown: dict | None = None) -> np.ndarray:
        """Give a table's numbers; a cell without one is NaN."""
        return np.array((shown or self.shown())["panels"][panel]["values"], float)

    def said(self) -> str:
        """Give the sentence once it has settled."""
        self.shown()
        self.page.wait_for_timeout(450)
        return self.figure.locator("[aria-live=polite]").inner_text()


def assert_drawn(shown: dict) -> None:
    """No picture holds a number that is none, and each says what it shows."""
    for picture in shown["pictures"]:
        assert "NaN" not in picture["marks"] and "Infinity" not in picture["marks"]
        assert picture["texts"] and len(picture["label"]) > 20
    assert "undefined" not in shown["words"] and "NaN" not in shown["words"]


def assert_works_unfolded(page, lab: ChartDriver) -> None:
    """A lab that was mounted without a width is drawn when its dropdown opens."""
    page.locator("summary").first.click()
    page.wait_for_timeout(100)
    shown = lab.shown()
    assert_drawn(shown)
    assert all(picture["width"] > 200 for picture in shown["pictures"])


def folded(lab, path: Path) -> Path:
    """Save a lab inside a closed dropdown."""
    page = lab.save(path).read_text(encoding="utf-8")
    page = page.replace("<figure", "<details><summary>Open</summary><figure", 1)
    path.write_text(page.replace("</figure>", "</figure></details>", 1), encoding="utf-8")
    return path


def tab_stops(page) -> list[str]:
    """Press Tab through a page; give the controls and actions reached, in order."""
    stops = []
    while len(stops) < 40:
        page.keyboard.press("Tab")
        stop = page.evaluate(
            """() => {
              const {activeElement: element} = document;
              if (element === document.body) return null;
              const {outlineStyle, outlineWidth} = getComputedStyle(element);
              const ringed = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
              const {control, action} = element.dataset;
              return (ringed ? "" : "no ring: ") + (control ?? action ?? element.localName);
            }"""
        )
        if stop is None:
            break
        stops.append(stop)
    return stops


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


_IMPORT = """async (source) => {
  const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
  window.front = await import(url);
}"""


def host_page(open_page, folder: Path, **options):
    """Open a page that has loaded the module which a kernel's host loads, as anywidget does."""
    path = folder / "host.html"
    path.write_text('<!doctype html><html lang="en"><title>Host</title><main></main></html>')
    page = open_page(path, init=MOUNTS, wait=False, **options)
    page.evaluate(_IMPORT, (STATIC / "labs.mjs").read_text(encoding="utf-8"))
    return page


def assert_nothing_left(
    open_page, folder: Path, data: dict, control: str, *, press: str | None = None, **options
) -> None:
    """After a hundred mounts and removals a page holds what it held after five."""
    page = host_page(open_page, folder, **options)
    before, after = (_held_after(page, [data, times, control, press]) for times in (5, 100))
    assert before["ledger"][:3] == [0, 0, 0]
    assert {**after, "nodes": 0} == {**before, "nodes": 0}
    assert after["nodes"] <= before["nodes"] + 20


def _held_after(page, given: list) -> dict:
    """Mount, move and remove a lab so often; count what the page then holds."""
    page.evaluate(_MOUNT_AND_REMOVE, given)
    page.wait_for_timeout(600)
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    ledger = page.evaluate(
        "[ledger.timers.size, ledger.frames.size, ledger.observers.size,"
        " document.querySelectorAll('*').length]"
    )
    return {"listeners": metrics["JSEventListeners"], "nodes": metrics["Nodes"], "ledger": ledger}
