"""The table of labs: `test_every_lab` and `test_every_page` run through it.

A new lab: write its file here, as the others are, and add it to the list.
"""

from browser.specs import (
    attention,
    contribution,
    cost,
    cross,
    heads,
    lookup,
    mask,
    position,
    score_scale,
    tiling,
    training,
)

LABS = (
    attention,
    contribution,
    cost,
    cross,
    heads,
    lookup,
    mask,
    position,
    score_scale,
    tiling,
    training,
)
SPECS = {lab.SPEC.name: lab.SPEC for lab in LABS}
