"""Answers to the exercises of chapter 8: right ones pass, wrong ones are told why."""

import itertools

import numpy as np
from answers import accepted, named

from attn_lib import softmax
from attn_lib.checks import (
    check_copy_score,
    check_multi_head,
    check_split_heads,
    random_inputs,
)
from attn_lib.checks.heads import MULTI_HEAD_MISTAKES, SPLIT_MISTAKES
from attn_lib.training import induction_score, own_token_score


def split_by_slices(X, heads):
    width = X.shape[1] // heads
    return np.stack([X[:, r * width : (r + 1) * width] for r in range(heads)])


def head_by_head(X, W_Q, W_K, W_V, W_O, heads):
    """Add up what each head writes; nothing is reshaped."""
    d_k, d_v = W_Q.shape[1] // heads, W_V.shape[1] // heads
    total = np.zeros((len(X), W_O.shape[1]))
    for r in range(heads):
        own, out = slice(r * d_k, (r + 1) * d_k), slice(r * d_v, (r + 1) * d_v)
        powers = np.exp(X @ W_Q[:, own] @ (X @ W_K[:, own]).T / np.sqrt(d_k))
        A = powers / powers.sum(axis=1, keepdims=True)
        total += A @ X @ W_V[:, out] @ W_O[out]
    return total


def split_as_a_tuple(X, heads):
    return tuple(np.hsplit(X, heads))


def split_by_einsum(X, heads):
    return np.einsum("nhw->hnw", X.reshape(len(X), heads, -1))


def side_by_side(X, W_Q, W_K, W_V, W_O, heads):
    """Attend with heads in a loop, then join what they have read."""
    read = []
    for q, k, v in zip(*(np.hsplit(W, heads) for W in (W_Q, W_K, W_V)), strict=True):
        read.append(softmax((X @ q) @ (X @ k).T * q.shape[1] ** -0.5) @ (X @ v))
    return np.concatenate(read, axis=1) @ W_O


def by_einsum(X, W_Q, W_K, W_V, W_O, heads):
    Q, K, V = ((X @ W).reshape(len(X), heads, -1) for W in (W_Q, W_K, W_V))
    A = softmax(np.einsum("ihk,jhk->hij", Q, K) / np.sqrt(Q.shape[-1]))
    return np.einsum("hij,jhv->ihv", A, V).reshape(len(X), -1) @ W_O


def copies_by_diagonal(A, L):
    return np.diagonal(A, -L, axis1=-2, axis2=-1).mean(axis=-1).mean(axis=0)


def copies_by_trace(A, L):
    return [sum(np.trace(text[r], -L) for text in A) / len(A) / (L - 1) for r in range(A.shape[1])]


def copies_by_loops(A, L):
    n, found = A.shape[-1], np.zeros(A.shape[1])
    for i in range(L, n):
        found += A[:, :, i, i - L].mean(axis=0) / (n - L)
    return found


COUNTS = [2359296, 1572864, 1536, 512, 8]
RIGHT = [
    ("ex-heads-split", split_by_slices),
    (check_split_heads, split_as_a_tuple),
    (check_split_heads, split_by_einsum),
    ("ex-heads-layer", head_by_head),
    (check_multi_head, side_by_side),
    (check_multi_head, by_einsum),
    ("ex-heads-find", copies_by_diagonal),
    (check_copy_score, copies_by_trace),
    (check_copy_score, copies_by_loops),
    ("ex-heads-who", 0.57),
    ("ex-heads-who", [0.566]),
    ("ex-heads-who", np.sqrt(0.32)),
    ("ex-heads-count", COUNTS),
    ("ex-heads-count", tuple(map(float, COUNTS))),
    ("ex-heads-count", [2.36e6, 1.573e6, 1536, 512, 8.0]),
    ("ex-heads-silence", (7, 1, 1, -5)),
    ("ex-heads-silence", [[7, 1, 1, -5]]),
    ("ex-heads-silence", np.array([7.0, 1.0, 1.0, -5.0])),
]

test_right_answers_pass = accepted(RIGHT)


def divided_by(divisor):
    def layer(X, W_Q, W_K, W_V, W_O, heads):
        read = []
        for q, k, v in zip(*(np.hsplit(W, heads) for W in (W_Q, W_K, W_V)), strict=True):
            read.append(softmax((X @ q) @ (X @ k).T / divisor(X, q, v, heads)) @ (X @ v))
        return np.hstack(read) @ W_O

    return layer


