"""The labs: interactive figures that compute attention as you move something.

In Jupyter a lab is an ipywidget. In a built page, with no kernel, the same front end computes the
same numbers; ``js/`` holds its source, ``static/`` what is bundled from it.
"""

from attn_lib.labs.attention_lab import AttentionLab
from attn_lib.labs.base import overview
from attn_lib.labs.contribution_lab import ContributionLab
from attn_lib.labs.cost_lab import CostLab
from attn_lib.labs.heads_lab import HeadsLab
from attn_lib.labs.lookup_lab import LookupLab
from attn_lib.labs.mask_lab import MaskLab
from attn_lib.labs.position_lab import PositionLab
from attn_lib.labs.score_scale_lab import ScoreScaleLab
from attn_lib.labs.tiling_lab import TilingLab
from attn_lib.labs.training_lab import TrainingLab

__all__ = [
    "AttentionLab",
    "ContributionLab",
    "CostLab",
    "HeadsLab",
    "LookupLab",
    "MaskLab",
    "PositionLab",
    "ScoreScaleLab",
    "TilingLab",
    "TrainingLab",
    "overview",
]
