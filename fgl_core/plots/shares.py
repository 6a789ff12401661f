"""What members of a set are made of: bars with the spread over members."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fgl_core.plots.style import COLOURS, WIDTH, grid, note, styled


@styled()
def share_bars(frame: pd.DataFrame, xlabel: str, ylabel: str) -> Figure:
    """A panel per set, a bar per column: the mean over graphs, a line from the 10th to the 90th percentile.

    Args:
        frame: from :func:`fgl_core.tables.graph_sets.share_frame`.
        xlabel, ylabel: what columns and values are.
    """
    parts = list(frame.groupby("dataset", sort=False)) or [("", frame)]
    figure, places = plt.subplots(
        len(parts), 1, figsize=(WIDTH, 0.5 + 1.9 * len(parts)), squeeze=False, layout="constrained"
    )
    for axes, (dataset, part) in zip(places[:, 0], parts, strict=True):
        at = np.arange(len(part))
        axes.bar(at, part["mean"], width=0.7, color=COLOURS[5])
        axes.vlines(at, part["low"], part["high"], color="black", linewidth=2)
        axes.set_xticks(at, part["column"], rotation=30 if len(part) > 8 else 0)
        axes.set_ylim(bottom=min(0.0, part["low"].min()) if len(part) else 0)
        axes.set_title(dataset, loc="left")
        grid(axes, "y")
    places[-1, 0].set_xlabel(xlabel)
    figure.supylabel(ylabel, fontsize=12)
    if frame.empty:
        note(places[0, 0], "no record yet")
    return figure
