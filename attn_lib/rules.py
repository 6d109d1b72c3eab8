"""What functions ask of arguments that are not arrays of numbers: rules for `takes`.

A rule takes the name of an argument, its value and all arguments by name; it gives the value to go
on with, or raises ValueError in words that name the argument and what was given.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attn_lib.arrays import REAL, Rule, as_numbers


def optional(rule: Rule) -> Rule:
    """Let None through, and ask the rule for all else."""
    return lambda name, value, given: None if value is None else rule(name, value, given)


def whole(least: float = -math.inf, *, default: str | None = None) -> Rule:
    """Ask for a whole number, at least `least`; None may stand for another argument."""

    def rule(name: str, value: Any, given: Mapping[str, Any]) -> int:
        return as_whole(name, given[default] if value is None and default else value, least)

    return rule


def as_whole(name: str, value: Any, least: float = -math.inf) -> int:
    """Give `value` as an int, or raise ValueError with its name."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        bound = "" if least == -math.inf else f" ≥ {least}"
        raise ValueError(f"{name} must be a whole number{bound}, got {value!r}")
    return int(value)


def number(kind: str, holds: Callable[[float], bool], hint: str = "") -> Rule:
    """Ask for one real number for which `holds` holds."""

    def rule(name: str, value: Any, given: Mapping[str, Any]) -> Any:
        real = isinstance(value, REAL) and not isinstance(value, bool)
        if not (real and holds(value)):
            raise ValueError(f"{name} must be {kind}, got {value!r}{hint}")
        return value

    return rule


finite = number("a finite number", math.isfinite)
positive = number("> 0 and finite", lambda x: 0 < x < math.inf)
not_negative = number("≥ 0 and finite", lambda x: 0 <= x < math.inf)
a_scale = optional(number("a finite number (1.0 for none)", math.isfinite))
a_sampling_temperature = optional(number("> 0 (None for the likeliest)", lambda T: T > 0))
a_temperature = number(
    "> 0 (np.inf is allowed)",
    lambda T: T > 0,
    "; as T → 0 the largest scores of a row share it equally: try a small T",
)


def one_of(*allowed: str) -> Rule:
    """Ask for one of a few names."""

    def rule(name: str, value: Any, given: Mapping[str, Any]) -> str:
        if value not in allowed:
            names = ", ".join(map(repr, allowed))
            raise ValueError(f"{name} must be one of {names}, got {value!r}")
        return value

    return rule


def mask_for(*scores: str) -> Rule:
    """Ask for a mask that broadcasts to the scores, given as an argument or as queries and keys."""

    def rule(name: str, value: Any, given: Mapping[str, Any]) -> np.ndarray | None:
        if value is None:
            return None
        mask = as_mask(value)
        shape = scores_shape(*(given[name] for name in scores))
        if not broadcasts_to(mask.shape, shape):
            raise ValueError(
                f"mask {mask.shape} does not broadcast to the scores {shape}, (..., n, m)"
            )
        return mask

    return rule


def scores_shape(first: np.ndarray, K: np.ndarray | None = None) -> tuple[int, ...]:
    """Give the shape of scores, from themselves or from queries and keys."""
    if K is None:
        return first.shape
    batch = np.broadcast_shapes(first.shape[:-2], K.shape[:-2])
    return (*batch, first.shape[-2], K.shape[-2])


def as_mask(mask: Any) -> np.ndarray:
    """Give the mask as an array; integers are refused, for 0 and 1 could mean either kind."""
    mask = np.asarray(mask)
    if mask.dtype.kind not in "bf":
        raise ValueError(
            f"a mask is boolean (True = may look) or float (added), got dtype {mask.dtype}"
        )
    return mask


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Say whether an array of one shape can be stretched to another, which stays as it is."""
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def finite_numbers(name: str, value: Any, given: Mapping[str, Any]) -> np.ndarray:
    """Ask for an array of finite numbers; a rule itself."""
    numbers = as_numbers(name, value).astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite numbers, got {numbers.tolist()}")
    return numbers


def whole_numbers(name: str, value: Any) -> np.ndarray:
    """Give an array of whole numbers, or raise ValueError with its name."""
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers, got dtype {numbers.dtype}")
    return numbers


def lengths_up_to(most: str) -> Rule:
    """Ask for whole numbers from 0 to another argument."""

    def rule(name: str, value: Any, given: Mapping[str, Any]) -> np.ndarray:
        numbers, largest = whole_numbers(name, value), given[most]
        if ((numbers < 0) | (numbers > largest)).any():
            raise ValueError(
                f"{name} must lie between 0 and {most} = {largest}, got {numbers.tolist()}"
            )
        return numbers

    return rule


def places(X: str, *, rows_of: str | None = None) -> Rule:
    """Ask for the positions of the rows of X, by default 0 … n − 1; whole ones to look up rows."""

    def rule(name: str, value: Any, given: Mapping[str, Any]) -> np.ndarray:
        rows = given[X].shape[:-1]
        if value is None:
            value = np.arange(rows[-1])
        numbers = whole_numbers(name, value) if rows_of else as_numbers(name, value)
        if numbers.ndim == 0 or not broadcasts_to(numbers.shape, rows):
            hint = " (a single number could mean a count: write [t])" if numbers.ndim == 0 else ""
            raise ValueError(
                f"{name} must broadcast to the rows of {X}, {rows}: got shape {numbers.shape}{hint}"
            )
        if (
            rows_of
            and numbers.size
            and not 0 <= numbers.min() <= numbers.max() < len(given[rows_of])
        ):
            raise ValueError(
                f"the {rows_of} has rows for positions 0 to {len(given[rows_of]) - 1}: "
                f"got {name} {numbers.min()} to {numbers.max()}"
            )
        return numbers

    return rule


def reordering(X: str) -> Rule:
    """Ask for a rearrangement of the row numbers of X."""

    def rule(name: str, value: Any, given: Mapping[str, Any]) -> np.ndarray:
        order, shape = np.asarray(value), given[X].shape
        if order.dtype.kind not in "iu" or sorted(order.ravel().tolist()) != list(range(shape[-2])):
            raise ValueError(
                f"{name} must rearrange the {shape[-2]} rows of {X} {shape}, got {order.tolist()}"
            )
        return order

    return rule


def tokens_below(vocabulary: str) -> Rule:
    """Ask for whole numbers (..., n) below another argument."""
    return lambda name, value, given: check_tokens(name, value, given[vocabulary])


def tokens_of(logits: str) -> Rule:
    """Ask for whole numbers (..., n) that are tokens of the vocabulary that is scored."""
    return lambda name, value, given: check_tokens(name, value, given[logits].shape[-1])


def check_tokens(name: str, tokens: Any, vocabulary: int) -> np.ndarray:
    """Raise ValueError unless `tokens` is (..., n) whole numbers below `vocabulary`."""
    tokens = np.asarray(tokens)
    if tokens.ndim < 1 or tokens.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be whole numbers (..., n), got {tokens.dtype} {tokens.shape}"
        )
    if tokens.size and not 0 <= tokens.min() <= tokens.max() < vocabulary:
        raise ValueError(
            f"{name} must lie between 0 and {vocabulary - 1}, got {tokens.min()} to {tokens.max()}"
        )
    return tokens
