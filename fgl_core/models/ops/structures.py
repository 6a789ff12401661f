"""What the operators read: sparse feature rows and an adjacency sorted once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from fgl_core.errors import InputError
from fgl_core.models.ops import kernels

FULL = 1 / 2  # of the columns of a row: a dense product is then faster


class Rows:
    """A feature matrix [n, f] kept as compressed sparse rows, with its transpose once that is asked for.

    Bag-of-words features are 1 to 10 % full, so that the product with a weight, and the weight's gradient,
    cost a fraction of the dense products. Rows that are mostly full, such as generated ones, stand in a dense
    block instead. Immutable; shared by every view of a graph.

    Args:
        matrix: the features, any scipy sparse matrix.
        dtype: floating type of the values.
        device: where the torch tensors live.
    """

    def __init__(self, matrix: sp.csr_array, dtype: torch.dtype, device: torch.device) -> None:
        matrix = sp.csr_array(matrix, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        if max(*matrix.shape, matrix.nnz) >= 2**31:
            raise InputError("the features have more than 2^31 entries: split the graph into smaller ones")
        self.matrix = matrix.astype(torch.empty(0, dtype=dtype).numpy().dtype)
        self.dtype = dtype
        self.device = device

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    @cached_property
    def full(self) -> Tensor | None:
        """Which rows make up the dense block, int64; None without any."""
        rows = np.flatnonzero(np.diff(self.matrix.indptr) > FULL * self.shape[1])
        return torch.from_numpy(rows) if len(rows) else None

    @cached_property
    def block(self) -> Tensor | None:
        """Those rows in full."""
        return None if self.full is None else torch.from_numpy(self.matrix[self.full.numpy()].toarray())

    @cached_property
    def sparse(self) -> sp.csr_array:
        """The matrix with empty rows in place of the dense block."""
        if self.full is None:
            return self.matrix
        keep = np.ones(self.shape[0], self.matrix.dtype)
        keep[self.full.numpy()] = 0
        kept = sp.csr_array(sp.diags_array(keep) @ self.matrix)
        kept.eliminate_zeros()
        return kept

    @cached_property
    def csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``(pointer [n + 1], column [nnz], value [nnz])`` of :attr:`sparse`, indices as uint32."""
        return _csr(self.sparse)

    @cached_property
    def transposed(self) -> sp.csr_array:
        """The transpose of the whole matrix [f, n], for the gradient of the weight."""
        return sp.csr_array(self.matrix.T.tocsr())

    @cached_property
    def transposed_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``(pointer [f + 1], row [nnz], value [nnz])`` of the transpose, as in :attr:`csr`."""
        return _csr(self.transposed if self.full is None else sp.csr_array(self.sparse.T.tocsr()))

    @cached_property
    def all_rows(self) -> np.ndarray:
        """Ones, [n] uint8: keeps every row."""
        return np.ones(self.shape[0], np.uint8)

    @cached_property
    def all_columns(self) -> np.ndarray:
        """Ones, [f] uint8: keeps every column."""
        return np.ones(self.shape[1], np.uint8)

    @cached_property
    def dense(self) -> Tensor:
        """The matrix [n, f] in full, as the plain loop holds it."""
        return torch.from_numpy(self.matrix.toarray()).to(self.device)


def _csr(matrix: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # Unsigned: of a signed index a compiled loop asks the sign, as it may count from the end.
    return matrix.indptr.astype(np.uint32), matrix.indices.astype(np.uint32), matrix.data


class Adjacency:
    """Both directions of an undirected graph's edges, sorted by target, without self-loops.

    Attributes:
        pointer: [n + 1] int32, the edges that arrive at node i are ``pointer[i]:pointer[i + 1]``.
        source: [2e] int32, where each edge comes from.
        edge: [2e] int32, which undirected edge each direction belongs to.
    """

    def __init__(self, pointer: Tensor, source: Tensor, edge: Tensor) -> None:
        self.pointer, self.source, self.edge = pointer, source, edge

    @classmethod
    def from_edges(cls, edges: np.ndarray, num_nodes: int, device: torch.device) -> Adjacency:
        """Sort the undirected edges [e, 2] (u < v, unique) once, in both directions."""
        target = np.concatenate([edges[:, 0], edges[:, 1]])
        source = np.concatenate([edges[:, 1], edges[:, 0]])
        order = np.lexsort((source, target))
        pointer = np.zeros(num_nodes + 1, np.int32)
        np.cumsum(np.bincount(target, minlength=num_nodes), out=pointer[1:])
        edge = np.tile(np.arange(len(edges), dtype=np.int32), 2)[order]
        return cls(*(torch.from_numpy(a).to(device) for a in (pointer, source[order].astype(np.int32), edge)))

    @property
    def num_nodes(self) -> int:
        return len(self.pointer) - 1

    @cached_property
    def degree(self) -> Tensor:
        """Distinct neighbours of every node, [n] int64."""
        return self.pointer.diff().long()

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """``(pointer, source)`` as arrays, on the CPU."""
        return self.pointer.numpy(), self.source.numpy()

    @cached_property
    def neighbours(self) -> tuple[Tensor, Tensor]:
        """The directed edges as ``(target, source)``, int64, sorted by target."""
        target = torch.repeat_interleave(self.degree, output_size=len(self.source))
        return target, self.source.long()

    @cached_property
    def with_self_loops(self) -> tuple[Tensor, Tensor]:
        """``(target, source)`` with one edge from each node to itself appended."""
        target, source = self.neighbours
        loop = torch.arange(self.num_nodes, device=target.device)
        return torch.cat([target, loop]), torch.cat([source, loop])

    def compressed(self, keep: Tensor) -> Adjacency:
        """The adjacency without the undirected edges where ``keep`` [e] is False; stays sorted."""
        if kernels.usable(self.pointer):
            compressed = kernels.compress(*self.arrays, self.edge.numpy(), keep.numpy())
            return Adjacency(*map(torch.from_numpy, compressed))
        renumbered = keep.cumsum(0, dtype=torch.int32) - 1
        kept = keep[self.edge]
        edge = renumbered[self.edge[kept]]
        before = torch.zeros(len(kept) + 1, dtype=torch.int32, device=kept.device)
        torch.cumsum(kept, 0, out=before[1:])
        return Adjacency(before[self.pointer], self.source[kept], edge)
