"""CrossLab: its class, its figure and its front end."""

from attn_lib.labs.cross.lab import CrossLab as CrossLab
