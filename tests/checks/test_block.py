"""Answers to the exercises of chapter 9: right ones pass, wrong ones are told why."""

import math

import numpy as np
from answers import accepted, named

from attn_lib import gelu, layer_norm, softmax
from attn_lib.checks import check_layer_norm, check_nucleus, check_pre_norm_block


def norm_by_loops(X, gain=None, bias=None):
    rows = []
    for row in X:
        mean = sum(row) / len(row)
        deviation = math.sqrt(sum((u - mean) ** 2 for u in row) / len(row) + 1e-5)
        rows.append([(u - mean) / deviation for u in row])
    rows = np.array(rows)
    return rows if gain is None else rows * gain + bias


def block_by_loops(X, A, W, W_1, W_2):
    middle = X + A @ norm_by_loops(X) @ W
    hidden = norm_by_loops(middle) @ W_1
    bent = [[h * (1 + math.erf(h / math.sqrt(2))) / 2 for h in row] for row in hidden]
    return middle + np.array(bent) @ W_2


def norm_by_moments(X, gain, bias):
    mean, square = X.mean(axis=-1), (X**2).mean(axis=-1)
    return ((X.T - mean) / np.sqrt(square - mean**2 + 1e-5)).T * gain + bias


def norm_by_length(X, gain, bias):
    away = X - X.mean(-1)[:, None]
    return (
        away * (np.einsum("nd,nd->n", away, away)[:, None] / X.shape[1] + 1e-5) ** -0.5 * gain
        + bias
    )


def block_in_two_steps(X, A, W, W_1, W_2):
    stream = X.copy()
    stream += A @ layer_norm(stream) @ W
    stream += gelu(layer_norm(stream) @ W_1) @ W_2
    return stream


def block_with_values_first(X, A, W, W_1, W_2):
    middle = np.einsum("ij,jd->id", A, layer_norm(X) @ W) + X
    return gelu(layer_norm(middle) @ W_1) @ W_2 + middle


def nucleus_by_loop(logits, T, p):
    a = np.exp(logits / T)
    a = a / a.sum()
    kept, total = np.zeros(len(a)), 0.0
    for i in sorted(range(len(a)), key=lambda i: -a[i]):
        if total >= p:
            break
        kept[i] = a[i]
        total += a[i]
    return kept / total


def nucleus_by_search(logits, T, p):
    a = softmax(logits / T)
    order = np.argsort(a)[::-1]
    keep = order[: np.searchsorted(np.cumsum(a[order]), p) + 1]
    masked = np.full(len(a), -np.inf)
    masked[keep] = logits[keep] / T
    return softmax(masked)


def nucleus_by_what_is_above(logits, T, p):
    a = softmax(logits / T)
    above = np.array([a[a > each].sum() for each in a])
    return list(np.where(above < p, a, 0) / a[above < p].sum())


RIGHT = [
    ("ex-block-norm", norm_by_loops),
    (check_layer_norm, norm_by_moments),
    (check_layer_norm, norm_by_length),
    ("ex-block-code", block_by_loops),
    (check_pre_norm_block, block_in_two_steps),
    (check_pre_norm_block, block_with_values_first),
    ("ex-block-write", nucleus_by_loop),
    (check_nucleus, nucleus_by_search),
    (check_nucleus, nucleus_by_what_is_above),
    ("ex-block-hand", [1, -1, 1, -1]),
    ("ex-block-hand", (1.0, -1.0, 1.0, -1.0)),
    ("ex-block-hand", [[1, -1, 1, -1]]),
    ("ex-block-count", (162.6, 0.17)),
    ("ex-block-count", [163, 0.174]),
    ("ex-block-count", np.array([[162.61, 28.31 / 162.61]])),
    ("ex-block-temperatures", [0.73, 0.83, 0.88]),
    ("ex-block-temperatures", (0.731, 0.832, 0.881)),
    ("ex-block-temperatures", 1 / (1 + np.exp(-np.array([1, 1.6, 2])))),
]

test_right_answers_pass = accepted(RIGHT)


def over(axis=None, less=0, root=True, centre=True):
    def norm(X, gain, bias):
        variance = X.var(axis=axis, ddof=less, keepdims=True) + 1e-5
        away = X - X.mean(axis=axis, keepdims=True) * centre
        return away / (np.sqrt(variance) if root else variance) * gain + bias

    return norm


