"""What functions ask of their arguments, said in one place: `takes`.

So that the body of a function can be its equation, a decorator above it names the shapes that
belong together. It makes arrays of what is given, refuses what does not fit in words that name the
argument and its shape, lets the body compute in float32 at least, and hands the result back in the
precision that came in. What other arguments must be is in `attn_lib.rules`.
"""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np

# Of an argument: whatever numpy reads as an array; `takes` has made it one for the body.
Array = Any
Rule = Callable[[str, Any, Mapping[str, Any]], Any]
P = ParamSpec("P")
R = TypeVar("R")
REAL = (int, float, np.integer, np.floating)


def takes(
    *arrays: str,
    like: str | None = None,
    cast: bool = True,
    **rules: Rule,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check and promote the arguments of a function before it runs.

    Parameters
    ----------
    *arrays : str
        A name and a shape each, such as ``"Q (..., n, d_k)"``. One letter stands for one size in
        all shapes. ``...`` are leading axes that broadcast, ``*batch`` axes that are the same
        wherever they are named. A size may be a product with whole arguments (``heads·d_k``), even
        (``2r``) or odd (``2r+1``), and bounded (``d_k≥1``). None is no array and is let through
        (``source=X (..., m, d)`` puts X in its place); so is a number in place of a vector.
    like : str, optional
        The array whose precision the result has; by default that of all of them together.
    cast : bool, default True
        False leaves numbers as they are: for functions that only move them.
    **rules : callable
        For other arguments: ``rule(name, value, given)`` gives the value to use or raises
        ValueError; `given` holds all arguments by name.

    Returns
    -------
    callable
        A decorator. The function it gives takes lists, integers and float16 too: integers count as
        float64, and float16 is computed in float32 and rounded once, at the end.

    Raises
    ------
    ValueError
        When the function is called: if an array does not hold real numbers or the shapes do not
        fit, naming the array, what it must be, and every shape that was given.
    """
    shapes = [Shape.read(text) for text in arrays]
    stand_ins = [shape for shape in shapes if shape.instead]

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters
        names = list(parameters)
        defaults = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
        places = sum(p.kind is not p.KEYWORD_ONLY for p in parameters.values())
        sizes = {factor for shape in shapes for factor in shape.factors if factor in parameters}
        early = {name: rule for name, rule in rules.items() if name in sizes}
        late = {name: rule for name, rule in rules.items() if name not in sizes}
        fitting: set = set()  # what has been found to fit: most calls repeat their shapes

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            given = defaults | dict(zip(names, args, strict=False)) | kwargs
            twice = not kwargs.keys().isdisjoint(names[: len(args)])
            if len(args) > places or len(given) != len(names) or twice:
                return function(*args, **kwargs)  # which refuses it in Python's own words
            for s in stand_ins:
                given[s.name] = given[s.instead] if given[s.name] is None else given[s.name]
            held = {s.name: as_numbers(s.name, given[s.name]) for s in shapes if s.given(given)}
            dtype = promote(held, like) if cast else np.dtype(float)
            given |= held
            for name, rule in early.items():
                given[name] = rule(name, given[name], given)
            fits = (*((name, M.shape) for name, M in held.items()), *(given[n] for n in sizes))
            if fits not in fitting:
                check_shapes([s for s in shapes if s.name in held], held, given)
                if len(fitting) > 999:
                    fitting.clear()
                fitting.add(fits)
            for name, rule in late.items():
                given[name] = rule(name, given[name], given)
            body: Callable[..., R] = function  # by name, in whatever order
            result = body(**given)
            return in_precision(result, dtype) if cast and held else result

        return checked

    return decorate


# Numbers --------------------------------------------------------------------------------


def as_numbers(name: str, given: Any) -> np.ndarray:
    """Give an array of real numbers, or raise ValueError with its name."""
    if isinstance(given, np.ma.MaskedArray):
        raise ValueError(f"{name} is a masked array, whose mask is not read here: fill it first")
    try:
        M = np.asarray(given)
    except ValueError as error:  # rows of several lengths
        raise ValueError(f"{name} must be an array of real numbers: {error}") from None
    if M.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be an array of real numbers, got dtype {M.dtype}")
    return M


def promote(held: dict[str, np.ndarray], like: str | None = None) -> np.dtype:
    """Bring arrays to the precision to compute in, in place; give the one to hand back.

    All are brought to their common precision, or with `like` each keeps its own.
    """
    dtypes = {name: M.dtype if M.dtype.kind == "f" else np.dtype(float) for name, M in held.items()}
    common = np.result_type(*(held.values())) if held else np.dtype(float)
    common = common if common.kind == "f" else np.dtype(float)
    for name, M in held.items():
        precision = dtypes[name] if like else common
        held[name] = M.astype(np.promote_types(precision, np.float32), copy=False)
    return dtypes[like] if like else common


def in_precision(result: Any, dtype: np.dtype) -> Any:
    """Round the float arrays of a result, and of the tuples and dicts in it, to a precision.

    A tuple whose class says `keeps_precision` is left alone.
    """
    if isinstance(result, np.ndarray):
        with np.errstate(over="ignore"):  # a score too large for float16 is ∞ there
            return result.astype(dtype, copy=False) if result.dtype.kind == "f" else result
    if isinstance(result, tuple) and type(result) not in _KEPT:
        parts = (in_precision(part, dtype) for part in result)
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, dict):
        return {name: in_precision(part, dtype) for name, part in result.items()}
    return result


_KEPT: set[type] = set()


def keeps_precision(state: type[R]) -> type[R]:
    """Keep what is computed as it is: decorates the class of a state that more will be added to."""
    _KEPT.add(state)
    return state


# Shapes ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """One size of a shape: ``number · factors… + more``, at least `least`."""

    text: str
    number: int
    factors: tuple[str, ...]
    more: int
    least: int

    @classmethod
    def read(cls, text: str) -> "Axis":
        """Read ``d_k≥1``, ``2r+1``, ``heads·d_k`` or ``2``."""
        size, _, least = text.partition("≥")
        product, _, more = size.partition("+")
        ((number, names),) = re.findall(r"^(\d*)·?(.*)$", product)
        factors = tuple(filter(None, names.split("·")))
        return cls(size, int(number or 1), factors, int(more or 0), int(least or 0))


@dataclass(frozen=True)
class Shape:
    """The shape an argument must have: leading axes (``...``, ``*name`` or none), then `axes`."""

    name: str
    text: str
    leading: str
    axes: tuple[Axis, ...]
    instead: str  # the argument that stands for this one where it is None

    @classmethod
    def read(cls, text: str) -> "Shape":
        """Read ``Q (..., n, d_k)``, or ``source=X (..., m, d_y)``."""
        name, shape = text.split(" ", 1)
        name, _, instead = name.partition("=")
        parts = [part.strip() for part in shape.strip("()").split(",") if part.strip()]
        leading = parts.pop(0) if parts and (parts[0] == "..." or parts[0][0] == "*") else ""
        shown = ", ".join([leading] * bool(leading) + [part.split("≥")[0] for part in parts])
        shown += "," * (len(parts) == 1 and not leading)
        return cls(name, f"({shown})", leading, tuple(map(Axis.read, parts)), instead)

    @property
    def factors(self) -> set[str]:
        """All names that sizes are made of."""
        return {factor for axis in self.axes for factor in axis.factors}

    def given(self, given: Mapping[str, Any]) -> bool:
        """Say whether there is an array: not None, nor a number that need not be one."""
        value = given[self.name]
        number = isinstance(value, REAL) and len(self.axes) > 0 and not self.leading
        return value is not None and not number


def check_shapes(
    shapes: list[Shape], held: Mapping[str, np.ndarray], given: Mapping[str, Any]
) -> None:
    """Raise ValueError unless the arrays have their shapes, with one size for each name."""
    sizes_of = {shape.name: held[shape.name].shape for shape in shapes}
    stands_in = {s.name for s in shapes if s.instead and sizes_of[s.name] == sizes_of[s.instead]}
    got = ", ".join(f"{name} {sizes}" for name, sizes in sizes_of.items() if name not in stands_in)
    known: dict[str, tuple[int, str]] = {}  # a size, and the first array that has it
    groups: dict[str, tuple[int, ...]] = {}
    for shape in shapes:
        sizes, count = held[shape.name].shape, len(shape.axes)
        if len(sizes) < count or (len(sizes) > count and not shape.leading):
            raise ValueError(f"{shape.name} must be {shape.text}: got {got}")
        leading = sizes[: len(sizes) - count]
        group = groups.setdefault(shape.leading, leading) if shape.leading != "..." else leading
        if group != leading:
            raise ValueError(f"{both(shapes, shape.leading)} must have the same axes: got {got}")
        for axis, size in zip(shape.axes, sizes[len(leading) :], strict=True):
            check_axis(axis, size, shape, known, given, shapes, got)
    open_ended = [shape for shape in shapes if shape.leading == "..."]
    try:
        np.broadcast_shapes(*(held[s.name].shape[: -len(s.axes) or None] for s in open_ended))
    except ValueError:
        names = ", ".join(shape.name for shape in open_ended)
        raise ValueError(f"the leading axes of {names} do not broadcast: got {got}") from None


def check_axis(
    axis: Axis,
    size: int,
    shape: Shape,
    known: dict[str, tuple[int, str]],
    given: Mapping[str, Any],
    shapes: list[Shape],
    got: str,
) -> None:
    """Raise ValueError unless one size agrees with those already known; learn a new one."""
    product, unknown = axis.number, []
    for factor in axis.factors:
        if factor in known:
            product *= known[factor][0]
        elif factor in given:
            product *= given[factor]
        else:
            unknown.append(factor)
    rest = size - axis.more
    if size < axis.least:
        raise ValueError(
            f"{shape.name} must be {shape.text} with {axis.text} ≥ {axis.least}: got {got}"
        )
    if unknown:
        if rest < 0 or (rest % product if product else rest):
            raise ValueError(f"{shape.name} must be {shape.text}{settings(axis, given)}: got {got}")
        if product:  # 0 times whatever is 0: then nothing is learned
            known[unknown[0]] = (rest // product, shape.name)
    elif rest != product:
        shared = next((f for f in reversed(axis.factors) if f in known), None)
        if shared is None or known[shared][1] == shape.name:
            raise ValueError(f"{shape.name} must be {shape.text}{settings(axis, given)}: got {got}")
        other = next(s for s in shapes if s.name == known[shared][1])
        raise ValueError(
            f"{other.name} {other.text} and {shape.name} {shape.text} must agree in "
            f"{shared}{settings(axis, given)}: got {got}"
        )


def settings(axis: Axis, given: Mapping[str, Any]) -> str:
    """Say what else a size must be: ``with heads = 3``, or even, or odd."""
    named = [f"{factor} = {given[factor]}" for factor in axis.factors if factor in given]
    if axis.number == 2:
        named.append(f"{axis.text} {'odd' if axis.more % 2 else 'even'}")
    return " with " + ", ".join(named) if named else ""


def both(shapes: list[Shape], leading: str) -> str:
    """Name the arrays that share leading axes: ``dA (*batch, m) and A (*batch, m)``."""
    return " and ".join(f"{s.name} {s.text}" for s in shapes if s.leading == leading)
