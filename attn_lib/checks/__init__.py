"""Checks for the exercises: they say whether an answer is right, and if not, why.

A check runs the reader's function on generated inputs and compares it with `attn_lib`. A
wrong answer is compared with a table of known mistakes (`attn_lib.checks.mistakes`), each a small
function, on inputs where all of them differ; the one that gives the same numbers is named,
with the reason why it matters. To add a check, give `check_function` the right function, a
few inputs and a table; for an exercise by hand, give `check_value` the right value and some
wrong ones.

Chapters show the report; a grader writes ``assert check_scores(answer).ok``.
"""

import inspect
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from attn_lib.backward import attention_backward, query_jacobian
from attn_lib.blocks import gelu, layer_norm
from attn_lib.checks.mistakes import (
    ADAM_MISTAKES,
    ATTENTION_MISTAKES,
    BACKWARD_MISTAKES,
    CAUSAL_MASK_MISTAKES,
    CROSS_ATTENTION_MISTAKES,
    CUT_EDGE_MISTAKES,
    CUT_KEY_MISTAKES,
    DOCUMENT_MASK_MISTAKES,
    EDGE_NORM_MISTAKES,
    EMBEDDING_MISTAKES,
    LAYER_NORM_MISTAKES,
    LINEAR_ATTENTION_MISTAKES,
    LOOKUP_MISTAKES,
    MASK_MISTAKES,
    MOMENT_MISTAKES,
    MOVED_SCORES_MISTAKES,
    MULTI_HEAD_MISTAKES,
    NULL_WEIGHT_MISTAKES,
    OFFSET_MISTAKES,
    ONLINE_SOFTMAX_MISTAKES,
    ORDER_GAP_MISTAKES,
    PRE_NORM_MISTAKES,
    QUERY_GRADIENT_MISTAKES,
    ROPE_MISTAKES,
    SCORE_MISTAKES,
    SELF_ATTENTION_MISTAKES,
    SINUSOID_MISTAKES,
    SPLIT_MISTAKES,
    WEIGHT_MISTAKES,
    WINDOW_MASK_MISTAKES,
    WRONG_AXIS,
    Mistake,
)
from attn_lib.dot_product import (
    attention,
    attention_scores,
    attention_weights,
    cross_attention,
    self_attention,
    softmax,
)
from attn_lib.efficient import linear_attention
from attn_lib.heads import multi_head_attention, split_heads
from attn_lib.lookup import gaussian_scores
from attn_lib.masks import causal_mask, window_mask
from attn_lib.positions import rope, sinusoidal_positions
from attn_lib.training.loop import Moments, adam_step

__all__ = [
    "Case",
    "Mistake",
    "Report",
    "check_adam",
    "check_attention",
    "check_attention_backward",
    "check_causal_mask",
    "check_cross_attention",
    "check_cut_edge",
    "check_document_mask",
    "check_edge_norms",
    "check_embedding",
    "check_function",
    "check_layer_norm",
    "check_linear_attention",
    "check_lookup",
    "check_masked_attention",
    "check_moved_scores",
    "check_multi_head",
    "check_null_weights",
    "check_online_softmax",
    "check_order_gap",
    "check_pre_norm_block",
    "check_query_gradient",
    "check_rope",
    "check_score_moments",
    "check_scores",
    "check_self_attention",
    "check_sinusoids",
    "check_softmax",
    "check_split_heads",
    "check_value",
    "check_window_mask",
    "random_inputs",
]


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


