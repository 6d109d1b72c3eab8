"""TilingLab: its class, its figure and its front end."""

from attn_lib.labs.tiling.lab import TilingLab as TilingLab