def parts(norm_at=(0, 1), add_at=(0, 1), bend=gelu):
    def block(X, A, W, W_1, W_2):
        for k, part in enumerate((lambda Z: A @ Z @ W, lambda Z: bend(Z @ W_1) @ W_2)):
            written = part(layer_norm(X) if k in norm_at else X)
            X = X + written if k in add_at else written
        return X

    return block


def post(X, A, W, W_1, W_2):
    X = layer_norm(X + A @ X @ W)
    return layer_norm(X + gelu(X @ W_1) @ W_2)


def each_above(logits, T, p):
    a = softmax(logits / T)
    return a * (a >= 1 - p)


def too_few(logits, T, p):
    a = softmax(logits / T)
    order = np.argsort(-a)
    kept = np.where(np.isin(np.arange(len(a)), order[np.cumsum(a[order]) < p]), a, 0)
    return kept / kept.sum()


def unshared(logits, T, p):
    return softmax(logits / T) * (nucleus_by_loop(logits, T, p) > 0)


WRONG = [
    ("ex-block-norm", over(0), "over tokens"),
    ("ex-block-norm", over(), "over everything"),
    ("ex-block-norm", over(-1, root=False), "divided by the variance"),
    ("ex-block-norm", over(-1, less=1), "d − 1"),
    ("ex-block-norm", over(-1, centre=False), "mean taken off for the variance only"),
    ("ex-block-norm", lambda X, gain, bias: norm_by_loops(X) * gain, "no bias"),
    ("ex-block-code", post, "post-norm"),
    ("ex-block-code", parts(norm_at=()), "no norm"),
    ("ex-block-code", parts(norm_at=(0,)), "one norm only"),
    ("ex-block-code", parts(add_at=()), "no residual"),
    ("ex-block-code", parts(add_at=(0,)), "no second residual"),
    ("ex-block-code", parts(bend=lambda Z: Z), "no bend"),
    ("ex-block-write", each_above, "each alone"),
    ("ex-block-write", too_few, "last one left out"),
    ("ex-block-write", unshared, "not shared out"),
    ("ex-block-write", lambda logits, T, p: nucleus_by_loop(logits, 1 / T, p), "multiplied by T"),
    ("ex-block-write", lambda logits, T, p: softmax(logits / T), "no nucleus"),
    ("ex-block-write", lambda logits, T, p: -np.sort(-nucleus_by_loop(logits, T, p)), "sorted"),
    ("ex-block-hand", [1 / 3, -1 / 3, 1 / 3, -1 / 3], "you divided by the variance"),
    ("ex-block-hand", [0.87, -0.87, 0.87, -0.87], "your variance divides by d − 1"),
    ("ex-block-hand", [2.67, 0.67, 2.67, 0.67], "you kept the mean in"),
    ("ex-block-hand", [3, -3, 3, -3], "you took the mean off and did not"),
    ("ex-block-hand", [0.5, -0.5, 0.5, -0.5], "you divided by the length"),
    ("ex-block-count", [124.2, 0.228], "U is a matrix of its own"),
    ("ex-block-count", [84.98, 0.333], "the embedding, the positions"),
    ("ex-block-count", [155.5, 0.137], "W_O belongs to attention"),
    ("ex-block-count", [84.7, 0.028], "there are twelve blocks"),
    ("ex-block-count", [162.6, 0.333], "the share is that of *all*"),
    ("ex-block-count", [474.0, 0.717], "each head does not have"),
    ("ex-block-temperatures", [0.75, 0.9, 0.75], "those are weights in the head"),
    ("ex-block-temperatures", [0.731, 0.881, 0.832], "you have the two temperatures"),
    ("ex-block-temperatures", [0.731, 0.631, 0.622], "a temperature divides"),
    ("ex-block-temperatures", [0.731, 0.881, 0.881], "the temperature of a head is applied"),
    ("ex-block-temperatures", [1, 1.6, 2], "those are logits"),
]

test_wrong_answers_are_told_why = named(WRONG)


def test_a_constant_token_needs_epsilon():
    def bare(X, gain, bias):
        return (X - X.mean(-1, keepdims=True)) / X.std(-1, keepdims=True) * gain + bias

    with np.errstate(all="ignore"):
        report = check_layer_norm(bare)
    assert not report.ok