# The engine


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

    Returns
    -------
    Report
    """
    problem = _cannot_be_called(function, cases[0])
    if problem:
        return Report(False, problem)
    for number, case in enumerate(cases):
        wanted, got = _run(right, case, returns), _run(function, case, returns)
        if wanted.parts is None:
            raise ValueError(
                f"the right answer itself fails on {_describe(case)}: {wanted.problem}"
            )
        if not _same(got.parts, wanted.parts):
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
        wrong = _run(make, case, returns)
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


def _run(function: Callable, case: Case, returns: Sequence[str]) -> _Outcome:
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
    parts, problem = _read(answer, returns)
    changed = (
        k for k, v in case.inputs.items() if not np.array_equal(v, inputs[k], equal_nan=True)
    )
    return _Outcome(parts, problem, changed=tuple(changed))


def _read(answer: Any, returns: Sequence[str]) -> tuple[dict[str, np.ndarray] | None, str]:
    """Give the parts of an answer as arrays by name, or say why that cannot be done."""
    items = answer[-len(returns) :] if isinstance(answer, tuple) else (answer,)
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
    return (parts, "") if parts else (None, "your function returns an empty tuple.")


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


# Exercises by hand


def check_value(
    given: ArrayLike | None,
    *,
    right: ArrayLike,
    mistakes: Mapping[str, ArrayLike] | None = None,
    tol: float = 0.005,
) -> Report:
    """Check a number, vector or matrix worked out by hand.

    Parameters
    ----------
    given : array_like or None
        The reader's answer; None or ... if there is none yet.
    right : array_like
        The right answer, computed by the chapter's code rather than typed.
    mistakes : mapping of str to array_like, optional
        What to tell the reader → the wrong value that shows it.
    tol : float, default 0.005
        Largest allowed error of an entry; the default accepts two decimals.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        If a known wrong value cannot be told from the right one: such a check is no check.
    """
    right = np.asarray(right, float)
    mistakes = {why: np.asarray(value, float) for why, value in (mistakes or {}).items()}
    for why, value in mistakes.items():
        if _near(value, right, 2 * tol):
            raise ValueError(f"within tol = {tol} this mistake gives the right answer: {why!r}")
    if given is None or given is ...:
        return Report(False, "there is no answer yet.")
    try:
        given = np.asarray(given, float)
    except (TypeError, ValueError):
        return Report(False, f"expected numbers, got {_code(repr(given))}.")
    if _near(given, right, tol):
        return Report(True, f"The value is {np.array2string(right, precision=4)}.")
    for why, value in mistakes.items():
        if _near(given, value, tol):
            return Report(False, why, why)
    return Report(False, _how_it_differs(given, right, tol))


def _near(x: np.ndarray, y: np.ndarray, tol: float) -> bool:
    """Tell whether two arrays have one shape and differ by at most `tol`, give or take rounding."""
    return x.shape == y.shape and np.allclose(x, y, rtol=1e-9, atol=tol)


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
    if _near(given, right, 10 * tol):
        return (
            f"close: the error is {np.abs(given - right).max():.2g}, allowed is {tol:g}. Rounding?"
        )
    if right.ndim == 0:
        return "this is not the value."
    wrong = np.argwhere(~np.isclose(given, right, rtol=1e-9, atol=tol))
    places = ", ".join(str(tuple(map(int, at))) for at in wrong[:3])
    return f"{len(wrong)} of {right.size} entries are wrong, the first at index {places}."


# The exercises


def _attention_cases() -> list[Case]:
    """Two ordinary inputs of distinct sizes, and one with scores too large for a bare exp."""
    big = random_inputs(2, Q=(4, 5), K=(6, 5), V=(6, 3))
    return [
        Case(random_inputs(0, Q=(4, 5), K=(6, 5), V=(6, 3))),
        Case(random_inputs(1, Q=(3, 2), K=(5, 2), V=(5, 4))),
        Case(big | {"Q": big["Q"] * 1000}, "with scores in the thousands"),
    ]


def check_scores(function: Callable) -> Report:
    """Check ``f(Q, K)``, which gives the scaled scores of every query for every key."""
    cases = [Case({k: v for k, v in c.inputs.items() if k != "V"}) for c in _attention_cases()[:2]]
    weights = Mistake(
        "softmax applied",
        "these are weights already. Scores are what the softmax is applied to.",
        lambda Q, K: softmax(attention_scores(Q, K)),
    )
    return check_function(
        function,
        right=attention_scores,
        cases=cases,
        mistakes=(*SCORE_MISTAKES, weights),
        returns=("scores",),
    )


def check_softmax(function: Callable) -> Report:
    """Check ``f(S)``, which gives the softmax of each row of a matrix of scores."""
    large = np.array([[0.0, 1, 2, 3], [10000, 10001, 10002, 10003], [900, 903, 901, 902]])
    return check_function(
        function,
        right=softmax,
        cases=[
            Case(random_inputs(0, S=(4, 6))),
            Case(random_inputs(1, S=(5, 3))),
            Case({"S": large}, "with scores in the thousands"),
        ],
        mistakes=WEIGHT_MISTAKES,
        returns=("weights",),
    )


def check_attention(function: Callable) -> Report:
    """Check ``f(Q, K, V)``, which gives the output, or the weights and the output."""
    return check_function(
        function,
        right=attention,
        cases=_attention_cases(),
        mistakes=ATTENTION_MISTAKES,
        returns=("weights", "output"),
    )


def check_self_attention(function: Callable) -> Report:
    """Check ``f(X, W_Q, W_K, W_V)``, which gives the output, or the weights and the output."""
    shapes = {"X": (4, 6), "W_Q": (6, 5), "W_K": (6, 5), "W_V": (6, 3)}
    scale = {name: size[0] ** -0.5 for name, size in shapes.items() if name != "X"}
    ordinary, large = (
        {k: x * scale.get(k, 1) for k, x in random_inputs(seed, **shapes).items()}
        for seed in (0, 2)
    )
    return check_function(
        function,
        right=self_attention,
        cases=[
            Case(ordinary),
            Case(random_inputs(1, X=(5, 3), W_Q=(3, 2), W_K=(3, 2), W_V=(3, 4))),
            Case(large | {"W_Q": large["W_Q"] * 1000}, "with scores in the thousands"),
        ],
        mistakes=SELF_ATTENTION_MISTAKES,
        returns=("weights", "output"),
    )


def check_masked_attention(function: Callable) -> Report:
    """Check ``f(Q, K, V, keep)``, which gives the output, or the weights and the output.

    `keep` (n, m) is True where a query may look. A query with nothing to look at must give
    zeros, and a forbidden key must not matter however large its score.
    """
    inputs = random_inputs(0, Q=(4, 5), K=(6, 5), V=(6, 3))
    allowed = [[1, 2, 4], [3, 4, 5], [1, 3], [0, 2, 3, 5]]
    keep = np.array([np.isin(np.arange(6), keys) for keys in allowed])
    loud = inputs["K"].copy()  # so loud that after the softmax no other weight is left
    loud[0] = 10_000 * inputs["Q"][0]
    return check_function(
        function,
        right=lambda Q, K, V, keep: attention(Q, K, V, mask=keep),
        cases=[
            Case(inputs | {"keep": keep}),
            Case(inputs | {"K": loud, "keep": keep}, "with a huge score for a forbidden key"),
            Case(
                inputs | {"keep": keep & (np.arange(4) != 2)[:, None]},
                "where query 2 has nothing to look at",
            ),
        ],
        mistakes=MASK_MISTAKES,
        returns=("weights", "output"),
    )


def check_causal_mask(function: Callable) -> Report:
    """Check ``f(n, m, offset)``, which gives a boolean mask, True where ``j <= i + offset``."""
    return check_function(
        function,
        right=lambda n, m, offset: causal_mask(n, m, offset=offset),
        cases=[
            Case({"n": 3, "m": 5, "offset": 2}, "last query with last key"),
            Case({"n": 4, "m": 4, "offset": 0}),
            Case({"n": 5, "m": 3, "offset": -2}, "more queries than keys"),
        ],
        mistakes=CAUSAL_MASK_MISTAKES,
        returns=("mask",),
    )


def check_document_mask(function: Callable) -> Report:
    """Check ``f(documents)``, a boolean causal mask that keeps texts packed in one row apart.

    ``documents[i]`` is the number of the text that token i belongs to. Texts stand one after the
    other.
    """
    return check_function(
        function,
        right=lambda documents: causal_mask(len(documents)) & (documents[:, None] == documents),
        cases=[
            Case({"documents": np.array([2, 2, 2, 0, 0, 1])}, "numbered in any order"),
            Case({"documents": np.array([0, 0, 1, 2, 2])}),
            Case({"documents": np.array([0, 0, 0, 0])}, "one text only"),
        ],
        mistakes=DOCUMENT_MASK_MISTAKES,
        returns=("mask",),
    )


def check_cross_attention(function: Callable) -> Report:
    """Check ``f(X, Y, W_Q, W_K, W_V, keep)``: the output, or the weights and the output.

    X (n, d) reads Y (m, d_y); `keep` (m,) is True for the real tokens of the source.
    """

    def case(seed, n, m, d, d_y, d_k, d_v, real, note=""):
        shapes = {"X": (n, d), "Y": (m, d_y), "W_Q": (d, d_k), "W_K": (d_y, d_k), "W_V": (d_y, d_v)}
        inputs = random_inputs(seed, **shapes)
        return Case(inputs | {"keep": np.arange(m) < real}, note)

    return check_function(
        function,
        right=lambda X, Y, W_Q, W_K, W_V, keep: cross_attention(X, Y, W_Q, W_K, W_V, mask=keep),
        cases=[
            case(0, 4, 7, 3, 3, 5, 2, real=5),
            case(1, 6, 3, 4, 2, 3, 5, real=3, note="no padding"),
            case(2, 3, 4, 2, 5, 4, 3, real=0, note="an empty source"),
        ],
        mistakes=CROSS_ATTENTION_MISTAKES,
        returns=("weights", "output"),
    )


def check_null_weights(function: Callable) -> Report:
    """Check ``f(S, c)``: softmax of each row with one more score c, whose weight is left out."""
    large = np.array([[1000.0, 1001, 999], [0, 1, 2]])

    def right(S, c):
        return softmax(np.hstack([S, np.full((len(S), 1), c)]))[:, :-1]

    return check_function(
        function,
        right=right,
        cases=[
            Case(random_inputs(0, S=(4, 6)) | {"c": 0.7}),
            Case(random_inputs(1, S=(5, 3)) | {"c": -2.0}),
            Case({"S": large, "c": 1000.0}, "with scores in the thousands"),
        ],
        mistakes=NULL_WEIGHT_MISTAKES,
        returns=("weights",),
    )


def check_cut_key(function: Callable) -> Report:
    """Check ``f(a, V, s)``: how the output of one query changes when key s is masked."""

    def right(a, V, s):
        rest = np.where(np.arange(len(a)) == s, 0.0, a)
        return rest / rest.sum() @ V - a @ V

    def case(seed, m, d, s, note=""):
        drawn = random_inputs(seed, a=(m,), V=(m, d))
        return Case(drawn | {"a": softmax(drawn["a"]), "s": s}, note)

    return check_function(
        function,
        right=right,
        cases=[
            case(0, 5, 3, s=1),
            case(1, 4, 2, s=3, note="the last key"),
            case(2, 6, 1, s=0, note="values of one coordinate"),
        ],
        mistakes=CUT_KEY_MISTAKES,
    )


def check_offset_score(function: Callable) -> Report:
    """Check ``f(A, offset)``: each head's mean weight on the key `offset` places on, (h,)."""

    def right(A, offset):
        return A.diagonal(offset, axis1=-2, axis2=-1).mean(axis=-1)

    def case(seed, h, n, offset, note=""):
        A = softmax(2 * random_inputs(seed, A=(h, n, n))["A"])
        return Case({"A": A, "offset": offset}, note)

    return check_function(
        function,
        right=right,
        cases=[
            case(0, 4, 6, -2),
            case(1, 3, 5, 1, note="a key after the query"),
            case(2, 2, 4, 0, note="the query's own key"),
        ],
        mistakes=OFFSET_MISTAKES,
    )


