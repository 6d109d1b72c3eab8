"""attn_lib.arrays: what `takes` does to arguments before a function sees them, and to a result."""

import inspect
from typing import NamedTuple

import numpy as np
import pytest

from attn_lib.arrays import Axis, Shape, keeps_precision, takes
from attn_lib.rules import whole


@takes("Q (..., n, d_k≥1)", "K (..., m, d_k)")
def scores(Q, K, *, scale=1.0):
    """Compare every query with every key."""
    return Q @ K.mT * scale


@takes("X (..., n, heads·d_k)", heads=whole(1))
def split(X, heads=2):
    return X.reshape(*X.shape[:-1], heads, X.shape[-1] // heads)


class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


@keeps_precision
class State(NamedTuple):
    memory: np.ndarray


def dtypes_seen(*shapes, **options):
    """A function of X and Y that notes the dtypes it computes in, and gives X back."""
    seen = []

    @takes(*shapes, **options)
    def function(X, Y):
        seen.append((X.dtype, Y.dtype))
        return X

    return function, seen


class TestPrecision:
    @pytest.mark.parametrize(
        ("given", "inside", "back"),
        [
            (("f2", "f2"), ("f4", "f4"), "f2"),
            (("f4", "f4"), ("f4", "f4"), "f4"),
            (("f2", "f4"), ("f4", "f4"), "f4"),
            (("f4", "f8"), ("f8", "f8"), "f8"),
            (("i8", "i8"), ("f8", "f8"), "f8"),
            (("?", "u1"), ("f8", "f8"), "f8"),
            (("i8", "f4"), ("f8", "f8"), "f8"),
            (("u1", "f2"), ("f4", "f4"), "f2"),
        ],
    )
    def test_all_are_brought_to_one_precision_and_the_result_is_rounded_once(
        self, given, inside, back
    ):
        function, seen = dtypes_seen("X (n)", "Y (n)")
        result = function(*(np.ones(3, dtype) for dtype in given))
        assert seen == [tuple(map(np.dtype, inside))]
        assert result.dtype == back

    @pytest.mark.parametrize(
        ("given", "inside", "back"),
        [
            (("f2", "f8"), ("f4", "f8"), "f2"),
            (("f4", "f8"), ("f4", "f8"), "f4"),
            (("i8", "f4"), ("f8", "f4"), "f8"),
            (("f4", "i8"), ("f4", "f8"), "f4"),
        ],
    )
    def test_like_one_of_them_leaves_each_its_own(self, given, inside, back):
        function, seen = dtypes_seen("X (n)", "Y (n)", like="X")
        result = function(*(np.ones(3, dtype) for dtype in given))
        assert seen == [tuple(map(np.dtype, inside))]
        assert result.dtype == back

    @pytest.mark.parametrize("dtype", ["?", "i4", "u1", "f2", "f4"])
    def test_without_cast_numbers_stay_what_they_are(self, dtype):
        function, seen = dtypes_seen("X (n)", "Y (n)", cast=False)
        given = np.ones(3, dtype)
        assert function(given, given) is given
        assert seen == [(given.dtype, given.dtype)]

    def test_float16_is_computed_in_float32_and_rounded_at_the_end(self):
        one, small = np.float16(1), np.float16(2**-11)  # float16 cannot add them

        @takes("x (n)")
        def twice(x):
            return x + x[::-1] + x[::-1]

        assert twice(np.array([one, small])).tolist() == [1 + 2**-10, 2]

    def test_too_large_for_float16_is_infinity_without_a_warning(self):
        function = takes("x (n)")(lambda x: x * 2)
        assert function(np.array([60000], np.float16)).tolist() == [np.inf]

    def test_only_float_arrays_of_a_result_are_rounded_however_deep(self):
        @takes("x (n)")
        def many(x):
            return {"pair": Pair(x, x > 0), "list": (x, x.argmax(), "name"), "whole": np.arange(2)}

        result = many(np.ones(3, np.float16))
        assert isinstance(result["pair"], Pair)
        assert [part.dtype for part in result["pair"]] == [np.float16, bool]
        first, index, name = result["list"]
        assert (first.dtype, index, name) == (np.float16, 0, "name")
        assert result["whole"].dtype == np.arange(2).dtype

    def test_a_state_keeps_the_precision_it_was_computed_in(self):
        result = takes("x (n)")(lambda x: (x, State(x)))(np.ones(3, np.float16))
        assert (result[0].dtype, result[1].memory.dtype) == (np.float16, np.float32)

    def test_a_result_stays_as_it_is_where_no_array_was_given(self):
        function = takes("b (n)")(lambda b=1.0: np.full(2, b, np.float32))
        assert function().dtype == np.float32

    def test_inputs_are_never_changed_nor_copied_without_need(self):
        Q, K = np.ones((2, 3), np.float16), np.ones((4, 3))
        before = Q.copy(), K.copy()
        scores(Q, K)
        assert np.array_equal(Q, before[0]) and np.array_equal(K, before[1])
        assert Q.dtype == np.float16
        assert takes("x (n)")(lambda x: x)(K[0]).base is K


class TestNumbers:
    @pytest.mark.parametrize(
        ("given", "words"),
        [
            (np.ones(2, complex), "x must be an array of real numbers, got dtype complex128"),
            (["a", "b"], "x must be an array of real numbers, got dtype <U1"),
            ([None, 1], "x must be an array of real numbers, got dtype object"),
            (np.array(["2000-01-01"], "M8[D]"), r"x must be an array of real .* datetime64\[D\]"),
            ([[1, 2], [3]], "x must be an array of real numbers: setting an array element"),
            (np.ma.masked_array([1, 2], [True, False]), "x is a masked array, .*: fill it first"),
        ],
    )
    def test_what_is_no_array_of_real_numbers_is_named(self, given, words):
        with pytest.raises(ValueError, match=f"^{words}"):
            takes("x (...)")(lambda x: x)(given)

    def test_lists_tuples_and_numbers_are_read(self):
        identity = takes("x (...)")(lambda x: x)
        assert identity([[1, 2]]).tolist() == [[1.0, 2.0]]
        assert identity((1, 2)).shape == (2,)
        assert identity(3).shape == ()


class TestGrammar:
    def test_leading_axes_broadcast(self):
        assert scores(np.ones((2, 1, 4, 3)), np.ones((5, 6, 3))).shape == (2, 5, 4, 6)
        words = r"^the leading axes of Q, K do not broadcast: got Q \(2, 4, 3\), K \(3, 6, 3\)$"
        with pytest.raises(ValueError, match=words):
            scores(np.ones((2, 4, 3)), np.ones((3, 6, 3)))

    def test_one_letter_is_one_size(self):
        words = (
            r"^Q \(\.\.\., n, d_k\) and K \(\.\.\., m, d_k\) must agree in d_k: got Q \(4, 3\), K"
        )
        with pytest.raises(ValueError, match=words + r" \(5, 2\)$"):
            scores(np.ones((4, 3)), np.ones((5, 2)))

    def test_too_few_axes(self):
        with pytest.raises(
            ValueError, match=r"^K must be \(\.\.\., m, d_k\): got Q \(4, 3\), K \(3,"
        ):
            scores(np.ones((4, 3)), np.ones(3))

    def test_without_leading_axes_too_many(self):
        double = takes("W (d, e)")(lambda W: 2 * W)
        for shape in [(3,), (2, 3, 3)]:
            with pytest.raises(ValueError, match=r"^W must be \(d, e\): got W"):
                double(np.ones(shape))
        with pytest.raises(ValueError, match=r"^b must be \(d,\): got b \(2, 3\)$"):
            takes("b (d)")(lambda b: b)(np.ones((2, 3)))

    def test_a_bounded_size(self):
        words = r"^Q must be \(\.\.\., n, d_k\) with d_k ≥ 1: got Q \(4, 0\), K \(5, 0\)$"
        with pytest.raises(ValueError, match=words):
            scores(np.ones((4, 0)), np.ones((5, 0)))
        assert scores(np.ones((0, 1)), np.ones((0, 1))).shape == (0, 0)

    def test_a_named_group_of_axes_is_the_same_everywhere(self):
        add = takes("x (*batch, m)", "y (*batch, m)")(lambda x, y: x + y)
        assert add(np.ones((2, 3, 4)), np.ones((2, 3, 4))).shape == (2, 3, 4)
        words = r"^x \(\*batch, m\) and y \(\*batch, m\) must have the same axes: got x \(1, 4\), y"
        with pytest.raises(ValueError, match=words + r" \(3, 4\)$"):
            add(np.ones((1, 4)), np.ones((3, 4)))
        with pytest.raises(ValueError, match="must agree in m"):
            add(np.ones((3, 4)), np.ones((3, 1)))

    def test_a_group_may_stand_alone(self):
        add = takes("x (*pairs)", "y (*pairs)")(lambda x, y: x + y)
        assert add(1, 2) == 3
        with pytest.raises(ValueError, match=r"x \(\*pairs\) and y \(\*pairs\) must have"):
            add(np.ones(3), np.ones((1, 3)))

    def test_a_product_with_a_whole_argument(self):
        assert split(np.ones((4, 6)), 3).shape == (4, 3, 2)
        assert split(np.ones((4, 6))).shape == (4, 2, 3)  # the default counts too
        words = r"^X must be \(\.\.\., n, heads·d_k\) with heads = 4: got X \(4, 6\)$"
        with pytest.raises(ValueError, match=words):
            split(np.ones((4, 6)), 4)
        with pytest.raises(ValueError, match=r"^heads must be a whole number ≥ 1, got 0"):
            split(np.ones((4, 6)), 0)  # the rule comes before the product

    def test_a_product_with_a_size_that_is_known(self):
        merge = takes("M (h, n, d_v)", "W (h·d_v, d)")(lambda M, W: (M, W))
        merge(np.ones((2, 5, 3)), np.ones((6, 7)))
        words = (
            r"^M \(h, n, d_v\) and W \(h·d_v, d\) must agree in d_v: got M \(2, 5, 3\), W \(5, 7\)$"
        )
        with pytest.raises(ValueError, match=words):
            merge(np.ones((2, 5, 3)), np.ones((5, 7)))

    def test_no_heads_leave_the_width_of_one_open(self):
        merge = takes("M (h, n)", "W (h·d, e)", "b (d)")(lambda M, W, b: b)
        assert merge(np.ones((0, 5)), np.ones((0, 7)), np.ones(3)).shape == (3,)
        with pytest.raises(
            ValueError, match=r"^W must be \(h·d, e\): got M \(0, 5\), W \(2, 7\), b"
        ):
            merge(np.ones((0, 5)), np.ones((2, 7)), np.ones(3))

    def test_even_and_odd_sizes(self):
        even, odd = (takes(f"x (..., {size})")(lambda x: x) for size in ("2r≥2", "2r+1"))
        assert even(np.ones(4)).shape == (4,) and odd(np.ones(1)).shape == (1,)
        for wrong in (3, 5):
            with pytest.raises(
                ValueError, match=rf"^x must be .*2r\) with 2r even: got x \({wrong},"
            ):
                even(np.ones(wrong))
        with pytest.raises(
            ValueError, match=r"^x must be \(\.\.\., 2r\) with 2r ≥ 2: got x \(0,\)$"
        ):
            even([])
        for wrong in (0, 2):
            with pytest.raises(ValueError, match=rf"2r\+1\) with 2r\+1 odd: got x \({wrong},\)$"):
                odd(np.ones(wrong))

    def test_a_number_that_is_fixed(self):
        corners = takes("points (m, 2)")(lambda points: points)
        assert corners(np.ones((5, 2))).shape == (5, 2)
        with pytest.raises(ValueError, match=r"^points must be \(m, 2\).*: got points \(5, 3\)$"):
            corners(np.ones((5, 3)))

    def test_one_size_twice_in_one_array(self):
        square = takes("W (d, d)")(lambda W: W)
        assert square(np.eye(3)).shape == (3, 3)
        with pytest.raises(ValueError, match=r"^W must be \(d, d\): got W \(2, 3\)$"):
            square(np.ones((2, 3)))

    def test_another_array_stands_in(self):
        @takes("X (..., n, d)", "source=X (..., m, d_y)", "W (d_y, e)")
        def read(X, W, *, source=None):
            return source @ W

        assert read(np.ones((2, 3)), np.ones((3, 1))).tolist() == [[3], [3]]
        assert read(np.ones((2, 3)), np.ones((4, 1)), source=np.ones((5, 4))).shape == (5, 1)
        words = (
            r"^source .* and W .* must agree in d_y: got X \(2, 3\), source \(5, 4\), W \(3, 1\)$"
        )
        with pytest.raises(ValueError, match=words):
            read(np.ones((2, 3)), np.ones((3, 1)), source=np.ones((5, 4)))
        with pytest.raises(ValueError, match=r"in d_y: got X \(2, 3\), W \(4, 1\)$"):
            read(np.ones((2, 3)), np.ones((4, 1)))  # what was not given is not named

    def test_none_is_no_array_and_a_number_does_for_a_vector(self):
        @takes("X (..., d)", "b (d)")
        def shift(X, b=None):
            return X if b is None else X + b

        assert shift([1, 2]).tolist() == [1, 2]
        assert shift([1, 2], 3).tolist() == shift([1, 2], np.float32(3)).tolist() == [4, 5]
        assert shift([1, 2], [3, 4]).tolist() == [4, 6]
        with pytest.raises(ValueError, match=r"must agree in d: got X \(2,\), b \(1,\)"):
            shift([1, 2], [3])
        with pytest.raises(
            ValueError, match=r"^Q must be \(\.\.\., n, d_k\): got Q \(\), K \(2, 1\)"
        ):
            scores(1.0, np.ones((2, 1)))  # no number does for a matrix with leading axes

    def test_reading(self):
        shape = Shape.read("W_K (d_y, kv_heads·d_k)")
        assert (shape.name, shape.text, shape.leading) == ("W_K", "(d_y, kv_heads·d_k)", "")
        assert shape.factors == {"d_y", "kv_heads", "d_k"}
        assert Shape.read("x (...)").axes == () and Shape.read("x (...)").text == "(...)"
        assert Shape.read("source=X (..., m, d)").instead == "X"
        assert Shape.read("b (d)").text == "(d,)"
        assert Axis.read("2r+1≥3") == Axis("2r+1", 2, ("r",), 1, 3)
        assert Axis.read("2") == Axis("2", 2, (), 0, 0)


class TestCalls:
    """A call that Python would refuse is refused in Python's own words."""

    @pytest.mark.parametrize(
        ("args", "kwargs", "words"),
        [
            ((), {}, "missing 2 required positional arguments: 'Q' and 'K'"),
            ((1,), {}, "missing 1 required positional argument: 'K'"),
            ((1, 2, 3), {}, "takes 2 positional arguments but 3 were given"),
            ((1, 2), {"scales": 3}, "got an unexpected keyword argument 'scales'"),
            ((1, 2), {"K": 3}, "got multiple values for argument 'K'"),
        ],
    )
    def test_a_wrong_call_is_a_type_error(self, args, kwargs, words):
        with pytest.raises(TypeError, match=rf"scores\(\) {words}"):
            scores(*args, **kwargs)

    def test_every_way_to_call_is_the_same(self):
        Q, K = np.eye(2), np.eye(2)
        for result in (scores(Q, K), scores(Q, K=K), scores(K=K, Q=Q, scale=1.0)):
            assert np.array_equal(result, np.eye(2))

    def test_a_method_is_a_function_too(self):
        class Layer:
            @takes("X (n, d)", cast=False)
            def __call__(self, X, *, by=2):
                return X * by

        assert Layer()([[1, 2]], by=3).tolist() == [[3, 6]]
        with pytest.raises(ValueError, match=r"X must be \(n, d\): got X \(2,\)"):
            Layer()([1, 2])

    def test_name_docstring_and_signature_stay(self):
        assert scores.__name__ == "scores" and scores.__doc__.startswith("Compare every query")
        assert str(inspect.signature(scores)) == "(Q, K, *, scale=1.0)"
        assert inspect.unwrap(scores) is not scores


class TestRules:
    def test_a_rule_gives_the_value_to_use_and_sees_arrays(self):
        def double(name, value, given):
            assert name == "by" and isinstance(given["x"], np.ndarray)
            return 2 * value

        assert takes("x (n)", by=double)(lambda x, by=2: by * x)([1]).tolist() == [4]

    def test_shapes_are_checked_before_a_rule_looks_at_arrays(self):
        def never(name, value, given):
            raise AssertionError

        function = takes("x (n)", by=never)(lambda x, by=2: x)
        with pytest.raises(ValueError, match=r"x must be \(n,\)"):
            function([[1]])


class TestMemory:
    """Shapes that were found to fit are not looked at again: that must never let others through."""

    def test_the_same_shapes_with_another_setting_are_looked_at(self):
        X = np.ones((4, 6))
        for _ in range(2):
            assert split(X, 3).shape == (4, 3, 2)
            with pytest.raises(ValueError, match="heads = 4"):
                split(X, 4)

    def test_a_refused_shape_is_refused_again(self):
        for _ in range(3):
            with pytest.raises(ValueError, match="must agree in d_k"):
                scores(np.ones((4, 3)), np.ones((5, 2)))

    def test_each_argument_has_its_own_shape(self):
        rows = takes("W (d, e)", "b (e)")(lambda W, b=None: W)
        rows(np.ones((2, 3)), np.ones(3))
        rows(np.ones((2, 3)))
        with pytest.raises(ValueError, match=r"b \(2,\)"):
            rows(np.ones((2, 3)), np.ones(2))
        with pytest.raises(ValueError, match=r"W must be \(d, e\): got W \(3,\), b \(3,\)"):
            rows(np.ones(3), np.ones(3))

    def test_an_array_in_place_of_another_is_told_apart(self):
        either = takes("a (2r)", "b (2r+1)")(lambda a=None, b=None: (a, b))
        either(a=np.ones(4))
        with pytest.raises(ValueError, match=r"^b must be"):
            either(b=np.ones(4))

    def test_it_does_not_grow_without_end_and_stays_right(self):
        function = takes("x (..., 2r)")(lambda x: x.shape)
        fitting = inspect.getclosurevars(function).nonlocals["fitting"]
        for r in range(1200):
            assert function(np.empty(2 * r)) == (2 * r,)
        assert 0 < len(fitting) <= 1000
        with pytest.raises(ValueError, match="2r even"):
            function(np.empty(3))
