"""Proofs of chapter 2: what they refute, and who scores highest with one map for both."""

import sympy as sp
from proving import found_out

from attn_lib.proofs import Step, only_products_matter, score_rank, softmax_shift
from attn_lib.proofs.steps import stand_for, symbols

W, U, X = symbols("q", 2, 2), symbols("k", 2, 2), symbols("x", 2, 2)

# What is often believed, or a slip of the pen: the step and the false right side.
FALSE = {
    "a bias on the keys changes nothing in the scores": (softmax_shift, 3, sp.zeros(1, 3)),
    "both maps turned alike give the same scores": (only_products_matter, 2, lambda s: s.left),
    "the factor C is lost between queries and keys": (only_products_matter, -1, X * W * U * X.T),
    "two rows are dependent already": (score_rank, 2, lambda step: step.left),
}

test_a_false_statement_is_found_out = found_out(FALSE)


class TestATokensOwnScore:
    """With W_Q = W_K the query is the token's own key k; another key is l."""

    k, l = symbols("k", 2), symbols("l", 2)
    lead, gap = k.dot(k) - k.dot(l), (k - l).dot(k - l) / 2

    def test_no_key_of_equal_length_beats_it(self):
        longer = (self.k.dot(self.k) - self.l.dot(self.l)) / 2
        assert Step("", self.lead, self.gap + longer).holds  # longer is 0 if lengths are equal
        assert Step("", self.gap, sp.Integer(0), "≥").holds

    def test_a_longer_key_can(self):
        twice = self.lead.subs(stand_for(self.l, 2 * self.k))
        assert Step("", twice, -self.k.dot(self.k)).holds
