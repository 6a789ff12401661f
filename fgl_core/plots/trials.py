"""Validation accuracy against the values that were tried."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from fgl_core.plots.style import COLOURS, MARKERS, WIDTH, grid, note, styled

ACROSS = 2  # panels side by side


@styled()
def trial_panels(frame: pd.DataFrame, *, connect: bool = True) -> Figure:
    """A panel per method and parameter: a dot per trial, a colour per dataset, the best one ringed.

    A trial of which a run diverged has no height: it is a cross at the bottom.

    Args:
        frame: from :func:`fgl_core.tables.tuning.responses`.
        connect: join a dataset's dots, where nothing else differs between them.
    """
    panels = list(frame.groupby(["method", "parameter"], sort=False))
    down = max(1, -(-len(panels) // ACROSS))
    figure, places = plt.subplots(
        down, ACROSS, figsize=(WIDTH, 0.9 + 2.0 * down), sharey=True, squeeze=False, layout="constrained"
    )
    datasets = list(dict.fromkeys(frame["dataset"]))
    for axes, ((method, parameter), rows) in zip(places.flat, panels, strict=False):
        for position, dataset in enumerate(datasets):
            part = rows[rows["dataset"] == dataset].sort_values("at")
            _dots(axes, part, COLOURS[position], MARKERS[position], dataset, connect)
        axes.set_xscale("log")
        narrow = rows["at"].max() < 100 * rows["at"].min()
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if narrow else (1.0,), numticks=5))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.margins(y=0.12)  # room for a ring at the top
        axes.set_title(method, loc="left")
        axes.set_xlabel(parameter)
        grid(axes, "y")
    for axes in places.flat[len(panels) :]:
        axes.set_axis_off()
    if not panels:
        note(places[0, 0], "no trial yet")
    else:
        handles, names = places[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    figure.supylabel("Validation accuracy in %", fontsize=12)
    return figure


def _dots(axes: Axes, rows: pd.DataFrame, colour: str, marker: str, label: str, connect: bool) -> None:
    done, broken = rows[~rows["diverged"]], rows[rows["diverged"]]
    style = "-" if connect else "none"
    axes.plot(
        done["at"], 100 * done["value"], marker, linestyle=style, color=colour, markersize=5, label=label
    )
    for _, row in rows[rows["chosen"]].iterrows():
        axes.plot(row["at"], 100 * row["value"], "o", color=colour, markersize=12, fillstyle="none")
    bottom = axes.get_xaxis_transform()  # x in data, y in parts of the axis
    axes.plot(broken["at"], [0.03] * len(broken), "x", color=colour, markersize=7, transform=bottom)
