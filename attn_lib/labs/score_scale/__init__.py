"""ScoreScaleLab: its class, its figure and its front end."""

from attn_lib.labs.score_scale.lab import ScoreScaleLab as ScoreScaleLab
