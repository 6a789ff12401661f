"""Standard deviations with their intervals, a panel per dataset."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fgl_core.plots.style import COLOURS, MARKERS, WIDTH, grid, styled


@styled()
def deviation_dots(frame: pd.DataFrame, labels: Mapping[str, str]) -> Figure:
    """A dot per source of chance and quantity, in points, with the 95 % interval of the deviation.

    Args:
        frame: from :func:`fgl_core.tables.noise.spreads_by_source`.
        labels: of the sources, in the order in which they are drawn.
    """
    datasets, what = list(dict.fromkeys(frame["dataset"])), list(dict.fromkeys(frame["what"]))
    size = WIDTH, 0.9 + len(datasets) * (0.4 + 0.45 * len(labels))
    figure, panels = plt.subplots(
        len(datasets), 1, figsize=size, sharex=True, squeeze=False, layout="constrained"
    )
    offsets = np.linspace(-0.22, 0.22, len(what))
    for dataset, axes in zip(datasets, panels[:, 0], strict=True):
        for position, (name, offset) in enumerate(zip(what, offsets, strict=True)):
            rows = frame[(frame["dataset"] == dataset) & (frame["what"] == name)].set_index("source")
            rows = 100 * rows.reindex(list(labels))[["std", "low", "high"]]
            error = np.nan_to_num([rows["std"] - rows["low"], rows["high"] - rows["std"]])
            look = {"color": COLOURS[position], "marker": MARKERS[position], "label": name}
            axes.errorbar(
                rows["std"], np.arange(len(labels)) + offset, xerr=error, linestyle="none", capsize=3, **look
            )
        axes.set_yticks(range(len(labels)), list(labels.values()))
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.set_title(dataset, loc="left")
        grid(axes, "x")
    panels[-1, 0].set_xlabel("Standard deviation of the test accuracy in points")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
