"""The sentences and hand-built vectors that the chapters share.

Nothing here is learned. Every feature, every key coordinate and every output coordinate has a name,
every entry is a round number, so that a reader can follow each score back to a reason. A trained
model has no such names; chapter 14 looks inside one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attn_lib.draws import normals

__all__ = [
    "ACCOUNT",
    "CHEF",
    "COLOURS",
    "RIVER",
    "SCENES",
    "Dictionary",
    "Scene",
    "random_scene",
]


@dataclass(frozen=True)
class Scene:
    """A sentence with the vectors and the three maps that one attention layer needs.

    Attributes
    ----------
    name : str
        Short id, as used in URLs.
    label : str
        What a reader picks from a list.
    tokens : tuple of str
        The n tokens in the order of the sentence.
    features : tuple of str
        Names of the d columns of ``X``.
    X : ndarray, shape (n, d)
        One row per token. The same word has the same row wherever it stands.
    W_Q, W_K : ndarray, shape (d, d_k)
        Query and key maps, for row vectors: ``Q = X @ W_Q``.
    W_V : ndarray, shape (d, d_v)
        Value map.
    outputs : tuple of str
        Names of the d_v columns of ``V`` and of the output.
    query : int
        Index of the token chosen when a lab opens.
    note : str
        One sentence about where the numbers come from.
    keys : tuple of str
        Names of the d_k coordinates in which queries ask and keys answer; may be empty.

    Raises
    ------
    ValueError
        If the arrays do not fit each other, the tokens or the outputs, hold numbers that are not
        finite, or `query` is no place in the sentence.
    """

    name: str
    label: str
    tokens: tuple[str, ...]
    features: tuple[str, ...]
    X: np.ndarray
    W_Q: np.ndarray
    W_K: np.ndarray
    W_V: np.ndarray
    outputs: tuple[str, ...]
    query: int
    note: str
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if np.ndim(self.W_Q) != 2:
            raise ValueError(
                f"scene {self.name!r}: W_Q must be (d, d_k), got shape {np.shape(self.W_Q)}"
            )
        n, (d, d_k) = len(self.tokens), np.shape(self.W_Q)
        needed = {"X": (n, d), "W_Q": (d, d_k), "W_K": (d, d_k), "W_V": (d, len(self.outputs))}
        for name, shape in needed.items():
            array = getattr(self, name)
            if np.shape(array) != shape:
                raise ValueError(
                    f"scene {self.name!r} has {n} tokens, W_Q of shape {(d, d_k)} and "
                    f"{len(self.outputs)} outputs: {name} must have shape {shape}, "
                    f"got {np.shape(array)}"
                )
            if not np.isfinite(array).all():
                raise ValueError(f"scene {self.name!r}: {name} holds numbers that are not finite")
        if self.query not in range(n):
            raise ValueError(
                f"scene {self.name!r}: query must be from 0 to {n - 1}, got {self.query}"
            )


def _fixed(rows: Any) -> np.ndarray:
    """Return `rows` as a float array that cannot be changed by accident."""
    array = np.array(rows, dtype=float)
    array.flags.writeable = False
    return array


def _rows(words: Mapping[str, Any], tokens: tuple[str, ...]) -> np.ndarray:
    """Look each token up in the table `words`, ignoring case: identical words, identical rows."""
    return _fixed([words[token.lower()] for token in tokens])


_NOTE = "Vectors built by hand, with features you can name; nothing here is learned."

# The chef sentence -----------------------------------------------------------

_KITCHEN_FEATURES = ("function", "person", "action", "dish", "seasoning", "taste")

_KITCHEN_WORDS = {
    #          function person action dish seasoning taste
    "the": [1, 0, 0, 0, 0, 0],
    "chef": [0, 1, 0, 0, 0, 0],
    "added": [0, 0, 1, 0, 0, 0],
    "salt": [0, 0, 0, 0, 1, 0],
    "because": [0.5, 0, 0, 0, 0, 0],
    "soup": [0, 0, 0, 1, 0, 0],
    "tasted": [0, 0, 1, 0, 0, 0.8],
    "bland": [0, 0, 0, 0, 0, 1],
}

_KITCHEN_KEYS = ("takes part", "happens", "is a dish", "has taste")

_KITCHEN_W_Q = _fixed(
    [
        # takes part, happens, is a dish, has taste: what a token with this feature asks for
        [2, -1, 2, -1],  # function word: a noun, someone or something
        [0, 2, 0, -1],  # person: what is done
        [2, -1, 0, 0],  # action: who and what takes part
        [0, 1, -1, 2],  # dish: how it tastes
        [0, 2, 1.5, -1],  # seasoning: what is done with it, to which dish
        [-1, 1.5, 3.5, 1.5],  # taste: the dish that has it, and the verb that links them
    ]
)

_KITCHEN_W_K = _fixed(
    [
        # takes part, happens, is a dish, has taste: what a token with this feature answers
        [-1, -1, -1, -1],  # function word: no to every question
        [2, 0, 0, 0],  # person
        [0, 2, 0, 0],  # action
        [0, 0, 2, 0],  # dish
        [2.5, 0, -1, 0],  # seasoning: takes part, and is not a dish
        [0, 0, 0, 2],  # taste
    ]
)

_KITCHEN_W_V = _fixed(
    [
        # food, doing, taste: what is handed over when this token is read
        [0, 0, 0],
        [0, 0.5, 0],
        [0, 1, 0],
        [1, 0, 0],
        [0.5, 0, 0.5],
        [0, 0, 1],
    ]
)

_CHEF_TOKENS = ("The", "chef", "added", "salt", "because", "the", "soup", "tasted", "bland")

CHEF = Scene(
    name="chef",
    label="chef sentence",
    tokens=_CHEF_TOKENS,
    features=_KITCHEN_FEATURES,
    X=_rows(_KITCHEN_WORDS, _CHEF_TOKENS),
    W_Q=_KITCHEN_W_Q,
    W_K=_KITCHEN_W_K,
    W_V=_KITCHEN_W_V,
    outputs=("food", "doing", "taste"),
    query=8,
    note=_NOTE,
    keys=_KITCHEN_KEYS,
)

# Two sentences with the word bank: one table of words, one set of weights ------

_BANK_FEATURES = ("function", "person", "action", "place", "nature", "money")

_BANK_WORDS = {
    #          function person action place nature money
    "they": [0, 1, 0, 0, 0, 0],
    "she": [0, 1, 0, 0, 0, 0],
    "sat": [0, 0, 1, 0.5, 0, 0],
    "opened": [0, 0, 1, 0, 0, 0],
    "on": [0.5, 0, 0, 0.5, 0, 0],
    "the": [1, 0, 0, 0, 0, 0],
    "a": [1, 0, 0, 0, 0, 0],
    "river": [0, 0, 0, 0, 1, 0],
    "account": [0, 0, 0, 0, 0, 1],
    "bank": [0, 0, 0, 1, 0.5, 0.5],  # both meanings, half each: the table cannot choose
}

_BANK_KEYS = ("is a person", "happens", "speaks of nature", "speaks of money")

_BANK_W_Q = _fixed(
    [
        # person, happens, nature, money: what a token with this feature asks for
        [0, 0, 1, 1],  # function word: any topic
        [0, 2, 0, 0],  # person: what is done
        [2, 0, 1, 1],  # action: who does it, about what
        [0, 0, 2, 2],  # place: any topic, twice as strongly
        [0, 1, 1, -1],
        [0, 1, -1, 1],
    ]
)

_BANK_W_K = _fixed(
    [
        # person, happens, nature, money: what a token with this feature answers
        [-1, -1, -1, -1],  # function word: no to every question
        [2, 0, 0, 0],
        [0, 2, 0, 0],
        [0, 0, -0.5, -0.5],  # place: its topic is not settled by itself
        [0, 0, 2, 0],
        [0, 0, 0, 2],
    ]
)

_BANK_W_V = _fixed(
    [
        # nature, money, doing: what is handed over when this token is read
        [0, 0, 0],
        [0, 0, 0.5],
        [0, 0, 1],
        [0, 0, 0],
        [1, 0, 0],
        [0, 1, 0],
    ]
)


def _bank_scene(name: str, tokens: tuple[str, ...]) -> Scene:
    """Build a *bank* sentence; the word table and the weights are the same for all of them."""
    return Scene(
        name=name,
        label=f"bank: {name}",
        tokens=tokens,
        features=_BANK_FEATURES,
        X=_rows(_BANK_WORDS, tokens),
        W_Q=_BANK_W_Q,
        W_K=_BANK_W_K,
        W_V=_BANK_W_V,
        outputs=("nature", "money", "doing"),
        query=tokens.index("bank"),
        note=_NOTE,
        keys=_BANK_KEYS,
    )


RIVER = _bank_scene("river", ("They", "sat", "on", "the", "river", "bank"))
ACCOUNT = _bank_scene("account", ("She", "opened", "a", "bank", "account"))

SCENES = {scene.name: scene for scene in (CHEF, RIVER, ACCOUNT)}

# A dictionary in the plane -------------------------------------------------------


@dataclass(frozen=True)
class Dictionary:
    """Keys and values in the plane: what LookupLab looks things up in.

    Attributes
    ----------
    names : tuple of str
        The m entries.
    K : ndarray, shape (m, 2)
        Where each key stands, coordinates from −2 to 2.
    V : ndarray, shape (m, 2)
        Each value, coordinates from −1 to 1. Read as a colour: green to red, blue to yellow.
    outputs : tuple of str
        Names of the two columns of ``V``.

    Raises
    ------
    ValueError
        If there are not m names, keys and values, or a coordinate is out of its range.
    """

    names: tuple[str, ...]
    K: np.ndarray
    V: np.ndarray
    outputs: tuple[str, str]

    def __post_init__(self) -> None:
        shape = (len(self.names), 2)
        for name, array, reach in (("K", self.K, 2), ("V", self.V, 1)):
            if np.shape(array) != shape or not np.abs(array).max(initial=0) <= reach:
                raise ValueError(
                    f"{name} must have shape {shape}, a row for each name, and entries from "
                    f"{-reach} to {reach}: got shape {np.shape(array)}"
                )


# Where a key stands says nothing about its value, and a long key is not a near one.
_ENTRIES = {
    #        key           red, yellow
    "plum": ([0.6, 0.75], [0.45, -0.7]),
    "moss": ([1.7, 0.4], [-0.7, 0.6]),
    "rose": ([0.3, 1.6], [0.9, 0.1]),
    "sea": ([-0.9, 0.8], [-0.6, -0.6]),
    "rust": ([-1.5, -0.7], [0.6, 0.7]),
    "sand": ([0.5, -1.2], [0.1, 0.4]),
}

COLOURS = Dictionary(
    names=tuple(_ENTRIES),
    K=_fixed([key for key, _ in _ENTRIES.values()]),
    V=_fixed([value for _, value in _ENTRIES.values()]),
    outputs=("red", "yellow"),
)

# Random scenes ---------------------------------------------------------------

RANDOM_NOTE = (
    "Drawn at random. A smaller key width keeps the first coordinates of the same queries and keys."
)


def random_scene(n: int = 8, *, seed: int = 0, d: int = 64, d_k: int = 64, d_v: int = 4) -> Scene:
    """Draw a scene: tokens N(0, 1), and maps that keep that variance.

    Entries of ``W_Q``, ``W_K`` and ``W_V`` have variance 1/d and are drawn apart, so queries and
    keys have coordinates of mean 0 and variance about 1. Smaller widths are the first
    coordinates of larger ones: a change of `d_k` keeps what is common.

    Parameters
    ----------
    n : int
        Number of tokens; fewer are the first of more.
    seed : int
        Which draw.
    d, d_k, d_v : int
        Widths of tokens, of keys (at most 64) and of values.

    Returns
    -------
    Scene
        Named ``"random"``, with tokens x₁ … xₙ.

    Raises
    ------
    ValueError
        If `d_k` is not from 1 to 64.

    Notes
    -----
    The draws are those of the labs, see `attn_lib.draws`.
    """
    widest = 64
    if not 1 <= d_k <= widest:
        raise ValueError(f"d_k must be from 1 to {widest}, got {d_k}")

    def weights(stream: int, columns: int) -> np.ndarray:
        return normals(seed, stream, d, columns) / np.sqrt(d)

    return Scene(
        name="random",
        label="random vectors",
        tokens=tuple(f"x{i}".translate(_SUBSCRIPTS) for i in range(1, n + 1)),
        features=tuple(str(r) for r in range(1, d + 1)),
        X=_fixed(normals(seed, 0, n, d)),
        W_Q=_fixed(weights(1, widest)[:, :d_k]),
        W_K=_fixed(weights(2, widest)[:, :d_k]),
        W_V=_fixed(weights(3, d_v)),
        outputs=tuple(str(r) for r in range(1, d_v + 1)),
        query=0,
        note=RANDOM_NOTE,
    )


_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
