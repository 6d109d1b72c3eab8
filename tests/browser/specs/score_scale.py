"""ScoreScaleLab: one draw, measured raw and scaled."""

from __future__ import annotations

import numpy as np
from browser.driver import LabDriver, Shown
from browser.specs.spec import CLOSE, LabSpec

from attn_lib.labs import ScoreScaleLab
from attn_lib.labs.score_scale.figure import SIDE, score_bins
from attn_lib.labs.score_scale.lab import VECTORS, WIDTHS

ROWS = ("mean", "predicted_mean", "variance", "predicted_variance")
ROWS += ("largest_weight", "entropy", "median_gradient", "mean_gradient")


def parity(lab: LabDriver, python: ScoreScaleLab) -> None:
    lab.open()
    shown = lab.shown()
    raw, scaled = python.unscaled, python.scaled
    expected = [[getattr(raw, name), getattr(scaled, name)] for name in ROWS]
    np.testing.assert_allclose(shown.panels["measured"].table[:, 1:], expected, **CLOSE)
    for panel, each, factor in (("raw", raw, 1), ("scaled", scaled, python.d_k**-0.5)):
        side = SIDE * scaled.predicted_variance**0.5
        edges = score_bins(each.predicted_mean, each.predicted_variance, side=side)
        count, _ = np.histogram(python.scores * factor, edges)
        density = count / (python.scores.size * np.diff(edges))
        centres = (edges[1:] + edges[:-1]) / 2
        drawn = shown.panels[panel].table
        np.testing.assert_allclose(drawn, np.transpose([centres, density]), **CLOSE)
    assert_curves(shown, python)


def assert_curves(shown: Shown, python: ScoreScaleLab) -> None:
    raw, scaled = python.curves
    columns = {name: [getattr(raw, name), getattr(scaled, name)] for name in ROWS}
    columns["gradient"] = columns["mean_gradient"] + columns["median_gradient"]
    for panel in ("variance", "largest_weight", "entropy", "gradient"):
        expected = np.transpose([python.widths, *columns[panel]])
        np.testing.assert_allclose(shown.panels[panel].table, expected, **CLOSE)


def random_state(rng) -> dict:
    return {
        "d_k": int(rng.choice([1, 2, 512, rng.integers(1, 513)])),
        "vectors": str(rng.choice(VECTORS)),
        "mu": round(rng.uniform(0, 2), 3),
        "cosine": float(rng.choice([0, 1, round(rng.uniform(), 3)])),
        "seed": int(rng.integers(10000)),
    }


def set_width(lab, python, rng):
    stop = int(rng.integers(len(WIDTHS)))
    lab.control("d_k").fill(str(stop))
    python.d_k = WIDTHS[stop]


def choose_vectors(lab, python, rng):
    python.vectors = str(rng.choice(VECTORS))
    lab.control("vectors").select_option(python.vectors)


def set_what_the_vectors_have(lab, python, rng):
    """A mean or a cosine, as the case may be."""
    for name in ("mu", "cosine"):
        if lab.control(name).is_visible():
            setattr(python, name, 0.05 * int(rng.integers(1, 20)))
            lab.control(name).fill(f"{getattr(python, name):.2f}")


def draw(lab, python, rng):
    if rng.integers(2):
        lab.action("resample").click()
        python.seed += 1
    else:
        python.seed = int(rng.integers(9990))
        lab.control("seed").fill(str(python.seed))
        lab.control("seed").press("Tab")


def keyboard(lab: LabDriver) -> dict:
    lab.control("d_k").focus()
    lab.page.keyboard.press("End")
    lab.page.keyboard.press("ArrowLeft")
    lab.action("resample").press("Enter")
    return {"d_k": WIDTHS[-2], "seed": 1}


SPEC = LabSpec(
    ScoreScaleLab,
    parity=parity,
    random_state=random_state,
    links=10,
    moves=12,
    actions=[set_width, choose_vectors, set_what_the_vectors_have, draw],
    stops=["d_k", "reset", "link", "more", "vectors", "seed", "resample", "summary"],
    keyboard=keyboard,
    bad_links={
        "d_k=0": {"d_k": 1},
        "d_k=1e9": {"d_k": 512},
        "vectors=<b>": {},
        "mu=-1": {"mu": 0.0},
        "seed=x": {},
        "q=1": {},
    },
    looks=[{}, {"vectors": "tied-self", "d_k": 512}],
    quick=("d_k", [*range(9), 3], {"d_k": WIDTHS[3]}),
    kernel={"seed": 7},
)
