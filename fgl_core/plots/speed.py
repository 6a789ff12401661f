"""How fast, and how cost grows."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from fgl_core.plots.style import COLOURS, FIXED, GREY, MARKERS, WIDTH, grid, styled


@styled()
def ratio_dots(frame: pd.DataFrame) -> Figure:
    """How many times the plain loop's time, with the range over the pairs; log axis.

    Args:
        frame: columns label, ratio, ratio_lowest, ratio_highest.
    """
    figure, axes = plt.subplots(figsize=(WIDTH, 0.9 + 0.32 * len(frame)), layout="constrained")
    places = range(len(frame))
    spread = [frame["ratio"] - frame["ratio_lowest"], frame["ratio_highest"] - frame["ratio"]]
    axes.errorbar(frame["ratio"], places, xerr=spread, fmt="o", color=COLOURS[0], capsize=3)
    axes.axvline(1, color=GREY, linestyle=":")
    axes.set_yticks(places, frame["label"])
    axes.invert_yaxis()
    axes.set_xscale("log", base=2)
    highest = max(frame["ratio_highest"].max(), 2)
    ticks = [2**k for k in range(6) if 2**k <= 2 * highest]
    axes.set_xticks(ticks, [f"{tick} ×" for tick in ticks])
    axes.set_xlabel("Time of the plain loop, in times of this package's")
    grid(axes, "x")
    return figure


@styled()
def growth_lines(frame: pd.DataFrame, axes_of: dict[str, str]) -> Figure:
    """Seconds and memory against what grows: a row of panels for each axis, a line for each method.

    Args:
        frame: columns axis, method, at (a number), seconds, peak_mib.
        axes_of: what the rows show: by name of the axis its label.
    """
    figure, panels = plt.subplots(
        len(axes_of), 2, figsize=(WIDTH, 2.4 * len(axes_of)), squeeze=False, layout="constrained"
    )
    for (name, label), (seconds, memory) in zip(axes_of.items(), panels, strict=True):
        for number, (method, rows) in enumerate(frame[frame["axis"] == name].groupby("method")):
            colour, line = FIXED.get(method, (COLOURS[number], "-"))
            look = {"color": colour, "linestyle": line, "marker": MARKERS[number], "label": method}
            seconds.plot(rows["at"], rows["seconds"], **look)
            memory.plot(rows["at"], rows["peak_mib"] / 1024, **look)
        for axes in (seconds, memory):
            axes.set_xscale("log")
            axes.set_xlabel(label)
            grid(axes, "y")
        seconds.set_yscale("log")
        seconds.set_title("seconds", loc="left")
        memory.set_title("memory, GiB", loc="left")
        memory.set_ylim(bottom=0)
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    return figure
