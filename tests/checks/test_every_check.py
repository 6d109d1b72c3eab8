"""Every check of every chapter: its own answer passes, and each mistake of its table is named.

A new check is tried here without being named: in its chapter's test stand answers as readers write
them.
"""

import inspect
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from answers import table_of

import attn_lib
from attn_lib import checks
from attn_lib.checks import check_masked_attention

ROOM = Path(checks.__file__).parent
CHAPTERS = {path.stem: getattr(checks, path.stem) for path in sorted(ROOM.glob("[a-z]*.py"))}
for other in ("engine", "exercises"):
    CHAPTERS.pop(other)
CHECKS = {name: getattr(checks, name) for room in CHAPTERS.values() for name in room.__all__}
MISTAKES = [
    (check, mistake) for check in CHECKS.values() for mistake in table_of(check)["mistakes"]
]

# Three words for one NaN: a masked row that is empty, and a score far above or below the others.
SAME_NAN = {"NaN from an empty row", "exp overflows", "one maximum for all rows"}

every_check = pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
every_mistake = pytest.mark.parametrize(
    ("check", "mistake"), MISTAKES, ids=lambda x: getattr(x, "name", None) or x.__name__
)


def same(name, other, check):
    return name == other or (check is check_masked_attention and {name, other} <= SAME_NAN)


@every_check
def test_its_own_answer_passes(check):
    table = table_of(check)
    assert check(table["right"]).ok and len(table["cases"]) >= 2


@every_mistake
def test_a_known_mistake_is_named_and_told_in_its_own_words(check, mistake):
    report = check(mistake.make)
    assert not report.ok and same(report.mistake, mistake.name, check), report
    told = [m.why for c, m in MISTAKES if c is check and m.name == report.mistake]
    assert any(report.text.startswith(why) for why in told)


@every_mistake
def test_a_mistake_is_explained_not_only_named(check, mistake):
    assert len(mistake.why) > 20 and mistake.why[-1] in ".?…)"


@every_check
def test_the_first_case_tells_mistakes_apart(check):
    """Not only by a rounding: or one might be named where another was made."""
    table = table_of(check)
    first = table["cases"][0]

    def tried(function):
        answer = function(*(x.copy() if hasattr(x, "copy") else x for x in first.inputs.values()))
        parts = answer if isinstance(answer, tuple) else (answer,)
        return [np.asarray(part, float) for part in parts[-len(table["returns"]) :]]

    def alike(one, other):
        return len(one) == len(other) and all(
            a.shape == b.shape and np.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True)
            for a, b in zip(one, other, strict=True)
        )

    right, given = tried(table["right"]), []
    for mistake in table["mistakes"]:
        try:
            with np.errstate(all="ignore"):
                answer = tried(mistake.make)
        except (ValueError, IndexError):
            continue  # told by the error
        if not alike(answer, right):  # what is right here shows in a later case
            given.append((mistake.name, answer))
    assert len(given) >= 2
    for (name, one), (other, two) in combinations(given, 2):
        assert same(name, other, check) or not alike(one, two), (name, other)


@pytest.mark.parametrize("chapter", CHAPTERS.values(), ids=CHAPTERS)
def test_a_chapter_lists_all_its_checks(chapter):
    made = [
        name
        for name, function in vars(chapter).items()
        if name.startswith("check_")
        and inspect.isfunction(function)
        and function.__module__ == chapter.__name__
    ]
    assert sorted(made) == chapter.__all__ != []
    assert set(made) <= set(checks.__all__)


def test_no_check_hides_another_name():
    """In a chapter checks stand beside the functions of attn_lib."""
    assert len(set(checks.__all__)) == len(checks.__all__)
    assert not set(checks.__all__) & set(attn_lib.__all__)
