"""What every function asks of its arrays: real numbers, shapes that fit, and clear words if not."""

import numpy as np
from numpy.typing import ArrayLike


def promote(*arrays: ArrayLike) -> tuple[list[np.ndarray], np.dtype]:
    """Give the arrays in the precision to compute in, and the dtype to hand back."""
    arrays = [np.asarray(a) for a in arrays]
    for a in arrays:
        if a.dtype.kind not in "biuf":
            raise ValueError(f"expected arrays of real numbers, got dtype {a.dtype}")
    dtype = np.result_type(*arrays)
    if dtype.kind != "f":
        dtype = np.dtype(np.float64)
    working = np.promote_types(dtype, np.float32)
    return [a.astype(working, copy=False) for a in arrays], dtype


def check_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray | None = None) -> None:
    """Raise ValueError unless Q (..., n, d_k), K (..., m, d_k) and V (..., m, d_v) fit."""
    given = {"Q": Q.shape, "K": K.shape} | ({} if V is None else {"V": V.shape})
    shapes = ", ".join(f"{name} {shape}" for name, shape in given.items())
    for name, shape in given.items():
        if len(shape) < 2:
            raise ValueError(f"{name} must be (..., rows, width), one row per token: got {shapes}")
    if Q.shape[-1] != K.shape[-1] or K.shape[-1] == 0:
        raise ValueError(f"Q and K must have the same width d_k ≥ 1: got {shapes}")
    if V is not None and V.shape[-2] != K.shape[-2]:
        raise ValueError(f"K and V must have the same number of rows m: got {shapes}")
    try:
        np.broadcast_shapes(*(shape[:-2] for shape in given.values()))
    except ValueError:
        raise ValueError(f"the leading axes do not broadcast: got {shapes}") from None


def check_projections(name: str, X: np.ndarray, **matrices: np.ndarray) -> None:
    """Raise ValueError unless X is (..., rows, d) and each matrix is (d, width)."""
    for matrix, W in matrices.items():
        if X.ndim < 2 or W.ndim != 2 or X.shape[-1] != W.shape[0]:
            raise ValueError(
                f"{name} @ {matrix} needs {name} (..., rows, d) and {matrix} (d, width): "
                f"got {name} {X.shape} and {matrix} {W.shape}"
            )


def as_mask(mask: ArrayLike) -> np.ndarray:
    """Give the mask as an array; integers are refused, for 0 and 1 could mean either kind."""
    mask = np.asarray(mask)
    if mask.dtype.kind not in "bf":
        raise ValueError(
            f"a mask is boolean (True = may look) or float (added), got dtype {mask.dtype}"
        )
    return mask


def mask_sizes(n: int, m: int | None, offset: int) -> tuple[int, int, int]:
    """Check the arguments shared by the masks that depend on position alone."""
    n = whole("n", n, least=0)
    m = n if m is None else whole("m", m, least=0)
    return n, m, whole("offset", offset)


def whole(name: str, value: int, least: float = -np.inf) -> int:
    """Give `value` as an int, or raise ValueError with its name."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        bound = "" if least == -np.inf else f" ≥ {least}"
        raise ValueError(f"{name} must be a whole number{bound}, got {value!r}")
    return int(value)
