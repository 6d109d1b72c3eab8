"""Checks of the exercises of chapter 11, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.checks.engine import Case, Mistake, Report, check_function, random_inputs
from attn_lib.checks.qkv import allowed, scaled
from attn_lib.dot_product import softmax
from attn_lib.efficient import elu_plus_one, linear_attention
from attn_lib.masks import causal_mask

__all__ = ["check_linear_attention", "check_online_softmax"]


def _tile_by_tile(
    S,
    V,
    tile,
    *,
    top=lambda old, s: max(old, s.max()),
    down=lambda old, new: np.exp(old - new),
    rescale=(True, True),
    end=None,
):
    """Give m, l and u after the last tile; right unless a tile begins with nothing allowed."""
    m, l, u = -np.inf, 0.0, np.zeros(V.shape[1])
    for j in range(0, len(S) if end is None else end, tile):
        s, v = S[j : j + tile], V[j : j + tile]
        new = top(m, s)
        factor, powers = down(m, new), np.exp(s - new)
        l = l * (factor if rescale[0] else 1) + powers.sum()
        u = u * (factor if rescale[1] else 1) + powers @ v
        m = new
    return m, l, u


def _online(**options):
    """Read tile by tile and divide at the end."""

    def answer(S, V, tile):
        _, l, u = _tile_by_tile(S, V, tile, **options)
        return u / l

    return answer


def _finite_top(old, s):
    """The running maximum, or 0 as long as nothing was allowed."""
    top = max(old, s.max())
    return 0.0 if top == -np.inf else top


def _mean_of_tiles(S, V, tile):
    parts = range(0, len(S), tile)
    return np.mean([softmax(S[j : j + tile]) @ V[j : j + tile] for j in parts], axis=0)


_EMPTY_TILE = (
    "your answer breaks when the first tile holds nothing but forbidden keys. Its maximum is −∞, "
    "and −∞ − (−∞) is NaN: as long as nothing was allowed, measure from 0 instead"
)


ONLINE_SOFTMAX_MISTAKES = (
    Mistake(
        "not rescaled",
        "you add up powers that are measured from different maxima. When the maximum rises, "
        "multiply both sums kept so far by e^(old − new).",
        _online(rescale=(False, False)),
    ),
    Mistake(
        "accumulator not rescaled",
        "you rescale the normaliser and not the weighted sum. Both are measured from the maximum.",
        _online(rescale=(True, False)),
    ),
    Mistake(
        "normaliser not rescaled",
        "you rescale the weighted sum and not the normaliser. Both are measured from the maximum.",
        _online(rescale=(False, True)),
    ),
    Mistake(
        "factor upside down",
        "your factor is e^(new − old) and must be e^(old − new): what was summed before gets "
        "smaller when the maximum rises.",
        _online(down=lambda old, new: 0.0 if old == -np.inf else np.exp(new - old)),
    ),
    Mistake(
        "tiles averaged",
        "you take the softmax within each tile and average the results. Then a tile of low scores "
        "counts as much as one of high scores.",
        _mean_of_tiles,
    ),
    Mistake(
        "not normalised",
        "this is the weighted sum. Divide it by the normaliser, once, after the last tile.",
        lambda S, V, tile: _tile_by_tile(S, V, tile)[2],
    ),
    Mistake(
        "last tile left out",
        "the keys behind the last whole tile are not read: the last tile may be a short one.",
        lambda S, V, tile: _online(end=len(S) // tile * tile)(S, V, tile),
    ),
    Mistake(
        "exp overflows",
        "NaN for scores in the thousands: measure powers from the largest score so far.",
        _online(top=lambda old, s: 0.0),
    ),
    Mistake(
        "maximum falls",
        "you measure from the maximum of the present tile. When it is lower than the one before, "
        "the factor is greater than 1 and may overflow: keep the larger of the two.",
        _online(top=lambda old, s: s.max()),
    ),
    Mistake("empty first tile", _EMPTY_TILE + ".", _online()),
    Mistake(
        "empty first tile",
        _EMPTY_TILE + ". You put 0 for the NaN, which hides it: later tiles are lost as well.",
        lambda S, V, tile: np.nan_to_num(_online()(S, V, tile)),
    ),
    Mistake(
        "nothing allowed",
        "if no key at all is allowed, 0/0 is NaN. Such a query gets a zero output.",
        _online(top=_finite_top),
    ),
)


def check_online_softmax(function: Callable) -> Report:
    """Check ``f(S, V, tile)``: one query's output, its keys read `tile` at a time.

    S (m,) are the query's scores, −∞ where it may not look; V is (m, d_v). A query with nothing
    to look at must give zeros.
    """
    rising, falling = np.array([3.0, 1, 900, 902, 901]), np.array([902.0, 901, 100, 2, 1])
    empty = np.array([-np.inf, -np.inf, 1, 2])
    return check_function(
        function,
        right=lambda S, V, tile: softmax(S) @ V,
        cases=[
            Case(random_inputs(0, S=(7,), V=(7, 3)) | {"tile": 3}),
            Case(random_inputs(1, S=(6,), V=(6, 2)) | {"tile": 1}),
            Case({"S": rising} | random_inputs(2, V=(5, 2)) | {"tile": 2}, "scores that rise"),
            Case({"S": falling} | random_inputs(3, V=(5, 2)) | {"tile": 2}, "scores that fall"),
            Case(
                {"S": empty, "V": np.array([[5.0], [5], [1], [3]]), "tile": 2},
                "with nothing allowed in the first tile",
            ),
            Case({"S": np.full(4, -np.inf), "V": np.ones((4, 2)), "tile": 2}, "nothing allowed"),
        ],
        mistakes=ONLINE_SOFTMAX_MISTAKES,
        returns=("output",),
    )


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
    """Check ``f(Q, K, V)``: causal linear attention with the features elu(x) + 1."""
    return check_function(
        function,
        right=lambda Q, K, V: linear_attention(Q, K, V, causal=True),
        cases=[
            Case(random_inputs(0, Q=(6, 3), K=(6, 3), V=(6, 2))),
            Case(random_inputs(1, Q=(4, 5), K=(4, 5), V=(4, 3))),
        ],
        mistakes=LINEAR_ATTENTION_MISTAKES,
        returns=("output",),
    )
