"""Proofs of chapter 5: what they refute."""

import sympy as sp
from proving import found_out

from attn_lib.proofs import rope_offset, sinusoid_rotation

p, k, theta = sp.symbols("p k theta", real=True)
q_1, k_1 = sp.symbols("q_1 k_1", real=True)

# What is often believed, or a slip of the pen: the step and the false right side.
FALSE = {
    "rows compare by their places": (sinusoid_rotation, 3, sp.cos((2 * p + k) * theta)),
    "scores are unchanged by RoPE": (rope_offset, -1, q_1 * k_1),
}

test_a_false_statement_is_found_out = found_out(FALSE)
