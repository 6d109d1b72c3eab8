"""The room that a page keeps for a lab is the room that the lab takes."""

import json

import pytest
from browser.heights import HEIGHTS, NAMED, measure, measure_book, states

from attn_lib import labs
from attn_lib.labs import base

LABS = [getattr(labs, name) for name in labs.__all__ if name.endswith("Lab")]
NEAR = 0.06  # fonts differ from machine to machine


def test_the_heights_are_those_of_this_look(chromium, tmp_path):
    """Of all that was measured, the first and the last state of each lab, and the first look."""
    chosen = [[each for each in states() if each[0] is kind] for kind in LABS]
    ends = [each for of_a_lab in chosen for each in (of_a_lab[0], of_a_lab[-1])]
    these = [kind(**made) for kind, made, _ in ends] + [kind() for kind in LABS]
    for lab, px in zip(these, measure(chromium, tmp_path / "heights.html", these), strict=True):
        for kept, found in zip(lab.reserve, px, strict=True):
            assert abs(kept - found) <= NEAR * found, (lab.kind, lab.data(), lab.reserve, px)


def test_every_lab_was_measured():
    assert sorted({*json.loads(HEIGHTS.read_text())} - {NAMED}) == [kind.__name__ for kind in LABS]


@pytest.mark.build
def test_the_book_keeps_the_room_that_its_labs_take(chromium, built_book):
    kept = json.loads(HEIGHTS.read_text())[NAMED]
    found = measure_book(chromium, built_book)
    assert sorted(kept) == sorted(found)
    for name, px in found.items():
        for was, now in zip(kept[name], px, strict=True):
            assert abs(was - now) <= NEAR * now, (name, kept[name], px)


def test_the_nearest_state_counts():
    assert labs.AttentionLab(scene="random", n=40).reserve in (
        labs.AttentionLab(scene="random", n=32).reserve,
        labs.AttentionLab(scene="random", n=48).reserve,
    )
    roles, random = (labs.HeadsLab(scene=scene, heads=2) for scene in ("roles", "random"))
    assert roles.reserve != random.reserve
    assert 'style="--attn-wide:{}px;--attn-narrow:{}px"'.format(*roles.reserve) in roles.to_html()


def test_a_lab_that_was_not_measured_keeps_some_room(monkeypatch):
    monkeypatch.setattr(base, "_heights", dict)
    assert labs.AttentionLab().reserve == (700, 1400)
