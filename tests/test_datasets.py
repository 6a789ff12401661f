"""Datasets: right numbers, by counts of the papers, by other libraries and by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from planetoid import write_citeseer
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

from fgl_core.datasets import NODE_DATASETS, citation, digits_graphs, load_node_dataset, registry
from fgl_core.datasets.citation import load_citation
from fgl_core.datasets.embedded import NEIGHBOURS
from fgl_core.datasets.node import row_normalised, sparse_features, undirected_edges
from fgl_core.errors import InputError


def assert_canonical(dataset):
    n = dataset.num_nodes
    assert dataset.x.shape[0] == n and dataset.x.dtype == np.float32 and dataset.x.has_canonical_format
    assert dataset.y.dtype == np.int64 and set(np.unique(dataset.y)) == set(range(dataset.num_classes))
    edges = dataset.edges
    assert (
        edges.dtype == np.int64 and (edges[:, 0] < edges[:, 1]).all() and edges.min() >= 0 and edges.max() < n
    )
    assert (np.diff(edges[:, 0] * n + edges[:, 1]) > 0).all()  # sorted, each once


def test_undirected_edges_by_hand():
    pairs = np.array([[3, 1], [1, 3], [2, 2], [0, 3], [1, 3]])
    assert undirected_edges(pairs).tolist() == [[0, 3], [1, 3]]
    assert undirected_edges(np.empty((0, 2))).shape == (0, 2)


def test_row_normalised_by_hand():
    x = sparse_features(np.array([[1, 3, 0], [0, 0, 0], [0, 0, 2]]))
    assert row_normalised(x).toarray().tolist() == [[0.25, 0.75, 0], [0, 0, 0], [0, 0, 1]]
    assert x.toarray().tolist() == [[1, 3, 0], [0, 0, 0], [0, 0, 2]]


def test_karate_is_networkx_graph_with_its_clubs():
    dataset, graph = load_node_dataset("karate"), nx.karate_club_graph()
    assert_canonical(dataset)
    assert {frozenset(edge) for edge in dataset.edges.tolist()} == {frozenset(edge) for edge in graph.edges}
    clubs = ["Mr. Hi", "Officer"]
    assert [clubs[label] for label in dataset.y] == [graph.nodes[node]["club"] for node in range(34)]
    assert np.array_equal(dataset.x.toarray(), np.eye(34))


def test_digits_knn_has_the_distances_of_sklearn():
    dataset, pixels = load_node_dataset("digits-knn"), load_digits().data
    assert_canonical(dataset)
    distances = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(pixels).kneighbors()[0]
    length = np.linalg.norm(pixels[dataset.edges[:, 0]] - pixels[dataset.edges[:, 1]], axis=1)
    ends = np.concatenate([dataset.edges, dataset.edges[:, ::-1]])
    lengths = np.concatenate([length, length])
    for node in range(0, 1797, 13):
        mine = np.sort(lengths[ends[:, 0] == node])
        # its own nearest come first; longer edges are those of images that count this one among their nearest
        assert np.allclose(mine[:NEIGHBOURS], distances[node])
    within_reach = (lengths <= distances[ends[:, 0], -1] + 1e-9).reshape(2, -1).any(axis=0)
    assert within_reach.all()
    assert np.array_equal(dataset.x.toarray(), (pixels / 16).astype(np.float32))


def test_digits_graphs_by_brute_force():
    data, images = digits_graphs(), load_digits().images
    assert data.offsets[-1] == data.x.shape[0] == (images > 0).sum()
    assert np.array_equal(data.y, load_digits().target)
    for number in range(0, data.num_graphs, 100):
        start, stop = data.offsets[number : number + 2]
        pixels = [(r, c) for r in range(8) for c in range(8) if images[number, r, c] > 0]
        touching = [
            [i, j]
            for i, (r, c) in enumerate(pixels)
            for j, (s, d) in enumerate(pixels)
            if i < j and max(abs(r - s), abs(c - d)) == 1
        ]
        inside = data.edges[(data.edges[:, 0] >= start) & (data.edges[:, 0] < stop)]
        assert (inside - start).tolist() == touching
        features = [[images[number, r, c] / 16, r / 7, c / 7] for r, c in pixels]
        assert np.allclose(data.x[np.arange(start, stop)].toarray(), features)


@pytest.mark.parametrize("name", ["digits-knn", "karate"])
def test_registry_counts_of_embedded_data(name):
    dataset, counts = load_node_dataset(name), registry.entry(name).counts
    assert counts == {
        "nodes": dataset.num_nodes,
        "edges": len(dataset.edges),
        "features": dataset.x.shape[1],
        "classes": dataset.num_classes,
    }


def test_registry_is_complete():
    entries = registry.entries()
    assert len([entry for entry in entries.values() if entry.carrier == "planetoid"]) == 3
    assert len([entry for entry in entries.values() if entry.carrier == "tudataset"]) == 15
    assert [name for name in NODE_DATASETS if entries[name].task == "node"] == list(NODE_DATASETS)
    for entry in entries.values():
        assert entry.title and entry.licence and entry.citation and entry.counts["classes"] > 1
        if entry.carrier != "embedded":
            assert entry.addresses and all("{file}" in address for address in entry.addresses)
            assert all(len(file.sha256) == 64 and file.count > 0 for file in entry.files)
    by_content = {
        name: {file.name for file in e.files if file.kind != "bytes"} for name, e in entries.items()
    }
    assert {name for name, files in by_content.items() if files} == {"DD", "COLLAB"}
    assert by_content["DD"] == {"DD_A.txt"} and len(by_content["COLLAB"]) == 3


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "class_counts"),
    [
        ("cora", 2708, 5278, 1433, [351, 217, 418, 818, 426, 298, 180]),
        ("citeseer", 3312, 4536, 3703, [249, 590, 668, 701, 596, 508]),
        ("pubmed", 19717, 44324, 500, [4103, 7739, 7875]),
    ],
)
def test_citation_counts(real_data, name, nodes, edges, features, class_counts):
    dataset = real_data(name)
    assert_canonical(dataset)
    assert (dataset.num_nodes, len(dataset.edges), dataset.x.shape[1]) == (nodes, edges, features)
    assert np.bincount(dataset.y).tolist() == class_counts
    assert registry.entry(name).counts == {
        "nodes": nodes,
        "edges": edges,
        "features": features,
        "classes": len(class_counts),
    }


@pytest.mark.real_data
def test_citeseer_without_and_with_its_unlabelled_nodes(real_data):
    dropped, kept = real_data("citeseer"), real_data("citeseer", keep_unlabelled=True)
    assert (kept.num_nodes, len(kept.edges)) == (3327, 4552)
    unlabelled = np.flatnonzero(np.diff(kept.x.indptr) == 0)
    assert len(unlabelled) == 15 and (kept.y[unlabelled] == 0).all()
    graph = nx.Graph()
    graph.add_nodes_from(range(3327))
    graph.add_edges_from(kept.edges.tolist())
    graph.remove_nodes_from(unlabelled.tolist())
    renamed = nx.convert_node_labels_to_integers(graph, ordering="sorted")
    assert sorted(sorted(edge) for edge in renamed.edges) == dropped.edges.tolist()
    keep = np.setdiff1d(np.arange(3327), unlabelled)
    assert np.array_equal(dropped.y, kept.y[keep]) and (dropped.x != kept.x[keep]).nnz == 0


@pytest.mark.real_data
def test_row_features_of_cora_sum_to_one(real_data):
    x = real_data("cora", features="row").x
    assert np.allclose(x.sum(axis=1), 1) and x.dtype == np.float32
    assert set(np.unique(real_data("cora").x.data)) == {1.0}


@pytest.mark.real_data
def test_cora_from_its_first_publication_is_the_same(real_data, tmp_path):
    """Write Cora in the form of the package's files, from the arrays, in another order, and read it back."""
    dataset = real_data("cora")
    papers = (Path(citation.__file__).with_name("cora_papers.txt")).read_text().split()
    assert len(papers) == len(set(papers)) == 2708
    rng = np.random.default_rng(0)
    lines = [
        "\t".join([papers[row], *map(str, words), citation.CORA_CLASSES[label]])
        for row, (words, label) in enumerate(zip(dataset.x.toarray().astype(int), dataset.y, strict=True))
    ]
    content, cites = tmp_path / "cora.content", tmp_path / "cora.cites"
    content.write_text("\n".join(rng.permutation(lines)) + "\n")
    cites.write_text("".join(f"{papers[v]}\t{papers[u]}\n" for u, v in rng.permutation(dataset.edges)))
    again = citation._from_papers("cora", [content, cites])
    assert again.digest() == dataset.digest() == registry.entry("cora").parsed


