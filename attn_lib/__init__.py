"""Self-attention from first principles: the mathematics as small numpy functions.

The names below are the public ones. Shapes are ``(..., n, d)`` throughout, rows are
tokens, and leading axes broadcast. ``import attn_lib`` needs numpy alone; the interactive
labs are in ``attn_lib.labs``, the checks for the exercises in ``attn_lib.checks``.
"""

from attn_lib.attention import (
    AttentionResult,
    attention,
    attention_scores,
    attention_weights,
    cross_attention,
    self_attention,
    softmax,
)
from attn_lib.masks import (
    apply_mask,
    causal_mask,
    combine_masks,
    padding_mask,
    prefix_mask,
    window_mask,
)
from attn_lib.source import show

__all__ = [
    "AttentionResult",
    "apply_mask",
    "attention",
    "attention_scores",
    "attention_weights",
    "causal_mask",
    "combine_masks",
    "cross_attention",
    "padding_mask",
    "prefix_mask",
    "self_attention",
    "show",
    "softmax",
    "window_mask",
]
