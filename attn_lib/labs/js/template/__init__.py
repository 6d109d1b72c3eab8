"""TemplateLab: its class, its figure and its front end."""

from attn_lib.labs.template.lab import TemplateLab as TemplateLab
