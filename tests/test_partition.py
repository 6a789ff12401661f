"""Partitions and splits: invariants, hand-made graphs, networkx as an oracle, the same result everywhere."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest

from fgl_core.datasets import load_node_dataset
from fgl_core.datasets.node import NodeDataset, sparse_features, undirected_edges
from fgl_core.errors import InputError
from fgl_core.partition import (
    QUOTAS,
    Split,
    _communities,
    partition_digest,
    partition_nodes,
    partition_statistics,
    split_nodes,
    subgraphs,
)

CORA_CLASSES = [351, 217, 418, 818, 426, 298, 180]
CITESEER_CLASSES = [249, 590, 668, 701, 596, 508]
PUBMED_CLASSES = [4103, 7739, 7875]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def dataset_of(edges, n: int, y=None) -> NodeDataset:
    y = np.arange(n) % 2 if y is None else np.asarray(y)
    return NodeDataset(
        "toy", sparse_features(np.eye(n)), undirected_edges(np.array(edges)), y, int(y.max()) + 1
    )


def cliques(sizes: list[int]) -> NodeDataset:
    """Complete graphs, each linked to the next by one edge."""
    starts = np.cumsum([0, *sizes])
    edges = [pair for a, b in pairwise(starts) for pair in combinations(range(a, b), 2)]
    return dataset_of(edges + [(start, start + 1) for start in (starts[1:-1] - 1)], int(starts[-1]))


def shuffled_classes(counts: list[int]) -> np.ndarray:
    return rng(7).permutation(np.repeat(np.arange(len(counts)), counts))


def class_counts(y: np.ndarray, mask: np.ndarray) -> list[int]:
    return np.bincount(y[mask], minlength=y.max() + 1).tolist()


# splits


@pytest.mark.parametrize("kind", ["stratified", "quota"])
@pytest.mark.parametrize("counts", [CORA_CLASSES, [1], [1, 2, 3, 4, 5], [17, 17]])
def test_every_node_is_in_exactly_one_part(kind, counts):
    split = split_nodes(shuffled_classes(counts), kind, rng())
    total = split.train.astype(int) + split.val + split.test
    assert (total == 1).all() and split.train.any()


def test_stratified_is_sixty_twenty_twenty_in_every_class():
    for size in range(1, 400):
        split = split_nodes(np.zeros(size, int), "stratified", rng())
        parts = [mask.sum() for mask in (split.train, split.val, split.test)]
        assert all(abs(part - share * size) <= 1 for part, share in zip(parts, (0.6, 0.2, 0.2), strict=True))
        assert min(parts) >= 1 or size < 3
        assert parts[0] >= max(parts[1:])


def test_stratified_counts_of_cora_by_hand():
    y = shuffled_classes(CORA_CLASSES)
    split = split_nodes(y, "stratified", rng())
    assert class_counts(y, split.train) == [211, 130, 251, 491, 256, 179, 108]
    assert class_counts(y, split.val) == [70, 44, 83, 163, 85, 59, 36]


@pytest.mark.parametrize(
    ("name", "counts", "per_class", "validation"),
    [
        ("cora", CORA_CLASSES, 232, 542),
        ("citeseer", CITESEER_CLASSES, 332, 665),
        ("pubmed", PUBMED_CLASSES, 3943, 3943),
    ],
)
def test_quota_gives_the_counts_of_the_field(name, counts, per_class, validation):
    y = shuffled_classes(counts)
    split = split_nodes(y, "quota", rng(), quota=QUOTAS[name])
    assert class_counts(y, split.train) == [min(per_class, count) for count in counts]
    assert split.val.sum() == validation
    without_test = [label for label, count in enumerate(class_counts(y, split.test)) if count == 0]
    assert without_test == [label for label, count in enumerate(counts) if count <= per_class]


def test_quota_leaves_two_classes_of_cora_without_test_nodes():
    y = shuffled_classes(CORA_CLASSES)
    for seed in range(5):
        assert class_counts(y, split_nodes(y, "quota", rng(seed)).test).count(0) == 2


@pytest.mark.parametrize(
    ("name", "counts"), [("cora", [2708 - 6, 1, 1, 1, 1, 1, 1]), ("pubmed", PUBMED_CLASSES)]
)
def test_default_quota_is_the_rule_behind_the_known_ones(name, counts):
    y = shuffled_classes(counts)
    assert [mask.tolist() for mask in vars(split_nodes(y, "quota", rng(3), quota=QUOTAS[name])).values()] == [
        mask.tolist() for mask in vars(split_nodes(y, "quota", rng(3))).values()
    ]


def test_quota_of_citeseer_counts_its_unlabelled_nodes():
    assert QUOTAS["citeseer"] == (int(0.6 * 3327 / 6), round(0.2 * 3327))


@pytest.mark.parametrize("kind", ["stratified", "quota"])
def test_split_depends_on_its_generator_only(kind):
    y = shuffled_classes(CORA_CLASSES)
    first = split_nodes(y, kind, rng(5))
    np.random.seed(1)
    random.seed(1)
    again, other = split_nodes(y, kind, rng(5)), split_nodes(y, kind, rng(6))
    assert np.array_equal(first.train, again.train) and np.array_equal(first.test, again.test)
    assert not np.array_equal(first.train, other.train)


def test_every_node_is_equally_likely_to_train():
    y = np.repeat([0, 1], [10, 5])
    for kind, expected in (("stratified", [0.6, 0.6]), ("quota", [0.4, 0.8])):
        share = np.mean([split_nodes(y, kind, rng(seed)).train for seed in range(2000)], axis=0)
        assert np.allclose(share, np.repeat(expected, [10, 5]), atol=0.06)  # 5 standard errors


# partitions


def test_separate_communities_stay_whole():
    owner = partition_nodes(cliques([8, 8, 8, 8]), 2, "louvain", rng())
    assert all(len(set(owner[start : start + 8])) == 1 for start in range(0, 32, 8))
    assert np.bincount(owner).tolist() == [16, 16]


def test_large_community_is_cut_into_shares():
    owner = partition_nodes(cliques([30, 6, 6]), 3, "louvain", rng())  # a share is 14 nodes
    assert np.bincount(owner).tolist() == [14, 14, 14]
    # 14, 14 and 2 of the large one; its rest and the two small ones make the third client
    assert owner.tolist() == [0] * 14 + [1] * 14 + [2] * 14


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("clients", [2, 3, 5, 9])
def test_communities_within_a_share_are_whole_and_clients_balanced(seed, clients):
    graph = nx.connected_caveman_graph(12, 5)
    graph.add_edges_from(nx.gnp_random_graph(60, 0.02, seed=seed).edges)
    dataset = dataset_of(list(graph.edges), 60)
    owner = partition_nodes(dataset, clients, "louvain", rng(seed))
    share = 60 // clients
    largest = 0
    for nodes in _communities(dataset, int(rng(seed).integers(2**31))):
        parts = len(set(owner[nodes].tolist()))
        assert parts <= -(-len(nodes) // share)
        largest = max(largest, min(len(nodes), share))
    sizes = np.bincount(owner, minlength=clients)
    # giving each piece to the emptiest client keeps any two within one piece of each other
    assert sizes.sum() == 60 and sizes.max() - sizes.min() <= largest


def test_louvain_communities_are_as_good_as_networkx_ones():
    dataset, graph = load_node_dataset("karate"), nx.karate_club_graph()
    for _, _, weights in graph.edges(data=True):
        weights["weight"] = 1
    mine = [set(nodes.tolist()) for nodes in _communities(dataset, 0)]
    theirs = nx.community.louvain_communities(graph, seed=0)
    assert nx.community.modularity(graph, mine) > nx.community.modularity(graph, theirs) - 0.02


@pytest.mark.parametrize("kind", ["louvain", "random"])
def test_no_client_is_ever_empty(kind):
    for n in range(1, 14):
        for edges in ([], list(combinations(range(n), 2)), [(node, node + 1) for node in range(n - 1)]):
            dataset = dataset_of(edges, n, y=np.zeros(n, int))
            for clients in range(1, n + 1):
                owner = partition_nodes(dataset, clients, kind, rng(n))
                assert owner.dtype == np.int64 and set(owner.tolist()) == set(range(clients))


@pytest.mark.parametrize("kind", ["louvain", "random"])
def test_one_client_holds_everything(kind):
    dataset = load_node_dataset("karate")
    split = split_nodes(dataset.y, "stratified", rng())
    (part,) = subgraphs(dataset, split, partition_nodes(dataset, 1, kind, rng()))
    assert np.array_equal(part.edges, dataset.edges) and np.array_equal(part.y, dataset.y)
    assert np.array_equal(part.nodes, np.arange(34)) and (part.x != dataset.x).nnz == 0
    assert np.array_equal(part.train, split.train) and np.array_equal(part.test, split.test)


def test_random_partition_is_even():
    assert sorted(np.bincount(partition_nodes(cliques([23]), 4, "random", rng()))) == [5, 6, 6, 6]


@pytest.mark.parametrize("clients", [0, -1, 35, 10**9])
def test_impossible_number_of_clients_is_refused(clients):
    dataset = load_node_dataset("karate")
    with pytest.raises(
        InputError, match=f"34 nodes of karate cannot be given to {clients} clients: .*1 to 34"
    ):
        partition_nodes(dataset, clients, "louvain", rng())


def test_unknown_kinds_are_refused():
    dataset = load_node_dataset("karate")
    with pytest.raises(InputError, match="did you mean 'louvain'"):
        partition_nodes(dataset, 2, "louvian", rng())
    with pytest.raises(InputError, match="did you mean 'stratified'"):
        split_nodes(dataset.y, "stratify", rng())


SCRIPT = """
import random, sys
import numpy as np
import scipy.sparse as sp
from fgl_core.datasets.node import NodeDataset, undirected_edges
from fgl_core.partition import partition_digest, partition_nodes, split_nodes
n, noise = 400, int(sys.argv[1])
edges = undirected_edges(np.random.default_rng(0).integers(n, size=(700, 2)))
np.random.seed(noise); random.seed(noise)
if noise:
    edges = np.random.permutation(edges)
    edges = np.where(np.random.random((len(edges), 1)) < 0.5, edges, edges[:, ::-1])
