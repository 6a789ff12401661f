"""NeighGen: predicts how many neighbours a client's nodes miss, and what features those have.

Zhang et al., "Subgraph federated learning with missing neighbor generation", NeurIPS 2021, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from fgl_core.models import ops
from fgl_core.models.graph import Graph
from fgl_core.models.initialise import uniform
from fgl_core.models.ops import Adjacency
from fgl_core.models.sage import GraphSAGE, SAGEConv

#: Distances held at a time while a nearest row is looked for.
_BLOCK = 2**20


@dataclass(frozen=True)
class Candidates:
    """Features of real nodes, [u, f], that generated ones are compared with."""

    rows: sp.csr_array

    @cached_property
    def squares(self) -> np.ndarray:
        """Squared norm of each row, [u]."""
        return np.asarray(self.rows.multiply(self.rows).sum(axis=1)).ravel()


@dataclass(frozen=True)
class Impaired:
    """A client's graph with some of its nodes hidden: what NeighGen learns to restore.

    Attributes:
        graph: all n nodes, without the edges of the hidden ones.
        visible: bool [n], the nodes that are not hidden.
        missing: [n, h], 1 where a visible node has lost a hidden neighbour.
        hidden: the h hidden nodes.
    """

    graph: Graph
    visible: Tensor
    missing: sp.csr_array
    hidden: Candidates

    @property
    def degree(self) -> Tensor:
        """How many neighbours each node has lost, int64 [n]; 0 for hidden nodes."""
        return torch.from_numpy(self.missing.sum(axis=1).astype(np.int64)).to(self.visible.device)


def impair(graph: Graph, nodes: np.ndarray) -> Impaired:
    """Hide nodes (int64 [h], distinct) and all their edges (Zhang et al. 2021, section 4.2)."""
    visible = torch.ones(graph.num_nodes, dtype=torch.bool, device=graph.device)
    visible[torch.from_numpy(nodes).to(graph.device)] = False
    target, source = graph.neighbours
    kept = torch.ones(graph.num_edges, dtype=torch.bool, device=graph.device)
    kept[graph.adjacency.edge[~visible[target]].long()] = False
    lost = visible[target] & ~visible[source]
    column = np.zeros(graph.num_nodes, np.int64)
    column[nodes] = np.arange(len(nodes))
    rows, columns = target[lost].cpu().numpy(), column[source[lost].cpu().numpy()]
    missing = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(graph.num_nodes, len(nodes)))
    return Impaired(graph.view(kept), visible, missing, Candidates(graph.features.matrix[nodes]))


class Dense(nn.Module):
    """``x W + b``; parameters start uniform in ±1/√in_features, drawn from the given generator."""

    def __init__(
        self, in_features: int, out_features: int, *, generator: torch.Generator, dtype: torch.dtype
    ) -> None:
        super().__init__()
        bound = in_features**-0.5
        self.weight = nn.Parameter(uniform((in_features, out_features), bound, generator, dtype))
        self.bias = nn.Parameter(uniform((out_features,), bound, generator, dtype))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class FeatureGenerator(nn.Module):
    """fGen: noisy node embeddings [r, latent] → features [r, in_features], ``tanh(W₂ ReLU(W₁ e))``."""

    def __init__(
        self, latent: int, hidden: int, in_features: int, *, generator: torch.Generator, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.inner = Dense(latent, hidden, generator=generator, dtype=dtype)
        self.outer = Dense(hidden, in_features, generator=generator, dtype=dtype)

    def forward(self, embeddings: Tensor) -> Tensor:
        return self.outer(self.inner(embeddings).relu()).tanh()


class NeighGen(nn.Module):
    """Encoder, degree head, feature generator, and the node classifier they are trained with.

    Every generated neighbour k of node v has its own noise: ``x_vk = fGen(z_v + ε_vk)``, ε ~ N(0, 1).

    Args:
        in_features: feature columns.
        num_classes: classes of the nodes.
        latent: width of the embeddings z, and of both GraphSAGE's hidden layers.
        hidden: width inside the feature generator.
        most: the largest number of neighbours generated for one node.
        dropout: rate inside both GraphSAGE models.
        generator: draws the initial parameters.
        dtype: of the parameters.
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        latent: int,
        hidden: int,
        most: int,
        dropout: float,
        generator: torch.Generator,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.most = most
        drawn = {"generator": generator, "dtype": dtype}
        self.encoder = GraphSAGE(in_features, latent, latent, dropout=dropout, **drawn)
        self.degree = Dense(latent, 1, **drawn)
        self.features = FeatureGenerator(latent, hidden, in_features, **drawn)
        self.classifier = GraphSAGE(in_features, latent, num_classes, dropout=dropout, **drawn)

    def embed(self, graph: Graph, dropout: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Node embeddings [n, latent], and dGen's expected numbers of missing neighbours [n], not rounded."""
        _, embeddings = self.encoder(graph, dropout)
        return embeddings, self.degree(embeddings)[:, 0].relu()

    def counts(self, expected: Tensor) -> Tensor:
        """Whole numbers of neighbours to generate, int64 [n], between 0 and ``most``."""
        return expected.detach().round().long().clamp(0, self.most)

    def classify(self, graph: Graph, generated: Tensor, owner: Tensor, dropout: torch.Generator) -> Tensor:
        """Logits [n, c] of a graph's own nodes, beside generated neighbours that gradients pass through.

        Args:
            graph: n nodes.
            generated: features of the generated neighbours, [r, f].
            owner: the node that each one is a neighbour of, int64 [r].
        """
        adjacency = mended_adjacency(graph, owner)
        first, second = self.classifier.encoder, self.classifier.classifier
        projected = torch.cat([ops.project(graph.features, first.weight), generated @ first.weight])
        h = _convolve(first, adjacency, projected).relu()
        h = ops.dropout(h, self.classifier.dropout, dropout)
        return _convolve(second, adjacency, h @ second.weight)[: graph.num_nodes]

    @torch.no_grad()
    def mend(self, graph: Graph, noise: torch.Generator) -> Graph:
        """The graph with the predicted neighbours appended as nodes n, n + 1, …; itself if there are none.

        Args:
            graph: a client's whole graph.
            noise: the stream of the features' noise.
        """
        embeddings, expected = self.embed(graph)
        owner = repeated(self.counts(expected))
        if not len(owner):
            return graph
        generated = self.features(embeddings[owner] + gaussian(len(owner), embeddings, noise))
        x = sp.vstack([graph.features.matrix, sp.csr_array(generated.cpu().numpy())], format="csr")
        edges = np.concatenate([graph.undirected_edges, appended(graph, owner)])
        return Graph.from_arrays(x, edges, dtype=graph.dtype, device=graph.device)


def _convolve(layer: SAGEConv, adjacency: Adjacency, projected: Tensor) -> Tensor:
    """A GraphSAGE layer from rows already multiplied by its weight, as their features need not be sparse."""
    neighbours, own = projected.chunk(2, dim=1)
    degree = adjacency.degree.clamp(min=1).to(own.dtype)[:, None]
    return ops.neighbour_sum(adjacency, neighbours) / degree + own + layer.bias


def gaussian(rows: int, like: Tensor, noise: torch.Generator) -> Tensor:
    """Standard normal numbers of the width, type and device of ``like``, from a stream on the CPU."""
    # always in single precision, so that every dtype sees the same noise
    return torch.randn(rows, like.shape[1], generator=noise).to(like.device, like.dtype)


def repeated(counts: Tensor) -> Tensor:
    """Each node as often as its count says: ``[2, 0, 1] → [0, 0, 2]``."""
    return torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)


