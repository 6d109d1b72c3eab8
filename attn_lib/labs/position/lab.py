"""PositionLab: what tells a layer the order of its tokens, and whether the layer notices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attn_lib.dot_product import AttentionResult, attention, attention_scores
from attn_lib.draws import normals
from attn_lib.examples import Scene, random_scene
from attn_lib.labs.base import Lab, OrdersTokens, ShowsAttention
from attn_lib.labs.position.figure import position_figure
from attn_lib.labs.traits import Choice, Refused, Whole, between
from attn_lib.masks import causal_mask, combine_masks
from attn_lib.positions import (
    add_positions,
    alibi_bias,
    alibi_slopes,
    equivariance_gap,
    rope,
    sinusoidal_positions,
)
from attn_lib.words import fixed

KINDS = ("none", "learned", "sinusoidal", "alibi", "rope")
NAMES = {
    "none": "no positions",
    "learned": "a learned table",
    "sinusoidal": "sinusoidal positions",
    "alibi": "ALiBi",
    "rope": "RoPE",
}
MASKS = ("none", "causal")
FEWEST, MOST = 3, 16
REACH = 12  # the query of the pair stands at this position, its key up to as far to each side
FARTHEST = 64
ROWS = 2 * REACH + FARTHEST + 1  # of the learned table
SLOPE = float(alibi_slopes(8)[0])
ROUNDING = 1e-9


class PositionLab(OrdersTokens, ShowsAttention, Lab):
    """Give tokens a position in one of four ways; shift a pair; put the tokens in another order.

    Parameters
    ----------
    positions : {"none", "learned", "sinusoidal", "alibi", "rope"}, default "rope"
        What tells the layer where a token stands. The learned table is shown as drawn at the
        start of training: independent rows.
    n : int, default 8
        Number of tokens, 3 … 16.
    d : int, default 8
        Width of tokens, queries and keys: an even number, 2 … 32.
    offset : int, default -3
        How many places after its query the key of the pair stands, −12 … 12.
    shift : int, default 5
        How far both tokens of the pair are moved on, 0 … 64.
    query : int, default 0
        The chosen token: the row that is framed, and the content of both tokens of the pair.
    order : sequence of int
        Which token stands at each place; a permutation of 0 … n−1.
    mask : {"none", "causal"}
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
        If a choice is unknown, an order is no permutation, or a number is out of its range.

    Notes
    -----
    The tokens and maps are those of `random_scene`. Everything is computed by `attn_lib` from the
    present state.
    """

    settings = ("positions", "n", "d", "offset", "shift", "query", "order", "mask", "seed")
    all_controls = ("positions", "mask", "n", "d", "offset", "shift", "seed", "moves")
    all_panels = ("ruler", "offsets", "layer", "spread")
    first_controls = ("positions",)
    first_panels = ("ruler", "offsets")
    asks = ("shift",)

    positions = Choice(KINDS, "rope")
    n = Whole(8, FEWEST, MOST)
    d = Whole(8, 2, 32)
    offset = Whole(-3, -REACH, REACH)
    shift = Whole(5, 0, FARTHEST)
    query = Whole(0)
    order = traitlets.List(traitlets.Int()).tag(sync=True)
    mask = Choice(MASKS)
    seed = Whole(0, 0, 9999)
    title = traitlets.Unicode("What tells attention the order").tag(sync=True)

    def __init__(self, *, n: int = 8, **state: Any) -> None:
        self.set_trait("n", n)
        super().__init__(**{"order": list(range(n)), **state})

    # Each trait's own rule --------------------

    @traitlets.validate("d")
    def _valid_d(self, proposal) -> int:
        if proposal["value"] % 2:
            raise Refused(f"d must be even, RoPE turns pairs: got {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("order")
    def _valid_order(self, proposal) -> list[int]:
        if sorted(proposal["value"]) != list(range(self.n)):
            raise Refused(
                f"order must hold each of 0 to {self.n - 1} once (there are {self.n} tokens), "
                f"got {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.validate("query")
    def _valid_query(self, proposal) -> int:
        return between("query", proposal["value"], 0, self.n - 1)

    @traitlets.observe("n")
    def _n_changed(self, change) -> None:
        """Put another number of tokens in order; keep the chosen one if it is still there."""
        with self.hold_trait_notifications():
            if len(self.order) != self.n:
                self.order = list(range(self.n))
            self.query = min(self.query, self.n - 1)

    # The layer --------------------

    def _scene(self) -> Scene:
        return random_scene(self.n, seed=self.seed, d=self.d, d_k=self.d)

    @property
    def table(self) -> np.ndarray:
        """The table that is added to the tokens, (89, d); zeros if none is."""
        if self.positions == "sinusoidal":
            return sinusoidal_positions(ROWS, self.d)
        learned = self.positions == "learned"
        return normals(self.seed, 4, ROWS, self.d) if learned else np.zeros((ROWS, self.d))

    def _queries_and_keys(self, X, places) -> tuple[np.ndarray, np.ndarray]:
        """Project tokens that stand at the given places."""
        scene, X = self._scene(), add_positions(X, self.table, places)
        Q, K = X @ scene.W_Q, X @ scene.W_K
        return (rope(Q, places), rope(K, places)) if self.positions == "rope" else (Q, K)

    @property
    def bias(self) -> np.ndarray | None:
        """What ALiBi adds to the scores, (n, n), alike on both sides of a query; else None."""
        if self.positions == "alibi":
            return alibi_bias(self.n, slopes=SLOPE, kind="symmetric")
        return None

    def layer(self, X: np.ndarray) -> AttentionResult:
        """Attend from tokens X (n, d) that stand at positions 0 … n−1."""
        places = np.arange(len(X))
        Q, K = self._queries_and_keys(X, places)
        V = add_positions(X, self.table, places) @ self._scene().W_V
        causal = causal_mask(len(X)) if self.mask == "causal" else None
        return attention(Q, K, V, mask=combine_masks(self.bias, causal))

    # What the lab shows, in the present order of the tokens --------------------

    @property
    def result(self) -> AttentionResult:
        """Scores, weights and output together."""
        return self.layer(self.X)

    @property
    def encodings(self) -> np.ndarray:
        """What a position contributes: rows of a table (n, d), or ALiBi's bias (n, n).

        For RoPE the cosine and sine of each pair's turn, which is what it makes of (1, 0).
        """
        if self.bias is not None:
            keep = causal_mask(self.n) if self.mask == "causal" else True
            return np.where(keep, self.bias, -np.inf)
        if self.positions == "rope":
            return rope(np.tile([1.0, 0.0], (self.n, self.d // 2)))
        return self.table[: self.n]

    # A pair of tokens, and the same pair moved on --------------------

    def curve(self, shift: int = 0) -> np.ndarray:
        """Give the scores of a query at position 12 + shift for keys −12 … 12 places after it.

        Query and keys are all the chosen token, so position alone tells the keys apart.

        Returns
        -------
        ndarray, shape (25,)
            Under the causal mask a key after the query has the score −∞.
        """
        places = np.arange(shift, shift + 2 * REACH + 1)
        X = np.tile(self._scene().X[self.query], (len(places), 1))
        Q, K = self._queries_and_keys(X, places)
        alibi = self.positions == "alibi"
        slope = SLOPE if alibi else 0.0
        bias = alibi_bias(1, len(places), slopes=slope, offset=REACH, kind="symmetric")
        causal = causal_mask(1, len(places), offset=REACH) if self.mask == "causal" else None
        return attention_scores(Q[REACH : REACH + 1], K, mask=combine_masks(bias, causal))[0]

    @property
    def score(self) -> float:
        """The pair's score: query at position 12, key `offset` places after it."""
        return float(self.curve()[REACH + self.offset])

    @property
    def shifted_score(self) -> float:
        """The pair's score when both tokens have moved on by `shift`."""
        return float(self.curve(self.shift)[REACH + self.offset])

    # Other orders --------------------

    def gap(self, order: Sequence[int]) -> float:
        """Measure ‖Attention(PX) − P Attention(X)‖, where row i of PX is token order[i]."""
        return equivariance_gap(self.layer, self._scene().X, np.asarray(order))

    @property
    def gaps(self) -> dict[str, float]:
        """The gap of four orders: three that any sentence has, and the present one."""
        inorder = list(range(self.n))
        orders = {
            "reversed": inorder[::-1],
            "rotated by one": inorder[-1:] + inorder[:-1],
            "first two swapped": [1, 0, *inorder[2:]],
            "the present order": self.order,
        }
        return {name: self.gap(order) for name, order in orders.items()}

    def describe(self) -> str:
        """Say whether the pair's score survives the shift, and which orders the layer notices."""
        before, after, gaps = self.score, self.shifted_score, self.gaps
        if np.isneginf(before):
            said = "forbidden by the mask: the key stands after its query. "
        else:
            moves = "stays" if abs(after - before) < ROUNDING else f"becomes {fixed(after)}"
            said = f"{fixed(before)} and {moves} when both tokens move on by {self.shift}. "
        return (
            f"With {NAMES[self.positions]} the score at offset {fixed(self.offset, 0)} is {said}"
            f"The gap is {_gap(gaps['reversed'])} for the reversed order, "
            f"{_gap(gaps['rotated by one'])} for the rotated one."
        )

    def figure(self) -> Figure:
        """Draw encodings, the score against the offset, and the gaps with matplotlib."""
        gaps = self.gaps
        if self.order == sorted(self.order):
            del gaps["the present order"]
        return position_figure(
            self.encodings,
            offsets=np.arange(-REACH, REACH + 1),
            curves={
                f"query at {REACH}": self.curve(),
                f"query at {REACH + self.shift}": self.curve(self.shift),
            },
            gaps=gaps,
            title=NAMES[self.positions],
        )


def _gap(size: float) -> str:
    """Write a gap: 0 if only rounding is left of it."""
    return "0" if size < ROUNDING else fixed(size)
