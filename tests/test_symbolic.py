"""attn_lib.proofs: every proof holds, every changed statement fails, and numpy agrees."""

import re
import subprocess
import sys
from functools import cache
from itertools import product

import numpy as np
import pytest
import sympy as sp

from attn_lib import attention, causal_mask, proofs, softmax
from attn_lib.positions import rope
from attn_lib.proofs import PROOFS, Proof, Step, d_k, expectation, merge, softmax_rows

NAMES = [proof.__name__ for proof in PROOFS]
ROOT = sp.sqrt(2)


@cache
def proof(name):
    """Each proof is built once for all tests."""
    return getattr(proofs, name)()


def changed(step):
    """Give a right side with which the step says something else, and false."""
    if step.relation == "≠":
        return step.left  # nothing differs from itself
    more = sp.ones(*step.right.shape) if isinstance(step.right, sp.MatrixBase) else 1
    return (step.left if step.relation == "≥" else step.right) + more


class TestEveryProof:
    @pytest.mark.parametrize("name", NAMES)
    def test_holds(self, name):
        assert proof(name).holds, proof(name)
        assert proof(name).failing == ()
        assert proof(name).steps[-1].relation in "=≥"  # the theorem comes last

    @pytest.mark.parametrize("name", NAMES)
    def test_no_step_survives_a_change(self, name):
        for i, step in enumerate(proof(name).steps):
            if step.relation == ":=":
                with pytest.raises(ValueError, match="claims nothing"):
                    proof(name).claiming(0, step=i)
            else:
                false = proof(name).claiming(changed(step), step=i).steps[i]
                assert not false.holds, false

    @pytest.mark.parametrize("name", NAMES)
    def test_prints_as_text_and_as_markdown(self, name):
        text, markdown = repr(proof(name)), proof(name)._repr_markdown_()
        assert not re.search(r"[\\${}]|\*\*[A-Z]", text), text
        assert markdown.count("$$") == 2 * len(proof(name).steps)
        for step in proof(name).steps:
            assert len(step.reason) > 15 and step.reason in markdown
        environments = set(re.findall(r"\\begin\{(\w+)\}", markdown))
        assert environments <= {"matrix", "cases"}  # plain TeX: nothing to define in a page
        assert not re.search(r"\\(?:newcommand|def|mbox|require)\b", markdown)


