"""One dot per cell of a table, with its interval."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fgl_core.plots.style import COLOURS, GREY, MARKERS, WIDTH, grid, styled

FAR = 4  # times as far out as three quarters of the values: an axis becomes logarithmic
TICKS = (1, 2, 5, 10, 20, 50, 100)  # points


@styled()
def difference_dots(frame: pd.DataFrame, baseline: str | None = "FedAvg") -> Figure:
    """Paired difference to the baseline by method, with its 95 % interval; a line marks no difference.

    One panel per dataset, one line per method, one marker per number of clients. Where all of a dataset is
    missing, its panel is a line that says so. Rows of another measure, such as Local's models on everyone's
    test nodes, are left out.

    Args:
        frame: from :func:`fgl_core.tables.cells.comparison` or
            :func:`fgl_core.tables.contrasts.contrasts`.
        baseline: its label; None where each row names both sides.
    """
    frame = frame[(frame["method"] != baseline) & (frame["measure"] == "test_accuracy")]
    label = f"Difference to {baseline} in points" if baseline else "Difference in points"
    datasets, methods = list(dict.fromkeys(frame["dataset"])), list(dict.fromkeys(frame["method"]))
    places = frame.groupby("dataset", sort=False)["clients"].unique().map(sorted)
    numbers = sorted(set(frame["clients"]))
    empty = frame.groupby("dataset")["pairs"].max() == 0
    lines = {dataset: 1 if empty[dataset] else len(methods) for dataset in datasets}
    tall = [0.5 + 0.2 * max(2, len(places[dataset])) * lines[dataset] for dataset in datasets]
    figure, panels = plt.subplots(
        len(datasets),
        1,
        figsize=(WIDTH, 0.9 + sum(tall)),
        height_ratios=tall,
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    near = _near(100 * frame["difference"])
    for dataset, axes in zip(datasets, panels[:, 0], strict=True):
        axes.axvline(0, color=GREY, linewidth=1)
        axes.set_title(dataset, loc="left")
        if empty[dataset]:
            _missing(axes, 0.5, GREY)
            axes.set_yticks([])
            continue
        here = places[dataset]
        offsets = np.linspace(-0.25, 0.25, len(here)) if len(here) > 1 else [0.0]
        for number, offset in zip(here, offsets, strict=True):
            position = numbers.index(number)
            rows = frame[(frame["dataset"] == dataset) & (frame["clients"] == number)]
            heights = [methods.index(method) + offset for method in rows["method"]]
            look = {"color": COLOURS[position % 7], "marker": MARKERS[position % 7]}
            _markers(axes, rows, heights, look, f"{number} clients")
            for height, pairs in zip(heights, rows["pairs"], strict=True):
                if pairs == 0:
                    _missing(axes, height, look["color"])
        axes.set_yticks(range(len(methods)), [fill(method, 22) for method in methods])
        axes.set_ylim(len(methods) - 0.5, -0.5)
        if near is None:
            axes.locator_params(axis="x", nbins=6)
        else:
            _widen(axes, near)
        grid(axes, "x")
    panels[-1, 0].set_xlabel(label if near is None else f"{label} (logarithmic beyond ±{near:g})")
    drawn = {
        name: handle
        for axes in panels[:, 0]
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    names = [name for number in numbers if (name := f"{number} clients") in drawn]
    figure.legend([drawn[name] for name in names], names, loc="outside lower center", ncols=3)
    return figure


def _markers(axes: Axes, rows: pd.DataFrame, heights: list[float], look: dict[str, Any], label: str) -> None:
    at, left, right = (100 * rows[column].to_numpy(float) for column in ("difference", "low", "high"))
    error = np.nan_to_num(np.vstack([at - left, right - at]))
    axes.errorbar(at, heights, xerr=error, linestyle="none", markersize=6, capsize=3, label=label, **look)


def _near(values: pd.Series) -> float | None:
    """Up to where an axis should be linear, if single values lie so far out that they squeeze all others."""
    sizes = values.abs().dropna()
    if sizes.empty:
        return None
    near = next(tick for tick in TICKS if tick >= sizes.quantile(0.75))
    return near if sizes.max() >= FAR * near else None


def _widen(axes: Axes, near: float) -> None:
    axes.set_xscale("symlog", linthresh=near, linscale=1.5)
    low, high = axes.get_xlim()
    ticks = [0.0, *(sign * tick for tick in (near / 2, *TICKS) for sign in (1, -1))]
    shown = [t for t in ticks if low <= t <= high and (abs(t) >= near or abs(t) in (0, near / 2))]
    axes.set_xticks(shown, [f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in shown])
    axes.minorticks_off()


def _missing(axes: Axes, height: float, colour: str) -> None:
    place = axes.get_yaxis_transform()  # x in parts of the axis, y in data
    axes.text(
        0.01, height, "missing", transform=place, color=colour, fontsize=10, va="center", style="italic"
    )
