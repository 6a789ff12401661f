"""The plain PyTorch Geometric loop of graph classification: ``DataLoader``, ``GINConv``, one-hot floats.

It does the same work as a client of the package in one round with one local epoch, and does not use the
package, but for the structure features of FedStar, which are made once, before the clock starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, GINConv, global_add_pool

HIDDEN, LAYERS, BATCH = 64, 3, 64


def _gin(in_features: int) -> GINConv:
    return GINConv(nn.Sequential(nn.Linear(in_features, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN)))


def _head(classes: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, classes))


class PlainGIN(nn.Module):
    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__()
        self.embed = nn.Linear(in_features, HIDDEN)
        self.convs = nn.ModuleList(_gin(HIDDEN) for _ in range(LAYERS))
        self.head = _head(classes)

    def forward(self, data: Data) -> Tensor:
        x = self.embed(data.x)
        for conv in self.convs:
            x = F.dropout(conv(x, data.edge_index).relu(), 0.5, self.training)
        return self.head(global_add_pool(x, data.batch))


class PlainStar(nn.Module):
    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__()
        self.embed, self.structure_embed = nn.Linear(in_features, HIDDEN), nn.Linear(32, HIDDEN)
        self.convs = nn.ModuleList(_gin(2 * HIDDEN) for _ in range(LAYERS))
        self.structure_convs = nn.ModuleList(GCNConv(HIDDEN, HIDDEN) for _ in range(LAYERS))
        self.fuse = nn.Linear(2 * HIDDEN, HIDDEN)
        self.head = _head(classes)

    def forward(self, data: Data) -> Tensor:
        x, s = self.embed(data.x), self.structure_embed(data.structure)
        for conv, structure in zip(self.convs, self.structure_convs, strict=True):
            x = F.dropout(conv(torch.cat([x, s], 1), data.edge_index).relu(), 0.5, self.training)
            s = torch.tanh(structure(s, data.edge_index))
        return self.head(global_add_pool(self.fuse(torch.cat([x, s], 1)), data.batch))


@dataclass
class PlainClient:
    """The graphs of one dataset; one round is an epoch of training and two evaluations."""

    train: list[Data]
    held_out: list[list[Data]]
    model: nn.Module

    def __post_init__(self) -> None:
        self.adam = torch.optim.Adam(self.model.parameters(), lr=0.001, weight_decay=5e-4)

    def one_round(self) -> float:
        """Train an epoch and evaluate twice, as the package does; returns the mean loss."""
        self.model.train()
        losses = []
        for batch in DataLoader(self.train, BATCH, shuffle=True):
            loss = F.cross_entropy(self.model(batch), batch.y)
            self.adam.zero_grad()
            loss.backward()
            self.adam.step()
            losses.append(loss.item())
        for _ in range(2):
            self.evaluate()
        return sum(losses) / len(losses)

    @torch.no_grad()
    def evaluate(self) -> list[int]:
        """Correct graphs of each held-out part."""
        self.model.eval()
        return [
            sum(int((self.model(batch).argmax(1) == batch.y).sum()) for batch in DataLoader(part, BATCH))
            for part in self.held_out
        ]
