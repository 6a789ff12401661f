"""One graph as the models see it, and its views."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from fgl_core.errors import InputError
from fgl_core.models.ops import Adjacency, Rows


class Graph:
    """An undirected graph with node features: immutable, and cheap to look at through a mask.

    A *view* keeps some of the edges and some of the feature columns; it shares the features with the graph it
    comes from. Built with :meth:`from_arrays` and :meth:`view`.

    Attributes:
        features: the rows [n, f], shared by all views.
        adjacency: the edges in both directions, sorted by target, without self-loops.
        keep_columns: bool [f], the columns that are not zeroed; None when all are kept.
    """

    def __init__(self, features: Rows, adjacency: Adjacency, keep_columns: Tensor | None = None) -> None:
        self.features = features
        self.adjacency = adjacency
        self.keep_columns = keep_columns

    @classmethod
    def from_arrays(
        cls,
        x: sp.csr_array,
        edges: np.ndarray,
        *,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> Graph:
        """Build a graph from arrays.

        Args:
            x: features [n, f], sparse.
            edges: unique undirected edges [e, 2], u < v, without self-loops.
            dtype: floating type of features and of everything computed from them.
            device: where the models run.

        Raises:
            InputError: an edge names a node that does not exist, is not u < v, or comes twice.
        """
        edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        n = x.shape[0]
        if len(edges) and (edges.min() < 0 or edges.max() >= n):
            raise InputError(f"an edge names a node outside 0…{n - 1}: number the nodes as the rows of x")
        if (edges[:, 0] >= edges[:, 1]).any():
            raise InputError("edges must be pairs u < v without self-loops: sort each pair, drop loops")
        if len(np.unique(edges[:, 0] * n + edges[:, 1])) < len(edges):
            raise InputError("an edge is given twice: keep unique pairs (np.unique(edges, axis=0))")
        device = torch.device(device)
        return cls(Rows(x, dtype, device), Adjacency.from_edges(edges, n, device))

    @property
    def num_nodes(self) -> int:
        return self.features.shape[0]

    @property
    def num_edges(self) -> int:
        """Undirected edges, without self-loops."""
        return len(self.adjacency.source) // 2

    @property
    def num_features(self) -> int:
        return self.features.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self.features.dtype

    @property
    def device(self) -> torch.device:
        return self.features.device

    @property
    def neighbours(self) -> tuple[Tensor, Tensor]:
        """Directed edges ``(target, source)``, each int64 [2e], sorted by target, without self-loops."""
        return self.adjacency.neighbours

    @property
    def undirected_edges(self) -> np.ndarray:
        """The edges as unique pairs u < v, int64 [e, 2]."""
        target, source = self.neighbours
        upper = target < source
        return torch.stack([target[upper], source[upper]], dim=1).cpu().numpy()

    def view(self, keep_edges: Tensor | None = None, keep_columns: Tensor | None = None) -> Graph:
        """The graph without some edges and with some feature columns zeroed.

        Args:
            keep_edges: bool [e], in the order of this graph's undirected edges; None keeps all.
            keep_columns: bool [f]; None keeps all. A column stays zeroed in a view of a view.

        Raises:
            InputError: a mask of another length or type.
        """
        adjacency, columns = self.adjacency, self.keep_columns
        if keep_edges is not None:
            adjacency = adjacency.compressed(self._mask(keep_edges, self.num_edges, "keep_edges"))
        if keep_columns is not None:
            keep_columns = self._mask(keep_columns, self.num_features, "keep_columns")
            columns = keep_columns if columns is None else columns & keep_columns
        return Graph(self.features, adjacency, columns)

    def _mask(self, mask: Tensor, length: int, name: str) -> Tensor:
        if mask.dtype != torch.bool or mask.shape != (length,):
            raise InputError(f"{name} must be a bool tensor of length {length}, as many as this graph has")
        return mask.to(self.device)

    def __repr__(self) -> str:
        return f"Graph(nodes={self.num_nodes}, edges={self.num_edges}, features={self.num_features})"