dataset = NodeDataset("toy", sp.csr_array((n, 1), dtype=np.float32), edges, np.arange(n) % 3, 3)
for seed in range(2):
    split = split_nodes(dataset.y, "stratified", np.random.default_rng(seed))
    for clients in (3, 10):
        owner = partition_nodes(dataset, clients, "louvain", np.random.default_rng(seed))
        print(partition_digest(owner, split))
"""


def test_same_partition_whatever_hash_seed_edge_order_or_earlier_draws():
    printed = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, noise],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for noise, hash_seed in (("0", "0"), ("1", "1"), ("2", "4242"))
    ]
    assert printed[0] == printed[1] == printed[2]
    assert len(set(printed[0])) == 4


def test_partition_does_not_look_at_labels_or_features():
    dataset = load_node_dataset("karate")
    poisoned = replace(dataset, y=1 - dataset.y, x=dataset.x * 0)
    first, second = (partition_nodes(data, 3, "louvain", rng()) for data in (dataset, poisoned))
    assert np.array_equal(first, second)


# subgraphs and statistics


@pytest.mark.parametrize("kind", ["louvain", "random"])
def test_subgraphs_are_networkx_induced_subgraphs(kind):
    dataset = load_node_dataset("digits-knn")
    split = split_nodes(dataset.y, "stratified", rng())
    owner = partition_nodes(dataset, 6, kind, rng())
    parts = subgraphs(dataset, split, owner)
    graph = nx.Graph(dataset.edges.tolist())
    graph.add_nodes_from(range(dataset.num_nodes))
    assert np.array_equal(np.sort(np.concatenate([part.nodes for part in parts])), np.arange(1797))
    for client, part in enumerate(parts):
        assert np.array_equal(part.nodes, np.flatnonzero(owner == client))
        induced = graph.subgraph(part.nodes.tolist())
        assert sorted(sorted(edge) for edge in induced.edges) == part.nodes[part.edges].tolist()
        assert (part.x != dataset.x[part.nodes]).nnz == 0
        for name in ("train", "val", "test"):
            assert np.array_equal(getattr(part, name), getattr(split, name)[part.nodes])
    inside = sum(len(part.edges) for part in parts)
    statistics = partition_statistics(dataset, split, owner)
    assert statistics["edges_lost"] == len(dataset.edges) - inside
    assert [client["edges"] for client in statistics["clients"]] == [len(part.edges) for part in parts]


def test_client_without_training_node_is_named():
    dataset = cliques([4, 4, 4])
    train = np.zeros(12, bool)
    train[:8] = True
    split = Split(train, np.zeros(12, bool), ~train)
    with pytest.raises(InputError, match=r"client 2 of 3, .*no training node.*fewer clients, for example 2"):
        subgraphs(dataset, split, np.repeat([0, 1, 2], 4))


def test_statistics_by_hand():
    # two triangles, joined by one edge; classes 0 0 1 | 1 1 1
    dataset = dataset_of([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5)], 6, y=[0, 0, 1, 1, 1, 1])
    train = np.array([1, 0, 0, 1, 1, 0], bool)
    val = np.array([0, 1, 0, 0, 0, 0], bool)
    statistics = partition_statistics(dataset, Split(train, val, ~train & ~val), np.array([0, 0, 0, 1, 1, 1]))
    assert statistics["clients"] == [
        {"nodes": 3, "edges": 3, "train": 1, "val": 1, "test": 1, "classes": 2, "class_counts": [2, 1]},
        {"nodes": 3, "edges": 3, "train": 2, "val": 0, "test": 1, "classes": 1, "class_counts": [0, 3]},
    ]
    assert statistics["edges_lost"] == 1 and statistics["edges_lost_share"] == pytest.approx(1 / 7)
    # class shares 2/3 1/3 and 0 1, against 1/3 2/3 in the whole graph: both lie 1/3 away
    assert statistics["label_skew"] == pytest.approx(1 / 3) and statistics["size_skew"] == 0
    uneven = partition_statistics(dataset, Split(train, val, ~train & ~val), np.array([0, 0, 0, 0, 0, 1]))
    assert uneven["size_skew"] == pytest.approx(2 / 3)  # sizes 5 and 1: mean 3, standard deviation 2


def test_digest_sees_owner_and_split():
    split = split_nodes(np.zeros(10, int), "stratified", rng())
    owner = np.repeat([0, 1], 5)
    digest = partition_digest(owner, split)
    assert len(digest) == 64 and digest == partition_digest(owner.astype(np.int32), split)
    assert digest != partition_digest(owner[::-1], split)
    assert digest != partition_digest(owner, Split(split.train, split.test, split.val))


@pytest.mark.real_data
@pytest.mark.parametrize("clients", [5, 10])
def test_cora_partition_is_balanced_and_follows_communities(real_data, clients):
    dataset = real_data("cora")
    split = split_nodes(dataset.y, "stratified", rng())
    owner = partition_nodes(dataset, clients, "louvain", rng())
    statistics = partition_statistics(dataset, split, owner)
    sizes = [client["nodes"] for client in statistics["clients"]]
    assert max(sizes) - min(sizes) < 20 and sum(sizes) == 2708
    assert statistics["edges_lost_share"] < 0.25  # random owners would lose 1 - 1 / clients
    assert statistics["label_skew"] > 0.2
    assert all(part.train.any() for part in subgraphs(dataset, split, owner))
