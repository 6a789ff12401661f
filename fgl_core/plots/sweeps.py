"""Accuracy against the value of a parameter."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fgl_core.plots.style import COLOURS, FIXED, WIDTH, grid, styled


@styled()
def sweep_lines(
    frame: pd.DataFrame, parameter: str, label: str, *, reference: pd.DataFrame | None = None
) -> Figure:
    """Mean accuracy over seeds at each value of a parameter, bars of one standard deviation; log axis.

    A panel per dataset, a line per number of clients. A value without a finished run is marked at the bottom,
    and also where some of the seeds diverged.

    Args:
        frame: from :func:`fgl_core.tables.sweeps.with_fields`, with a column ``parameter``.
        label: of the parameter's axis.
        reference: rows of a comparison to draw as dashed lines, e.g. FedAvg's.
    """
    datasets = list(dict.fromkeys(frame["dataset"]))
    values = sorted(set(frame[parameter]))
    figure, panels = plt.subplots(
        len(datasets),
        1,
        figsize=(WIDTH, 0.9 + 2.1 * len(datasets)),
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for dataset, axes in zip(datasets, panels[:, 0], strict=True):
        here = frame[frame["dataset"] == dataset]
        for position, (clients, rows) in enumerate(here.groupby("clients")):
            colour = FIXED["fgssl"][0] if position == 0 else COLOURS[position % 7]
            rows = rows.sort_values(parameter)
            spread = 100 * rows["std"].fillna(0)
            axes.errorbar(
                rows[parameter],
                100 * rows["mean"],
                yerr=spread,
                color=colour,
                marker="o",
                capsize=3,
                label=f"{clients} clients",
            )
            _remarks(axes, rows, parameter, colour)
        if reference is not None:
            _reference(axes, reference[reference["dataset"] == dataset])
        axes.set_xscale("log")
        axes.margins(x=0.08)  # words below the first and the last value stay inside
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.set_xticks([], minor=True)
        axes.set_title(dataset, loc="left")
        grid(axes, "y")
        if not here["n"].any():
            axes.set_yticks([])  # nothing to be read off
    panels[-1, 0].set_xlabel(label)
    figure.supylabel("Test accuracy in %", fontsize=12)
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    return figure


def _remarks(axes: Axes, rows: pd.DataFrame, parameter: str, colour: str) -> None:
    if (rows["n"] == 0).any() or (rows["diverged"] > 0).any():
        axes.margins(y=0.25)  # room for the words
    place = axes.get_xaxis_transform()  # x in data, y in parts of the axis
    for _, row in rows.iterrows():
        words = []
        if row["n"] == 0:
            words.append("missing")
        if row["diverged"]:
            words.append(f"{row['diverged']} diverged")
        if words:
            axes.axvline(row[parameter], color=colour, linewidth=0)  # so that the axis reaches the value
            axes.text(
                row[parameter],
                0.03,
                "\n".join(words),
                transform=place,
                ha="center",
                va="bottom",
                color=colour,
                fontsize=10,
                style="italic",
            )


def _reference(axes: Axes, rows: pd.DataFrame) -> None:
    for _, row in rows.iterrows():
        if not np.isnan(row["mean"]):
            axes.axhline(100 * row["mean"], color="#0072B2", linestyle="--", label=row["method"])
