"""Heat maps: pairs of clients, pairs of settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fgl_core.plots.style import WIDTH, ink, note, styled

MAP = "cividis"  # from dark to light, the same for colour-blind readers and in grey
GAP = "#e6e6e6"  # where there is no value


@dataclass(frozen=True)
class Heat:
    """One heat map.

    Attributes:
        values: ``[rows, columns]``; nan where there is none.
        rows, columns: names along the sides; none if not given.
        text: what to write into each cell, ``[rows, columns]``.
    """

    title: str
    values: np.ndarray
    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    text: Sequence[Sequence[str]] | None = None


@styled()
def heat_maps(
    maps: Sequence[Sequence[Heat]],
    labels: Sequence[str],
    *,
    limits: Sequence[tuple[float, float] | None] | None = None,
    xlabel: str = "Client",
    ylabel: str = "Client",
) -> Figure:
    """Heat maps side by side, a colour bar with its label below each column of them.

    Args:
        maps: rows of maps, each as long as ``labels``.
        labels: what the colours of each column mean.
        limits: of each column, the values of the darkest and the lightest colour; None, those of its values.
    """
    side = min(WIDTH / len(labels), 4.5)
    size = (side * len(labels), 0.9 + 0.92 * side * len(maps))
    figure, panels = plt.subplots(len(maps), len(labels), figsize=size, squeeze=False, layout="constrained")
    for column, label in enumerate(labels):
        heats = [line[column] for line in maps]
        low, high = (limits[column] if limits else None) or _limits([heat.values for heat in heats])
        for axes, heat in zip(panels[:, column], heats, strict=True):
            _draw(axes, heat, low, high)
        panels[-1, column].set_xlabel(xlabel)
        drawn = panels[0, column].images[0]
        below = {"location": "bottom", "shrink": 0.9, "ticks": MaxNLocator(5 if len(labels) < 3 else 3)}
        bar = figure.colorbar(drawn, ax=list(panels[:, column]), label=label, **below)
        if all(np.isnan(heat.values).all() for heat in heats):  # colours mean nothing; their place is kept
            bar.ax.set_axis_off()
            bar.solids.set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel(ylabel)
    return figure


def _draw(axes: Axes, heat: Heat, low: float, high: float) -> None:
    values = np.ma.masked_invalid(np.asarray(heat.values, dtype=float))
    colours = plt.colormaps[MAP].with_extremes(bad=GAP)
    image = axes.imshow(values, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    axes.set_title(heat.title, loc="left")
    for spine in axes.spines.values():
        spine.set_visible(False)
    for axis, names, count in (
        (axes.xaxis, heat.columns, values.shape[1]),
        (axes.yaxis, heat.rows, values.shape[0]),
    ):
        if names is None:
            step = max(1, count // 5)
            axis.set_ticks(range(step - 1, count, step), [str(n + 1) for n in range(step - 1, count, step)])
        else:
            axis.set_ticks(range(count), names, fontsize=10)
        axis.set_tick_params(length=0)
    if values.mask.all():
        note(axes, "no record yet")
        return
    if heat.text is not None:
        for (i, j), value in np.ndenumerate(values.filled(np.nan)):
            behind = GAP if np.isnan(value) else image.to_rgba(value)
            axes.text(j, i, heat.text[i][j], ha="center", va="center", color=ink(behind))


def _limits(parts: Sequence[np.ndarray]) -> tuple[float, float]:
    values = np.concatenate([np.ravel(part) for part in parts])
    values = values[~np.isnan(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)
