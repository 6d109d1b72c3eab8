"""AttentionLab's states, set in ways that only some labs know; `test_every_lab` sets the rest."""

from __future__ import annotations

from urllib.parse import quote

import numpy as np
import pytest
from browser.driver import LabDriver
from browser.specs.attention import SPEC, random_state

from attn_lib.labs import AttentionLab

# Through links ----------------------------------------------------------------


def as_fragment(state: dict, rng) -> str:
    """Write a link to a state; fields in any order, commas plain or encoded."""
    fields = []
    for key in rng.permutation(list(state)):
        value = state[key]
        text = ",".join(map(str, value)) if key == "order" else str(value)
        text = text.lower() if isinstance(value, bool) else text
        fields.append(f"{key}={quote(text, safe=',' if rng.integers(2) else '')}")
    return f"#lab?{'&'.join(fields)}"


@pytest.mark.parametrize("seed", range(8))
def test_a_state_set_through_the_address_when_the_page_opens(open_page, saved, seed):
    rng = np.random.default_rng(200 + seed)
    state = random_state(rng)
    page = open_page(saved().as_uri() + as_fragment(state, rng))
    SPEC.parity(LabDriver(page), AttentionLab(**state))


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ("?temperature=0.37", {"temperature": 0.37}),
        ("?order=8,7,6,5,4,3,2,1,0", {"order": [8, 7, 6, 5, 4, 3, 2, 1, 0]}),
        ("?scale=false&mask=causal", {"scale": False, "mask": "causal"}),
        ("?query=3", {"query": 3}),
        ("", {}),
    ],
)
def test_a_link_that_says_a_little_leaves_the_rest_as_it_was(open_page, saved, fields, changes):
    page = open_page(saved().as_uri() + "#lab" + fields)
    SPEC.parity(LabDriver(page), AttentionLab(**changes))


# Beyond the book's scenes -----------------------------------------------------


@pytest.mark.parametrize("n", [2, 13, 32])
def test_random_scenes_of_other_sizes(open_page, saved, n):
    given = {"n": n, "scene": "random", "d_k": 64, "mask": "causal", "order": list(range(n))[::-1]}
    lab = LabDriver(open_page(saved(**given)))
    SPEC.parity(lab, AttentionLab(**given))
    lab.control("d_k").fill("5")
    lab.control("temperature").fill("0.3")
    SPEC.parity(lab, AttentionLab(**given | {"d_k": 5, "temperature": 2.0}))


@pytest.mark.parametrize("temperature", [0.01, 100.0])
def test_extreme_temperatures_without_scaling(open_page, saved, temperature):
    given = {"scene": "random", "d_k": 64, "scale": False, "temperature": temperature}
    lab = LabDriver(open_page(saved(**given)))
    SPEC.parity(lab, AttentionLab(**given))
    assert np.isfinite(lab.shown().weights.values).all()
