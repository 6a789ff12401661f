"""The TU collection: its reader against PyTorch Geometric's, the parsed form, settings and digit groups."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
import torch
from torch_geometric.io import read_tu_data

from fgl_core.datasets import DOMAINS, GRAPH_DATASETS, SETTINGS, domain, load_graph_dataset, setting_datasets
from fgl_core.datasets import tudataset as reader
from fgl_core.datasets.embedded import digits_graphs
from fgl_core.datasets.registry import Entry, entry
from fgl_core.errors import InputError

PUBLISHED = {  # graphs, classes, mean nodes, mean edges (as usually reported), feature columns
    "MUTAG": (188, 2, 17.93, 19.79, 7),
    "BZR": (405, 2, 35.75, 38.36, 53),
    "COX2": (467, 2, 41.22, 43.45, 35),
    "DHFR": (756, 2, 42.43, 44.54, 53),
    "PTC_MR": (344, 2, 14.29, 14.69, 18),
    "AIDS": (2000, 2, 15.69, 16.20, 38),
    "NCI1": (4110, 2, 29.87, 32.30, 37),
    "ENZYMES": (600, 6, 32.63, 62.14, 3),
    "DD": (1178, 2, 284.32, 715.66, 89),
    "COLLAB": (5000, 3, 74.49, 2457.22, 492),
    "IMDB-BINARY": (1000, 2, 19.77, 96.53, 136),
    "IMDB-MULTI": (1500, 3, 13.00, 65.94, 89),
    "Letter-low": (2250, 15, 4.68, 3.13, 2),
    "Letter-med": (2250, 15, 4.67, 3.21, 2),
    "Letter-high": (2250, 15, 4.67, 4.50, 2),
}
QUICK = ("MUTAG", "PTC_MR", "BZR", "ENZYMES", "IMDB-BINARY", "Letter-low")

TOY = Entry(
    name="TOY",
    title="two small graphs",
    carrier="tudataset",
    task="graph",
    licence="",
    citation="",
    folder="tudataset",
)
# an edge listed twice, one listed in one direction only, a self-loop; node 5 has no edge; labels start at 3
TOY_FILES = {
    "A": "1, 2\n2, 1\n2, 1\n3, 2\n3, 3\n4, 6\n6, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n",
    "graph_labels": "-1\n1\n",
    "node_labels": "5\n3\n3\n4\n8\n3\n",
    "node_attributes": "0.5, 1.0\n-1, 2.25\n0, 0\n1e-3, 7\n2, 3\n0.1, 0.2\n",
}
TOY_EDGES = [[0, 1], [1, 2], [3, 5]]


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Puts a zip of some of the files into the cache; ``obtain`` finds it without a registry entry."""
    monkeypatch.setenv("FGL_HOME", str(tmp_path))
    folder = tmp_path / "data" / "raw" / "tudataset"
    folder.mkdir(parents=True)
    opened = []

    def obtain(entry, progress=None):
        opened.append(entry.name)
        return [folder / "TOY.zip"], "cache"

    def put(*names, **changed):
        with zipfile.ZipFile(folder / "TOY.zip", "w") as archive:
            for name in names or TOY_FILES:
                archive.writestr(f"TOY/TOY_{name}.txt", changed.get(name, TOY_FILES[name]))
        return opened

    monkeypatch.setattr(reader, "obtain", obtain)
    return put


def test_labels_edges_and_classes(toy):
    toy()
    dataset = reader.load_tudataset(TOY)
    assert dataset.edges.tolist() == TOY_EDGES
    assert dataset.edges.dtype == np.int64
    assert dataset.offsets.tolist() == [0, 3, 6]
    assert dataset.y.tolist() == [0, 1]
    assert dataset.num_classes == 2
    np.testing.assert_array_equal(dataset.x.toarray(), np.eye(6)[[2, 0, 0, 1, 5, 0]])


def test_attributes_stand_before_labels_and_replace_missing_ones(toy):
    toy()
    values = np.array([[0.5, 1], [-1, 2.25], [0, 0], [1e-3, 7], [2, 3], [0.1, 0.2]], np.float32)
    both = reader.load_tudataset(TOY, attributes=True).x.toarray()
    np.testing.assert_array_equal(both, np.hstack([values, np.eye(6)[[2, 0, 0, 1, 5, 0]]]).astype(np.float32))
    toy("A", "graph_indicator", "graph_labels", "node_attributes")
    np.testing.assert_array_equal(reader.load_tudataset(TOY).x.toarray(), values)


def test_degrees_stand_in_where_nodes_have_neither(toy):
    toy("A", "graph_indicator", "graph_labels")
    for attributes in (False, True):
        x = reader.load_tudataset(TOY, attributes=attributes).x
        np.testing.assert_array_equal(x.toarray(), np.eye(3)[[1, 2, 1, 1, 0, 1]])


