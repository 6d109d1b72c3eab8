"""Checks of the exercises of chapter 5, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.checks.engine import (
    Case,
    Mistake,
    Report,
    by_hand,
    check_function,
    random_inputs,
)
from attn_lib.positions import rope, sinusoidal_positions

__all__ = ["check_rope", "check_sinusoids", "check_turn"]


def _waves(n, d, exponents, base=10000.0, start=0):
    """Sines in even columns and cosines in odd ones, with an exponent for each column."""
    angles = np.arange(start, start + n)[:, None] * float(base) ** -exponents
    return np.where(np.arange(d) % 2 == 0, np.sin(angles), np.cos(angles))


def _of_pair(d):
    """The right exponents: both columns of a pair share one."""
    return 2 * (np.arange(d) // 2) / d


def _interleaved_without_care(n, d):
    table = np.zeros((n, d))
    angles = np.arange(n)[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


SINUSOID_MISTAKES = (
    Mistake(
        "a frequency for each column",
        "sine and cosine of a pair have different frequencies in your table. They are the two "
        "coordinates of one hand of a clock: the exponent takes the number of the pair, "
        "`column // 2`, twice, and not the number of the column.",
        lambda n, d: _waves(n, d, np.arange(d) / d),
    ),
    Mistake(
        "factor 2 forgotten",
        "your hands turn too fast: the exponent of pair r is 2r/d, not r/d.",
        lambda n, d: _waves(n, d, (np.arange(d) // 2) / d),
    ),
    Mistake(
        "exponent of the wrong sign",
        "your frequencies grow from pair to pair. They should fall: base to the power −2r/d.",
        lambda n, d: _waves(n, d, -_of_pair(d)),
    ),
    Mistake(
        "sine and cosine exchanged",
        "the even columns, counted from 0, are sines: position 0 is the row 0, 1, 0, 1, …",
        lambda n, d: np.where(
            np.arange(d) % 2 == 0,
            np.cos(np.arange(n)[:, None] * 10000.0 ** -_of_pair(d)),
            np.sin(np.arange(n)[:, None] * 10000.0 ** -_of_pair(d)),
        ),
    ),
    Mistake(
        "concatenated",
        "you put all sines first and then all cosines. The columns are right, only their order is "
        "not what the exercise asks: sine and cosine alternate.",
        lambda n, d: sinusoidal_positions(n, d, layout="concatenated"),
    ),
    Mistake(
        "positions from 1",
        "your positions begin with 1; here they begin with 0.",
        lambda n, d: _waves(n, d, _of_pair(d), start=1),
    ),
    Mistake(
        "transposed",
        "your table has a column for each position. Rows are positions.",
        lambda n, d: sinusoidal_positions(n, d).T,
    ),
    Mistake(
        "odd width",
        "for odd d there is one sine more than there are cosines: cut the cosines to d // 2 "
        "columns.",
        lambda n, d: _interleaved_without_care(n, d),
    ),
)


def check_sinusoids(function: Callable) -> Report:
    """Check ``f(n, d)``, the interleaved sinusoidal table of positions 0 … n − 1."""
    return check_function(
        function,
        right=sinusoidal_positions,
        cases=[
            Case({"n": 7, "d": 6}),
            Case({"n": 4, "d": 5}, "an odd width: the last sine has no cosine"),
            Case({"n": 3, "d": 1}),
        ],
        mistakes=SINUSOID_MISTAKES,
        returns=("table",),
    )


def _angles(X, positions, exponents=None):
    d = X.shape[1]
    exponents = np.arange(0, d, 2) / d if exponents is None else exponents
    return np.asarray(positions)[:, None] * 10000.0**-exponents


def _turned(X, angles):
    """Turn neighbours by an angle for each row and pair."""
    x, y = X[:, 0::2], X[:, 1::2]
    cos, sin = np.cos(angles), np.sin(angles)
    return x * cos - y * sin, x * sin + y * cos


def _stacked(X, angles):
    return np.stack(_turned(X, angles), axis=-1).reshape(X.shape)


def _turned_in_place(X, angles):
    Y = np.array(X, float)
    Y[:, 0::2] = Y[:, 0::2] * np.cos(angles) - Y[:, 1::2] * np.sin(angles)
    Y[:, 1::2] = Y[:, 0::2] * np.sin(angles) + Y[:, 1::2] * np.cos(angles)
    return Y


ROPE_MISTAKES = (
    Mistake(
        "turned backwards",
        "you turn the other way. With queries and keys both turned backwards the scores would "
        "still depend on the offset alone, but a model trained the usual way round would fail.",
        lambda X, positions: rope(X, -np.asarray(positions)),
    ),
    Mistake(
        "other pairing",
        "you pair coordinate r with r + d/2. That works too, if everything does it; the exercise "
        "asks for neighbours, 0 with 1 and 2 with 3.",
        lambda X, positions: rope(X, positions, pairing="half"),
    ),
    Mistake(
        "pairs not put back",
        "you read neighbours as pairs and write them one half after the other. Put them back "
        "where they came from: stack on a new last axis, then reshape.",
        lambda X, positions: np.concatenate(_turned(X, _angles(X, positions)), axis=-1),
    ),
    Mistake(
        "reflection",
        "this is a reflection, not a rotation: one of the two signs is wrong. A turn by 0 must "
        "change nothing.",
        lambda X, positions: np.stack(
            (
                X[:, 0::2] * np.cos(_angles(X, positions))
                + X[:, 1::2] * np.sin(_angles(X, positions)),
                X[:, 0::2] * np.sin(_angles(X, positions))
                - X[:, 1::2] * np.cos(_angles(X, positions)),
            ),
            axis=-1,
        ).reshape(X.shape),
    ),
    Mistake(
        "overwritten too early",
        "the second coordinate of a pair is computed from the first *after* that one has been "
        "turned. Keep both old coordinates until both new ones are there.",
        lambda X, positions: _turned_in_place(X, _angles(X, positions)),
    ),
    Mistake(
        "one frequency",
        "all your pairs turn at the same speed. Pair r turns by base^(−2r/d) for each step.",
        lambda X, positions: _stacked(X, _angles(X, positions, np.zeros(X.shape[1] // 2))),
    ),
    Mistake(
        "factor 2 forgotten",
        "your pairs turn too fast: the exponent of pair r is 2r/d, not r/d.",
        lambda X, positions: _stacked(
            X, _angles(X, positions, np.arange(X.shape[1] // 2) / X.shape[1])
        ),
    ),
    Mistake(
        "places ignored",
        "you count the rows and ignore `positions`. Behind a cache a row does not stand at its "
        "own number.",
        lambda X, positions: rope(X),
    ),
    Mistake(
        "sinusoids added",
        "you add sinusoids. RoPE adds nothing: it turns each pair and keeps its length.",
        lambda X, positions: X + sinusoidal_positions(positions, X.shape[1]),
    ),
)


def check_rope(function: Callable) -> Report:
    """Check ``f(X, positions)``, which turns neighbouring coordinates by RoPE."""
    return check_function(
        function,
        right=rope,
        cases=[
            Case(random_inputs(0, X=(5, 6)) | {"positions": np.arange(5)}),
            Case(random_inputs(1, X=(3, 8)) | {"positions": np.array([7, 0, 4])}, "any places"),
        ],
        mistakes=ROPE_MISTAKES,
        returns=("turned",),
    )


def _turn(d, k, exponents=None):
    """Give R_k, block by block, with an exponent for each pair."""
    exponents = np.arange(0, d, 2) / d if exponents is None else exponents
    R = np.zeros((d, d))
    for r, angle in enumerate(k * 10000.0**-exponents):
        cos, sin = np.cos(angle), np.sin(angle)
        R[2 * r : 2 * r + 2, 2 * r : 2 * r + 2] = [[cos, -sin], [sin, cos]]
    return R


def _reflected(d, k):
    R = _turn(d, k)
    R[1::2] *= -1
    return R


TURN_MISTAKES = (
    Mistake(
        "turned the other way",
        "you turn the other way, so your head reads k places *ahead*: your matrix sends p(t) to "
        "p(t − k). The minus stands above: a row is multiplied from the right.",
        lambda d, k: _turn(d, -k),
    ),
    Mistake(
        "step ignored",
        "you turn by one step whatever k is. The angle of pair r is k times its frequency.",
        lambda d, k: _turn(d, 1),
    ),
    Mistake(
        "not turned",
        "this turns nothing: a head with this matrix reads its own place.",
        lambda d, k: np.eye(d),
    ),
    Mistake(
        "reflection",
        "this is a reflection, not a rotation: one of the signs is wrong. For k = 0 it must be I.",
        _reflected,
    ),
    Mistake(
        "one frequency",
        "all your pairs turn at the same speed. Pair r turns by 10000^(−2r/d) for each step.",
        lambda d, k: _turn(d, k, np.zeros(d // 2)),
    ),
    Mistake(
        "factor 2 forgotten",
        "your pairs turn too fast: the exponent of pair r is 2r/d, not r/d.",
        lambda d, k: _turn(d, k, np.arange(d // 2) / d),
    ),
    Mistake(
        "other pairing",
        "you pair coordinate r with r + d/2. In the interleaved table sine and cosine of a pair "
        "are neighbours.",
        lambda d, k: rope(np.eye(d), np.full(d, -k), pairing="half"),
    ),
    Mistake(
        "a matrix for one place",
        "your matrix sends p(0) to p(k) and nothing else. One matrix must do it for every t.",
        lambda d, k: np.outer(*sinusoidal_positions([0, k], d)) / (d / 2),
    ),
)


def check_turn(function: Callable) -> Report:
    """Check ``f(d, k)``, the matrix that moves every row of interleaved waves on by k places."""
    return check_function(
        function,
        right=_turn,
        cases=[
            Case({"d": 6, "k": 3}),
            Case({"d": 4, "k": -2}, "k of either sign"),
            Case({"d": 2, "k": 0}),
        ],
        mistakes=TURN_MISTAKES,
        returns=("matrix",),
    )


HAND_MISTAKES = {
    "these are the weights of a token at the end. Here *dog* stands in the middle.": [
        4 / 7, 2 / 7, 1 / 7,
    ],
    "divide these by their sum: weights sum to one.": [1, 1 / 2, 1 / 2],
    "the weights are right, but in the order of the sentence: *dog* comes first in the answer.": [
        1 / 4, 1 / 2, 1 / 4,
    ],
    "these are the weights that *bites* gives. The query is *dog*.": [2 / 7, 4 / 7, 1 / 7],
    "*dog* reads itself too, at distance 0.": [0, 1 / 2, 1 / 2],
    "these are the even weights of a layer that has no positions.": [1 / 3, 1 / 3, 1 / 3],
}  # fmt: skip

PLACE_MISTAKES = {
    "(c) is RoPE: it turns queries and keys after the three maps. Tokens and values stay as they "
    "are.": [1, 2, 1, 2, 1, 3],
    "(f) adds rows, but to queries and keys: the tokens, and so the values, stay as they "
    "are.": [1, 2, 3, 2, 1, 1],
    "(b): a mask is a bias of 0 and −∞, added to the scores.": [1, 3, 3, 2, 1, 3],
    "(d) is a bias: one number for a pair of places, whatever query and key say.": [
        1, 2, 3, 3, 1, 3,
    ],
    "(e): appended to the tokens, before the three maps, the waves change all that is made of "
    "the tokens.": [1, 2, 3, 2, 3, 3],
    "(c): what a turn does to a score depends on the query and the key. A bias does not.": [
        1, 2, 2, 2, 1, 3,
    ],
    "(a): added to the embedding, the row changes the token itself.": [3, 2, 3, 2, 1, 3],
}  # fmt: skip

QUARTER_MISTAKES = {
    "that is the product without turning.": [7, 7],
    "query and key have the same offset in (b) and (c): the product is the same.": [-1, 1],
    "a quarter turn sends (x, y) to (−y, x). You turned the other way, or only one of the two.": [
        1, 1,
    ],
    "you turned the key alone. The query stands at place 1, not at 0.": [-7, -7],
}  # fmt: skip


def _reach_mistakes():
    x, flat = np.exp(-1 / 2), np.exp(-1 / 256)
    half, ends = [1 / 2, 1 / 16, 15.5 / 16], (1 - x) / (1 + x)
    return {
        "the slope stands in the exponent: each step multiplies by e^−½, not by ½.": half,
        "that is how much the next key counts. Divide what the own key counts, 1, by the sum of "
        "all.": [x, x**4, flat**4],
        "the key at distance 4 belongs to it: the sum begins with x⁴.": [
            1 - x, x**5, flat**5,
        ],
        "you counted the share of the one key at distance 4, not of all from there on.": [
            1 - x, (1 - x) * x**4, (1 - flat) * flat**4,
        ],
        "that is the share of the keys nearer than 4. What is left to one lies further back.": [
            1 - x, 1 - x**4, 1 - flat**4,
        ],
        "a query has no keys after it here: count each distance once.": [ends, x**4, flat**4],
        "1 is what the own key counts before it is shared out.": [1, x**4, flat**4],
    }  # fmt: skip


EXERCISES = {
    "ex-positions-hand": by_hand([1 / 2, 1 / 4, 1 / 4], mistakes=HAND_MISTAKES),
    "ex-positions-place": by_hand([1, 2, 3, 2, 1, 3], mistakes=PLACE_MISTAKES),
    "ex-positions-quarter": by_hand([-1, -1], mistakes=QUARTER_MISTAKES),
    "ex-positions-reach": by_hand(
        [1 - np.exp(-1 / 2), np.exp(-2), np.exp(-1 / 64)],
        mistakes=_reach_mistakes,
        tol=[0.01, 0.01, 0.02],  # with two decimals e^(−1/256) is 1
    ),
    "ex-positions-waves": check_sinusoids,
    "ex-positions-back": check_turn,
    "ex-positions-rope": check_rope,
}