WRONG = [
    ("ex-heads-split", lambda X, h: X.reshape(h, len(X), X.shape[1] // h), "only reshaped"),
    ("ex-heads-split", lambda X, h: np.stack([X[:, r::h] for r in range(h)]), "columns dealt out"),
    ("ex-heads-split", lambda X, h: X.reshape(len(X), h, X.shape[1] // h), "no swap"),
    ("ex-heads-split", lambda X, h: np.stack([Y.T for Y in np.hsplit(X, h)]), "tokens and columns"),
    ("ex-heads-split", lambda X, h: X.reshape(len(X), h, -1).transpose(2, 1, 0), "all axes"),
    ("ex-heads-layer", divided_by(lambda X, q, v, h: np.sqrt(v.shape[1])), "scale of the values"),
    (
        "ex-heads-layer",
        divided_by(lambda X, q, v, h: (X.shape[1] / h) ** 0.5),
        "scale of the token",
    ),
    ("ex-heads-layer", divided_by(lambda X, q, v, h: np.sqrt(h)), "scale of the number of heads"),
    ("ex-heads-layer", divided_by(lambda X, q, v, h: np.sqrt(X.shape[1])), "scale of the model"),
    ("ex-heads-layer", divided_by(lambda X, q, v, h: q.shape[1]), "d_k without the root"),
    ("ex-heads-layer", divided_by(lambda X, q, v, h: 1), "no scale"),
    ("ex-heads-find", lambda A, L: induction_score(A, L), "after the copy"),
    ("ex-heads-find", lambda A, L: own_token_score(A, range(L, A.shape[-1])), "own token"),
    ("ex-heads-find", lambda A, L: np.trace(A, -L, axis1=2, axis2=3).mean(axis=0), "summed"),
    ("ex-heads-find", lambda A, L: np.diagonal(A, L, 2, 3).mean(axis=(0, 2)), "rows and columns"),
    ("ex-heads-find", lambda A, L: np.diagonal(A, -L, 2, 3).mean(), "heads averaged"),
    ("ex-heads-find", lambda A, L: np.diagonal(A[0], -L, 1, 2).mean(axis=-1), "one sequence"),
    ("ex-heads-who", 0.4, "0.7 − 0.3 is how far"),
    ("ex-heads-who", 0.76, "that is the length of the first"),
    ("ex-heads-who", 1.41, "that is the distance of the two"),
    ("ex-heads-who", 0.8, "you add the two"),
    ("ex-heads-who", 0.32, "you forgot the root"),
    ("ex-heads-count", [48 * 768**2, 32 * 768**2, 1536, 512, 8], "each head's maps"),
    ("ex-heads-count", [3 * 768**2, 5 * 768**2 / 3, 1536, 512, 8], "W_O is a matrix"),
    ("ex-heads-count", [2359296, 786432, 1536, 512, 8], "only W_K and W_V shrink"),
    ("ex-heads-count", [2359296, 1572864, 768, 256, 8], "keys *and* values"),
    ("ex-heads-count", [2359296, 1572864, 128, 128, 8], "one head's keys"),
    ("ex-heads-count", [2359296, 1572864, 1536, 512, 27.71], "a score sums 64"),
    ("ex-heads-count", [2359296, 1572864, 1536, 512, 64], "the divisor is the *root*"),
    ("ex-heads-silence", [12, 6, 6, 0], "those are the right token's own"),
    ("ex-heads-silence", [7, -5, -5, -5], "you forgot that the twin"),
    ("ex-heads-silence", [7, 3.5, 3.5, 0], "terms add"),
    ("ex-heads-silence", [1, 1, 1, 0], "those say whether"),
    ("ex-heads-silence", [-7, -1, -1, 5], "ahead is right minus wrong"),
]

test_wrong_answers_are_told_why = named(WRONG)


def test_mistakes_in_splitting_differ_if_the_tokens_divide_too():
    X = random_inputs(0, X=(6, 6))["X"]
    given = [make(X, 3) for _, _, make in SPLIT_MISTAKES]
    for one, other in itertools.combinations(given, 2):
        assert one.shape != other.shape or not np.allclose(one, other)


def test_one_head_does_not_excuse_a_wrong_split():
    """With one head most slips do no harm: the first case must have more."""
    wrong = next(m for m in MULTI_HEAD_MISTAKES if m.name == "only reshaped, twice")
    inputs = random_inputs(1, X=(4, 5), W_Q=(5, 3), W_K=(5, 3), W_V=(5, 2), W_O=(2, 5))
    np.testing.assert_allclose(wrong.make(*inputs.values(), 1), head_by_head(*inputs.values(), 1))
    assert not check_multi_head(wrong.make).ok
