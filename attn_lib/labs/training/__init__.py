"""TrainingLab: its class, its figure and its front end."""

from attn_lib.labs.training.lab import TrainingLab as TrainingLab
