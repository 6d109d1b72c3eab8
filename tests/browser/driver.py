"""Drive a lab as a reader does, through the page contract, and read everything it shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SCREENS = {"wide": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}

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


class Matrix:
    """One heatmap as it stands in the page."""

    def __init__(self, panel: dict):
        self.rows, self.cols, self.texts = panel["rows"], panel["cols"], panel["texts"]
        self.values = np.array([[float(x) for x in row.split(";")] for row in panel["values"]])
        assert self.values.shape == (len(self.rows), len(self.cols))


class Shown:
    """Everything a lab shows at one moment."""

    def __init__(self, read: dict):
        self.__dict__.update(read)
        for name in ("scores", "weights", "output"):
            setattr(self, name, Matrix(read[name]))


class LabDriver:
    """A reader's hands on one lab of a page."""

    def __init__(self, page, selector: str = "figure.attn-lab"):
        self.page = page
        self.figure = page.locator(selector)

    def shown(self) -> Shown:
        return Shown(self.figure.evaluate(_READ))

    def follow(self, fragment: str):
        """Click a link to a fragment of this page."""
        self.page.evaluate(
            """(hash) => new Promise((done) => {
                 addEventListener("hashchange", done, {once: true});
                 location.hash = hash;
               })""",
            fragment,
        )

    def control(self, name: str):
        return self.figure.locator(f'[data-control="{name}"]')

    def action(self, name: str):
        return self.figure.locator(f'button[data-action="{name}"]')

    def token(self, token: int):
        return self.figure.locator(f'[data-token="{token}"]')

    def chip(self, token: int):
        return self.token(token).locator("[data-query]")

    def cell(self, panel: str, row: int, col: int):
        return self.figure.locator(
            f'table[data-panel="{panel}"] td[data-row="{row}"][data-col="{col}"]'
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
