"""The exercises that have a check, by their labels."""

from difflib import get_close_matches
from typing import Any

from attn_lib.checks import (
    block,
    context,
    cost,
    cross_attention,
    equivariance,
    heads,
    interpretation,
    learning,
    masking,
    other_attentions,
    positions,
    qkv,
    real_model,
    scaling,
)
from attn_lib.checks.engine import Report

CHAPTERS = (
    context,
    qkv,
    scaling,
    equivariance,
    positions,
    masking,
    cross_attention,
    heads,
    block,
    learning,
    cost,
    other_attentions,
    interpretation,
    real_model,
)
EXERCISES = {
    label: answered
    for chapter in CHAPTERS
    for label, answered in getattr(chapter, "EXERCISES", {}).items()
}


def check(exercise: str, answer: Any) -> Report:
    """Check an answer to an exercise, and say what went wrong.

    Parameters
    ----------
    exercise : str
        Its label, as in ``"ex-qkv-softmax"``.
    answer : callable or array_like
        A function for an exercise in code, without calling it; numbers for one by hand. None or
        ... stand for no answer yet.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        If no exercise of this label has a check.
    """
    if exercise not in EXERCISES:
        near = get_close_matches(str(exercise), EXERCISES, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"no exercise {exercise!r} has a check.{meant}")
    return EXERCISES[exercise](answer)
