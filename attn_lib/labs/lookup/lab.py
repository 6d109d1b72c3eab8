"""LookupLab: a query among keys in the plane, and the mixture of values it reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attn_lib.dot_product import attention_scores, attention_weights
from attn_lib.examples import COLOURS, Dictionary
from attn_lib.labs.base import Lab
from attn_lib.labs.lookup.figure import lookup_figure
from attn_lib.labs.traits import Choice, Flag, Real, Refused, between
from attn_lib.lookup import exact_scores, gaussian_scores, hard_weights, with_length

LOOKUPS = ("exact", "hard", "soft")
KERNELS = ("gaussian", "dot")
KERNEL_NAMES = {"gaussian": "Gaussian kernel", "dot": "dot product"}
REACH = 2.0
COLDEST, HOTTEST = 0.01, 100.0
ONE_LENGTH = 1.4
FOUND = 0.0075  # the query moves in hundredths: nearer than that, it stands on the key


class LookupLab(Lab):
    """Ask a dictionary in the plane: exactly, for the best key alone, or for all keys at once.

    Parameters
    ----------
    key_points, value_points : sequence of float, optional
        2m coordinates, x and y of each entry in turn: keys from −2 to 2, values from −1 to 1.
        Empty: those of `entries`.
    query_x, query_y : float
        The query, coordinates from −2 to 2.
    lookup : {"soft", "hard", "exact"}
        ``"exact"`` finds a key only if the query stands on it. ``"hard"`` gives all the weight
        to the key with the best score. ``"soft"`` shares it by the softmax of the scores.
    kernel : {"gaussian", "dot"}
        The score of a key: ``−‖q − k‖²/2``, which is best for the nearest key, or ``q·k``,
        which is best for the longest projection.
    temperature : float, default 0.3
        Divides the scores of a soft lookup; 0.01 … 100. For the Gaussian kernel it is σ².
    one_length : bool, default False
        Stretch every key to the same length? Then both kernels agree.
    entries : Dictionary, optional
        Names, keys and values to look up, in place of the book's colours.
    name : str, optional
        The lab's id in a page and its name in a link.
    title : str, optional

    Raises
    ------
    TypeError
        If a keyword is none of these.
    ValueError
        If a choice is unknown or a number is out of its range.

    Notes
    -----
    `scores`, `weights` and `output` are computed by `attn_lib` from the present state, so you can
    go on in Python from what the sliders say.
    """

    settings = (
        "key_points",
        "value_points",
        "query_x",
        "query_y",
        "lookup",
        "kernel",
        "temperature",
        "one_length",
    )
    all_controls = settings[2:]
    all_panels = ("planes", "sum", "spread")
    first_controls = ("temperature",)
    first_panels = ("planes",)
    asks = ("cold",)

    key_points = traitlets.List(traitlets.Float()).tag(sync=True)
    value_points = traitlets.List(traitlets.Float()).tag(sync=True)

    query_x = Real(0.9, -REACH, REACH)
    query_y = Real(0.6, -REACH, REACH)
    lookup = Choice(LOOKUPS, "soft")
    kernel = Choice(KERNELS)
    temperature = Real(0.3, COLDEST, HOTTEST)
    one_length = Flag()
    entries = traitlets.Dict(read_only=True).tag(sync=True)
    title = traitlets.Unicode("A lookup that reads every entry").tag(sync=True)

    def __init__(self, *, entries: Dictionary = COLOURS, **state: Any) -> None:
        self._entries = entries
        self.set_trait("entries", _as_json(entries))
        super().__init__(**state)

    # What the lab shows --------------------

    @property
    def names(self) -> list[str]:
        """The names of the m entries."""
        return list(self._entries.names)

    @property
    def q(self) -> np.ndarray:
        """The query, (2,)."""
        return np.array([self.query_x, self.query_y])

    @property
    def K(self) -> np.ndarray:
        """The keys, (m, 2)."""
        K = np.reshape(self.key_points, (-1, 2)) if self.key_points else self._entries.K
        return with_length(K, ONE_LENGTH) if self.one_length else K

    @property
    def V(self) -> np.ndarray:
        """The values, (m, 2)."""
        return np.reshape(self.value_points, (-1, 2)) if self.value_points else self._entries.V

    @traitlets.validate("key_points", "value_points")
    def _valid_points(self, proposal) -> list[float]:
        name, given = proposal["trait"].name, proposal["value"]
        if given and len(given) != 2 * len(self.names):
            raise Refused(f"{name} must hold {2 * len(self.names)} numbers, got {len(given)}")
        reach = REACH if name == "key_points" else 1.0
        for number in given:
            between(f"{name}: each number", number, -reach, reach)
        return given

    @property
    def scores(self) -> np.ndarray:
        """The score of each key, (m,); −∞ where an exact lookup does not find it."""
        if self.lookup == "exact":
            return exact_scores(self.q[None], self.K, tolerance=FOUND)[0]
        if self.kernel == "gaussian":
            return gaussian_scores(self.q[None], self.K)[0]
        return attention_scores(self.q[None], self.K, scale=1.0)[0]

    @property
    def weights(self) -> np.ndarray:
        """The weight of each value, (m,): they sum to one, or are all 0 if nothing is found."""
        if self.lookup == "hard":
            return hard_weights(self.scores)
        temperature = self.temperature if self.lookup == "soft" else 1.0
        return attention_weights(self.scores, temperature=temperature)

    @property
    def output(self) -> np.ndarray:
        """What is read, (2,): the sum of the values under their weights."""
        return self.weights @ self.V

    @property
    def nearest(self) -> str:
        """The key nearest to the query."""
        return self.names[gaussian_scores(self.q[None], self.K)[0].argmax()]

    @property
    def longest(self) -> str:
        """The key with the longest projection onto the query."""
        return self.names[(self.K @ self.q).argmax()]

    def describe(self) -> str:
        """Say what the query reads."""
        a, names = self.weights, self.names
        if not a.any():
            return "The query stands on no key, so a dictionary finds nothing."
        first, second = np.argsort(-a, kind="stable")[:2]
        if self.lookup == "exact":
            return f"The query stands on {names[first]}, and a dictionary gives its value."
        best = "nearest key" if self.kernel == "gaussian" else "longest projection"
        if self.lookup == "hard":
            return f"The {best} is {names[first]}; a hard lookup reads it alone."
        then = f", then {names[second]} ({a[second]:.2f})" if a[second] >= 0.005 else ""
        agree = "are the same" if self.nearest == self.longest else "differ"
        return (
            f"By the {KERNEL_NAMES[self.kernel]} the query reads {names[first]} most "
            f"(weight {a[first]:.2f}){then}. Nearest key and longest projection {agree}."
        )

    def figure(self) -> Figure:
        """Draw both planes with matplotlib: keys and query, values and output."""
        return lookup_figure(
            self.q,
            self.K,
            self.V,
            self.weights,
            names=self.names,
            outputs=self._entries.outputs,
            guide=None if self.lookup == "exact" else self.kernel,
        )

    def data(self) -> dict:
        """Give the lab's state and its entries, ready for JSON."""
        return {**super().data(), "entries": self.entries}


def _as_json(entries: Dictionary) -> dict:
    """Give the entries as the front end takes them."""
    return {
        "names": list(entries.names),
        "K": np.asarray(entries.K).tolist(),
        "V": np.asarray(entries.V).tolist(),
        "outputs": list(entries.outputs),
    }
