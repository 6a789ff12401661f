"""The plain PyTorch Geometric loop: what one would write first, and what the package is measured against.

Dense features, ``GATConv``, torch's own dropout, PyTorch Geometric's own augmentations, the contrast over the
whole matrix of pairs. It does the same work as a client step of the package, and does not use the package.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv
from torch_geometric.utils import dropout_edge, mask_feature, softmax


@dataclass
class PlainClient:
    x: Tensor
    edge_index: Tensor
    y: Tensor
    train: Tensor

    @classmethod
    def from_arrays(cls, x: sp.csr_array, edges: np.ndarray, y: np.ndarray, train: np.ndarray) -> PlainClient:
        both = np.concatenate([edges, edges[:, ::-1]]).T
        return cls(
            torch.from_numpy(x.toarray()).float(),
            torch.from_numpy(np.ascontiguousarray(both)),
            torch.from_numpy(y),
            torch.from_numpy(np.flatnonzero(train)),
        )


class PlainGAT(nn.Module):
    def __init__(self, in_features: int, hidden: int, num_classes: int) -> None:
        super().__init__()
        self.encoder = GATConv(in_features, hidden)
        self.classifier = GATConv(hidden, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        h = self.encoder(x, edge_index)
        return h, self.classifier(F.dropout(F.elu(h), 0.5, self.training), edge_index)


def cross_entropy(model: PlainGAT, client: PlainClient) -> Tensor:
    _, z = model(client.x, client.edge_index)
    return F.cross_entropy(z[client.train], client.y[client.train])


def contrast(h_local: Tensor, h_global: Tensor, y: Tensor, tau: float) -> Tensor:
    # a node whose features are all masked has a zero row, at which a cosine's gradient breaks training down
    anchor, sample = h_local.norm(dim=1) > 1e-6, h_global.norm(dim=1) > 1e-6
    s = F.normalize(h_local[anchor]) @ F.normalize(h_global[sample]).T / tau
    same = (y[anchor][:, None] == y[sample][None, :]).float()
    log_share = s - s.logsumexp(1, keepdim=True)
    return -((same * log_share).sum(1) / same.sum(1).clamp(min=1)).mean()


def distillation(z_local: Tensor, z_global: Tensor, edge_index: Tensor, omega: float) -> Tensor:
    source, target = edge_index
    teacher, student = (
        softmax((z[target] * z[source]).sum(-1) / omega, target, num_nodes=len(z))
        for z in (z_global, z_local)
    )
    return (teacher * (teacher.log() - student.log())).sum() / len(target.unique())


def view(client: PlainClient, edge_rate: float, feature_rate: float) -> tuple[Tensor, Tensor]:
    edge_index, _ = dropout_edge(client.edge_index, edge_rate, force_undirected=True)
    x, _ = mask_feature(client.x, feature_rate, mode="col")
    return x, edge_index


def fgssl(model: PlainGAT, received: PlainGAT, client: PlainClient) -> Tensor:
    h_local, z_local = model(*view(client, 0.8, 0.5))
    with torch.no_grad():
        h_global, z_global = received(*view(client, 0.3, 0.3))
    train = client.train
    loss = cross_entropy(model, client)
    loss = loss + contrast(h_local[train], h_global[train], client.y[train], 0.1)
    return loss + distillation(z_local, z_global, client.edge_index, 5.0)


@torch.no_grad()
def evaluate(model: PlainGAT, clients: list[PlainClient]) -> float:
    """Pooled accuracy over the nodes that are not trained on."""
    model.eval()
    correct = total = 0
    for client in clients:
        _, z = model(client.x, client.edge_index)
        right = z.argmax(1) == client.y
        rest = torch.ones_like(right)
        rest[client.train] = False
        correct += int(right[rest].sum())
        total += int(rest.sum())
    return correct / total


def one_round(model: PlainGAT, clients: list[PlainClient], method: str, epochs: int = 4) -> float:
    """Train a copy of the model at each client, evaluate, average, evaluate; returns the mean loss."""
    received = deepcopy(model).eval().requires_grad_(False)
    losses, trained = [], []
    for client in clients:
        local = deepcopy(model).train()
        sgd = torch.optim.SGD(local.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
        for _ in range(epochs):
            loss = cross_entropy(local, client) if method == "fedavg" else fgssl(local, received, client)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            losses.append(loss.item())
        evaluate(local, [client])
        trained.append(local.state_dict())
    shares = [len(client.train) / sum(len(c.train) for c in clients) for client in clients]
    mean = {
        name: sum(share * state[name] for share, state in zip(shares, trained, strict=True))
        for name in trained[0]
    }
    model.load_state_dict(mean)
    evaluate(model, clients)
    return float(np.mean(losses))
