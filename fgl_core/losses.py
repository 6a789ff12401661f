"""Losses of the methods: node contrast, neighbour distillation, the proximal term.

Gradients reach the local model's tensors only: what comes from the global model is a constant.
(:func:`local_contrast` has the local model on both sides.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from fgl_core.errors import InputError, unknown
from fgl_core.models import ops
from fgl_core.models.graph import Graph
from fgl_core.models.ops.pairs import kept

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
    _check_temperature(tau)
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


def local_contrast(h_anchor: Tensor, h_sample: Tensor, y: Tensor, tau: float) -> Tensor:
    """Supervised contrast of two views by the same model (FGSSL, eq. 6); the gradient reaches both sides.

    ``mean_i −1/|P_i| Σ_{p∈P_i} log(φ_ip / Σ_a φ_ia)`` with ``φ_ip = exp(cos(a_i, s_p)/τ)``: :func:`fnsc` with
    the denominator ``supcon`` and samples that are trained too. Rows with a norm of at most 1e-6 are left out
    on either side, as there.

    Args:
        h_anchor: embeddings of the client's training nodes in one view, [t, d].
        h_sample: the same nodes in another view, [t, d].
        y: their classes, int64 [t].
        tau: temperature τ > 0.

    Returns:
        A scalar; 0, still connected to ``h_anchor``, when no anchor remains.

    Raises:
        InputError: a temperature that is not positive.
    """
    _check_temperature(tau)
    anchor, sample = kept(h_anchor), kept(h_sample)
    samples, classes = h_sample[sample], y[sample]
    count = torch.bincount(classes, minlength=int(y.max()) + 1 if len(y) else 0)
    anchor = anchor & (count[y] > 0)
    if not anchor.any():
        return h_anchor.sum() * 0
    a, b = (h / h.norm(dim=1, keepdim=True) for h in (h_anchor[anchor], samples))
    # Σ_p s_ip / |P_i| needs only the mean of each class
    mean = torch.zeros(len(count), b.shape[1], dtype=b.dtype, device=b.device).index_add(0, classes, b)
    mean = mean / count.clamp(min=1)[:, None]
    attraction = (a * mean[y[anchor]]).sum(1) / tau

    def log_denominator(block: Tensor, b: Tensor) -> Tensor:
        return (block @ b.T / tau).logsumexp(1)

    # a block of similarities is made again in the backward pass, so that memory stays linear in the nodes
    rows = max(1, 2**20 // len(b))
    repulsion = torch.cat(
        [
            checkpoint(log_denominator, block, b, use_reentrant=False, preserve_rng_state=False)
            for block in a.split(rows)
        ]
    )
    return (repulsion - attraction).mean()


def edge_distillation(z_local: Tensor, z_global: Tensor, graph: Graph, tau: float) -> Tensor:
    """Mean over edges (i, j) of ``KL(softmax(|z_i^g − z_j^g|/τ) ‖ softmax(|z_i^m − z_j^m|/τ))``.

    The structure term of FGSSL's released code of 2023: the softmax runs over the classes. It compares how
    the two ends of an edge differ by the global model (g) with how they differ by the local one (m).

    Args:
        z_local: logits of the local model, [n, c].
        z_global: logits of the global model, [n, c]; constant.
        graph: whose edges count, each once.
        tau: temperature τ > 0.

    Returns:
        A scalar; 0, still connected to ``z_local``, when the graph has no edge.

    Raises:
        InputError: a temperature that is not positive.
    """
    _check_temperature(tau)
    target, source = graph.neighbours
    u, v = target[target < source], source[target < source]
    if not len(u):
        return z_local.sum() * 0
    teacher, student = (((z[u] - z[v]).abs() / tau).log_softmax(1) for z in (z_global.detach(), z_local))
    return (teacher.exp() * (teacher - student)).sum(1).mean()


def _check_temperature(tau: float) -> None:
    # written so that NaN is refused, too
    if not tau > 0:
        raise InputError(f"tau is {tau}, but a temperature must be above 0")
