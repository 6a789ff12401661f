"""Normalisation of node embeddings before the activation: none, over the batch, or per graph (PF)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fgl_core.errors import unknown
from fgl_core.models.ops import pergraph
from fgl_core.models.packed import GraphBatch

EPSILON = 1e-5


class NoNorm(nn.Module):
    """Leaves the embeddings as they are."""

    def forward(self, x: Tensor, batch: GraphBatch) -> Tensor:
        return x


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation over all nodes of the batch (Ioffe and Szegedy 2015).

    A batch of a single node has no variance: it is normalised by the running statistics, which it does not
    change.
    """

    def forward(self, x: Tensor, batch: GraphBatch) -> Tensor:
        """Normalise x [n, d]."""
        if self.training and len(x) == 1:
            return nn.functional.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(x)


class PersonalisationFactor(nn.Module):
    """PF, a normalisation per graph with learnt α, γ, β (FedCCH, eq. 6; GraphNorm of Cai et al. 2021).

    ``PF(h_v) = γ (h_v − α μ) / σ̂ + β`` with μ the mean over the graph's nodes and σ̂² the mean of
    (h_v − α μ)², plus 1e-5; each per feature. α and γ start as 1, β as 0.

    Args:
        width: number of features d.
        dtype: of the parameters.
    """

    def __init__(self, width: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(width, dtype=dtype))
        self.gamma = nn.Parameter(torch.ones(width, dtype=dtype))
        self.beta = nn.Parameter(torch.zeros(width, dtype=dtype))

    def forward(self, x: Tensor, batch: GraphBatch) -> Tensor:
        """Normalise x [n, d] within each graph of the batch."""
        return pergraph.graph_norm(x, batch.sizes, self.alpha, self.gamma, self.beta, EPSILON)


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a normalisation layer."""
    return isinstance(module, BatchNorm | PersonalisationFactor)


def build_norm(kind: str, width: int, dtype: torch.dtype) -> nn.Module:
    """A fresh normalisation; ``norm(x [n, d], batch)`` gives [n, d].

    Args:
        kind: ``none``, ``batch`` or ``pf``.

    Raises:
        InputError: there is no normalisation of this name.
    """
    if kind == "none":
        return NoNorm()
    if kind == "batch":
        return BatchNorm(width, eps=EPSILON, dtype=dtype)
    if kind == "pf":
        return PersonalisationFactor(width, dtype)
    raise unknown("normalisation", kind, ("none", "batch", "pf"))
