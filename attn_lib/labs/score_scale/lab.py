"""ScoreScaleLab: many scores from one draw, with and without 1/√d_k, at every key width."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attn_lib import attention_scores, attention_weights, entropy
from attn_lib.arrays import Array
from attn_lib.backward import attention_backward
from attn_lib.draws import normals, uniforms
from attn_lib.labs.base import Lab
from attn_lib.labs.numbers import significant
from attn_lib.labs.score_scale.figure import score_scale_figure
from attn_lib.labs.traits import Choice, Real, Whole

LAYERS, TOKENS, D_V = 128, 8, 4  # 1024 queries, each with 8 keys
WIDEST = 512
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
VECTORS = ("independent", "uniform", "shifted", "tied-self", "tied-other")
SEEDS = 9999


class Measured(NamedTuple):
    """What is measured on one draw: one number each, or one for every key width.

    Attributes
    ----------
    mean, variance
        Of the scores that the histogram shows.
    predicted_mean, predicted_variance
        What the formula says of them.
    largest_weight
        Of a row, averaged over all rows.
    entropy
        Of a row's weights in bits, averaged over all rows; at most log₂ 8 = 3.
    median_gradient, mean_gradient
        Of ‖∇_q L‖ over all queries.
    """

    mean: Array
    variance: Array
    predicted_mean: Array
    predicted_variance: Array
    largest_weight: Array
    entropy: Array
    median_gradient: Array
    mean_gradient: Array


class ScoreScaleLab(Lab):
    """Many scores from one draw, with and without 1/√d_k, at every key width.

    The draw is 128 attention layers of n = 8 tokens: 1024 queries, each with 8 keys, 8192
    scores. A smaller key width takes the first d_k coordinates of the same vectors.

    Parameters
    ----------
    d_k : int, default 64
        Key width, 1 … 512.
    vectors : {"independent", "uniform", "shifted", "tied-self", "tied-other"}
        How queries and keys are drawn. ``"independent"``: all coordinates N(0, 1).
        ``"uniform"``: all uniform on (−1, 1). ``"shifted"``: all N(μ, 1). The tied ones have one
        map for both, W_Q = W_K with entries N(0, 1/d), so that a token's query is its key; the
        tokens have ‖x‖² = d and any two of them cosine c. The histogram then shows the scores
        of a token with itself (``"tied-self"``) or of two tokens (``"tied-other"``).
    mu : float, default 1.0
        The mean μ, 0 … 2, for ``"shifted"``.
    cosine : float, default 0.5
        c, 0 … 1, for the tied ones.
    seed : int
        Which draw, 0 … 9999.
    name : str, optional
        The lab's id in a page and its name in a link.
    title : str, optional

    Raises
    ------
    TypeError
        If a keyword is none of these.
    ValueError
        If a name is unknown or a number is out of its range.

    Notes
    -----
    The gradient is that of L = g·o for one query: values V with entries N(0, 1), an upstream g
    drawn as a random direction (‖g‖ = 1) of the d_v = 4 coordinates, and for scores
    s = f q Kᵀ, with f = 1/√d_k or 1, weights a = softmax(s) and o = a V,

        ∇_q L = f · g Vᵀ (diag(a) − aᵀa) K.

    Median and mean are over the 1024 queries.
    """

    settings = ("d_k", "vectors", "mu", "cosine", "seed")
    all_controls = settings
    all_panels = ("bells", "gradient", "curves", "measured", "histograms")
    first_controls = ("d_k",)
    first_panels = ("bells",)
    asks = ("widen",)

    d_k = Whole(64, 1, WIDEST)
    vectors = Choice(VECTORS)
    mu = Real(1.0, 0.0, 2.0)
    cosine = Real(0.5, 0.0, 1.0)
    seed = Whole(0, 0, SEEDS)
    title = traitlets.Unicode("The same scores, raw and divided by √dₖ").tag(sync=True)

    # The draw ---------------------------------------------------------------------------

    def _coordinates(self, d_k: int) -> np.ndarray:
        """Draw what queries and keys are made of, (layers, 16, d_k): wider ones begin alike."""
        shape = (d_k, LAYERS, 2 * TOKENS)
        if self.vectors == "uniform":
            drawn = 2 * uniforms(self.seed, 0, *shape) - 1
        else:
            drawn = normals(self.seed, 0, *shape)
        return np.moveaxis(drawn, 0, -1)

    def _queries_and_keys(self, d_k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        first, second = np.split(self._coordinates(d_k or self.d_k), 2, axis=1)
        if self.vectors == "shifted":
            return first + self.mu, second + self.mu
        if self.vectors.startswith("tied"):  # what the tokens share, and what is each one's own
            tied = np.sqrt(self.cosine) * first[:, :1] + np.sqrt(1 - self.cosine) * second
            return tied, tied
        return first, second

    @property
    def Q(self) -> np.ndarray:
        """The queries, (128, 8, d_k)."""
        return self._queries_and_keys()[0]

    @property
    def K(self) -> np.ndarray:
        """The keys, (128, 8, d_k)."""
        return self._queries_and_keys()[1]

    @property
    def V(self) -> np.ndarray:
        """The values, (128, 8, d_v = 4)."""
        return normals(self.seed, 1, LAYERS, TOKENS, D_V)

    @property
    def upstream(self) -> np.ndarray:
        """The direction g in which each query's output is read, (128, 8, d_v = 4)."""
        g = normals(self.seed, 2, LAYERS, TOKENS, D_V)
        return g / np.linalg.norm(g, axis=-1, keepdims=True)

    # What is measured -------------------------------------------------------------------

    @property
    def scores(self) -> np.ndarray:
        """The raw scores q·k that the histogram shows; divide by √d_k for the scaled ones."""
        return _shown(attention_scores(self.Q, self.K, scale=1.0), self.vectors)

    @property
    def unscaled(self) -> Measured:
        """Measurements with the raw scores q·k."""
        return self._measured(self.d_k, scale=1.0)

    @property
    def scaled(self) -> Measured:
        """Measurements with q·k/√d_k."""
        return self._measured(self.d_k, scale=None)

    @property
    def widths(self) -> np.ndarray:
        """The key widths at which the curves are computed, the present one among them."""
        return np.array(sorted({*WIDTHS, self.d_k}))

    @property
    def curves(self) -> tuple[Measured, Measured]:
        """Measurements at all `widths`, of the raw and of the scaled scores."""
        vectors = self._queries_and_keys(WIDEST)
        raw, scaled = (
            Measured(*np.array([self._measured(d, scale, vectors) for d in self.widths]).T)
            for scale in (1.0, None)
        )
        return raw, scaled

    def _measured(self, d_k: int, scale: float | None, vectors=None) -> Measured:
        """Measure everything on the first `d_k` coordinates."""
        Q, K = (each[..., :d_k] for each in vectors or self._queries_and_keys())
        S = attention_scores(Q, K, scale=scale)
        A = attention_weights(S)
        dQ = attention_backward(self.upstream, Q, K, self.V, weights=A, scale=scale)[0]
        lengths = np.linalg.norm(dQ, axis=-1)
        shown = _shown(S, self.vectors)
        mean, variance = predicted(self.vectors, d_k, mu=self.mu, cosine=self.cosine)
        divisor = 1 if scale else d_k
        return Measured(
            shown.mean(),
            shown.var(),
            mean / np.sqrt(divisor),
            variance / divisor,
            A.max(axis=-1).mean(),
            entropy(A).mean(),
            np.median(lengths),
            lengths.mean(),
        )

    # How it is shown ----------------------------------------------------------------------

    def describe(self) -> str:
        """Say what the width does to raw scores, and what the division restores."""
        raw, scaled = (
            f"spread by {significant(np.sqrt(each.variance))} "
            f"(predicted {significant(np.sqrt(each.predicted_variance))}), "
            f"and the largest weight of a row is {each.largest_weight:.2f} on average"
            for each in (self.unscaled, self.scaled)
        )
        return f"At dₖ = {self.d_k} raw scores {raw}; divided by √dₖ they {scaled}."

    def figure(self) -> Figure:
        """Draw both histograms and the curves over key width with matplotlib."""
        raw, scaled = self.curves
        return score_scale_figure(self.scores, self.d_k, self.widths, raw, scaled)


def predicted(
    vectors: str, d_k: int, *, mu: float = 1.0, cosine: float = 0.5
) -> tuple[float, float]:
    """Give mean and variance of q·k as the formula says.

    Parameters
    ----------
    vectors : str
        As in `ScoreScaleLab`.
    d_k : int
    mu, cosine : float
        μ and c.

    Returns
    -------
    mean, variance : float
        Of the raw score; divide by √d_k and d_k for the scaled one.
    """
    return {
        "independent": (0.0, d_k),
        "uniform": (0.0, d_k / 9),
        "shifted": (d_k * mu**2, d_k * (1 + 2 * mu**2)),
        "tied-self": (d_k, 2 * d_k),
        "tied-other": (d_k * cosine, d_k * (1 + cosine**2)),
    }[vectors]


def _shown(S: np.ndarray, vectors: str) -> np.ndarray:
    """Pick the scores of which the prediction speaks: all, or a token's with itself, or not."""
    own = np.eye(TOKENS, dtype=bool)
    if vectors == "tied-self":
        return S[:, own].ravel()
    return S[:, ~own].ravel() if vectors == "tied-other" else S.ravel()
