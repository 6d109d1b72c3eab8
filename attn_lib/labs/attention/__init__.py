"""AttentionLab: its class, its figure and its front end."""

from attn_lib.labs.attention.lab import AttentionLab as AttentionLab
