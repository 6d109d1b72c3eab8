"""PositionLab: its class, its figure and its front end."""

from attn_lib.labs.position.lab import PositionLab as PositionLab
