"""attn_lib.checks.engine: what it says of answers that no table knows, and of values by hand."""

import math
import warnings

import numpy as np
import pytest

from attn_lib import attention_scores
from attn_lib.checks import (
    EXERCISES,
    Case,
    Mistake,
    Report,
    by_hand,
    check,
    check_function,
    check_softmax,
    check_value,
    random_inputs,
)


def check_scores(function):
    """A check without a table: all that is said comes from the engine."""
    return check_function(
        function,
        right=attention_scores,
        cases=[
            Case(random_inputs(0, Q=(4, 5), K=(6, 5))),
            Case(random_inputs(1, Q=(3, 2), K=(5, 2))),
        ],
        returns=("scores",),
    )


# Any answer at all


def scores_that(body):
    """Wrap a wrong right answer: the right scores, and something else that happens."""

    def answer(Q, K):
        return body(Q, K, Q @ K.T / np.sqrt(K.shape[1]))

    return answer


def no_return(Q, K):
    Q @ K.T


def unwritten(Q, K):
    raise NotImplementedError


def dots(Q, K):
    return ...


def broken(Q, K):
    table = {"a`b": 1}
    return table["`<b>x</b>`\n| y |"]


def in_place(Q, K):
    Q /= np.sqrt(K.shape[1])
    return Q @ K.T


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3, "without calling it; this is `int`"),
        (np.eye(2), "this is `ndarray`"),
        (None, "this is `NoneType`"),
        (lambda Q: Q, "must take (Q, K); it takes `(Q)`"),
        (lambda Q, K, V: Q, "it takes `(Q, K, V)`"),
        (no_return, "returns None for the scores: is a `return` missing?"),
        (dots, "returns Ellipsis"),
        (unwritten, "not written yet"),
        (lambda Q, K: (), "empty tuple"),
        (lambda Q, K: "abc", "returns `str`, not an array of numbers"),
        (lambda Q, K: [[1, 2], [3]], "rows of different lengths"),
        (lambda Q, K: 1j * Q, "not an array of numbers"),
        (lambda Q, K: 1.0, "the shape of your scores is (), and should be (4, 6)"),
        (lambda Q, K: Q @ Q.T, "the shape of your scores is (4, 4), and should be (4, 6)"),
        (scores_that(lambda Q, K, S: S * 0 / 0), "multiplying 0 by −∞"),
        (scores_that(lambda Q, K, S: 3 * S), "every entry of your scores is 3 times"),
        (in_place, "right, but your function changes `Q`"),
        (lambda Q, K: np.ones((len(Q), len(K))), "stays the same when `Q` changes"),
        (
            scores_that(lambda Q, K, S: S + (np.indices(S.shape).sum(0) == 3) * np.eye(4, 6)[1]),
            "your scores[2, 1] is",
        ),
    ],
)
def test_what_is_said_of_other_wrong_answers(answer, words):
    report = check_scores(answer)
    assert not report.ok and report.mistake is None
    assert words in report.text


def test_an_exception_is_told_in_one_line_with_the_readers_own():
    text = check_scores(broken).text
    assert "\n" not in text and "Traceback" not in text
    assert "`return table[\"'<b>x</b>'\\n| y |\"]`" in text
    assert "`KeyError: " in text and text.count("`") % 2 == 0


def test_functions_without_a_signature_are_called():
    assert check_softmax(np.frompyfunc(math.exp, 1, 1)).ok is False
    assert check_scores(np.add).mistake is None


# Reports and new checks


def test_a_report_is_its_verdict():
    good, bad = Report(True, "Well."), Report(False, "no.", "name")
    assert good and not bad and good.ok and not bad.ok
    assert (repr(good), repr(bad)) == ("Right. Well.", "Not yet: no.")
    assert bad._repr_markdown_() == "**Not yet:** no."
    assert good._repr_markdown_() == "**Right.** Well."
    assert str(bad) == repr(bad)


def test_a_new_check_takes_ten_lines():
    def check_norm(function):
        return check_function(
            function,
            right=lambda x: np.linalg.norm(x),
            cases=[Case(random_inputs(0, x=(5,)))],
            mistakes=[Mistake("no root", "you forgot the root.", lambda x: x @ x)],
            returns=("norm",),
        )

    assert check_norm(lambda x: math.hypot(*x)).ok
    assert check_norm(lambda x: sum(x**2)).mistake == "no root"
    assert "your norm is" in check_norm(lambda x: x[0]).text


def test_a_check_whose_own_answer_fails_is_refused():
    with pytest.raises(ValueError, match=r"right answer itself fails on x \(5,\)"):
        check_function(len, right=lambda x: None, cases=[Case(random_inputs(0, x=(5,)))])


def test_an_argument_that_does_not_matter_may_stay_unused():
    report = check_function(
        lambda x, y: y**3, right=lambda x, y: y**2, cases=[Case(random_inputs(0, x=(2,), y=(3,)))]
    )
    assert not report.ok and "is it used" not in report.text


def test_the_readers_warnings_do_not_reach_the_page():
    def loud(Q, K):
        warnings.warn("deprecated", stacklevel=1)
        return Q @ K.T / np.sqrt(K.shape[1])

    assert check_scores(loud).ok


