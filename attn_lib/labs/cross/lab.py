"""CrossLab: one sequence reads another, ribbon by ribbon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attn_lib import AttentionResult, attention
from attn_lib.arrays import Array
from attn_lib.figures import attention_figure
from attn_lib.labs.base import Lab, ShowsAttention
from attn_lib.labs.traits import Flag, Real, Refused, Whole, between

COLDEST, HOTTEST = 0.01, 100.0
MOST = 12  # tokens of a side

# Three pots, and three who ask.
POTS, QUESTIONS = ("soup", "bread", "tea"), ("tea?", "soup?", "soup or bread?")
KITCHEN_Q = 4.0 * np.array([[0, 0, 1], [1, 0, 0], [1, 1, 0]])
KITCHEN_K = np.eye(3)
KITCHEN_V = np.array([[80.0], [20.0], [60.0]])


class CrossLab(ShowsAttention, Lab):
    """Read one sequence from another: move the source's tokens, and nothing that is read changes.

    Parameters
    ----------
    query : int, default 0
        The reader's token whose ribbons stand out.
    order : sequence of int
        Which of the source's tokens stands at each place; a permutation of 0 … m−1.
    temperature : float, default 1.0
        Divides the scores inside the softmax; 0.01 … 100.
    alone : bool, default False
        Show the chosen token's ribbons only.
    reader, source : sequence of str, optional
        The n tokens that ask and the m that are read, at most 12 each; by default the kitchen's.
    Q, K, V : array_like, optional
        Queries (n, d_k), keys (m, d_k) and values (m, d_v).
    outputs : sequence of str, optional
        Names of the d_v coordinates of a value.
    name : str, optional
        The lab's id in a page and its name in a link.
    title : str, optional

    Raises
    ------
    TypeError
        If a keyword is none of these.
    ValueError
        If sizes do not agree, an order is no permutation, or a number is out of its range.
    """

    settings = ("query", "order", "temperature", "alone")
    all_controls = ("query", "temperature", "alone", "moves")
    all_panels = ("ribbons", "matrices")
    first_controls = ("temperature",)
    first_panels = ("ribbons",)
    asks = ("most", "moved")

    query = Whole(0)
    order = traitlets.List(traitlets.Int()).tag(sync=True)
    temperature = Real(1.0, COLDEST, HOTTEST)
    alone = Flag(False)
    texts = traitlets.Dict(read_only=True).tag(sync=True)
    title = traitlets.Unicode("One text reads another").tag(sync=True)

    def __init__(
        self,
        *,
        reader: Sequence[str] = QUESTIONS,
        source: Sequence[str] = POTS,
        Q: Array = KITCHEN_Q,
        K: Array = KITCHEN_K,
        V: Array = KITCHEN_V,
        outputs: Sequence[str] = ("°C",),
        **state: Any,
    ) -> None:
        self._Q, self._K, self._V = (np.asarray(each, float) for each in (Q, K, V))
        n, m = len(reader), len(source)
        needed = {
            "Q": (self._Q, n, "reader's tokens"),
            "K": (self._K, m, "source's tokens"),
            "V": (self._V, m, "source's tokens"),
        }
        for name, (array, count, what) in needed.items():
            if array.ndim != 2 or len(array) != count or not np.isfinite(array).all():
                raise Refused(
                    f"{name} must hold a finite row for each of the {count} {what}, "
                    f"got shape {array.shape}"
                )
        if self._Q.shape[1] != self._K.shape[1]:
            raise Refused(f"Q and K must be of one width, got {self._Q.shape} and {self._K.shape}")
        if self._V.shape[1] != len(outputs):
            raise Refused(f"outputs must name {self._V.shape[1]} columns of V, got {len(outputs)}")
        for name, count in (("reader", n), ("source", m)):
            between(f"the number of tokens of {name}", count, 1, MOST)
        texts = {"reader": list(reader), "source": list(source), "outputs": list(outputs)}
        arrays = {"Q": self._Q.tolist(), "K": self._K.tolist(), "V": self._V.tolist()}
        self.set_trait("texts", texts | arrays)
        super().__init__(**{"order": list(range(m)), **state})

    @traitlets.validate("query")
    def _valid_query(self, proposal) -> int:
        return between("query", proposal["value"], 0, len(self._Q) - 1)

    @traitlets.validate("order")
    def _valid_order(self, proposal) -> list[int]:
        m = len(self._K)
        if sorted(proposal["value"]) != list(range(m)):
            raise Refused(f"order must hold each of 0 to {m - 1} once, got {proposal['value']}")
        return proposal["value"]

    @property
    def reader(self) -> list[str]:
        """The n tokens that ask."""
        return self.texts["reader"]

    @property
    def source(self) -> list[str]:
        """The m tokens that are read, in their present order."""
        return [self.texts["source"][j] for j in self.order]

    @property
    def result(self) -> AttentionResult:
        """Scores, weights and output together, from `attn_lib.dot_product`."""
        K, V = self._K[self.order], self._V[self.order]
        return attention(self._Q, K, V, temperature=self.temperature)

    def describe(self) -> str:
        """Say what the chosen query reads most, and what it gets."""
        a, o = self.weights[self.query], self.output[self.query]
        best = int(a.argmax())
        got = ", ".join(
            f"{number:.2f} {name}" for number, name in zip(o, self.texts["outputs"], strict=True)
        )
        return (
            f"{self.reader[self.query]} reads {self.source[best]} most (weight {a[best]:.2f}) "
            f"and gets {got.replace('-', '−')}."
        )

    def figure(self) -> Figure:
        """Draw scores, weights and outputs with matplotlib."""
        return attention_figure(
            self.result,
            tokens=self.reader,
            keys=self.source,
            query=self.query,
            outputs=self.texts["outputs"],
        )

    def data(self) -> dict:
        """Give the lab's state and both texts, ready for JSON."""
        return {**super().data(), "texts": self.texts}
