"""Graphs drawn as dots and lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fgl_core.plots.style import ACROSS, COLOURS, GREY, WIDTH, in_lines, note, styled


@styled()
def graph_drawings(sets: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """A few graphs of each set, nodes in the colour of their label.

    Args:
        sets: by name, the graphs of a record (:func:`fgl_core.analysis.graph_statistics.drawn_graphs`).
    """
    lines = in_lines(sets) or [("", 0, [])]
    figure, places = plt.subplots(
        len(lines),
        ACROSS,
        figsize=(WIDTH, 0.2 + 1.9 * len(lines)),
        squeeze=False,
        layout="constrained",
        subplot_kw={"aspect": "equal"},
    )
    for axes in places.flat:
        axes.set_axis_off()
    for row, (name, _, graphs) in zip(places, lines, strict=True):
        for axes, graph in zip(row, graphs, strict=False):
            _draw(axes, graph)
            axes.set_title(f"{name}, {_rings(graph['rings'])}", fontsize=11)
    if not sets:
        note(places[0, ACROSS // 2], "no record yet")
    return figure


def _draw(axes: Axes, graph: Mapping[str, Any]) -> None:
    nodes = range(graph["nodes"])
    drawn = nx.Graph()
    drawn.add_nodes_from(nodes)
    drawn.add_edges_from(graph["edges"])
    places = nx.kamada_kawai_layout(drawn, dist=_distances(drawn))
    points = np.array([places[node] for node in nodes])
    for a, b in graph["edges"]:
        axes.plot(*points[[a, b]].T, color=GREY, linewidth=1, zorder=1)
    labels = graph["labels"] or [0] * len(nodes)
    colours = [COLOURS[label % len(COLOURS)] for label in labels]
    axes.scatter(*points.T, s=22, c=colours, edgecolors="white", linewidths=0.4, zorder=2)


def _distances(graph: nx.Graph) -> dict[int, dict[int, float]]:
    """Steps between nodes; parts that do not hang together lie a little apart, not infinitely."""
    steps = {node: dict(ends) for node, ends in nx.all_pairs_shortest_path_length(graph)}
    apart = 1.0 + max(max(ends.values()) for ends in steps.values())
    return {a: {b: float(ends.get(b, apart)) for b in graph} for a, ends in steps.items()}


def _rings(number: int) -> str:
    return {0: "no ring", 1: "1 ring"}.get(number) or f"{number} rings"
