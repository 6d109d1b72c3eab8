"""ContributionLab: the edges of a trained model, what they weigh, carry and change."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attn_lib.draws import uniforms
from attn_lib.interventions import (
    edge_effects,
    edge_norms,
    edge_weights,
    intervention,
    log_probability,
    spearman,
    spearman_ceiling,
)
from attn_lib.labs.base import Lab
from attn_lib.labs.contribution.figure import contributions_figure
from attn_lib.labs.traits import Choice, Flag, Refused, Whole, one_of, tuples
from attn_lib.model import Config, Params, param_shapes, transformer
from attn_lib.training import RECIPES
from attn_lib.words import fixed

STORED = Path(__file__).parent / "data.json"
MODELS = ("induction", "induction-two-heads")
SHORTEST, LONGEST = 4, 12
LARGE, SMALL = 0.9, 0.01  # a weight; nats
MEASURES = ("weight", "norm", "effect")


class ContributionLab(Lab):
    """Cut edges of a trained model: compare what they weigh, what they carry, what they change.

    Parameters
    ----------
    model : {"induction", "induction-two-heads"}
        A model of two layers of attention alone, with one head or two in each, that continues
        a sequence which repeats. Chosen here once: its parameters travel with the lab.
    period : int, default 6
        Different tokens before the sequence repeats, 4 … 12; n = 2 · period − 1.
    seed : int, default 0
        Which tokens, 0 … 9999.
    sort : {"weight", "norm", "effect"}
        By which of its three numbers the edges are shown and ranked.
    renormalise : bool, default False
        Whether the rest of a row grows to a sum of one when edges of it are cut.
    cut : list of [layer, head, query, key], optional
        The edges that are cut, all counted from 0 as everywhere in `attn_lib`; the lab's words
        count layers and heads from 1.
    zero : list of [layer, head], optional
        The heads that are silent, counted from 0 too.
    name : str, optional
        The lab's id in a page and its name in a link.
    title : str, optional

    Raises
    ------
    TypeError
        If a keyword is none of these.
    ValueError
        If there is no such model, edge or head, or a number is out of its range.

    Notes
    -----
    All is computed by `attn_lib.interventions`, from parameters in half precision. What an edge's
    cut costs is measured with all else as it is then: `cut` and `zero` stay. Tokens are shown as
    letters, those of the second copy with a prime.
    """

    settings = ("model", "period", "seed", "sort", "renormalise", "cut", "zero")
    all_controls = (
        *("seed", "period", "sort", "renormalise"),
        *("zero-0-0", "zero-0-1", "zero-1-0", "zero-1-1"),
    )
    all_panels = ("scatter", "maps", "edges", "spread")
    first_controls = ("seed",)
    first_panels = ("scatter",)
    asks = ("dearest",)

    model = traitlets.Unicode(read_only=True).tag(sync=True)
    period = Whole(6, SHORTEST, LONGEST)
    seed = Whole(0, 0, 9999)
    sort = Choice(MEASURES)
    renormalise = Flag(False)
    cut: traitlets.List[Any] = traitlets.List().tag(sync=True)
    zero: traitlets.List[Any] = traitlets.List().tag(sync=True)
    heads = traitlets.Int(read_only=True).tag(sync=True)
    shapes: traitlets.List[Any] = traitlets.List(read_only=True).tag(sync=True)
    parameters = traitlets.Unicode(read_only=True).tag(sync=True)
    title = traitlets.Unicode("What does an edge contribute?").tag(sync=True)

    def __init__(self, *, model: str = "induction", **state: Any) -> None:
        config = _config(one_of("model", model, MODELS))
        self.set_trait("model", model)
        self.set_trait("heads", config.heads)
        self.set_trait(
            "shapes", [[name, list(size)] for name, size in _head_shapes(config).items()]
        )
        self.set_trait("parameters", _stored()[model])
        super().__init__(**state)

    # The state, and what it allows --------------------------------------------------------------

    @traitlets.validate("cut")
    def _valid_cut(self, proposal) -> list:
        bounds = (len(self.tokens), len(self.tokens))
        edges = self._different("cut", proposal["value"], "[layer, head, query, key]", bounds)
        for edge in edges:
            if edge[3] > edge[2]:
                raise Refused(f"cut: a query may not look at a later key, got {edge}")
        return edges

    @traitlets.validate("zero")
    def _valid_zero(self, proposal) -> list:
        return self._different("zero", proposal["value"], "[layer, head]", ())

    def _different(self, name: str, given, form: str, more: tuple[int, ...]) -> list[list[int]]:
        """Check a list of tuples of whole numbers, each below its bound; keep one of equal ones."""
        return tuples(name, given, form, (_config(self.model).layers, self.heads, *more))

    @traitlets.observe("period")
    def _period_changed(self, change) -> None:
        """Keep the cuts that a shorter sequence still has."""
        self.cut = [edge for edge in self.cut if edge[2] < 2 * self.period - 1]

    # What it shows --------------------------------------------------------------------------------

    @property
    def config(self) -> Config:
        """The sizes of the model."""
        return _config(self.model)

    @property
    def params(self) -> Params:
        """The model's parameters, in double precision."""
        return _params(self.model)

    @property
    def tokens(self) -> np.ndarray:
        """The sequence that the model reads, (n,)."""
        once = _once(self.seed, self.period)
        return np.concatenate([once, once[:-1]])

    @property
    def target(self) -> int:
        """The right next token: the last of the first copy."""
        return int(_once(self.seed, self.period)[-1])

    @property
    def names(self) -> list[str]:
        """A letter for each token of the sequence, with a prime in the second copy."""
        return [
            chr(65 + i % self.period) + "′" * (i >= self.period) for i in range(len(self.tokens))
        ]

    @property
    def _state(self) -> tuple:
        edges, heads = (tuple(map(tuple, given)) for given in (self.cut, self.zero))
        return self.model, self.period, self.seed, self.renormalise, edges, heads

    @property
    def _measured(self) -> Measured:
        return _measure(*self._state)

    @property
    def weights(self) -> np.ndarray:
        """The weights in use, (layers, h, n, n): 0 where cut, nan where a query may not look."""
        return self._measured.weights.copy()

    @property
    def norms(self) -> np.ndarray:
        """The length of what each edge carries, ‖a_ij v_j W_O‖, (layers, h, n, n)."""
        return self._measured.norms.copy()

    @property
    def effects(self) -> np.ndarray:
        """What cutting each further edge would cost, in nats, (layers, h, n, n)."""
        return self._measured.effects.copy()

    @property
    def probabilities(self) -> np.ndarray:
        """The chances of every token to come next, (vocabulary,)."""
        return self._measured.probabilities.copy()

    @property
    def log_probability(self) -> float:
        """Log-probability of the right next token, in nats, with all cuts made."""
        return float(np.log(self._measured.probabilities[self.target]))

    @property
    def intact(self) -> float:
        """The same with nothing cut and no head silent."""
        return log_probability(self.params, self.tokens, self.config, target=self.target)

    @property
    def left(self) -> list[tuple[int, int, int, int]]:
        """Every edge that is neither cut nor of a silent head, in order."""
        gone, silent = set(map(tuple, self.cut)), set(map(tuple, self.zero))
        found: list[list[int]] = np.argwhere(np.isfinite(self._measured.weights)).tolist()
        edges = [(layer, head, query, key) for layer, head, query, key in found]
        return [edge for edge in edges if edge not in gone and edge[:2] not in silent]

    @property
    def ranking(self) -> list[tuple[int, int, int, int]]:
        """The same, the largest first by the chosen measure (of effects, their size)."""
        values = getattr(self._measured, f"{self.sort}s")
        return sorted(self.left, key=lambda edge: -abs(values[edge]).round(9))

    @property
    def correlation(self) -> dict[str, float]:
        """Spearman's rank correlation with the size of the effect, of weight and of norm."""
        return self._with_effects(spearman)

    @property
    def ceiling(self) -> dict[str, float]:
        """The largest correlation that these numbers could have, in any order: ties lower it."""
        return self._with_effects(spearman_ceiling)

    def _with_effects(self, measure: Callable[..., float]) -> dict[str, float]:
        """Compare weight and norm of the edges that are left with the size of their effects."""
        edges = tuple(np.array(self.left, int).reshape(-1, 4).T)
        sizes = np.abs(self._measured.effects[edges])
        return {
            name: measure(getattr(self._measured, f"{name}s")[edges], sizes, decimals=9)
            for name in ("weight", "norm")
        }

    def name_of(self, edge: Sequence[int]) -> str:
        """Say which edge it is: layer 1: F ← E."""
        layer, head, query, key = edge
        where = f"layer {layer + 1}" + (f", head {head + 1}" if self.heads > 1 else "")
        return f"{where}: {self.names[query]} ← {self.names[key]}"

    def describe(self) -> str:
        """Say how the right answer does, which edge matters most, how many large ones do not."""
        parts = [(self.cut, "edge", "cut"), (self.zero, "head", "silent")]
        done = " and ".join(f"{_count(len(x), noun)} {what}" for x, noun, what in parts if x)
        effects, edges = self._measured.effects, self.left
        first = max(edges, key=lambda edge: abs(effects[edge]).round(9), default=None)
        dear = "No edge that is left has any effect."
        if first is not None and abs(effects[first]).round(9) > 0:
            dear = (
                f"The edge that matters most is {self.name_of(first)}, weight "
                f"{fixed(self._measured.weights[first])}: its cut costs "
                f"{fixed(effects[first])} nats."
            )
        large = [edge for edge in edges if self._measured.weights[edge] > LARGE]
        idle = sum(abs(effects[edge]) < SMALL for edge in large)
        return (
            f"{f'With {done}, the' if done else 'The'} right answer {chr(64 + self.period)} has "
            f"probability {self.probabilities[self.target]:.3f} "
            f"(log p {fixed(self.log_probability)}). {dear} "
            f"Of {_count(len(large), 'edge')} with a weight over {LARGE}, {idle} change log p "
            f"by less than {SMALL}."
        )

    def figure(self) -> Figure:
        """Draw the edges of every head, the answer, and weight against effect, with matplotlib."""
        edges = self.left
        return contributions_figure(
            getattr(self, f"{self.sort}s"),
            {
                edge: [getattr(self._measured, f"{name}s")[edge] for name in MEASURES]
                for edge in edges
            },
            measure=self.sort,
            tokens=self.names,
            cut=self.cut,
            chances=self.probabilities[_once(self.seed, self.period)],
        )

    def data(self) -> dict:
        """Give the lab's state and the model's parameters, ready for JSON."""
        return {
            **super().data(),
            **{key: getattr(self, key) for key in ("heads", "shapes", "parameters")},
        }


