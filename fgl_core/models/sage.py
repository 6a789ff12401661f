"""Two-layer GraphSAGE with the mean aggregator."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fgl_core.models import ops
from fgl_core.models.gcn import GCN
from fgl_core.models.graph import Graph
from fgl_core.models.initialise import uniform


class SAGEConv(nn.Module):
    """GraphSAGE layer with mean aggregation (Hamilton et al. 2017, algorithm 1, without normalisation).

    ``h_i = W_n^T mean_{j∈A_i} x_j + W_s^T x_i + b``; the mean over no neighbour is zero. All parameters start
    uniform in ±1/√in_features, as in PyTorch Geometric's ``SAGEConv``: ``weight`` holds the transposes of
    ``lin_l.weight`` (neighbours) and ``lin_r.weight`` (the node itself) side by side.

    Args:
        in_features, out_features: columns of the input and the output.
        generator: draws the parameters.
        dtype: of the parameters.
    """

    def __init__(
        self, in_features: int, out_features: int, *, generator: torch.Generator, dtype: torch.dtype
    ) -> None:
        super().__init__()
        bound = in_features**-0.5
        self.weight = nn.Parameter(uniform((in_features, 2 * out_features), bound, generator, dtype))
        self.bias = nn.Parameter(uniform((out_features,), bound, generator, dtype))

    def forward(self, graph: Graph, x: Tensor | None = None) -> Tensor:
        """Convolve node rows x [n, in_features] (None: the graph's own features) to [n, out_features]."""
        projected = (
            ops.project(graph.features, self.weight, graph.keep_columns) if x is None else x @ self.weight
        )
        neighbours, own = projected.chunk(2, dim=1)
        degree = graph.adjacency.degree.clamp(min=1).to(own.dtype)[:, None]
        return ops.neighbour_sum(graph.adjacency, neighbours) / degree + own + self.bias


class GraphSAGE(GCN):
    """GraphSAGE of two layers: :class:`fgl_core.models.gcn.GCN` with another layer."""

    layer = SAGEConv
