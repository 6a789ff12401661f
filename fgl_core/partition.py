"""Who holds what: which client owns each node, and which nodes are for training, validation and test.

Both are drawn from generators that the caller gives, so that a seed decides them, whatever the order in which
edges are listed, Python's hash seed, or random numbers drawn elsewhere. The split is drawn on the whole graph
and does not depend on the partition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from fgl_core.datasets.node import NodeDataset, undirected_edges
from fgl_core.errors import InputError, unknown

QUOTAS: dict[str, tuple[int, int]] = {"cora": (232, 542), "citeseer": (332, 665), "pubmed": (3943, 3943)}
"""Training nodes per class and validation nodes in all, as the field uses them: 60 % of the nodes over the
number of classes, rounded down, and 20 % of the nodes. Citeseer's count its nodes without a label too."""


@dataclass(frozen=True)
class Split:
    """Which nodes of the whole graph are for what: bool masks ``[n]``, disjoint, together all nodes."""

    train: np.ndarray
    val: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Subgraph:
    """What one client holds: its nodes and the edges between them.

    Attributes:
        nodes: their numbers in the whole graph, int64 ``[n]``, sorted.
        x: features, float32 ``[n, f]``.
        edges: int64 ``[e, 2]`` in the client's own numbering, each undirected edge once as ``u < v``, sorted.
        y: classes, int64 ``[n]``.
        train, val, test: bool masks ``[n]``.
    """

    nodes: np.ndarray
    x: sp.csr_array
    edges: np.ndarray
    y: np.ndarray
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray


def split_nodes(
    y: np.ndarray,
    kind: Literal["stratified", "quota"],
    rng: np.random.Generator,
    *,
    quota: tuple[int, int] | None = None,
) -> Split:
    """Split the nodes of the whole graph.

    ``stratified``: 60 % of each class for training, 20 % for validation, 20 % for test; a class of three
    nodes or more has at least one of each. ``quota``: the same number of training nodes from every class, all
    of its nodes where it has no more, so that small classes may have no test node; validation nodes are drawn
    from what is left, whatever their class, and the rest is for test.

    Args:
        y: class of each node, int ``[n]``.
        quota: training nodes per class and validation nodes in all, e.g. one of :data:`QUOTAS`; by default
            60 % of the nodes over the number of classes, rounded down, and 20 % of the nodes.

    Raises:
        InputError: an unknown kind.
    """
    if kind not in ("stratified", "quota"):
        raise unknown("split", kind, ("stratified", "quota"))
    part = np.full(len(y), 2)  # 0 train, 1 validation, 2 test
    if kind == "stratified":
        for label in np.unique(y):
            nodes = rng.permutation(np.flatnonzero(y == label))
            train, val = _sixty_twenty(len(nodes))
            part[nodes[:train]] = 0
            part[nodes[train : train + val]] = 1
    else:
        classes = np.unique(y)
        per_class, validation = quota or default_quota(len(y), len(classes))
        for label in classes:
            part[rng.permutation(np.flatnonzero(y == label))[:per_class]] = 0
        part[rng.permutation(np.flatnonzero(part == 2))[:validation]] = 1
    return Split(*(part == number for number in range(3)))


