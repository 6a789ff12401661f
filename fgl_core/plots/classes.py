"""Who holds what: bars of classes per client."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from fgl_core.plots.style import COLOURS, WIDTH, grid, styled


@styled()
def class_bars(counts: Sequence[Sequence[int]], names: Sequence[str] | None = None) -> Figure:
    """How many nodes of each class every client holds: a small bar chart per client, all on one scale.

    Args:
        counts: ``[clients, classes]``.
        names: of the classes; their numbers if not given.
    """
    table = np.asarray(counts)
    rows = len(table)
    figure, panels = plt.subplots(
        rows,
        1,
        figsize=(WIDTH, 0.6 + 0.8 * rows),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for client, axes in enumerate(panels[:, 0]):
        axes.bar(range(table.shape[1]), table[client], color=COLOURS[0])
        axes.set_ylabel(f"client {client + 1}", rotation=0, ha="right", va="center")
        axes.set_xticks(range(table.shape[1]), names or range(table.shape[1]))
        grid(axes, "y")
    panels[-1, 0].set_xlabel("Class")
    figure.supylabel("Nodes", fontsize=12)
    return figure
