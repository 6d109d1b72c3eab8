"""How an answer is checked: it is run, compared with the right one, and told what went wrong."""

import inspect
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from attn_lib.arrays import Array

WRONG_AXIS = (
    "your weights sum to one along columns. Softmax must run along each row, over the keys: a row "
    "is one query sharing itself out. Over columns the keys would share out, and a query could "
    "get a total weight of almost nothing, or of several."
)


class Mistake(NamedTuple):
    """A known wrong answer: its short name, what to tell the reader, and the function itself.

    Two entries may share a name, where one mistake can be written in two ways. The function does
    without the shape checks of `attn_lib`, so that it fails as the reader's own does.
    """

    name: str
    why: str
    make: Callable


@dataclass(frozen=True)
class Report:
    """What a check found; true exactly if the answer is right.

    Attributes
    ----------
    ok : bool
        Whether the answer is right.
    text : str
        The finding in words, as Markdown that reads well as plain text too.
    mistake : str or None
        Short name of the mistake if it is a known one, for a teacher's statistics.
    """

    ok: bool
    text: str
    mistake: str | None = None

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return f"{'Right.' if self.ok else 'Not yet:'} {self.text}"

    def _repr_markdown_(self) -> str:
        return f"**{'Right.' if self.ok else 'Not yet:'}** {self.text}"


class Case(NamedTuple):
    """One input to try: the arguments by name, in order, and what is special about them."""

    inputs: dict[str, Any]
    note: str = ""


class _Outcome(NamedTuple):
    """What one call gave: named arrays, or a problem (with the exception behind it, if any)."""

    parts: dict[str, np.ndarray] | None
    problem: str = ""
    error: str = ""
    changed: tuple[str, ...] = ()


def random_inputs(seed: int, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Draw one standard normal array for each named shape, so that scores are of order one."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def check_function(
    function: Callable,
    *,
    right: Callable,
    cases: Sequence[Case],
    mistakes: Sequence[Mistake] = (),
    returns: Sequence[str] = ("answer",),
    needs_all: bool = False,
) -> Report:
    """Compare a reader's function with the right one, and name the mistake if it is known.

    Parameters
    ----------
    function : callable
        The reader's answer. It is called with copies of each case's inputs, by position.
    right : callable
        Takes the same arguments and gives the right answer.
    cases : sequence of Case
        Tried in order. Take distinct sizes, so that no wrong answer happens to fit, and put
        first a case on which all mistakes differ.
    mistakes : sequence of Mistake
        Known wrong answers, the most telling first.
    returns : sequence of str
        What the parts of the answer are called. A reader who returns fewer than there are
        gives the last ones, so ("weights", "output") accepts the output alone.
    needs_all : bool, default False
        Whether every part must be returned, where each is asked for.

    Returns
    -------
    Report
    """
    problem = _cannot_be_called(function, cases[0])
    if problem:
        return Report(False, problem)
    for number, case in enumerate(cases):
        wanted = _run(right, case, returns)
        if wanted.parts is None:
            raise ValueError(
                f"the right answer itself fails on {_describe(case)}: {wanted.problem}"
            )
        got = _run(function, case, returns, wanted.parts, needs_all)
        if got.parts is None or not _same(got.parts, wanted.parts):
            possible = [  # a mistake that shows on a case already passed is not this reader's
                mistake
                for mistake in mistakes
                if all(_agree(mistake.make, right, passed, returns) for passed in cases[:number])
            ]
            return _explain(function, got, wanted.parts, case, right, possible, returns)
        problem = _side_effect(got) or _not_boolean(got.parts, wanted.parts)
        if problem:
            return Report(False, problem)
    return Report(True, f"Your function agrees with the book's on {len(cases)} generated inputs.")


def _explain(function, got, expected, case, right, mistakes, returns) -> Report:
    """Find the words for a wrong answer: a known mistake first, then what can be seen."""
    for name, why, make in mistakes:
        wrong = _run(make, case, returns, expected)
        alike = got.error == wrong.error if got.error else _same(got.parts, wrong.parts)
        if alike:
            return Report(False, f"{why} ({got.problem.rstrip('.')}.)" if got.error else why, name)
    text = (
        got.problem
        or _shape_problem(got.parts, expected)
        or _nan_problem(got.parts, expected)
        or _ignored_argument(function, case, right, returns)
        or _visible_pattern(got.parts, expected)
        or _largest_difference(got.parts, expected)
    )
    return Report(False, f"{text} Tried on {_describe(case)}.")