# The models ---------------------------------------------------------------------------------------


def _config(model: str) -> Config:
    """Give a stored model's sizes; of its positions it keeps those that are shown."""
    return replace(RECIPES[model].config, context=2 * LONGEST - 1)


def _head_shapes(config: Config) -> dict[str, tuple[int, int]]:
    """Name the matrices that travel, head by head, with their shapes, in their order."""
    d, width = config.d, config.head_width
    shapes = {"E": (config.vocabulary, d), "P": (config.context, d)}
    for layer, head in np.ndindex(config.layers, config.heads):
        shapes |= {f"{layer}.{head}.{name}": (d, width) for name in ("W_Q", "W_K", "W_V")}
        shapes[f"{layer}.{head}.W_O"] = (width, d)
    return shapes | {"U": (d, config.vocabulary)}


def pack(model: str, params: Params) -> str:
    """Write a model's parameters as float16, head by head, one after the other, in base64."""
    config, parts = _config(model), []
    for name, shape in _head_shapes(config).items():
        layer, head, part = name.split(".") if "." in name else (None, 0, name)
        W, at = params[part if layer is None else f"{layer}.{part}"], int(head)
        own = slice(at * config.head_width, (at + 1) * config.head_width)
        parts.append(W[: shape[0]] if layer is None else W[own] if part == "W_O" else W[:, own])
    flat = np.concatenate([W.ravel() for W in parts]).astype("<f2")
    return base64.b64encode(flat.tobytes()).decode("ascii")


