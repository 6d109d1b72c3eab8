"""check_document_mask: right answers in any style pass, each known wrong one is named."""

import itertools

import numpy as np
import pytest

from attn_lib.checks import check_document_mask
from attn_lib.checks.mistakes import DOCUMENT_MASK_MISTAKES


def by_loops(documents):
    n = len(documents)
    return [[j <= i and documents[i] == documents[j] for j in range(n)] for i in range(n)]


def by_blocks(documents):
    mask = np.zeros((len(documents),) * 2, bool)
    for text in np.unique(documents):
        at = np.flatnonzero(documents == text)
        mask[np.ix_(at, at)] = np.tri(len(at), dtype=bool)
    return mask


@pytest.mark.parametrize("right", [by_loops, by_blocks])
def test_right_answers_pass(right):
    assert check_document_mask(right).ok


@pytest.mark.parametrize("mistake", DOCUMENT_MASK_MISTAKES, ids=lambda m: m.name)
def test_each_mistake_is_named(mistake):
    report = check_document_mask(mistake.make)
    assert not report.ok and report.mistake == mistake.name


def test_all_mistakes_differ_on_the_first_case():
    documents = np.array([2, 2, 2, 0, 0, 1])
    masks = [m.make(documents) for m in DOCUMENT_MASK_MISTAKES] + [np.array(by_loops(documents))]
    kinds = [m.name for m in DOCUMENT_MASK_MISTAKES] + ["right"]
    for (a, one), (b, other) in itertools.combinations(zip(kinds, masks, strict=True), 2):
        assert a == b or not np.array_equal(one, other), (a, b)


def test_an_unknown_mistake_is_described():
    report = check_document_mask(lambda documents: np.eye(len(documents), dtype=bool))
    assert not report.ok and report.mistake is None and "numbered in any order" in report.text


def test_a_float_mask_is_refused():
    assert not check_document_mask(lambda documents: np.where(by_loops(documents), 0, -np.inf)).ok
    assert "bool" in check_document_mask(lambda documents: np.array(by_loops(documents)) * 1).text