# What is often believed, or a slip of the pen: the step (from the end) and the false right side.
sigma_q, sigma_k = sp.symbols("sigma_q sigma_k", positive=True)
mu_q, mu_k, c, theta, p, k = sp.symbols("mu_q mu_k c theta p k", real=True)
fourth = sp.Symbol("m_4")
q_1, q_2, q_3 = sp.symbols("q_1:4", real=True)
a = sp.Matrix([sp.symbols("a_1:4", positive=True)])
quarter = sp.Rational(1, 4)
n, d, b = sp.symbols("n d b", positive=True)
n_tokens = sp.Symbol("n", integer=True, positive=True)
shrunk_gradient = proof("undivided").steps[2].right / 2  # divided by √2 where it is multiplied
FALSE = {
    "the sum has variance √d_k": ("score_variance", -2, sp.sqrt(d_k)),
    "dividing by √d_k divides the variance by √d_k": ("score_variance", -1, sp.sqrt(d_k)),
    "dividing by d_k was meant": ("score_variance", -1, 1 / d_k),
    "four terms, not three": ("score_variance_by_expansion", -1, 4),
    "means do not matter": ("score_variance_with_means", -1, d_k * sigma_q**2 * sigma_k**2),
    "squares of all": (
        "score_variance_with_means",
        -1,
        d_k * (sigma_q**2 + mu_q**2) * (sigma_k**2 + mu_k**2),
    ),
    "tied weights are as independent ones": ("tied_weights", -1, d_k),
    "the fourth moment, mean not taken off": ("tied_weights", -1, d_k * fourth),
    "linear in the cosine": ("tied_weights_two_tokens", -1, d_k * (1 + c)),
    "uncorrelated is enough": ("random_sign", -1, d_k),
    "given the query it is still 1": ("variance_given_the_query", -1, 1),
    "the tokens must be orthogonal": ("variance_over_the_weights", -2, 0),
    "the outer product alone": ("softmax_jacobian", -1, -a.T * a),
    "weights as if independent": ("softmax_jacobian", -1, sp.diag(*a)),
    "two tied winners saturate": ("jacobian_limits", -1, sp.zeros(3, 3)),
    "the lead counts twice": ("jacobian_limits", 1, 0),
    "the eigenvalue is a(1 − a)": (
        "jacobian_norm",
        0,
        sp.Matrix([[0, sp.Symbol("a", positive=True) * (1 - sp.Symbol("a", positive=True))]]),
    ),
    "the mean gradient vanishes too": ("median_and_mean", -1, 0),
    "every gradient stays": ("median_and_mean", 4, 1),
    "the gradient is divided by √d_k": ("undivided", 2, shrunk_gradient),
    "a small temperature picks one": ("temperature_limits", 1, sp.Matrix([[1, 0, 0]])),
    "the factor comes back twice": (
        "backward_pass",
        4,
        proof("backward_pass").steps[4].right / ROOT,
    ),
    "the factor does not come back": (
        "backward_pass",
        4,
        proof("backward_pass").steps[4].right * ROOT,
    ),
    "keys collect without a transpose": (
        "backward_pass",
        5,
        proof("backward_pass").steps[5].right.T,
    ),
    "zero queries are learned by no one": (
        "nothing_to_match",
        3,
        proof("nothing_to_match").steps[3].left,
    ),
    "even weights give a value all pulls": (
        "nothing_to_match",
        -1,
        3 * proof("nothing_to_match").steps[-1].right,
    ),
    "a mask changes nothing": (
        "masked_softmax",
        -1,
        softmax_rows(sp.Matrix([sp.symbols("s_1:4", real=True)])),
    ),
    "a key of value 0 can be masked for nothing": ("cut_key", 2, 0),
    "its term is what masking takes": (
        "cut_key",
        2,
        -proofs.softmax_rows(sp.Matrix([sp.symbols("s_1:4", real=True)]))[2]
        * sp.Symbol("v_3", real=True),
    ),
    "the order of two tokens": ("causal_derivatives", -2, sp.eye(3)),
    "an exchange never shows": ("one_mixture", 1, sp.zeros(1, 2)),
    "two heads always tell": (
        "one_mixture",
        -2,
        proofs._symbols("u", 1, 2) - proofs._symbols("v", 1, 2),
    ),
    "weights do not depend on other keys": (
        "first_layer",
        -2,
        proof("first_layer").steps[3].left,
    ),
    "more heads, more parameters": (
        "head_parameters",
        -1,
        4 * sp.Symbol("h", integer=True, positive=True) * sp.Symbol("d", integer=True) ** 2,
    ),
    "three keys have other weights too": ("other_weights", 1, proof("other_weights").steps[1].left),
    "other weights sum to something else": ("other_weights", 5, sp.Matrix([[0, 0, 1]])),
    "rows compare by their places": ("sinusoid_rotation", 3, sp.cos((2 * p + k) * theta)),
    "the quadratic part takes over at d": ("layer_crossings", 2, 2 * n * b * (n - d)),
    "causal layers cross where full ones do": ("layer_crossings", 3, 2 * n * d * b),
    "a cache makes writing linear": ("generation_sums", 1, 4 * n_tokens * d**2),
    "each layer carries w places": ("window_reach", -1, 9),
    "tiles move as many times less as they are tall": (
        "data_moved",
        -1,
        sp.Symbol("B", positive=True),
    ),
    "the future may be summed in": (
        "linear_attention",
        -1,
        proof("linear_attention").steps[3].right,
    ),
    "scores are unchanged by RoPE": ("rope_offset", -1, sp.Symbol("q_1") * sp.Symbol("k_1")),
}


@pytest.mark.parametrize(("name", "step", "claim"), FALSE.values(), ids=FALSE)
def test_a_false_statement_is_found_out(name, step, claim):
    false = proof(name).claiming(claim, step=step)
    number = len(false.steps) + step + 1 if step < 0 else step + 1
    assert not false.holds and false.failing == (number,)
    assert f"see step {number}" in repr(false) and f"see step {number}" in false._repr_markdown_()


