"""The drawings that open the chapters: dots are tokens, arcs are reading, thickness is weight."""

from attn_lib.diagrams.openings import (
    backward_flow,
    block_stream,
    causal_line,
    clock_hands,
    edge_counts,
    encoder_decoder,
    lookup_in_context,
    many_heads,
    queries_keys_values,
    shuffled_strands,
    target_shift,
    three_memories,
    tiles_in_memory,
    two_bells,
    two_heads,
)
from attn_lib.diagrams.sketch import Sketch

__all__ = [
    "Sketch",
    "backward_flow",
    "block_stream",
    "causal_line",
    "clock_hands",
    "edge_counts",
    "encoder_decoder",
    "lookup_in_context",
    "many_heads",
    "queries_keys_values",
    "shuffled_strands",
    "target_shift",
    "three_memories",
    "tiles_in_memory",
    "two_bells",
    "two_heads",
]
