"""What the tests of checks share: the table behind a check, and tests made of a table."""

import sys
from unittest import mock

import pytest

from attn_lib.checks import EXERCISES


def table_of(check):
    """Give what a check hands to check_function beside the answer: right, cases, mistakes, …"""
    table = {}
    room = sys.modules[check.__module__]
    with mock.patch.object(room, "check_function", lambda function, **rest: table.update(rest)):
        check(None)
    return {"mistakes": (), "returns": ("answer",)} | table


def accepted(answers):
    """Make a test of pairs (check or label of an exercise, right answer)."""

    @pytest.mark.parametrize(("check", "answer"), answers)
    def test(check, answer):
        report = EXERCISES.get(check, check)(answer)
        assert report.ok and report, report
        assert repr(report).startswith("Right. ")

    return test


def named(answers):
    """Make a test of triples (check or label, wrong answer, the mistake's name, None if unknown).

    By hand a mistake is named by its words; the beginning of them is enough.
    """

    @pytest.mark.parametrize(("check", "answer", "name"), answers)
    def test(check, answer, name):
        # quietly: warnings are errors in this suite
        report = EXERCISES.get(check, check)(answer)
        assert not report.ok and not report, report
        assert (report.mistake or "").startswith(name) if name else report.mistake is None, report
        assert repr(report).startswith("Not yet: ")

    return test
