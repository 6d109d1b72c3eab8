"""Proofs of chapter 10: what they refute, and other ways to the same numbers."""

import numpy as np
import pytest
import sympy as sp
from proving import built, found_out

from attn_lib import attention
from attn_lib.proofs import backward_pass, loss_to_output, nothing_to_match, query_gradient
from attn_lib.proofs.steps import stand_for, symbols

ROOT = sp.sqrt(2)

# What is often believed, or a slip of the pen: the step and the false right side.
FALSE = {
    "the factor comes back twice": (backward_pass, 4, lambda step: step.right / ROOT),
    "the factor does not come back": (backward_pass, 4, lambda step: step.right * ROOT),
    "keys collect without a transpose": (backward_pass, 5, lambda step: step.right.T),
    "the loss is pulled by the probabilities alone": (
        loss_to_output,
        1,
        lambda step: step.right + sp.Matrix([[0, 0, 1]]),
    ),
    "the output gets what the stream gets": (
        loss_to_output,
        2,
        lambda step: built(loss_to_output).steps[3].right,
    ),
    "zero queries are learned by no one": (nothing_to_match, 3, lambda step: step.left),
    "even weights give a value all pulls": (nothing_to_match, -1, lambda step: 3 * step.right),
}

test_a_false_statement_is_found_out = found_out(FALSE)


def test_the_gradient_by_differences():
    rng = np.random.default_rng(0)
    q, K, v = rng.normal(size=(1, 2)), rng.normal(size=(3, 2)), rng.normal(size=(3, 1))
    weights, h = attention(q, K, v).weights[0], 1e-6
    numbers = stand_for(symbols("a", 3, positive=True), weights)
    numbers |= stand_for(symbols("k", 3, 2), K.flat) | stand_for(symbols("v", 3), v.flat)
    claimed = np.array(built(query_gradient).steps[-1].right.subs(numbers), float)[0]
    for r in range(2):
        d = h * np.eye(2)[[r]]
        up, down = (attention(q + x, K, v).output[0, 0] for x in (d, -d))
        assert (up - down) / (2 * h) == pytest.approx(claimed[r], abs=1e-8)
