"""attn_lib.positions: hand-worked values, and the property that defines each encoding."""

import itertools
import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attn_lib import attention, causal_mask, softmax
from attn_lib.positions import (
    add_positions,
    alibi_bias,
    alibi_slopes,
    equivariance_gap,
    relative_bias,
    rope,
    sinusoidal_positions,
)

DTYPES = [np.float16, np.float32, np.float64]
PAIRINGS = ["interleaved", "half"]
LAYOUTS = ["interleaved", "concatenated"]
seeds = st.integers(0, 2**32 - 1)
pairs = st.integers(1, 5)
places = st.integers(-200, 200)


def draw(seed, n=4, d=6):
    return np.random.default_rng(seed).normal(size=(n, d))


def layer(X, encode=None, **how):
    """One self-attention layer with fixed weights; `encode` turns its queries and keys."""
    W_Q, W_K, W_V = np.random.default_rng(3).normal(size=(3, X.shape[-1], 4)) / 2
    Q, K = X @ W_Q, X @ W_K
    if encode is not None:
        Q, K = encode(Q), encode(K)
    return attention(Q, K, X @ W_V, **how)


class TestAddPositions:
    def test_each_token_gets_the_row_of_its_place(self):
        table = [[1, 0], [2, 0], [3, 5]]
        assert add_positions([[10, 10], [20, 20]], table).tolist() == [[11, 10], [22, 20]]
        assert add_positions([[10, 10]], table, [2]).tolist() == [[13, 15]]

    def test_places_may_differ_in_a_batch(self):
        X, table = np.zeros((2, 2, 1)), np.array([[1.0], [2.0], [3.0]])
        got = add_positions(X, table, [[0, 2], [1, 1]])
        assert got[..., 0].tolist() == [[1, 3], [2, 2]]

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_keeps_the_dtype_of_the_tokens(self, dtype):
        assert add_positions(np.ones((2, 3), dtype), np.ones((4, 3))).dtype == dtype
        assert add_positions([[1, 2]], [[0.5, 0]]).tolist() == [[1.5, 2]]

    @pytest.mark.parametrize("positions", [None, [0, 1, 3], [-1, 0, 1]])
    def test_a_table_ends_where_it_ends(self, positions):
        n = 4 if positions is None else 3
        with pytest.raises(ValueError, match=r"rows for positions 0 to 2: got positions"):
            add_positions(np.zeros((n, 2)), np.zeros((3, 2)), positions)

    def test_refuses_what_does_not_fit(self):
        with pytest.raises(ValueError, match=r"agree in d: got X \(4, 2\), table \(4, 3\)"):
            add_positions(np.zeros((4, 2)), np.zeros((4, 3)))
        with pytest.raises(ValueError, match="whole numbers"):
            add_positions(np.zeros((2, 2)), np.zeros((4, 2)), [0.5, 1])
        with pytest.raises(ValueError, match=r"rows of X, \(2,\): got shape \(3,\)"):
            add_positions(np.zeros((2, 2)), np.zeros((4, 2)), [0, 1, 2])
        with pytest.raises(ValueError, match="could mean a count"):
            add_positions(np.zeros((2, 2)), np.zeros((4, 2)), 2)


