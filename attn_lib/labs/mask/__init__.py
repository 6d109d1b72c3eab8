"""MaskLab: its class, its figure and its front end."""

from attn_lib.labs.mask.lab import MaskLab as MaskLab