@cache
def _stored() -> dict[str, str]:
    return json.loads(STORED.read_text(encoding="ascii"))


@cache
def _params(model: str) -> Params:
    """Read what `pack` wrote, and set the heads side by side again."""
    config = _config(model)
    shapes = _head_shapes(config)
    flat = np.frombuffer(base64.b64decode(_stored()[model]), "<f2").astype(float)
    ends = np.cumsum([np.prod(size) for size in shapes.values()])
    parts = np.split(flat, ends[:-1])
    own = {name: W.reshape(shapes[name]) for name, W in zip(shapes, parts, strict=True)}
    joined = {}
    for name in param_shapes(config):
        layer, _, part = name.partition(".")
        heads = [own[f"{layer}.{head}.{part}"] for head in range(config.heads) if part]
        joined[name] = np.concatenate(heads, axis=0 if part == "W_O" else 1) if part else own[name]
    return joined


def _once(seed: int, period: int) -> np.ndarray:
    """Draw the tokens of one period: the first of the vocabulary in a random order."""
    return np.argsort(uniforms(seed, 0, 64), kind="stable")[:period]


class Measured(NamedTuple):
    """Everything about the edges in one state, and the chances of the next token."""

    weights: np.ndarray
    norms: np.ndarray
    effects: np.ndarray
    probabilities: np.ndarray


@lru_cache(maxsize=64)
def _measure(model, period, seed, renormalise, cut, zero) -> Measured:
    params, config, once = _params(model), _config(model), _once(seed, period)
    tokens = np.concatenate([once, once[:-1]])
    edit = intervention(cut, zero, renormalise=renormalise)
    result = transformer(params, tokens, config, edit=edit)
    options = {"target": once[-1], "renormalise": renormalise, "cut": cut, "zero": zero}
    effects = edge_effects(params, tokens, config, **options)
    gaps = np.exp(result.logits[-1] - result.logits[-1].max())
    return Measured(edge_weights(result), edge_norms(params, result), effects, gaps / gaps.sum())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
