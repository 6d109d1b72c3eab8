"""Checks of the exercises of chapter 12, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.checks.cost import noted, quietly
from attn_lib.checks.engine import Case, Mistake, Report, by_hand, check_function, random_inputs
from attn_lib.checks.qkv import allowed, scaled
from attn_lib.cost import cache_size
from attn_lib.dot_product import softmax
from attn_lib.efficient import elu_plus_one, linear_attention
from attn_lib.linear import state_attention
from attn_lib.masks import causal_mask

__all__ = ["check_delta_rule", "check_linear_attention"]


def _raw(x):
    return x


def _linear(features_q=elu_plus_one, features_k=elu_plus_one, *, seen=np.tril, divide=None):
    """Causal linear attention with parts exchanged; `divide` takes the products φ(q)·φ(k)."""

    def answer(Q, K, V):
        products = features_q(Q) @ features_k(K).T
        weights = seen(products)
        by = weights.sum(axis=1) if divide is None else divide(products)
        return weights @ V / by[:, None]

    return answer


LINEAR_ATTENTION_MISTAKES = (
    Mistake(
        "future summed in",
        "each query reads the sum over *all* keys, later ones too. In the causal form the sum "
        "grows token by token: query i may read it only when it holds keys up to i.",
        _linear(seen=_raw),
    ),
    Mistake(
        "normaliser of the future",
        "your numerator stops at the query's own token and your normaliser does not.",
        _linear(divide=lambda products: products.sum(axis=1)),
    ),
    Mistake(
        "not normalised",
        "your weights do not sum to one: divide by φ(q)·Σ φ(k), with the sum up to the query.",
        _linear(divide=lambda products: np.ones(len(products))),
    ),
    Mistake(
        "divided by the number of tokens",
        "you divide by how many tokens were read. The normaliser is φ(q)·Σ φ(k), which depends on "
        "the query.",
        _linear(divide=lambda products: np.arange(1.0, len(products) + 1)),
    ),
    Mistake(
        "own token left out",
        "you read the state before the query's own token is written into it: first write, then "
        "read.",
        _linear(seen=lambda products: np.tril(products, -1)),
    ),
    Mistake(
        "own token left out",
        "you read the state before the query's own token is written into it, and put 0 where "
        "there is nothing yet: first write, then read.",
        lambda Q, K, V: np.nan_to_num(_linear(seen=lambda P: np.tril(P, -1))(Q, K, V)),
    ),
    Mistake(
        "no features",
        "you multiply q and k as they are. Without φ a product may be negative, and so may a "
        "weight, or the normaliser may vanish.",
        _linear(_raw, _raw),
    ),
    Mistake(
        "features on one side",
        "φ belongs to queries *and* keys. You apply it to keys only.",
        _linear(features_q=_raw),
    ),
    Mistake(
        "features on one side",
        "φ belongs to queries *and* keys. You apply it to queries only.",
        _linear(features_k=_raw),
    ),
    Mistake(
        "one forgotten",
        "your features go down to −1: add the 1 in elu(x) + 1, so that none is negative.",
        _linear(lambda x: elu_plus_one(x) - 1, lambda x: elu_plus_one(x) - 1),
    ),
    Mistake(
        "softmax",
        "this is softmax attention. Linear attention weighs by φ(q)·φ(k) and takes no exponential "
        "of a score.",
        lambda Q, K, V: softmax(allowed(scaled(Q, K), causal_mask(len(Q)))) @ V,
    ),
    Mistake(
        "factors in the wrong order",
        "the state is the sum of φ(k) vᵀ, a matrix of d_f × d_v, so that a query can multiply it "
        "from the left.",
        lambda Q, K, V: elu_plus_one(Q) @ (V.T @ elu_plus_one(K)),
    ),
)


def check_linear_attention(function: Callable) -> Report:
    """Check ``f(Q, K, V)``: causal linear attention with the features elu(x) + 1.

    Its work must grow with the number of tokens, not with their square.
    """
    report = check_function(
        function,
        right=lambda Q, K, V: linear_attention(Q, K, V, causal=True),
        cases=[
            Case(random_inputs(0, Q=(6, 3), K=(6, 3), V=(6, 2))),
            Case(random_inputs(1, Q=(4, 5), K=(4, 5), V=(4, 3))),
        ],
        mistakes=LINEAR_ATTENTION_MISTAKES,
        returns=("output",),
    )
    if not report:
        return report
    few, many = _work(function, 96), _work(function, 192)
    if many < 3 * few:
        return report
    return Report(
        False,
        f"the numbers are right, but twice as many tokens make {many / few:.1f} times the work. "
        "Your query goes back to the keys. Write each key into a state of fixed size, and let the "
        "query read that.",
        "quadratic",
    )


def _work(function, n):
    """Count the numbers that go into operations and come out of them, for n tokens."""
    work = [1]

    def note(arrays):
        work[0] += sum(M.size for M in arrays)

    quietly(
        function, *(noted(M, note) for M in random_inputs(2, Q=(n, 3), K=(n, 3), V=(n, 2)).values())
    )
    return work[0]


def _delta(*, write, read="after"):
    """A state read token by token; `write` gives the new one from Z, q, k, v and β."""

    def answer(Q, K, V, beta):
        Z, rows = np.zeros((K.shape[1], V.shape[1])), []
        for q, k, v, b in zip(Q, K, V, beta, strict=True):
            before, Z = Z, write(Z, q, k, v, b)
            rows.append(q @ (Z if read == "after" else before))
        return np.array(rows)

    return answer


DELTA_RULE_MISTAKES = (
    Mistake(
        "old value not taken off",
        "you add β times the value. The delta rule adds β times what is *missing*: the value less "
        "what the state answers to this key already.",
        _delta(write=lambda Z, q, k, v, b: Z + b * np.outer(k, v)),
    ),
    Mistake(
        "strength left out",
        "you write at full strength. Multiply what is missing by the token's β.",
        _delta(write=lambda Z, q, k, v, b: Z + np.outer(k, v - k @ Z)),
    ),
    Mistake(
        "strength on the value alone",
        "β stands before the whole difference: β (v − kZ), not β v − kZ.",
        _delta(write=lambda Z, q, k, v, b: Z + np.outer(k, b * v - k @ Z)),
    ),
    Mistake(
        "strength on the old value alone",
        "β stands before the whole difference: β (v − kZ), not v − β kZ.",
        _delta(write=lambda Z, q, k, v, b: Z + np.outer(k, v - b * (k @ Z))),
    ),
    Mistake(
        "read by the query",
        "what is missing is found with the *key*: v − kZ. You ask the state with the query.",
        _delta(write=lambda Z, q, k, v, b: Z + b * np.outer(k, v - q @ Z)),
    ),
    Mistake(
        "read before writing",
        "you read the state before the query's own token is written into it: first write, then "
        "read.",
        _delta(write=lambda Z, q, k, v, b: Z + b * np.outer(k, v - k @ Z), read="before"),
    ),
    Mistake(
        "sign of the old value",
        "you add what the state answers already. It must be taken off: v − kZ.",
        _delta(write=lambda Z, q, k, v, b: Z + b * np.outer(k, v + k @ Z)),
    ),
    Mistake(
        "all faded",
        "you fade the whole state by 1 − β. The delta rule changes only what this key reads.",
        _delta(write=lambda Z, q, k, v, b: (1 - b) * Z + b * np.outer(k, v)),
    ),
    Mistake(
        "written by the query",
        "the state is written with the key, so that this key finds it again.",
        _delta(write=lambda Z, q, k, v, b: Z + b * np.outer(q, v - k @ Z)),
    ),
    Mistake(
        "normalised",
        "you divide by a sum of products, as linear attention with features does. Here is no "
        "normaliser.",
        lambda Q, K, V, beta: (
            state_attention(Q, K, V, strengths=beta)[0]
            / np.sum(Q * np.cumsum(K, axis=0), axis=1)[:, None]
        ),
    ),
)


def check_delta_rule(function: Callable) -> Report:
    """Check ``f(Q, K, V, beta)``: n tokens read through a state that the delta rule writes.

    Q and K are (n, d_k), V is (n, d_v), beta (n,) holds the strengths; the output is (n, d_v).
    """

    def case(seed, n, d_k, d_v):
        inputs = random_inputs(seed, Q=(n, d_k), K=(n, d_k), V=(n, d_v))
        return Case(inputs | {"beta": np.random.default_rng(seed).random(n)})

    return check_function(
        function,
        right=lambda Q, K, V, beta: state_attention(Q, K, V, strengths=beta)[0],
        cases=[case(0, 5, 3, 2), case(1, 4, 2, 3)],
        mistakes=DELTA_RULE_MISTAKES,
        returns=("output",),
    )


# By hand -------------------------------------------------------------------------------


def _read_back(gates=None, strengths=None):
    """What both keys read after two tokens; the second token's gate and strength count."""
    K, V = np.array([[0, 1], [0.8, 0.6]]), np.array([[10.0], [20]])
    _, Z = state_attention(K, K, V, gates=gates, strengths=strengths)
    return (K @ Z)[:, 0].tolist()


