"""Checks of the exercises of chapter 5, and the known mistakes in them."""

from collections.abc import Callable

import numpy as np

from attn_lib.checks.engine import Case, Mistake, Report, check_function, random_inputs
from attn_lib.positions import rope, sinusoidal_positions

__all__ = ["check_rope", "check_sinusoids"]


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
