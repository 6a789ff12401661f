"""Lines over communication rounds."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from fgl_core.plots.style import WIDTH, grid, looks, note, styled


@styled()
def accuracy_per_round(frame: pd.DataFrame, label: str = "Test accuracy in %") -> Figure:
    """Accuracy after each round, a line per method: mean over seeds, band of one standard deviation each way.

    Args:
        frame: from :func:`fgl_core.study.tables.curves_frame`, of one dataset and one number of clients.
    """
    figure, axes = plt.subplots(figsize=(WIDTH, 3.6), layout="constrained")
    lines = list(frame.groupby(["method", "name"], sort=False))
    look = looks(key for key, _ in lines)
    for (method, _), rows in lines:
        over_seeds = rows.groupby("round")["value"]
        mean, std = 100 * over_seeds.mean(), 100 * over_seeds.std(ddof=1).fillna(0)
        colour, style = look[method]
        axes.plot(mean.index, mean, style, color=colour, label=method, linewidth=2)
        axes.fill_between(mean.index, mean - std, mean + std, color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel="Round", ylabel=label)
    grid(axes, "y")
    if frame.empty:
        note(axes, "no record yet")
    else:
        axes.legend(loc="lower right")
    return figure
