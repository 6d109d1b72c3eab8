"""attn_lib.words: numbers as a reader expects them."""

import pytest

from attn_lib.words import fixed, minus


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (-0.5, 2, "−0.50"),
        (-0.004, 2, "0.00"),
        (0.0, 1, "0.0"),
        (-12.6, 0, "−13"),
        (-0.4, 0, "0"),
        (float("-inf"), 2, "−inf"),
        (float("nan"), 2, "nan"),
    ],
)
def test_fixed(value, decimals, text):
    assert fixed(value, decimals) == text


def test_minus():
    assert minus("-3e-05") == "−3e−05"
