"""attn_lib.masks: polarity, alignment, windows, padding and their combinations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx_attention import onnx_attention

from attn_lib import (
    apply_mask,
    attention,
    causal_mask,
    combine_masks,
    padding_mask,
    prefix_mask,
    window_mask,
)

counts = st.integers(0, 8)
offsets = st.integers(-9, 9)


def average(mask):
    """Zero scores and values 1, 2, …, m: each output is the mean of the readable values."""
    n, m = mask.shape
    values = np.arange(1.0, m + 1)[:, None]
    return attention(np.zeros((n, 2)), np.zeros((m, 2)), values, mask=mask).output[:, 0]


class TestCausal:
    def test_square(self):
        assert causal_mask(3).dtype == bool
        assert causal_mask(3).tolist() == [
            [True, False, False],
            [True, True, False],
            [True, True, True],
        ]

    @pytest.mark.parametrize(
        ("n", "m", "offset", "expected"),
        [
            (2, 5, 0, [1, 1.5]),
            (2, 5, 3, [2.5, 3]),
            (5, 2, 0, [1, 1.5, 1.5, 1.5, 1.5]),
            (5, 2, -3, [0, 0, 0, 1, 1.5]),
            (1, 5, 0, [1]),
            (1, 5, 4, [3]),
        ],
    )
    def test_alignment_is_named_by_the_offset(self, n, m, offset, expected):
        np.testing.assert_allclose(average(causal_mask(n, m, offset=offset)), expected)

    def test_keys_per_row_when_queries_outnumber_keys(self):
        assert causal_mask(5, 2).sum(axis=1).tolist() == [1, 2, 2, 2, 2]
        assert causal_mask(5, 2, offset=-3).sum(axis=1).tolist() == [0, 0, 0, 1, 2]

    @given(counts, counts, offsets)
    def test_every_cell(self, n, m, offset):
        mask = causal_mask(n, m, offset=offset)
        assert mask.shape == (n, m)
        for i, j in np.ndindex(n, m):
            assert mask[i, j] == (j <= i + offset)

    @given(st.integers(1, 8), st.integers(1, 8))
    def test_last_with_last(self, n, m):
        mask = causal_mask(n, m, offset=m - n)
        assert mask[-1].all()
        np.testing.assert_array_equal(mask[1:], causal_mask(n - 1, m, offset=m - n + 1))

    @pytest.mark.parametrize(
        ("arguments", "name"),
        [
            ({"n": -1}, "n"),
            ({"n": 2.0}, "n"),
            ({"n": True}, "n"),
            ({"n": 2, "m": -1}, "m"),
            ({"n": 2, "offset": 0.5}, "offset"),
        ],
    )
    def test_refuses_what_is_not_a_size(self, arguments, name):
        with pytest.raises(ValueError, match=rf"^{name} must be a whole number"):
            causal_mask(**arguments)


class TestWindow:
    def test_counts_the_own_key(self):
        mask = window_mask(6, window=3)
        assert mask.sum(axis=1).tolist() == [1, 2, 3, 3, 3, 3]
        assert mask.sum() == 15
        assert mask[4].tolist() == [False, False, True, True, True, False]

    def test_of_one_sees_itself(self):
        np.testing.assert_array_equal(window_mask(4, window=1), np.eye(4, dtype=bool))

    @given(counts, counts, offsets, st.integers(1, 9))
    def test_is_causal_and_no_longer_than_the_window(self, n, m, offset, window):
        mask = window_mask(n, m, window=window, offset=offset)
        for i, j in np.ndindex(n, m):
            assert mask[i, j] == (0 <= i + offset - j < window)

    @given(counts, counts, offsets)
    def test_a_wide_window_is_the_causal_mask(self, n, m, offset):
        wide = window_mask(n, m, window=n + m + 10, offset=offset)
        np.testing.assert_array_equal(wide, causal_mask(n, m, offset=offset))

    @pytest.mark.parametrize("window", [0, -1, 2.5, None])
    def test_refuses_a_window_without_the_own_key(self, window):
        with pytest.raises(ValueError, match="window must be a whole number ≥ 1"):
            window_mask(3, window=window)

    def test_agrees_with_onnx(self):
        rng = np.random.default_rng(0)
        Q, K, V = (rng.normal(size=(2, 3, 6, d)) for d in (4, 4, 5))
        output, _ = onnx_attention(Q, K, V, causal=True, window=3)
        ours = attention(Q, K, V, mask=window_mask(6, window=3)).output
        np.testing.assert_allclose(ours, output, rtol=0, atol=1e-12)
        with_a_cache, _ = onnx_attention(
            Q[:, :, :2], K, V, causal=True, window=3, valid_keys=[6, 6]
        )
        ours = attention(Q[:, :, :2], K, V, mask=window_mask(2, 6, window=3, offset=4)).output
        np.testing.assert_allclose(ours, with_a_cache, rtol=0, atol=1e-12)


class TestPrefix:
    def test_by_hand(self):
        mask = prefix_mask(4, prefix=2)
        assert mask.dtype == bool
        assert mask.astype(int).tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]

    @given(counts, counts, offsets, counts)
    def test_is_the_prompt_or_the_past(self, n, m, offset, prefix):
        mask = prefix_mask(n, m, prefix=prefix, offset=offset)
        assert mask.shape == (n, m)
        for i, j in np.ndindex(n, m):
            assert mask[i, j] == (j < prefix or j <= i + offset)

    @given(counts, counts, offsets)
    def test_without_a_prompt_it_is_the_causal_mask(self, n, m, offset):
        mask = prefix_mask(n, m, prefix=0, offset=offset)
        np.testing.assert_array_equal(mask, causal_mask(n, m, offset=offset))

    def test_behind_a_cache_the_prompt_stays_readable(self):
        behind = prefix_mask(2, 6, prefix=3, offset=4)
        np.testing.assert_array_equal(behind, prefix_mask(6, prefix=3)[4:])

    @pytest.mark.parametrize("prefix", [-1, 1.0, None, True])
    def test_refuses_what_is_no_number_of_keys(self, prefix):
        with pytest.raises(ValueError, match=r"^prefix must be a whole number ≥ 0, got"):
            prefix_mask(3, prefix=prefix)


@pytest.mark.parametrize(
    ("mask", "options"),
    [(causal_mask, {}), (window_mask, {"window": 1}), (prefix_mask, {"prefix": 0})],
)
@pytest.mark.parametrize(
    ("sizes", "name"),
    [({"n": -1}, "n"), ({"n": 2.0}, "n"), ({"n": 2, "m": -1}, "m"), ({"n": 2, "m": 2.0}, "m")],
)
def test_sizes_are_whole_and_not_negative(mask, options, sizes, name):
    with pytest.raises(
        ValueError, match=rf"^{name} must be a whole number ≥ 0, got {sizes[name]}$"
    ):
        mask(**sizes, **options)
    assert mask(0, **options).shape == (0, 0)
    assert mask(2, 0, **options).shape == (2, 0)
    with pytest.raises(ValueError, match=r"^offset must be a whole number, got 0\.5"):
        mask(2, **options, offset=0.5)


class TestPadding:
    def test_no_keys(self):
        assert padding_mask([0, 0], 0).shape == (2, 1, 0)
        with pytest.raises(ValueError, match=r"between 0 and m = 0, got \[0, 1\]"):
            padding_mask([0, 1], 0)
        with pytest.raises(ValueError, match=r"^m must be a whole number ≥ 0, got -1"):
            padding_mask([], -1)

    def test_one_row_for_all_queries(self):
        mask = padding_mask([1, 3], 3)
        assert mask.shape == (2, 1, 3)
        assert mask.tolist() == [[[True, False, False]], [[True, True, True]]]

    def test_shapes(self):
        assert padding_mask(2, 3).shape == (1, 3)
        assert padding_mask([[1], [2]], 3).shape == (2, 1, 1, 3)
        assert padding_mask(np.array([], int), 3).shape == (0, 1, 3)

    def test_padding_cannot_be_read(self):
        rng = np.random.default_rng(0)
        Q, K, V = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5, 2))
        padded = attention(Q, K, V, mask=padding_mask([3, 5], 5)).output
        np.testing.assert_allclose(padded[0], attention(Q[0], K[0, :3], V[0, :3]).output)
        np.testing.assert_allclose(padded[1], attention(Q[1], K[1], V[1]).output)

    def test_an_empty_sequence_gives_zeros(self):
        O = attention(
            np.ones((1, 2, 3)), np.ones((1, 4, 3)), np.ones((1, 4, 2)), mask=padding_mask([0], 4)
        )
        assert not O.output.any()

    @pytest.mark.parametrize("lengths", [[4], [-1], [2, 4]])
    def test_refuses_lengths_outside(self, lengths):
        with pytest.raises(ValueError, match=r"between 0 and m = 3, got \["):
            padding_mask(lengths, 3)

    @pytest.mark.parametrize("lengths", [[1.0], [True]])
    def test_refuses_lengths_that_are_not_whole(self, lengths):
        with pytest.raises(ValueError, match="lengths must be whole numbers"):
            padding_mask(lengths, 3)

    def test_refuses_a_size_that_is_not_whole(self):
        with pytest.raises(ValueError, match="m must be a whole number"):
            padding_mask([1], 3.0)


class TestApply:
    def test_boolean_forbids_and_float_adds(self):
        S = np.array([[1.0, 2.0]])
        assert apply_mask(S, [[True, False]]).tolist() == [[1, -np.inf]]
        assert apply_mask(S, [[0.5, -np.inf]]).tolist() == [[1.5, -np.inf]]
        assert apply_mask(S, None).tolist() == [[1, 2]]

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    @pytest.mark.parametrize("mask", [np.array([True, False]), np.array([0.0, -np.inf])])
    def test_keeps_the_dtype_of_the_scores(self, dtype, mask):
        assert apply_mask(np.ones((2, 2), dtype), mask).dtype == dtype

    def test_integer_scores_become_float64(self):
        for mask in (np.array([True, False]), np.array([0.5, -np.inf], np.float32)):
            masked = apply_mask([[1, 2]], mask)
            assert masked.dtype == np.float64 and np.isneginf(masked[0, 1])

    def test_a_single_number_fits_every_score(self):
        assert apply_mask(np.ones((2, 2)), True).tolist() == [[1, 1], [1, 1]]


class TestCombine:
    def test_nothing(self):
        assert combine_masks() is None
        assert combine_masks(None, None) is None

    def test_every_mask_must_allow(self):
        both = combine_masks(causal_mask(3), None, padding_mask([2, 3], 3))
        assert both.dtype == bool and both.shape == (2, 3, 3)
        np.testing.assert_array_equal(both[0, 2], [True, True, False])
        np.testing.assert_array_equal(both[1], causal_mask(3))

    def test_float_masks_add_and_boolean_ones_forbid(self):
        bias = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
        got = combine_masks(causal_mask(2), bias, bias)
        assert got.dtype == np.float32
        assert got.tolist() == [[2, -np.inf], [6, 8]]
        np.testing.assert_array_equal(combine_masks(bias), bias)

    @given(st.permutations(["causal", "window", "bias", None]))
    def test_order_does_not_matter(self, order):
        rng = np.random.default_rng(0)
        masks = {
            "causal": causal_mask(4, 6, offset=2),
            "window": window_mask(4, 6, window=2, offset=2),
            "bias": rng.normal(size=(4, 6)),
            None: None,
        }
        S = rng.normal(size=(4, 6))
        together = apply_mask(S, combine_masks(*(masks[name] for name in order)))
        one_by_one = S
        for mask in masks.values():
            one_by_one = apply_mask(one_by_one, mask)
        np.testing.assert_allclose(together, one_by_one)

    def test_refuses(self):
        with pytest.raises(ValueError, match=r"broadcast together: got \(3, 3\), \(2, 2\)"):
            combine_masks(causal_mask(3), causal_mask(2))
        with pytest.raises(ValueError, match=r"boolean .* or float .* got dtype int64"):
            combine_masks(causal_mask(2), np.ones((2, 2), np.int64))