def check_split_heads(function: Callable) -> Report:
    """Check ``f(X, heads)``: columns (n, h · width) cut into heads, (h, n, width)."""

    def case(seed, n, heads, width, note=""):
        return Case(random_inputs(seed, X=(n, heads * width)) | {"heads": heads}, note)

    return check_function(
        function,
        right=split_heads,
        cases=[
            case(0, 5, 3, 2),
            case(1, 4, 4, 2, note="as many heads as tokens"),
            case(2, 3, 1, 5, note="one head"),
        ],
        mistakes=SPLIT_MISTAKES,
        returns=("heads",),
    )


def check_multi_head(function: Callable) -> Report:
    """Check ``f(X, W_Q, W_K, W_V, W_O, heads)``: the output of several heads, joined by W_O."""

    def case(seed, n, d, heads, d_k, d_v, note=""):
        shapes = {"X": (n, d), "W_Q": (d, heads * d_k), "W_K": (d, heads * d_k)}
        shapes |= {"W_V": (d, heads * d_v), "W_O": (heads * d_v, d)}
        inputs = random_inputs(seed, **shapes)
        for name in ("W_Q", "W_K"):  # scores of order one
            inputs[name] /= np.sqrt(d)
        return Case(inputs | {"heads": heads}, note)

    return check_function(
        function,
        right=lambda *maps: multi_head_attention(*maps[:-1], heads=maps[-1]).output,
        cases=[
            case(0, 5, 9, 3, 2, 4),
            case(1, 2, 8, 2, 3, 5, note="as many heads as tokens"),
            case(2, 4, 5, 1, 3, 2, note="one head"),
        ],
        mistakes=MULTI_HEAD_MISTAKES,
        returns=("output",),
    )


