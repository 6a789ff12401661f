"""Small sets of graphs for tests."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from fgl_core.datasets import GraphDataset


def random_set(graphs: int = 12, *, seed: int = 0, classes: int = 2, features: int = 4, one_hot: bool = True):
    """Random graphs of 1 to 9 nodes, among them one without edges and one with a single node."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 10, graphs)
    sizes[1] = 1
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    pairs = []
    for number, (first, size) in enumerate(zip(offsets, sizes, strict=False)):
        low, high = np.triu_indices(size, 1)
        kept = rng.random(len(low)) < (0 if number == 2 else 0.4)
        pairs.append(np.column_stack([low[kept], high[kept]]) + first)
    n = offsets[-1]
    x = np.eye(features)[rng.integers(0, features, n)] if one_hot else rng.normal(size=(n, features))
    return GraphDataset(
        "random",
        sp.csr_array(x.astype(np.float32)),
        np.concatenate(pairs).astype(np.int64),
        offsets.astype(np.int64),
        np.arange(graphs, dtype=np.int64) % classes,
        classes,
    )


def as_pyg(dataset: GraphDataset, graph: int, dtype: torch.dtype = torch.float64) -> Data:
    """One graph of a set as PyTorch Geometric holds it, edges in both directions."""
    first, last = dataset.offsets[graph : graph + 2]
    inside = (dataset.edges[:, 0] >= first) & (dataset.edges[:, 0] < last)
    edges = torch.from_numpy(dataset.edges[inside] - first)
    return Data(
        x=torch.from_numpy(dataset.x[np.arange(first, last)].toarray()).to(dtype),
        edge_index=torch.cat([edges, edges.flip(1)]).T,
        y=torch.tensor([dataset.y[graph]]),
    )
