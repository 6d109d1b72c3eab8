"""The tiny Transformer: its sizes, its parameters, its forward pass, and how it writes.

Parameters are one plain dict of arrays. Those of layer 1 have names such as ``"1.W_Q"``; within a
layer they are called as in `attn_lib.blocks`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from attn_lib.arrays import Array, takes
from attn_lib.blocks import BlockResult, block, layer_norm
from attn_lib.dot_product import softmax
from attn_lib.masks import causal_mask
from attn_lib.rules import a_sampling_temperature, as_whole, check_tokens, tokens_of, whole

Params = dict[str, np.ndarray]


@dataclass(frozen=True)
class Config:
    """The sizes that fix a model.

    Attributes
    ----------
    vocabulary : int
        Number of different tokens.
    context : int
        Longest sequence: rows of the position table.
    d : int
        Width of the residual stream.
    layers, heads : int
        Blocks, and heads in each.
    d_k : int, optional
        Width of queries, keys and values within a head, by default d / heads.
    d_ff : int, default 0
        Hidden width of the feed-forward part; 0 leaves that part out.
    norm : {"pre", "post", "none"}, default "pre"
        See `block`. A pre-norm model has one more norm at its end.
    causal : bool, default True
        Whether a token may look at itself and its past only.
    residual : bool, default True
        Whether parts add to the stream; see `block`.
    """

    vocabulary: int
    context: int
    d: int
    layers: int = 1
    heads: int = 1
    d_k: int | None = None
    d_ff: int = 0
    norm: str = "pre"
    causal: bool = True
    residual: bool = True

    def __post_init__(self) -> None:
        for name in ("vocabulary", "context", "d", "heads"):
            as_whole(name, getattr(self, name), 1)
        for name in ("layers", "d_ff"):
            as_whole(name, getattr(self, name), 0)
        if self.d_k is not None:
            as_whole("d_k", self.d_k, 1)
        if self.norm not in ("pre", "post", "none"):
            raise ValueError(f'norm must be "pre", "post" or "none", got {self.norm!r}')
        if self.d_k is None and self.d % self.heads:
            raise ValueError(
                f"a width d = {self.d} does not divide into heads = {self.heads}: give d_k"
            )

    @property
    def head_width(self) -> int:
        """d_k, whether given or not."""
        return self.d // self.heads if self.d_k is None else self.d_k


def init_params(config: Config, seed: int = 0, dtype: type = np.float32) -> dict[str, np.ndarray]:
    """Draw the parameters a model starts from.

    Parameters
    ----------
    config : Config
        The sizes.
    seed : int, default 0
        The same seed gives the same model.
    dtype : dtype, default float32
        What to train in.

    Returns
    -------
    dict of ndarray
        Embeddings ``E`` and positions ``P`` of variance 1, matrices of variance 1/(rows),
        gains 1, biases 0, and ``U``, which turns the last stream into logits.
    """
    rng = np.random.default_rng(seed)
    params: Params = {}
    for name, shape in param_shapes(config).items():
        part = name.split(".")[-1]
        if part.startswith(("gain", "bias", "b_")):
            params[name] = np.full(shape, float(part.startswith("gain")), dtype)
        else:
            fan_in = 1 if part in "EP" else shape[0]
            params[name] = (rng.normal(size=shape) / math.sqrt(fan_in)).astype(dtype)
    return params


def param_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Name every parameter of a model, with its shape, in the order data pass them.

    Parameters
    ----------
    config : Config
        The sizes.

    Returns
    -------
    dict of tuple
        ``{"E": (vocabulary, d), "P": (context, d), "0.W_Q": (d, h · d_k), …, "U": …}``.
    """
    d, width, d_ff = config.d, config.heads * config.head_width, config.d_ff
    layer: dict[str, tuple[int, ...]]
    layer = {"W_Q": (d, width), "W_K": (d, width), "W_V": (d, width), "W_O": (width, d)}
    if d_ff:
        layer |= {"W_1": (d, d_ff), "b_1": (d_ff,), "W_2": (d_ff, d), "b_2": (d,)}
    if config.norm != "none":
        norms = (1, 2) if d_ff else (1,)
        layer |= {f"{part}_{i}": (d,) for i in norms for part in ("gain", "bias")}
    shapes: dict[str, tuple[int, ...]]
    shapes = {"E": (config.vocabulary, d), "P": (config.context, d)}
    for number in range(config.layers):
        shapes |= {f"{number}.{name}": shape for name, shape in layer.items()}
    if config.norm == "pre":
        shapes |= {"gain": (d,), "bias": (d,)}
    return shapes | {"U": (d, config.vocabulary)}


def layer_params(params: dict[str, np.ndarray], number: int) -> dict[str, np.ndarray]:
    """Pick the parameters of one layer: ``"1.W_Q"`` becomes ``"W_Q"``.

    Parameters
    ----------
    params : dict of ndarray
        As `init_params` makes them.
    number : int
        The layer, counted from 0.

    Returns
    -------
    dict of ndarray
        Under the names used within a layer.
    """
    start = f"{number}."
    return {name[len(start) :]: W for name, W in params.items() if name.startswith(start)}


