"""Every figure. Drawn on white, in colours that colour-blind readers tell apart, legible on a phone.

Functions take frames from :mod:`fgl_core.study.tables` and return the figure; they compute no results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH = 6.4  # inches; with the font below, text stays legible when a page is 420 pixels wide
# Okabe and Ito's palette; methods also differ in line style, so that no figure depends on colour alone
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
FIXED = {
    "fedavg": ("#0072B2", "-"),
    "fgssl": ("#D55E00", "-"),
    "local": ("#767676", ":"),
    "global": ("#000000", "--"),
}
STYLES = ("-.", "--", ":", "-")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
RC = {
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "figure.dpi": 130,
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "fgl_core",
}


@contextmanager
def _style() -> Iterator[None]:
    # not matplotlib's rc_context: it would also take back the notebook's own switch to show figures
    before = {name: plt.rcParams[name] for name in RC}
    plt.rcParams.update(RC)
    try:
        yield
    finally:
        plt.rcParams.update(before)


@_style()
def accuracy_per_round(frame: pd.DataFrame, label: str = "Test accuracy in %") -> Figure:
    """Accuracy after each round, a line per method: mean over seeds, band of one standard deviation each way.

    Args:
        frame: from :func:`fgl_core.study.tables.curves_frame`, of one dataset and one number of clients.
    """
    figure, axes = plt.subplots(figsize=(WIDTH, 3.6), layout="constrained")
    for position, ((method, name), rows) in enumerate(frame.groupby(["method", "name"], sort=False)):
        over_seeds = rows.groupby("round")["value"]
        mean, std = 100 * over_seeds.mean(), 100 * over_seeds.std(ddof=1).fillna(0)
        colour, style = _look(name, position)
        axes.plot(mean.index, mean, style, color=colour, label=method, linewidth=2)
        axes.fill_between(mean.index, mean - std, mean + std, color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel="Round", ylabel=label)
    _grid(axes, "y")
    if frame.empty:
        _note(axes, "no record yet")
    else:
        axes.legend(loc="lower right")
    return figure


@_style()
def class_bars(counts: Sequence[Sequence[int]], names: Sequence[str] | None = None) -> Figure:
    """How many nodes of each class every client holds: a small bar chart per client, all on one scale.

    Args:
        counts: ``[clients, classes]``.
        names: of the classes; their numbers if not given.
    """
    table = np.asarray(counts)
    rows = len(table)
    figure, grid = plt.subplots(
        rows,
        1,
        figsize=(WIDTH, 0.6 + 0.8 * rows),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for client, axes in enumerate(grid[:, 0]):
        axes.bar(range(table.shape[1]), table[client], color=COLOURS[0])
        axes.set_ylabel(f"client {client + 1}", rotation=0, ha="right", va="center")
        axes.set_xticks(range(table.shape[1]), names or range(table.shape[1]))
        _grid(axes, "y")
    grid[-1, 0].set_xlabel("Class")
    figure.supylabel("Nodes", fontsize=12)
    return figure


def accuracy_dots(frame: pd.DataFrame) -> Figure:
    """Test accuracy by method: a dot for the mean over seeds, a bar one standard deviation each way.

    Args:
        frame: from :func:`fgl_core.study.tables.comparison`.
    """
    spread = frame["std"].fillna(0)
    drawn = frame.assign(at=frame["mean"], left=frame["mean"] - spread, right=frame["mean"] + spread)
    return _dots(drawn, "Test accuracy in %", missing=frame["n"] == 0)


def difference_dots(frame: pd.DataFrame, baseline: str = "FedAvg") -> Figure:
    """Paired difference to the baseline by method, with its 95 % interval; a line marks no difference.

    Rows of another measure, such as Local's models on everyone's test nodes, are left out.

    Args:
        frame: from :func:`fgl_core.study.tables.comparison`.
    """
    rows = frame[(frame["method"] != baseline) & (frame["measure"] == "test_accuracy")]
    drawn = rows.assign(at=rows["difference"], left=rows["low"], right=rows["high"])
    return _dots(drawn, f"Difference to {baseline} in points", missing=rows["pairs"] == 0, zero=True)


@_style()
def _dots(frame: pd.DataFrame, label: str, missing: pd.Series, zero: bool = False) -> Figure:
    """One panel per dataset, one line per method, one marker per number of clients."""
    datasets, methods = list(dict.fromkeys(frame["dataset"])), list(dict.fromkeys(frame["method"]))
    numbers = sorted(set(frame["clients"]))
    offsets = np.linspace(-0.25, 0.25, len(numbers)) if len(numbers) > 1 else [0.0]
    height = 0.9 + len(datasets) * (0.5 + 0.2 * max(2, len(numbers)) * len(methods))
    figure, grid = plt.subplots(
        len(datasets), 1, figsize=(WIDTH, height), sharex=True, squeeze=False, layout="constrained"
    )
    for dataset, axes in zip(datasets, grid[:, 0], strict=True):
        if zero:
            axes.axvline(0, color="#767676", linewidth=1)
        for position, (number, offset) in enumerate(zip(numbers, offsets, strict=True)):
            rows = frame[(frame["dataset"] == dataset) & (frame["clients"] == number)]
            heights = [methods.index(method) + offset for method in rows["method"]]
            look = {"color": COLOURS[position % 7], "marker": MARKERS[position % 7]}
            _markers(axes, rows, heights, look, f"{number} clients")
            for height_, lacks in zip(heights, missing[rows.index], strict=True):
                if lacks:
                    _missing(axes, height_, look["color"])
        axes.set_yticks(range(len(methods)), methods)
        axes.set_ylim(len(methods) - 0.5, -0.5)
        axes.set_title(dataset, loc="left")
        _grid(axes, "x")
    grid[-1, 0].set_xlabel(label)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _markers(axes: Axes, rows: pd.DataFrame, heights: list[float], look: dict[str, Any], label: str) -> None:
    at, left, right = (100 * rows[column].to_numpy(float) for column in ("at", "left", "right"))
    error = np.nan_to_num(np.vstack([at - left, right - at]))
    axes.errorbar(at, heights, xerr=error, linestyle="none", markersize=6, capsize=3, label=label, **look)


def _missing(axes: Axes, height: float, colour: str) -> None:
    place = axes.get_yaxis_transform()  # x in parts of the axis, y in data
    axes.text(0.01, height, "missing", transform=place, color=colour, fontsize=9, va="center", style="italic")


def _look(name: str, position: int) -> tuple[str, str]:
    return FIXED.get(name, (COLOURS[(position + 2) % 7], STYLES[position % 4]))


def _grid(axes: Axes, axis: str) -> None:
    axes.grid(axis=axis, color="#d9d9d9", linewidth=0.8)
    axes.set_axisbelow(True)


def _note(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center")
