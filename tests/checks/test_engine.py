"""attn_lib.checks: right answers in any style pass, each known wrong one is named."""

import itertools
import math
import warnings

import numpy as np
import pytest

import attn_lib
from attn_lib import checks
from attn_lib.checks import (
    Case,
    Report,
    check_attention,
    check_causal_mask,
    check_function,
    check_masked_attention,
    check_scores,
    check_self_attention,
    check_softmax,
    check_value,
    check_window_mask,
    random_inputs,
)
from attn_lib.checks.mistakes import Mistake

EXERCISES = [
    check_scores,
    check_softmax,
    check_attention,
    check_self_attention,
    check_masked_attention,
    check_causal_mask,
    check_window_mask,
]


# Answers as readers write them, with nothing but numpy


def row_softmax(S, axis=-1):
    E = np.exp(S - S.max(axis=axis, keepdims=True))
    return E / E.sum(axis=axis, keepdims=True)


def scores_by_loops(Q, K):
    return [[sum(a * b for a, b in zip(q, k, strict=True)) / len(k) ** 0.5 for k in K] for q in Q]


def softmax_by_loops(S):
    result = []
    for row in S:
        powers = [math.exp(s - max(row)) for s in row]
        result.append([p / sum(powers) for p in powers])
    return result


def attention_by_einsum(Q, K, V):
    S = np.einsum("ik,jk->ij", Q, K) / np.sqrt(Q.shape[1])
    A = row_softmax(S)
    return A, np.einsum("ij,jc->ic", A, V)


def attention_one_query_at_a_time(Q, K, V):
    return np.stack([row_softmax(K @ q / np.sqrt(len(q))) @ V for q in Q])


def attention_in_float32(Q, K, V):
    return attention_by_einsum(*(M.astype(np.float32) for M in (Q, K, V)))[1]


def masked_by_choice(Q, K, V, keep):
    O = np.zeros((len(Q), V.shape[1]))
    for i, allowed in enumerate(keep):
        if allowed.any():
            O[i] = row_softmax(K[allowed] @ Q[i] / np.sqrt(K.shape[1])) @ V[allowed]
    return O


def masked_by_minus_infinity(Q, K, V, keep):
    S = Q @ K.T / np.sqrt(K.shape[1])
    S[~keep] = -np.inf
    E = np.exp(S - np.maximum(S.max(axis=1, keepdims=True), -1e300))
    total = E.sum(axis=1, keepdims=True)
    return E @ V / np.where(total > 0, total, 1)


