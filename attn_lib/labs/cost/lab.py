"""CostLab: what attention costs as the context grows, five ways to compute it."""

from __future__ import annotations

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attn_lib.cost import attention_cost, cache_size, layer_cost
from attn_lib.labs.base import Lab
from attn_lib.labs.cost.figure import cost_figure
from attn_lib.labs.numbers import byte_size, scientific
from attn_lib.labs.traits import Choice, Refused, Whole

VARIANTS = ("full", "cached", "tiled", "windowed", "linear")
BYTES = 2  # of a 16-bit number
LONG = 128 * 1024  # the context that the bars show
LONGEST = 2**20


class CostLab(Lab):
    """What attention costs as the context grows, five ways to compute it.

    Parameters
    ----------
    n : int, default 4096
        Tokens, 1 … 2²⁰.
    d : int, default 512
        Width of the model, 1 … 16384.
    h : int, default 8
        Heads, 1 … 128, that share the width evenly.
    window : int, default 256
        Keys that a query sees in the windowed variant, its own included.
    variant : {"full", "cached", "tiled", "windowed", "linear"}
        ``"full"``: all pairs at once. ``"cached"``: token after token, each reading the keys and
        values kept from before. The others are `tiled_attention`, `windowed_attention` and
        `linear_attention`.
    name : str, optional
        The lab's id in a page and its name in a link.
    title : str, optional

    Raises
    ------
    TypeError
        If a keyword is none of these.
    ValueError
        If the heads cannot share the width evenly, a number is out of its range or the variant
        is unknown.

    Notes
    -----
    Counted by `attn_lib.cost` for one layer: multiply-adds of scores and mixing; memory held beside
    queries, keys, values and outputs, all heads at once, at 2 bytes a number. For cached decoding
    the memory is the cache and one row of weights.
    """

    settings = ("n", "d", "h", "window", "variant")
    all_controls = settings
    all_panels = ("operations", "memory", "formulas", "long")
    first_controls = ("n", "variant")
    first_panels = ("operations",)
    asks = ("crossing", "linear")

    n = Whole(4096, 1, LONGEST)
    d = Whole(512, 1, 16384)
    h = Whole(8, 1, 128)
    window = Whole(256, 1, LONGEST)
    variant = Choice(VARIANTS)
    title = traitlets.Unicode("What attention costs as the context grows").tag(sync=True)

    @traitlets.validate("d", "h")
    def _shared_evenly(self, proposal) -> int:
        sizes = {"d": self.d, "h": self.h, proposal["trait"].name: proposal["value"]}
        if sizes["d"] % sizes["h"]:
            raise Refused(
                f"the heads share the width evenly: d must be a multiple of h, "
                f"got d = {sizes['d']} and h = {sizes['h']}"
            )
        return proposal["value"]

    # What is counted --------------------------------------------------------------------

    def spent(self, variant: str, n: int) -> tuple[int, int]:
        """Count what one variant spends on n tokens.

        Parameters
        ----------
        variant : str
        n : int

        Returns
        -------
        operations : int
            Multiply-adds of scores and mixing.
        memory : int
            Bytes.
        """
        if variant == "cached":  # token t reads t keys and mixes t values: 2d (1 + … + n)
            return n * (n + 1) * self.d, BYTES * (cache_size(n, self.d) + self.h * n)
        kind = "plain" if variant == "full" else variant
        window = self.window if variant == "windowed" else None
        head = attention_cost(n, d_k=self.d // self.h, kind=kind, window=window)
        return self.h * head.multiply_adds, BYTES * self.h * head.memory

    @property
    def operations(self) -> int:
        """Multiply-adds of scores and mixing."""
        return self.spent(self.variant, self.n)[0]

    @property
    def memory(self) -> int:
        """Bytes held beside queries, keys, values and outputs."""
        return self.spent(self.variant, self.n)[1]

    @property
    def layer(self) -> dict[str, int]:
        """The layer's other multiply-adds: ``projections`` and ``feed_forward``."""
        counts = layer_cost(self.n, self.d)
        return {name: counts[name] for name in ("projections", "feed_forward")}

    @property
    def share(self) -> float:
        """Share of scores and mixing in the operations of the whole layer."""
        return self.operations / (self.operations + sum(self.layer.values()))

    @property
    def crossings(self) -> dict[str, float]:
        """Where curves cross: a name, and the n at which they do.

        Full attention passes the projections at 2d, and projections and feed-forward part
        together at 6d; cached decoding does half its work. Windowed attention leaves the
        full one at w, linear attention falls below it at d/h + ½.
        """
        if self.variant == "cached":
            return {"n = 4d − 1": 4 * self.d - 1, "n = 12d − 1": 12 * self.d - 1}
        own = {
            "windowed": {"n = w": self.window},
            "linear": {"n = d/h + ½": self.d / self.h + 0.5},
        }
        return {"n = 2d": 2 * self.d, "n = 6d": 6 * self.d} | own.get(self.variant, {})

    @property
    def lengths(self) -> np.ndarray:
        """The context lengths at which the curves are computed, the present one among them."""
        return np.array(sorted({*(2**k for k in range(4, 21)), self.n}))

    @property
    def curves(self) -> dict[str, np.ndarray]:
        """For each variant an array (2, k): operations and bytes at all `lengths`."""
        return {
            variant: np.array([self.spent(variant, int(n)) for n in self.lengths], float).T
            for variant in VARIANTS
        }

    @property
    def at_128k(self) -> dict[str, tuple[int, int]]:
        """Operations and bytes of each variant at a context of 131 072 tokens."""
        return {variant: self.spent(variant, LONG) for variant in VARIANTS}

    # How it is shown ----------------------------------------------------------------------

    def describe(self) -> str:
        """Say what the present variant spends, and its share in the layer."""
        _, full = self.spent("full", LONG)
        operations, memory = self.spent(self.variant, LONG)
        against = (
            ""
            if self.variant == "full"
            else f", where full attention holds {byte_size(full)} of weights"
        )
        return (
            f"{_NAMES[self.variant]}: at n = {self.n}, d = {self.d}, h = {self.h} it takes "
            f"{scientific(self.operations)} multiply-adds, {100 * self.share:.0f} % of the layer, "
            f"and holds {byte_size(self.memory)}. At a context of 128k, "
            f"{scientific(operations)} and {byte_size(memory)}{against}."
        )

    def figure(self) -> Figure:
        """Draw operations and memory over the context length with matplotlib."""
        marks = {name: (n, 2 * n * n * self.d) for name, n in self.crossings.items()}
        if self.variant == "cached":
            marks = {name: (n, n * (n + 1) * self.d) for name, n in self.crossings.items()}
        if self.variant == "windowed":
            marks["n = w"] = (self.window, self.spent("windowed", self.window)[0])
        n = self.lengths.astype(float)
        others = {
            "projections": 4 * n * self.d**2,
            "with feed-forward": 12 * n * self.d**2,
        }
        inputs = {"Q, K, V, O": 4 * n * self.d * BYTES}
        return cost_figure(
            self.lengths, self.curves, self.variant, others, inputs, at=self.n, crossings=marks
        )


_NAMES = {
    "full": "Full attention",
    "cached": "Cached decoding",
    "tiled": "Tiled attention",
    "windowed": "Windowed attention",
    "linear": "Linear attention",
}