class TestParameters:
    @pytest.mark.parametrize("width", [1, 2, 3, 4])
    def test_variance_multiplied_out(self, width):
        checked = proofs.score_variance_by_expansion(width)
        assert checked.holds and checked.steps[-1].right == width

    @pytest.mark.parametrize("n", [2, 4])
    def test_other_numbers_of_keys(self, n):
        assert proofs.softmax_jacobian(n).holds
        assert proofs.permuted_softmax(n).holds

    def test_equivariance_of_other_widths(self):
        assert proofs.equivariance(n=2, d_v=1).holds

    @pytest.mark.parametrize(
        "allowed",
        [lambda i, j: True, lambda i, j: j >= i, lambda i, j: j <= i + 1, lambda i, j: j == i],
        ids=["all", "future", "one ahead", "self only"],
    )
    def test_only_a_causal_mask_is_causal(self, allowed):
        assert not proofs.causal_derivatives(allowed).holds


class TestEquivarianceIsExact:
    """The differences vanish as they are built: no simplification is asked for."""

    X, W = proofs._symbols("x", 3, 2), proofs._symbols("w", 2, 2)
    swap = proofs._permutation([1, 0, 2])

    def test_zero_without_simplifying(self):
        for name in ("equivariance", "permuted_softmax"):
            last = proof(name).steps[-1]
            assert last.left.is_zero_matrix and last.left.shape[0] == 18

    def test_the_output_itself_does_move(self):
        still = proofs._attend(self.X, self.W, self.W, self.W)
        moved = proofs._attend(self.swap * self.X, self.W, self.W, self.W)
        assert Step("", moved, still, "≠").holds  # equivariant, not invariant
        assert Step("", moved, self.swap * still).holds
        assert not Step("", moved, self.swap.T * still * 2).holds

    def test_softmax_over_the_wrong_axis_is_another_function(self):
        S = proofs._symbols("s", 3, 3)
        assert Step("", softmax_rows(S.T).T, softmax_rows(S), "≠").holds

    def test_row_i_of_PX_is_row_rho_i_of_X(self):
        P = proofs._permutation([2, 0, 1])
        assert (P * sp.Matrix([10, 11, 12])).tolist() == [[12], [10], [11]]


