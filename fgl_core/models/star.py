"""FedStar's model: features and structure in two channels that meet in every layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fgl_core.models.gcn import GCNConv
from fgl_core.models.gin import LAYERS, GINConv, InputLayer, head, linear
from fgl_core.models.norms import build_norm
from fgl_core.models.ops.pergraph import graph_sum, relu_dropout
from fgl_core.models.packed import GraphBatch
from fgl_core.models.structure import WIDTH


class Star(nn.Module):
    """Feature channel ``x ← GIN([x‖s])`` beside a structure channel ``s ← tanh(GCN(s))`` (Tan et al. 2023).

    The structure channel starts from random-walk and degree features, which mean the same in every domain: it
    is shared, all else stays local. A last linear layer fuses [x‖s] before the sum readout. Arguments as in
    :class:`fgl_core.models.gin.GIN`.
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
        local = ("embed.", "convs.", "fuse.", "head.")
        self.local_modules = local if share_norm else (*local, "norms.")
        self.dropout = dropout
        self.embed = InputLayer(in_features, hidden, generator=generator, dtype=dtype)
        self.convs = nn.ModuleList(
            GINConv(2 * hidden, hidden, generator=generator, dtype=dtype) for _ in range(LAYERS)
        )
        self.norms = nn.ModuleList(build_norm(norm, hidden, dtype) for _ in range(LAYERS))
        self.fuse = linear(2 * hidden, hidden, generator=generator, dtype=dtype)
        self.head = head(hidden, num_classes, generator=generator, dtype=dtype)
        self.structure_embed = linear(WIDTH, hidden, generator=generator, dtype=dtype)
        self.structure_convs = nn.ModuleList(
            GCNConv(hidden, hidden, generator=generator, dtype=dtype) for _ in range(LAYERS)
        )

    def forward(self, batch: GraphBatch, dropout: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """As :meth:`fgl_core.models.gin.GIN.forward`."""
        x, s = self.embed(batch.features), self.structure_embed(batch.structure)
        for conv, norm, structure in zip(self.convs, self.norms, self.structure_convs, strict=True):
            x = relu_dropout(norm(conv(torch.cat([x, s], 1), batch), batch), self.dropout, dropout)
            s = torch.tanh(structure(batch, s))
        h = graph_sum(self.fuse(torch.cat([x, s], 1)), batch.sizes)
        return h, self.head(h)
