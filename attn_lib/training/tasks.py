"""The tasks that small models learn: batches of random sequences with their right answers."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from attn_lib.arrays import Array


class Batch(NamedTuple):
    """Several sequences and what to answer at each position.

    Attributes
    ----------
    tokens : ndarray of int, shape (size, n) or (size, n, parts)
        What the model reads.
    targets : ndarray of int, shape (size, n)
        The right answer at each position.
    counted : ndarray, shape (size, n)
        1 where the answer counts, 0 where it does not.
    source : ndarray of int, shape (size, m, parts), optional
        The other sequence, where there are two.
    """

    tokens: np.ndarray
    targets: np.ndarray
    counted: np.ndarray
    source: np.ndarray | None = None


def copy_batch(rng: np.random.Generator, *, size: int, length: int, vocabulary: int) -> Batch:
    """Answer each position with its own token."""
    tokens = rng.integers(vocabulary, size=(size, length))
    return Batch(tokens, tokens, np.ones(tokens.shape))


def reverse_batch(rng: np.random.Generator, *, size: int, length: int, vocabulary: int) -> Batch:
    """Answer position i with the token at position length − 1 − i."""
    tokens = rng.integers(vocabulary, size=(size, length))
    return Batch(tokens, tokens[:, ::-1].copy(), np.ones(tokens.shape))


def induction_batch(
    rng: np.random.Generator,
    *,
    size: int,
    vocabulary: int,
    shortest: int,
    longest: int,
) -> Batch:
    """Predict the next token of a sequence that repeats: ``a b c d a b c d``.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the draws come from.
    size, vocabulary : int
        Sequences in the batch, and number of different tokens.
    shortest, longest : int
        The period, one for the whole batch, is drawn between these, both included.

    Returns
    -------
    Batch
        Each sequence is `period` distinct tokens, twice, without the last; n = 2 · period − 1.
        Answers count from the second copy on, where the current token has been seen before:
        what follows can be known there, and nowhere else.
    """
    period = int(rng.integers(shortest, longest + 1))
    once = rng.permuted(np.tile(np.arange(vocabulary), (size, 1)), axis=1)[:, :period]
    twice = np.concatenate([once, once], axis=1)
    counted = np.tile(np.arange(2 * period - 1) >= period, (size, 1)).astype(float)
    return Batch(twice[:, :-1], twice[:, 1:], counted)


def period_of(batch: Batch) -> int:
    """Tell the period of a batch of the induction task."""
    return (batch.tokens.shape[1] + 1) // 2


def markov_chain(
    states: int = 16, chances: Sequence[float] = (0.6, 0.3, 0.1), seed: int = 0
) -> np.ndarray:
    """Draw a source in which each state has the same few chances, for its own successors.

    Parameters
    ----------
    states : int, default 16
        Number of tokens.
    chances : sequence of float, default (.6, .3, .1)
        Probabilities of a state's successors, which are drawn for each state; the rest get 0.
    seed : int, default 0
        For that draw.

    Returns
    -------
    ndarray, shape (states, states)
        ``P[a, b]`` is the probability that b follows a.

    Notes
    -----
    Every row has the same entropy, so that is the entropy rate: the least mean surprise, in nats,
    of any model that has not seen the answer.
    """
    rng = np.random.default_rng(seed)
    P = np.zeros((states, states))
    for row in P:
        row[rng.choice(states, size=len(chances), replace=False)] = chances
    return P


def entropy_rate(P: Array) -> float:
    """Give the floor no honest model can pass: the mean entropy of the rows, in nats.

    Parameters
    ----------
    P : array_like, shape (states, states)
        Transition probabilities. The rows are averaged evenly, which is the entropy rate if
        all have one entropy, as those of `markov_chain` do.

    Returns
    -------
    float
    """
    P = np.asarray(P, dtype=float)
    return float(-(P * np.log(np.where(P > 0, P, 1))).sum(axis=-1).mean())


def markov_batch(
    rng: np.random.Generator, *, P: np.ndarray, size: int, length: int, count_last: bool = False
) -> Batch:
    """Predict the next state of a Markov chain.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the draws come from.
    P : ndarray, shape (states, states)
        Transition probabilities.
    size, length : int
        Sequences, and tokens the model reads in each.
    count_last : bool, default False
        Whether the answer at the last position counts. It is the only one that stands nowhere
        in the input: a model that can read ahead is trained honestly there, and only there.

    Returns
    -------
    Batch
    """
    states = [rng.integers(len(P), size=size)]
    steps = P.cumsum(axis=1)
    for dart in rng.random((length, size)):
        next_state = (steps[states[-1]] <= dart[:, None]).sum(axis=1)
        states.append(np.minimum(next_state, len(P) - 1))  # a row may sum to 1 − 1e-16
    tokens = np.array(states).T
    counted = np.ones((size, length))
    counted[:, -1] = count_last
    return Batch(tokens[:, :-1], tokens[:, 1:], counted)


def sums_batch(
    rng: np.random.Generator, *, size: int, length: int, digits: int = 10, slips: float = 0.1
) -> Batch:
    """Predict the next digit where each is the last digit of the sum of the two before it.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the draws come from.
    size, length : int
        Sequences, and digits the model reads in each.
    digits : int, default 10
        Sums are taken modulo this number.
    slips : float, default 0.1
        Share of the steps at which any digit is written instead, the right one included.

    Returns
    -------
    Batch
        The first answer does not count: one digit says nothing about the next.

    Notes
    -----
    To answer, a model must fetch the digit before (routing) and add it to its own (computing).
    """
    text = list(rng.integers(digits, size=(2, size)))
    slipped = rng.random((length - 1, size)) < slips
    for slip, other in zip(slipped, rng.integers(digits, size=slipped.shape), strict=True):
        text.append(np.where(slip, other, (text[-2] + text[-1]) % digits))
    tokens = np.array(text).T
    counted = np.ones((size, length))
    counted[:, 0] = 0
    return Batch(tokens[:, :-1], tokens[:, 1:], counted)


def legal_share(tokens: Array, P: Array) -> float:
    """Tell which share of the steps in `tokens` (..., n) can happen in the source."""
    tokens, P = np.asarray(tokens), np.asarray(P)
    return float((P[tokens[..., :-1], tokens[..., 1:]] > 0).mean())


def translate_batch(rng: np.random.Generator, *, size: int, length: int, vocabulary: int) -> Batch:
    """Write a source sequence backwards, reading it through cross-attention.

    Both sides mark their positions: what is read is a pair (token, position), each with a row
    of its own in the embedding table, positions after tokens. The reader's token is the one
    written last, or a start mark, `vocabulary`.
    """
    words = rng.integers(vocabulary, size=(size, length))
    targets = words[:, ::-1].copy()
    written = np.concatenate([np.full((size, 1), vocabulary), targets[:, :-1]], axis=1)
    positions = np.broadcast_to(vocabulary + 1 + np.arange(length), (size, length))
    pairs = [np.stack([side, positions], axis=-1) for side in (written, words)]
    return Batch(pairs[0], targets, np.ones(targets.shape), pairs[1])


def lookup_batch(
    rng: np.random.Generator, *, size: int, pairs: int, keys: int, values: int
) -> Batch:
    """Answer each key that is asked for with the value that stands beside it in the source.

    The source holds `pairs` (key, value) pairs with distinct keys, in any order; values are
    numbered after the keys. The reader asks for every key once, in another order.
    """
    held = rng.permuted(np.tile(np.arange(keys), (size, 1)), axis=1)[:, :pairs]
    paired = rng.integers(values, size=(size, pairs))
    order = rng.permuted(np.tile(np.arange(pairs), (size, 1)), axis=1)
    asked, targets = (np.take_along_axis(M, order, axis=1) for M in (held, paired))
    source = np.stack([held, keys + paired], axis=-1)
    return Batch(asked[..., None], targets, np.ones(targets.shape), source)
