"""The citation networks Cora, Citeseer and Pubmed, from raw files to arrays.

Papers are nodes, a citation in either direction is an edge, features are the words of a paper.
"""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fgl_core.datasets.node import NodeDataset, sparse_features, undirected_edges
from fgl_core.datasets.registry import Entry
from fgl_core.datasets.sources import obtain, raw_folder
from fgl_core.datasets.transfer import arriving

# the classes of Cora in the order of the Planetoid files
CORA_CLASSES = (
    "Theory",
    "Reinforcement_Learning",
    "Genetic_Algorithms",
    "Neural_Networks",
    "Probabilistic_Methods",
    "Case_Based",
    "Rule_Learning",
)
UNLABELLED = -1


def load_citation(entry: Entry, *, keep_unlabelled: bool = False) -> NodeDataset:
    """Load a citation network, from the parsed form beside the raw files where there is one.

    The raw files are checked against the registry every time, before anything is unpickled.

    Args:
        keep_unlabelled: keep the nodes that have neither features nor a label (15 in Citeseer, with 16 edges)
            as nodes of class 0, which is how they are commonly read.

    Raises:
        InputError: the data cannot be had, or a file is damaged.
    """
    paths, _ = obtain(entry)
    stored = raw_folder() / Path(entry.folder).parent / "parsed.npz"
    full = _read(stored, entry)
    if full is None:
        papers = paths[0].name.startswith("cora.")
        full = _from_papers(entry.name, paths) if papers else _from_planetoid(entry.name, paths)
        if full.digest() != entry.parsed:
            raise RuntimeError(
                f"{entry.name} was read as other numbers (sha256 {full.digest()}) than those known for it:"
                " the installed torch-geometric, scipy or numpy reads the files in another way"
            )
        _write(stored, full)
    return replace(full, y=np.maximum(full.y, 0)) if keep_unlabelled else _without_unlabelled(full)


def _from_planetoid(name: str, paths: list[Path]) -> NodeDataset:
    """The dataset as PyG reads the Planetoid files; nodes that these leave out have label -1."""
    from torch_geometric.io import read_planetoid_data

    data = read_planetoid_data(str(paths[0].parent), name)
    y = data.y.numpy().astype(np.int64)
    test = np.loadtxt(next(path for path in paths if path.name.endswith("test.index")), dtype=np.int64)
    y[np.setdiff1d(np.arange(test.min(), len(y)), test)] = UNLABELLED
    edges = undirected_edges(data.edge_index.numpy().T)
    return NodeDataset(name, sparse_features(data.x.numpy()), edges, y, int(y.max()) + 1)


def _from_papers(name: str, paths: list[Path]) -> NodeDataset:
    """Cora from the two files it was first published as, its papers in the order of the Planetoid files.

    That order stands in ``cora_papers.txt``: it was found by matching features, labels and citations, and
    gives the same dataset, number for number.
    """
    content, cites = sorted(paths, key=lambda path: path.name, reverse=True)
    papers = Path(__file__).with_name("cora_papers.txt").read_text().split()
    order = {paper: row for row, paper in enumerate(papers)}
    x, y = [np.empty(0)] * len(order), np.zeros(len(order), np.int64)
    for line in content.read_text().splitlines():
        paper, *words, label = line.split("\t")
        x[order[paper]] = np.array(words, dtype=np.float32)
        y[order[paper]] = CORA_CLASSES.index(label)
    pairs = [[order[paper] for paper in line.split()] for line in cites.read_text().splitlines()]
    edges = undirected_edges(np.array(pairs))
    return NodeDataset(name, sparse_features(np.stack(x)), edges, y, len(CORA_CLASSES))


def _without_unlabelled(dataset: NodeDataset) -> NodeDataset:
    """Drop the nodes with label -1 and their edges, and number the others anew."""
    keep = dataset.y != UNLABELLED
    number = np.cumsum(keep) - 1
    edges = dataset.edges[keep[dataset.edges].all(axis=1)]
    return replace(dataset, x=dataset.x[np.flatnonzero(keep)], edges=number[edges], y=dataset.y[keep])


def _read(path: Path, entry: Entry) -> NodeDataset | None:
    """The parsed form, or None when there is none or it is not the right one."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            parts = (stored["data"], stored["indices"], stored["indptr"])
            x = sp.csr_array(parts, shape=tuple(stored["shape"]))
            dataset = NodeDataset(entry.name, x, stored["edges"], stored["y"], int(stored["y"].max()) + 1)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return dataset if dataset.digest() == entry.parsed else None


def _write(path: Path, dataset: NodeDataset) -> None:
    x = dataset.x
    try:
        with arriving(path) as part, open(part, "wb") as file:
            np.savez_compressed(
                file,
                data=x.data,
                indices=x.indices,
                indptr=x.indptr,
                shape=np.array(x.shape),
                edges=dataset.edges,
                y=dataset.y,
            )
    except OSError:
        pass  # only a shortcut: without it the raw files are read again next time
