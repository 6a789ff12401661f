"""Who holds what: bars of classes per client."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from fgl_core.plots.style import COLOURS, WIDTH, grid, note, styled

HATCHES = ("", "///", "...")  # a second round through the colours


@styled()
def class_bars(counts: Sequence[Sequence[int]]) -> Figure:
    """How many nodes of each class every client holds: a small bar chart per client, all on one scale.

    Args:
        counts: ``[clients, classes]``.
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
        axes.set_ylabel(f"client {client + 1}", rotation=0, ha="right", va="center", labelpad=12)
        axes.set_xticks(range(table.shape[1]))
        grid(axes, "y")
    panels[-1, 0].set_xlabel("Class")
    figure.supylabel("Nodes", fontsize=12)
    return figure


@styled()
def class_panels(panels: Sequence[Sequence[tuple[str, np.ndarray | None]]]) -> Figure:
    """Stacked bars, one per client, of how many nodes of each class it holds.

    Args:
        panels: rows of panels, each a title and counts ``[clients, classes]``; None where there are none.
    """
    rows, columns = len(panels), len(panels[0])
    figure, places = plt.subplots(
        rows, columns, figsize=(WIDTH, 0.9 + 1.9 * rows), sharey="row", squeeze=False, layout="constrained"
    )
    for axes, (title, counts) in zip(places.flat, [panel for row in panels for panel in row], strict=True):
        axes.set_title(title, loc="left")
        grid(axes, "y")
        axes.set_xticks([])
        if counts is None:
            axes.set_yticks([])
            note(axes, "no record yet")
            continue
        floor = np.zeros(len(counts))
        for number, heights in enumerate(np.asarray(counts).T):
            look = {"color": COLOURS[number % 7], "hatch": HATCHES[number // 7 % len(HATCHES)]}
            axes.bar(
                range(len(counts)),
                heights,
                bottom=floor,
                width=0.85,
                edgecolor="white",
                linewidth=0.4,
                label=f"class {number}",
                **look,
            )
            floor += heights
    for axes in places[:, 0]:
        axes.set_ylabel("Nodes")
    for axes in places[-1]:
        axes.set_xlabel("Clients, largest first")
    drawn = [axes.get_legend_handles_labels() for axes in places.flat]
    handles, names = max(drawn, key=lambda pair: len(pair[1]))
    if names:
        figure.legend(handles, names, loc="outside lower center", ncols=4)
    return figure
