"""Graph isomorphism network for the classification of whole graphs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fgl_core.models import ops
from fgl_core.models.initialise import uniform
from fgl_core.models.norms import build_norm
from fgl_core.models.ops.pergraph import graph_sum, relu_dropout, two_layers
from fgl_core.models.packed import GraphBatch

LAYERS = 3


class GIN(nn.Module):
    """GIN with sum readout (Xu et al. 2019; FedCCH, eqs. 3 to 8).

    Input layer → 3 × [GIN → norm → ReLU → dropout] → sum over each graph's nodes → Linear → ReLU → Linear.
    Clients' features and classes differ, so that the input layer and the head stay local, and the norms too
    unless they are shared.

    Args:
        in_features: feature columns of the graphs.
        hidden: width of all layers.
        num_classes: width of the logits.
        norm: ``none``, ``batch`` or ``pf``.
        share_norm: whether the norms travel, buffers included.
        dropout: rate after each activation, in [0, 1).
        generator: draws the parameters.
        dtype: of the parameters.
    """

    def __init__(
        self,
        in_features: int,
        hidden: int,
        num_classes: int,
        *,
        norm: str,
        share_norm: bool,
        dropout: float,
        generator: torch.Generator,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.local_modules = ("embed.", "head.") if share_norm else ("embed.", "head.", "norms.")
        self.dropout = dropout
        self.embed = InputLayer(in_features, hidden, generator=generator, dtype=dtype)
        self.convs = nn.ModuleList(
            GINConv(hidden, hidden, generator=generator, dtype=dtype) for _ in range(LAYERS)
        )
        self.norms = nn.ModuleList(build_norm(norm, hidden, dtype) for _ in range(LAYERS))
        self.head = head(hidden, num_classes, generator=generator, dtype=dtype)

    def forward(self, batch: GraphBatch, dropout: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Embed and classify every graph of the batch.

        Args:
            dropout: the stream dropout masks come from; None turns dropout off.

        Returns:
            ``(h, z)``: the graphs' representations, the sum over the nodes of the last layer [g, hidden], and
            the logits [g, num_classes].
        """
        x = self.embed(batch.features)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = relu_dropout(norm(conv(x, batch), batch), self.dropout, dropout)
        h = graph_sum(x, batch.sizes)
        return h, self.head(h)


class GINConv(nn.Module):
    """``MLP(x_v + Σ_{u∈N(v)} x_u)`` (Xu et al. 2019, eq. 4.1 with ε = 0); MLP = Linear → ReLU → Linear.

    Args:
        in_features, out_features: columns of the input and the output; the MLP's inner width is the output's.
        generator: draws the parameters.
        dtype: of the parameters.
    """

    def __init__(
        self, in_features: int, out_features: int, *, generator: torch.Generator, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            linear(in_features, out_features, generator=generator, dtype=dtype),
            nn.ReLU(),
            linear(out_features, out_features, generator=generator, dtype=dtype),
        )

    def forward(self, x: Tensor, batch: GraphBatch) -> Tensor:
        """Convolve node rows x [n, in_features] to [n, out_features]."""
        first, _, second = self.mlp
        summed = ops.neighbour_sum(batch.adjacency, x, own=True)
        return two_layers(summed, first.weight, first.bias, second.weight, second.bias)


class InputLayer(nn.Module):
    """``x W + b`` for features as floats [n, f] or, where each node's row is one-hot, as the columns [n]."""

    def __init__(
        self, in_features: int, out_features: int, *, generator: torch.Generator, dtype: torch.dtype
    ) -> None:
        super().__init__()
        bound = in_features**-0.5
        self.weight = nn.Parameter(uniform((in_features, out_features), bound, generator, dtype))
        self.bias = nn.Parameter(uniform((out_features,), bound, generator, dtype))

    def forward(self, features: Tensor) -> Tensor:
        if features.dtype == torch.int64:
            return F.embedding(features, self.weight + self.bias)  # the bias once per column, not per node
        return features @ self.weight + self.bias


def linear(
    in_features: int, out_features: int, *, generator: torch.Generator, dtype: torch.dtype
) -> nn.Linear:
    """A linear layer, weight and bias uniform in ±1/√in_features as PyTorch's own are."""
    layer = nn.utils.skip_init(nn.Linear, in_features, out_features, dtype=dtype)
    bound = in_features**-0.5
    layer.weight = nn.Parameter(uniform((out_features, in_features), bound, generator, dtype))
    layer.bias = nn.Parameter(uniform((out_features,), bound, generator, dtype))
    return layer


def head(hidden: int, num_classes: int, *, generator: torch.Generator, dtype: torch.dtype) -> nn.Sequential:
    """Linear → ReLU → Linear, from a graph's representation to its logits."""
    return nn.Sequential(
        linear(hidden, hidden, generator=generator, dtype=dtype),
        nn.ReLU(),
        linear(hidden, num_classes, generator=generator, dtype=dtype),
    )
