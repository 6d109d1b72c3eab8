"""Answers to the exercises of chapter 10: right ones pass, wrong ones are told why."""

import numpy as np
import pytest
from answers import accepted, named

from attn_lib import attention, softmax
from attn_lib.backward import attention_backward, numerical_gradient
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


def backward_as_a_list(*given):
    return list(backward_query_by_query(*given))


def backward_by_the_library(dO, Q, K, V):
    return attention_backward(dO, Q, K, V, weights=attention(Q, K, V).weights)


def adam_by_the_book(g, mean, square, step, rate):
    t = step + 1
    mean, square = 0.9 * mean + 0.1 * g, 0.99 * square + 0.01 * g**2
    change = -rate * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.99**t)) + 1e-8)
    return change, mean, square


def adam_as_a_list(*given):
    return list(adam_by_the_book(*given))


def adam_with_one_factor(g, mean, square, step, rate):
    """As the paper's remark has it: both corrections in the rate."""
    mean, square = mean + 0.1 * (g - mean), square + 0.01 * (g * g - square)
    rate = rate * np.sqrt(1 - 0.99 ** (step + 1)) / (1 - 0.9 ** (step + 1))
    return -rate * mean / np.sqrt(square), mean, square


def a_loss(pulls, K, V):
    return lambda Q: (pulls * attention(Q, K, V).output).sum()


def units(Q):
    return np.eye(Q.size).reshape(-1, *Q.shape)


def differences(pulls, Q, K, V, h):
    loss = a_loss(pulls, K, V)
    slopes = [(loss(Q + h * unit) - loss(Q - h * unit)) / (2 * h) for unit in units(Q)]
    return np.reshape(slopes, Q.shape)


def differences_in_place(pulls, Q, K, V, h):
    loss, Q, gradient = a_loss(pulls, K, V), Q.copy(), np.empty_like(Q)
    for at in np.ndindex(Q.shape):
        Q[at] += h
        above = loss(Q)
        Q[at] -= 2 * h
        below = loss(Q)
        Q[at] += h
        gradient[at] = above / (2 * h) - below / (2 * h)
    return gradient


def differences_by_the_library(pulls, Q, K, V, h):
    return numerical_gradient(a_loss(pulls, K, V), Q, h=h)


RIGHT = [
    ("ex-learning-hand", [-1.25, -0.25, 1.5, 0]),
    ("ex-learning-hand", [[-1.25, -0.25, 1.5, 0]]),
    ("ex-learning-hand", (-1.25, -0.25, 1.5, 0.0)),
    ("ex-learning-pull", [-1.5, -1]),
    ("ex-learning-pull", np.array([[-1.5, -1]])),
    ("ex-learning-pull", (-1.5, -1.0)),
    ("ex-learning-rows", [[1.5, 0.5], [1, -1], [0, 0]]),
    ("ex-learning-rows", np.array([[1.5, 0.5], [1, -1], [0, 0]])),
    ("ex-learning-rows", ((1.5, 0.5), (1, -1), (0, -0.0))),
    ("ex-learning-differences", differences),
    ("ex-learning-differences", differences_in_place),
    ("ex-learning-differences", differences_by_the_library),
    (check_attention_backward, backward_query_by_query),
    (check_attention_backward, backward_as_a_list),
    (check_attention_backward, backward_by_the_library),
    (check_adam, adam_by_the_book),
    (check_adam, adam_as_a_list),
    (check_adam, adam_with_one_factor),
]

test_right_answers_pass = accepted(RIGHT)


def one_side(pulls, Q, K, V, h, toward=1):
    loss = a_loss(pulls, K, V)
    moved = [loss(Q + toward * h * unit) for unit in units(Q)]
    return np.reshape(np.array(moved) - loss(Q), Q.shape) / (toward * h)


def along_all(pulls, Q, K, V, h):
    loss = a_loss(pulls, K, V)
    return np.full(Q.shape, (loss(Q + h) - loss(Q - h)) / (2 * h))


def never_put_back(pulls, Q, K, V, h):
    loss, Q, gradient = a_loss(pulls, K, V), Q.copy(), np.zeros_like(Q)
    for at in np.ndindex(Q.shape):
        Q[at] += h
        above = loss(Q)
        Q[at] -= 2 * h
        gradient[at] = (above - loss(Q)) / (2 * h)
    return gradient


def relative(pulls, Q, K, V, h):
    loss = a_loss(pulls, K, V)
    slopes = [(loss(Q + h * Q * unit) - loss(Q - h * Q * unit)) / (2 * h) for unit in units(Q)]
    return np.reshape(slopes, Q.shape)


def back(dO, Q, K, V, *, mean=None, last=1.0):
    """Go back with another average, or with dK times something."""
    A, root = softmax(Q @ K.T / np.sqrt(K.shape[1])), np.sqrt(K.shape[1])
    dA = dO @ V.T
    dS = A * (dA - (mean(A, dA) if mean else (A * dA).sum(1, keepdims=True)))
    return dS @ K / root, last * dS.T @ Q / root, A.T @ dO


def adam(g, mean, square, step, rate, *, b=(0.9, 0.99), count=1, power=2, root=np.sqrt):
    mean = b[0] * mean + (1 - b[0]) * g
    square = b[1] * square + (1 - b[1]) * np.abs(g) ** power
    m, v = mean / (1 - b[0] ** (step + count)), square / (1 - b[1] ** (step + count))
    return -rate * m / (root(v) + 1e-8), mean, square


