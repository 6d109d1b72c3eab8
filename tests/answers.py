"""What the tests of checks share: the table behind a check, and tests made of a table."""

import sys
from unittest import mock

import pytest


def table_of(check):
    """Give what a check hands to check_function beside the answer: right, cases, mistakes, …"""
    table = {}
    room = sys.modules[check.__module__]
    with mock.patch.object(room, "check_function", lambda function, **rest: table.update(rest)):
        check(None)
    return {"mistakes": (), "returns": ("answer",)} | table


def accepted(answers):
    """Make a test of pairs (check, right answer)."""

    @pytest.mark.parametrize(("check", "answer"), answers)
    def test(check, answer):
        report = check(answer)
        assert report.ok and report, report
        assert repr(report).startswith("Right. ") and "agrees with the book's" in report.text

    return test


def named(answers):
    """Make a test of triples (check, wrong answer, the mistake's name, or None if unknown)."""

    @pytest.mark.parametrize(("check", "answer", "name"), answers)
    def test(check, answer, name):
        report = check(answer)  # quietly: warnings are errors in this suite
        assert not report.ok and not report and report.mistake == name, report
        assert repr(report).startswith("Not yet: ")

    return test
