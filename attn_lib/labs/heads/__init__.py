"""HeadsLab: its class, its figure and its front end."""

from attn_lib.labs.heads.lab import HeadsLab as HeadsLab
