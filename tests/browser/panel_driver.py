"""Drive a lab of several heatmaps and tables, and ask of it what every lab must do."""

from __future__ import annotations

import numpy as np
from browser.driver import LabDriver

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
