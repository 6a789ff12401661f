"""Two-layer graph attention network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fgl_core.models import ops
from fgl_core.models.graph import Graph
from fgl_core.models.initialise import glorot


class GATConv(nn.Module):
    """One attention head over the neighbours and the node itself (Veličković et al. 2018, eqs. 1 to 4).

    ``h_i = b + Σ_{j∈A_i∪{i}} α_ij W^T x_j``. Weights start as Glorot uniform, the bias as zero, as in PyTorch
    Geometric's ``GATConv`` with one head, of which ``weight`` is the transpose of ``lin.weight``.

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
        self.att_source = nn.Parameter(glorot((1, out_features), generator, dtype)[0])
        self.att_target = nn.Parameter(glorot((1, out_features), generator, dtype)[0])
        self.bias = nn.Parameter(torch.zeros(out_features, dtype=dtype))

    def forward(self, graph: Graph, x: Tensor | None = None) -> Tensor:
        """Attend over a graph.

        Args:
            graph: its edges, and its features when x is not given.
            x: node rows [n, in_features]; None takes the graph's own features.

        Returns:
            [n, out_features].
        """
        if x is None:
            projected = ops.project(graph.features, self.weight, graph.keep_columns)
        else:
            projected = x @ self.weight
        return ops.attention(graph.adjacency, projected, self.att_source, self.att_target, self.bias)


class GAT(nn.Module):
    """GAT of two layers: encoder → ELU → dropout → classifier (FGSSL, section 4.1: hidden 128).

    Args:
        in_features: feature columns.
        hidden: width of the encoder's output.
        num_classes: width of the logits.
        dropout: rate on the activated hidden layer.
        generator: draws the parameters.
        dtype: of the parameters.
    """

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
        self.encoder = GATConv(in_features, hidden, generator=generator, dtype=dtype)
        self.classifier = GATConv(hidden, num_classes, generator=generator, dtype=dtype)

    def forward(self, graph: Graph, dropout: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Embed and classify every node.

        Args:
            graph: the graph, or a view of it.
            dropout: the stream dropout masks come from; None turns dropout off.

        Returns:
            ``(h, z)``: the encoder's output before activation and dropout [n, hidden], and the logits
            [n, num_classes].
        """
        h = self.encoder(graph)
        return h, self.classifier(graph, ops.elu_dropout(h, self.dropout, dropout))