def appended(graph: Graph, owner: Tensor) -> np.ndarray:
    """Edges from each owner to the node appended for it, int64 [r, 2]."""
    new = torch.arange(len(owner), device=owner.device) + graph.num_nodes
    return torch.stack([owner, new], dim=1).cpu().numpy()


def mended_adjacency(graph: Graph, owner: Tensor) -> Adjacency:
    """The graph's adjacency with one new neighbour for each entry of ``owner``."""
    edges = np.concatenate([graph.undirected_edges, appended(graph, owner)])
    return Adjacency.from_edges(edges, graph.num_nodes + len(owner), graph.device)


@torch.no_grad()
def nearest(points: Tensor, candidates: Candidates, allowed: sp.csr_array | None = None) -> np.ndarray:
    """Index of each point's nearest candidate by Euclidean distance, ties to the first.

    Args:
        points: [r, f].
        candidates: u of them, u ≥ 1.
        allowed: [r, u], nonzero where a candidate may be chosen, at least one a row; None allows all.

    Returns:
        int64 [r].
    """
    half = candidates.squares[:, None] / 2
    step = max(1, _BLOCK // len(half))
    found = [np.empty(0, np.int64)]
    for start in range(0, len(points), step):
        block = slice(start, start + step)
        # the nearest c has the largest p·c − ‖c‖²/2; the points stand in columns, where they lie together
        closeness = candidates.rows @ points[block].T.contiguous().cpu().numpy()
        closeness -= half
        if allowed is not None:
            closeness[allowed[block].T.toarray() == 0] = -np.inf
        found.append(closeness.argmax(axis=0))
    return np.concatenate(found)


def reconstruction(
    generated: Tensor, candidates: list[Candidates], allowed: sp.csr_array | None = None
) -> Tensor:
    """Sum, over sets of candidates and generated rows, of the mean squared difference to the nearest one.

    The feature terms of Zhang et al. (2021, sections 4.2 and 4.3), where distances are sums over features.

    Args:
        generated: [r, f].
        candidates: sets of real nodes with f features.
        allowed: as in :func:`nearest`, for every set.

    Returns:
        A scalar; 0 without rows or candidates.
    """
    if not len(generated) or not candidates:
        return generated.sum() * 0
    chosen = [nearest(generated, each, allowed) for each in candidates]
    # Σ_j ‖x − t_j‖² needs only the sum of the targets and of their squares
    total = sum(each.rows[index] for each, index in zip(candidates, chosen, strict=True))
    total = torch.from_numpy(total.toarray()).to(generated.device, generated.dtype)
    squares = sum(float(each.squares[index].sum()) for each, index in zip(candidates, chosen, strict=True))
    distances = len(chosen) * generated.square().sum() - 2 * (generated * total).sum() + squares
    return distances / generated.shape[1]
