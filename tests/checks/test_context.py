"""The checks of chapter 1 accept right answers and name each known mistake."""

import numpy as np
import pytest

from attn_lib.checks import check_embedding, check_lookup
from attn_lib.checks.mistakes import EMBEDDING_MISTAKES, LOOKUP_MISTAKES


def lookup_by_loops(q, K, V, T):
    scores = [-sum((q_r - k_r) ** 2 for q_r, k_r in zip(q, k, strict=True)) / 2 / T for k in K]
    powers = [np.exp(score - max(scores)) for score in scores]
    return sum(power * v for power, v in zip(powers, V, strict=True)) / sum(powers)


def embedding_by_one_hot(ids, E):
    return np.eye(len(E))[ids] @ E


@pytest.mark.parametrize(
    ("check", "right"),
    [(check_lookup, lookup_by_loops), (check_embedding, embedding_by_one_hot)],
)
def test_right_answers_written_otherwise(check, right):
    assert check(right).ok, check(right)


@pytest.mark.parametrize(
    ("check", "mistake"),
    [(check_lookup, mistake) for mistake in LOOKUP_MISTAKES]
    + [(check_embedding, mistake) for mistake in EMBEDDING_MISTAKES],
    ids=lambda value: getattr(value, "name", None),
)
def test_each_mistake_is_named(check, mistake):
    report = check(mistake.make)
    assert not report.ok
    assert report.mistake == mistake.name, report
