"""One graph whose nodes are to be classified."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class NodeDataset:
    """A graph with features and classes for its nodes.

    Attributes:
        name: as in the registry.
        x: node features, float32 ``[n, f]``.
        edges: int64 ``[e, 2]``, each undirected edge once as ``u < v``, sorted, without self-loops.
        y: class of each node, int64 ``[n]``.
        num_classes: number of classes.
    """

    name: str
    x: sp.csr_array
    edges: np.ndarray
    y: np.ndarray
    num_classes: int

    @property
    def num_nodes(self) -> int:
        """Number of nodes, n."""
        return len(self.y)

    def digest(self) -> str:
        """sha256 of features, edges and classes."""
        digest = hashlib.sha256(repr((self.x.shape, self.num_classes)).encode())
        for array, kind in (
            (self.x.indptr, "<i8"),
            (self.x.indices, "<i8"),
            (self.x.data, "<f4"),
            (self.edges, "<i8"),
            (self.y, "<i8"),
        ):
            digest.update(np.ascontiguousarray(array, dtype=kind))
        return digest.hexdigest()


def undirected_edges(pairs: np.ndarray) -> np.ndarray:
    """Each undirected edge once: ``u < v``, sorted, without self-loops and repeats.

    Args:
        pairs: int ``[k, 2]``, in any order and direction.

    Returns:
        int64 ``[e, 2]``.
    """
    pairs = np.sort(np.asarray(pairs, dtype=np.int64).reshape(-1, 2), axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


def sparse_features(x: np.ndarray | sp.sparray | sp.spmatrix) -> sp.csr_array:
    """Features as a float32 CSR array in canonical form: sorted columns, no stored zeros or repeats."""
    result = sp.csr_array(x, dtype=np.float32)
    result.sum_duplicates()
    result.eliminate_zeros()
    return result


def row_normalised(x: sp.csr_array) -> sp.csr_array:
    """Scale every row to sum to 1; rows that sum to 0 stay as they are."""
    sums = np.asarray(x.sum(axis=1), dtype=np.float64).ravel()
    scale = np.divide(1.0, sums, out=np.ones_like(sums), where=sums != 0)
    data = x.data * np.repeat(scale, np.diff(x.indptr))
    return sp.csr_array((data.astype(np.float32), x.indices, x.indptr), shape=x.shape)
