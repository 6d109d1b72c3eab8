"""Answers to the exercises of chapter 1: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted

from attn_lib.checks import check_embedding, check_lookup


def lookup_by_loops(q, K, V, T):
    scores = [-sum((q_r - k_r) ** 2 for q_r, k_r in zip(q, k, strict=True)) / 2 / T for k in K]
    powers = [np.exp(score - max(scores)) for score in scores]
    return sum(power * v for power, v in zip(powers, V, strict=True)) / sum(powers)


def embedding_by_one_hot(ids, E):
    return np.eye(len(E))[ids] @ E


RIGHT = [
    (check_lookup, lookup_by_loops),
    (check_embedding, embedding_by_one_hot),
]

test_right_answers_pass = accepted(RIGHT)
