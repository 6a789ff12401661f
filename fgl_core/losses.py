"""Losses of the methods: node contrast, neighbour distillation, the proximal term.

Gradients reach the local model's tensors only: what comes from the global model is a constant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor

from fgl_core.errors import InputError, unknown
from fgl_core.models import ops
from fgl_core.models.graph import Graph

Denominator = Literal["supcon", "pairwise"]


def fnsc(
    h_local: Tensor, h_global: Tensor, y: Tensor, tau: float, *, denominator: Denominator = "supcon"
) -> Tensor:
    """Federated node semantic contrast (FGSSL, eqs. 7 and 8).

    ``mean_i −1/|P_i| Σ_{p∈P_i} log(φ_ip / D_ip)`` with ``φ_ip = exp(cos(h_i^m, h_p^g)/τ)`` and P_i the
    nodes of class c_i, i among them. The denominator is ``D_i = Σ_a φ_ia`` over all nodes (``supcon``), or
    ``D_ip = φ_ip + Σ_{k: c_k≠c_i} φ_ik`` (``pairwise``).

    The cosine with a zero row is not defined, and its gradient is unbounded. So a row with a norm of at most
    1e-6 is left out: of the local rows, as an anchor; of the global rows, as a sample, in every P_i and every
    denominator. The mean is over the anchors that remain and that have at least one sample of their class.

    Args:
        h_local: embeddings of the client's training nodes by the local model, [t, d].
        h_global: the same nodes by the global model, [t, d]; constant.
        y: their classes, int64 [t].
        tau: temperature τ > 0.
        denominator: which D.

    Returns:
        A scalar; 0, still connected to ``h_local``, when no anchor remains.

    Raises:
        InputError: unknown denominator, or a temperature that is not positive.
    """
    if denominator not in ("supcon", "pairwise"):
        raise unknown("denominator", denominator, ("supcon", "pairwise"))
    if not tau > 0:
        raise InputError(f"tau is {tau}, but a temperature must be above 0")
    return ops.contrast(h_local, h_global, y, tau, pairwise=denominator == "pairwise")


def fgsd(z_local: Tensor, z_global: Tensor, graph: Graph, omega: float) -> Tensor:
    """Federated graph structure distillation (FGSSL, eqs. 9 to 12).

    Mean, over all nodes with at least one neighbour, of ``Σ_{j∈A_i} S^g_ij log(S^g_ij / S^m_ij)``, where
    S_i is the softmax over the neighbours j of ``z_i·z_j / ω``. A node with one neighbour gives 0.

    Args:
        z_local: logits of the local model (strong view), [n, c].
        z_global: logits of the global model (weak view), [n, c]; constant.
        graph: the client's original graph, whose neighbours A_i count, without the node itself.
        omega: ω > 0.

    Returns:
        A scalar; 0, still connected to ``z_local``, when the graph has no edge.

    Raises:
        InputError: ω is not positive.
    """
    if not omega > 0:
        raise InputError(f"omega is {omega}, but must be above 0")
    return ops.neighbour_divergence(graph.adjacency, z_local, z_global, omega)


def proximal(tensors: Iterable[Tensor], anchors: Iterable[Tensor]) -> Tensor:
    """Half the squared distance to the anchors, ``½ Σ ‖w − w₀‖²`` (FedProx, Li et al. 2020, without its μ).

    A sum of squares: unlike the square of a norm it has a gradient at distance 0.

    Args:
        tensors: the local model's.
        anchors: the tensors as they were received, in the same order; constant.

    Raises:
        ValueError: not as many anchors as tensors.
    """
    squares = [(w - a.detach()).square().sum() for w, a in zip(tensors, anchors, strict=True)]
    return torch.stack(squares).sum() / 2 if squares else torch.zeros(())
