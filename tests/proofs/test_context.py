"""Proofs of chapter 1: what they refute."""

import pytest
import sympy as sp
from proving import refutes

from attn_lib.proofs import temperature_limits

# What is often believed, or a slip of the pen: the step and the false right side.
FALSE = {
    "a small temperature picks one": (temperature_limits, 1, sp.Matrix([[1, 0, 0]])),
}


@pytest.mark.parametrize(("proof", "step", "claim"), FALSE.values(), ids=FALSE)
def test_a_false_statement_is_found_out(proof, step, claim):
    assert refutes(proof, step, claim)
