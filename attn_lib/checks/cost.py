"""Checks of the exercises of chapter 11, and the known mistakes in them."""

from collections.abc import Callable, Sequence

import numpy as np

from attn_lib.checks.engine import Case, Mistake, Report, by_hand, check_function, random_inputs
from attn_lib.cost import cache_size, layer_cost
from attn_lib.dot_product import softmax
from attn_lib.efficient import online_softmax

__all__ = ["check_cached_step", "check_online_softmax"]


class Noted(np.ndarray):
    """An array that tells of every operation on it, and on all that is made of it.

    ``note(arrays)`` is called with the arrays that go into an operation and come out of it. What
    is made a plain array first, as `attn_lib` does, is out of sight.
    """

    note: Callable[[Sequence[np.ndarray]], None]

    def __array_finalize__(self, made_of):
        """Hand the note on to views and results."""
        self.note = getattr(made_of, "note", lambda arrays: None)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        """Do what was asked with plain arrays, and tell of it."""
        return self._tell(getattr(ufunc, method), inputs, options)

    def __array_function__(self, function, types, inputs, options):
        """Do the same for functions that are no ufunc: sums, products, joins."""
        return self._tell(function, inputs, options)

    def _tell(self, function, inputs, options):
        seen = []
        result = function(*_plain(inputs, seen), **_plain(options, []))
        if "out" in options:
            out = options["out"]
            result = out[0] if isinstance(out, tuple) else out
        seen += [result] if isinstance(result, np.ndarray) else []
        self.note(seen)
        return noted(result, self.note) if type(result) is np.ndarray else result


def noted(M: np.ndarray, note: Callable[[Sequence[np.ndarray]], None]) -> Noted:
    """Let an array tell what is done with it."""
    told = M.view(Noted)
    told.note = note
    return told


def _plain(given, seen):
    """Take the notes off all arrays in here, and list the arrays."""
    if isinstance(given, np.ndarray):
        seen.append(given)
        return given.view(np.ndarray)
    if isinstance(given, list | tuple):
        return type(given)(_plain(part, seen) for part in given)
    if isinstance(given, dict):
        return {name: _plain(part, seen) for name, part in given.items()}
    return given


def quietly(function: Callable, *inputs: np.ndarray | int) -> None:
    """Call a function whose numbers are right already, to see what it does on the way."""
    with np.errstate(all="ignore"):
        try:
            function(*inputs)
        except Exception:  # it stumbles over the notes, which is not its fault
            return


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
    """Give μ, ℓ and u after the last tile; right unless the first has nothing allowed."""
    mu, l, u = -np.inf, 0.0, np.zeros(V.shape[1])
    for j in range(0, len(S) if end is None else end, tile):
        s, v = S[j : j + tile], V[j : j + tile]
        new = top(mu, s)
        factor, powers = down(mu, new), np.exp(s - new)
        l = l * (factor if rescale[0] else 1) + powers.sum()
        u = u * (factor if rescale[1] else 1) + powers @ v
        mu = new
    return mu, l, u


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


