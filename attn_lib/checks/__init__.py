"""Checks for the exercises: they say whether an answer is right, and if not, why.

A check runs the reader's function on generated inputs and compares it with `attn_lib`. A
wrong answer is compared with a table of known mistakes, each a small function, on inputs where all
of them differ; the one that gives the same numbers is named, with the reason why it matters.

A chapter asks by the exercise's label, ``check("ex-qkv-softmax", my_softmax)``, so that no page and
no notebook holds a right answer; a grader writes ``assert check("ex-qkv-softmax", answer).ok``. To
add a check, give `check_function` the right function, a few inputs and a table, in the file of the
chapter; for an exercise by hand, give `by_hand` the right value and some wrong ones; and name it
under the exercise's label in that file's ``EXERCISES``.
"""

# ruff: noqa: F403 - a check is listed once, in the file of its chapter

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
from attn_lib.checks.block import *
from attn_lib.checks.context import *
from attn_lib.checks.cost import *
from attn_lib.checks.cross_attention import *
from attn_lib.checks.engine import (
    Case,
    Mistake,
    Report,
    by_hand,
    check_function,
    check_value,
    random_inputs,
)
from attn_lib.checks.equivariance import *
from attn_lib.checks.exercises import EXERCISES, check
from attn_lib.checks.heads import *
from attn_lib.checks.interpretation import *
from attn_lib.checks.learning import *
from attn_lib.checks.masking import *
from attn_lib.checks.other_attentions import *
from attn_lib.checks.positions import *
from attn_lib.checks.qkv import *
from attn_lib.checks.real_model import *
from attn_lib.checks.scaling import *

__all__ = [
    "EXERCISES",
    "Case",
    "Mistake",
    "Report",
    "by_hand",
    "check",
    "check_function",
    "check_value",
    "random_inputs",
]
__all__ += block.__all__
__all__ += context.__all__
__all__ += cost.__all__
__all__ += cross_attention.__all__
__all__ += equivariance.__all__
__all__ += heads.__all__
__all__ += interpretation.__all__
__all__ += learning.__all__
__all__ += masking.__all__
__all__ += other_attentions.__all__
__all__ += positions.__all__
__all__ += qkv.__all__
__all__ += real_model.__all__
__all__ += scaling.__all__
