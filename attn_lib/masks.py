"""Masks: which keys each query may look at.

A boolean mask is True where a query **may** look. A float mask is added to the scores.
Rows are queries, columns are keys.
"""

from collections.abc import Iterable
from functools import reduce

import numpy as np

from attn_lib.arrays import Array, takes
from attn_lib.rules import as_mask, lengths_up_to, mask_for, whole


@takes("scores (...)", mask=mask_for("scores"))
def apply_mask(scores: Array, mask: Array | None) -> np.ndarray:
    """Set forbidden scores to −∞, or add a float mask to the scores.

    Parameters
    ----------
    scores : array_like, shape (..., n, m)
        Scores, before the softmax: after it a mask would leave rows that do not sum to one.
    mask : array_like, broadcasting to the shape of `scores`, or None
        Boolean: True where the query **may** look. Float: added. None: nothing changes.

    Returns
    -------
    ndarray, shape (..., n, m)
        The dtype of `scores`, whatever the mask's; integers become float64.

    Raises
    ------
    ValueError
        If the mask is neither boolean nor float, or does not broadcast to the scores' own
        shape: a mask never makes scores larger.
    """
    if mask is None:
        return scores
    if mask.dtype == bool:
        return np.where(mask, scores, -np.inf)
    return scores + mask.astype(scores.dtype)


@takes(n=whole(0), m=whole(0, default="n"), offset=whole())
def causal_mask(n: int, m: int | None = None, *, offset: int = 0) -> np.ndarray:
    """Let query i look at key j only if ``j <= i + offset``.

    Parameters
    ----------
    n : int
        Number of queries.
    m : int, optional
        Number of keys, by default n.
    offset : int, default 0
        How many keys stand before the first query's own. This names the alignment when
        n ≠ m. ``offset=0`` is *top-left*: first query with first key. ``offset=m - n`` is
        *bottom-right*: last query with last key, as new tokens need behind a cache of m − n.

    Returns
    -------
    ndarray of bool, shape (n, m)
        True where the query may look. A negative offset leaves the first rows with nothing.

    Raises
    ------
    ValueError
        If n or m is not a whole number ≥ 0, or offset is not whole.

    Notes
    -----
    The rule and the name ``offset`` are those of the ONNX operator ``Attention``, where the offset
    is the length of the cache and 0 without one.
    """
    i, j = np.arange(n)[:, None], np.arange(m)
    return j <= i + offset


@takes(n=whole(0), m=whole(0, default="n"), offset=whole(), window=whole(1))
def window_mask(n: int, m: int | None = None, *, window: int, offset: int = 0) -> np.ndarray:
    """Let query i look at the last `window` keys up to its own: ``i + offset - window < j``.

    Parameters
    ----------
    n, m, offset
        As in `causal_mask`; the window is causal too, so ``j <= i + offset``.
    window : int
        How many keys a query may see, **its own included**.

    Returns
    -------
    ndarray of bool, shape (n, m)
        True where the query may look.

    Raises
    ------
    ValueError
        If `window` is not a whole number ≥ 1; see also `causal_mask`.

    Notes
    -----
    Beltagy, Peters and Cohan (2020).
    """
    i, j = np.arange(n)[:, None], np.arange(m)
    return (i + offset - window < j) & (j <= i + offset)


@takes(n=whole(0), m=whole(0, default="n"), offset=whole(), prefix=whole(0))
def prefix_mask(n: int, m: int | None = None, *, prefix: int, offset: int = 0) -> np.ndarray:
    """Let every query look at the first `prefix` keys, and causally at the rest.

    Parameters
    ----------
    n, m, offset
        As in `causal_mask`.
    prefix : int
        How many keys form the prompt, which is read in both directions.

    Returns
    -------
    ndarray of bool, shape (n, m)
        True where ``j < prefix or j <= i + offset``.

    Raises
    ------
    ValueError
        If `prefix` is not a whole number ≥ 0; see also `causal_mask`.
    """
    i, j = np.arange(n)[:, None], np.arange(m)
    return (j < prefix) | (j <= i + offset)


@takes(m=whole(0), lengths=lengths_up_to("m"))
def padding_mask(lengths: Array, m: int) -> np.ndarray:
    """Hide the padding: in a sequence of length l only keys ``j < l`` may be looked at.

    Parameters
    ----------
    lengths : array_like of int, shape (...)
        True length of each sequence in the batch.
    m : int
        The padded length.

    Returns
    -------
    ndarray of bool, shape (..., 1, m)
        True where a query may look; the 1 stands for all queries. Scores with heads,
        (batch, heads, n, m), need ``padding_mask(lengths[:, None], m)``.

    Raises
    ------
    ValueError
        If a length is not whole, negative or larger than m.

    Notes
    -----
    This hides keys. The rows of padded queries are still computed: ignore them.
    """
    return np.arange(m) < lengths[..., None, None]


def combine_masks(*masks: Array | None) -> np.ndarray | None:
    """Join masks: a query may look where **every** mask lets it.

    Parameters
    ----------
    *masks : array_like or None
        Boolean masks (True = may look), float masks (added), in any order; None is ignored.
        They broadcast against each other.

    Returns
    -------
    ndarray or None
        Boolean if all masks are. With a float mask among them: the sum of the float masks,
        −∞ where a boolean one forbids. None if there is no mask.

    Raises
    ------
    ValueError
        If a mask is neither boolean nor float, or the shapes do not broadcast.
    """
    given = together(mask for mask in masks if mask is not None)
    keeps = [mask for mask in given if mask.dtype == bool]
    biases = [mask for mask in given if mask.dtype != bool]
    if not biases:
        return reduce(np.logical_and, keeps) if keeps else None
    keep = reduce(np.logical_and, keeps, True)
    return np.where(keep, reduce(np.add, biases), -np.inf)


def together(masks: Iterable[Array]) -> list[Array]:
    """Give masks as arrays, or raise ValueError unless they broadcast against each other."""
    masks = [as_mask(mask) for mask in masks]
    try:
        np.broadcast_shapes(*(mask.shape for mask in masks))
    except ValueError:
        shapes = ", ".join(str(mask.shape) for mask in masks)
        raise ValueError(f"masks do not broadcast together: got {shapes}") from None
    return masks
