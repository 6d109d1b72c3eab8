"""HeadsLab: several heads read the same tokens, and one matrix joins what they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attn_lib.dot_product import entropy
from attn_lib.draws import normals
from attn_lib.heads import (
    MultiHeadResult,
    head_contributions,
    merge_heads,
    multi_head_layer,
    multi_head_parameters,
)
from attn_lib.labs.base import Lab
from attn_lib.labs.heads.figure import heads_figure
from attn_lib.labs.traits import Choice, Flag, Refused, Whole, between

RANDOM_N, RANDOM_D = 4, 12
_ASK = 20.0  # so strongly is a place asked for that its weight is 1 to four decimals

# Hand-built: a sentence whose verb must read two words, and keep apart which is which.
_WORDS = ("dog", "bites", "man")
_FEATURES = ("dog", "man", "bites", "first place", "second place", "third place")


def _sentence(words: tuple[str, ...]) -> list[list[float]]:
    """One row for each word: which word it is, and in which of three places it stands."""
    return [
        [float(feature == word) for feature in _FEATURES[:3]] + np.eye(3)[place].tolist()
        for place, word in enumerate(words)
    ]


def _asking(*by_the_verb: Sequence[float]) -> list[list[float]]:
    """Query maps, one block of columns for each head: nouns ask for the verb's place."""
    nouns = [_ASK * x for block in by_the_verb for x in ([0, 1, 0] + [0] * (len(block) - 3))]
    verb = [_ASK * x for block in by_the_verb for x in block]
    return [nouns, nouns, verb, *([[0.0] * len(verb)] * 3)]


def _reading(rows: slice, *, width: int, heads: int) -> list[list[float]]:
    """Map three features to the first three columns of each head; leave the rest zero."""
    block = np.zeros((6, width))
    block[rows, :3] = np.eye(3)
    return np.tile(block, heads).tolist()


def _roles(heads: int) -> dict:
    """Query, key and value maps of the hand-built scene, for one head or for two."""
    width = 6 // heads
    asks = [[1, 0, 1, 0, 0, 0]] if heads == 1 else [[1, 0, 0], [0, 0, 1]]
    return {
        "W_Q": _asking(*asks),
        "W_K": _reading(slice(3, 6), width=width, heads=heads),
        "W_V": _reading(slice(0, 3), width=width, heads=heads),
        "outputs": ["dog", "man", "bites", "4", "5", "6"]
        if heads == 1
        else [f"{role}: {word}" for role in ("who", "whom") for word in _FEATURES[:3]],
    }


SCENES: list[dict[str, Any]] = [
    {
        "name": "random",
        "label": "random vectors",
        "d": RANDOM_D,
        "n": RANDOM_N,
        "heads": [1, 2, 3, 4, 6, 12],
        "note": "Drawn at random: every head has its own three maps, and nothing is trained.",
    },
    {
        "name": "roles",
        "label": "dog bites man",
        "d": 6,
        "n": 3,
        "heads": [1, 2],
        "tokens": list(_WORDS),
        "X": _sentence(_WORDS),
        "swapped": _sentence(_WORDS[::-1]),
        "maps": {str(heads): _roles(heads) for heads in (1, 2)},
        "note": "Built by hand: the verb asks for the words before and after it, the nouns ask "
        "for the verb. One head mixes its two words; two heads keep them apart.",
    },
]