def check_layer_norm(function: Callable) -> Report:
    """Check ``f(X, gain, bias)``, a layer norm with ε = 1e-5, one token per row."""
    drawn = [random_inputs(s, X=(4, 6), gain=(6,), bias=(6,)) for s in (0, 1)]
    drawn[1]["X"] = 20 * drawn[1]["X"] + 50
    constant = random_inputs(2, gain=(5,), bias=(5,)) | {"X": np.full((2, 5), 3.0)}
    return check_function(
        function,
        right=layer_norm,
        cases=[
            *(Case({name: each[name] for name in ("X", "gain", "bias")}) for each in drawn),
            Case(
                {name: constant[name] for name in ("X", "gain", "bias")},
                "with tokens whose features are all equal",
            ),
        ],
        mistakes=LAYER_NORM_MISTAKES,
        returns=("normalised",),
    )


def check_pre_norm_block(function: Callable) -> Report:
    """Check ``f(X, A, W, W_1, W_2)``: one block without gains and biases, its weights A given."""

    def right(X, A, W, W_1, W_2):
        middle = X + A @ layer_norm(X) @ W
        return middle + gelu(layer_norm(middle) @ W_1) @ W_2

    shapes = {"X": (5, 4), "A": (5, 5), "W": (4, 4), "W_1": (4, 7), "W_2": (7, 4)}
    cases = []
    for seed in (0, 1):
        inputs = random_inputs(seed, **shapes)
        cases.append(Case(inputs | {"X": 2 * inputs["X"] + 1, "A": softmax(inputs["A"])}))
    return check_function(
        function, right=right, cases=cases, mistakes=PRE_NORM_MISTAKES, returns=("stream",)
    )


