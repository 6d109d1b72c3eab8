"""Proofs of chapter 4: exact without any simplifying, and for other sizes."""

import pytest
from proving import built

from attn_lib.proofs import Step, permuted_attention, permuted_softmax
from attn_lib.proofs.steps import attend, permutation, symbols

X, W, SWAP = symbols("x", 3, 2), symbols("w", 2, 2), permutation([1, 0, 2])


@pytest.mark.parametrize("proof", [permuted_attention, permuted_softmax])
def test_differences_vanish_as_they_are_built(proof):
    last = built(proof).steps[-1]
    assert last.left.is_zero_matrix and last.left.shape[0] == 18


def test_the_output_itself_does_move():
    still, moved = attend(X, W, W, W), attend(SWAP * X, W, W, W)
    assert Step("", moved, still, "≠").holds  # equivariant, not invariant
    assert Step("", moved, SWAP * still).holds
    assert not Step("", moved, SWAP.T * still * 2).holds


@pytest.mark.parametrize("n", [2, 4])
def test_softmax_for_other_numbers_of_tokens(n):
    assert permuted_softmax(n).holds


def test_attention_of_other_widths():
    assert permuted_attention(n=2, d_v=1).holds
