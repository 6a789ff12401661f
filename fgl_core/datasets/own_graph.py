"""One graph of the user's: a folder with edges, features and labels, each a .csv or an .npz file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fgl_core.datasets.node import NodeDataset, sparse_features, undirected_edges
from fgl_core.datasets.numbers import Numbers, read_numbers
from fgl_core.errors import InputError

PARTS = ("edges", "features", "labels")


def read_own_graph(folder: Path, name: str) -> tuple[NodeDataset, str]:
    """Read ``edges`` (two node numbers a row), ``features`` (a row per node), ``labels`` (a number per node).

    Nodes are numbered from 0 in the order of the rows. Edges have no direction and no weight: self-loops are
    left out, an edge that is listed again counts once. Labels become the classes 0, 1, ... in their order.

    Returns:
        The graph, and a summary of what it holds and what was left out.

    Raises:
        InputError: one line with the file, the line and the remedy.
    """
    tables = {part: read_numbers(_file(folder, part)) for part in PARTS}
    labels, y, renumbered = _classes(tables["labels"])
    x = _features(tables["features"], len(y))
    pairs = tables["edges"].whole(2, "an edge is two node numbers, without a weight")
    _check_nodes(tables["edges"], pairs, len(y))
    edges = undirected_edges(pairs)
    if not len(edges):
        raise InputError(
            f"{tables['edges'].path} joins no two different nodes: without edges there is no graph"
        )
    dataset = NodeDataset(name, x, edges, y, len(labels))
    return dataset, "; ".join([counts(dataset), *left_out(pairs, edges, len(y)), *renumbered])


def counts(dataset: NodeDataset) -> str:
    """How large a graph is."""
    return (
        f"{dataset.num_nodes} nodes, {len(dataset.edges)} edges, {dataset.x.shape[1]} features,"
        f" {dataset.num_classes} classes"
    )


def left_out(pairs: np.ndarray, edges: np.ndarray, nodes: int) -> list[str]:
    """What a reader may not expect of a list of edges, in words.

    Args:
        pairs: int ``[k, 2]``, as listed.
        edges: int ``[e, 2]``, as kept.
        nodes: number of nodes.
    """
    loops = int((pairs[:, 0] == pairs[:, 1]).sum())
    again = len(pairs) - loops - len(edges)
    again *= again != len(edges)  # every edge in both directions, as many files list them
    alone = nodes - len(np.unique(edges))
    counted = (
        (loops, f"{loops} self-loop{'s' * (loops > 1)} left out"),
        (again, f"{again} row{'s' * (again > 1)} named an edge again, in this direction or the other"),
        (alone, f"{alone} node{'s' * (alone > 1)} without an edge"),
    )
    return [text for count, text in counted if count]


def _file(folder: Path, part: str) -> Path:
    found = [path for suffix in (".csv", ".npz") if (path := folder / f"{part}{suffix}").is_file()]
    if not found:
        raise InputError(
            f"{folder} has no {part}.csv and no {part}.npz: one graph needs {', '.join(PARTS)}; a set of"
            " graphs needs NAME_A.txt, NAME_graph_indicator.txt and NAME_graph_labels.txt"
        )
    if len(found) > 1:
        raise InputError(f"{folder} has both {part}.csv and {part}.npz: leave the one that counts")
    return found[0]


def _classes(table: Numbers) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The labels that occur, each node's position among them, and a word where the two differ."""
    given = table.whole(1, "a label is one whole number")[:, 0]
    if given.min() < 0:
        row = int((given < 0).argmax())
        raise InputError(
            f"{table.place(row)}: label {given[row]} is negative: number classes from 0, and leave out nodes"
            " without a class"
        )
    labels, y = np.unique(given, return_inverse=True)
    if len(labels) < 2:
        raise InputError(f"{table.path}: all nodes have label {labels[0]}: classification needs two classes")
    same = np.array_equal(labels, np.arange(len(labels)))
    words = [] if same else [f"labels {_some(labels)} became classes 0 to {len(labels) - 1}"]
    return labels, y.astype(np.int64), words


def _features(table: Numbers, nodes: int) -> sp.csr_array:
    if len(table) != nodes:
        raise InputError(
            f"{table.path} has {len(table)} rows, but there are {nodes} labels: both need a row for each node"
        )
    with np.errstate(over="ignore"):
        x = sparse_features(table.values)
    if not np.isfinite(x.data).all():
        raise InputError(f"{table.path} holds numbers beyond 3e38: scale the features")
    return x


def _check_nodes(table: Numbers, pairs: np.ndarray, nodes: int) -> None:
    outside = ((pairs < 0) | (pairs >= nodes)).any(axis=1)
    if outside.any():
        row = int(outside.argmax())
        raise InputError(
            f"{table.place(row)}: there is no node {next(n for n in pairs[row] if not 0 <= n < nodes)}: the"
            f" {nodes} nodes are numbered 0 to {nodes - 1}, in the order of features and labels"
        )


def _some(labels: np.ndarray) -> str:
    texts = [str(label) for label in labels]
    return ", ".join(texts if len(texts) <= 6 else [*texts[:4], "...", texts[-1]])
