"""Drive a lab as a reader does, through the page contract, and read everything it shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SCREENS = {"wide": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
PHONE = {"viewport": SCREENS["phone"], "has_touch": True, "is_mobile": True}

# Run in a page: wait until all of it is there.
SETTLED = """async () => {
  await window.MathJax?.startup?.promise;
  for (let k = 0; k < 3; k++) await new Promise(requestAnimationFrame);
  // when nothing changes any more, the theme lets the keyboard reach code wider than its column
  const unreached = (pre) => pre.scrollWidth > pre.clientWidth && pre.tabIndex < 0;
  const pending = () => [...document.querySelectorAll("pre")].some(unreached);
  for (let k = 0; k < 50 && pending(); k++) await new Promise((done) => setTimeout(done, 100));
}"""

# A statement's semicolon would end the expression that evaluate() wants.
_READ = (Path(__file__).parent / "read_lab.js").read_text(encoding="utf-8").rstrip().rstrip(";")


# Run in a page: what has the focus. `at` is the place within a table.
_FOCUSED = """() => {
  const {activeElement: element} = document;
  if (!element || element === document.body) return null;
  const {outlineStyle, outlineWidth, opacity} = getComputedStyle(element);
  const {control, action, move, query, point, row, col} = element.dataset;
  const {panel, head} = element.closest("table")?.dataset ?? {};
  const cell = row && [panel, head].filter((part) => part !== undefined).join(" ");
  const scrolls = element.matches(".attn-scroll") ? "scroll" : undefined;
  return {
    name: control ?? action ?? move ?? (query && `token ${query}`) ?? point ?? cell ?? scrolls
      ?? element.localName,
    at: row && [Number(row), Number(col)],
    ring: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2,
    seen: element.checkVisibility({opacityProperty: true}) && opacity === "1",
  };
}"""


class Panel:
    """One table as it stands in the page."""

    def __init__(self, read: dict):
        self.__dict__.update(read)
        self.values = _numbers(self.values)
        # with the value of each row's heading before it
        self.table = np.array([[float(head)] for head in self.heads])
        if self.values.size:
            self.table = np.column_stack([self.table, self.values])
        self.total = _numbers(self.total)


def _numbers(texts: list) -> np.ndarray:
    return np.array(texts, dtype=object).astype(float) if texts else np.empty(0)


class Shown:
    """Everything a lab shows at one moment; `panels` holds what is folded too, `seen` does not."""

    def __init__(self, read: dict):
        self.__dict__.update(read)
        self.panels = {name: Panel(panel) for name, panel in self.panels.items()}
        self.seen = [name for name, panel in self.panels.items() if panel.seen]

    def __getattr__(self, name: str) -> Panel:
        """Give a panel by its name."""
        if name not in self.__dict__.get("panels", {}):
            raise AttributeError(name)
        return self.panels[name]

    def assert_sound(self) -> None:
        """No words and no picture hold a number that is none; each picture says what it shows."""
        words = self.words.replace(self.notice, "")  # it quotes what a link said
        assert "NaN" not in words and "undefined" not in words
        for picture in self.pictures:
            assert "NaN" not in picture["marks"] and "Infinity" not in picture["marks"]
            assert picture["label"] is None or len(picture["label"]) > 20


class LabDriver:
    """A reader's hands on one lab of a page."""

    def __init__(self, page, selector: str = "figure.attn-lab"):
        self.page = page
        self.figure = page.locator(selector)

    def shown(self) -> Shown:
        """Read the lab once its last change has been drawn."""
        shown = Shown(self.figure.evaluate(_READ))
        shown.assert_sound()
        return shown

    def said(self) -> str:
        """Give the sentence once it has settled."""
        self.shown()
        self.page.wait_for_timeout(450)
        return self.figure.locator("[aria-live=polite]").text_content()

    def painted(self) -> bool:
        """Is there colour in the first cell of every heatmap?"""
        return self.figure.evaluate(
            """(figure) => [...figure.querySelectorAll("table[data-panel] canvas")]
              .filter((canvas) => canvas.checkVisibility())
              .map((canvas) => canvas.getContext("2d").getImageData(1, 1, 1, 1).data[3])
              .every((opacity) => opacity === 255)"""
        )

    def quickly(self, control: str, values: list):
        """Give a control one value after another, faster than frames can be drawn."""
        self.control(control).evaluate(
            """async (input, values) => {
              for (const [k, value] of values.entries()) {
                input.value = value;
                input.dispatchEvent(new Event("input", {bubbles: true}));
                if (k % 3 === 0) await new Promise(requestAnimationFrame);
              }
            }""",
            values,
        )

    def follow(self, fragment: str):
        """Click a link to a fragment of this page."""
        self.page.evaluate(
            """(hash) => new Promise((done) => {
                 addEventListener("hashchange", done, {once: true});
                 location.hash = hash;
               })""",
            fragment,
        )

    def drawn(self) -> None:
        """Wait for the next frame: what a change allows, such as a slider's range, is drawn then.

        A reader cannot be quicker, and the browser would hold the next value to the old range.
        """
        self.page.evaluate("() => new Promise(requestAnimationFrame)")

    def open(self) -> None:
        """Open More, and the matrices that a phone shows on demand."""
        self.drawn()
        self.figure.evaluate(
            """(figure) => figure
              .querySelectorAll("button:is([data-action=more], [data-action=matrices])")
              .forEach((button) => {
                if (button.ariaExpanded === "false" && button.checkVisibility()) button.click();
              })"""
        )

    def control(self, name: str):
        self.open()
        return self.figure.locator(f'[data-control="{name}"]')

    def action(self, name: str):
        self.open()
        return self.figure.locator(f'button[data-action="{name}"]')

    def token(self, token: int):
        return self.figure.locator(f'[data-token="{token}"]')

    def chip(self, token: int):
        return self.token(token).locator("[data-query]")

    def cell(self, panel: str, row: int, col: int):
        """Give a cell of a table; one of several heads is named after the panel, "weights 1"."""
        self.open()
        name, _, head = panel.partition(" ")
        head = f'[data-head="{head}"]' if head else ""
        return self.figure.locator(
            f'table[data-panel="{name}"]{head} td[data-row="{row}"][data-col="{col}"]'
        )

    def push(self, token: int, side: str):
        """Press a token's button *move left* or *move right*."""
        self.token(token).hover()
        self.token(token).get_by_role("button", name=f"move {side}").or_(
            self.token(token).locator(f'[data-move="{side}"]')
        ).first.click()

    def drag(self, token: int, onto: int):
        """Drag a token to the place of another."""
        self.shown()  # a scene that has just been chosen brings new chips in the next frame
        mouse = self.page.mouse
        mouse.move(*self._centre(token))
        mouse.down()
        mouse.move(*self._centre(onto), steps=2)
        mouse.up()

    def _centre(self, token: int) -> tuple[float, float]:
        box = self.chip(token).bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def number(text: str) -> float:
    """Read a number as the labs print it: a true minus sign, no zero before the point."""
    return float(text.replace("−", "-").replace("∞", "inf"))


def link(state: dict) -> str:
    """Write a state as a fragment: None is an empty field, a list is joined by commas."""
    return "#lab?" + "&".join(f"{key}={_text(value)}" for key, value in state.items())


def _text(value) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(_text, value))
    text = "" if value is None else str(value)
    return text.lower() if isinstance(value, bool) else text


def focused(page) -> dict | None:
    """Say what has the focus: its name, its place in a table, whether that can be seen."""
    return page.evaluate(_FOCUSED)


def tab_stops(page) -> list[str]:
    """Press Tab through a page, all of it open; give what is reached, in order.

    Each must show the focus.
    """
    LabDriver(page).open()
    stops = []
    while len(stops) < 60:
        page.keyboard.press("Tab")
        stop = focused(page)
        if stop is None:
            break
        assert stop["ring"] and stop["seen"], stop
        stops.append(stop["name"])
    return stops
