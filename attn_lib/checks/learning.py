"""Checks of the exercises of chapter 10, and the known mistakes in them."""

import math
from collections.abc import Callable

import numpy as np

from attn_lib.backward import attention_backward
from attn_lib.checks.engine import Case, Mistake, Report, check_function, random_inputs
from attn_lib.checks.qkv import scaled
from attn_lib.dot_product import attention, softmax
from attn_lib.training.loop import Moments, adam_step

__all__ = ["check_adam", "check_attention_backward"]


def _backward(dO, Q, K, V, *, weights=None, factors=(1, 1), centre=None):
    """Go back through attention, with the slips that the table below is made of."""
    A, dA = softmax(scaled(Q, K)) if weights is None else weights, dO @ V.T
    average = (A * dA).sum(axis=-1, keepdims=True) if centre is None else centre(A, dA)
    dS = A * (dA - average) / math.sqrt(K.shape[-1])
    return factors[0] * dS @ K, factors[1] * dS.T @ Q, A.T @ dO


BACKWARD_MISTAKES = (
    Mistake(
        "factor forgotten",
        "the factor 1/√d_k stands in the scores, so it comes back on the way to Q and to K. "
        "Yours are √d_k times too long.",
        lambda *x: _backward(*x, factors=(math.sqrt(x[2].shape[-1]),) * 2),
    ),
    Mistake(
        "factor on one side only",
        "dQ is right, and dK lacks the factor 1/√d_k: a score is divided by √d_k whichever of its "
        "two sides moves.",
        lambda *x: _backward(*x, factors=(1, math.sqrt(x[2].shape[-1]))),
    ),
    Mistake(
        "raw scores",
        "your weights come from the raw scores: go forward with the division by √d_k too.",
        lambda *x: _backward(*x, weights=softmax(x[1] @ x[2].T)),
    ),
    Mistake(
        "average not subtracted",
        "you let each weight grow with its own score, and forget that a row shares: what one key "
        "gains the others lose. Subtract from dA its average under the weights of the row.",
        lambda *x: _backward(*x, centre=lambda A, dA: 0),
    ),
    Mistake(
        "plain average subtracted",
        "you subtract the plain mean of dA. The average is one under the weights of the row: "
        "Σ_j a_j dA_j.",
        lambda *x: _backward(*x, centre=lambda A, dA: dA.mean(axis=-1, keepdims=True)),
    ),
    Mistake(
        "average over queries",
        "you average down the columns. Softmax runs along a row, over the keys, and so does its "
        "way back.",
        lambda *x: _backward(*x, centre=lambda A, dA: (A * dA).sum(axis=0, keepdims=True)),
    ),
    Mistake(
        "pull on the values' place",
        "your dV is dO: as if each output read one value. A value collects from all outputs, as "
        "much as they read it: Aᵀ dO.",
        lambda *x: (*_backward(*x)[:2], x[0]),
    ),
    Mistake(
        "weights not transposed",
        "dV has one row for each **key**, and collects what all queries ask of it: Aᵀ dO.",
        lambda dO, Q, K, V: softmax(scaled(Q, K)) @ dO,
    ),
)


def check_attention_backward(function: Callable) -> Report:
    """Check ``f(dO, Q, K, V)``, which gives ``(dQ, dK, dV)`` of scaled attention."""

    def right(dO, Q, K, V):
        return attention_backward(dO, Q, K, V, weights=attention(Q, K, V).weights)

    return check_function(
        function,
        right=right,
        cases=[
            Case(random_inputs(0, dO=(4, 3), Q=(4, 5), K=(6, 5), V=(6, 3))),
            Case(random_inputs(1, dO=(5, 2), Q=(5, 3), K=(5, 3), V=(5, 2)), "as many keys"),
        ],
        mistakes=BACKWARD_MISTAKES,
        returns=("dQ", "dK", "dV"),
    )


def _adam(g, mean, square, step, rate, *, betas=(0.9, 0.99), power=2, root=True, sign=-1, count=1):
    """One step of Adam, with the slips that the table below is made of; no count, no correction."""
    mean = betas[0] * mean + (1 - betas[0]) * g
    square = betas[1] * square + (1 - betas[1]) * np.abs(g) ** power
    m, v = mean, square
    if count is not None:
        m, v = mean / (1 - betas[0] ** (step + count)), square / (1 - betas[1] ** (step + count))
    return sign * rate * m / ((np.sqrt(v) if root else v) + 1e-8), mean, square


ADAM_MISTAKES = (
    Mistake(
        "not corrected",
        "you take the two means as they are. They start at 0, so after t steps they are too small "
        "by 1 − βᵗ: divide by it.",
        lambda *x: _adam(*x, count=None),
    ),
    Mistake(
        "counted from 0",
        "you correct by 1 − β^step. Here step is 0 at the first step, when one gradient has been "
        "seen already: t = step + 1.",
        lambda *x: _adam(*x, count=0),
    ),
    Mistake(
        "root forgotten",
        "you divide by the mean square. Its root has the size of a gradient, so that the quotient "
        "has none.",
        lambda *x: _adam(*x, root=False),
    ),
    Mistake(
        "not squared",
        "your second mean is of |g|, not of g².",
        lambda *x: _adam(*x, power=1),
    ),
    Mistake(
        "rates of forgetting exchanged",
        "you exchange the two β: the mean of g forgets faster (.9) than the mean of g² (.99).",
        lambda *x: _adam(*x, betas=(0.99, 0.9)),
    ),
    Mistake(
        "uphill",
        "your change goes up the gradient: the loss would grow. Take it with a minus.",
        lambda *x: _adam(*x, sign=1),
    ),
)


def check_adam(function: Callable) -> Report:
    """Check ``f(g, mean, square, step, rate)``: one step of Adam with β = .9 and .99.

    It gives the change of the parameters and the two new means; `step` is 0 at the first step.
    """

    def right(g, mean, square, step, rate):
        zero = {"w": np.zeros_like(g)}
        before = Moments({"w": mean}, {"w": square})
        moved, after = adam_step(zero, {"w": g}, before, step=step, rate=rate)
        return moved["w"], after.mean["w"], after.square["w"]

    first = random_inputs(0, g=(3, 2)) | {"mean": np.zeros((3, 2)), "square": np.zeros((3, 2))}
    later = random_inputs(1, g=(4,), mean=(4,), square=(4,))
    later["square"] = later["square"] ** 2
    return check_function(
        function,
        right=right,
        cases=[
            Case(later | {"step": 4, "rate": 0.1}),
            Case(first | {"step": 0, "rate": 0.01}, "the first step"),
        ],
        mistakes=ADAM_MISTAKES,
        returns=("change", "mean", "square"),
    )
