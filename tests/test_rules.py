"""attn_lib.rules: what other arguments must be, and the words in which they are refused."""

import math
import re

import numpy as np
import pytest

from attn_lib import rules

X = np.zeros((2, 4, 3))


def ask(rule, value, **given):
    """Ask a rule about an argument called ``it``."""
    return rule("it", value, {"it": value} | given)


def refuses(rule, value, words, **given):
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        ask(rule, value, **given)


class TestWhole:
    def test_gives_an_int(self):
        for value in (3, np.int8(3), np.uint64(3)):
            got = ask(rules.whole(), value)
            assert got == 3 and type(got) is int

    @pytest.mark.parametrize("value", [2.0, np.float64(2), True, np.True_, "2", None, [2]])
    def test_refuses_what_is_no_whole_number(self, value):
        refuses(rules.whole(), value, f"it must be a whole number, got {value!r}")

    def test_has_a_least_value(self):
        assert ask(rules.whole(0), 0) == 0 and ask(rules.whole(), -9) == -9
        refuses(rules.whole(1), 0, "it must be a whole number ≥ 1, got 0")
        refuses(rules.whole(0), -1, "it must be a whole number ≥ 0, got -1")

    def test_none_may_stand_for_another_argument(self):
        rule = rules.whole(1, default="n")
        assert ask(rule, None, n=5) == 5 and ask(rule, 2, n=5) == 2
        refuses(rule, 0, "it must be a whole number ≥ 1, got 0", n=5)  # 0 is not None


class TestNumber:
    @pytest.mark.parametrize(
        ("rule", "allowed", "refused"),
        [
            ("finite", [0, -1.5, np.float32(2), np.int8(-3)], [math.inf, math.nan]),
            ("positive", [1e-300, 7, np.float16(1)], [0, -1, math.inf, math.nan]),
            ("not_negative", [0, 0.0, 3], [-1e-300, math.inf, math.nan]),
            ("a_scale", [None, 0, -2.0], [math.inf, math.nan]),
            ("a_temperature", [1e-300, math.inf], [0, -1, math.nan, None]),
            ("a_sampling_temperature", [None, 0.5], [0, -1, math.nan]),
        ],
    )
    def test_bounds(self, rule, allowed, refused):
        for value in allowed:
            assert ask(getattr(rules, rule), value) is value
        for value in [*refused, True, np.False_, "1", 1j, [1.0]]:
            with pytest.raises(ValueError, match=rf"^it must be .*, got {re.escape(repr(value))}"):
                ask(getattr(rules, rule), value)

    def test_words(self):
        refuses(rules.finite, math.inf, "it must be a finite number, got inf")
        refuses(rules.positive, 0, "it must be > 0 and finite, got 0")
        refuses(rules.not_negative, -1, "it must be ≥ 0 and finite, got -1")
        refuses(rules.a_scale, math.nan, "it must be a finite number (1.0 for none), got nan")
        words = "it must be > 0 (None for the likeliest), got 0"
        refuses(rules.a_sampling_temperature, 0, words)
        with pytest.raises(ValueError, match=r"np.inf is allowed\), got 0; as T → 0 .* a small T$"):
            ask(rules.a_temperature, 0)


def test_one_of_a_few_names():
    rule = rules.one_of("pre", "post")
    assert ask(rule, "post") == "post"
    for value in ("Pre", None, 1):
        refuses(rule, value, f"it must be one of 'pre', 'post', got {value!r}")


class TestMask:
    def test_is_given_as_an_array_or_is_none(self):
        rule = rules.mask_for("S")
        assert ask(rule, None, S=X) is None
        assert ask(rule, [True, False, True], S=X).dtype == bool
        assert ask(rule, 0.5, S=X).shape == ()

    def test_fits_the_scores_or_their_queries_and_keys(self):
        K = np.zeros((5, 1, 7, 3))
        assert rules.scores_shape(X) == (2, 4, 3)
        assert rules.scores_shape(X, K) == (5, 2, 4, 7)
        rule = rules.mask_for("Q", "K")
        for shape in [(4, 7), (7,), (5, 1, 1, 7), (5, 2, 4, 7)]:
            assert ask(rule, np.ones(shape, bool), Q=X, K=K).shape == shape
        words = "mask (4, 3) does not broadcast to the scores (5, 2, 4, 7), (..., n, m)"
        refuses(rule, np.ones((4, 3), bool), words, Q=X, K=K)

    def test_never_enlarges_the_scores(self):
        words = "mask (6, 2, 4, 3) does not broadcast to the scores (2, 4, 3), (..., n, m)"
        refuses(rules.mask_for("S"), np.ones((6, 2, 4, 3), bool), words, S=X)

    @pytest.mark.parametrize("mask", [[[1, 0, 1]], [["a", "b", "c"]], [[1j, 0, 0]]])
    def test_is_boolean_or_float(self, mask):
        words = "a mask is boolean (True = may look) or float (added), got dtype "
        refuses(rules.mask_for("S"), mask, words + str(np.asarray(mask).dtype), S=X)


