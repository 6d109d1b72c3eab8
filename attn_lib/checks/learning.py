"""Checks of the exercises of chapter 10, and the known mistakes in them."""

import math
from collections.abc import Callable

import numpy as np

from attn_lib.backward import attention_backward
from attn_lib.checks.engine import (
    Case,
    Mistake,
    Report,
    by_hand,
    check_function,
    random_inputs,
)
from attn_lib.checks.qkv import scaled
from attn_lib.dot_product import attention, softmax
from attn_lib.training.loop import Moments, adam_step

__all__ = ["check_adam", "check_attention_backward", "check_differences"]


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
        needs_all=True,
    )


def _differences(
    pulls, Q, K, V, h, *, sides=(1, -1), divide=2.0, together=False, put_back=True, power=0
):
    """Take differences of the loss, with the slips that the table below is made of."""

    def loss(Q):
        return (pulls * (softmax(scaled(Q, K)) @ V)).sum()

    Q, gradient = Q.copy(), np.zeros_like(Q)
    for at in np.ndindex(Q.shape):
        values, here = [], Q[at]
        step = h * here**power
        for side in sides:
            if together:
                values.append(loss(Q + side * step))
                continue
            Q[at] = (here if put_back else Q[at]) + side * step
            values.append(loss(Q))
        if put_back:
            Q[at] = here
        gradient[at] = (values[0] - values[1]) / (divide * h)
    return gradient


DIFFERENCES_MISTAKES = (
    Mistake(
        "one side",
        "you move forward only. Then the error falls with h, and not with h²: take "
        "L(x + h) − L(x − h).",
        lambda *x: _differences(*x, sides=(1, 0), divide=1),
    ),
    Mistake(
        "backward only",
        "you move back only. Then the error falls with h, and not with h²: take "
        "L(x + h) − L(x − h).",
        lambda *x: _differences(*x, sides=(0, -1), divide=1),
    ),
    Mistake(
        "2 forgotten",
        "from x − h to x + h it is a way of 2h: divide by that.",
        lambda *x: _differences(*x, divide=1),
    ),
    Mistake(
        "h forgotten",
        "you do not divide by 2h: a difference of the loss is not yet a slope.",
        lambda *x: _differences(*x, divide=1 / x[-1]),
    ),
    Mistake(
        "uphill is down",
        "you subtract the wrong way round: L(x + h) comes first.",
        lambda *x: _differences(*x, sides=(-1, 1)),
    ),
    Mistake(
        "all entries at once",
        "you move all entries at once. That gives one slope, in one direction; a gradient has one "
        "for each entry, so move one entry and keep the others.",
        lambda *x: _differences(*x, together=True),
    ),
    Mistake(
        "not put back",
        "you do not put an entry back before you move the next, so the later slopes belong to "
        "another point.",
        lambda *x: _differences(*x, sides=(1, -2), put_back=False),
    ),
    Mistake(
        "a share of the entry",
        "you move by h times the entry and divide by h: that is x · dL/dx. Move by h.",
        lambda *x: _differences(*x, power=1),
    ),
    Mistake(
        "the derivative itself",
        "this is the derivative itself, with no trace of h. What is to test a formula may not "
        "use it: go forward only.",
        lambda *x: _backward(*x[:-1])[0],
    ),
)


def check_differences(function: Callable) -> Report:
    """Check ``f(pulls, Q, K, V, h)``: dQ of ``(pulls * O).sum()`` by central differences."""
    large = random_inputs(0, pulls=(4, 2), Q=(4, 3), K=(5, 3), V=(5, 2))
    small = random_inputs(1, pulls=(3, 4), Q=(3, 2), K=(4, 2), V=(4, 4))
    return check_function(
        function,
        right=_differences,
        cases=[
            Case(large | {"h": 0.5}, "with a large step, to see its error"),
            Case(small | {"h": 0.1}),
        ],
        mistakes=DIFFERENCES_MISTAKES,
        returns=("dQ",),
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
        needs_all=True,
    )


