"""AttentionLab: tokens, scores, weights, outputs, and the chosen query's sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attn_lib import AttentionResult, attention, causal_mask
from attn_lib.examples import RANDOM_NOTE, SCENES, Scene, random_scene
from attn_lib.figures import attention_figure
from attn_lib.labs.base import Lab, OrdersTokens, ShowsAttention
from attn_lib.labs.traits import Choice, Flag, Real, Refused, Whole, between, one_of

MASKS = ("none", "causal")
COLDEST, HOTTEST = 0.01, 100.0
SEEDS = 9999
RANDOM: dict[str, Any] = {
    "name": "random",
    "label": "random vectors",
    "d": 64,
    "d_k": 64,
    "d_v": 4,
    "query": 0,
}


class AttentionLab(OrdersTokens, ShowsAttention, Lab):
    """One query against every key: move tokens, widths and temperature, and watch the weights.

    Parameters
    ----------
    scene : str, default: the first of `scenes`
        Which scene is shown: ``"chef"``, ``"river"``, ``"account"`` or ``"random"``, unless
        `scenes` brings others.
    query : int
        The chosen token, by its place in the scene's own sentence.
    key : int or None, default None
        The token whose key is looked at beside the query; None is the one that is read most.
    order : sequence of int
        Which token stands at each place; a permutation of 0 … n−1.
    d_k : int
        Key width, 1 … 64, in the random scene; elsewhere fixed by the scene.
    scale : bool, default True
        Divide the scores by √d_k?
    temperature : float, default 1.0
        Divides the scores inside the softmax; 0.01 … 100.
    mask : {"none", "causal"}
    seed : int
        Which random draw, 0 … 9999.
    n : int or None, default 8
        How many tokens the random scene has, 2 … 64. None leaves that scene out.
    scenes : sequence of Scene, optional
        The scenes to offer, in place of the book's. The random one follows them.
    name : str, optional
        The lab's id in a page and its name in a link.
    title : str, optional

    Raises
    ------
    TypeError
        If a keyword is none of these.
    ValueError
        If a scene is unknown or two have one name, an order is no permutation, or a number is
        out of its range.

    Notes
    -----
    `scores`, `weights` and `output` are computed by `attn_lib.dot_product` from the present state,
    so you can go on in Python from what the sliders say.
    """

    settings = ("scene", "query", "key", "order", "d_k", "scale", "temperature", "mask", "seed")
    all_controls = ("scene", "query", "d_k", "temperature", "scale", "mask", "seed", "moves")
    all_panels = ("arcs", "pair", "matrices", "sum", "spread")
    first_controls = ("temperature",)
    first_panels = ("arcs", "matrices")
    asks = ("most", "back", "reverse", "cold", "causal")

    scene = traitlets.Unicode().tag(sync=True)
    query = Whole(0)
    key = Whole(None, allow_none=True)
    order = traitlets.List(traitlets.Int()).tag(sync=True)
    d_k = Whole(0)
    scale = Flag(True)
    temperature = Real(1.0, COLDEST, HOTTEST)
    mask = Choice(MASKS)
    seed = Whole(0, 0, SEEDS)
    scenes: traitlets.List[Any] = traitlets.List(read_only=True).tag(sync=True)
    title = traitlets.Unicode("One query against every key").tag(sync=True)

    def __init__(
        self,
        *,
        scenes: Sequence[Scene] | None = None,
        n: int | None = 8,
        scene: str | None = None,
        **state: Any,
    ) -> None:
        drawn = []
        if n is not None:
            between("n, the number of tokens of the random scene,", n, 2, 64)
            drawn = [{**RANDOM, "n": n, "note": RANDOM_NOTE}]
        given = list(SCENES.values()) if scenes is None else list(scenes)
        if not given and not drawn:
            raise Refused("scenes must hold a scene if n is None: there is nothing to show")
        names = [each.name for each in given] + [RANDOM["name"]]
        for name in names:
            if names.count(name) > 1:
                raise Refused(f"two scenes have the name {name!r}: each needs its own")
        self._drawn = {each.name: each for each in given}
        self._n = n or 0
        self.set_trait("scenes", [*map(_as_json, given), *drawn])
        scene = self.scenes[0]["name"] if scene is None else self._known(scene)
        super().__init__(**{"scene": scene, **self._defaults(scene), **state})

    # The scene, and what it sets ------------------------------------------------------

    def _known(self, name: str) -> str:
        return one_of("scene", name, [scene["name"] for scene in self.scenes])

    def _scene(self) -> Scene:
        """Give the present scene, at its full key width."""
        return self._drawn.get(self.scene) or random_scene(self._n, seed=self.seed)

    def _defaults(self, name: str) -> dict:
        """Give the query, order and key width that a scene begins with."""
        scene = self._drawn.get(name)
        n = len(scene.tokens) if scene else self._n
        width = scene.W_Q.shape[1] if scene else 16
        return {"query": scene.query if scene else 0, "order": list(range(n)), "d_k": width}

    @traitlets.validate("scene")
    def _valid_scene(self, proposal) -> str:
        return self._known(proposal["value"])

    @traitlets.observe("scene")
    def _scene_changed(self, change) -> None:
        """Keep what fits the new scene; take the rest from it."""
        fresh = self._defaults(self.scene)
        n = len(fresh["order"])
        with self.hold_trait_notifications():
            if sorted(self.order) != list(range(n)):
                self.order = fresh["order"]
                self.query = fresh["query"]
            if self.key is not None and self.key >= n:
                self.key = None
            if self.scene != "random" or not 1 <= self.d_k <= RANDOM["d_k"]:
                self.d_k = fresh["d_k"]

    # Each trait's own rule --------------------------------------------------------------

    @traitlets.validate("order")
    def _valid_order(self, proposal) -> list[int]:
        n = len(self._defaults(self.scene)["order"])
        if sorted(proposal["value"]) != list(range(n)):
            raise Refused(
                f"order must hold each of 0 to {n - 1} once (scene {self.scene!r} has {n} tokens), "
                f"got {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.validate("query")
    def _valid_query(self, proposal) -> int:
        n = len(self._defaults(self.scene)["order"])
        return between("query", proposal["value"], 0, n - 1)

    @traitlets.validate("key")
    def _valid_key(self, proposal) -> int | None:
        n = len(self._defaults(self.scene)["order"])
        key = proposal["value"]
        return None if key is None else between("key", key, 0, n - 1)

    @traitlets.validate("d_k")
    def _valid_d_k(self, proposal) -> int:
        fixed = self._defaults(self.scene)["d_k"]
        if self.scene == "random":
            return between("d_k", proposal["value"], 1, RANDOM["d_k"])
        if proposal["value"] != fixed:
            raise Refused(
                f"scene {self.scene!r} has keys of width {fixed}, which is part of it: d_k "
                f"can change in scene 'random' only, got {proposal['value']}"
            )
        return fixed

    # What the lab shows, in the present order of the tokens ----------------------------------

    @property
    def Q(self) -> np.ndarray:
        """The queries, (n, d_k)."""
        return self.X @ self._scene().W_Q[:, : self.d_k]

    @property
    def K(self) -> np.ndarray:
        """The keys, (n, d_k)."""
        return self.X @ self._scene().W_K[:, : self.d_k]

    @property
    def V(self) -> np.ndarray:
        """The values, (n, d_v)."""
        return self.X @ self._scene().W_V

    @property
    def result(self) -> AttentionResult:
        """Scores, weights and output together, from `attn_lib.dot_product`."""
        mask = causal_mask(len(self.order)) if self.mask == "causal" else None
        scale = None if self.scale else 1.0
        return attention(
            self.Q, self.K, self.V, mask=mask, scale=scale, temperature=self.temperature
        )

    def describe(self) -> str:
        """Say what the chosen query reads most."""
        tokens, a = self.tokens, self.weights[self.query_row]
        first, *others = np.argsort(-a, kind="stable")
        then = "".join(f", then {tokens[j]} ({a[j]:.2f})" for j in others[:1] if a[j] >= 0.005)
        return f"{tokens[self.query_row]} reads {tokens[first]} most (weight {a[first]:.2f}){then}."

    def figure(self) -> Figure:
        """Draw tokens, scores, weights, outputs and the chosen query's weights with matplotlib."""
        return attention_figure(
            self.result, tokens=self.tokens, query=self.query_row, outputs=self._scene().outputs
        )

    def data(self) -> dict:
        """Give the lab's state and its scenes, ready for JSON."""
        return {**super().data(), "scenes": self.scenes}


def _as_json(scene: Scene) -> dict:
    """Give the parts of a scene that the front end needs."""
    arrays = {key: getattr(scene, key).tolist() for key in ("X", "W_Q", "W_K", "W_V")}
    words = {key: list(getattr(scene, key)) for key in ("tokens", "outputs", "keys")}
    return {
        "name": scene.name,
        "label": scene.label,
        "query": scene.query,
        "note": scene.note,
        **words,
        **arrays,
    }