@pytest.mark.parametrize(
    ("shape", "target", "answer"),
    [((3,), (2, 3), True), ((), (2,), True), ((2, 1), (2, 3), True), ((0,), (2, 0), True),
     ((2,), (2, 3), False), ((1, 2, 3), (2, 3), False), ((2, 3), (2, 1), False)],
)  # fmt: skip
def test_one_shape_stretches_to_another(shape, target, answer):
    assert rules.broadcasts_to(shape, target) is answer


def test_finite_numbers():
    got = ask(rules.finite_numbers, [1, 2])
    assert got.dtype == np.float64 and got.tolist() == [1, 2]
    assert ask(rules.finite_numbers, np.float32(0.5)).dtype == np.float64
    refuses(rules.finite_numbers, [1, math.inf], "it must be finite numbers, got [1.0, inf]")
    refuses(rules.finite_numbers, ["a"], "it must be an array of real numbers, got dtype <U1")


def test_whole_numbers():
    assert rules.whole_numbers("it", [1, -2]).tolist() == [1, -2]
    assert rules.whole_numbers("it", np.ones(2, np.uint8)).dtype == np.uint8
    for value, dtype in (([1.0], "float64"), ([True], "bool")):
        with pytest.raises(ValueError, match=f"^it must be whole numbers, got dtype {dtype}$"):
            rules.whole_numbers("it", value)


def test_lengths_up_to_another_argument():
    rule = rules.lengths_up_to("m")
    assert ask(rule, [0, 3], m=3).tolist() == [0, 3]
    assert ask(rule, 0, m=0).shape == ()
    refuses(rule, [0, 4], "it must lie between 0 and m = 3, got [0, 4]", m=3)
    refuses(rule, [-1], "it must lie between 0 and m = 3, got [-1]", m=3)
    refuses(rule, [1.0], "it must be whole numbers, got dtype float64", m=3)


class TestPlaces:
    def test_are_those_of_the_rows_by_default(self):
        assert ask(rules.places("X"), None, X=X).tolist() == [0, 1, 2, 3]

    def test_may_be_any_numbers_that_broadcast(self):
        for value in ([0.5, 1, 2, 3], [7], [[0, 1, 2, 3], [4, 5, 6, 7]], [[0], [1]]):
            got = ask(rules.places("X"), value, X=X)
            assert got.shape == np.shape(value)
        words = "it must broadcast to the rows of X, (2, 4): got shape "
        refuses(rules.places("X"), [0, 1], words + "(2,)", X=X)
        refuses(rules.places("X"), [[[0]]], words + "(1, 1, 1)", X=X)
        refuses(
            rules.places("X"), 3, words + "() (a single number could mean a count: write [t])", X=X
        )

    def test_are_whole_where_they_look_up_rows(self):
        rule, table = rules.places("X", rows_of="table"), np.zeros((5, 3))
        assert ask(rule, [0, 4, 1, 1], X=X, table=table).tolist() == [0, 4, 1, 1]
        assert ask(rule, None, X=np.zeros((0, 3)), table=table).shape == (0,)
        refuses(rule, [0.0], "it must be whole numbers, got dtype float64", X=X, table=table)
        words = "the table has rows for positions 0 to 4: got it "
        refuses(rule, [0, 5, 1, 1], words + "0 to 5", X=X, table=table)
        refuses(rule, [-1], words + "-1 to -1", X=X, table=table)


def test_a_rearrangement_of_rows():
    rule = rules.reordering("X")
    assert ask(rule, [3, 0, 1, 2], X=X).tolist() == [3, 0, 1, 2]
    for value in ([0, 1, 2], [0, 1, 2, 2], [1, 2, 3, 4], [0.0, 1, 2, 3]):
        words = f"it must rearrange the 4 rows of X (2, 4, 3), got {np.array(value).tolist()}"
        refuses(rule, value, words, X=X)


class TestTokens:
    def test_lie_below_the_vocabulary(self):
        rule = rules.tokens_below("vocabulary")
        assert ask(rule, [[0, 4]], vocabulary=5).tolist() == [[0, 4]]
        assert ask(rule, np.zeros((2, 0), int), vocabulary=5).shape == (2, 0)
        refuses(rule, [0, 5], "it must lie between 0 and 4, got 0 to 5", vocabulary=5)
        refuses(rule, [-1, 2], "it must lie between 0 and 4, got -1 to 2", vocabulary=5)

    def test_or_are_as_many_as_logits(self):
        rule = rules.tokens_of("logits")
        assert ask(rule, [2], logits=X).tolist() == [2]
        refuses(rule, [3], "it must lie between 0 and 2, got 3 to 3", logits=X)

    @pytest.mark.parametrize(("value", "got"), [(3, "int64 ()"), ([1.0], "float64 (1,)")])
    def test_are_whole_and_in_a_row(self, value, got):
        words = f"it must be whole numbers (..., n), got {got}"
        refuses(rules.tokens_below("vocabulary"), value, words, vocabulary=5)
