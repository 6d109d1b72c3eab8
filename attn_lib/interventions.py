"""What one edge of a model weighs, what it carries, and what its loss would change.

An *edge* is one entry of one head's weights: in this layer and head, this query reads this key.
The functions give arrays (layers, h, n, n) over all edges, nan where a query may not look.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from attn_lib.arrays import Array, takes
from attn_lib.heads import head_contributions
from attn_lib.model import Config, TransformerResult, layer_params, transformer
from attn_lib.rules import as_whole

Edge = tuple[int, int, int, int]


@dataclass(frozen=True)
class Edit:
    """A change of attention weights, and the layers that it is for.

    Attributes
    ----------
    layers : tuple of int
        Counted from 0. `transformer` refuses an edit of a layer that the model does not have:
        nothing would happen, and be taken for no effect.
    change : callable
        From the weights of such a layer to those used instead.
    """

    layers: tuple[int, ...]
    change: Callable[[int, np.ndarray], np.ndarray]

    def __call__(self, layer: int, weights: np.ndarray) -> np.ndarray:
        """Give the weights to use in a layer."""
        return self.change(layer, weights) if layer in self.layers else weights


def zero_heads(layer: int, heads: Sequence[int] | None = None) -> Edit:
    """Make an `edit` that silences heads: their weights, so what they write, become 0.

    Parameters
    ----------
    layer : int
        The layer, counted from 0: what the text and the labs call layer 1 is ``layer=0``.
    heads : sequence of int, optional
        Which heads of it, counted from 0 too; by default all.

    Returns
    -------
    Edit
        For `transformer`.

    Raises
    ------
    ValueError
        When the model runs that has no such layer or head.
    """

    def silence(_: int, weights: np.ndarray) -> np.ndarray:
        weights = weights.copy()
        for head in range(weights.shape[-3]) if heads is None else heads:
            weights[..., below("head", head, weights.shape[-3]), :, :] = 0
        return weights

    return Edit((as_whole("layer", layer, 0),), silence)


def cut_edge(layer: int, head: int, query: int, key: int, *, renormalise: bool = False) -> Edit:
    """Make an `edit` that takes away one weight of one head.

    Parameters
    ----------
    layer, head, query, key : int
        The edge: in this head of this layer, `query` no longer reads `key`. All are counted from
        0, as in arrays; the text and the labs name layers and heads from 1.
    renormalise : bool, default False
        Whether the row's other weights grow so that it sums to one again, as a mask would have
        it. Cutting with and without are two different experiments.

    Returns
    -------
    Edit
        For `transformer`. A row left with nothing to read stays zero.

    Raises
    ------
    ValueError
        When the model runs that has no such edge.
    """

    def cut(_: int, weights: np.ndarray) -> np.ndarray:
        weights = weights.copy()
        named = {"head": head, "query": query, "key": key}
        r, i, j = (
            below(*item, n) for item, n in zip(named.items(), weights.shape[-3:], strict=True)
        )
        row = weights[..., r, i, :]
        row[..., j] = 0
        if renormalise:
            total = row.sum(axis=-1, keepdims=True)
            row /= np.where(total == 0, 1, total)
        return weights

    return Edit((as_whole("layer", layer, 0),), cut)


def below(name: str, index: int, count: int) -> int:
    """Give an index counted from 0, or raise ValueError with its name."""
    if not 0 <= as_whole(name, index) < count:
        raise ValueError(f"{name} must be from 0 to {count - 1}, got {index}")
    return index


def intervention(
    cut: Sequence[Edge] = (), zero: Sequence[tuple[int, int]] = (), *, renormalise: bool = False
) -> Edit:
    """Make one `edit` that cuts several edges and silences several heads.

    Parameters
    ----------
    cut : sequence of (layer, head, query, key)
        The edges whose weights become 0; see `attn_lib.cut_edge`.
    zero : sequence of (layer, head)
        The heads that write nothing; see `attn_lib.zero_heads`.
    renormalise : bool, default False
        Whether the rest of a row that was cut grows until it sums to one again.

    Returns
    -------
    Edit
        For `transformer`.

    Raises
    ------
    ValueError
        When the model runs that has no such edge or head.
    """
    edits = [cut_edge(*edge, renormalise=renormalise) for edge in cut]
    edits += [zero_heads(layer, [head]) for layer, head in zero]
    layers = tuple(layer for edit in edits for layer in edit.layers)
    return Edit(layers, lambda layer, A: reduce(lambda A, edit: edit(layer, A), edits, A))


def edge_weights(result: TransformerResult) -> np.ndarray:
    """Give the attention weight of every edge: a_ij.

    Parameters
    ----------
    result : TransformerResult
        A forward pass over one sequence, or over several: leading axes go between layers
        and heads.

    Returns
    -------
    ndarray, shape (layers, ..., h, n, n)
        nan where a query may not look.
    """
    heads = [block.attention for block in result.blocks]
    return np.array([np.where(np.isneginf(each.scores), np.nan, each.weights) for each in heads])


def edge_norms(params: dict[str, np.ndarray], result: TransformerResult) -> np.ndarray:
    """Give the length of what every edge adds to its query's output: ‖a_ij v_j W_O‖.

    Parameters
    ----------
    params : dict of ndarray
        The model.
    result : TransformerResult
        Its forward pass.

    Returns
    -------
    ndarray, shape (layers, ..., h, n, n)
        nan where a query may not look. Each head's values are written with its own rows
        of ``W_O``.

    Notes
    -----
    Kobayashi et al. (2020).
    """
    lengths = []
    for number, block in enumerate(result.blocks):
        W_O = layer_params(params, number)["W_O"]
        written = head_contributions(block.attention.V, W_O)
        lengths.append(np.linalg.norm(written, axis=-1)[..., None, :])
    return edge_weights(result) * np.array(lengths)


def log_probability(
    params: dict[str, np.ndarray],
    tokens: Array,
    config: Config,
    *,
    target: int,
    query: int = -1,
    edit: Callable | None = None,
) -> float:
    """Give the log-probability, in nats, of one token as the answer at one position.

    Parameters
    ----------
    params, config
        The model; it runs in double precision.
    tokens : array_like of int, shape (n,)
        What it reads.
    target : int
        The token.
    query : int, default -1
        The position, by default the last.
    edit : callable, optional
        An experiment on the weights: see `intervention`.

    Returns
    -------
    float
    """
    params = {name: W.astype(np.float64, copy=False) for name, W in params.items()}
    logits = transformer(params, tokens, config, edit=edit).logits[query]
    gaps = logits - logits.max()
    return float(gaps[target] - np.log(np.exp(gaps).sum()))


def edge_effects(
    params: dict[str, np.ndarray],
    tokens: Array,
    config: Config,
    *,
    target: int,
    query: int = -1,
    renormalise: bool = False,
    cut: Sequence[Edge] = (),
    zero: Sequence[tuple[int, int]] = (),
) -> np.ndarray:
    """Cut every edge, one at a time, and tell what each cut costs: log p before − log p after.

    Parameters
    ----------
    params, config
        The model.
    tokens : array_like of int, shape (n,)
        What it reads.
    target : int
        The token whose probability counts: the right answer at `query`.
    query : int, default -1
        The position where it is the answer, by default the last.
    renormalise : bool, default False
        Whether the rest of a row grows when an edge of it is cut: another experiment.
    cut, zero : sequence, optional
        What has been cut and silenced before: see `intervention`. Edges of theirs have
        effect 0.

    Returns
    -------
    ndarray, shape (layers, h, n, n)
        In nats; positive where the edge helped. nan where a query may not look.

    Notes
    -----
    One forward pass an edge. An edge that does nothing comes out as 0, up to a rounding error:
    compare ranks with ``spearman(x, effects, decimals=9)``, beside its `spearman_ceiling`.
    """
    tokens = np.asarray(tokens)
    target_of = {"target": target, "query": query}
    before = log_probability(
        params, tokens, config, **target_of, edit=intervention(cut, zero, renormalise=renormalise)
    )
    shape = (config.layers, config.heads, len(tokens), len(tokens))
    effects = np.full(shape, np.nan)
    for edge in np.ndindex(shape):
        if config.causal and edge[3] > edge[2]:
            continue
        edit = intervention([*cut, edge], zero, renormalise=renormalise)
        effects[edge] = before - log_probability(params, tokens, config, **target_of, edit=edit)
    return effects


def mean_ranks(x: Array) -> np.ndarray:
    """Rank numbers from 1, the smallest; equal ones share the mean of their ranks.

    Parameters
    ----------
    x : array_like, shape (n,)
        Real numbers.

    Returns
    -------
    ndarray, shape (n,)
    """
    _, which, count = np.unique(np.asarray(x), return_inverse=True, return_counts=True)
    return (count.cumsum() - (count - 1) / 2)[which]


@takes("x (*pairs)", "y (*pairs)")
def spearman(x: Array, y: Array, *, decimals: int | None = None) -> float:
    """Correlate ranks: 1 where the larger x always goes with the larger y, −1 where never.

    Parameters
    ----------
    x, y : array_like, same shape
        Pairs of real numbers. Pairs with a nan are left out.
    decimals : int, optional
        Numbers that agree when rounded so count as equal, by default only those that are.

    Returns
    -------
    float
        Spearman's coefficient: the ordinary correlation of `mean_ranks`. nan when all x or
        all y are equal, where it has no value.

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], y[known]
    if decimals is not None:
        x, y = x.round(decimals), y.round(decimals)
    r, s = (mean_ranks(M) - (len(M) + 1) / 2 for M in (x, y))
    spread = np.sqrt((r @ r) * (s @ s))
    return float(r @ s / spread) if spread > 0 else float("nan")


@takes("x (*pairs)", "y (*pairs)")
def spearman_ceiling(x: Array, y: Array, *, decimals: int | None = None) -> float:
    """Give the largest rank correlation that their ties allow.

    Parameters
    ----------
    x, y, decimals
        As in `spearman`.

    Returns
    -------
    float
        1 if neither has equal numbers; less if one has more of them than the other, since equal
        numbers share a rank.

    Raises
    ------
    ValueError
        If the shapes differ.

    Notes
    -----
    Both sorted: by the rearrangement inequality no other pairing has a larger sum of products.
    """
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = np.sort(x[known]), np.sort(y[known])
    return spearman(x, y, decimals=decimals)
