"""The kinds of setting a lab has: each says what was given and what it expected."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import traitlets


class Refused(traitlets.TraitError, ValueError):
    """A lab says no to a value.

    A ``ValueError`` for whoever calls; a ``TraitError`` for traitlets, which takes the value back
    for no other error where several traits change at once: in ``hold_trait_notifications``, and
    in every message from a front end.
    """


class _Bounded(traitlets.TraitType):
    """A number from `low` to `high`; without bounds a rule of the lab's own may set them."""

    def __init__(self, default: Any, low: float = -inf, high: float = inf, **options: Any) -> None:
        super().__init__(default, **options)
        self.low, self.high = low, high
        self.tag(sync=True)

    def validate(self, obj: Any, value: Any) -> Any:
        """Refuse what is out of bounds, and True and False, which Python counts as 1 and 0."""
        if isinstance(value, bool):
            raise Refused(f"{self.name} must be a number, got {value}")
        number = super().validate(obj, value)  # type: ignore[misc]  # Int's or Float's
        return between(str(self.name), number, self.low, self.high)


class Whole(_Bounded, traitlets.Int):
    """A whole number from `low` to `high`."""


class Real(_Bounded, traitlets.Float):
    """A number from `low` to `high`."""


class Choice(traitlets.Unicode):
    """One of some names; the first unless another default is given."""

    def __init__(self, names: Sequence[str], default: str | None = None) -> None:
        super().__init__(names[0] if default is None else default)
        self.names = tuple(names)
        self.tag(sync=True)

    def validate(self, obj: Any, value: Any) -> Any:
        """Refuse other names."""
        return one_of(str(self.name), super().validate(obj, value), self.names)


class Flag(traitlets.Bool):
    """True or False."""

    def __init__(self, default: bool = False) -> None:
        super().__init__(default)
        self.tag(sync=True)


def between(name: str, value: Any, low: float, high: float) -> Any:
    """Give the value back, or refuse it unless ``low <= value <= high``."""
    if not low <= value <= high:
        raise Refused(f"{name} must be from {low} to {high}, got {value}")
    return value


def one_of(name: str, value: Any, choices: Sequence) -> Any:
    """Give the value back, or refuse it unless it is one of the choices."""
    if value not in choices:
        raise Refused(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    return value


def tuples(name: str, given: Sequence, form: str, bounds: tuple[int, ...]) -> list[list[int]]:
    """Check a list of tuples of whole numbers, each below its bound; keep one of equal ones."""
    kept = []
    for item in given:
        if not isinstance(item, Sequence) or len(item) != len(bounds):
            raise Refused(f"{name} must be a list of {form}, got {item!r}")
        if not all(part in range(end) for part, end in zip(item, bounds, strict=True)):
            ends = ", ".join(str(end - 1) for end in bounds)
            raise Refused(f"{name}: {form} must be from 0 to {ends}, got {list(item)}")
        if [int(part) for part in item] not in kept:
            kept.append([int(part) for part in item])
    return kept
