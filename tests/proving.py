"""What the tests of proofs share: each proof built once, and a false claim found out."""

from functools import cache

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


def refutes(proof, step, claim):
    """Whether a proof with another right side in one step fails there, and says so.

    `step` is counted as Python counts. A `claim` that is a function is given the step.
    """
    true = built(proof)
    if callable(claim):
        claim = claim(true.steps[step])
    false = true.claiming(claim, step=step)
    number = step % len(true.steps) + 1
    said = all(f"see step {number}" in text for text in (repr(false), false._repr_markdown_()))
    return not false.holds and false.failing == (number,) and said
