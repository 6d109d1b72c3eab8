"""LookupLab: its class, its figure and its front end."""

from attn_lib.labs.lookup.lab import LookupLab as LookupLab
