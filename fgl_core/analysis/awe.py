"""Anonymous walk embeddings: the structure of a graph as a distribution over walk patterns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial.distance import jensenshannon

from fgl_core.errors import InputError

BATCH = 20_000


def anonymous_walks(length: int) -> list[tuple[int, ...]]:
    """Every anonymous walk of ``length`` steps on a graph without self-loops, sorted.

    A walk is made anonymous by naming its nodes in order of first visit: (b, c, b) becomes (0, 1, 0). So each
    entry is at most one above the largest before it, and differs from its predecessor.
    """

    def extend(walk: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(walk) == length + 1:
            yield walk
            return
        for node in range(max(walk) + 2):
            if node != walk[-1]:
                yield from extend((*walk, node))

    return sorted(extend((0,)))


def chance_distance(length: int, walks: int) -> float:
    """About how far apart two distributions of the same graph lie by drawing its walks, at most.

    For n walks of K kinds that are all common, a Jensen–Shannon distance of √((K - 1) / (4 n ln 2)).
    """
    return float(np.sqrt((len(anonymous_walks(length)) - 1) / (4 * walks * np.log(2))))


def anonymise(walks: np.ndarray) -> np.ndarray:
    """Rename the nodes of each walk in order of first visit; int64 ``[w, steps + 1]`` in and out."""
    first = (walks[:, :, None] == walks[:, None, :]).argmax(axis=2)  # where each node is seen first
    order = (first == np.arange(walks.shape[1])).cumsum(axis=1) - 1
    return np.take_along_axis(order, first, axis=1)


def walk_distribution(
    edges: np.ndarray, num_nodes: int, length: int, walks: int, rng: np.random.Generator
) -> np.ndarray:
    """Anonymous walk embedding of a graph: shares of each pattern among random walks.

    Ivanov and Burnaev (ICML 2018), the feature-based form: walks start at a node drawn uniformly and go to a
    neighbour drawn uniformly. Nodes without neighbours have no walk and are never a start.

    Args:
        edges: unique undirected edges without self-loops, int64 ``[e, 2]``.
        length: steps of a walk.
        walks: number of random walks.

    Returns:
        Shares in the order of :func:`anonymous_walks`, float64, sum 1.

    Raises:
        InputError: the graph has no edge.
    """
    if len(edges) == 0:
        raise InputError("a graph without edges has no walks: leave it out, or use fewer clients")
    both = np.concatenate([edges, edges[:, ::-1]])
    adjacency = csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(num_nodes, num_nodes))
    start, degree = adjacency.indptr[:-1], np.diff(adjacency.indptr)
    connected = np.flatnonzero(degree)
    patterns = np.array(anonymous_walks(length))
    base = (length + 1) ** np.arange(length + 1)
    counts = np.zeros(len(patterns))
    codes = patterns @ base
    order = np.argsort(codes)
    for done in range(0, walks, BATCH):
        steps = [rng.choice(connected, min(BATCH, walks - done))]
        for _ in range(length):
            now = steps[-1]
            steps.append(
                adjacency.indices[start[now] + (rng.random(len(now)) * degree[now]).astype(np.int64)]
            )
        seen = anonymise(np.stack(steps, axis=1)) @ base
        counts += np.bincount(order[np.searchsorted(codes[order], seen)], minlength=len(patterns))
    return counts / walks


def pairwise_js_distance(distributions: list[np.ndarray]) -> np.ndarray:
    """Jensen–Shannon distance (root of the divergence, base 2, 0 to 1) between every two distributions."""
    count = len(distributions)
    matrix = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = jensenshannon(distributions[i], distributions[j], base=2)
    return matrix
