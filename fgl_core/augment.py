"""Views of a graph: random edges removed, random feature columns zeroed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fgl_core.errors import InputError

if TYPE_CHECKING:  # pages that show the rates need no torch
    import torch
    from torch import Tensor

    from fgl_core.models.graph import Graph

#: Strength of a view → (share of edges removed, share of feature columns zeroed). Inferred: FGSSL names the
#: two operations (section 4.1) and follows GRACE and GCA (Zhu et al. 2020, 2021), with rates in this range.
VIEW_RATES: dict[str, tuple[float, float]] = {"none": (0.0, 0.0), "weak": (0.3, 0.3), "strong": (0.8, 0.5)}


def draw_view(graph: Graph, edge_rate: float, feature_rate: float, generator: torch.Generator) -> Graph:
    """A random view Aug(G) of a graph (FGSSL, section 3.3).

    Every undirected edge is removed with probability ``edge_rate``, in both directions together; every
    feature column is zeroed, for all nodes, with probability ``feature_rate``. A rate of 0 draws nothing.

    Args:
        graph: the graph to look at; it is not changed.
        edge_rate, feature_rate: probabilities in [0, 1].
        generator: a stream on the CPU, edges are drawn first.

    Raises:
        InputError: a rate outside [0, 1].
    """
    return graph.view(
        _keep(graph.num_edges, edge_rate, "edge_rate", generator),
        _keep(graph.num_features, feature_rate, "feature_rate", generator),
    )


def _keep(length: int, rate: float, name: str, generator: torch.Generator) -> Tensor | None:
    if not 0 <= rate <= 1:
        raise InputError(f"{name} is {rate}, but must be a probability between 0 and 1")
    if rate == 0:
        return None
    import torch

    return torch.rand(length, generator=generator) >= rate
