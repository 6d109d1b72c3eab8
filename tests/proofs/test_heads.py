"""Proofs of chapter 8: what they refute."""

import sympy as sp
from proving import found_out

from attn_lib.proofs import first_layer, head_parameters, heads_mean, one_mixture
from attn_lib.proofs.steps import symbols

h, d = sp.symbols("h d", integer=True, positive=True)

# What is often believed, or a slip of the pen: the step and the false right side.
FALSE = {
    "an exchange never shows": (one_mixture, 1, sp.zeros(1, 2)),
    "two heads always tell": (one_mixture, -2, symbols("u", 1, 2) - symbols("v", 1, 2)),
    "weights do not depend on other keys": (first_layer, -2, lambda step: step.left),
    "mean weights are enough": (heads_mean, -1, lambda step: heads_mean().steps[2].left),
    "more heads, more parameters": (head_parameters, -1, 4 * h * d**2),
}

test_a_false_statement_is_found_out = found_out(FALSE)
