"""Answers to the exercises of chapter 12: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted, named

from attn_lib import attention, causal_mask, linear_attention, softmax
from attn_lib.checks import check_delta_rule, check_linear_attention
from attn_lib.efficient import elu_plus_one, linear_attention_step
from attn_lib.linear import state_attention


def phi(x):
    return np.where(x > 0, x + 1, np.exp(x))


def linear_by_steps(Q, K, V):
    rows, state = [], None
    for q, k, v in zip(Q, K, V, strict=True):
        row, state = linear_attention_step(state, q, k, v)
        rows.append(row)
    return np.array(rows)


def linear_with_a_loop(Q, K, V):
    Z, z, O = np.zeros((K.shape[1], V.shape[1])), np.zeros(K.shape[1]), np.zeros(V.shape)
    for i in range(len(Q)):
        g = phi(K[i])
        Z += g[:, None] * V[i]
        z += g
        O[i] = phi(Q[i]) @ Z / (phi(Q[i]) @ z)
    return O


def linear_with_running_sums(Q, K, V):
    F, G = phi(Q), phi(K)
    Z = np.cumsum(np.einsum("nr,nv->nrv", G, V), axis=0)
    return np.einsum("nr,nrv->nv", F, Z) / np.sum(F * np.cumsum(G, axis=0), axis=1)[:, None]


def linear_in_chunks(Q, K, V):
    """A small square in each chunk, the past from the state."""
    F, G, rows = phi(Q), phi(K), []
    Z, z = np.zeros((K.shape[1], V.shape[1])), np.zeros(K.shape[1])
    for i in range(0, len(Q), 8):
        f, g, v = F[i : i + 8], G[i : i + 8], V[i : i + 8]
        A = np.tril(f @ g.T)
        rows.append((f @ Z + A @ v) / (f @ z + A.sum(axis=1))[:, None])
        Z, z = Z + g.T @ v, z + g.sum(axis=0)
    return np.vstack(rows)


def delta_by_the_library(Q, K, V, beta):
    return state_attention(Q, K, V, strengths=beta)[0]


def delta_with_products(Q, K, V, beta):
    Z, rows = np.zeros((K.shape[1], V.shape[1])), []
    for q, k, v, b in zip(Q, K, V, beta, strict=True):
        Z = (np.eye(len(k)) - b * np.outer(k, k)) @ Z + b * np.outer(k, v)
        rows.append(q @ Z)
    return rows


def delta_transposed(Q, K, V, beta):
    """With the state as others write it, d_v × d_k."""
    O, W = np.empty(V.shape), np.zeros((V.shape[1], K.shape[1]))
    for i in range(len(Q)):
        W += beta[i] * np.outer(V[i] - W @ K[i], K[i])
        O[i] = W @ Q[i]
    return O


def delta_by_a_triangle(Q, K, V, beta):
    """All tokens at once: what is missing solves a triangular system."""
    n = len(K)
    T = np.eye(n) + np.tril(beta[:, None] * (K @ K.T), -1)
    return np.tril(Q @ K.T) @ np.linalg.solve(T, beta[:, None] * V)


RIGHT = [
    (check_linear_attention, linear_by_steps),
    (check_linear_attention, linear_with_a_loop),
    (check_linear_attention, linear_with_running_sums),
    (check_linear_attention, linear_in_chunks),
    ("ex-other-linear", lambda Q, K, V: linear_attention(Q, K, V, causal=True)),
    (check_delta_rule, delta_by_the_library),
    (check_delta_rule, delta_with_products),
    ("ex-other-delta", delta_transposed),
    ("ex-other-delta", delta_by_a_triangle),
    ("ex-other-write", [22, 26, 18.4, 20, 17, 23]),
    ("ex-other-write", ((22, 26, 18.4, 20, 17, 23),)),
    ("ex-other-write", np.array([22, 26, 18.4, 20, 17, 23])),
    ("ex-other-kept", [256_000, 64_000, 40_000, 26_624, 2048]),
    ("ex-other-kept", (256e3, 64e3, 40e3, 104 * 256.0, 8 * 16 * 16)),
    ("ex-other-kept", np.array([[256_000, 64_000, 40_000, 26_624, 2048]])),
]

test_right_answers_pass = accepted(RIGHT)


def masked_product(Q, K, V):
    A = np.tril(phi(Q) @ phi(K).T)
    return A @ V / A.sum(axis=1, keepdims=True)


def every_key_again(Q, K, V):
    """No square in memory, but one in time."""
    O = np.zeros(V.shape)
    for i in range(len(Q)):
        a = np.array([elu_plus_one(Q[i]) @ phi(K[j]) for j in range(i + 1)])
        O[i] = a @ V[: i + 1] / a.sum()
    return O


def past_summed_anew(Q, K, V):
    F, G, rows = phi(Q), phi(K), []
    for i in range(len(Q)):
        Z = G[: i + 1].T @ V[: i + 1]
        rows.append(F[i] @ Z / (F[i] @ G[: i + 1].sum(axis=0)))
    return np.array(rows)


def with_einsum(Q, K, V):
    A = np.einsum("ir,jr,ij->ij", phi(Q), phi(K), np.tri(len(Q)))
    return np.einsum("ij,jv->iv", A, V) / A.sum(axis=1)[:, None]


def masked_softmax(Q, K, V):
    return attention(Q, K, V, mask=causal_mask(len(Q))).output


def changed(write):
    def answer(Q, K, V, beta):
        Z, rows = np.zeros((K.shape[1], V.shape[1])), []
        for q, k, v, b in zip(Q, K, V, beta, strict=True):
            Z = write(Z, q, k, v, b)
            rows.append(q @ Z)
        return np.array(rows)

    return answer


WRONG = [
    (check_linear_attention, masked_product, "quadratic"),
    (check_linear_attention, every_key_again, "quadratic"),
    (check_linear_attention, past_summed_anew, "quadratic"),
    (check_linear_attention, with_einsum, "quadratic"),
    (check_linear_attention, lambda Q, K, V: linear_attention(Q, K, V), "future summed in"),
    (check_linear_attention, masked_softmax, "softmax"),
    (
        check_linear_attention,
        lambda Q, K, V: state_attention(phi(Q), phi(K), V)[0],
        "not normalised",
    ),
    (check_linear_attention, lambda Q, K, V: softmax(phi(Q) @ phi(K).T) @ V, None),
    (check_delta_rule, lambda Q, K, V, b: state_attention(Q, K, V)[0], None),
    (
        check_delta_rule,
        lambda Q, K, V, b: state_attention(Q, K, b[:, None] * V)[0],
        "old value not taken off",
    ),
    (
        check_delta_rule,
        lambda Q, K, V, b: state_attention(Q, K, V, strengths=np.ones(len(b)))[0],
        "strength left out",
    ),
    (
        check_delta_rule,
        changed(lambda Z, q, k, v, b: Z + b * np.outer(k, v - q @ Z)),
        "read by the query",
    ),
    (
        check_delta_rule,
        changed(lambda Z, q, k, v, b: (1 - b) * Z + b * np.outer(k, v)),
        "all faded",
    ),
    (
        check_delta_rule,
        lambda Q, K, V, b: state_attention(Q, K, V, gates=1 - b[:, None])[0],
        None,
    ),
    (check_delta_rule, lambda Q, K, V, b: linear_attention(Q, K, V, causal=True), None),
    ("ex-other-write", [10, 20, 18.4, 20, 17, 23], "(a): a key reads the other value too"),
    ("ex-other-write", [22, 26, 22, 26, 17, 23], "(b): take off"),
    ("ex-other-write", [22, 26, 10, 20, 17, 23], "(b): the second write changes"),
    ("ex-other-write", [22, 26, 20, 18.4, 17, 23], "(b): only the second key"),
    ("ex-other-write", [22, 26, 18.4, 20, 11, 13], "(c): the gate fades what was there"),
    ("ex-other-write", [22, 26, 18.4, 20, 22, 26], "(c): the gate of the second token"),
    ("ex-other-write", [22, 26, 18.4, 20], None),
    ("ex-other-kept", [128_000, 64_000, 40_000, 26_624, 2048], "(a): a key *and* a value"),
    ("ex-other-kept", [256_000, 128_000, 40_000, 26_624, 2048], "(b): two heads"),
    ("ex-other-kept", [256_000, 64_000, 32_000, 26_624, 2048], "(c): the rotated key"),
    ("ex-other-kept", [256_000, 64_000, 72_000, 26_624, 2048], "(c): one short row"),
    ("ex-other-kept", [256_000, 64_000, 40_000, 25_600, 2048], "(d): the sinks"),
    ("ex-other-kept", [256_000, 64_000, 40_000, 26_624, 2_048_000], "(e): a state does not"),
    ("ex-other-kept", [256_000, 64_000, 40_000, 26_624, 256], "(e): each of the 8 heads"),
]

test_wrong_answers_are_named = named(WRONG)
