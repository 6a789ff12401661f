"""Average ranks on a line: the critical-difference diagram."""

from __future__ import annotations

from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from fgl_core.plots.style import COLOURS, WIDTH, note, styled
from fgl_core.tables.ranks import Ranking


@styled()
def rank_line(ranking: Ranking) -> Figure:
    """Each method at its average rank, the best on top; a bar joins methods that are not told apart."""
    names = list(ranking.ranks.index)
    figure, axes = plt.subplots(figsize=(WIDTH, 1.3 + 0.3 * len(names)), layout="constrained")
    if ranking.blocks < 2:
        note(axes, "missing")
        axes.set_axis_off()
        return figure
    heights = dict(zip(names, range(len(names)), strict=True))
    left, right = 1, len(names)
    for name, height in heights.items():
        rank = ranking.ranks[name]
        axes.plot([left, rank], [height, height], color="#d9d9d9", linewidth=1, zorder=1)
        axes.plot(rank, height, "o", color=COLOURS[0], zorder=3)
        axes.annotate(
            f"{rank:.1f}", (rank, height), (7, 0), textcoords="offset points", va="center", fontsize=10
        )
    for position, (first, last) in enumerate(ranking.groups):
        # left of the best of its methods, so that bars do not cross dots
        at = ranking.ranks[first] - 0.12 - 0.1 * (position % 3)
        axes.plot(
            [at, at], [heights[first] - 0.25, heights[last] + 0.25], color=COLOURS[1], linewidth=4, zorder=2
        )
    low = min(0.6, ranking.ranks.min() - 0.6)
    axes.plot([left, left + ranking.critical], [-1.2, -1.2], color="black", linewidth=2)
    axes.text(
        left + min(ranking.critical, right - left) / 2, -1.45, "critical difference", ha="center", fontsize=10
    )
    axes.set_yticks(range(len(names)), [fill(name, 22) for name in names])
    axes.set_ylim(len(names) - 0.4, -2.1)
    axes.set_xlim(low, max(right, left + ranking.critical) + 0.4)
    axes.set_xticks(np.arange(1, right + 1))
    axes.set_xlabel("average rank, 1 is the best")
    return figure