class TransformerResult(NamedTuple):
    """A whole forward pass, kept open for inspection.

    Attributes
    ----------
    logits : ndarray, shape (..., n, vocabulary)
        Row i scores every token as the answer at position i.
    embedding : ndarray, shape (..., n, d)
        The residual stream as it starts: token row plus position row.
    blocks : list of BlockResult
        One for each layer.
    """

    logits: np.ndarray
    embedding: np.ndarray
    blocks: list[BlockResult]

    @property
    def residuals(self) -> dict[str, np.ndarray]:
        """The stream (..., n, d) at each stage: ``embedding``, ``0.middle``, ``0.output``, …"""
        stages = {"embedding": self.embedding}
        for number, result in enumerate(self.blocks):
            stages |= {f"{number}.middle": result.middle, f"{number}.output": result.output}
        return stages

    @property
    def weights(self) -> list[np.ndarray]:
        """The attention weights (..., h, n, m) of each layer."""
        return [result.attention.weights for result in self.blocks]

    @property
    def cache(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The keys and values of each layer: what the next tokens need of the past."""
        return [(result.attention.K, result.attention.V) for result in self.blocks]


def transformer(
    params: dict[str, np.ndarray],
    tokens: Array,
    config: Config,
    *,
    past: Sequence[tuple[np.ndarray, np.ndarray]] | None = None,
    edit: Callable[[int, np.ndarray], np.ndarray] | None = None,
) -> TransformerResult:
    """Run the tokens through the whole model: embed, read and think in each layer, score.

    Parameters
    ----------
    params : dict of ndarray
        As `init_params` makes them.
    tokens : array_like of int, shape (..., n)
        Token numbers.
    config : Config
        The sizes.
    past : list of pairs, optional
        The `cache` of the pass over the tokens before these, which are then not run again.
        Only a causal model allows it: there the past does not depend on what follows.
    edit : callable, optional
        Called as ``edit(layer, weights)``; the weights it returns are those used. See
        `zero_heads` and `cut_edge`.

    Returns
    -------
    TransformerResult
        Logits, and every stage on the way to them.

    Raises
    ------
    ValueError
        If a token is not in the vocabulary, the sequence is too long, or a model that is not
        causal gets a past.
    """
    tokens = check_tokens("tokens", tokens, config.vocabulary)
    start = _past_length(past, config)
    n = tokens.shape[-1]
    for layer in getattr(edit, "layers", ()):
        if layer >= config.layers:
            raise ValueError(
                f"edit is for layer {layer}, counted from 0: the model has {config.layers}"
            )
    if start + n > config.context:
        raise ValueError(f"{start + n} tokens do not fit the context of {config.context}")
    X = embedding = params["E"][tokens] + params["P"][start : start + n]
    mask = causal_mask(n, start + n, offset=start) if config.causal else None
    blocks = []
    for number in range(config.layers):
        options: dict[str, Any] = {"residual": config.residual}
        options |= {"past": past[number] if past else None}
        options |= {"edit": partial(edit, number) if edit else None}
        layer = layer_params(params, number)
        blocks.append(block(X, layer, heads=config.heads, norm=config.norm, mask=mask, **options))
        X = blocks[-1].output
    if config.norm == "pre":
        X = layer_norm(X, params["gain"], params["bias"])
    return TransformerResult(X @ params["U"], embedding, blocks)


def _past_length(past: Sequence | None, config: Config) -> int:
    """Tell how many tokens the cache holds."""
    if not past:
        return 0
    if not config.causal:
        raise ValueError("only a causal model can go on from a past: this one has causal=False")
    if len(past) != config.layers:
        raise ValueError(f"past has {len(past)} layers, the model has {config.layers}")
    return past[0][0].shape[-2]


@takes("logits (..., n, vocabulary)", targets=tokens_of("logits"))
def cross_entropy(logits: Array, targets: Array, counted: Array | None = None) -> np.floating:
    """Average the surprise at the right answers: the mean of ``−log softmax(logits)[target]``.

    Parameters
    ----------
    logits : array_like, shape (..., n, vocabulary)
        A score for every token, at every position.
    targets : array_like of int, shape (..., n)
        The right answers.
    counted : array_like, shape (..., n), optional
        How much each position counts in the mean, by default all the same; 0 for none.

    Returns
    -------
    float
        In nats.

    Raises
    ------
    ValueError
        If shapes do not fit, a target is not in the vocabulary, or no position counts.
    """
    share = position_shares(targets, counted, logits)
    gaps = logits - logits.max(axis=-1, keepdims=True)
    right = np.take_along_axis(gaps, targets[..., None], axis=-1)[..., 0]
    return (share * (np.log(np.exp(gaps).sum(axis=-1)) - right)).sum()


def position_shares(targets: np.ndarray, counted: Array | None, logits: np.ndarray) -> np.ndarray:
    """Give each position's part of the mean; the parts sum to one."""
    counted = np.ones(targets.shape) if counted is None else np.asarray(counted, dtype=float)
    if targets.shape != logits.shape[:-1] or counted.shape != targets.shape:
        raise ValueError(
            f"logits (..., n, vocabulary), targets and counted (..., n) do not fit: got logits "
            f"{logits.shape}, targets {targets.shape} and counted {counted.shape}"
        )
    if counted.sum() <= 0:
        raise ValueError("no position counts: the mean over none of them is undefined")
    return (counted / counted.sum()).astype(logits.dtype)


# Writing ------------------------------------------------------------------------


@takes("logits (..., vocabulary)", temperature=a_sampling_temperature)
def sample(
    logits: Array, *, temperature: float | None = None, rng: np.random.Generator | None = None
) -> np.ndarray:
    """Choose one token from each row of logits.

    Parameters
    ----------
    logits : array_like, shape (..., vocabulary)
        Scores.
    temperature : float, optional
        Divides the logits; T > 0. By default none: the likeliest token, the limit T → 0.
    rng : numpy.random.Generator, optional
        Needed with a temperature: the same generator state gives the same choice.

    Returns
    -------
    ndarray of int, shape (...)

    Raises
    ------
    ValueError
        If `temperature` is not > 0, or there is one and no generator.

    Notes
    -----
    This is the temperature of sampling. That of a head divides scores within the model.
    """
    if temperature is None:
        return logits.argmax(axis=-1)
    if rng is None:
        raise ValueError("sampling at a temperature needs rng, a numpy.random.Generator")
    gaps = (logits - logits.max(axis=-1, keepdims=True)).astype(np.float64)
    steps = softmax(gaps / temperature).cumsum(axis=-1)
    dart = rng.random(logits.shape[:-1])[..., None] * steps[..., -1:]
    return (steps <= dart).sum(axis=-1)


@takes(count=whole(0))
def generate(
    params: dict[str, np.ndarray],
    prompt: Array,
    config: Config,
    *,
    count: int,
    temperature: float | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Write on from a prompt, one token at a time, each put back in as input.

    Parameters
    ----------
    params, config
        The model.
    prompt : array_like of int, shape (..., n)
        At least one token.
    count : int
        How many tokens to write.
    temperature : float, optional
        By default none: always the likeliest token. See `sample`.
    seed : int, default 0
        For the draws at a temperature.

    Returns
    -------
    ndarray of int, shape (..., n + count)
        The prompt and what follows it.

    Raises
    ------
    ValueError
        If the prompt is empty or the whole does not fit the context.

    Notes
    -----
    A causal model keeps its keys and values and runs each token once; another has to read
    everything again at every step.
    """
    tokens = check_tokens("prompt", prompt, config.vocabulary)
    if tokens.shape[-1] == 0 or tokens.shape[-1] + count > config.context:
        raise ValueError(
            f"a prompt of {tokens.shape[-1]} and {count} more tokens need "
            f"1 to {config.context}, the context"
        )
    rng, past, new = np.random.default_rng(seed), None, tokens
    for _ in range(count):
        result = transformer(params, new if config.causal else tokens, config, past=past)
        past = result.cache if config.causal else None
        new = sample(result.logits[..., -1, :], temperature=temperature, rng=rng)[..., None]
        tokens = np.concatenate([tokens, new], axis=-1)
    return tokens


# Counting -----------------------------------------------------------------------


def count_params(config: Config) -> dict[str, int]:
    """Count the parameters of a model, part by part.

    Parameters
    ----------
    config : Config
        The sizes.

    Returns
    -------
    dict
        ``embeddings`` (E and P), ``attention``, ``feed_forward``, ``norms``, ``unembedding``
        (U), and ``total``.
    """
    counts = dict.fromkeys(("embeddings", "attention", "feed_forward", "norms", "unembedding"), 0)
    for name, shape in param_shapes(config).items():
        part = name.split(".")[-1]
        if part in ("W_Q", "W_K", "W_V", "W_O"):
            counts["attention"] += math.prod(shape)
        elif part.startswith(("gain", "bias")):
            counts["norms"] += math.prod(shape)
        elif part == "U":
            counts["unembedding"] += math.prod(shape)
        else:
            counts["embeddings" if part in "EP" else "feed_forward"] += math.prod(shape)
    return counts | {"total": sum(counts.values())}


@takes(n=whole(0))
def count_operations(config: Config, n: int) -> dict[str, int]:
    """Count the multiply-adds of the matrix products in one pass over n tokens.

    Parameters
    ----------
    config : Config
        The sizes.
    n : int
        Tokens in one sequence.

    Returns
    -------
    dict
        ``projections``, ``scores_and_mixing``, ``feed_forward``, ``unembedding`` and
        ``total``. Scores and mixing grow with n², masked or not; the rest with n.

    Notes
    -----
    With heads · d_k = d, a layer needs 4 n d² to project, 2 n² d to score and mix, and 2 n d d_ff
    in the feed-forward part.
    """
    d, width = config.d, config.heads * config.head_width
    counts = {
        "projections": config.layers * 4 * n * d * width,
        "scores_and_mixing": config.layers * 2 * n * n * width,
        "feed_forward": config.layers * 2 * n * d * config.d_ff,
        "unembedding": n * d * config.vocabulary,
    }
    return counts | {"total": sum(counts.values())}
