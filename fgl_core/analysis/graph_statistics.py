"""How unlike the graphs of one set are: sizes, rings, degrees, node features, from graph to graph.

No graph is compared with another one by one: each is described by a few numbers, and the set by how these
spread over its graphs.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from fgl_core.datasets import GraphDataset

PERCENTILES = (0, 5, 10, 25, 50, 75, 90, 95, 100)  # each is a value that some graph has
DEGREES = (0, 1, 2, 3, 4, 5, 9, 17, 33, 65, 129, 257)  # bins by their smallest degree; the last is open
COLUMNS = 8  # of the node features, those with the largest means
FEW_RINGS = 20  # sizes of rings are known where no graph has more independent rings, else they take long
DRAWN, DRAWN_NODES, DRAWN_EDGES = 6, 40, 120  # so many graphs to draw, none with more nodes or edges


def graph_statistics(dataset: GraphDataset, rng: np.random.Generator) -> dict[str, Any]:
    """What a record says of a set of graphs.

    Args:
        rng: draws the graphs to be shown, see :func:`drawn_graphs`.

    Returns:
        ``graphs``, ``nodes``, ``edges``, ``features``: numbers in the whole set; ``class_counts``;
        ``per_graph``: of nodes, edges, mean degree, rings (:func:`ring_counts`) and components of a graph,
        the mean over graphs and their :data:`PERCENTILES`; ``without_rings``: number of graphs;
        ``ring_sizes``: see there; ``degrees`` (bins of :data:`DEGREES`) and ``feature_means``: see
        :func:`shares`; ``between``: of degrees and features, see :func:`between_share`; ``drawn``: see
        :func:`drawn_graphs`.
    """
    sizes, edges = np.diff(dataset.offsets), edge_counts(dataset)
    components, rings = component_counts(dataset), ring_counts(dataset)
    degree = np.bincount(dataset.edges.ravel(), minlength=dataset.offsets[-1])
    means = per_graph_means(dataset.x, dataset.offsets)
    measures = {
        "nodes": sizes,
        "edges": edges,
        "degree": 2 * edges / sizes,
        "rings": rings,
        "components": components,
    }
    bins = np.digitize(degree, DEGREES) - 1
    one_hot = sp.csr_array(
        (np.ones(len(bins)), bins, np.arange(len(bins) + 1)), shape=(len(bins), len(DEGREES))
    )
    return {
        "graphs": dataset.num_graphs,
        "nodes": int(sizes.sum()),
        "edges": len(dataset.edges),
        "features": dataset.x.shape[1],
        "class_counts": np.bincount(dataset.y, minlength=dataset.num_classes).tolist(),
        "per_graph": {name: _spread(values) for name, values in measures.items()},
        "without_rings": int((rings == 0).sum()),
        "ring_sizes": ring_sizes(dataset, rings),
        "degrees": shares(per_graph_means(one_hot, dataset.offsets), np.arange(len(DEGREES)), DEGREES),
        "feature_means": shares(means, np.sort(np.argsort(-means.mean(axis=0), kind="stable")[:COLUMNS])),
        "between": {
            "degree": between_share(sp.csr_array(degree[:, None].astype(float)), dataset.offsets),
            "features": between_share(dataset.x, dataset.offsets),
        },
        "drawn": drawn_graphs(dataset, rings, rng),
    }


def edge_counts(dataset: GraphDataset) -> np.ndarray:
    """Number of edges of each graph, int64 [g]."""
    return np.diff(np.searchsorted(dataset.edges[:, 0], dataset.offsets))


def component_counts(dataset: GraphDataset) -> np.ndarray:
    """Number of connected components of each graph, int64 [g]."""
    n = int(dataset.offsets[-1])
    ones = np.ones(len(dataset.edges), np.int8)
    adjacency = sp.csr_array((ones, (dataset.edges[:, 0], dataset.edges[:, 1])), shape=(n, n))
    _, component = connected_components(adjacency, directed=False)
    _, first = np.unique(component, return_index=True)
    return np.bincount(_owner(dataset)[first], minlength=dataset.num_graphs)


def ring_counts(dataset: GraphDataset) -> np.ndarray:
    """Independent rings of each graph, int64 [g]: the cyclomatic number, edges − nodes + components.

    It is 0 for a tree, and for several trees side by side; every edge beyond adds one.
    """
    return edge_counts(dataset) - np.diff(dataset.offsets) + component_counts(dataset)


def ring_sizes(dataset: GraphDataset, rings: np.ndarray) -> dict[str, int] | None:
    """How many rings of each size the set has, over the smallest rings that make all others.

    These are the rings of a minimum cycle basis; which ones it takes may be open, their sizes never are.

    Args:
        rings: from :func:`ring_counts`.

    Returns:
        Number by size; None when a graph has more than :data:`FEW_RINGS` rings.
    """
    if rings.max() > FEW_RINGS:
        return None
    import networkx as nx

    counted: Counter[int] = Counter()
    for graph in np.flatnonzero(rings):
        # without what hangs on the rings, the basis is the same and found sooner
        core = nx.k_core(nx.Graph(_edges(dataset, graph).tolist()), 2)
        counted.update(len(ring) for ring in nx.minimum_cycle_basis(core))
    return {str(size): counted[size] for size in sorted(counted)}


def per_graph_means(x: sp.csr_array, offsets: np.ndarray) -> np.ndarray:
    """Mean of each column over the nodes of each graph, [g, f]; of one-hot columns, the share of each.

    Args:
        x: a row per node, [n, f].
        offsets: as in :class:`~fgl_core.datasets.GraphDataset`.
    """
    n = int(offsets[-1])
    weights = np.repeat(1 / np.diff(offsets), np.diff(offsets))
    average = sp.csr_array((weights, np.arange(n), offsets), shape=(len(offsets) - 1, n))
    return (average @ sp.csr_array(x, dtype=float)).toarray()


def shares(means: np.ndarray, columns: np.ndarray, names: Any = None) -> dict[str, list[float]]:
    """Of some columns of :func:`per_graph_means`: mean, and 10th and 90th percentile, over graphs.

    Args:
        names: what to call the columns; their numbers if not given.
    """
    low, high = np.percentile(means[:, columns], (10, 90), axis=0, method="inverted_cdf")
    named = columns if names is None else names
    return {
        "columns": [int(name) for name in named],
        "mean": _rounded(means[:, columns].mean(axis=0)),
        "low": _rounded(low),
        "high": _rounded(high),
    }


def between_share(x: sp.csr_array, offsets: np.ndarray) -> dict[str, float] | None:
    """How much of the nodes' variance lies between graphs: what centring each graph by itself takes away.

    ``share`` is Σ_g n_g ‖x̄_g − x̄‖² / Σ_v ‖x_v − x̄‖²: 0 when all graphs have the same mean, 1 when the nodes
    of a graph are all equal. ``chance`` is what is expected when nodes are dealt to graphs at random:
    (g − 1) / (n − 1).

    Args:
        x: a row per node, [n, f].
        offsets: as in :class:`~fgl_core.datasets.GraphDataset`.

    Returns:
        share and chance; None when all nodes are equal.
    """
    sizes, n = np.diff(offsets), int(offsets[-1])
    x = sp.csr_array(x, dtype=float)
    mean = x.sum(axis=0) / n
    total = float((x.data**2).sum() - n * (mean**2).sum())
    if total <= 1e-9 * n:
        return None
    deviations = per_graph_means(x, offsets) - mean
    between = float((sizes[:, None] * deviations**2).sum())
    return {"share": round(between / total, 5), "chance": round((len(sizes) - 1) / (n - 1), 5)}


def drawn_graphs(dataset: GraphDataset, rings: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    """A few graphs to look at: small enough to draw, and from few rings to many.

    The graphs of at most 40 nodes and 120 edges are ordered by their number of rings, then of nodes, then as
    in the files, and cut into six equal parts; one graph is drawn at random from each part.

    Returns:
        ``eligible``: the number of graphs that small; ``graphs``: of each that was drawn, ``index`` in the
        set, ``class``, ``nodes``, ``rings``, ``labels`` of its nodes (the one-hot column; None where features
        are no labels) and ``edges``, nodes numbered from 0.
    """
    sizes = np.diff(dataset.offsets)
    small = np.flatnonzero((sizes <= DRAWN_NODES) & (edge_counts(dataset) <= DRAWN_EDGES))
    ordered = small[np.lexsort((small, sizes[small], rings[small]))]
    parts = [part for part in np.array_split(ordered, DRAWN) if len(part)]
    labels = dataset.node_labels
    graphs = []
    for graph in (int(rng.choice(part)) for part in parts):
        first, last = dataset.offsets[graph : graph + 2]
        graphs.append(
            {
                "index": graph,
                "class": int(dataset.y[graph]),
                "nodes": int(sizes[graph]),
                "rings": int(rings[graph]),
                "labels": None if labels is None else labels[first:last].tolist(),
                "edges": (_edges(dataset, graph) - first).tolist(),
            }
        )
    return {"eligible": len(small), "graphs": graphs}


def _owner(dataset: GraphDataset) -> np.ndarray:
    """The graph of each node, int64 [n]."""
    return np.repeat(np.arange(dataset.num_graphs), np.diff(dataset.offsets))


def _edges(dataset: GraphDataset, graph: int) -> np.ndarray:
    first, last = np.searchsorted(dataset.edges[:, 0], dataset.offsets[graph : graph + 2])
    return dataset.edges[first:last]


def _spread(values: np.ndarray) -> dict[str, Any]:
    percentiles = np.percentile(values, PERCENTILES, method="inverted_cdf")
    return {"mean": round(float(values.mean()), 5), "percentiles": _rounded(percentiles)}


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 5) for value in values]
