"""What the tests of proofs share: each proof built once, and a test made of false claims."""

from functools import cache

import pytest
import sympy as sp


@cache
def built(proof):
    """Give what a function of attn_lib.proofs returns; several tests look at it."""
    return proof()


def changed(step):
    """Give a right side with which the step says something else, and false."""
    if step.relation == "≠":
        return step.left  # nothing differs from itself
    more = sp.ones(*step.right.shape) if isinstance(step.right, sp.MatrixBase) else 1
    return (step.left if step.relation == "≥" else step.right) + more


def found_out(claims):
    """Make a test of false claims by name: (proof, step, another right side for it).

    A step is counted as Python counts. A right side that is a function is given the step.
    """

    @pytest.mark.parametrize(("proof", "step", "claim"), claims.values(), ids=claims)
    def test(proof, step, claim):
        true = built(proof)
        false = true.claiming(claim(true.steps[step]) if callable(claim) else claim, step=step)
        number = step % len(true.steps) + 1
        assert not false.holds and false.failing == (number,), false
        assert f"see step {number}" in repr(false)
        assert f"see step {number}" in false._repr_markdown_()

    return test