def _states():
    half = [[1.0], [0.5]]
    return [*_read_back(), *_read_back(strengths=[1.0, 1.0]), *_read_back(gates=half)]


def _state_mistakes():
    added, corrected, faded = _states()[:2], _states()[2:4], _states()[4:]
    both = np.divide(added, 2).tolist()  # old and new halved
    return {
        "(a): a key reads the other value too, by the share in which the keys overlap.": [
            10,
            20,
            *corrected,
            *faded,
        ],
        "(b): take off what the state answers to the second key before you write.": [
            *added,
            *added,
            *faded,
        ],
        "(b): the second write changes what the first key reads: they are not at right angles.": [
            *added,
            10,
            20,
            *faded,
        ],
        "(b): only the second key is exact. You corrected the first.": [
            *added,
            *corrected[::-1],
            *faded,
        ],
        "(c): the gate fades what was there before; the new token is written whole.": [
            *added,
            *corrected,
            *both,
        ],
        "(c): the gate of the second token fades the first: nothing was faded.": [
            *added,
            *corrected,
            *added,
        ],
        "(c): the gate fades the state before the write, not after reading.": [
            *added,
            *corrected,
            faded[0],
            added[1],
        ],
    }


def _kept():
    whole = cache_size(1000, 128, heads=8)
    return [
        whole,
        cache_size(1000, 128, heads=8, kv_heads=2),
        1000 * (32 + 8),
        (100 + 4) * whole // 1000,
        8 * 16 * 16,
    ]


def _kept_mistakes():
    a, b, c, d, e = _kept()
    return {
        "(a): a key *and* a value for each token.": [a // 2, b, c, d, e],
        "(a): each of the 8 heads has its own.": [a // 8, b, c, d, e],
        "(b): two heads' keys and values are kept, not a half of the eight.": [a, a // 2, c, d, e],
        "(c): the rotated key is kept as well.": [a, b, 32_000, d, e],
        "(c): one short row serves keys and values.": [a, b, 72_000, d, e],
        "(c): all heads share the short row.": [a, b, 8 * c, d, e],
        "(d): the sinks are kept beside the window.": [a, b, c, 100 * a // 1000, e],
        "(e): a state does not grow with the text.": [a, b, c, d, 1000 * e],
        "(e): each of the 8 heads has a state.": [a, b, c, d, e // 8],
    }


EXERCISES = {
    "ex-other-write": by_hand(_states, mistakes=_state_mistakes, tol=0.1),
    "ex-other-kept": by_hand(_kept, mistakes=_kept_mistakes, tol=0.5),
    "ex-other-linear": check_linear_attention,
    "ex-other-delta": check_delta_rule,
}
