"""Proofs of chapter 12: what they refute, and other ways to the same numbers."""

import numpy as np
import pytest
import sympy as sp
from proving import built, found_out

from attn_lib.linear import decay_mask, state_attention
from attn_lib.proofs import (
    delta_writes,
    fading_sums,
    latent_keys,
    no_finite_features,
    running_sums,
    state_overflows,
)

beta = sp.Symbol("beta")

# What is often believed, or a slip of the pen: the step and the false right side.
FALSE = {
    "the future may be summed in": (running_sums, -1, lambda _: built(running_sums).steps[3].right),
    "two features make three weights": (no_finite_features, -1, 1),
    "a state of two rows answers three keys": (state_overflows, 3, sp.zeros(3, 1)),
    "no error is left on average": (state_overflows, -1, 0),
    "a token fades by its own gate too": (
        fading_sums,
        1,
        lambda step: step.right * sp.Symbol("gamma_3", positive=True),
    ),
    "gates do not matter": (
        fading_sums,
        -1,
        lambda step: step.right.subs(sp.Symbol("gamma_2", positive=True), 1),
    ),
    "the old value is not erased": (
        delta_writes,
        -1,
        lambda step: step.right + beta * sp.Symbol("z_1"),
    ),
    "the rule climbs": (delta_writes, 1, lambda step: step.right.subs(beta, -beta)),
    "the map stays with the key": (latent_keys, 1, lambda step: 2 * step.right),
}

test_a_false_statement_is_found_out = found_out(FALSE)


def test_the_proved_numbers_are_those_of_the_library():
    rng = np.random.default_rng(3)
    Q, K, V, gates = *rng.normal(size=(2, 5, 3)), rng.normal(size=(5, 2)), rng.random(5)
    output, _ = state_attention(Q, K, V, gates=gates[:, None])
    assert output == pytest.approx((Q @ K.T * decay_mask(gates)) @ V)
    k = K[0] / np.linalg.norm(K[0])
    _, Z = state_attention(Q[1:], K[1:], V[1:])
    _, after = state_attention(k[None], k[None], V[:1], strengths=[0.3], state=Z)
    assert k @ after == pytest.approx(0.7 * k @ Z + 0.3 * V[0])