def check_window_mask(function: Callable) -> Report:
    """Check ``f(n, window)``, which gives a boolean causal mask of `window` keys a query."""
    return check_function(
        function,
        right=lambda n, window: window_mask(n, window=window),
        cases=[Case({"n": 6, "window": 3}), Case({"n": 5, "window": 1}, "the own key only")],
        mistakes=WINDOW_MASK_MISTAKES,
        returns=("mask",),
    )


def check_edge_norms(function: Callable) -> Report:
    """Check ``f(A, V, W_O)``: the length of a_ij v_j W_O for every edge of one head, (n, m)."""

    def case(seed, n, m, d_v, d, note=""):
        inputs = random_inputs(seed, S=(n, m), V=(m, d_v), W_O=(d_v, d))
        return Case({"A": softmax(inputs.pop("S"))} | inputs, note)

    return check_function(
        function,
        right=lambda A, V, W_O: A * np.linalg.norm(V @ W_O, axis=-1),
        cases=[
            case(0, 4, 4, 3, 5),
            case(1, 3, 6, 2, 4, "fewer queries than keys"),
            case(2, 5, 1, 4, 2, "one key"),
        ],
        mistakes=EDGE_NORM_MISTAKES,
        returns=("norms",),
    )


def check_cut_edge(function: Callable) -> Report:
    """Check ``f(A, query, key, renormalise)``: the weights with one edge taken away."""

    def case(seed, n, m, query, key, renormalise, note=""):
        A = softmax(random_inputs(seed, S=(n, m))["S"])
        edge = {"query": query, "key": key, "renormalise": renormalise}
        return Case({"A": A} | edge, note)

    def right(A, query, key, renormalise):
        cut = A.copy()
        cut[query, key] = 0
        if renormalise:
            left = cut[query].sum()
            cut[query] = cut[query] / left if left > 0 else 0
        return cut

    return check_function(
        function,
        right=right,
        cases=[
            case(0, 4, 4, 2, 1, True),
            case(1, 5, 5, 0, 3, False),
            case(2, 3, 6, 1, 2, True, "fewer queries than keys"),
            Case({"A": np.eye(3), "query": 2, "key": 2, "renormalise": True}, "the whole row cut"),
        ],
        mistakes=CUT_EDGE_MISTAKES,
        returns=("weights",),
    )