WRONG = [
    ("ex-learning-hand", [-2.5, -0.5, 3, 0], "you forgot the factor"),
    ("ex-learning-hand", [-0.62, -0.13, 0.75, 0], "you divided by d_k"),
    ("ex-learning-hand", [0.5, 1.5, 5, 0], "you did not subtract the output"),
    ("ex-learning-hand", [-1, 0, 2, 0], "you subtracted the plain mean"),
    ("ex-learning-hand", [-1.5, 0.25, 1.25, 0], "you took the weights of the text"),
    ("ex-learning-hand", [-5, -1, 3, 0], "you did not multiply by the weights"),
    ("ex-learning-hand", [1.25, 0.25, -1.5, 0], "the sign is that of the output"),
    ("ex-learning-pull", [1.5, 1], "that is wanted less given"),
    ("ex-learning-pull", [2.5, 3], "you did not subtract the 1"),
    ("ex-learning-pull", [1.5, 3], "the third token is the right one"),
    ("ex-learning-pull", [-1, -3], "you multiplied by W_O"),
    ("ex-learning-pull", [-1, -0.25], "that is the pull on the stream"),
    ("ex-learning-pull", [-0.38, -0.25], "that is the derivative of −p"),
    ("ex-learning-pull", [-3, -3], "the error of the right token"),
    ("ex-learning-rows", [[1.5, 0.5], [2, 0], [4, 0]], "you did not subtract each row's average"),
    ("ex-learning-rows", [[1.5, 0.5], [1, -1], [2, 0]], "you subtracted the plain mean"),
    ("ex-learning-rows", [[1.5, 0.5], [2, -2], [0, -4]], "you did not multiply by the weights"),
    ("ex-learning-rows", [[1.5, 0.5], [1, 0], [0, 0]], "you kept only the diagonal"),
    ("ex-learning-rows", [[1, 1], [1, -1], [0, 0]], "your dV is A dO"),
    ("ex-learning-rows", [[0.75, 0.25], [1, -1], [0, 0]], "you averaged"),
    ("ex-learning-rows", None, None),
    ("ex-learning-differences", one_side, "one side"),
    ("ex-learning-differences", lambda *x: one_side(*x, -1), "backward only"),
    ("ex-learning-differences", lambda *x: 2 * differences(*x), "2 forgotten"),
    ("ex-learning-differences", lambda *x: 2 * x[-1] * differences(*x), "h forgotten"),
    ("ex-learning-differences", lambda *x: -differences(*x), "uphill is down"),
    ("ex-learning-differences", along_all, "all entries at once"),
    ("ex-learning-differences", never_put_back, "not put back"),
    ("ex-learning-differences", relative, "a share of the entry"),
    (
        "ex-learning-differences",
        lambda *x: differences_by_the_library(*x[:-1], 1e-6),
        "the derivative itself",
    ),
    ("ex-learning-differences", lambda pulls, Q, K, V: Q, None),
    ("ex-learning-differences", np.ones((3, 2)), None),
    (check_attention_backward, lambda dO, Q, K, V: back(dO, Q, K, V)[2], None),
    (check_attention_backward, lambda dO, Q, K, V: back(dO, Q, K, V)[1:], None),
    (
        check_attention_backward,
        lambda dO, Q, K, V: (Q * 0, K * 0, back(dO, Q, K, V)[2]),
        None,
    ),
    (
        check_attention_backward,
        lambda dO, Q, K, V: back(dO, Q, K, V, last=np.sqrt(K.shape[1])),
        "factor on one side only",
    ),
    (
        check_attention_backward,
        lambda dO, Q, K, V: back(dO, Q, K, V, mean=lambda A, dA: 0),
        "average not subtracted",
    ),
    (
        check_attention_backward,
        lambda dO, Q, K, V: back(dO, Q, K, V, mean=lambda A, dA: dA.mean(1, keepdims=True)),
        "plain average subtracted",
    ),
    (
        check_attention_backward,
        lambda dO, Q, K, V: back(dO, Q, K, V, mean=lambda A, dA: (A * dA).sum(0)),
        "average over queries",
    ),
    (
        check_attention_backward,
        lambda dO, Q, K, V: (*back(dO, Q, K, V)[:2], dO),
        "pull on the values' place",
    ),
    (check_adam, lambda *x: adam_by_the_book(*x)[2], None),
    (check_adam, lambda *x: adam_by_the_book(*x)[0], None),
    (check_adam, lambda *x: adam_by_the_book(*x)[1:], None),
    (check_adam, lambda *x: adam(*x, count=0), "counted from 0"),
    (check_adam, lambda *x: adam(*x, count=1e9), "not corrected"),
    (check_adam, lambda *x: adam(*x, root=lambda v: v), "root forgotten"),
    (check_adam, lambda *x: adam(*x, power=1), "not squared"),
    (check_adam, lambda *x: adam(*x, b=(0.99, 0.9)), "rates of forgetting exchanged"),
    (check_adam, lambda *x: (-adam(*x)[0], *adam(*x)[1:]), "uphill"),
]

test_wrong_answers_are_named = named(WRONG)


@pytest.mark.parametrize("check", [check_attention_backward, check_adam])
def test_all_parts_are_asked_for(check):
    right = {check_attention_backward: backward_query_by_query, check_adam: adam_by_the_book}
    report = check(lambda *given: right[check](*given)[-1])
    assert "all of (" in report.text and "returns 1 of them" in report.text


def test_the_first_step_of_adam_is_the_rate_whatever_the_gradient():
    """What the chapter says of it: only the sign of the first gradient matters."""
    for size in (1e-4, 1.0, 1e4):
        change, *_ = adam_by_the_book(np.array([size, -size]), 0.0, 0.0, 0, 0.1)
        np.testing.assert_allclose(change, [-0.1, 0.1], rtol=1e-3)
