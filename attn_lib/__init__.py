"""Self-attention from first principles: the mathematics as small numpy functions.

The names below are the mathematics, each taught in a chapter. Shapes are ``(..., n, d)``
throughout, rows are tokens, and leading axes broadcast. ``import attn_lib`` needs numpy alone;
the rooms beside it load when they are asked for: `attn_lib.training` and `attn_lib.minilm`
(models), `attn_lib.labs` and `attn_lib.figures` (pictures), `attn_lib.proofs`, `attn_lib.checks`
(exercises), `attn_lib.book` (what chapters are written with).
"""

import importlib
from types import ModuleType

from attn_lib.backward import (
    GradientCheck,
    attention_backward,
    block_backward,
    check_gradient,
    cross_entropy_backward,
    embedding_backward,
    feed_forward_backward,
    gelu_backward,
    layer_norm_backward,
    linear_backward,
    loss_and_gradients,
    multi_head_backward,
    numerical_gradient,
    query_jacobian,
    rms_norm_backward,
    softmax_backward,
    transformer_backward,
)
from attn_lib.blocks import (
    BlockResult,
    block,
    erf,
    feed_forward,
    gelu,
    layer_norm,
    post_norm_block,
    pre_norm_block,
    rms_norm,
)
from attn_lib.cost import (
    Cost,
    attention_cost,
    cache_size,
    data_moved,
    generation_cost,
    layer_cost,
    peak_memory,
)
from attn_lib.dot_product import (
    AttentionResult,
    attention,
    attention_scores,
    attention_weights,
    cross_attention,
    entropy,
    self_attention,
    softmax,
)
from attn_lib.efficient import (
    KVCache,
    LinearState,
    SoftmaxState,
    Tile,
    attention_in_tiles,
    attention_tiles,
    elu_plus_one,
    linear_attention,
    linear_attention_step,
    merge_states,
    online_softmax,
    softmax_state,
    tiled_attention,
    windowed_attention,
)
from attn_lib.heads import (
    MultiHeadResult,
    head_contributions,
    merge_heads,
    multi_head_attention,
    multi_head_layer,
    multi_head_parameters,
    split_heads,
)
from attn_lib.interventions import (
    Edit,
    cut_edge,
    edge_effects,
    edge_norms,
    edge_weights,
    intervention,
    log_probability,
    mean_ranks,
    spearman,
    spearman_ceiling,
    zero_heads,
)
from attn_lib.linear import decay_mask, state_attention
from attn_lib.lookup import (
    convex_hull,
    exact_scores,
    gaussian_scores,
    hard_weights,
    with_length,
)
from attn_lib.masks import (
    apply_mask,
    causal_mask,
    combine_masks,
    padding_mask,
    prefix_mask,
    window_mask,
)
from attn_lib.model import (
    Config,
    TransformerResult,
    count_operations,
    count_params,
    cross_entropy,
    generate,
    init_params,
    layer_params,
    param_shapes,
    sample,
    transformer,
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

_ROOMS = ("book", "checks", "figures", "labs", "minilm", "proofs", "training")

__all__ = [
    "AttentionResult",
    "BlockResult",
    "Config",
    "Cost",
    "Edit",
    "GradientCheck",
    "KVCache",
    "LinearState",
    "MultiHeadResult",
    "SoftmaxState",
    "Tile",
    "TransformerResult",
    "add_positions",
    "alibi_bias",
    "alibi_slopes",
    "apply_mask",
    "attention",
    "attention_backward",
    "attention_cost",
    "attention_in_tiles",
    "attention_scores",
    "attention_tiles",
    "attention_weights",
    "block",
    "block_backward",
    "cache_size",
    "causal_mask",
    "check_gradient",
    "combine_masks",
    "convex_hull",
    "count_operations",
    "count_params",
    "cross_attention",
    "cross_entropy",
    "cross_entropy_backward",
    "cut_edge",
    "data_moved",
    "decay_mask",
    "edge_effects",
    "edge_norms",
    "edge_weights",
    "elu_plus_one",
    "embedding_backward",
    "entropy",
    "equivariance_gap",
    "erf",
    "exact_scores",
    "feed_forward",
    "feed_forward_backward",
    "gaussian_scores",
    "gelu",
    "gelu_backward",
    "generate",
    "generation_cost",
    "hard_weights",
    "head_contributions",
    "init_params",
    "intervention",
    "layer_cost",
    "layer_norm",
    "layer_norm_backward",
    "layer_params",
    "linear_attention",
    "linear_attention_step",
    "linear_backward",
    "log_probability",
    "loss_and_gradients",
    "mean_ranks",
    "merge_heads",
    "merge_states",
    "multi_head_attention",
    "multi_head_backward",
    "multi_head_layer",
    "multi_head_parameters",
    "numerical_gradient",
    "online_softmax",
    "padding_mask",
    "param_shapes",
    "peak_memory",
    "post_norm_block",
    "pre_norm_block",
    "prefix_mask",
    "query_jacobian",
    "relative_bias",
    "rms_norm",
    "rms_norm_backward",
    "rope",
    "sample",
    "self_attention",
    "sinusoidal_positions",
    "softmax",
    "softmax_backward",
    "softmax_state",
    "spearman",
    "spearman_ceiling",
    "split_heads",
    "state_attention",
    "tiled_attention",
    "transformer",
    "transformer_backward",
    "window_mask",
    "windowed_attention",
    "with_length",
    "zero_heads",
]


def __getattr__(name: str) -> ModuleType:
    """Load a room when it is first asked for: most need more than numpy."""
    if name in _ROOMS:
        return importlib.import_module(f"attn_lib.{name}")
    raise AttributeError(f"module 'attn_lib' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS])
