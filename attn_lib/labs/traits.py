"""The kinds of setting a lab has: each says what was given and what it expected."""

from __future__ import annotations

from collections.abc import Sequence

import traitlets


class _Bounded:
    """A number from `low` to `high`."""

    def __init__(self, default, low, high) -> None:
        super().__init__(default)
        self.low, self.high = low, high
        self.tag(sync=True)

    def validate(self, obj, value):
        """Refuse what is out of bounds."""
        return between(self.name, super().validate(obj, value), self.low, self.high)


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

    def validate(self, obj, value):
        """Refuse other names."""
        return one_of(self.name, super().validate(obj, value), self.names)


class Flag(traitlets.Bool):
    """True or False."""

    def __init__(self, default: bool = False) -> None:
        super().__init__(default)
        self.tag(sync=True)


def between(name: str, value, low, high):
    """Give the value back, or raise ValueError unless ``low <= value <= high``."""
    if not low <= value <= high:
        raise ValueError(f"{name} must be from {low} to {high}, got {value}")
    return value


def one_of(name: str, value, choices: Sequence):
    """Give the value back, or raise ValueError unless it is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    return value