def check_lookup(function: Callable) -> Report:
    """Check ``f(q, K, V, T)``, a soft lookup of one query by the Gaussian score."""

    def right(q, K, V, T):
        return (attention_weights(gaussian_scores(q[None], K), temperature=T) @ V)[0]

    drawn = [random_inputs(seed, q=(3,), K=(5, 3), V=(5, 2)) for seed in (0, 1)]
    return check_function(
        function,
        right=right,
        cases=[
            Case(drawn[0] | {"T": 0.7}),
            Case(drawn[1] | {"T": 3.0}),
            Case(drawn[0] | {"T": 1e-4}, "at a temperature of 0.0001"),
        ],
        mistakes=LOOKUP_MISTAKES,
        returns=("output",),
    )


def check_online_softmax(function: Callable) -> Report:
    """Check ``f(S, V, tile)``: one query's output, its keys read `tile` at a time.

    S (m,) are the query's scores, −∞ where it may not look; V is (m, d_v). A query with nothing
    to look at must give zeros.
    """
    rising, falling = np.array([3.0, 1, 900, 902, 901]), np.array([902.0, 901, 100, 2, 1])
    empty = np.array([-np.inf, -np.inf, 1, 2])
    return check_function(
        function,
        right=lambda S, V, tile: softmax(S) @ V,
        cases=[
            Case(random_inputs(0, S=(7,), V=(7, 3)) | {"tile": 3}),
            Case(random_inputs(1, S=(6,), V=(6, 2)) | {"tile": 1}),
            Case({"S": rising} | random_inputs(2, V=(5, 2)) | {"tile": 2}, "scores that rise"),
            Case({"S": falling} | random_inputs(3, V=(5, 2)) | {"tile": 2}, "scores that fall"),
            Case(
                {"S": empty, "V": np.array([[5.0], [5], [1], [3]]), "tile": 2},
                "with nothing allowed in the first tile",
            ),
            Case({"S": np.full(4, -np.inf), "V": np.ones((4, 2)), "tile": 2}, "nothing allowed"),
        ],
        mistakes=ONLINE_SOFTMAX_MISTAKES,
        returns=("output",),
    )


def check_linear_attention(function: Callable) -> Report:
    """Check ``f(Q, K, V)``: causal linear attention with the features elu(x) + 1."""
    return check_function(
        function,
        right=lambda Q, K, V: linear_attention(Q, K, V, causal=True),
        cases=[
            Case(random_inputs(0, Q=(6, 3), K=(6, 3), V=(6, 2))),
            Case(random_inputs(1, Q=(4, 5), K=(4, 5), V=(4, 3))),
        ],
        mistakes=LINEAR_ATTENTION_MISTAKES,
        returns=("output",),
    )


def check_embedding(function: Callable) -> Report:
    """Check ``f(ids, E)``, which gives the rows of a table for a list of ids."""
    table = random_inputs(0, E=(6, 4))
    return check_function(
        function,
        right=lambda ids, E: E[ids],
        cases=[
            Case({"ids": np.array([3, 1, 3])} | table),
            Case({"ids": np.array([0, 5])} | table, "with the last id"),
        ],
        mistakes=EMBEDDING_MISTAKES,
        returns=("vectors",),
    )


def check_score_moments(function: Callable) -> Report:
    """Check ``f(d_k, mu_q, sigma_q, mu_k, sigma_k)``: mean and variance of the raw score q·k."""

    def right(d_k, mu_q, sigma_q, mu_k, sigma_k):
        means = mu_q**2 * sigma_k**2 + mu_k**2 * sigma_q**2
        return d_k * mu_q * mu_k, d_k * (sigma_q**2 * sigma_k**2 + means)

    names = ("d_k", "mu_q", "sigma_q", "mu_k", "sigma_k")
    rows = (7, 0.5, 2.0, -3.0, 0.7), (16, 0.5, 1.0, 0.5, 1.0), (64, 0.0, 1.0, 0.0, 1.0)
    return check_function(
        function,
        right=right,
        cases=[Case(dict(zip(names, row, strict=True))) for row in rows],
        mistakes=MOMENT_MISTAKES,
        returns=("mean", "variance"),
    )


def check_query_gradient(function: Callable) -> Report:
    """Check ``f(q, K, V, g)``: the gradient by q (d_k,) of g·o, for one query and scaled scores."""

    def right(q, K, V, g):
        a = attention_weights(attention_scores(q[None], K))
        return g @ query_jacobian(a, K, V)[0]

    return check_function(
        function,
        right=right,
        cases=[
            Case(random_inputs(0, q=(5,), K=(6, 5), V=(6, 3), g=(3,))),
            Case(random_inputs(1, q=(2,), K=(4, 2), V=(4, 5), g=(5,))),
        ],
        mistakes=QUERY_GRADIENT_MISTAKES,
        returns=("gradient",),
    )


