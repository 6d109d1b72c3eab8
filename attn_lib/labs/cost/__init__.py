"""CostLab: its class, its figure and its front end."""

from attn_lib.labs.cost.lab import CostLab as CostLab
