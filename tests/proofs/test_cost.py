"""Proofs of chapter 11: what they refute, and other ways to the same numbers."""

import numpy as np
import pytest
import sympy as sp
from proving import found_out

from attn_lib import softmax
from attn_lib.proofs import (
    Step,
    generation_sums,
    layer_crossings,
    tiles_move_less,
    window_reach,
)
from attn_lib.proofs.cost import merge

n, d, b, rows = sp.symbols("n d b B", positive=True)
tokens = sp.Symbol("n", integer=True, positive=True)

# What is often believed, or a slip of the pen: the step and the false right side.
FALSE = {
    "the quadratic part takes over at d": (layer_crossings, 2, 2 * n * b * (n - d)),
    "causal layers cross where full ones do": (layer_crossings, 3, 2 * n * d * b),
    "a cache makes writing linear": (generation_sums, 1, 4 * tokens * d**2),
    "each layer carries w places": (window_reach, -1, 9),
    "tiles move as many times less as they are tall": (tiles_move_less, -1, rows),
}

test_a_false_statement_is_found_out = found_out(FALSE)


def test_merging_tiles_of_numbers():
    s, v = np.array([1.0, 4.0, 2.0, -3.0]), np.array([2.0, -1.0, 5.0, 7.0])

    def tile(part):
        m = s[part].max()
        power = np.exp(s[part] - m)
        return sp.Float(m), sp.Float(power.sum()), sp.Float(power @ v[part])

    m, l, u = merge(merge(tile(slice(0, 1)), tile(slice(1, 3))), tile(slice(3, 4)))
    assert float(m) == 4 and float(u / l) == pytest.approx(softmax(s) @ v)


def test_merging_without_rescaling_is_wrong():
    x, y = ((sp.Integer(i), sp.Symbol(f"l_{i}"), sp.Symbol(f"u_{i}")) for i in range(2))
    assert Step("", merge(x, y)[1], x[1] + y[1], "≠").holds
