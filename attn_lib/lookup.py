"""Lookup: from a dictionary, which answers for one key, to attention, which reads them all.

Each function scores keys or turns scores into weights; what is read is always the same sum of
values, ``weights @ V``.
"""

import numpy as np

from attn_lib.arrays import Array, takes
from attn_lib.rules import finite, not_negative, positive


@takes("Q (..., n, d_k)", "K (..., m, d_k)", tolerance=not_negative)
def exact_scores(Q: Array, K: Array, *, tolerance: float = 0.0) -> np.ndarray:
    """Score as a dictionary does: 0 for the key that was asked for, −∞ for every other.

    Parameters
    ----------
    Q : array_like, shape (..., n, d_k)
        One query per row.
    K : array_like, shape (..., m, d_k)
        One key per row.
    tolerance : float, default 0
        How far a query may stand from a key and still be taken for it.

    Returns
    -------
    ndarray, shape (..., n, m)
        A query that is no key has a row of −∞, and its `softmax` is 0: nothing is found.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    found = squared_distances(Q, K) <= tolerance**2
    return np.where(found, 0, -np.inf).astype(Q.dtype)


@takes("Q (..., n, d_k)", "K (..., m, d_k)", bandwidth=positive)
def gaussian_scores(Q: Array, K: Array, *, bandwidth: float = 1.0) -> np.ndarray:
    """Score a key by its distance: ``−‖q − k‖² / (2σ²)``.

    The softmax of these scores weighs each key by a Gaussian bump of width σ around the query,
    as the kernel regression of Nadaraya and Watson does.

    Parameters
    ----------
    Q : array_like, shape (..., n, d_k)
        One query per row.
    K : array_like, shape (..., m, d_k)
        One key per row.
    bandwidth : float, default 1.0
        σ > 0.

    Returns
    -------
    ndarray, shape (..., n, m)

    Raises
    ------
    ValueError
        If the shapes do not fit or `bandwidth` is not > 0.

    Notes
    -----
    ``−‖q − k‖²/2 = q·k − ‖q‖²/2 − ‖k‖²/2``. The softmax ignores ‖q‖², which is the same for every
    key; so with keys of equal length these weights are those of the dot product.
    """
    return -squared_distances(Q, K) / (2 * bandwidth**2)


@takes("scores (...)", tie=not_negative)
def hard_weights(scores: Array, *, tie: float = 1e-9) -> np.ndarray:
    """Give all the weight to the best key: what the softmax of ``scores / T`` tends to as T → 0.

    Parameters
    ----------
    scores : array_like, shape (..., n, m)
        Scores, −∞ where a query may not look.
    tie : float, default 1e-9
        Scores that differ by no more are equal: rounding must not choose between them.

    Returns
    -------
    ndarray, shape (..., n, m)
        Keys with the same best score share it equally. A row of −∞ gives zeros, and one with
        NaN in it, which has no best key, gives NaN.
    """
    best = scores.max(axis=-1, keepdims=True, initial=np.finfo(scores.dtype).min)
    wins = (best - tie <= scores).astype(scores.dtype)
    shared = wins / np.maximum(wins.sum(axis=-1, keepdims=True), 1)
    return np.where(np.isnan(best), np.nan, shared)


@takes("K (..., m, d_k)", length=finite)
def with_length(K: Array, length: float) -> np.ndarray:
    """Stretch all keys to the same length; its direction stays.

    Parameters
    ----------
    K : array_like, shape (..., m, d_k)
        Keys, none of them zero.
    length : float
        The length they get.

    Returns
    -------
    ndarray, shape (..., m, d_k)

    Raises
    ------
    ValueError
        If a key is zero: it has no direction.
    """
    lengths = np.linalg.norm(K, axis=-1, keepdims=True)
    if (lengths == 0).any():
        raise ValueError("a key of length 0 has no direction, so it cannot be given a length")
    return K * (length / lengths)


def convex_hull(points: Array) -> np.ndarray:
    """Walk around a set of points in the plane: the corners of the smallest convex polygon.

    Parameters
    ----------
    points : array_like, shape (m, 2)

    Returns
    -------
    ndarray of int, shape (corners,)
        Which points are corners, against the clock. All points on a line leave its two ends.

    Notes
    -----
    An average with weights ≥ 0 that sum to one never leaves this polygon.
    """
    points = np.asarray(points, float)
    order = np.lexsort((points[:, 1], points[:, 0]))
    lower, upper = _chain(points, order), _chain(points, order[::-1])
    return np.array(lower[:-1] + upper[:-1] or lower)


def _chain(points: np.ndarray, order: np.ndarray) -> list[int]:
    """Follow the points in order, turning only against the clock."""
    chain: list[int] = []
    for new in order:
        while len(chain) > 1 and _turn(*points[[*chain[-2:], new]]) <= 0:
            chain.pop()
        chain.append(int(new))
    return chain


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Say which way the path a, b, c turns: > 0 against the clock."""
    (ux, uy), (vx, vy) = b - a, c - a
    return ux * vy - uy * vx


def squared_distances(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Give ‖q_i − k_j‖² for every query and key, (..., n, m)."""
    return ((Q[..., :, None, :] - K[..., None, :, :]) ** 2).sum(axis=-1)
