"""How the members of sets spread: a line per set, from its smallest to its largest."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator, SymmetricalLogLocator

from fgl_core.plots.style import COLOURS, WIDTH, grid, styled


@styled()
def spreads(frame: pd.DataFrame, labels: Mapping[str, str]) -> Figure:
    """Percentiles of each set, a panel per measure, on a scale that is logarithmic from 1 on.

    A dot is the median; thick from the 25th to the 75th percentile, thin from the 5th to the 95th; crosses
    are the smallest and the largest.

    Args:
        frame: from :func:`fgl_core.tables.graph_sets.spread_frame`.
        labels: of the measures, in the order of the panels.
    """
    sets = list(dict.fromkeys(frame["dataset"]))
    height = 0.4 + len(labels) * (0.8 + 0.3 * len(sets))
    figure, places = plt.subplots(
        len(labels), 1, figsize=(WIDTH, height), squeeze=False, layout="constrained"
    )
    for axes, (measure, label) in zip(places[:, 0], labels.items(), strict=True):
        axes.set_xscale("symlog", linthresh=1, linscale=0.4)
        for position, row in enumerate(frame[frame["measure"] == measure].to_dict("records")):
            _line(axes, position, row)
        axes.set_yticks(range(len(sets)), sets)
        axes.set_ylim(len(sets) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=1))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_title(label, loc="left")
        grid(axes, "x")
    return figure


def _line(axes: Axes, height: int, row: Mapping) -> None:
    if pd.isna(row[50]):
        axes.text(0.01, height, "missing", transform=axes.get_yaxis_transform(), va="center", style="italic")
        return
    colour = COLOURS[0]
    axes.plot([row[0], row[100]], [height] * 2, "x", color=colour, markersize=5, clip_on=False, zorder=4)
    axes.plot([row[5], row[95]], [height] * 2, color=colour, linewidth=1.2)
    axes.plot([row[25], row[75]], [height] * 2, color=colour, linewidth=5, solid_capstyle="butt")
    axes.plot(row[50], height, "o", color="white", markeredgecolor="black", markersize=6, zorder=5)
