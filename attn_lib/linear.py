"""Attention with a state of fixed size: what is written is added, forgotten or corrected.

`state_attention` is a family in a few lines: linear attention without features, the gated states
and state-space models, the delta rule, and both together. `decay_mask` gives the gated ones as one
masked product, so that all tokens can be read at once.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attn_lib.arrays import Array, takes

__all__ = ["decay_mask", "state_attention"]


def one_or_each(name: str, value: Any, given: Mapping[str, Any]) -> Any:
    """Ask for one gate a token, or one for each row of the state; a rule itself."""
    if value is not None and value.shape[-1] not in (1, given["K"].shape[-1]):
        raise ValueError(f"{name} must be one or d_k numbers for each token: got {value.shape}")
    return value


@takes(
    "Q (..., n, d_k)",
    "K (..., n, d_k)",
    "V (..., n, d_v)",
    "gates (..., n, g)",
    "strengths (..., n)",
    "state (..., d_k, d_v)",
    gates=one_or_each,
)
def state_attention(
    Q: Array,
    K: Array,
    V: Array,
    *,
    gates: Array | None = None,
    strengths: Array | None = None,
    state: Array | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Read n tokens one after the other through a matrix: fade it, write to it, read from it.

    ``Z ← γ Z`` with gates, then ``Z ← Z + kᵀ v``, or with strengths ``Z ← Z + β kᵀ (v − k Z)``;
    then ``o = q Z``.

    Parameters
    ----------
    Q, K : array_like, shape (..., n, d_k)
        Queries and keys, or their features.
    V : array_like, shape (..., n, d_v)
    gates : array_like, shape (..., n, 1) or (..., n, d_k), optional
        γ, between 0 and 1: what share of the state stays when a token comes. One number a token
        fades the whole state, d_k numbers fade each of its rows. By default nothing fades.
    strengths : array_like, shape (..., n), optional
        β: write only what the state does not say yet, at this strength. By default the value is
        added as it is.
    state : array_like, shape (..., d_k, d_v), optional
        What is known of earlier tokens, by default nothing.

    Returns
    -------
    output : ndarray, shape (..., n, d_v)
    state : ndarray, shape (..., d_k, d_v)
        To be handed on with the next tokens.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    There is no normaliser. Constant gates: Sun et al. (2023). One gate a token: Dao and Gu (2024).
    d_k of them: Yang et al. (2024). Strengths: Schlag, Irie and Schmidhuber (2021). Both: Yang,
    Kautz and Hatamizadeh (2025).
    """
    Z = K[..., :0, :].mT @ V[..., :0, :] if state is None else state
    outputs = [Q[..., :0, :] @ Z]
    for i in range(K.shape[-2]):
        q, k, v = (M[..., i : i + 1, :] for M in (Q, K, V))
        if gates is not None:
            Z = gates[..., i, :, None] * Z
        if strengths is not None:
            v = strengths[..., i, None, None] * (v - k @ Z)
        Z = Z + k.mT @ v
        outputs.append(q @ Z)
    return np.concatenate(outputs, axis=-2), Z


@takes("gates (..., n)")
def decay_mask(gates: Array) -> np.ndarray:
    """Say how much of what token j wrote is left when token i reads: γ_{j+1} ⋯ γ_i, 0 for j > i.

    ``(Q K.mT * decay_mask(gates)) @ V`` is what `state_attention` gives with these gates, one for
    each token.

    Parameters
    ----------
    gates : array_like, shape (..., n)
        γ, between 0 and 1.

    Returns
    -------
    ndarray, shape (..., n, n)

    Notes
    -----
    Dao and Gu (2024) call it a 1-semiseparable matrix.
    """
    n = gates.shape[-1]
    later = np.tri(n, k=-1, dtype=bool)  # i > j: gate i fades what j wrote
    factors = np.where(later, gates[..., :, None], 1)
    return np.cumprod(factors, axis=-2) * np.tri(n, dtype=gates.dtype)
