"""Measure how high labs are: ``python tests/browser/heights.py`` writes attn_lib/labs/heights.json.

A page keeps a lab's room before its script runs: what the lab of that name takes in the built book,
or else as much as the nearest state that was measured here. Remake the file when the look of a lab
or what a chapter shows of one changes, after a build; `test_heights.py` says when.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path

from attn_lib import labs
from attn_lib.examples import SCENES
from attn_lib.labs.base import HEIGHTS, STATIC, Lab

WIDTHS = (1280, 390)
COLUMN = "main { inline-size: min(59rem, 100vw - 4rem); margin: auto }"  # as wide as the book's
BUILT = Path(__file__).parents[2] / "_build/html"
NAMED = "by name"
SETTLED = """async () => {  // until all is drawn, and nothing has moved for half a second
  const heights = () => [...document.querySelectorAll("figure.attn-lab")].map((figure) =>
    (figure.dataset.ready ? figure.getBoundingClientRect().height : 0));
  const wait = () => new Promise((done) => setTimeout(done, 500));
  const drawing = () => document.body.innerText.includes("being drawn");
  let last = [];
  while (drawing() || heights().some((height, k) => !height || height !== last[k])) {
    last = heights();
    await wait();
  }
  return last;
}"""


def states():
    """Give the states to measure: a class, what makes the lab, and what its height depends on."""
    for scene in SCENES.values():
        depends = {"scene": scene.name, "tokens": len(scene.tokens)}
        yield labs.AttentionLab, {"scene": scene.name}, depends
    for n in (*range(2, 17), 20, 24, 32, 48, 64):
        yield labs.AttentionLab, {"scene": "random", "n": n}, {"scene": "random", "tokens": n}
    for n, m in product((1, 2, 3, 4, 5, 6, 8, 10, 12), repeat=2):
        yield (labs.MaskLab, *2 * [{"n": n, "m": m}])
    for n, d in product((3, 5, 6, 8, 10, 12, 14, 16), (2, 8, 16, 32)):
        yield (labs.PositionLab, *2 * [{"n": n, "d": d}])
    for scene, heads in (*product(["random"], (1, 2, 3, 4, 6, 12)), ("roles", 1), ("roles", 2)):
        yield (labs.HeadsLab, *2 * [{"scene": scene, "heads": heads}])
    for model, heads in (("induction", 1), ("induction-two-heads", 2)):
        for period in range(4, 13):
            depends = {"heads": heads, "period": period}
            yield labs.ContributionLab, {"model": model, "period": period}, depends
    for run, heads in (("reversal", 1), ("induction", 2), ("induction-two-heads", 4)):
        yield labs.TrainingLab, {"run": run}, {"heads": heads}
    vary = {"AttentionLab", "MaskLab", "PositionLab", "HeadsLab", "ContributionLab", "TrainingLab"}
    for name in sorted({*labs.__all__} - {*vary, "overview"}):
        yield getattr(labs, name), {}, {}


def measure(browser, path: Path, these: list[Lab]) -> list[list[int]]:
    """Give the heights of labs, in px, at each of the widths."""
    path.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Heights</title>'
        f'<link rel="stylesheet" href="{(STATIC / "labs.css").as_uri()}">'
        f'<script defer src="{(STATIC / "labs.page.js").as_uri()}"></script>'
        f"<style>{COLUMN}</style>"
        f"<main>{''.join(lab.to_html(picture=False) for lab in these)}</main>",
        encoding="utf-8",
    )
    heights = []
    for width in WIDTHS:
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(path.as_uri())
        heights.append([round(height) for height in page.evaluate(SETTLED)])
        page.close()
    return [list(both) for both in zip(*heights, strict=True)]


def measure_book(browser, built: Path) -> dict[str, list[int]]:
    """Give the heights of the built book's labs by their names, in px, at each of the widths."""
    pages = [path for path in sorted(built.rglob("*.html")) if 'data-lab="' in path.read_text()]
    found: dict[str, list[int]] = {}
    for path, width in product(pages, WIDTHS):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(path.as_uri())
        names = page.evaluate("[...document.querySelectorAll('figure.attn-lab')].map(f => f.id)")
        for name, height in zip(names, page.evaluate(SETTLED), strict=True):
            found.setdefault(name, []).append(round(height))
        page.close()
    return found


def main() -> None:
    """Measure all states and the book's labs, and write them, a line each."""
    import tempfile

    from playwright.sync_api import sync_playwright

    sys.path.insert(0, str(Path(__file__).parents[1]))
    import find_chromium
    import fonts

    chosen = list(states())
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=find_chromium.ensure(),
            args=find_chromium.FLAGS,
            env=fonts.environment(Path(folder)),
        )
        these = [kind(**made) for kind, made, _ in chosen]
        found = measure(browser, Path(folder) / "heights.html", these)
        named = measure_book(browser, BUILT)
        browser.close()
    rows: dict[str, list[str]] = {}
    for (kind, _, depends), px in zip(chosen, found, strict=True):
        rows.setdefault(kind.__name__, []).append(json.dumps({**depends, "px": px}))
    lists = [f'"{name}": [\n' + ",\n".join(lines) + "\n]" for name, lines in rows.items()]
    lines = [f"{json.dumps(name)}: {json.dumps(px)}" for name, px in named.items()]
    lists.append(f'"{NAMED}": {{\n' + ",\n".join(lines) + "\n}")
    HEIGHTS.write_text("{\n" + ",\n".join(lists) + "\n}\n", encoding="ascii")


if __name__ == "__main__":
    main()
