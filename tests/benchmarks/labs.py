"""Measure how quick a lab is: alive after load, work per slider step, and against interact.

    python tests/benchmarks/labs.py              everything, with a JupyterLab of its own
    python tests/benchmarks/labs.py steps labs   these alone

Main-thread work is what Chromium's DevTools protocol counts as tasks. It is given as processor
time of that thread, so a busy machine changes it little, and as time on the clock. The first
lab's time and the pictures' times are on the clock: trust them on a quiet machine only.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import find_chromium  # noqa: E402
from browser.jupyter import open_notebook, serve  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from attn_lib import labs  # noqa: E402
from attn_lib.labs import AttentionLab  # noqa: E402
from attn_lib.labs.base import STATIC  # noqa: E402

STEPS = 60
ROUNDS = 3  # of which the best counts
TARGETS = {"ready": 1000, 12: 6, 32: 12, "bundle": 120, "ratio": 15}
PARTS = {
    "ScriptDuration": "script",
    "RecalcStyleDuration": "style",
    "LayoutDuration": "layout",
}


def report(name: str, value: float, unit: str, target: float | None = None, least=False) -> None:
    """Print one figure, and whether it meets its target."""
    verdict = ""
    if target is not None:
        met = value >= target if least else value <= target
        verdict = f"   target {'≥' if least else '≤'} {target} {unit}: {'met' if met else 'MISSED'}"
    print(f"{name:52}{value:10.2f} {unit:3}{verdict}", flush=True)


# Pages -------------------------------------------------------------------------

_WHEN_READY = """new MutationObserver((_, observer) => {
  if (!document.querySelector("figure.attn-lab[data-ready=true]")) return;
  window.readyAt ??= performance.now();
  observer.disconnect();
}).observe(document, {subtree: true, childList: true, attributeFilter: ["data-ready"]});"""


def time_until_ready(browser, url: str, times: int = 5) -> float:
    """Load a page afresh several times; give the median ms until its first lab is alive."""
    seen = []
    for _ in range(times):
        page = browser.new_context(offline=True).new_page()
        page.add_init_script(_WHEN_READY)
        page.goto(url)
        page.wait_for_function("window.readyAt", timeout=60_000)
        seen.append(page.evaluate("readyAt"))
        page.context.close()
    return statistics.median(seen)


_STEP = """async ([control, values]) => {
  const input = document.querySelector(`[data-control="${control}"]`);
  const started = performance.now();
  for (const value of values) {
    if (value !== null) {
      input.value = value;
      for (const type of ["input", "change"]) input.dispatchEvent(new Event(type, {bubbles: true}));
    }
    await new Promise(requestAnimationFrame);
  }
  return (performance.now() - started) / values.length;
}"""


def work(page, control: str, values: list, clock: str) -> dict:
    """Move a slider through `values`, one a frame; give ms of main-thread work per step."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": clock})

    def metrics() -> dict:
        found = session.send("Performance.getMetrics")["metrics"]
        return {metric["name"]: metric["value"] for metric in found}

    before = metrics()
    frame = page.evaluate(_STEP, [control, values])
    after = metrics()
    session.send("Performance.disable")
    session.detach()
    parts = {"TaskDuration": "all", **PARTS}
    spent = {
        word: (after[name] - before[name]) * 1000 / len(values) for name, word in parts.items()
    }
    return {**spent, "frame": frame}


def measure_steps(browser, folder: Path) -> None:
    """Report work per step of the key width, from 5 to 64, less that of idle frames."""
    for n in (12, 32):
        lab = AttentionLab(scene="random", n=n, d_k=64, name="lab")
        page = browser.new_context(viewport={"width": 1280, "height": 1200}).new_page()
        page.goto(lab.save(folder / f"{n}.html").as_uri())
        widths = list(range(5, 65))
        work(page, "d_k", widths, "timeTicks")  # the browser compiles what runs often
        for clock, words in (("threadTicks", "processor"), ("timeTicks", "clock")):
            idle, step = (
                min(
                    (work(page, "d_k", given, clock) for _ in range(ROUNDS)), key=lambda w: w["all"]
                )
                for given in ([None] * STEPS, widths)
            )
            name = f"slider step, n = {n}, d_k to 64, {words} time"
            report(name, step["all"] - idle["all"], "ms", TARGETS[n])
            parts = ", ".join(f"{word} {step[word] - idle[word]:.2f}" for word in PARTS.values())
            print(f"    of which {parts}; the rest is paint and input")
        report(f"frame while the slider moves, n = {n}", step["frame"], "ms")
        page.context.close()


