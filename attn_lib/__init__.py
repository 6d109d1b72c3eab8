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
from attn_lib.heads import (
    MultiHeadResult,
    head_contributions,
    merge_heads,
    multi_head_attention,
    multi_head_parameters,
    split_heads,
)
from attn_lib.lookup import exact_scores, gaussian_scores, hard_weights
from attn_lib.masks import (
    apply_mask,
    causal_mask,
    combine_masks,
    padding_mask,
    prefix_mask,
    window_mask,
)
from attn_lib.positions import (
    add_positions,
    alibi_bias,
    alibi_slopes,
    equivariance_gap,
    relative_bias,
    rope,
    sinusoidal_positions,
)
from attn_lib.source import show

__all__ = [
    "AttentionResult",
    "MultiHeadResult",
    "add_positions",
    "alibi_bias",
    "alibi_slopes",
    "apply_mask",
    "attention",
    "attention_scores",
    "attention_weights",
    "causal_mask",
    "combine_masks",
    "cross_attention",
    "equivariance_gap",
    "exact_scores",
    "gaussian_scores",
    "hard_weights",
    "head_contributions",
    "merge_heads",
    "multi_head_attention",
    "multi_head_parameters",
    "padding_mask",
    "prefix_mask",
    "relative_bias",
    "rope",
    "self_attention",
    "show",
    "sinusoidal_positions",
    "softmax",
    "split_heads",
    "window_mask",
]