def check_attention_backward(function: Callable) -> Report:
    """Check ``f(dO, Q, K, V)``, which gives ``(dQ, dK, dV)`` of scaled attention."""

    def right(dO, Q, K, V):
        return attention_backward(dO, Q, K, V, weights=attention(Q, K, V).weights)

    return check_function(
        function,
        right=right,
        cases=[
            Case(random_inputs(0, dO=(4, 3), Q=(4, 5), K=(6, 5), V=(6, 3))),
            Case(random_inputs(1, dO=(5, 2), Q=(5, 3), K=(5, 3), V=(5, 2)), "as many keys"),
        ],
        mistakes=BACKWARD_MISTAKES,
        returns=("dQ", "dK", "dV"),
    )


def check_adam(function: Callable) -> Report:
    """Check ``f(g, mean, square, step, rate)``: one step of Adam with β = .9 and .99.

    It gives the change of the parameters and the two new means; `step` is 0 at the first step.
    """

    def right(g, mean, square, step, rate):
        zero = {"w": np.zeros_like(g)}
        before = Moments({"w": mean}, {"w": square})
        moved, after = adam_step(zero, {"w": g}, before, step=step, rate=rate)
        return moved["w"], after.mean["w"], after.square["w"]

    first = random_inputs(0, g=(3, 2)) | {"mean": np.zeros((3, 2)), "square": np.zeros((3, 2))}
    later = random_inputs(1, g=(4,), mean=(4,), square=(4,))
    later["square"] = later["square"] ** 2
    return check_function(
        function,
        right=right,
        cases=[
            Case(later | {"step": 4, "rate": 0.1}),
            Case(first | {"step": 0, "rate": 0.01}, "the first step"),
        ],
        mistakes=ADAM_MISTAKES,
        returns=("change", "mean", "square"),
    )


def _orders() -> list[np.ndarray]:
    """Two permutations that are not their own inverse: a reversal would hide a wrong way round."""
    return [np.array([2, 0, 1, 4, 3]), np.array([1, 3, 0, 2])]


def check_moved_scores(function: Callable) -> Report:
    """Check ``f(S, rho)``, which gives P S Pᵀ, where row i of P X is row rho[i] of X."""
    return check_function(
        function,
        right=lambda S, rho: S[rho][:, rho],
        cases=[
            Case(random_inputs(seed, S=(len(rho), len(rho))) | {"rho": rho})
            for seed, rho in enumerate(_orders())
        ],
        mistakes=MOVED_SCORES_MISTAKES,
        returns=("scores",),
    )


def check_order_gap(function: Callable) -> Report:
    """Check ``f(O, O_moved, rho)``, the size ‖O_moved − P O‖ of what a layer noticed."""
    drawn = [
        random_inputs(seed, O=(len(rho), 3), O_moved=(len(rho), 3)) | {"rho": rho}
        for seed, rho in enumerate(_orders())
    ]
    blind = drawn[0] | {"O_moved": drawn[0]["O"][drawn[0]["rho"]]}
    return check_function(
        function,
        right=lambda O, O_moved, rho: np.linalg.norm(O_moved - O[rho]),
        cases=[*map(Case, drawn), Case(blind, "of a layer that is equivariant")],
        mistakes=ORDER_GAP_MISTAKES,
        returns=("gap",),
    )


def check_sinusoids(function: Callable) -> Report:
    """Check ``f(n, d)``, the interleaved sinusoidal table of positions 0 … n − 1."""
    return check_function(
        function,
        right=sinusoidal_positions,
        cases=[
            Case({"n": 7, "d": 6}),
            Case({"n": 4, "d": 5}, "an odd width: the last sine has no cosine"),
            Case({"n": 3, "d": 1}),
        ],
        mistakes=SINUSOID_MISTAKES,
        returns=("table",),
    )


def check_rope(function: Callable) -> Report:
    """Check ``f(X, positions)``, which turns neighbouring coordinates by RoPE."""
    return check_function(
        function,
        right=rope,
        cases=[
            Case(random_inputs(0, X=(5, 6)) | {"positions": np.arange(5)}),
            Case(random_inputs(1, X=(3, 8)) | {"positions": np.array([7, 0, 4])}, "any places"),
        ],
        mistakes=ROPE_MISTAKES,
        returns=("turned",),
    )
