"""ContributionLab: its class, its figure and its front end."""

from attn_lib.labs.contribution.lab import ContributionLab as ContributionLab
