"""Drive a lab of several heatmaps and tables, and ask of it what every lab must do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from browser.driver import LabDriver

from attn_lib.labs.base import STATIC

MOUNTS = (Path(__file__).parent / "mounts.js").read_text(encoding="utf-8")
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}

# Two frames after the last change; a table is named by its panel, and by its head if it has one.
_READ = """async (figure) => {
  for (let k = 0; k < 2; k++) await new Promise(requestAnimationFrame);
  const text = (element) => element.textContent;
  const all = (selector, root = figure) => [...root.querySelectorAll(selector)];
  const number = ({dataset}) => ("value" in dataset ? Number(dataset.value) : NaN);
  const panel = (table) => {
    const rows = all("tbody tr", table).map((tr) => all("td[data-row]", tr));
    rows.flat().forEach(({dataset}, at) => {
      const wide = rows[0].length;
      if (Number(dataset.row) !== Math.floor(at / wide) || Number(dataset.col) !== at % wide)
        throw new Error(`misplaced in ${table.dataset.panel}: ${dataset.row}, ${dataset.col}`);
    });
    return {
      rows: all('tbody th[scope="row"]', table).map(text),
      cols: all('thead th[scope="col"]', table).map(text),
      values: rows.map((cells) => cells.map(number).map(String)),
      kinds: rows.map((cells) => cells.map(({className}) => className.replace("attn-", ""))),
      current: all("tr.attn-current", table).map(({sectionRowIndex}) => sectionRowIndex),
      boxes: all(".attn-box", table).map((box) => ["row", "col", "high", "wide"]
        .map((name) => Number(box.style.getPropertyValue(`--${name}`)))),
      words: all(".attn-word", table).map(text),
    };
  };
  const shown = all("table[data-panel]").filter((table) => table.checkVisibility());
  return {
    panels: Object.fromEntries(shown.map((table) => [
      table.dataset.panel + (table.dataset.head ? ` ${table.dataset.head}` : ""), panel(table)])),
    controls: Object.fromEntries(all("[data-control]").map((input) => [
      input.dataset.control, input.type === "checkbox" ? input.checked : input.value])),
    hidden: all("[data-control]").filter((input) => !input.checkVisibility())
      .map(({dataset}) => dataset.control),
    meters: all(".attn-meters b").map(text),
    notice: text(figure.querySelector(".attn-notice")),
    words: figure.querySelector(".attn-live").innerText,
  };
}"""


class PanelDriver(LabDriver):
    """A reader's hands on one lab."""

    def shown(self) -> dict:
        """Give everything shown; each panel's values as an array, NaN where there is none."""
        shown = self.figure.evaluate(_READ)
        for panel in shown["panels"].values():
            panel["values"] = np.array([[float(x) for x in row] for row in panel["values"]])
        assert "NaN" not in shown["words"] and "undefined" not in shown["words"]
        return shown

    def painted(self) -> bool:
        """Is there colour in the first cell of every heatmap?"""
        return self.figure.evaluate(
            """(figure) => [...figure.querySelectorAll("table[data-panel] canvas")]
              .filter((canvas) => canvas.checkVisibility())
              .map((canvas) => canvas.getContext("2d").getImageData(1, 1, 1, 1).data[3])
              .every((opacity) => opacity === 255)"""
        )

    def said(self) -> str:
        """Give the sentence once it has settled."""
        self.shown()
        self.page.wait_for_timeout(450)
        return self.figure.locator("[aria-live=polite]").inner_text()


def link(state: dict) -> str:
    """Write a state as a fragment; None is an empty field."""
    fields = {key: "" if value is None else str(value) for key, value in state.items()}
    fields = {
        key: text.lower() if text in ("True", "False") else text for key, text in fields.items()
    }
    return "#lab?" + "&".join(f"{key}={text}" for key, text in fields.items())


def folded(lab, path: Path) -> Path:
    """Save a lab inside a closed dropdown."""
    page = lab.save(path).read_text(encoding="utf-8")
    page = page.replace("<figure", "<details><summary>Open</summary><figure", 1)
    path.write_text(page.replace("</figure>", "</figure></details>", 1), encoding="utf-8")
    return path


_FOCUSED = """() => {
  const {activeElement: element} = document;
  if (element === document.body) return null;
  const {outlineStyle, outlineWidth} = getComputedStyle(element);
  const ringed = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
  const {control, action, row} = element.dataset;
  const {panel, head} = element.closest("table")?.dataset ?? {};
  const cell = row && `${panel}${head ? ` ${head}` : ""}`;
  return (ringed ? "" : "no ring: ") + (control ?? action ?? cell ?? element.outerHTML);
}"""


def tab_stops(page) -> list[str]:
    """Press Tab through a page; give what was reached, in order, and whether it showed it."""
    stops = []
    while len(stops) < 60:
        page.keyboard.press("Tab")
        stop = page.evaluate(_FOCUSED)
        if stop is None:
            break
        stops.append(stop)
    return stops


_IMPORT = """async (source) => {
  const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
  window.front = await import(url);
}"""

_MOUNT_AND_REMOVE = """async ([data, times, control, press]) => {
  for (let k = 0; k < times; k++) {
    const lab = mount(makeModel(structuredClone(data)));
    await frames_(1);
    const input = lab.el.querySelector(`[data-control="${control}"]`);
    input.value = k % 3;
    for (const type of ["input", "change"]) input.dispatchEvent(new Event(type, {bubbles: true}));
    const cell = lab.el.querySelector("table td[data-row]");
    cell.dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
    lab.el.querySelector(`[data-action="${press}"]`).click();
    if (k % 2) await frames_(2);
    lab.remove();
  }
  await frames_(2);
}"""


def host_page(open_page, folder: Path, **options):
    """Open a page that has loaded the module which a kernel's host loads, as anywidget does."""
    path = folder / "host.html"
    path.write_text('<!doctype html><html lang="en"><title>Host</title><main></main></html>')
    page = open_page(path, init=MOUNTS, wait=False, **options)
    page.evaluate(_IMPORT, (STATIC / "labs.mjs").read_text(encoding="utf-8"))
    return page


def assert_nothing_left(page, data: dict, control: str, press: str) -> None:
    """After a hundred mounts and removals a page holds what it held after five."""
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
