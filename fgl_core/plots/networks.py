"""Networks of up to a few hundred nodes: what each client holds, and how far a value has spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fgl_core.plots.heat import MAP
from fgl_core.plots.style import ACROSS, COLOURS, GREY, WIDTH, in_lines, styled

MARKERS = ("o", "^", "s")  # a second and third round through the colours
OUTLINE = {"edgecolors": "black", "linewidths": 0.8}


@styled()
def client_networks(partitions: Mapping[str, Sequence[tuple[np.ndarray, np.ndarray]]]) -> Figure:
    """Every client's own graph, nodes in the colour and shape of their class.

    Args:
        partitions: by name, the clients' edges ``[e, 2]`` in their own numbering, and classes ``[n]``.
    """
    lines = in_lines(partitions)
    figure, places = plt.subplots(
        len(lines),
        ACROSS,
        figsize=(WIDTH, 0.6 + 2.1 * len(lines)),
        squeeze=False,
        layout="constrained",
    )
    _clear(places)
    for row, (name, start, parts) in zip(places, lines, strict=True):
        for number, axes, (edges, classes) in zip(count(start + 1), row, parts, strict=False):
            _draw_classes(axes, edges, classes)
            whose = f"{name}, client" if number == start + 1 else "client"
            axes.set_title(f"{whose} {number}", fontsize=11, loc="left")
    seen = np.unique(np.concatenate([classes for parts in partitions.values() for _, classes in parts]))
    figure.legend(
        handles=[Line2D([], [], linestyle="", label=f"class {label}", **_look(label)) for label in seen],
        loc="outside lower center",
        ncols=4,
    )
    return figure


@styled()
def spreading(edges: np.ndarray, steps: Mapping[str, np.ndarray], label: str) -> Figure:
    """One graph, drawn again for each step with its nodes in the colour of their value; white where it is 0.

    Args:
        edges: ``[e, 2]``.
        steps: by title, a value per node ``[n]``, 0 or above.
        label: of the values.
    """
    rows = (len(steps) + 1) // 2
    figure, panels = plt.subplots(
        rows,
        2,
        figsize=(WIDTH, 0.8 + 2.5 * rows),
        squeeze=False,
        layout="constrained",
    )
    _clear(panels)
    points = _places(edges, len(next(iter(steps.values()))))
    colours = plt.colormaps[MAP].with_extremes(under="white")
    for axes, (title, values) in zip(panels.flat, steps.items(), strict=False):
        axes.plot(*points[edges].transpose(2, 1, 0), color=GREY, linewidth=0.8, zorder=1)
        drawn = axes.scatter(*points.T, c=values, s=60, cmap=colours, vmin=1e-9, vmax=1, zorder=2, **OUTLINE)
        axes.set_title(title, loc="left")
    figure.colorbar(drawn, ax=panels, location="bottom", shrink=0.7, label=label)
    return figure


def _clear(panels: np.ndarray) -> None:
    for axes in panels.flat:
        axes.set_axis_off()
        axes.set_aspect("equal", adjustable="datalim")  # all panels alike, whatever the shape of their graph
        axes.margins(0.08)


def _draw_classes(axes: Axes, edges: np.ndarray, classes: np.ndarray) -> None:
    points = _places(edges, len(classes))
    axes.plot(*points[edges].transpose(2, 1, 0), color=GREY, linewidth=0.4, zorder=1)
    for label in np.unique(classes):
        look = _look(label) | {"markersize": 3}
        axes.plot(*points[classes == label].T, linestyle="", zorder=2, **look)


def _look(label: int) -> dict[str, str]:
    return {"color": COLOURS[label % len(COLOURS)], "marker": MARKERS[label // len(COLOURS) % len(MARKERS)]}


def _places(edges: np.ndarray, nodes: int) -> np.ndarray:
    """Where nodes are drawn, ``[n, 2]``: edges pull, nodes push; wide rather than tall."""
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(np.asarray(edges).tolist())
    places = nx.spring_layout(graph, k=1.2 / max(1, nodes) ** 0.5, iterations=30, seed=0)
    points = np.array([places[node] for node in range(nodes)])
    points -= points.mean(axis=0)
    return points @ np.linalg.svd(points, full_matrices=False)[2].T