def test_made_up_citeseer_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setenv("FGL_HOME", str(tmp_path))
    made = write_citeseer(tmp_path / "data" / "raw")
    kept = load_citation(made.entry, keep_unlabelled=True)
    assert np.array_equal(kept.x.toarray(), made.x) and np.array_equal(kept.y, np.maximum(made.y, 0))
    assert np.array_equal(kept.edges, made.edges)
    dropped, keep = load_citation(made.entry), np.flatnonzero(made.y >= 0)
    assert dropped.num_nodes == 520 and np.array_equal(dropped.y, made.y[keep])
    assert np.array_equal(dropped.x.toarray(), made.x[keep])
    expected = [edge for edge in made.edges.tolist() if 515 not in edge and 518 not in edge]
    assert keep[dropped.edges].tolist() == expected


def test_parsed_form_is_a_shortcut_only_while_it_is_right(tmp_path, monkeypatch):
    monkeypatch.setenv("FGL_HOME", str(tmp_path))
    made = write_citeseer(tmp_path / "data" / "raw")
    first = load_citation(made.entry)
    stored = tmp_path / "data" / "raw" / "planetoid" / "citeseer" / "parsed.npz"
    read = []
    original = citation._from_planetoid
    monkeypatch.setattr(citation, "_from_planetoid", lambda *args: read.append(1) or original(*args))
    assert load_citation(made.entry).digest() == first.digest() and not read
    good = stored.read_bytes()
    for bad in (b"", good[: len(good) // 2], b"no zip at all"):
        stored.write_bytes(bad)
        assert load_citation(made.entry).digest() == first.digest()
    assert len(read) == 3
    with np.load(stored, allow_pickle=False) as arrays:
        changed = dict(arrays)
    changed["y"] = changed["y"][::-1]
    np.savez(stored, **changed)
    assert load_citation(made.entry).digest() == first.digest() and len(read) == 4
    # another dataset, written by the same name: its own files, not the parsed form of the first
    for file in (tmp_path / "data" / "raw" / made.entry.folder).iterdir():
        file.unlink()
    (tmp_path / "data" / "raw" / made.entry.folder).rmdir()
    other = write_citeseer(tmp_path / "data" / "raw", seed=1)
    assert np.array_equal(load_citation(other.entry, keep_unlabelled=True).x.toarray(), other.x)


def test_parsed_form_that_cannot_be_written_does_no_harm(tmp_path, monkeypatch):
    monkeypatch.setenv("FGL_HOME", str(tmp_path))
    made = write_citeseer(tmp_path / "data" / "raw")
    (tmp_path / "data" / "raw" / "planetoid" / "citeseer" / "parsed.npz").mkdir()
    assert load_citation(made.entry).num_nodes == 520


def test_other_numbers_than_known_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FGL_HOME", str(tmp_path))
    made = write_citeseer(tmp_path / "data" / "raw")
    monkeypatch.setattr(citation, "sparse_features", lambda x: sparse_features(sp.csr_array(x) * 2))
    with pytest.raises(RuntimeError, match="other numbers"):
        load_citation(made.entry)


@pytest.mark.parametrize(
    ("name", "near"), [("Cora", "cora"), ("citseer", "citeseer"), ("digits", "digits-knn"), ("MUTAG", None)]
)
def test_unknown_dataset_names_the_nearest(name, near):
    with pytest.raises(InputError) as error:
        load_node_dataset(name)
    assert all(allowed in str(error.value) for allowed in NODE_DATASETS) and "\n" not in str(error.value)
    assert near is None or f"did you mean {near!r}" in str(error.value)


def test_unknown_features_are_refused():
    with pytest.raises(InputError, match="raw, row"):
        load_node_dataset("karate", features="rows")


def test_importing_datasets_and_partition_imports_no_torch():
    code = (
        "import sys, fgl_core.datasets.sources, fgl_core.datasets.citation, fgl_core.partition;"
        "print([name for name in sys.modules if name.split('.')[0] in ('torch', 'torch_geometric')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
