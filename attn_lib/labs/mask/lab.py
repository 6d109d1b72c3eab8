"""MaskLab: which keys each query may look at, and what becomes of its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attn_lib import AttentionResult, attention_weights, masks
from attn_lib.draws import normals
from attn_lib.figures import attention_figure
from attn_lib.labs.base import Lab, ShowsAttention
from attn_lib.labs.traits import Choice, Flag, Whole, tuples

LARGEST = 12


class MaskLab(ShowsAttention, Lab):
    """Choose a mask for n queries and m keys: forbidden pairs are hatched, rows share out the rest.

    Parameters
    ----------
    mask : {"causal", "window", "prefix", "none"}
        Which rule says where a query may look.
    n, m : int, default 6
        Queries and keys, 1 … 12.
    offset : int, default 0
        How many keys stand before the first query's own: 0 aligns first with first,
        m − n last with last.
    window : int, default 3
        For the window mask: keys a query may see, its own included.
    prefix : int, default 2
        For the prefix mask: keys that everybody may see.
    length : int, default 12
        Keys from this one on are padding; m or more means that there is none.
    scores_are : {"equal", "random"}
        All scores 0, so that weights show the mask alone; or drawn from N(0, 1).
    inverted : bool, default False
        Hand the mask to a function that reads True as *forbidden*.
    painted : list of [query, key], optional
        Pairs, counted from 0, of which the opposite holds: painted by hand.
    query : int, default 0
        The chosen query; with fewer queries the last one is meant.
    seed : int
        Which draw of scores, 0 … 9999.
    name : str, optional
        The lab's id in a page and its name in a link.
    title : str, optional

    Raises
    ------
    TypeError
        If a keyword is none of these.
    ValueError
        If a number is out of its range or a name is unknown.

    Notes
    -----
    The values are 1, 2, … m, so an output is the average place of the keys that were read.
    """

    settings = (
        "mask",
        "n",
        "m",
        "offset",
        "window",
        "prefix",
        "length",
        "scores_are",
        "inverted",
        "painted",
        "query",
        "seed",
    )
    all_controls = tuple(name for name in settings if name != "painted")
    all_panels = ("painting", "scores")
    first_controls = ("mask",)
    first_panels = ("painting",)
    asks = ("count",)

    mask = Choice(("causal", "window", "prefix", "none"))
    n = Whole(6, 1, LARGEST)
    m = Whole(6, 1, LARGEST)
    offset = Whole(0, -LARGEST, LARGEST)
    window = Whole(3, 1, LARGEST)
    prefix = Whole(2, 0, LARGEST)
    length = Whole(LARGEST, 0, LARGEST)
    scores_are = Choice(("equal", "random"))
    inverted = Flag(False)
    painted: traitlets.List[Any] = traitlets.List().tag(sync=True)
    query = Whole(0, 0, LARGEST - 1)
    seed = Whole(0, 0, 9999)

    def __init__(self, **state: Any) -> None:
        super().__init__(**{"title": "Which keys may a query look at?", **state})

    @property
    def rule(self) -> np.ndarray:
        """The mask as it is written, True = may look, (n, m)."""
        n, m, offset = self.n, self.m, self.offset
        rules = {
            "causal": lambda: masks.causal_mask(n, m, offset=offset),
            "window": lambda: masks.window_mask(n, m, window=self.window, offset=offset),
            "prefix": lambda: masks.prefix_mask(n, m, prefix=self.prefix, offset=offset),
            "none": lambda: np.ones((n, m), bool),
        }
        padding = masks.padding_mask(min(self.length, m), m)
        rule = rules[self.mask]() & padding
        for i, j in self.painted:
            if i < n and j < m:
                rule[i, j] ^= True
        return rule

    @traitlets.validate("painted")
    def _valid_painted(self, proposal) -> list[list[int]]:
        return tuples("painted", proposal["value"], "[query, key]", (LARGEST, LARGEST))

    @property
    def keep(self) -> np.ndarray:
        """The mask as it acts, (n, m): the rule, or its opposite when read the wrong way."""
        return ~self.rule if self.inverted else self.rule

    @property
    def result(self) -> AttentionResult:
        """Scores, weights and output together."""
        drawn = normals(self.seed, 0, LARGEST, LARGEST)[: self.n, : self.m]
        S = masks.apply_mask(drawn if self.scores_are == "random" else 0 * drawn, self.keep)
        A = attention_weights(S)
        return AttentionResult(S, A, A @ np.arange(1.0, self.m + 1)[:, None])

    @property
    def allowed(self) -> np.ndarray:
        """How many keys each query may look at, (n,)."""
        return self.keep.sum(axis=1)

    @property
    def query_row(self) -> int:
        """The row of the chosen query."""
        return min(self.query, self.n - 1)

    def describe(self) -> str:
        """Say how many pairs are allowed and what the chosen query may see."""
        row, allowed = self.query_row, self.allowed
        empty = int((allowed == 0).sum())
        nothing = f" {empty} without any key: zero weights, zero output." if empty else ""
        return (
            f"{allowed.sum()} of {self.n * self.m} pairs are allowed. "
            f"Query {row + 1} may look at {allowed[row]} of {self.m} keys.{nothing}"
        )

    def figure(self) -> Figure:
        """Draw scores, weights and outputs with matplotlib, forbidden cells hatched."""
        return attention_figure(
            self.result,
            tokens=[str(i + 1) for i in range(self.n)],
            keys=[str(j + 1) for j in range(self.m)],
            query=self.query_row,
            outputs=["place"],
        )