class HeadsLab(Lab):
    """Cut one width into more and more heads: each reads by itself, one matrix joins them.

    Parameters
    ----------
    scene : {"random", "roles"}
        Random vectors of width 12; or *dog bites man*, built by hand, for one head or two.
    heads : int
        h, a divisor of the width: 1, 2, 3, 4, 6 or 12, by default 4. In the scene ``"roles"``
        1 or 2, by default 2.
    kv_heads : int, optional
        Key heads, a divisor of `heads`; by default one for each head. With fewer, neighbouring
        heads share keys and values.
    head : int
        The head that is looked at, 0 … h−1; the lab's words count heads from 1.
    query : int
        The chosen token, 0 … n−1.
    swapped : bool, default False
        Exchange the two nouns of ``"roles"``.
    seed : int
        Which random draw, 0 … 9999.
    name : str, optional
        The lab's id in a page and its name in a link.
    title : str, optional

    Raises
    ------
    TypeError
        If a keyword is none of these.
    ValueError
        If heads do not divide the width, key heads do not divide the heads, or a number is out
        of its range.

    Notes
    -----
    All is computed by `attn_lib.heads`. The random maps have entries of variance 1/d, so scores
    have variance about 1; fewer key heads are the first of more.
    """

    settings = ("scene", "heads", "kv_heads", "head", "query", "swapped", "seed")
    all_controls = settings
    all_panels = ("reading", "spread", "maps", "joining", "blocks")
    first_controls = ("heads",)
    first_panels = ("reading", "spread")
    asks = ("exchange",)

    scene = Choice([scene["name"] for scene in SCENES])
    heads = Whole(4)
    kv_heads = Whole(None, allow_none=True)
    head = Whole(0)
    query = Whole(0)
    swapped = Flag(False)
    seed = Whole(0, 0, 9999)
    scenes = traitlets.List(SCENES, read_only=True).tag(sync=True)
    title = traitlets.Unicode("Several heads, side by side").tag(sync=True)

    def __init__(self, *, scene: str = "random", **state: Any) -> None:
        state = {"scene": scene, **self._beginning(scene), **state}
        super().__init__(**{"head": 1 if scene == "random" and state["heads"] > 1 else 0, **state})

    # The scene, and what it allows ----------------------------------------------------------

    def _here(self) -> dict:
        return next(scene for scene in SCENES if scene["name"] == self.scene)

    @staticmethod
    def _beginning(scene: str) -> dict:
        """Give the heads and the query that a scene begins with."""
        return {"heads": 2, "query": 1} if scene == "roles" else {"heads": 4, "query": 2}

    @traitlets.observe("scene")
    def _scene_changed(self, change) -> None:
        """Keep what fits the new scene; take the rest from it."""
        fresh = self._beginning(self.scene)
        with self.hold_trait_notifications():
            if self.heads not in self._here()["heads"]:
                self.heads = fresh["heads"]
            if self.query >= self._here()["n"]:
                self.query = fresh["query"]

    @traitlets.observe("heads")
    def _heads_changed(self, change) -> None:
        """Keep key heads and the chosen head where they still fit."""
        with self.hold_trait_notifications():
            if self.kv_heads is not None and self.heads % self.kv_heads:
                self.kv_heads = None
            self.head = min(self.head, self.heads - 1)

    # Each trait's own rule ------------------------------------------------------------------

    @traitlets.validate("heads")
    def _valid_heads(self, proposal) -> int:
        heads, scene = proposal["value"], self._here()
        if heads not in scene["heads"]:
            *some, last = map(str, scene["heads"])
            why = (
                f"divide the width d = {scene['d']}"
                if self.scene == "random"
                else "be those that scene 'roles' is built for"
            )
            raise Refused(f"heads must {why}: {', '.join(some)} or {last}, got {heads}")
        return heads

    @traitlets.validate("kv_heads")
    def _valid_kv_heads(self, proposal) -> int | None:
        kv_heads = proposal["value"]
        if kv_heads is not None and (kv_heads < 1 or self.heads % kv_heads):
            raise Refused(f"kv_heads must divide heads = {self.heads}, got {kv_heads}")
        return kv_heads

    @traitlets.validate("head")
    def _valid_head(self, proposal) -> int:
        return between("head", proposal["value"], 0, self.heads - 1)

    @traitlets.validate("query")
    def _valid_query(self, proposal) -> int:
        return between("query", proposal["value"], 0, self._here()["n"] - 1)

    # What the lab shows ---------------------------------------------------------------------

    @property
    def tokens(self) -> list[str]:
        """The n tokens."""
        if self.scene == "roles":
            return list(_WORDS[::-1] if self.swapped else _WORDS)
        return ["x" + "₀₁₂₃₄₅₆₇₈₉"[i + 1] for i in range(RANDOM_N)]

    @property
    def outputs(self) -> list[str]:
        """Names of the output's d columns."""
        if self.scene == "roles":
            return self._here()["maps"][str(self.heads)]["outputs"]
        return [str(c + 1) for c in range(RANDOM_D)]

    @property
    def d(self) -> int:
        """The width of the tokens."""
        return self._here()["d"]

    @property
    def d_k(self) -> int:
        """The width of one head, d / h."""
        return self.d // self.heads

    @property
    def groups(self) -> int:
        """The number of key heads: `kv_heads`, or one for each head."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def X(self) -> np.ndarray:
        """The tokens' vectors, (n, d)."""
        if self.scene == "roles":
            return np.array(self._here()["swapped" if self.swapped else "X"])
        return normals(self.seed, 0, RANDOM_N, RANDOM_D)

    @property
    def maps(self) -> dict[str, np.ndarray]:
        """The four matrices: ``W_Q``, ``W_K``, ``W_V`` (all heads side by side) and ``W_O``."""
        shared = self.groups * self.d_k
        if self.scene == "roles":
            given = self._here()["maps"][str(self.heads)]
            W_Q, W_K, W_V = (np.array(given[key]) for key in ("W_Q", "W_K", "W_V"))
            W_O = np.eye(self.d)
        else:
            d = RANDOM_D
            W_Q, W_K, W_V, W_O = (
                normals(self.seed, stream, d, d) / np.sqrt(d) for stream in range(1, 5)
            )
        return {"W_Q": W_Q, "W_K": W_K[:, :shared], "W_V": W_V[:, :shared], "W_O": W_O}

    @property
    def result(self) -> MultiHeadResult:
        """What every head did, from `attn_lib.heads.multi_head_layer`."""
        return self._attend(self.X)

    def _attend(self, X: np.ndarray) -> MultiHeadResult:
        maps: dict[str, Any] = self.maps
        return multi_head_layer(X, **maps, heads=self.heads, kv_heads=self.groups)

    @property
    def weights(self) -> np.ndarray:
        """The weights of each head, (h, n, n)."""
        return self.result.weights

    @property
    def mean_weights(self) -> np.ndarray:
        """The average over the heads, (n, n): no head's weights, in general."""
        return self.weights.mean(axis=0)

    @property
    def concatenated(self) -> np.ndarray:
        """What the heads read, side by side, (n, h · d_v)."""
        return merge_heads(self.result.mixed)

    @property
    def output(self) -> np.ndarray:
        """The output, (n, d): the concatenation times ``W_O``."""
        return self.result.output

    @property
    def contributions(self) -> np.ndarray:
        """What each head adds to the output, (h, n, d)."""
        return head_contributions(self.result.mixed, self.maps["W_O"])

    @property
    def difference(self) -> float:
        """‖sum over heads − concatenation times ``W_O``‖: zero, up to rounding."""
        return float(np.linalg.norm(self.contributions.sum(axis=0) - self.output))

    @property
    def parameters(self) -> dict[str, int]:
        """How many entries each matrix has, from `attn_lib.heads.multi_head_parameters`."""
        return multi_head_parameters(self.d, heads=self.heads, kv_heads=self.groups)

    @property
    def entropies(self) -> tuple[float, float]:
        """Bits of the chosen query: the heads' average, and that of their mean weights."""
        rows = self.weights[:, self.query]
        return float(entropy(rows).mean()), float(entropy(rows.mean(axis=0)))

    @property
    def swap_effect(self) -> float | None:
        """How far the verb's output moves when the two nouns are exchanged; in "roles" only."""
        if self.scene != "roles":
            return None
        scene, verb = self._here(), 1
        before, after = (self._attend(np.array(scene[key])).output for key in ("X", "swapped"))
        return float(np.linalg.norm(before[verb] - after[verb]))

    def describe(self) -> str:
        """Say what the chosen head reads, what the mean says of it, and how many parameters."""
        a, tokens = self.weights[self.head, self.query], self.tokens
        first = int(np.argmax(a))
        d, total = self.d, self.parameters["total"]
        count = f"{total} parameters" + (f" = 4 · {d}²" if total == 4 * d * d else "")
        swap = ""
        moved = self.swap_effect
        if moved is not None:
            swap = f" Exchange the two nouns, and the output of bites moves by {abs(moved):.2f}."
        return (
            f"In head {self.head + 1} of {self.heads}, {tokens[self.query]} reads {tokens[first]} "
            f"most (weight {a[first]:.2f}); averaged over the heads that weight is "
            f"{self.mean_weights[self.query, first]:.2f}. {count}.{swap}"
        )

    def figure(self) -> Figure:
        """Draw each head's weights, their mean, and how the heads are joined, with matplotlib."""
        return heads_figure(
            self.result,
            self.maps["W_O"],
            tokens=self.tokens,
            head=self.head,
            query=self.query,
            outputs=self.outputs,
        )

    def data(self) -> dict:
        """Give the lab's state and its scenes, ready for JSON."""
        return {**super().data(), "scenes": self.scenes}