def _run(
    function: Callable,
    case: Case,
    returns: Sequence[str],
    expected: dict[str, np.ndarray] | None = None,
    needs_all: bool = False,
) -> _Outcome:
    """Call a function on copies of the inputs, quietly, and read what it gives."""
    inputs = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in case.inputs.items()}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            answer = function(*inputs.values())
    except NotImplementedError:
        return _Outcome(None, "your function is not written yet.")
    except Exception as error:
        return _Outcome(None, _told(error, function), f"{type(error).__name__}: {error}")
    parts, problem = _read(answer, returns, expected, needs_all)
    changed = (
        k for k, v in case.inputs.items() if not np.array_equal(v, inputs[k], equal_nan=True)
    )
    return _Outcome(parts, problem, changed=tuple(changed))


def _read(
    answer: Any,
    returns: Sequence[str],
    expected: dict[str, np.ndarray] | None = None,
    needs_all: bool = False,
) -> tuple[dict[str, np.ndarray] | None, str]:
    """Give the parts of an answer as arrays by name, or say why that cannot be done."""
    items = _items(answer, len(returns), list((expected or {}).values()))
    if needs_all and len(items) < len(returns):
        listed = ", ".join(returns)
        return None, f"all of ({listed}) are asked for; your function returns {len(items)} of them."
    parts = {}
    for name, item in zip(returns[len(returns) - len(items) :], items, strict=True):
        if item is None or item is ...:
            return None, f"your function returns {item} for the {name}: is a `return` missing?"
        try:
            parts[name] = np.asarray(item)
        except ValueError:
            return None, f"there are rows of different lengths in your {name}: that is no matrix."
        if parts[name].dtype.kind not in "biuf":
            kind = _code(type(item).__name__)
            return None, f"for the {name} your function returns {kind}, not an array of numbers."
        if expected:
            parts[name] = _fitted(parts[name], expected[name].shape)
    return (parts, "") if parts else (None, "your function returns an empty tuple.")


def _items(answer: Any, count: int, expected: Sequence[np.ndarray]) -> Sequence:
    """Cut an answer into its parts: a tuple, or a list that can be read as one.

    A tuple or list of rows may also be one part, so what fits the right answer decides.
    """
    if not isinstance(answer, tuple | list):
        return (answer,)
    if expected and _shape(answer) == expected[-1].shape:
        return (answer,)  # rows in a list, heads in a tuple
    if isinstance(answer, tuple):
        return answer[-count:]
    fits = len(answer) == count > 1 and [_shape(x) for x in answer] == [x.shape for x in expected]
    return answer if fits else (answer,)


def _shape(x: Any) -> tuple[int, ...] | None:
    """Give the shape of what can be made an array."""
    try:
        return np.asarray(x).shape
    except ValueError:
        return None