def measure_labs(browser, folder: Path) -> None:
    """Report work per step of every other lab at its default size, less that of idle frames."""
    for lab, control in (
        (labs.LookupLab, "query_x"),
        (labs.ScoreScaleLab, "d_k"),
        (labs.PositionLab, "offset"),
        (labs.MaskLab, "offset"),
        (labs.HeadsLab, "heads"),
        (labs.TilingLab, "step"),
        (labs.TrainingLab, "step"),
        (labs.CostLab, "n"),
        (labs.ContributionLab, "seed"),
    ):
        page = browser.new_context(viewport={"width": 1280, "height": 1200}).new_page()
        page.goto(lab(name="lab").save(folder / f"{lab.__name__}.html").as_uri())
        ends = "(input) => [Number(input.min), Number(input.max)]"
        low, high = page.locator(f"[data-control={control}]").evaluate(ends)
        values = [low + (high - low) * (7 * k % STEPS) / STEPS for k in range(STEPS)]
        work(page, control, values, "threadTicks")
        idle, step = (
            min(work(page, control, given, "threadTicks")["all"] for _ in range(ROUNDS))
            for given in ([None] * STEPS, values)
        )
        report(f"{lab.__name__}, a step of {control}, processor time", step - idle, "ms", 8)
        page.context.close()


def measure_pages(browser, folder: Path) -> None:
    """Report when the first lab is alive: in a file of its own and in the book's pages."""
    files = [AttentionLab(name="lab").save(folder / "lab.html")]
    files += [ROOT / "_build/html/book" / name for name in ("index.html", "qkv.html")]
    for path in files:
        if path.exists():
            ready = time_until_ready(browser, path.as_uri())
            report(f"first lab alive after load, {path.name}", ready, "ms", TARGETS["ready"])
        else:
            print(f"{path.name} is not built: make book")


def measure_bundles() -> None:
    """Report the sizes of what esbuild made."""
    for name in ("labs.page.js", "labs.mjs", "labs.css"):
        target = TARGETS["bundle"] if name == "labs.page.js" else None
        report(f"bundle {name}", (STATIC / name).stat().st_size / 1024, "KB", target)


# In JupyterLab ------------------------------------------------------------------

_INTERACT = """
%matplotlib inline
from ipywidgets import FloatSlider, interact
from matplotlib import pyplot as plt
from attn_lib.labs import AttentionLab
from attn_lib.figures import heatmap
lab = AttentionLab(scene="random", n=12, d_k=64, title="measured")
@interact(temperature=FloatSlider(1.0, min=0.1, max=10, step=0.1))
def draw(temperature):
    lab.temperature = temperature
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.5))
    heatmap(left, lab.scores, kind="scores", rows=lab.tokens, cols=lab.tokens)
    heatmap(right, lab.weights, rows=lab.tokens, cols=lab.tokens)
    plt.show()
"""

# From the key press until the frame after the new picture is in the page.
_FROM_KEY_TO_PICTURE = """async ([press, watch, changed]) => {
  const target = document.querySelector(watch);
  const begun = performance.now();
  const picture = new Promise((done) => {
    const observer = new MutationObserver(async () => {
      const image = changed === "img" ? target.querySelector("img") : target;
      if (!image || image === window.lastImage && changed === "img") return;
      observer.disconnect();
      if (changed === "img") await (window.lastImage = image).decode();
      done();
    });
    observer.observe(target, {subtree: true, childList: true, attributes: true});
  });
  const input = document.querySelector(press);
  if (input.tagName === "INPUT") {
    input.stepUp();
    input.dispatchEvent(new Event("input", {bubbles: true}));
  } else {
    input.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
  }
  await picture;
  await new Promise((shown) => requestAnimationFrame(() => setTimeout(shown)));
  return performance.now() - begun;
}"""


def from_key_to_picture(page, press: str, watch: str, changed: str, times: int) -> float:
    """Give the median time from input to picture, in ms."""
    seen = []
    for _ in range(times):
        seen.append(page.evaluate(_FROM_KEY_TO_PICTURE, [press, watch, changed]))
        page.wait_for_timeout(300)  # a reader who looks
    return statistics.median(seen[2:])


def measure_jupyter(browser, folder: Path) -> None:
    """Report both ways to the same two heatmaps, in one notebook."""
    with serve(folder) as (address, token):
        notebook = open_notebook(browser, address, token, "qkv.md")
        notebook.run(_INTERACT)
        notebook.run("lab")
        page = notebook.page
        page.locator(".widget-output img").first.wait_for()
        page.locator("figure.attn-lab[data-ready=true]").first.wait_for()
        page.evaluate("window.lastImage = document.querySelector('.widget-output img')")
        slow = from_key_to_picture(
            page, ".noUi-handle", ".widget-interact .widget-output", "img", times=17
        )
        lab = "figure.attn-lab[aria-label=measured]"
        weights = f'{lab} table[data-panel="weights"]'
        quick = from_key_to_picture(
            page, f"{lab} [data-control=temperature]", weights, "cells", times=32
        )
        page.context.close()
    report("input to picture, interact + matplotlib", slow, "ms")
    report("input to picture, AttentionLab in JupyterLab", quick, "ms")
    report("ratio", slow / quick, "", TARGETS["ratio"], least=True)


PARTS_TO_RUN = {
    "pages": measure_pages,
    "steps": measure_steps,
    "labs": measure_labs,
    "jupyter": measure_jupyter,
}


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS_TO_RUN, []])  # none: all
    arguments = parser.parse_args()
    path = find_chromium.ensure()
    measure_bundles()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=find_chromium.FLAGS)
        for part in arguments.parts or PARTS_TO_RUN:
            (place := Path(folder) / part).mkdir()
            PARTS_TO_RUN[part](browser, place)
        browser.close()


if __name__ == "__main__":
    main()
