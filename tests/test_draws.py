"""attn_lib.draws: normal numbers by counting, against plain integers and against their law."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attn_lib.draws import normals


def by_hand(seed: int, stream: int, count: int) -> list[float]:
    """Draw the same numbers one by one, with Python's integers."""

    def mix(x: int) -> int:
        x = (x ^ (x >> 16)) * 0x7FEB352D % 2**32
        x = (x ^ (x >> 15)) * 0x846CA68B % 2**32
        return x ^ (x >> 16)

    key = mix((mix(seed) + stream) % 2**32)
    u = [(mix((key + i * 0x9E3779B9) % 2**32) + 0.5) / 2**32 for i in range(1, count + 2)]
    z = []
    for first, second in zip(u[0::2], u[1::2], strict=False):
        radius, angle = math.sqrt(-2 * math.log(first)), 2 * math.pi * second
        z += [radius * math.cos(angle), radius * math.sin(angle)]
    return z[:count]


@pytest.mark.parametrize("seed", [0, 1, 9999, 2**31, 2**32 - 1])
@pytest.mark.parametrize(("stream", "count"), [(0, 1), (1, 7), (3, 64)])
def test_the_same_as_with_plain_integers(seed, stream, count):
    np.testing.assert_allclose(normals(seed, stream, count), by_hand(seed, stream, count))


def test_filled_row_by_row_and_a_longer_draw_begins_with_a_shorter():
    long = normals(5, 2, 60)
    np.testing.assert_array_equal(normals(5, 2, 3, 4, 5), long.reshape(3, 4, 5))
    np.testing.assert_array_equal(normals(5, 2, 7), long[:7])
    assert normals(5, 2).shape == ()


def test_mean_variance_and_tails_are_those_of_the_normal():
    z = normals(0, 0, 200_000)
    assert abs(z.mean()) < 4 / math.sqrt(z.size)
    assert abs(z.var() - 1) < 4 * math.sqrt(2 / z.size)
    assert abs((z**3).mean()) < 4 * math.sqrt(15 / z.size)
    assert abs((z**4).mean() - 3) < 4 * math.sqrt(96 / z.size)
    for limit, expected in ((1, 0.317311), (2, 0.045500), (3, 0.002700)):
        seen = (np.abs(z) > limit).mean()
        assert abs(seen - expected) < 4 * math.sqrt(expected / z.size)


def test_seeds_streams_and_neighbours_have_nothing_in_common():
    draws = np.array([normals(seed, stream, 20_000) for seed in range(4) for stream in range(4)])
    assert np.abs(np.corrcoef(draws) - np.eye(16)).max() < 5 / math.sqrt(20_000)
    for lag in (1, 2, 63, 64, 65):  # along rows and down columns of a 64-column matrix
        product = draws[:, :-lag] * draws[:, lag:]
        assert np.abs(product.mean(axis=1)).max() < 5 / math.sqrt(20_000)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_named(seed):
    with pytest.raises(ValueError, match=rf"seed must be an integer from 0 .*, got {seed}"):
        normals(seed, 0, 3)
