"""Statistics of a set of graphs, against networkx and sums by hand; and their record."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from graph_sets import random_set

from fgl_core.analysis.graph_statistics import (
    DEGREES,
    DRAWN_NODES,
    PERCENTILES,
    between_share,
    drawn_graphs,
    graph_statistics,
    per_graph_means,
    ring_counts,
    ring_sizes,
)
from fgl_core.datasets import GraphDataset, load_graph_dataset
from fgl_core.errors import InputError
from fgl_core.study.catalogue import study_specs
from fgl_core.study.execute import describe
from fgl_core.study.spec import RunSpec, Spec
from fgl_core.study.store import Record, Store, format_record
from fgl_core.study.sweep import sweep


def made_of(*graphs: nx.Graph) -> GraphDataset:
    """A set of these graphs, whose nodes are numbered from 0; features are degrees, one-hot."""
    sizes = [len(graph) for graph in graphs]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    pairs = [np.sort(np.array(g.edges).reshape(-1, 2), axis=1) for g in graphs]
    edges = np.concatenate([p + first for p, first in zip(pairs, offsets, strict=False)]).astype(np.int64)
    degree = np.bincount(edges.ravel(), minlength=offsets[-1])
    return GraphDataset(
        "made",
        sp.csr_array(np.eye(degree.max() + 1, dtype=np.float32)[degree]),
        edges[np.lexsort((edges[:, 1], edges[:, 0]))],
        offsets,
        np.arange(len(graphs)) % 2,
        2,
    )


def graphs_of(dataset: GraphDataset) -> list[nx.Graph]:
    whole = nx.Graph()
    whole.add_nodes_from(range(dataset.offsets[-1]))
    whole.add_edges_from(dataset.edges.tolist())
    bounds = zip(dataset.offsets, dataset.offsets[1:], strict=False)
    return [whole.subgraph(range(first, last)) for first, last in bounds]


TWO_TREES = nx.disjoint_union(nx.star_graph(3), nx.path_graph(2))
BENZENE_AND_TAIL = nx.lollipop_graph(3, 2)
CUBE = nx.convert_node_labels_to_integers(nx.hypercube_graph(3))


def test_rings_are_the_edges_beyond_a_spanning_forest():
    dataset = made_of(nx.path_graph(4), TWO_TREES, nx.cycle_graph(6), BENZENE_AND_TAIL, CUBE)
    assert ring_counts(dataset).tolist() == [0, 0, 1, 1, 5]
    for dataset in (random_set(40, seed=1), random_set(40, seed=2)):
        bases = [len(nx.cycle_basis(graph)) for graph in graphs_of(dataset)]
        assert ring_counts(dataset).tolist() == bases


def test_ring_sizes_are_those_of_the_smallest_rings():
    dataset = made_of(nx.path_graph(4), nx.cycle_graph(6), BENZENE_AND_TAIL, CUBE)
    assert ring_sizes(dataset, ring_counts(dataset)) == {"3": 1, "4": 5, "6": 1}
    crowded = made_of(nx.complete_graph(8))  # 28 - 8 + 1 = 21 rings
    assert ring_sizes(crowded, ring_counts(crowded)) is None
    nearly = nx.complete_graph(8)
    nearly.remove_edge(0, 1)
    full = made_of(nearly)  # 20 rings are not too many; triangles make them all
    assert ring_sizes(full, ring_counts(full)) == {"3": 20}


def test_between_share_is_the_sum_of_squares_between_graphs():
    dataset = random_set(12, one_hot=False)
    x = dataset.x.toarray().astype(float)
    means = [x[a:b].mean(axis=0) for a, b in zip(dataset.offsets, dataset.offsets[1:], strict=False)]
    np.testing.assert_allclose(per_graph_means(dataset.x, dataset.offsets), means, atol=1e-12)
    own = np.repeat(means, np.diff(dataset.offsets), axis=0)
    between = ((own - x.mean(axis=0)) ** 2).sum() / ((x - x.mean(axis=0)) ** 2).sum()
    found = between_share(dataset.x, dataset.offsets)
    assert found["share"] == pytest.approx(between, abs=1e-5)
    rng, dealt = np.random.default_rng(0), []
    for _ in range(300):
        dealt.append(between_share(dataset.x[rng.permutation(len(x))], dataset.offsets)["share"])
    error = np.std(dealt) / np.sqrt(len(dealt))
    assert found["chance"] == pytest.approx(np.mean(dealt), abs=4 * error)


def test_between_share_at_its_ends():
    offsets = np.array([0, 2, 4])
    apart, alike = np.array([[1.0], [1], [3], [3]]), np.array([[1.0], [3], [1], [3]])
    assert between_share(sp.csr_array(apart), offsets)["share"] == 1
    assert between_share(sp.csr_array(alike), offsets)["share"] == 0
    assert between_share(sp.csr_array(np.ones((4, 1))), offsets) is None


def test_drawn_graphs_go_from_few_rings_to_many_and_depend_on_the_seed_alone():
    dataset = load_graph_dataset("digits-graphs")
    rings = ring_counts(dataset)
    drawn = [drawn_graphs(dataset, rings, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] and drawn[0] != drawn[2]
    counted = [graph["rings"] for graph in drawn[0]["graphs"]]
    assert len(counted) == 6 and counted == sorted(counted) and counted[0] < counted[-1]
    for graph in drawn[0]["graphs"]:
        first, last = dataset.offsets[graph["index"] : graph["index"] + 2]
        inside = dataset.edges[(dataset.edges[:, 0] >= first) & (dataset.edges[:, 0] < last)]
        assert (np.array(graph["edges"]) + first).tolist() == inside.tolist()
        assert graph["nodes"] == last - first <= DRAWN_NODES and graph["labels"] is None


def test_a_set_with_fewer_small_graphs_than_are_drawn():
    dataset = made_of(nx.path_graph(3), nx.complete_graph(50), nx.path_graph(60))
    drawn = drawn_graphs(dataset, ring_counts(dataset), np.random.default_rng(0))
    assert drawn["eligible"] == 1 and [graph["index"] for graph in drawn["graphs"]] == [0]
    assert drawn["graphs"][0]["labels"] == [1, 2, 1]  # the one-hot column, here the degree


def test_graphs_are_drawn_from_those_of_at_most_40_nodes_and_120_edges_in_the_order_of_their_rings():
    graphs = [nx.complete_graph(17), nx.path_graph(41), nx.complete_graph(16), nx.path_graph(40)]
    graphs += [nx.cycle_graph(5), nx.cycle_graph(4), nx.path_graph(3), nx.path_graph(3)]
    assert graphs[0].number_of_edges() == 136 and graphs[2].number_of_edges() == 120
    dataset = made_of(*graphs)
    drawn = drawn_graphs(dataset, ring_counts(dataset), np.random.default_rng(0))
    # six are left, one for each part: trees by their nodes, then the rings, then what has 120 - 16 + 1
    order = [6, 7, 3, 5, 4, 2]
    assert drawn["eligible"] == 6 and [one["index"] for one in drawn["graphs"]] == order
    assert [one["rings"] for one in drawn["graphs"]] == [0, 0, 0, 1, 1, 105]
    assert [one["nodes"] for one in drawn["graphs"]] == [3, 3, 40, 4, 5, 16]
    assert [one["class"] for one in drawn["graphs"]] == [graph % 2 for graph in order]


def quantile(values, percent):
    """The smallest of the values that so many per cent of them do not exceed."""
    return sorted(values)[max(0, math.ceil(percent * len(values) / 100) - 1)]


def test_every_measure_of_a_graph_is_networkxs():
    dataset = random_set(40, seed=3)
    graphs = graphs_of(dataset)
    expected = {
        "nodes": [len(graph) for graph in graphs],
        "edges": [graph.number_of_edges() for graph in graphs],
        "degree": [np.mean([degree for _, degree in graph.degree]) for graph in graphs],
        "rings": [len(nx.cycle_basis(graph)) for graph in graphs],
        "components": [nx.number_connected_components(graph) for graph in graphs],
    }
    found = graph_statistics(dataset, np.random.default_rng(0))
    assert found["per_graph"].keys() == expected.keys()
    for name, values in expected.items():
        assert found["per_graph"][name]["mean"] == pytest.approx(np.mean(values), abs=1e-5), name
        quantiles = [quantile(values, percent) for percent in PERCENTILES]
        assert found["per_graph"][name]["percentiles"] == pytest.approx(quantiles, abs=1e-5), name
    assert found["without_rings"] == expected["rings"].count(0)
    basis = [len(ring) for graph in graphs for ring in nx.minimum_cycle_basis(graph)]
    assert found["ring_sizes"] == {str(size): basis.count(size) for size in sorted(set(basis))}
    degree = np.array([degree for graph in graphs for _, degree in sorted(graph.degree)])
    own = np.repeat(expected["degree"], expected["nodes"])
    between = ((own - degree.mean()) ** 2).sum() / ((degree - degree.mean()) ** 2).sum()
    assert found["between"]["degree"]["share"] == pytest.approx(between, abs=1e-5)
    assert (
        found["between"]["features"]
        == between_share(dataset.x, dataset.offsets)
        != found["between"]["degree"]
    )
    for number, smallest in enumerate(DEGREES[:5]):
        here = [np.mean([degree == smallest for _, degree in graph.degree]) for graph in graphs]
        low, high = quantile(here, 10), quantile(here, 90)
        assert found["degrees"]["low"][number] == pytest.approx(low, abs=1e-5)
        assert found["degrees"]["high"][number] == pytest.approx(high, abs=1e-5)


def test_the_features_with_the_largest_means_are_shown_in_the_order_of_their_columns():
    made = made_of(nx.path_graph(4), nx.path_graph(6))
    means = [0.5, 3.0, 0.25, 2.0, 0.125, 5.0, 1.0, 7.0, 4.0, 6.0]  # the least three are 0.125, 0.25, 0.5
    found = graph_statistics(replace(made, x=sp.csr_array(np.tile(means, (10, 1)))), np.random.default_rng(0))
    columns = [1, 3, 5, 6, 7, 8, 9]
    assert found["feature_means"]["columns"] == [0, *columns]
    assert found["feature_means"]["mean"] == [0.5, *(means[column] for column in columns)]


def test_the_numbers_of_a_small_set():
    dataset = made_of(nx.path_graph(4), nx.cycle_graph(6), TWO_TREES)
    found = graph_statistics(dataset, np.random.default_rng(0))
    assert [found[name] for name in ("graphs", "nodes", "edges", "features")] == [3, 16, 13, 4]
    assert found["class_counts"] == [2, 1] and found["without_rings"] == 2
    assert found["per_graph"]["nodes"]["mean"] == round(16 / 3, 5)
    # nine percentiles of the values 4, 6, 6 and of 1, 1, 2
    assert found["per_graph"]["nodes"]["percentiles"] == [4, 4, 4, 4, 6, 6, 6, 6, 6]
    assert found["per_graph"]["components"]["percentiles"] == [1, 1, 1, 1, 1, 2, 2, 2, 2]
    assert found["degrees"]["columns"][:4] == [0, 1, 2, 3]
    # ends of the paths and of the star: 2 of 4, 0 of 6, 5 of 6 nodes
    assert found["degrees"]["mean"][1] == round((2 / 4 + 0 + 5 / 6) / 3, 5)
    assert (found["degrees"]["low"][1], found["degrees"]["high"][1]) == (0, round(5 / 6, 5))
    assert found["feature_means"]["columns"] == [0, 1, 2, 3]
    assert found["feature_means"]["mean"] == found["degrees"]["mean"][:4]  # its features are degrees


def test_degrees_fall_into_their_bins():
    found = graph_statistics(made_of(nx.star_graph(9), nx.star_graph(8)), np.random.default_rng(0))
    bins = dict(zip(found["degrees"]["columns"], found["degrees"]["mean"], strict=True))
    assert bins[9] == round(1 / 20, 5) and bins[5] == round(1 / 18, 5)  # one centre of 9, one of 8
    assert bins[1] == round((9 / 10 + 8 / 9) / 2, 5)


@pytest.mark.parametrize("name", ["digits-graphs", "digits-23", "MUTAG", "ENZYMES", "IMDB-BINARY"])
def test_a_record_is_small_complete_and_repeatable(real_data, name):
    if not name.startswith("digits"):
        real_data(name)
    spec = Spec.parse({"task": "statistics", "dataset": name})
    data = describe(spec)
    record = Record.parse(json.loads(format_record(data)))
    assert len(format_record(data)) < 40 * 1024
    assert record.settled and record.canonical() == Record.parse(describe(spec)).canonical()
    assert record.data["statistics"]["graphs"] == load_graph_dataset(name).num_graphs


def test_a_study_of_statistics_is_swept_and_found(tmp_path):
    store = Store(tmp_path)
    specs = study_specs("fedcch-datasets", "smoke")
    (outcome,) = sweep(specs, store.folder("fedcch-datasets", "smoke"))
    assert outcome.status == "done" and outcome.seconds >= 0
    (record,) = store.load(store.runs).values()
    assert record.spec == specs[0] and not record.stale and record.spec.slug in record.path.name


def test_a_record_without_its_statistics_is_none():
    spec = Spec.parse({"task": "statistics", "dataset": "MUTAG"})
    data = describe_nothing(spec)
    with pytest.raises(ValueError, match="lacks one of statistics"):
        Record.parse(data)
    assert Record.parse(data | {"statistics": {}, "revision": spec.revision + 1}).stale


def describe_nothing(spec: Spec) -> dict:
    head = {"format": 1, "spec": spec.model_dump(mode="json"), "digest": spec.digest}
    return head | {"revision": spec.revision, "status": "done"}


def test_only_sets_of_graphs_have_statistics():
    with pytest.raises(InputError, match="unknown dataset for graph classification 'cora'"):
        Spec.parse({"task": "statistics", "dataset": "cora"})
    assert not isinstance(Spec.parse({"task": "statistics"}), RunSpec)
