"""CostLab's figure: operations and memory over the context length."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from attn_lib.figures import ACCENT, COOL, INK, MUTED, curves, style


def cost_figure(
    lengths: np.ndarray,
    spent: dict[str, np.ndarray],
    variant: str,
    others: dict[str, np.ndarray],
    inputs: dict[str, np.ndarray],
    *,
    at: float | None = None,
    crossings: dict[str, tuple[float, float]] | None = None,
) -> Figure:
    """Draw operations and memory of several ways to attend over the context length.

    Parameters
    ----------
    lengths : ndarray, shape (k,)
    spent : dict of ndarray, shape (2, k)
        By the variant's name: operations and bytes.
    variant : str
        The one to stress.
    others, inputs : dict of ndarray, shape (k,)
        What else takes operations, and what else takes bytes.
    at : float, optional
        A context length to mark.
    crossings : dict, optional
        Points (n, operations) to ring, by name.

    Returns
    -------
    Figure
    """
    with style():
        fig = Figure(figsize=(7.2, 3.4))
        panels = fig.subplots(1, 2)
        for k, (ax, beside, title) in enumerate(
            zip(panels, (others, inputs), ("Multiply-adds", "Bytes held"), strict=True)
        ):
            lines = _cost_lines({name: each[k] for name, each in spent.items()}, variant)
            lines += [
                {"y": y, "label": name, "color": COOL, "linewidth": 1, "linestyle": (0, (4, 2))}
                | {"dot": False}
                for name, y in beside.items()
            ]
            curves(ax, lengths, lines, at=at, scale="log", title=title, apart=0.075)
            ax.set_xticks([2**6, 2**10, 2**14, 2**17, 2**20], ["64", "1k", "16k", "128k", "1M"])
            ax.set_xlabel("context length $n$")
        for name, point in (crossings or {}).items():
            panels[0].plot(*point, "o", mfc="white", mec=INK, ms=5, zorder=3)
            panels[0].annotate(
                name, point, (-5, 4), textcoords="offset points", ha="right", fontsize=8, color=INK
            )
    return fig


def _cost_lines(costs: dict[str, np.ndarray], variant: str) -> list[dict]:
    """Give one line for each cost, equal ones together; the chosen one is stressed."""
    names: dict[bytes, list[str]] = {}
    for name, y in costs.items():
        names.setdefault(y.tobytes(), []).append(name)
    lines = []
    for together in names.values():
        chosen = variant in together
        color, width = (ACCENT, 2) if chosen else (MUTED, 1)
        label = {"y": costs[together[0]], "label": ", ".join(together)}
        lines.append(
            label | {"color": color, "linewidth": width, "zorder": 2 + chosen, "dot": chosen}
        )
    return lines
