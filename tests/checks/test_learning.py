"""check_attention_backward and check_adam: right answers pass, known wrong ones are named."""

import itertools

import numpy as np
import pytest

from attn_lib import checks, softmax
from attn_lib.checks import Report, check_adam, check_attention_backward, check_function
from attn_lib.checks.mistakes import ADAM_MISTAKES, BACKWARD_MISTAKES


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


def inputs_of(check, monkeypatch):
    """The inputs a check tries, in order."""
    caught = {}
    monkeypatch.setattr(
        checks, "check_function", lambda f, **rest: caught.update(rest) or Report(True, "")
    )
    check(None)
    monkeypatch.setattr(checks, "check_function", check_function)
    return [case.inputs for case in caught["cases"]]


@pytest.mark.parametrize(
    ("check", "right"),
    [(check_attention_backward, backward_query_by_query), (check_adam, adam_by_the_book)],
)
def test_right_answers_pass(check, right):
    assert check(right).ok


@pytest.mark.parametrize(
    ("check", "mistake"),
    [(check_attention_backward, m) for m in BACKWARD_MISTAKES]
    + [(check_adam, m) for m in ADAM_MISTAKES],
    ids=lambda x: getattr(x, "name", ""),
)
def test_each_mistake_is_named(check, mistake):
    report = check(mistake.make)
    assert not report.ok and report.mistake == mistake.name, report


@pytest.mark.parametrize(
    ("check", "mistakes"),
    [(check_attention_backward, BACKWARD_MISTAKES), (check_adam, ADAM_MISTAKES)],
)
def test_the_first_input_tells_all_mistakes_apart(check, mistakes, monkeypatch):
    first = inputs_of(check, monkeypatch)[0]
    given = {}
    for name, _, make in mistakes:
        try:
            answer = make(*first.values())
        except ValueError:
            continue  # shapes do not fit: told by the error
        parts = answer if isinstance(answer, tuple) else (answer,)
        given[name] = np.concatenate([np.ravel(part) for part in parts])
    assert len(given) >= 6
    for (a, one), (b, other) in itertools.combinations(given.items(), 2):
        assert one.shape != other.shape or not np.allclose(one, other), (a, b)


def test_the_first_step_of_adam_is_the_rate_whatever_the_gradient():
    """What the chapter says of it: only the sign of the first gradient matters."""
    for size in (1e-4, 1.0, 1e4):
        change, *_ = adam_by_the_book(np.array([size, -size]), 0.0, 0.0, 0, 0.1)
        np.testing.assert_allclose(change, [-0.1, 0.1], rtol=1e-3)
