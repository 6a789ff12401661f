"""Datasets that come with the libraries: always there, no file to fetch, the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.sparse as sp

from fgl_core.datasets.node import NodeDataset, sparse_features, undirected_edges

NEIGHBOURS = 5  # of each image in digits-knn
SIDE = 8  # pixels along each side of a digit image
FULL_INK = 16.0  # the darkest pixel value


@dataclass(frozen=True)
class GraphDataset:
    """Many graphs, each to be classified as a whole. Nodes are numbered through all graphs.

    Attributes:
        name: as in the registry.
        x: node features, float32 ``[n, f]``, over all graphs.
        edges: int64 ``[e, 2]``, each undirected edge once as ``u < v``, sorted, without self-loops.
        offsets: int64 ``[g + 1]``: graph i has the nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.
        y: class of each graph, int64 ``[g]``.
        num_classes: number of classes.
    """

    name: str
    x: sp.csr_array
    edges: np.ndarray
    offsets: np.ndarray
    y: np.ndarray
    num_classes: int

    @property
    def num_graphs(self) -> int:
        """Number of graphs, g."""
        return len(self.y)

    @property
    def node_labels(self) -> np.ndarray | None:
        """The column of each node's only entry, int ``[n]``; None where a row of features is not one-hot."""
        one_hot = (np.diff(self.x.indptr) == 1).all() and (self.x.data == 1).all()
        return self.x.indices if one_hot else None


def digits_knn() -> NodeDataset:
    """Scikit-learn's handwritten digits as one graph: every image is linked to its nearest images.

    The distance is Euclidean over pixels, computed without rounding; ties go to the smaller index, so that
    the graph is the same on every machine. Features are the 64 pixels, 0 to 1; classes are the ten digits.
    """
    images, digits = _digits()
    pixels = images.reshape(len(images), -1)
    return NodeDataset("digits-knn", sparse_features(pixels / FULL_INK), _nearest_images().copy(), digits, 10)


@cache
def _nearest_images() -> np.ndarray:
    images, _ = _digits()
    pixels = images.reshape(len(images), -1)  # whole numbers up to 16: every sum below is exact
    norms = (pixels**2).sum(axis=1)
    distances = norms[:, None] + norms[None, :] - 2 * pixels @ pixels.T
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :NEIGHBOURS]
    return undirected_edges(np.column_stack([np.repeat(np.arange(len(pixels)), NEIGHBOURS), nearest.ravel()]))


def karate() -> NodeDataset:
    """Zachary's karate club: 34 members, 78 friendships, and the club each one joined after the split.

    A member's only feature is who it is (a one-hot vector of 34 numbers).
    """
    import networkx as nx

    graph = nx.karate_club_graph()
    clubs = np.array([int(graph.nodes[node]["club"] == "Officer") for node in range(len(graph))])
    return NodeDataset(
        "karate", sparse_features(np.eye(len(graph))), undirected_edges(np.array(graph.edges)), clubs, 2
    )


def digits_graphs() -> GraphDataset:
    """Scikit-learn's handwritten digits as graphs: the inked pixels of each image, linked where they touch.

    Pixels touch along edges and corners. Features of a pixel, 0 to 1: ink, row, column.
    """
    x, edges, offsets, digits = (part.copy() for part in _touching_pixels())
    return GraphDataset("digits-graphs", x, edges, offsets, digits, 10)


@cache
def _touching_pixels() -> tuple[sp.csr_array, np.ndarray, np.ndarray, np.ndarray]:
    images, digits = _digits()
    inked = images > 0
    number = np.cumsum(inked.ravel()).reshape(inked.shape) - 1  # of each inked pixel, through all images
    pairs = []
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        near = (slice(None), slice(0, SIDE - down), slice(max(0, -right), SIDE - max(0, right)))
        far = (slice(None), slice(down, SIDE), slice(max(0, right), SIDE + min(0, right)))
        both = inked[near] & inked[far]
        pairs.append(np.column_stack([number[near][both], number[far][both]]))
    _, row, column = np.nonzero(inked)
    x = np.column_stack([images[inked] / FULL_INK, row / (SIDE - 1), column / (SIDE - 1)])
    offsets = np.concatenate([[0], np.cumsum(inked.sum(axis=(1, 2)))]).astype(np.int64)
    return sparse_features(x), undirected_edges(np.concatenate(pairs)), offsets, digits


def _digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.images, digits.target.astype(np.int64)


EMBEDDED = {"digits-knn": digits_knn, "karate": karate, "digits-graphs": digits_graphs}