RIGHT = [
    (check_scores, attn_lib.attention_scores),
    (check_scores, scores_by_loops),
    (check_scores, lambda Q, K: (Q / K.shape[1] ** 0.25) @ (K / K.shape[1] ** 0.25).T),
    (check_softmax, attn_lib.softmax),
    (check_softmax, softmax_by_loops),
    (check_softmax, lambda S: np.exp(S - np.logaddexp.reduce(S, axis=1, keepdims=True))),
    (check_attention, attn_lib.attention),
    (check_attention, attention_by_einsum),
    (check_attention, attention_one_query_at_a_time),
    (check_attention, attention_in_float32),
    (check_self_attention, attn_lib.self_attention),
    (check_self_attention, lambda X, *W: attention_by_einsum(*(X @ M for M in W))),
    (check_masked_attention, lambda Q, K, V, keep: attn_lib.attention(Q, K, V, mask=keep).output),
    (check_masked_attention, masked_by_choice),
    (check_masked_attention, masked_by_minus_infinity),
    (check_causal_mask, lambda n, m, offset: np.tri(n, m, offset, dtype=bool)),
    (
        check_causal_mask,
        lambda n, m, offset: [[j <= i + offset for j in range(m)] for i in range(n)],
    ),
    (check_window_mask, lambda n, w: np.tri(n, dtype=bool) & ~np.tri(n, k=-w, dtype=bool)),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_right_answers_pass_however_they_are_written(check, answer):
    report = check(answer)
    assert report.ok and report, report
    assert repr(report).startswith("Right. ")


def head(Q, K, V, *, divide=None, axis=-1):
    A = row_softmax(Q @ K.T / (divide or np.sqrt(K.shape[1])), axis)
    return A, A @ V


def masked(change, after=lambda A, keep: A, divide=None, axis=-1):
    """Attention with the mask misapplied before or after the softmax; the output alone."""

    def answer(Q, K, V, keep):
        S = change(Q @ K.T / (divide or np.sqrt(K.shape[1])), keep)
        return after(row_softmax(S, axis), keep) @ V

    return answer


def forbid(S, keep):
    return np.where(keep, S, -np.inf)


WRONG = [
    # no scale, / d_k, / √d_model
    (check_scores, lambda Q, K: np.einsum("ik,jk->ij", Q, K), "no scale"),
    (check_scores, lambda Q, K: np.inner(Q, K) / Q.shape[1], "divided by d_k"),
    (check_scores, lambda Q, K: np.inner(Q, K) / 512**0.5, "divided by √d_model"),
    (check_scores, lambda Q, K: np.inner(Q, K) / 8, "divided by √d_model"),
    (check_scores, lambda Q, K: np.inner(Q, K) * Q.shape[1] ** 0.5, "multiplied by √d_k"),
    (
        check_scores,
        lambda Q, K: np.inner(Q, K) / len(K) ** 0.5,
        "divided by the root of a number of tokens",
    ),
    (check_attention, lambda Q, K, V: head(Q, K, V, divide=1)[1], "no scale"),
    (check_attention, lambda Q, K, V: head(Q, K, V, divide=1), "no scale"),
    (check_attention, lambda Q, K, V: head(Q, K, V, divide=K.shape[1])[1], "divided by d_k"),
    (check_attention, lambda Q, K, V: head(Q, K, V, divide=768**0.5)[1], "divided by √d_model"),
    (
        check_self_attention,
        lambda X, W_Q, W_K, W_V: head(X @ W_Q, X @ W_K, X @ W_V, divide=X.shape[1] ** 0.5)[1],
        "divided by √d_model",
    ),
    (
        check_self_attention,
        lambda X, W_Q, W_K, W_V: head(X @ W_Q, X @ W_K, X @ W_V, divide=1)[1],
        "no scale",
    ),
    (check_masked_attention, masked(forbid, divide=1), "no scale"),
    (check_masked_attention, masked(forbid, divide=5.0), "divided by d_k"),
    # wrong axis
    (check_softmax, lambda S: row_softmax(S, 0), "wrong axis"),
    (check_softmax, lambda S: np.exp(S) / np.exp(S).sum(0), "wrong axis"),
    (check_softmax, lambda S: np.exp(S) / np.exp(S).sum(), "one softmax for the whole table"),
    (check_attention, lambda Q, K, V: head(Q, K, V, axis=0)[1], "wrong axis"),
    (
        check_self_attention,
        lambda X, W_Q, W_K, W_V: head(X @ W_Q, X @ W_K, X @ W_V, axis=0),
        "wrong axis",
    ),
    (check_masked_attention, masked(forbid, axis=0), "wrong axis"),
    # softmax, step by step
    (check_softmax, lambda S: S, "no softmax"),
    (check_softmax, lambda S: np.exp(S), "not normalised"),
    (check_softmax, lambda S: S / S.sum(1)[:, None], "no exp"),
    (check_softmax, lambda S: np.exp(S) / np.exp(S).sum(1), "missing keepdims"),
    (check_softmax, lambda S: np.exp(S) / np.exp(S).sum(1)[:, None], "exp overflows"),
    (
        check_softmax,
        lambda S: np.exp(S - S.max()) / np.exp(S - S.max()).sum(1)[:, None],
        "one maximum for all rows",
    ),
    # Q, K and V in the wrong places
    (check_scores, lambda Q, K: K @ Q.T / Q.shape[1] ** 0.5, "swapped Q and K"),
    (check_scores, lambda Q, K: Q @ K / Q.shape[1] ** 0.5, "keys not transposed"),
    (check_scores, lambda Q, K: row_softmax(Q @ K.T / Q.shape[1] ** 0.5), "softmax applied"),
    (check_attention, lambda Q, K, V: head(K, Q, V), "swapped Q and K"),
    (check_attention, lambda Q, K, V: head(Q, K, V)[0].T @ V, "swapped Q and K"),
    (
        check_self_attention,
        lambda X, W_Q, W_K, W_V: head(X @ W_K, X @ W_Q, X @ W_V)[1],
        "swapped Q and K",
    ),
    (check_attention, lambda Q, K, V: head(Q, V, V), "values scored"),
    (check_self_attention, lambda X, W_Q, W_K, W_V: X @ W_Q @ (X @ W_V).T, "values scored"),
    (check_masked_attention, lambda Q, K, V, keep: Q @ V.T, "values scored"),
    (check_attention, lambda Q, K, V: V @ head(Q, K, V)[0], "V before A"),
    (check_attention, lambda Q, K, V: np.dot(V, head(Q, K, V)[0]), "V before A"),
    (check_attention, lambda Q, K, V: row_softmax(Q @ K.T / Q.shape[1] ** 0.5 @ V), "V before A"),
    (
        check_masked_attention,
        lambda Q, K, V, keep: V @ row_softmax(np.where(keep, Q @ K.T, -np.inf)),
        "V before A",
    ),
    (check_attention, lambda Q, K, V: head(Q, K, K), "keys mixed"),
    (check_attention, lambda Q, K, V: head(Q, K, V)[0], "output forgotten"),
    (check_attention, lambda Q, K, V: head(Q, K, V)[::-1], "weights and output exchanged"),
    (check_self_attention, lambda X, *W: head(X, X, X @ W[2]), "not projected"),
    (check_self_attention, lambda X, *W: head(X @ W[0], X @ W[1], X), "not projected"),
    (check_self_attention, lambda X, *W: W[0] @ X, "factors in the wrong order"),
    (
        check_attention,
        lambda Q, K, V: row_softmax(Q @ K.T) / K.shape[1] ** 0.5 @ V,
        "scaled after softmax",
    ),
    (check_attention, lambda Q, K, V: row_softmax(head(Q, K, V)[0]) @ V, "softmax twice"),
    # masks
    (check_masked_attention, masked(lambda S, keep: S), "mask ignored"),
    (check_masked_attention, masked(lambda S, keep: forbid(S, ~keep)), "mask polarity"),
    (check_masked_attention, masked(lambda S, keep: np.where(keep, S, 0)), "mask multiplied"),
    (check_masked_attention, masked(lambda S, keep: S + keep), "mask added as 0 and 1"),
    (
        check_masked_attention,
        masked(lambda S, keep: S, lambda A, keep: np.where(keep, A, 0)),
        "mask after softmax",
    ),
    (
        check_masked_attention,
        masked(lambda S, keep: S, lambda A, keep: A * keep / (A * keep).sum(axis=1, keepdims=True)),
        "mask after softmax",
    ),
    (
        check_masked_attention,
        masked(lambda S, keep: S - np.inf * np.logical_not(keep)),
        "NaN from 0·∞",
    ),
    (check_masked_attention, masked(forbid), "NaN from an empty row"),
    (
        check_masked_attention,
        masked(lambda S, keep: np.where(keep, S, np.finfo(float).min)),
        "large negative number instead of −∞",
    ),
    (
        check_masked_attention,
        masked(lambda S, keep: S - 1e9 * ~keep),
        "large negative number added",
    ),
    (check_causal_mask, lambda n, m, offset: np.tri(n, m, offset - 1) > 0, "own key forbidden"),
    (check_causal_mask, lambda n, m, offset: np.tri(n, m, offset) == 0, "mask polarity"),
    (check_causal_mask, lambda n, m, offset: np.tri(n, m) > 0, "offset ignored"),
    (check_causal_mask, lambda n, m, offset: np.tri(n, m, -offset) > 0, "offset subtracted"),
    (
        check_causal_mask,
        lambda n, m, offset: np.tri(n, m, offset).T > 0,
        "rows and columns exchanged",
    ),
    (
        check_causal_mask,
        lambda n, m, offset: np.triu(np.full((n, m), -np.inf), offset + 1),
        "float mask",
    ),
    (
        check_window_mask,
        lambda n, w: (np.tri(n) > 0) & (np.tri(n, k=-w - 1) == 0),
        "window one too wide",
    ),
    (
        check_window_mask,
        lambda n, w: (np.tri(n) > 0) & (np.tri(n, k=1 - w) == 0),
        "window one too narrow",
    ),
    (check_window_mask, lambda n, w: (np.tri(n, k=w - 1) - np.tri(n, k=-w)) > 0, "not causal"),
    (check_window_mask, lambda n, w: np.tri(n) > 0, "window ignored"),
]


@pytest.mark.parametrize(("check", "answer", "name"), WRONG)
def test_wrong_answers_are_named(check, answer, name):
    report = check(answer)  # quietly: warnings are errors in this suite
    assert not report.ok and not report
    assert report.mistake == name, report
    assert repr(report).startswith("Not yet: ")


# The tables themselves


class Tables(dict):
    """Mistakes and cases of each check, caught on the way to check_function."""


@pytest.fixture
def tables(monkeypatch):
    caught = Tables()
    for check in EXERCISES:

        def keep(function, check=check, **rest):
            caught[check] = rest
            return Report(True, "")

        monkeypatch.setattr(checks, "check_function", keep)
        check(None)
    return caught


def test_every_mistake_of_every_table_is_rejected_under_its_own_name(tables):
    shadowed = {"NaN from an empty row", "exp overflows", "one maximum for all rows"}
    for check, table in tables.items():
        for mistake in table["mistakes"]:
            report = check_function(mistake.make, **table)
            assert not report.ok, (check.__name__, mistake.name)
            alike = check is check_masked_attention and {report.mistake, mistake.name} <= shadowed
            assert report.mistake == mistake.name or alike, (check.__name__, mistake, report)


def test_inputs_have_distinct_sizes(tables):
    for check in EXERCISES[:5]:
        if check is check_softmax:
            continue
        for case in tables[check]["cases"]:
            sizes = [x.shape for name, x in case.inputs.items() if name != "keep"]
            flat = set(itertools.chain(*sizes))
            wanted = {2: 3, 3: 4, 4: 4}[len(sizes)]  # n, m, d_k (d_v; or n, d, d_k, d_v)
            assert len(flat) == wanted and 1 not in flat


def test_a_mistake_is_explained_not_only_named(tables):
    for table in tables.values():
        for mistake in table["mistakes"]:
            assert len(mistake.why) > 40 and mistake.why.endswith(".")


# What the engine sees without a table


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


def test_a_known_error_keeps_the_readers_line():
    report = check_attention(lambda Q, K, V: V @ head(Q, K, V)[0])
    assert "the values come last" in report.text
    assert "V @ head(Q, K, V)[0]" in report.text


def test_two_mistakes_at_once_are_still_seen():
    report = check_attention(lambda Q, K, V: head(Q, K, V, divide=3.3, axis=0))
    assert "sum to one along columns" in report.text
    report = check_attention(lambda Q, K, V: tuple(0.4 * M for M in head(Q, K, V, divide=3.3)))
    assert "your first row sums to 0.4" in report.text


def test_functions_without_a_signature_are_called():
    assert check_softmax(np.frompyfunc(math.exp, 1, 1)).ok is False
    assert check_scores(np.add).mistake is None


def test_a_mask_is_boolean():
    report = check_causal_mask(lambda n, m, offset: np.tri(n, m, offset))
    assert not report.ok and "float64, not bool" in report.text


def test_other_mask_errors_do_not_trip_over_booleans():
    def answer(n, m, offset):
        mask = np.tri(n, m, offset) > 0
        mask[0, 0] ^= True
        return mask

    assert "your mask[0, 0] is 0, and should be 1" in check_causal_mask(answer).text


def test_an_answer_without_a_keyword_is_not_confused_by_masked_scores():
    report = check_attention(lambda Q, K, V: (np.ones((4, 6)) / 6, np.ones((4, 3))))
    assert not report.ok


def test_the_cases_come_in_order_and_their_note_is_told():
    def spoilt_on_large_scores(Q, K, V):
        A, O = head(Q, K, V)
        return A, O + (np.abs(Q).max() > 100)

    assert "(with scores in the thousands)" in check_attention(spoilt_on_large_scores).text


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

    @pytest.mark.parametrize("given", [1, 1.004, 0.996, np.float32(1), [1][0], np.array(1.0)])
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
            ([1], "has shape (), yours has (1,)"),
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

    def test_tolerance(self):
        assert check_value(0.3333, right=1 / 3, tol=1e-4).ok
        assert not check_value(0.333, right=1 / 3, tol=1e-4).ok
        assert check_value(0.125, right=0.13, tol=0.005).ok

    def test_a_check_that_cannot_tell_right_from_wrong_is_refused(self):
        with pytest.raises(ValueError, match=r"this mistake gives the right answer: 'no scale'"):
            check_value(1, right=1.0, mistakes={"no scale": 1.004})
