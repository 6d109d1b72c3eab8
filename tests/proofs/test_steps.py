"""attn_lib.proofs.steps: when a step holds, how a proof is printed, and the small parts."""

import subprocess
import sys

import numpy as np
import pytest
import sympy as sp

from attn_lib import attention, causal_mask
from attn_lib.positions import rope
from attn_lib.proofs import Proof, Step, merged_tiles
from attn_lib.proofs.steps import (
    attend,
    equal,
    expectation,
    let,
    permutation,
    rotation,
    softmax_rows,
    symbols,
)


class TestStepsAndProofs:
    x = sp.Symbol("x", real=True)

    def test_equal_means_for_all_values(self):
        assert Step("", sp.sin(self.x) ** 2 + sp.cos(self.x) ** 2, sp.Integer(1)).holds
        assert not Step("", self.x**2, self.x).holds
        assert not Step("", sp.sqrt(self.x**2), self.x**3 / self.x**2 + sp.Rational(1, 10**9)).holds

    def test_not_equal_means_not_always(self):
        assert Step("", self.x**2, self.x, "≠").holds
        assert not Step("", (self.x + 1) ** 2, self.x**2 + 2 * self.x + 1, "≠").holds

    def test_at_least_means_for_all_values(self):
        assert Step("", self.x**2 + 1, 2 * self.x, "≥").holds
        assert not Step("", self.x**2, self.x, "≥").holds
        assert not Step("", self.x**2, sp.Integer(1), "≥").holds

    def test_shapes_must_agree(self):
        assert not Step("", sp.zeros(2, 2), sp.zeros(2, 1)).holds
        assert not Step("", sp.zeros(2, 2), sp.Integer(0)).holds
        assert not Step("", sp.zeros(2, 2), sp.zeros(2, 1), "≠").holds

    def test_a_claim_is_printed_in_place_of_the_right_side(self):
        false = merged_tiles().claiming(sp.Symbol("wrong"))
        assert str(false.steps[-1]) == "u / ell = wrong" and not false.holds

    def test_what_symbols_stand_for_is_put_in(self):
        y = sp.Symbol("y")
        assert Step("", self.x**2, y, where={y: self.x**2}).holds
        assert not Step("", self.x**2, y).holds

    def test_how_a_proof_is_printed(self):
        x = sp.Symbol("x_1")
        steps = (
            let("Take $x_1$.", "a", x**2, "x_1^2"),
            equal("Because.", r"\operatorname{E}[x]", x - x, 0),
            equal("All of them.", "M", sp.zeros(2, 3), sp.zeros(2, 3)),
        )
        shown = Proof("A title with $x_1$.", steps)
        assert str(shown).splitlines() == [
            "A title with x_1.",
            "1. Take x_1.",
            "       a := x_1²",
            "2. Because.",
            "       E[x] = 0",
            "3. All of them.",
            "       M = 0",
            "Every step is checked exactly. ∎",
        ]
        assert shown._repr_markdown_().splitlines()[:6] == [
            "**A title with $x_1$.**",
            "",
            "1. Take $x_1$.",
            "",
            "   $$a := x_1^2$$",
            "",
        ]
        assert shown.claiming(1, step=1).failing == (2,)
        assert str(shown.claiming(2, step=1).steps[1]) == "E[x] = 2"
        assert shown.holds  # a claim makes another proof and leaves this one alone


class TestSmallParts:
    def test_softmax_over_the_wrong_axis_is_another_function(self):
        S = symbols("s", 3, 3)
        assert Step("", softmax_rows(S.T).T, softmax_rows(S), "≠").holds

    def test_row_i_of_PX_is_row_rho_i_of_X(self):
        P = permutation([2, 0, 1])
        assert (P * sp.Matrix([10, 11, 12])).tolist() == [[12], [10], [11]]

    def test_a_layer_in_symbols_is_the_layer_in_numbers(self):
        rng = np.random.default_rng(1)
        X, *W = rng.normal(size=(4, 3, 3))
        keep = causal_mask(3)
        bias = sp.Matrix(3, 3, lambda i, j: 0 if j <= i else -sp.oo)
        exact = attend(*(sp.Matrix(M) for M in (X, *W)), bias=bias)
        got = attention(X @ W[0], X @ W[1], X @ W[2], mask=keep).output
        np.testing.assert_allclose(np.array(exact, float), got, atol=1e-12)

    def test_the_rotation_is_that_of_rope(self):
        q = np.array([[0.3, -1.2]])
        turned = np.array(rotation(sp.Integer(5)) * sp.Matrix(q[0]), float)
        np.testing.assert_allclose(rope(q, [5])[0], turned[:, 0], atol=1e-12)


class TestExpectation:
    x, y, z = sp.symbols("x y z")

    def test_of_a_monomial_is_a_product_of_moments(self):
        moments = {self.x: (2, 5), self.y: (3, 7)}
        assert expectation(self.x * self.y**2, moments) == 2 * 7
        assert expectation(self.z * (self.x + 1) ** 2, moments) == self.z * (5 + 4 + 1)
        assert expectation(sp.Integer(4), moments) == 4

    def test_a_moment_that_was_not_assumed_is_refused(self):
        with pytest.raises(ValueError, match=r"E x\^3 is needed, but only 2 moments are given"):
            expectation(self.x**3, {self.x: (0, 1)})


def test_importing_attn_lib_does_not_import_sympy():
    code = "import sys, attn_lib; sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