def _turned(weights, values, scale=0.5):
    """Give what the three keys of the chapter, each of length 2 on its axis, do to the query."""
    return scale * 2 * np.append(weights * values, 0)


def _hand_mistakes():
    a, v, lead = np.array([1, 1, 2]) / 4, np.array([2, 6, 10]), np.array([-5, -1, 3])
    return {
        "you forgot the factor 1/√d_k.": _turned(a, lead, 1),
        "you divided by d_k; the scores are divided by its root.": _turned(a, lead, 1 / 4),
        "you did not subtract the output from the values.": _turned(a, v),
        "you subtracted the plain mean of the values: use the output.": _turned(a, v - v.mean()),
        "you took the weights of the text. Here they are ¼, ¼, ½.": _turned(
            np.array([2, 1, 1]) / 4, np.array([-3, 1, 5])
        ),
        "you did not multiply by the weights: a value counts as much as it is read.": _turned(
            np.ones(3), lead
        ),
        "the sign is that of the output less the values: a score pulls the output towards its "
        "value.": _turned(a, -lead),
    }


ROWS_RIGHT = [[1.5, 0.5], [1, -1], [0, 0]]
ROWS_MISTAKES = {
    "you kept only the diagonal of softmax's Jacobian, a(1 − a).": [[1.5, 0.5], [1, 0], [0, 0]],
    "you did not subtract each row's average from dA: a row shares what it has.": [
        [1.5, 0.5], [2, 0], [4, 0],
    ],
    "you subtracted the plain mean of dA: the average is one under the weights of the row.": [
        [1.5, 0.5], [1, -1], [2, 0],
    ],
    "you did not multiply by the weights at the end: dS = A ⊙ (dA − r1).": [
        [1.5, 0.5], [2, -2], [0, -4],
    ],
    "your dV is A dO. A value collects down its column: Aᵀ dO.": [[1, 1], [1, -1], [0, 0]],
    "a value collects from both queries; you counted one of them.": [[0.5, 0.5], [1, -1], [0, 0]],
    "you averaged what the queries ask of a value. It is a sum.": [
        [0.75, 0.25], [1, -1], [0, 0],
    ],
}  # fmt: skip


def _pull(error, U=((1, 0, 2), (0, 2, 1)), W_O=((1, 0), (2, 4))):
    """Go from an error in logits through Uᵀ and W_Oᵀ; here the latter is given as it is used."""
    return np.asarray(error) @ np.transpose(U) @ np.asarray(W_O)


def _pull_mistakes():
    error = np.array([1 / 2, 1 / 4, -3 / 4])
    return {
        "that is wanted less given: the way to move, which is against the gradient.": _pull(-error),
        "you did not subtract the 1 of the right token.": _pull([1 / 2, 1 / 4, 1 / 4]),
        "the third token is the right one; you took off the 1 of the first.": _pull(
            [-1 / 2, 1 / 4, 1 / 4]
        ),
        "you multiplied by W_O: on the way back it is its transpose.": _pull(
            error, W_O=((1, 2), (0, 4))
        ),
        "that is the pull on the stream, dY. The output of the layer comes before W_O.": _pull(
            error, W_O=((1, 0), (0, 1))
        ),
        "that is the derivative of −p. The loss is −ln p.": _pull(error / 4),
        "the error of the right token is ¼ − 1; the other tokens are pulled too.": _pull(
            [0, 0, -3 / 4]
        ),
    }


EXERCISES = {
    "ex-learning-pull": by_hand(lambda: _pull([1 / 2, 1 / 4, -3 / 4]), mistakes=_pull_mistakes),
    "ex-learning-hand": by_hand([-1.25, -0.25, 1.5, 0], mistakes=_hand_mistakes),
    "ex-learning-rows": by_hand(ROWS_RIGHT, mistakes=ROWS_MISTAKES),
    "ex-learning-differences": check_differences,
    "ex-learning-backward": check_attention_backward,
    "ex-learning-adam": check_adam,
}
