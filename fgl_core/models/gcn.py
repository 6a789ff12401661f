"""Two-layer graph convolutional network."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fgl_core.models import ops
from fgl_core.models.graph import Graph
from fgl_core.models.initialise import glorot


class GCNConv(nn.Module):
    """Graph convolution (Kipf and Welling 2017, eq. 2).

    ``H = D^-½ (A + I) D^-½ X W + b`` with D the degrees of A + I. Weights start as Glorot uniform, the bias
    as zero, as in PyTorch Geometric's ``GCNConv``, of which ``weight`` is the transpose of ``lin.weight``.

    Args:
        in_features, out_features: columns of the input and the output.
        generator: draws the parameters.
        dtype: of the parameters.
    """

    def __init__(
        self, in_features: int, out_features: int, *, generator: torch.Generator, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(glorot((in_features, out_features), generator, dtype))
        self.bias = nn.Parameter(torch.zeros(out_features, dtype=dtype))

    def forward(self, graph: Graph, x: Tensor | None = None) -> Tensor:
        """Convolve node rows x [n, in_features] (None: the graph's own features) to [n, out_features]."""
        projected = (
            ops.project(graph.features, self.weight, graph.keep_columns) if x is None else x @ self.weight
        )
        scale = (graph.adjacency.degree + 1).to(projected.dtype).rsqrt()[:, None]
        scaled = scale * projected
        return scale * ops.neighbour_sum(graph.adjacency, scaled, own=True) + self.bias


class GCN(nn.Module):
    """GCN of two layers: encoder → ReLU → dropout → classifier; arguments as in GAT.

    See :class:`fgl_core.models.gat.GAT`.
    """

    layer: ClassVar[type[nn.Module]] = GCNConv

    def __init__(
        self,
        in_features: int,
        hidden: int,
        num_classes: int,
        *,
        dropout: float,
        generator: torch.Generator,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.encoder = self.layer(in_features, hidden, generator=generator, dtype=dtype)
        self.classifier = self.layer(hidden, num_classes, generator=generator, dtype=dtype)

    def forward(self, graph: Graph, dropout: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """As :meth:`fgl_core.models.gat.GAT.forward`."""
        h = self.encoder(graph)
        return h, self.classifier(graph, ops.dropout(F.relu(h), self.dropout, dropout))