def default_quota(nodes: int, classes: int) -> tuple[int, int]:
    """Training nodes per class, 60 % of the nodes over the number of classes, and 20 % for validation."""
    return max(1, nodes * 6 // (10 * classes)), (nodes * 2 + 5) // 10


def partition_nodes(
    dataset: NodeDataset, clients: int, kind: Literal["louvain", "random"], rng: np.random.Generator
) -> np.ndarray:
    """Give every node to one client.

    ``louvain``: communities found by the Louvain method; those larger than a client's share (the nodes
    divided by the clients, rounded down) are cut into shares in the order of their nodes; then the pieces,
    largest first, each go to the client with the fewest nodes. ``random``: nodes dealt out in equal numbers.

    Returns:
        The owner of each node, int64 ``[n]``, 0 to ``clients - 1``. Every client owns at least one node.

    Raises:
        InputError: an unknown kind, or a number of clients that the nodes cannot be given to.
    """
    n = dataset.num_nodes
    if kind not in ("louvain", "random"):
        raise unknown("partition", kind, ("louvain", "random"))
    if not 1 <= clients <= n:
        raise InputError(
            f"the {n} nodes of {dataset.name} cannot be given to {clients} clients: choose 1 to {n} clients"
        )
    owner = np.zeros(n, np.int64)
    if kind == "random":
        for client, nodes in enumerate(np.array_split(rng.permutation(n), clients)):
            owner[nodes] = client
        return owner
    if clients == 1:
        return owner
    share = n // clients
    pieces = [
        nodes[start : start + share]
        for nodes in _communities(dataset, int(rng.integers(2**31)))
        for start in range(0, len(nodes), share)
    ]
    # pieces of at most n // clients nodes are at least as many as the clients, so that none goes empty
    sizes = np.zeros(clients, np.int64)
    for nodes in sorted(pieces, key=lambda nodes: (-len(nodes), nodes[0])):
        client = int(sizes.argmin())
        owner[nodes] = client
        sizes[client] += len(nodes)
    return owner


def subgraphs(dataset: NodeDataset, split: Split, owner: np.ndarray) -> list[Subgraph]:
    """What each client holds; edges between clients are in none of them.

    Raises:
        InputError: a client has no training node.
    """
    owner_of_edge = _edge_owner(dataset, owner)
    number = np.empty(dataset.num_nodes, np.int64)
    parts = []
    for client in range(int(owner.max()) + 1):
        nodes = np.flatnonzero(owner == client)
        number[nodes] = np.arange(len(nodes))
        parts.append(
            Subgraph(
                nodes=nodes,
                x=dataset.x[nodes],
                edges=number[dataset.edges[owner_of_edge == client]],
                y=dataset.y[nodes],
                train=split.train[nodes],
                val=split.val[nodes],
                test=split.test[nodes],
            )
        )
    without = [client for client, part in enumerate(parts) if not part.train.any()]
    if without:
        first, fewer = without[0], max(1, len(parts) - len(without))
        raise InputError(
            f"client {first} of {len(parts)}, counted from 0, has no training node (it holds"
            f" {len(parts[first].nodes)} of the {dataset.num_nodes} nodes of {dataset.name}): choose fewer"
            f" clients, for example {fewer}"
        )
    return parts


def partition_statistics(dataset: NodeDataset, split: Split, owner: np.ndarray) -> dict[str, Any]:
    """How a partition looks, ready for JSON.

    Returns:
        ``clients``: for each one ``nodes``, ``edges`` (inside it), ``train``, ``val``, ``test`` (nodes),
        ``classes`` (how many it has nodes of) and ``class_counts`` (nodes of each class).
        ``edges_lost``: edges between clients. ``edges_lost_share``: of all edges.
        ``label_skew``: half the sum of absolute differences between the class shares of a client and of the
        whole graph (total variation distance), averaged over nodes: 0 when all are alike, up to 1.
        ``size_skew``: standard deviation of the clients' numbers of nodes, divided by their mean.
    """
    count = int(owner.max()) + 1
    edges = np.bincount(_edge_owner(dataset, owner) + 1, minlength=count + 1)
    table = np.zeros((count, dataset.num_classes), np.int64)
    np.add.at(table, (owner, dataset.y), 1)
    sizes = table.sum(axis=1)
    nodes = {
        name: np.bincount(owner[getattr(split, name)], minlength=count) for name in ("train", "val", "test")
    }
    whole = table.sum(axis=0) / sizes.sum()
    distance = np.abs(table / np.maximum(sizes, 1)[:, None] - whole).sum(axis=1) / 2
    return {
        "clients": [
            {
                "nodes": int(sizes[client]),
                "edges": int(edges[client + 1]),
                **{name: int(counts[client]) for name, counts in nodes.items()},
                "classes": int((table[client] > 0).sum()),
                "class_counts": table[client].tolist(),
            }
            for client in range(count)
        ],
        "edges_lost": int(edges[0]),
        "edges_lost_share": float(edges[0] / max(1, len(dataset.edges))),
        "label_skew": float(np.average(distance, weights=sizes)),
        "size_skew": float(sizes.std() / sizes.mean()),
    }


def partition_digest(owner: np.ndarray, split: Split) -> str:
    """sha256 of who owns each node and what it is for: equal when and only when both are."""
    part = split.val * np.int64(1) + split.test * np.int64(2)
    digest = hashlib.sha256(np.ascontiguousarray(owner, dtype="<i8"))
    digest.update(np.ascontiguousarray(part, dtype="<i8"))
    return digest.hexdigest()


def _sixty_twenty(count: int) -> tuple[int, int]:
    """How many of a class are for training and for validation."""
    if count == 3:
        return 1, 1
    train, val_end = (6 * count + 5) // 10, (8 * count + 5) // 10  # rounded half up, in whole numbers
    return train, val_end - train


def _communities(dataset: NodeDataset, seed: int) -> Sequence[np.ndarray]:
    """Louvain communities, each a sorted array of nodes."""
    edges = np.ascontiguousarray(undirected_edges(dataset.edges), dtype="<i8")
    return _louvain(edges.tobytes(), dataset.num_nodes, seed)


@lru_cache(maxsize=32)  # the runs of a study share graphs and seeds, and finding communities takes seconds
def _louvain(edges: bytes, nodes: int, seed: int) -> tuple[np.ndarray, ...]:
    import community.community_louvain as louvain
    import networkx as nx

    # the method visits nodes and neighbours in the order of their insertion, even with a fixed seed
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(np.frombuffer(edges, "<i8").reshape(-1, 2).tolist())
    found = louvain.best_partition(graph, random_state=seed)
    label = np.array([found[node] for node in range(nodes)])
    communities = tuple(np.flatnonzero(label == value) for value in np.unique(label))
    for community in communities:
        community.flags.writeable = False
    return communities


def _edge_owner(dataset: NodeDataset, owner: np.ndarray) -> np.ndarray:
    """The client that holds both ends of each edge, -1 where there is none."""
    ends = owner[dataset.edges]
    return np.where(ends[:, 0] == ends[:, 1], ends[:, 0], -1)
