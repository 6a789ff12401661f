"""Lines over communication rounds."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fgl_core.plots.style import WIDTH, grid, looks, note, styled


def accuracy_per_round(frame: pd.DataFrame, label: str = "Test accuracy in %") -> Figure:
    """Accuracy after each round, a line per method: mean over seeds, band of one standard deviation each way.

    Args:
        frame: from :func:`fgl_core.tables.frames.curves_frame`, of one dataset and one number of clients.
    """
    return per_round(frame.assign(value=100 * frame["value"]), label)


@styled()
def per_round(
    frame: pd.DataFrame,
    label: str,
    *,
    panels: str | None = None,
    xlabel: str = "Round",
    missing: str = "no record yet",
) -> Figure:
    """A measure per round, a line per method: mean over seeds, band of one standard deviation each way.

    Args:
        frame: columns method, name, seed, round, value, as
            :func:`fgl_core.tables.frames.curves_frame` makes them.
        label: of the measure.
        panels: a column with a panel for each of its values, e.g. ``clients`` or ``dataset``.
        xlabel: what ``round`` counts, where it is not communication rounds.
        missing: what to write where there is nothing to draw.
    """
    parts = list(frame.groupby(panels, sort=False)) if panels else [("", frame)]
    parts = parts or [("", frame)]
    figure, places = plt.subplots(
        len(parts),
        1,
        figsize=(WIDTH, 0.6 + 3.0 * len(parts)),
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    look = looks(key for key, _ in frame.groupby(["method", "name"], sort=False))
    for axes, (value, part) in zip(places[:, 0], parts, strict=True):
        _lines(axes, part, look)
        axes.set_ylabel(label)
        if panels and value:
            axes.set_title(f"{value} clients" if panels == "clients" else value, loc="left")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        grid(axes, "y")
    places[-1, 0].set_xlabel(xlabel)
    if frame.empty:
        note(places[0, 0], missing)
    else:
        _legend(figure, places[0, 0], len(look))
    return figure


def _lines(axes: Axes, frame: pd.DataFrame, look: dict[str, tuple[str, str]]) -> None:
    for method, rows in frame.groupby("method", sort=False):
        over_seeds = rows.groupby("round")["value"]
        mean, std = over_seeds.mean(), over_seeds.std(ddof=1).fillna(0)
        colour, style = look[method]
        marker = "o" if len(mean) == 1 else None  # a single value makes no line
        axes.plot(mean.index, mean, style, color=colour, label=method, linewidth=2, marker=marker)
        axes.fill_between(mean.index, mean - std, mean + std, color=colour, alpha=0.15, linewidth=0)


def _legend(figure: Figure, axes: Axes, lines: int) -> None:
    if lines < 4:
        axes.legend(loc="best")
    else:  # many lines leave no room
        handles, names = axes.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2)
