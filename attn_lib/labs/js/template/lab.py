"""TemplateLab: what the reader moves, and what follows from it."""

from __future__ import annotations

import numpy as np
import traitlets
from attn_lib.labs.template.figure import template_figure
from matplotlib.figure import Figure

from attn_lib import softmax
from attn_lib.labs.base import Lab
from attn_lib.labs.traits import Real


class TemplateLab(Lab):
    """Move one of two scores: the softmax shares the weight anew.

    Parameters
    ----------
    gap : float, default 1.0
        By how much the first score is higher, −5 … 5.
    name : str, optional
        The lab's id in a page and its name in a link.
    title : str, optional

    Raises
    ------
    TypeError
        If a keyword is none of these.
    ValueError
        If a number is out of its range.

    Notes
    -----
    Chapter 2.
    """

    settings = ("gap",)
    all_controls = first_controls = ("gap",)
    all_panels = first_panels = ("weights",)

    gap = Real(1.0, -5.0, 5.0)
    title = traitlets.Unicode("Two scores, two weights").tag(sync=True)

    @property
    def weights(self) -> np.ndarray:
        """The two weights, (2,)."""
        return softmax([self.gap, 0.0])

    def describe(self) -> str:
        """Say what the first key weighs; lab.js says the same."""
        return f"The first key has weight {self.weights[0]:.3f}."

    def figure(self) -> Figure:
        """Draw both weights with matplotlib."""
        return template_figure(self.weights)