def test_parsed_form_is_used_and_made_anew_when_the_zip_changes(toy, tmp_path, monkeypatch):
    opened = toy()
    first = reader.load_tudataset(TOY)
    again = reader.load_tudataset(TOY)
    assert opened == ["TOY"]
    assert (first.x != again.x).nnz == 0
    np.testing.assert_array_equal(first.edges, again.edges)

    toy(graph_labels="2\n1\n")
    assert reader.load_tudataset(TOY).y.tolist() == [1, 0]
    assert len(opened) == 2

    parsed = tmp_path / "data" / "raw" / "tudataset" / "parsed" / "TOY.npz"
    parsed.write_bytes(parsed.read_bytes()[:-40])
    assert reader.load_tudataset(TOY).y.tolist() == [1, 0]
    assert len(opened) == 3
    monkeypatch.setattr(reader, "PARSED_FORMAT", reader.PARSED_FORMAT + 1)
    reader.load_tudataset(TOY)
    assert len(opened) == 4
    with np.load(parsed, allow_pickle=False) as stored:
        assert all(stored[name].dtype != object for name in stored)


@pytest.mark.parametrize("name", [*QUICK, "DD", "NCI1", "COLLAB"])
def test_sizes_are_the_published_ones(real_data, name):
    dataset = real_data(name)
    graphs, classes, nodes, edges, columns = PUBLISHED[name]
    assert (dataset.num_graphs, dataset.num_classes) == (graphs, classes)
    assert dataset.offsets[-1] / graphs == pytest.approx(nodes, abs=0.006)
    assert len(dataset.edges) / graphs == pytest.approx(edges, abs=0.006)
    assert dataset.x.shape == (dataset.offsets[-1], columns)
    counts = entry(name).counts
    assert counts["nodes"] == dataset.offsets[-1]
    assert counts["edges"] == len(dataset.edges)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("attributes", [False, True])
def test_reader_is_pygs(real_data, tmp_path, name, attributes):
    dataset = real_data(name, attributes=attributes)
    with zipfile.ZipFile(reader.raw_folder() / "tudataset" / f"{name}.zip") as archive:
        archive.extractall(tmp_path)
    data, slices, sizes = read_tu_data(str(tmp_path / name), name)
    offsets = slices["x"] if data.x is not None else np.cumsum([0, *data._num_nodes])
    np.testing.assert_array_equal(dataset.offsets, offsets)
    np.testing.assert_array_equal(dataset.y, data.y.numpy())
    graph = np.repeat(np.arange(dataset.num_graphs), slices["edge_index"].diff())
    theirs = data.edge_index.numpy().T + dataset.offsets[graph][:, None]
    ours = np.concatenate([dataset.edges, dataset.edges[:, ::-1]])
    np.testing.assert_array_equal(np.unique(ours, axis=0), np.unique(theirs, axis=0))
    assert len(ours) == len(theirs)
    if data.x is not None:
        x = data.x
        if sizes["num_node_labels"] and not attributes:
            x = x[:, sizes["num_node_attributes"] :]
        torch.testing.assert_close(torch.from_numpy(dataset.x.toarray()), x)


def test_settings_are_the_papers():
    sizes = {"CHEM": 7, "BIO-CHEM": 9, "MIX": 12, "BIO-SN-CV": 8, "BIO-CV": 5, "ALL": 15, "DIGITS": 5}
    assert {name: len(names) for name, names in SETTINGS.items()} == sizes
    assert set(SETTINGS["ALL"]) == set(PUBLISHED)
    assert all(len(set(names)) == len(names) for names in SETTINGS.values())
    assert {domain(name) for name in SETTINGS["BIO-SN-CV"]} == {"bioinformatics", "social", "vision"}
    for name in GRAPH_DATASETS:
        assert domain(name) in DOMAINS


def test_a_setting_is_a_name_or_a_list():
    assert setting_datasets("CHEM") == DOMAINS["molecules"]
    assert setting_datasets("MUTAG, DD") == ("MUTAG", "DD")
    assert setting_datasets("MUTAG") == ("MUTAG",)
    for setting, words in [
        ("CEHM", ["did you mean", "CHEM", "MUTAG"]),
        ("MUTAG,DDD", ["'DDD'", "'DD'"]),
        ("MUTAG,MUTAG", ["twice", "clients_per_dataset"]),
        ("", ["allowed"]),
    ]:
        with pytest.raises(InputError) as error:
            setting_datasets(setting)
        assert all(word in str(error.value) for word in words), str(error.value)
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="unknown dataset for graph classification 'cora'"):
        load_graph_dataset("cora")


def test_digit_groups_share_the_images_out():
    whole = digits_graphs()
    groups = [load_graph_dataset(name) for name in SETTINGS["DIGITS"]]
    assert sum(group.num_graphs for group in groups) == whole.num_graphs
    assert sum(len(group.edges) for group in groups) == len(whole.edges)
    group = load_graph_dataset("digits-23")
    assert group.num_classes == 2
    for position, number in enumerate(np.flatnonzero((whole.y == 2) | (whole.y == 3))[:20]):
        assert group.y[position] == whole.y[number] - 2
        first, last = whole.offsets[number : number + 2]
        start, stop = group.offsets[position : position + 2]
        np.testing.assert_array_equal(
            group.x[np.arange(start, stop)].toarray(), whole.x[np.arange(first, last)].toarray()
        )
        inside = (whole.edges[:, 0] >= first) & (whole.edges[:, 0] < last)
        kept = (group.edges[:, 0] >= start) & (group.edges[:, 0] < stop)
        np.testing.assert_array_equal(group.edges[kept] - start, whole.edges[inside] - first)
