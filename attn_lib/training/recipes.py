"""What fixes a run, its seed aside: sizes, task, optimiser, steps."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from attn_lib.backward import loss_and_gradients
from attn_lib.model import Config, init_params, transformer
from attn_lib.training.reader import ReaderConfig, init_reader, reader, reader_loss_and_gradients
from attn_lib.training.tasks import (
    Batch,
    copy_batch,
    induction_batch,
    lookup_batch,
    markov_batch,
    markov_chain,
    reverse_batch,
    sums_batch,
    translate_batch,
)


class Model(NamedTuple):
    """The three things the loop needs to know of a model.

    Attributes
    ----------
    init : callable
        ``init(config, seed, dtype)`` gives parameters.
    logits : callable
        ``logits(params, batch, config)``.
    loss_and_gradients : callable
        ``loss_and_gradients(params, batch, config)``.
    """

    init: Callable
    logits: Callable
    loss_and_gradients: Callable


TRANSFORMER = Model(
    init_params,
    lambda params, batch, config: transformer(params, batch.tokens, config).logits,
    lambda params, batch, config: loss_and_gradients(
        params, batch.tokens, batch.targets, config, counted=batch.counted
    ),
)
READER = Model(
    init_reader,
    lambda params, batch, config: reader(params, batch.tokens, batch.source)[0],
    lambda params, batch, config: reader_loss_and_gradients(params, batch),
)


@dataclass(frozen=True)
class Recipe:
    """Everything that fixes a run, but its seed.

    Attributes
    ----------
    name : str
        Its key in `RECIPES`, by which a saved run finds it again.
    draw : callable
        ``draw(rng)`` gives a `Batch`.
    config : Config or ReaderConfig
        The sizes of the model.
    steps : int
        How long to train by default.
    rate : float
        Adam's learning rate.
    warmup : int, default 0
        Over so many steps the rate rises in equal steps to its full size.
    model : Model
        By default the Transformer of `attn_lib.blocks`.
    dtype : dtype, default float32
        What to train in.
    """

    name: str
    draw: Callable[..., Batch]
    config: Any
    steps: int
    rate: float
    warmup: int = 0
    model: Model = TRANSFORMER
    dtype: type = np.float32


def _induction(
    name: str, *, layers: int = 2, heads: int = 1, shortest: int = 4, steps: int = 2500
) -> Recipe:
    """Give the induction task with periods up to 16, and a model of attention alone."""
    draw = partial(induction_batch, size=64, vocabulary=64, shortest=shortest, longest=16)
    config = Config(
        vocabulary=64, context=32, d=64, layers=layers, heads=heads, d_k=32 // heads, norm="none"
    )
    return Recipe(name, draw, config, steps, rate=2e-3, warmup=100)


def _leak(name: str, *, causal: bool, count_last: bool = False) -> Recipe:
    """Give the Markov source and a model with the causal mask or without it."""
    draw = partial(markov_batch, P=markov_chain(), size=64, length=16, count_last=count_last)
    config = Config(vocabulary=16, context=16, d=32, norm="none", causal=causal)
    return Recipe(name, draw, config, steps=1500, rate=3e-3)


def _recipes() -> dict[str, Recipe]:
    sequence = partial(Config, context=12, d=32, norm="none", causal=False)
    sizes: dict[str, Any] = {"size": 64, "length": 12, "vocabulary": 26}
    recipes = [
        Recipe("copy", partial(copy_batch, **sizes), sequence(26), 100, 3e-3),
        Recipe("reversal", partial(reverse_batch, **sizes), sequence(26), 100, 3e-3),
        Recipe(
            "translation",
            partial(translate_batch, **sizes),
            ReaderConfig(asks=39, holds=39, vocabulary=26),
            150,
            3e-3,
            model=READER,
        ),
        Recipe(
            "lookup",
            partial(lookup_batch, size=64, pairs=6, keys=16, values=16),
            ReaderConfig(asks=16, holds=32, vocabulary=16),
            150,
            3e-3,
            model=READER,
        ),
        _induction("induction"),
        _induction("induction-two-heads", heads=2),
        _induction("induction-one-layer", layers=1),
        _induction("fixed-period", layers=1, shortest=16, steps=500),
        Recipe(
            "sums",
            partial(sums_batch, size=32, length=12),
            Config(vocabulary=10, context=12, d=32, heads=2, d_ff=128),
            400,
            1e-2,
            warmup=20,
        ),
        _leak("honest", causal=True),
        _leak("leak", causal=False),
        _leak("leak-last-counted", causal=False, count_last=True),
    ]
    return {recipe.name: recipe for recipe in recipes}


RECIPES = _recipes()
