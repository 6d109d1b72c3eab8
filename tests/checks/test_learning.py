"""Answers to the exercises of chapter 10: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted

from attn_lib import softmax
from attn_lib.checks import check_adam, check_attention_backward


def backward_query_by_query(dO, Q, K, V):
    root = np.sqrt(K.shape[1])
    dQ, dK, dV = np.zeros_like(Q), np.zeros_like(K), np.zeros_like(V)
    for i, (q, g) in enumerate(zip(Q, dO, strict=True)):
        a = softmax(K @ q / root)
        ds = (np.diag(a) - np.outer(a, a)) @ V @ g
        dQ[i] = ds @ K / root
        dK += np.outer(ds, q) / root
        dV += np.outer(a, g)
    return dQ, dK, dV


def adam_by_the_book(g, mean, square, step, rate):
    t = step + 1
    mean, square = 0.9 * mean + 0.1 * g, 0.99 * square + 0.01 * g**2
    change = -rate * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.99**t)) + 1e-8)
    return change, mean, square


RIGHT = [
    (check_attention_backward, backward_query_by_query),
    (check_adam, adam_by_the_book),
]

test_right_answers_pass = accepted(RIGHT)


def test_the_first_step_of_adam_is_the_rate_whatever_the_gradient():
    """What the chapter says of it: only the sign of the first gradient matters."""
    for size in (1e-4, 1.0, 1e4):
        change, *_ = adam_by_the_book(np.array([size, -size]), 0.0, 0.0, 0, 0.1)
        np.testing.assert_allclose(change, [-0.1, 0.1], rtol=1e-3)