def _fitted(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Take a row for a vector and one entry for a number: there is no other way to read it."""
    return x.reshape(shape) if x.shape == (1, *shape) or (x.size == 1 and shape == ()) else x


def _same(got: dict | None, wanted: dict | None) -> bool:
    """Tell whether two answers agree on every part that `got` has."""
    if got is None or wanted is None:
        return False
    return all(
        name in wanted
        and part.shape == wanted[name].shape
        and np.allclose(part, wanted[name], rtol=1e-5, atol=1e-6, equal_nan=True)
        for name, part in got.items()
    )


def _agree(function: Callable, other: Callable, case: Case, returns: Sequence[str]) -> bool:
    """Tell whether two functions give the same answer to one case."""
    return _same(_run(function, case, returns).parts, _run(other, case, returns).parts)


def _cannot_be_called(function: Any, case: Case) -> str:
    """Say what is wrong if the answer is not a function of the right arguments."""
    wanted = ", ".join(case.inputs)
    if not callable(function):
        kind = _code(type(function).__name__)
        return f"give the check your function itself, without calling it; this is {kind}."
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C: the call itself will tell
        return ""
    try:
        signature.bind(*case.inputs.values())
    except TypeError:
        return f"your function must take ({wanted}); it takes {_code(str(signature))}."
    return ""


def _told(error: Exception, function: Callable) -> str:
    """Retell an exception in one line, with the reader's own line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    code = getattr(function, "__code__", None)
    own = [f for f in frames if code and f.filename == code.co_filename] or frames
    place = f" in line {own[-1].lineno}, {_code(own[-1].line)}" if own and own[-1].line else ""
    return f"your function stops{place} with {_code(f'{type(error).__name__}: {error}')}."


def _code(text: str) -> str:
    """Quote foreign text so that Markdown leaves it alone: one line, not too long."""
    line = " ".join(text.replace("`", "'").split())
    return f"`{line if len(line) <= 200 else line[:199] + '…'}`"


def _describe(case: Case) -> str:
    """Name the inputs: shapes of arrays, values of numbers."""
    inputs = (
        f"{name} {value.shape}" if isinstance(value, np.ndarray) else f"{name} = {value}"
        for name, value in case.inputs.items()
    )
    return ", ".join(inputs) + (f" ({case.note})" if case.note else "")


def _side_effect(got: _Outcome) -> str:
    """Name the inputs that a function has changed."""
    if not got.changed:
        return ""
    names = " and ".join(f"`{name}`" for name in got.changed)
    return (
        f"the numbers are right, but your function changes {names}: work on a copy, or the "
        "caller's next line sees other numbers."
    )


def _not_boolean(got: dict, expected: dict) -> str:
    """Insist on True and False where the answer is a boolean mask."""
    for name, part in got.items():
        if expected[name].dtype == bool and part.dtype != bool:
            return (
                f"the numbers are right, but your {name} is {part.dtype}, not bool: True and False "
                "say which keys may be read, 0 and 1 do not say which is which."
            )
    return ""


def _shape_problem(got: dict, expected: dict) -> str:
    """Name both shapes if a part has the wrong one."""
    for name, part in got.items():
        if part.shape != expected[name].shape:
            return (
                f"the shape of your {name} is {part.shape}, and should be {expected[name].shape}."
            )
    return ""


def _nan_problem(got: dict, expected: dict) -> str:
    """Ask the two usual questions if there is a NaN where a number belongs."""
    for name, part in got.items():
        if (np.isnan(part) & ~np.isnan(expected[name])).any():
            return (
                f"your {name} contains NaN. Are you multiplying 0 by −∞, or dividing 0 by 0? "
                "Or does exp overflow, because a row's largest score is not subtracted first?"
            )
    return ""


def _ignored_argument(function, case, right, returns) -> str:
    """Name an argument that changes the right answer and not the reader's."""
    for name, value in case.inputs.items():
        cases = (case, Case(case.inputs | {name: _altered(value)}))
        before, after = (_run(function, c, returns).parts for c in cases)
        matters = not _same(*(_run(right, c, returns).parts for c in cases))
        if matters and _same(before, after):
            return f"your answer stays the same when `{name}` changes: is it used?"
    return ""


def _altered(value):
    """Give another input of the same kind and shape."""
    if not isinstance(value, np.ndarray):
        return value + 1
    return ~value if value.dtype == bool else value[::-1] / 2


def _visible_pattern(got: dict, expected: dict) -> str:
    """Describe what a wrong answer looks like, where that gives the cause away."""
    weights = got.get("weights")
    if weights is not None and weights.ndim == 2:
        rows, columns = weights.sum(axis=1), weights.sum(axis=0)
        if np.allclose(columns, 1) and not np.allclose(rows, 1):
            return WRONG_AXIS
        if not np.allclose(rows, expected["weights"].sum(axis=1)):
            return f"the weights of a query must sum to one; your first row sums to {rows[0]:.4g}."
    for name, part in got.items():
        sure = np.isfinite(expected[name]) & (np.abs(expected[name]) > 1e-9)
        ratio = part[sure] / expected[name][sure]
        if ratio.size > 1 and np.allclose(ratio, ratio[0]) and not np.isclose(ratio[0], 1):
            return (
                f"every entry of your {name} is {ratio[0]:.4g} times the right one: which factor?"
            )
    return ""


def _largest_difference(got: dict, expected: dict) -> str:
    """Point at the entry that is furthest from right."""
    for name, part in got.items():
        if not _same({name: part}, expected):
            with np.errstate(invalid="ignore"):  # −∞ − (−∞), where both are −∞
                gap = np.where(part == expected[name], 0, part.astype(float) - expected[name])
            worst = np.unravel_index(np.argmax(np.abs(gap)), gap.shape)
            place = f"[{', '.join(map(str, worst))}]" if worst else ""
            return (
                f"your {name}{place} is {part[worst]:.6g}, and should be "
                f"{expected[name][worst]:.6g}."
            )
    return ""


def by_hand(
    right: Array | Callable[[], Array],
    mistakes: Mapping[str, Array] | Callable[[], Mapping[str, Array]] | None = None,
    tol: Array = 0.01,
) -> Callable[[Any], Report]:
    """Make the check of an exercise by hand, for a chapter's ``EXERCISES``.

    Parameters
    ----------
    right, mistakes : array_like, mapping, or callable
        As in `check_value`; functions without arguments are called when an answer comes.
    tol : float or array_like, default 0.01
        As in `check_value`; the default accepts whoever rounds on the way, too.

    Returns
    -------
    callable
        Takes a reader's answer and gives a `Report`.
    """

    def check(given):
        wanted, wrong = (x() if callable(x) else x for x in (right, mistakes))
        return check_value(given, right=wanted, mistakes=wrong, tol=tol)

    return check


def check_value(
    given: Array | None,
    *,
    right: Array,
    mistakes: Mapping[str, Array] | None = None,
    tol: Array = 0.005,
) -> Report:
    """Check a number, vector or matrix worked out by hand.

    Parameters
    ----------
    given : array_like or None
        The reader's answer; None or ... if there is none yet.
    right : array_like
        The right answer, computed rather than typed.
    mistakes : mapping of str to array_like, optional
        What to tell the reader → the wrong value that shows it. It is told if it explains every
        wrong entry.
    tol : float or array_like, default 0.005
        Largest allowed error, of all entries or of each; the default accepts a right value
        rounded to two decimals.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        If a known wrong value cannot be told from the right one: such a check is no check.
    """
    wanted = np.asarray(right, float)
    wrong = {why: np.asarray(value, float) for why, value in (mistakes or {}).items()}
    for why, value in wrong.items():
        if _near(value, wanted, 2 * np.asarray(tol)):
            raise ValueError(f"within tol = {tol} this mistake gives the right answer: {why!r}")
    if given is None or given is ...:
        return Report(False, "there is no answer yet.")
    try:
        answer = _fitted(np.asarray(given, float), wanted.shape)
    except (TypeError, ValueError):
        return Report(False, f"expected numbers, got {_code(repr(given))}.")
    if _near(answer, wanted, tol):
        return Report(True, f"The value is {np.array2string(wanted, precision=4)}.")
    for why, value in wrong.items():
        if answer.shape == value.shape == wanted.shape:
            explained = _close(answer, value, tol) | _close(answer, wanted, tol)
        else:
            explained = _near(answer, value, tol)
        if np.all(explained):
            return Report(False, why, why)
    return Report(False, _how_it_differs(answer, wanted, tol))


def _close(x: np.ndarray, y: np.ndarray, tol: Array) -> np.ndarray:
    """Tell for each entry whether two arrays differ by at most `tol`, give or take rounding."""
    return np.isclose(x, y, rtol=1e-9, atol=tol)


def _near(x: np.ndarray, y: np.ndarray, tol: Array) -> bool:
    """Tell whether two arrays have one shape and are close in every entry."""
    return x.shape == y.shape and bool(_close(x, y, tol).all())


def _how_it_differs(given: np.ndarray, right: np.ndarray, tol: float) -> str:
    """Describe a wrong value that no table knows, without giving the right one away."""
    if given.ndim == 2 and given.shape != (1, 1) and _near(given.T, right, tol):
        return "rows and columns are exchanged: rows are queries, columns are keys."
    if given.shape != right.shape:
        return f"the answer has shape {right.shape}, yours has {given.shape}."
    if np.isnan(given).any():
        return "your answer contains NaN."
    if _near(given / 100, right, tol):
        return "that is a percentage: give it as a fraction of one."
    if _near(-given, right, tol):
        return "the size is right, the sign is not."
    if _near(given, right, 10 * np.asarray(tol)):
        worst = np.argmax(np.abs(given - right) / tol)
        error, allowed = (
            np.abs(given - right).flat[worst],
            np.broadcast_to(tol, right.shape).flat[worst],
        )
        return f"close: the error is {error:.2g}, allowed is {allowed:g}. Rounding?"
    if right.ndim == 0:
        return "this is not the value."
    wrong = np.argwhere(~_close(given, right, tol))
    places = ", ".join(str(tuple(map(int, at))) for at in wrong[:3])
    return f"{len(wrong)} of {right.size} entries are wrong, the first at index {places}."
