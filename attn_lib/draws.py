"""Random numbers that numpy and the labs' JavaScript draw alike."""

from __future__ import annotations

import numpy as np

STEP = np.uint32(0x9E3779B9)  # 2³² over the golden ratio: neighbouring counters land far apart


def _mix(x: np.ndarray) -> np.ndarray:
    """Scramble 32-bit integers: a multiply-and-shift hash."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def uniforms(seed: int, stream: int, *shape: int) -> np.ndarray:
    """Draw numbers between 0 and 1 by counting: number i depends on seed, stream and i alone.

    A page without a kernel must show the numbers that numpy computes, so both sides draw with
    this generator (and not with numpy's own). A longer draw begins with the shorter one.

    Parameters
    ----------
    seed : int
        Which draw, 0 ≤ seed < 2³².
    stream : int
        Which of the seed's independent sequences.
    *shape : int
        Shape of the result, filled row by row.

    Returns
    -------
    ndarray of float64, of the given shape

    Raises
    ------
    ValueError
        If the seed is out of its range.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must be an integer from 0 to 2³² − 1, got {seed}")
    counter = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint32)
    with np.errstate(over="ignore"):  # 32-bit wrap-around is the point
        key = _mix(_mix(np.array([seed], np.uint32)) + np.uint32(stream))
        return ((_mix(key + counter * STEP) + 0.5) / 2**32).reshape(shape)


def normals(seed: int, stream: int, *shape: int) -> np.ndarray:
    """Draw standard normals, two from each pair of `uniforms` (Box and Muller).

    Parameters
    ----------
    seed, stream, *shape
        See `uniforms`.

    Returns
    -------
    ndarray of float64, of the given shape

    Raises
    ------
    ValueError
        If the seed is out of its range.
    """
    count = int(np.prod(shape))
    uniform = uniforms(seed, stream, count + count % 2)
    radius = np.sqrt(-2 * np.log(uniform[0::2]))
    angle = 2 * np.pi * uniform[1::2]
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return pairs.reshape(-1)[:count].reshape(shape)