class TestSinusoidal:
    def test_an_odd_width_ends_with_a_sine(self):
        expected = [[0, 1, 0, 1, 0], [0.84147098, 0.54030231, 0.02511623, 0.99968454, 0.00063096]]
        np.testing.assert_allclose(sinusoidal_positions(2, 5), expected, atol=1e-8)

    @pytest.mark.parametrize("d", [1, 2, 5, 8])
    def test_the_formula_one_number_at_a_time(self, d):
        table = sinusoidal_positions(7, d)
        assert table.shape == (7, d)
        for p, c in np.ndindex(7, d):
            wave = math.sin if c % 2 == 0 else math.cos
            assert table[p, c] == pytest.approx(wave(p / 10000 ** (2 * (c // 2) / d)), abs=1e-14)

    @pytest.mark.parametrize("d", [1, 2, 5, 8])
    def test_layouts_are_a_relabelling_of_columns(self, d):
        inter = sinusoidal_positions(6, d)
        concatenated = sinusoidal_positions(6, d, layout="concatenated")
        order = [*range(0, d, 2), *range(1, d, 2)]
        np.testing.assert_array_equal(inter[:, order], concatenated)

    def test_places_on_one_axis_or_on_three(self):
        places = np.arange(24).reshape(2, 3, 4)
        for layout in LAYOUTS:
            flat = sinusoidal_positions(24, 6, layout=layout)
            many = sinusoidal_positions(places, 6, layout=layout)
            np.testing.assert_array_equal(many, flat.reshape(2, 3, 4, 6))

    @given(seeds, pairs, places, places)
    def test_an_offset_is_a_rotation_that_does_not_depend_on_the_place(self, seed, half, p, k):
        d = 2 * half
        turn = rope(np.eye(d), [-k])  # one matrix for every place
        here, there = sinusoidal_positions([p], d), sinusoidal_positions([p + k], d)
        np.testing.assert_allclose(here @ turn, there, atol=1e-10)
        np.testing.assert_allclose(turn @ turn.T, np.eye(d), atol=1e-12)
        assert np.linalg.det(turn) == pytest.approx(1)  # a rotation, not a reflection

    @given(pairs, places, places)
    def test_two_rows_compare_by_their_distance_alone(self, half, p, k):
        d = 2 * half
        a, b = sinusoidal_positions([p, p + k], d)
        theta = [10000 ** (-2 * r / d) for r in range(half)]
        assert a @ b == pytest.approx(sum(math.cos(k * t) for t in theta), abs=1e-10)

    def test_positions_may_be_a_count_or_a_list(self):
        np.testing.assert_array_equal(sinusoidal_positions(3, 4), sinusoidal_positions(range(3), 4))
        assert sinusoidal_positions([[0, 1], [5, 9]], 4).shape == (2, 2, 4)
        assert sinusoidal_positions(0, 4).shape == (0, 4)

    def test_base(self):
        assert sinusoidal_positions([1], 4, base=100.0)[0, 2] == pytest.approx(math.sin(0.1))

    @pytest.mark.parametrize(
        ("arguments", "match"),
        [
            ({"d": 0}, "d must be a whole number"),
            ({"d": 2.0}, "d must be a whole number"),
            ({"positions": -1}, "positions must be a whole number"),
            ({"base": 0}, "base must be > 0 and finite, got 0"),
            ({"base": np.inf}, "base must be"),
            ({"layout": "half"}, "layout must be one of 'interleaved', 'concatenated', got 'half'"),
        ],
    )
    def test_refuses(self, arguments, match):
        with pytest.raises(ValueError, match=match):
            sinusoidal_positions(**({"positions": 3, "d": 4} | arguments))


class TestRope:
    x, k = np.array([[1.0, 2, 3, 4]]), np.array([[0.5, -1, 2, 1]])

    @pytest.mark.parametrize(
        ("pairing", "expected", "dot"),
        [
            ("interleaved", [-1.14263966, 1.92207560, 2.95985067, 4.02979950], 8.70363213),
            ("half", [-1.98411065, 1.95990067, 2.46237790, 4.01979967], -0.13071371),
        ],
    )
    def test_the_two_pairings(self, pairing, expected, dot):
        turned = rope(self.x, [1], pairing=pairing)
        np.testing.assert_allclose(turned, [expected], atol=1e-8)
        assert np.linalg.norm(turned) == pytest.approx(math.sqrt(30))
        for m, n in [(5, 3), (2, 0)]:
            q, k = rope(self.x, [m], pairing=pairing), rope(self.k, [n], pairing=pairing)
            assert (q @ k.T).item() == pytest.approx(dot, abs=1e-8)

    @given(seeds, pairs)
    def test_the_pairings_differ_by_an_order_of_columns(self, seed, half):
        X = draw(seed, d=2 * half)
        order = [*range(0, 2 * half, 2), *range(1, 2 * half, 2)]
        np.testing.assert_array_equal(rope(X)[:, order], rope(X[:, order], pairing="half"))

    def test_mixed_pairings_see_more_than_the_offset(self):
        dots = [
            (rope(self.x, [m]) @ rope(self.k, [n], pairing="half").T).item()
            for m, n in [(5, 3), (2, 0)]
        ]
        assert abs(dots[0] - dots[1]) > 0.1

    @pytest.mark.parametrize("d", [2, 6])
    @pytest.mark.parametrize("pairing", PAIRINGS)
    def test_each_pair_is_a_complex_number_turned(self, d, pairing):
        X = draw(0, n=5, d=d)
        turned = rope(X, pairing=pairing)
        for p, r in np.ndindex(5, d // 2):
            a, b = (2 * r, 2 * r + 1) if pairing == "interleaved" else (r, r + d // 2)
            z = complex(X[p, a], X[p, b]) * np.exp(1j * p * 10000 ** (-2 * r / d))
            assert complex(turned[p, a], turned[p, b]) == pytest.approx(z, abs=1e-14)

    @given(seeds, pairs, places, places, places, st.sampled_from(PAIRINGS))
    def test_scores_depend_on_the_offset_alone(self, seed, half, m, n, shift, pairing):
        q, k = draw(seed, n=2, d=2 * half)[:, None]
        dot = rope(q, [m], pairing=pairing) @ rope(k, [n], pairing=pairing).T
        moved = rope(q, [m + shift], pairing=pairing) @ rope(k, [n + shift], pairing=pairing).T
        np.testing.assert_allclose(dot, moved, atol=1e-10)

    def test_scores_do_depend_on_the_offset(self):
        dots = [(rope(self.x, [m]) @ self.k.T).item() for m in range(4)]
        assert np.min(np.abs(np.diff(dots))) > 0.1

    @given(seeds, pairs, places, st.sampled_from(PAIRINGS))
    def test_lengths_are_kept(self, seed, half, p, pairing):
        X = draw(seed, d=2 * half)
        turned = rope(X, [p], pairing=pairing)
        np.testing.assert_allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(X, axis=1))

    def test_a_cache_turns_each_key_once(self):
        X = draw(1, n=5)
        np.testing.assert_array_equal(rope(X)[4:], rope(X[4:], [4]))

    def test_batches(self):
        X = draw(2, n=6, d=4).reshape(2, 3, 4)
        positions = [[0, 1, 2], [5, 6, 7]]
        got = rope(X, positions)
        for b in range(2):
            np.testing.assert_array_equal(got[b], rope(X[b], positions[b]))

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtype_in_is_dtype_out_even_far_away(self, dtype):
        X = draw(3, n=2).astype(dtype)  # float16 has no 4097: its angles must not be float16
        got = rope(X, [4096, 4097])
        assert got.dtype == dtype
        exact = rope(X.astype(np.float64), [4096, 4097])
        np.testing.assert_allclose(got, exact, atol=4 * np.finfo(dtype).eps * np.abs(X).max())
        assert rope([[1, 0]], [1])[0, 0] == pytest.approx(math.cos(1))

    @pytest.mark.parametrize(
        ("X", "arguments", "match"),
        [
            (np.zeros((2, 3)), {}, r"2r even: got X \(2, 3\)"),
            (np.zeros((2, 0)), {}, r"2r ≥ 2: got X \(2, 0\)"),
            (np.zeros(4), {}, r"n, 2r\): got X \(4,\)"),
            (np.zeros((2, 4)), {"positions": [0, 1, 2]}, r"\(2,\): got shape \(3,\)"),
            (np.zeros((2, 4)), {"positions": [[0], [1]]}, r"\(2,\): got shape \(2, 1\)"),
            (np.zeros((2, 4)), {"positions": 2}, "could mean a count"),
            (
                np.zeros((2, 4)),
                {"positions": ["a", "b"]},
                "positions must be an array of real numbers",
            ),
            (np.zeros((2, 4)), {"pairing": "split"}, "'interleaved', 'half', got 'split'"),
            (np.zeros((2, 4)), {"base": -1}, "base must be"),
        ],
    )
    def test_refuses(self, X, arguments, match):
        with pytest.raises(ValueError, match=match):
            rope(X, **arguments)


class TestAlibi:
    def test_the_slopes_the_paper_prints(self):
        eight = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
        np.testing.assert_allclose(alibi_slopes(8), eight, rtol=1e-15)
        sixteen = alibi_slopes(16)
        assert sixteen[0] == pytest.approx(1 / math.sqrt(2)) and sixteen[-1] == 1 / 256
        np.testing.assert_allclose(sixteen[1::2], eight)
        np.testing.assert_allclose(sixteen[2::2], np.sqrt(sixteen[1:-1:2] * sixteen[3::2]))
        assert alibi_slopes(1).tolist() == [1 / 256]

    def test_twelve_heads_are_the_eight_and_four_of_the_sixteen(self):
        expected = [*alibi_slopes(8), *(2.0**-p for p in (0.5, 1.5, 2.5, 3.5))]
        np.testing.assert_allclose(alibi_slopes(12), expected, rtol=1e-15)
        np.testing.assert_allclose(alibi_slopes(3), [1 / 16, 1 / 256, 1 / 4])

    @pytest.mark.parametrize("heads", range(1, 40))
    def test_any_number_of_heads(self, heads):
        slopes = alibi_slopes(heads)
        assert slopes.shape == (heads,) and len(set(slopes)) == heads
        assert slopes.min() == 2.0**-8 and slopes.max() < 1

    @pytest.mark.parametrize("heads", [0, 1.0, True])
    def test_refuses_what_is_no_number_of_heads(self, heads):
        with pytest.raises(ValueError, match="heads must be a whole number"):
            alibi_slopes(heads)

    def test_the_two_kinds(self):
        inf = np.inf
        causal = [[0, -inf, -inf], [-0.5, 0, -inf], [-1, -0.5, 0]]
        symmetric = [[0, -0.5, -1], [-0.5, 0, -0.5], [-1, -0.5, 0]]
        assert alibi_bias(3, slopes=0.5).tolist() == causal
        assert alibi_bias(3, slopes=0.5, kind="symmetric").tolist() == symmetric

    @given(st.integers(0, 5), st.integers(0, 5), st.integers(-6, 6))
    def test_every_cell(self, n, m, offset):
        slopes = [0.5, 0.25]
        both = alibi_bias(n, m, slopes=slopes, offset=offset, kind="symmetric")
        assert both.shape == (2, n, m)
        for h, i, j in np.ndindex(both.shape):
            assert both[h, i, j] == -slopes[h] * abs(i + offset - j)
        masked = np.where(causal_mask(n, m, offset=offset), both, -np.inf)
        np.testing.assert_array_equal(alibi_bias(n, m, slopes=slopes, offset=offset), masked)

    def test_a_causal_row_needs_only_the_key_place(self):
        """−s(i − j) and s·j differ by a shift of the row, which softmax ignores."""
        S, s = draw(0, n=5, d=5), 0.3
        keep = causal_mask(5)
        by_key = np.where(keep, S + s * np.arange(5), -np.inf)
        np.testing.assert_allclose(softmax(S + alibi_bias(5, slopes=s)), softmax(by_key))

    def test_refuses(self):
        with pytest.raises(ValueError, match="'causal', 'symmetric', got 'both'"):
            alibi_bias(3, slopes=1, kind="both")
        with pytest.raises(ValueError, match="slopes must be finite"):
            alibi_bias(3, slopes=[1, np.nan])

    @pytest.mark.parametrize(
        ("bias", "options"), [(alibi_bias, {"slopes": 1}), (relative_bias, {"table": [1]})]
    )
    def test_sizes_are_whole_and_not_negative(self, bias, options):
        assert bias(n=0, **options).shape == (0, 0)
        assert bias(n=2, m=0, **options).shape == (2, 0)
        for name, value in itertools.product(("n", "m"), (-1, 2.0)):
            with pytest.raises(ValueError, match=rf"^{name} must be a .* ≥ 0, got {value}$"):
                bias(**options, **({"n": 2} | {name: value}))
        with pytest.raises(ValueError, match=r"^offset must be a whole number, got 0\.5"):
            bias(n=2, offset=0.5, **options)


class TestRelativeBias:
    def test_looks_up_the_step_from_query_to_key(self):
        table = [10, 20, 30, 40, 50]  # steps −2 … 2
        expected = [[30, 40, 50, 50], [20, 30, 40, 50], [10, 20, 30, 40], [10, 10, 20, 30]]
        assert relative_bias(table, 4).tolist() == expected
        assert relative_bias(table, 1, 4, offset=3).tolist() == [[10, 10, 20, 30]]

    def test_one_table_for_each_head(self):
        tables = draw(0, n=3, d=5)
        got = relative_bias(tables, 4, 6)
        assert got.shape == (3, 4, 6)
        for h in range(3):
            np.testing.assert_array_equal(got[h], relative_bias(tables[h], 4, 6))

    def test_holds_alibi(self):
        table = -0.5 * np.abs(np.arange(-4, 5))
        symmetric = alibi_bias(5, slopes=0.5, kind="symmetric")
        np.testing.assert_array_equal(relative_bias(table, 5), symmetric)

    @pytest.mark.parametrize("table", [[1, 2], 3.0, []])
    def test_refuses_a_table_without_a_middle(self, table):
        with pytest.raises(ValueError, match=r"must be \(\.\.\., 2r\+1\).*: got table"):
            relative_bias(table, 3)


class TestEquivarianceGap:
    X = draw(4)
    orders = tuple(list(p) for p in permutations(range(4)))

    def test_by_hand(self):
        # Row i of PX is row ρ(i) of X. A layer that numbers its rows sees 1, 2, 3 stay.
        numbered = equivariance_gap(lambda X: np.arange(3.0)[:, None], np.zeros((3, 1)), [1, 2, 0])
        assert numbered == pytest.approx(math.sqrt(1 + 1 + 4))

    def test_the_layer_gets_the_numbers_as_they_are(self):
        seen = []
        equivariance_gap(lambda X: seen.append(X.dtype) or X, [[1, 2], [3, 4]], [1, 0])
        assert seen == [np.dtype(int)] * 2
        with pytest.raises(ValueError, match=r"^X must be \(\.\.\., n, d\): got X \(2,\)"):
            equivariance_gap(lambda X: X, [1, 2], [1, 0])

    def test_attention_alone_is_equivariant(self):
        for order in self.orders:
            assert equivariance_gap(layer, self.X, order) < 1e-14

    @pytest.mark.parametrize(
        "noticing",
        [
            lambda X: layer(add_positions(X, draw(9, n=4))),
            lambda X: layer(add_positions(X, sinusoidal_positions(4, 6))),
            lambda X: layer(X, rope),
            lambda X: layer(X, mask=causal_mask(4)),
            lambda X: layer(X, mask=alibi_bias(4, slopes=0.5)),
            lambda X: layer(X, mask=relative_bias(draw(8, n=7, d=1)[:, 0], 4)),
        ],
        ids=["learned", "sinusoidal", "rope", "causal", "causal alibi", "relative"],
    )
    def test_what_notices_every_new_order(self, noticing):
        for order in self.orders[1:]:
            assert equivariance_gap(noticing, self.X, order) > 1e-3
        assert equivariance_gap(noticing, self.X, self.orders[0]) == 0

    @pytest.mark.parametrize("slope", [0.5, 0.01])
    def test_a_symmetric_bias_cannot_see_a_reversal(self, slope):
        bias = alibi_bias(4, slopes=slope, kind="symmetric")
        gaps = [equivariance_gap(lambda X: layer(X, mask=bias), self.X, p) for p in self.orders]
        unseen = [p for p, gap in zip(self.orders, gaps, strict=True) if gap < 1e-14]
        assert unseen == [[0, 1, 2, 3], [3, 2, 1, 0]]
        assert sorted(gaps)[2] > 1e-4

    def test_rope_does_see_a_reversal_but_not_a_shift_of_all_places(self):
        reverse = [3, 2, 1, 0]
        assert equivariance_gap(lambda X: layer(X, rope), self.X, reverse) > 0.01
        here = layer(self.X, rope).output
        far = layer(self.X, lambda M: rope(M, np.arange(4) + 100)).output
        np.testing.assert_allclose(here, far, atol=1e-12)

    def test_moving_the_mask_too_brings_equivariance_back(self):
        order = [2, 0, 3, 1]
        keep = causal_mask(4)
        still = layer(self.X, mask=keep).output
        moved = layer(self.X[order], mask=keep[np.ix_(order, order)]).output
        np.testing.assert_allclose(moved, still[order], atol=1e-14)

    def test_takes_an_array_a_result_and_a_batch(self):
        X = draw(5, n=8).reshape(2, 4, 6)
        keep = causal_mask(4)
        order = [1, 0, 2, 3]
        both = equivariance_gap(lambda X: layer(X, mask=keep), X, order)
        plain = equivariance_gap(lambda X: layer(X, mask=keep).output, X, order)
        each = [equivariance_gap(lambda X: layer(X, mask=keep), x, order) for x in X]
        assert both == plain == pytest.approx(math.hypot(*each))

    @pytest.mark.parametrize("order", [[0, 1, 2], [0, 1, 2, 2], [1, 2, 3, 4], [0.0, 1, 2, 3], []])
    def test_refuses_what_is_no_permutation_of_the_rows(self, order):
        with pytest.raises(ValueError, match=r"rearrange the 4 rows of X \(4, 6\)"):
            equivariance_gap(layer, self.X, order)
