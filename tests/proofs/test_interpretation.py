"""Proofs of chapter 13: what they refute."""

import sympy as sp
from proving import found_out

from attn_lib.proofs import cut_key, other_weights
from attn_lib.proofs.steps import softmax, symbols

a, v = softmax(*symbols("s", 3)), symbols("v", 3)

# What is often believed, or a slip of the pen: the step and the false right side.
FALSE = {
    "a key of value 0 can be masked for nothing": (cut_key, 2, 0),
    "its term is what masking takes": (cut_key, 2, -a[2] * v[2]),
    "three keys have other weights too": (other_weights, 1, lambda step: step.left),
    "other weights sum to something else": (other_weights, 5, sp.Matrix([[0, 0, 1]])),
}

test_a_false_statement_is_found_out = found_out(FALSE)