class TestAgainstNumbers:
    """The same claims by another way: enumeration of all cases, or numpy."""

    @staticmethod
    def moments(q_values, k_values, width):
        """Mean and variance of a score over all equally likely coordinates."""
        cases = product(product(q_values, repeat=width), product(k_values, repeat=width))
        scores = [np.dot(q, k) for q, k in cases]
        return np.mean(scores), np.var(scores)

    @pytest.mark.parametrize("width", [1, 2, 3, 4])
    def test_signs_have_variance_d_k(self, width):
        mean, variance = self.moments([-1, 1], [-1, 1], width)
        claimed = proof("score_variance").steps[-2].right
        assert mean == 0 and variance == float(claimed.subs(d_k, width))

    @pytest.mark.parametrize("width", [1, 2, 3])
    def test_two_values_with_any_mean(self, width):
        mean, variance = self.moments([-1, 3], [0, 1], width)
        given = {mu_q: 1, sigma_q: 2, mu_k: sp.Rational(1, 2), sigma_k: sp.Rational(1, 2)}
        claimed = proof("score_variance_with_means").steps[-1].right
        assert variance == float(claimed.subs(given).subs(d_k, width)) and mean == width / 2

    def test_tied_weights_by_enumeration(self):
        # −√2, 0, 0, √2: mean 0, variance 1, fourth moment 2
        values = np.array([-np.sqrt(2), 0, 0, np.sqrt(2)])
        scores = [np.dot(q, q) for q in product(values, repeat=3)]
        claimed = proof("tied_weights").steps[-1].right.subs({fourth: 2, d_k: 3})
        assert np.mean(scores) == pytest.approx(3)
        assert np.var(scores) == pytest.approx(float(claimed))

    def test_the_jacobian_by_differences(self):
        s, h = np.array([0.3, -1.0, 0.8]), 1e-6
        step = proof("softmax_jacobian").steps[-1]
        J = np.array(step.right.subs(dict(zip(a, softmax(s), strict=True))), float)
        for j in range(3):
            d = h * np.eye(3)[j]
            np.testing.assert_allclose(
                (softmax(s + d) - softmax(s - d)) / (2 * h), J[:, j], atol=1e-9
            )
        assert np.linalg.norm(J, 2) <= 0.5

    def test_the_gradient_by_differences(self):
        rng = np.random.default_rng(0)
        q, K, v = rng.normal(size=(1, 2)), rng.normal(size=(3, 2)), rng.normal(size=(3, 1))
        weights, h = attention(q, K, v).weights[0], 1e-6
        symbols = dict(zip(a, weights, strict=True))
        symbols |= {sp.Symbol(f"k_{i + 1}{j + 1}", real=True): K[i, j] for i, j in np.ndindex(3, 2)}
        symbols |= {sp.Symbol(f"v_{j + 1}", real=True): v[j, 0] for j in range(3)}
        claimed = np.array(proof("query_gradient").steps[-1].right.subs(symbols), float)[0]
        for r in range(2):
            d = h * np.eye(2)[[r]]
            up, down = (attention(q + x, K, v).output[0, 0] for x in (d, -d))
            assert (up - down) / (2 * h) == pytest.approx(claimed[r], abs=1e-8)

    def test_a_layer_in_symbols_is_the_layer_in_numbers(self):
        rng = np.random.default_rng(1)
        X, *W = rng.normal(size=(4, 3, 3))
        keep = causal_mask(3)
        bias = sp.Matrix(3, 3, lambda i, j: 0 if j <= i else -sp.oo)
        exact = proofs._attend(*(sp.Matrix(M) for M in (X, *W)), bias)
        got = attention(X @ W[0], X @ W[1], X @ W[2], mask=keep).output
        np.testing.assert_allclose(np.array(exact, float), got, atol=1e-12)

    def test_the_rotation_is_that_of_rope(self):
        q = np.array([[0.3, -1.2]])
        turned = np.array(proofs._turn(sp.Integer(5)) * sp.Matrix(q[0]), float)
        np.testing.assert_allclose(rope(q, [5])[0], turned[:, 0], atol=1e-12)

    def test_merging_tiles_of_numbers(self):
        s, v = np.array([1.0, 4.0, 2.0, -3.0]), np.array([2.0, -1.0, 5.0, 7.0])

        def tile(part):
            m = s[part].max()
            power = np.exp(s[part] - m)
            return sp.Float(m), sp.Float(power.sum()), sp.Float(power @ v[part])

        m, l, u = merge(merge(tile(slice(0, 1)), tile(slice(1, 3))), tile(slice(3, 4)))
        assert float(m) == 4 and float(u / l) == pytest.approx(softmax(s) @ v)

    def test_merging_without_rescaling_is_wrong(self):
        x, y = ((sp.Integer(i), sp.Symbol(f"l_{i}"), sp.Symbol(f"u_{i}")) for i in range(2))
        assert Step("", merge(x, y)[1], x[1] + y[1], "≠").holds


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


def test_a_sum_has_all_variances_and_twice_each_covariance():
    v, w = sp.symbols("v w")
    total = proofs._sum_variance(v, w)
    assert sp.expand(total - d_k * v - d_k * (d_k - 1) * w) == 0


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
        false = proof("online_softmax").claiming(sp.Symbol("wrong"))
        assert str(false.steps[-1]) == "u / l = wrong" and not false.holds

    def test_what_symbols_stand_for_is_put_in(self):
        y = sp.Symbol("y")
        assert Step("", self.x**2, y, where={y: self.x**2}).holds
        assert not Step("", self.x**2, y).holds

    def test_how_a_proof_is_printed(self):
        x = sp.Symbol("x_1")
        steps = (
            proofs.let("Take $x_1$.", "a", x**2, "x_1^2"),
            proofs.equal("Because.", r"\operatorname{E}[x]", x - x, 0),
            proofs.equal("All of them.", "M", sp.zeros(2, 3), sp.zeros(2, 3)),
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


def test_importing_attn_lib_does_not_import_sympy():
    code = "import sys, attn_lib; sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
