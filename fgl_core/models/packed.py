"""All graphs of a dataset in flat arrays, packed once; a mini-batch is a slice of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from fgl_core.errors import InputError
from fgl_core.models.ops import Adjacency
from fgl_core.models.structure import structure_features

if TYPE_CHECKING:
    from fgl_core.datasets import GraphDataset


class GraphBatch:
    """Several graphs as one: their nodes stand one graph after the other, no edge joins two graphs.

    Attributes:
        features: what the input layer reads: int64 [n], the column of each node's single 1 (one-hot
            features), or floats [n, f].
        adjacency: the edges in both directions, sorted by target, without self-loops.
        sizes: nodes of each graph, int64 [g].
    """

    def __init__(
        self, features: Tensor, adjacency: Adjacency, sizes: Tensor, packed: PackedGraphs, nodes: Tensor
    ) -> None:
        self.features = features
        self.adjacency = adjacency
        self.sizes = sizes
        self._packed, self._nodes = packed, nodes

    @property
    def num_nodes(self) -> int:
        return self.adjacency.num_nodes

    @cached_property
    def structure(self) -> Tensor:
        """Structure features [n, 32] of every node (:func:`fgl_core.models.structure.structure_features`)."""
        return self._packed.structure[self._nodes]


class PackedGraphs:
    """The graphs of a dataset, ready for slicing mini-batches in a fraction of a millisecond.

    Args:
        dataset: the graphs.
        dtype: floating type of the features.
        device: where batches are made.

    Raises:
        InputError: a graph without nodes, or an edge between two graphs.
    """

    def __init__(
        self,
        dataset: GraphDataset,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> None:
        self.offsets = np.asarray(dataset.offsets, dtype=np.int64)
        self.sizes = np.diff(self.offsets)
        self.num_features = dataset.x.shape[1]
        self.dtype = dtype
        if (self.sizes < 1).any():
            raise InputError(f"{dataset.name} holds a graph without nodes: drop it, it has nothing to sum up")
        graph = np.repeat(np.arange(len(self.sizes), dtype=np.int32), self.sizes)
        low, high = dataset.edges[:, 0], dataset.edges[:, 1]
        if (graph[low] != graph[high]).any():
            raise InputError(
                f"{dataset.name} holds an edge between two graphs: the edges or offsets are wrong"
            )
        n = len(graph)
        upper = sp.csr_array((np.ones(len(low), np.int8), (low, high)), shape=(n, n))
        both = upper + upper.T  # a linear merge: sorting 25 million edges would take seconds
        both.sort_indices()
        self.pointer = both.indptr.astype(np.int64)
        self.degree = np.diff(self.pointer).astype(np.int32)
        first = self.offsets[:-1].astype(np.int32)
        # where an edge comes from, counted within its graph
        self.source = both.indices.astype(np.int32) - np.repeat(first[graph], self.degree)
        labels = dataset.node_labels
        self.device = torch.device(device)
        features = (
            torch.from_numpy(dataset.x.toarray()).to(dtype)
            if labels is None
            else torch.from_numpy(labels.astype(np.int64))
        )
        self.features = features.to(self.device)

    @cached_property
    def structure(self) -> Tensor:
        """Structure features of all nodes, computed when a model first asks for them."""
        features = structure_features(self.offsets, self.pointer, self.source)
        return torch.from_numpy(features).to(self.device, self.dtype)

    def batch(self, graphs: np.ndarray) -> GraphBatch:
        """These graphs, in this order.

        Args:
            graphs: positions in the dataset, int [g], at least one.
        """
        first, sizes = self.offsets[graphs], self.sizes[graphs]
        nodes = _ranges(first, sizes)
        begin = self.pointer[first]
        counts = self.pointer[first + sizes] - begin
        pointer = np.zeros(len(nodes) + 1, np.int32)
        np.cumsum(self.degree[nodes], out=pointer[1:])
        shift = np.cumsum(sizes) - sizes
        source = self.source[_ranges(begin, counts)] + np.repeat(shift, counts).astype(np.int32)
        arrays = (nodes, pointer, source, sizes)
        nodes, pointer, source, sizes = (torch.from_numpy(array).to(self.device) for array in arrays)
        # no views are drawn of a batch, so that its edges need no undirected numbers
        adjacency = Adjacency(pointer, source, torch.empty(0))
        return GraphBatch(self.features[nodes], adjacency, sizes, self, nodes)


def _ranges(first: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers first[i], …, first[i] + counts[i] - 1 for each i, one after the other."""
    shift = first - (np.cumsum(counts) - counts)
    return np.arange(counts.sum()) + np.repeat(shift, counts)