def test_random_inputs_are_the_same_each_time_and_of_order_one():
    first, again, other = (random_inputs(seed, X=(40, 3), Y=(2,)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first["X"], again["X"])
    assert not np.allclose(first["X"], other["X"])
    assert list(first) == ["X", "Y"] and 0.8 < first["X"].std() < 1.2


# Exercises by hand


class TestValues:
    def check(self, given):
        return check_value(
            given,
            right=8 / math.sqrt(64),
            mistakes={"you forgot to divide by √d_k.": 8.0, "you divided by d_k.": 8 / 64},
        )

    @pytest.mark.parametrize(
        "given", [1, 1.005, 0.995, np.float32(1), [1], (1,), np.array(1.0), np.array([[1.0]])]
    )
    def test_right(self, given):
        assert self.check(given).ok

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            (8, "you forgot to divide"),
            (0.13, "you divided by d_k"),
            (None, "no answer yet"),
            (..., "no answer yet"),
            ("one", "expected numbers, got `'one'`"),
            ({}, "expected numbers"),
            (math.nan, "NaN"),
            (-1, "sign"),
            (100, "percentage"),
            (1.02, "close: the error is 0.02, allowed is 0.005"),
            (3, "this is not the value"),
            ([1, 1], "has shape (), yours has (2,)"),
        ],
    )
    def test_wrong(self, given, words):
        report = self.check(given)
        assert not report.ok and words in report.text

    def test_a_known_mistake_is_kept_for_statistics(self):
        assert self.check(8).mistake == "you forgot to divide by √d_k."
        assert self.check(3).mistake is None

    def test_the_right_value_is_not_given_away(self):
        for given in (0.7, 3, 8, 1.02):
            assert "1.0" not in self.check(given).text.replace("1.02", "")

    def test_matrices(self):
        right = np.array([[0.25, 0.75], [0.5, 0.5], [1, 0]])
        assert check_value(right.tolist(), right=right).ok
        assert "rows are queries" in check_value(right.T, right=right).text
        off = right.copy()
        off[1, 0] = 0.9
        assert (
            "1 of 6 entries are wrong, the first at index (1, 0)"
            in check_value(off, right=right).text
        )
        assert "has shape (3, 2), yours has (2,)" in check_value([0.25, 0.75], right=right).text

    def test_a_row_is_a_vector(self):
        right = [0.1, 0.2, 0.7]
        for given in (right, tuple(right), [right], np.array([right])):
            assert check_value(given, right=right).ok
        assert "has shape (3,), yours has (3, 1)" in check_value(np.c_[right], right=right).text

    def test_a_mistake_in_some_entries_is_named_and_no_other(self):
        def told(given):
            return check_value(given, right=[1, 2, 3], mistakes={"doubled.": [2, 4, 6]}).text

        assert told([2, 4, 6]) == told([1, 4, 3]) == told([2, 2, 3]) == "doubled."
        assert "2 of 3 entries are wrong" in told([2, 2, 8])

    def test_each_entry_may_have_its_own_tolerance(self):
        def given(*answer):
            return check_value(answer, right=[1, 100], tol=[0.01, 1])

        assert given(1, 101).ok and not given(1.02, 100).ok and not given(1, 102).ok
        assert "the error is 2, allowed is 1" in given(1, 102).text

    def test_a_function_is_asked_for_the_right_value_when_an_answer_comes(self):
        asked = []
        answered = by_hand(lambda: asked.append(1) or [1, 2], lambda: {"twice.": [2, 4]})
        assert not asked
        assert answered([1, 2.01]).ok and answered([2, 4]).mistake == "twice." and asked
        assert by_hand(3, {"half.": 1.5})(1.5).mistake == "half."

    def test_tolerance(self):
        assert check_value(0.3333, right=1 / 3, tol=1e-4).ok
        assert not check_value(0.333, right=1 / 3, tol=1e-4).ok
        assert check_value(0.125, right=0.13, tol=0.005).ok

    def test_a_check_that_cannot_tell_right_from_wrong_is_refused(self):
        with pytest.raises(ValueError, match=r"this mistake gives the right answer: 'no scale'"):
            check_value(1, right=1.0, mistakes={"no scale": 1.004})


# Parts of an answer


def shifted(x, y):
    return x + 1, y + 1


PARTS = [Case(random_inputs(0, x=(3, 2), y=(3, 2)))]


def given(answer, **options):
    return check_function(answer, right=shifted, cases=PARTS, returns=("first", "last"), **options)


def test_a_list_of_parts_is_read_as_a_tuple_is():
    for kind in (tuple, list):
        assert given(lambda x, y, kind=kind: kind(shifted(x, y))).ok
        wrong = given(lambda x, y, kind=kind: kind([x + 1, y]))
        assert not wrong.ok and "your last" in wrong.text


def test_rows_in_a_list_are_one_part():
    assert given(lambda x, y: (y + 1).tolist()).ok
    assert given(lambda x, y: tuple(y + 1)).ok


def test_all_parts_are_asked_for_where_each_counts():
    last = given(lambda x, y: y + 1, needs_all=True)
    assert given(lambda x, y: y + 1).ok and not last.ok
    assert "all of (first, last) are asked for; your function returns 1 of them" in last.text
    assert given(shifted, needs_all=True).ok


def test_a_row_for_a_vector_and_an_entry_for_a_number_are_right():
    def answered(function, right):
        return check_function(function, right=right, cases=[Case(random_inputs(0, x=(3,)))])

    assert answered(lambda x: x[None], lambda x: x).ok
    assert answered(lambda x: [x.sum()], lambda x: x.sum()).ok
    assert not answered(lambda x: x[:, None], lambda x: x).ok


# By label


def test_an_exercise_is_found_by_its_label(monkeypatch):
    monkeypatch.setitem(EXERCISES, "ex-some-where", by_hand(3))
    assert check("ex-some-where", 3).ok and not check("ex-some-where", 4).ok
    with pytest.raises(
        ValueError, match=r"'ex-some-wher' has a check\. Did you mean 'ex-some-where'"
    ):
        check("ex-some-wher", 3)
    with pytest.raises(ValueError, match=r"no exercise 'x' has a check\.$"):
        check("x", 3)
