"""A set of graphs of the user's: a folder in the text format of the TU collection."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from fgl_core.datasets.embedded import GraphDataset
from fgl_core.datasets.node import undirected_edges
from fgl_core.datasets.numbers import Numbers, read_numbers
from fgl_core.datasets.own_graph import left_out
from fgl_core.datasets.tudataset import Arrays, node_features
from fgl_core.errors import InputError

INDICATOR = "_graph_indicator.txt"
WIDEST = 10_000  # columns of a one-hot vector


def set_name(folder: Path) -> str | None:
    """What the files of a set begin with; None where the folder holds no set of graphs.

    Raises:
        InputError: it holds several.
    """
    found = sorted(path.name.removesuffix(INDICATOR) for path in folder.glob(f"*{INDICATOR}"))
    if len(found) > 1:
        raise InputError(
            f"{folder} holds several sets of graphs ({', '.join(found)}): give each its own folder"
        )
    return found[0] if found else None


def read_own_graphs(folder: Path, name: str) -> tuple[Arrays, str, str]:
    """Read ``NAME_A.txt``, ``NAME_graph_indicator.txt``, ``NAME_graph_labels.txt``, and where there are any
    ``NAME_node_labels.txt`` and ``NAME_node_attributes.txt``.

    Nodes and graphs are numbered from 1, the nodes of a graph stand together. Graph labels are whole numbers
    and become the classes 0, 1, ... in their order. Edges have no direction; files on edges are not read.

    Returns:
        Arrays as :func:`as_dataset` takes them, a sha256 of them, and a summary.

    Raises:
        InputError: one line with the file, the line and the remedy.
    """
    tables = {
        part: read_numbers(path)
        for part in ("A", "graph_indicator", "graph_labels", "node_labels", "node_attributes")
        if (path := _file(folder, name, part))
    }
    graph = tables["graph_indicator"].whole(1, "each line is the number of the node's graph")[:, 0]
    given = tables["graph_labels"].whole(1, "each line is the label of a graph")[:, 0]
    sizes = _sizes(tables["graph_indicator"], graph, len(given))
    labels, y = np.unique(given, return_inverse=True)
    if len(labels) < 2:
        raise InputError(
            f"{tables['graph_labels'].path}: all graphs have label {labels[0]}: classification needs two"
            " classes"
        )
    pairs = _pairs(tables["A"], graph)
    arrays = {
        "offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "y": y.astype(np.int64),
        "edges": undirected_edges(pairs),
    }
    if not len(arrays["edges"]):
        raise InputError(f"{tables['A'].path} joins no two different nodes: without edges there is no graph")
    arrays |= _of_nodes(tables, len(graph))
    features = node_features(arrays, attributes=False).shape[1]
    summary = (
        f"{len(y)} graphs, {len(graph)} nodes, {len(arrays['edges'])} edges, {features} features,"
        f" {len(labels)} classes"
    )
    return arrays, _sha256(arrays), "; ".join([summary, *left_out(pairs, arrays["edges"], len(graph))])


def as_dataset(name: str, arrays: Arrays, attributes: bool) -> GraphDataset:
    """The set with its node features, as :func:`~fgl_core.datasets.tudataset.load_tudataset` makes them."""
    return GraphDataset(
        name=name,
        x=node_features(arrays, attributes),
        edges=arrays["edges"],
        offsets=arrays["offsets"],
        y=arrays["y"],
        num_classes=int(arrays["y"].max()) + 1,
    )


def _file(folder: Path, name: str, part: str) -> Path | None:
    path = folder / f"{name}_{part}.txt"
    if path.is_file():
        return path
    if part.startswith("node_"):
        return None
    raise InputError(
        f"{folder} has no {path.name}: a set of graphs needs {name}_A.txt, {name}{INDICATOR} and"
        f" {name}_graph_labels.txt"
    )


def _sizes(table: Numbers, graph: np.ndarray, graphs: int) -> np.ndarray:
    """The number of nodes of each graph."""
    wrong = np.append(graph[0] != 1, ~np.isin(np.diff(graph), (0, 1)))
    if wrong.any():
        row = int(wrong.argmax())
        after = f" after graph {graph[row - 1]}" if row else " comes first"
        raise InputError(
            f"{table.place(row)}: graph {graph[row]}{after}: graphs are numbered from 1, each has a node, and"
            " its nodes stand together"
        )
    if graph[-1] != graphs:
        raise InputError(
            f"{table.path} names {graph[-1]} graphs, but there are {graphs} graph labels: one for each graph"
        )
    return np.bincount(graph - 1)


def _pairs(table: Numbers, graph: np.ndarray) -> np.ndarray:
    """The listed edges, numbered from 0."""
    pairs, nodes = table.whole(2, "an edge is two node numbers"), len(graph)
    outside = ((pairs < 1) | (pairs > nodes)).any(axis=1)
    if outside.any():
        row = int(outside.argmax())
        stranger = next(node for node in pairs[row] if not 1 <= node <= nodes)
        raise InputError(
            f"{table.place(row)}: there is no node {stranger}: the {nodes} nodes are numbered 1 to {nodes}"
        )
    ends = graph[pairs - 1]
    across = ends[:, 0] != ends[:, 1]
    if across.any():
        row = int(across.argmax())
        raise InputError(
            f"{table.place(row)}: an edge between graph {ends[row, 0]} and graph {ends[row, 1]}: edges stay"
            " inside one graph"
        )
    return pairs - 1


def _of_nodes(tables: dict[str, Numbers], nodes: int) -> Arrays:
    """Labels and attributes of nodes, where there are any."""
    found: Arrays = {}
    for part in ("node_labels", "node_attributes"):
        if part not in tables:
            continue
        table = tables[part]
        if len(table) != nodes:
            raise InputError(
                f"{table.path} has {len(table)} rows for {nodes} nodes: it needs one for each node"
            )
        columns = table.values.shape[1]
        if part == "node_attributes":
            with np.errstate(over="ignore"):
                found["attributes"] = table.values.astype(np.float32)
            if not np.isfinite(found["attributes"]).all():
                raise InputError(f"{table.path} holds numbers beyond 3e38: scale the attributes")
            continue
        found["labels"] = table.whole(columns, "node labels are whole numbers")
        spread = int((found["labels"].max(axis=0) - found["labels"].min(axis=0)).max()) + 1
        if spread > WIDEST:
            raise InputError(
                f"{table.path}: node labels spread over {spread} numbers, and each gets a column: number them"
                f" anew, without gaps, {WIDEST} at most"
            )
    return found


def _sha256(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        kind = "<f4" if name == "attributes" else "<i8"
        digest.update(repr((name, array.shape)).encode())
        digest.update(np.ascontiguousarray(array, dtype=kind))
    return digest.hexdigest()
