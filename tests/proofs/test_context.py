"""Proofs of chapter 1: what they refute."""

import sympy as sp
from proving import found_out

from attn_lib.proofs import temperature_limits

# What is often believed, or a slip of the pen: the step and the false right side.
FALSE = {
    "a small temperature picks one": (temperature_limits, 1, sp.Matrix([[1, 0, 0]])),
}

test_a_false_statement_is_found_out = found_out(FALSE)
