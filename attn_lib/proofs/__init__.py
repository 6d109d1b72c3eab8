"""The book's proofs, each step computed by sympy and shown with its reason.

Every function returns a `Proof`: make it the last expression of a cell, or print it. Nothing in
it is taken on trust: ``proof.holds`` compares both sides of every step, and
``proof.claiming(...)`` puts another claim in place of the conclusion, to watch it fail.

There is one file a chapter, in the order of the chapter. What such a file names in its
``__all__`` is imported from here.
"""

# ruff: noqa: F403 - a proof is listed once, in the file of its chapter

from attn_lib.extras import missing

try:
    import sympy  # noqa: F401
except ModuleNotFoundError as error:
    raise missing(error, "book") from None

from attn_lib.proofs import (
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
    scaling,
)
from attn_lib.proofs.block import *
from attn_lib.proofs.context import *
from attn_lib.proofs.cost import *
from attn_lib.proofs.cross_attention import *
from attn_lib.proofs.equivariance import *
from attn_lib.proofs.heads import *
from attn_lib.proofs.interpretation import *
from attn_lib.proofs.learning import *
from attn_lib.proofs.masking import *
from attn_lib.proofs.other_attentions import *
from attn_lib.proofs.positions import *
from attn_lib.proofs.qkv import *
from attn_lib.proofs.scaling import *
from attn_lib.proofs.steps import Proof, Step

__all__ = ["Proof", "Step"]
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
__all__ += scaling.__all__
