"""The reference engine: dense features, gather and scatter, as a plain PyTorch Geometric loop does it.

Slow and easy to read. Tests compare the fast engine with it; ``engine="reference"`` runs a study on it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from fgl_core.models.ops.structures import Adjacency, Rows


def project(rows: Rows, weight: Tensor, keep_columns: Tensor | None) -> Tensor:
    dense = rows.dense if keep_columns is None else rows.dense * keep_columns
    return dense @ weight


def attention(
    adjacency: Adjacency, x: Tensor, att_source: Tensor, att_target: Tensor, bias: Tensor, slope: float
) -> Tensor:
    target, source = adjacency.with_self_loops
    score = (x * att_source).sum(-1)[source] + (x * att_target).sum(-1)[target]
    weight = neighbour_log_softmax(F.leaky_relu(score, slope), target, adjacency.num_nodes).exp()
    return torch.zeros_like(x).index_add(0, target, weight[:, None] * x[source]) + bias


def neighbour_log_softmax(score: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """Log-softmax of edge scores over the edges that arrive at the same node."""
    highest = torch.full((num_nodes,), -torch.inf, dtype=score.dtype, device=score.device)
    highest = highest.scatter_reduce(0, target, score.detach(), "amax")
    shifted = score - highest[target]
    total = torch.zeros(num_nodes, dtype=score.dtype, device=score.device)
    return shifted - total.index_add(0, target, shifted.exp()).log()[target]


def neighbour_sum(adjacency: Adjacency, x: Tensor, own: bool) -> Tensor:
    target, source = adjacency.neighbours
    return (x if own else torch.zeros_like(x)).index_add(0, target, x[source])


def elu_dropout(h: Tensor, keep: Tensor | None, scale: float) -> Tensor:
    return F.elu(h) if keep is None else F.elu(h) * (keep.to(h.dtype) * scale)


def neighbour_divergence(adjacency: Adjacency, z_local: Tensor, z_global: Tensor, omega: float) -> Tensor:
    target, source = adjacency.neighbours
    n = adjacency.num_nodes

    def similarity(z: Tensor) -> Tensor:
        return neighbour_log_softmax((z[target] * z[source]).sum(-1) / omega, target, n)

    teacher, student = similarity(z_global), similarity(z_local)
    return (teacher.exp() * (teacher - student)).sum() / (adjacency.degree > 0).sum().clamp(min=1)
