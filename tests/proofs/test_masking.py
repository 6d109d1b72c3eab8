"""Proofs of chapter 6: what they refute, and other ways to the same numbers."""

import pytest
import sympy as sp
from proving import found_out

from attn_lib.proofs import causal_derivatives, masked_softmax
from attn_lib.proofs.steps import softmax, symbols

# What is often believed, or a slip of the pen: the step and the false right side.
FALSE = {
    "a mask changes nothing": (masked_softmax, -1, softmax(*symbols("s", 3))),
    "the order of two tokens": (causal_derivatives, -2, sp.eye(3)),
}

test_a_false_statement_is_found_out = found_out(FALSE)


@pytest.mark.parametrize(
    "allowed",
    [lambda i, j: True, lambda i, j: j >= i, lambda i, j: j <= i + 1, lambda i, j: j == i],
    ids=["all", "future", "one ahead", "self only"],
)
def test_only_a_causal_mask_is_causal(allowed):
    assert not causal_derivatives(allowed).holds