def _guarded(S, V, tile):
    """Read tile by tile, rightly."""
    _, l, u = _tile_by_tile(S, V, tile, top=_finite_top)
    return u / l if l else u


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
    report = check_function(
        function,
        right=_guarded,
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
    if not report:
        return report
    tile, most = 5, [0]

    def note(arrays):
        most[0] = max(most[0], *(max(M.shape, default=0) for M in arrays))

    S, V = random_inputs(4, S=(40,), V=(40, 2)).values()
    quietly(function, noted(S, note), noted(V, note), tile)
    if most[0] <= tile:
        return report
    return Report(
        False,
        f"the numbers are right, but with tile = {tile} your function works on {most[0]} keys at "
        "once. The point is to read a tile, merge it into three numbers, and forget it.",
        "reads more than a tile",
    )


def _cached(*, K_new=True, place="end", scale=True, own=True, mix=None):
    """One step with a cache, with one thing changed."""

    def answer(K, V, q, k, v):
        if place == "end":
            keys = np.vstack([K, k]) if K_new else np.vstack([K, q])
            values = np.vstack([V, v])
        else:
            keys, values = np.vstack([k, K]), np.vstack([v, V])
        read, held = (keys, values) if own else (K, V)
        S = read @ q / (np.sqrt(K.shape[1]) if scale else 1)
        return keys, values, softmax(S) @ held if mix is None else mix(S, held)

    return answer


CACHED_STEP_MISTAKES = (
    Mistake(
        "own token left out",
        "your query does not read its own key. Token t reads t keys: append first, then read.",
        _cached(own=False),
    ),
    Mistake(
        "cache not kept",
        "you return the cache as it was: the next token would not find this one.",
        lambda K, V, q, k, v: (K, V, _cached()(K, V, q, k, v)[2]),
    ),
    Mistake(
        "query cached",
        "you append the query to the keys. A query is asked once and never read again; the key "
        "is what later tokens meet.",
        _cached(K_new=False),
    ),
    Mistake(
        "put in front",
        "you put the new row before the old ones. The output is the same, but row j of the cache "
        "is no longer token j, and what depends on places goes wrong.",
        _cached(place="front"),
    ),
    Mistake(
        "not scaled",
        "your scores are not divided by √d_k.",
        _cached(scale=False),
    ),
    Mistake(
        "no softmax",
        "you mix the values with raw scores. Softmax makes weights of them first.",
        _cached(mix=lambda S, held: S @ held),
    ),
    Mistake(
        "newest only",
        "your output is the new value alone, as if the cache were empty.",
        lambda K, V, q, k, v: (np.vstack([K, k]), np.vstack([V, v]), v),
    ),
    Mistake(
        "values weighted by place",
        "you average the values. The query decides how much of each is read.",
        _cached(mix=lambda S, held: held.mean(axis=0)),
    ),
)


def check_cached_step(function: Callable) -> Report:
    """Check ``f(K, V, q, k, v)``: keys and values with the new token, and its output.

    K (t, d_k) and V (t, d_v) hold the past, perhaps nothing; q, k (d_k,) and v (d_v,) are the new
    token's. All three parts are asked for: keys, values, output.
    """

    def case(seed, t, d_k, d_v, note=""):
        shapes = {"K": (t, d_k), "V": (t, d_v), "q": (d_k,), "k": (d_k,), "v": (d_v,)}
        return Case(random_inputs(seed, **shapes), note)

    return check_function(
        function,
        right=_cached(),
        cases=[case(0, 5, 3, 2), case(1, 2, 4, 3), case(2, 0, 3, 2, "an empty cache")],
        mistakes=CACHED_STEP_MISTAKES,
        returns=("keys", "values", "output"),
        needs_all=True,
    )


# By hand -------------------------------------------------------------------------------


def _pieces():
    pieces = [([1, 4], [8, 4]), ([2, 1], [2, 16]), ([8], [0])]
    return [(np.log([p]), np.array([v], float).T) for p, v in pieces]


def _last_piece():
    *_, last = online_softmax(_pieces())
    return [last.normaliser[0], last.accumulator[0, 0], last.output[0, 0]]


def _piece_mistakes():
    right = np.array(_last_piece())
    own = [(np.exp(S - S.max()), V[:, 0]) for S, V in _pieces()]
    l, u = sum(p.sum() for p, _ in own), sum((p @ v).item() for p, v in own)
    first = [0.25 + 1 + 0.5 + 0.25, 0.25 * 8 + 4 + 0.5 * 2 + 0.25 * 16]  # from ln 4
    return {
        "each piece is measured from a maximum of its own: rescale when it rises.": [l, u, u / l],
        "not measured from the largest score: divide ℓ and u by 8.": right * [8, 8, 1],
        "the last piece raises the maximum, and your sums are still measured from ln 4.": [
            first[0] + 1,
            first[1],
            first[1] / (first[0] + 1),
        ],
        "you rescaled ℓ and not u: both are measured from the maximum.": [
            right[0],
            first[1],
            first[1] / right[0],
        ],
        "you rescaled u and not ℓ: both are measured from the maximum.": [
            first[0] + 1,
            right[1],
            right[1] / (first[0] + 1),
        ],
        "the last piece has the value 0, but its weight counts in ℓ.": [
            right[0] - 1,
            right[1],
            right[1] / (right[0] - 1),
        ],
    }


def _bill():
    step = layer_cost(1, 8, past=10, d_ff=16)["total"]
    return [2 * 8 + 16, step, cache_size(11, 8), -(-19 // 2)]


def _bill_mistakes():
    n, step, cache, layers = _bill()
    return {
        "(a): 6d is for an inner width of 4d.": [6 * 8, step, cache, layers],
        "(a): you left the feed-forward part out.": [16, step, cache, layers],
        "(b): its own key is read too.": [n, step - 16, cache, layers],
        "(b): you left the feed-forward part out.": [n, step - 256, cache, layers],
        "(b): only the new token runs through the layer.": [
            n,
            layer_cost(11, 8, d_ff=16)["total"],
            cache,
            layers,
        ],
        "(c): the eleventh token is in the cache afterwards.": [n, step, cache_size(10, 8), layers],
        "(c): a key *and* a value for each token.": [n, step, cache // 2, layers],
        "(d): a layer carries w − 1 places, not w.": [n, step, cache, 7],
        "(d): from token 1 to token 20 are 19 places, and a broken layer is a whole one.": [
            n,
            step,
            cache,
            9,
        ],
    }


EXERCISES = {
    "ex-cost-pieces": by_hand(_last_piece, mistakes=_piece_mistakes, tol=0.02),
    "ex-cost-bill": by_hand(_bill, mistakes=_bill_mistakes),
    "ex-cost-online": check_online_softmax,
    "ex-cost-cache": check_cached_step,
}
