"""TemplateLab's figure: two bars."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from attn_lib.figures import ACCENT, style


def template_figure(weights: np.ndarray) -> Figure:
    """Draw each weight as a bar."""
    with style():
        fig = Figure(figsize=(7.2, 1.4))
        ax = fig.subplots()
        ax.barh(["first", "second"], weights, height=0.5, color=ACCENT)
        ax.set(xlim=(0, 1), title="Weights")
        ax.invert_yaxis()
    return fig
