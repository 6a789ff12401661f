"""Random graphs for tests: sparse features, some rows empty, some nodes without neighbours."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from fgl_core.models.graph import Graph


def random_arrays(
    seed: int, nodes: int = 40, features: int = 23, density: float = 0.08
) -> tuple[sp.csr_array, np.ndarray]:
    """Features [n, f] and undirected edges [e, 2]. Nodes 0 and 1 have no neighbour, node 2 no feature,
    node 3 exactly one neighbour, node 4."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(nodes, features)) * (rng.random((nodes, features)) < 0.2)
    x[2] = 0
    edges = np.argwhere(np.triu(rng.random((nodes, nodes)) < density, 1))
    edges = edges[(edges >= 4).all(1)]
    edges = np.concatenate([[[3, 4]], edges])
    return sp.csr_array(x), edges


def random_graph(seed: int, dtype: torch.dtype = torch.float64, **sizes: int) -> Graph:
    x, edges = random_arrays(seed, **sizes)
    return Graph.from_arrays(x, edges, dtype=dtype)


def random_view(graph: Graph, seed: int) -> Graph:
    generator = torch.Generator().manual_seed(seed)
    return graph.view(
        torch.rand(graph.num_edges, generator=generator) < 0.5,
        torch.rand(graph.num_features, generator=generator) < 0.6,
    )


def dense(graph: Graph) -> Tensor:
    """The features [n, f] in full, masked columns zeroed: what the plain loop multiplies."""
    rows = graph.features.dense
    return rows if graph.keep_columns is None else rows * graph.keep_columns
