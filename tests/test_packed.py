"""Mini-batches of packed graphs against PyTorch Geometric's, and structure features against matrix powers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from graph_sets import as_pyg, random_set
from torch_geometric.data import Batch

from fgl_core.errors import InputError
from fgl_core.models.packed import PackedGraphs
from fgl_core.models.structure import DEGREES, WALKS


def edge_set(edge_index: torch.Tensor) -> set[tuple[int, int]]:
    return set(map(tuple, edge_index.T.tolist()))


@pytest.mark.parametrize("one_hot", [True, False])
@pytest.mark.parametrize("graphs", [[0], [1], [2], [5, 0, 3], [11, 2, 1, 7, 4], list(range(12))])
def test_batch_is_pygs(one_hot, graphs):
    dataset = random_set(one_hot=one_hot)
    batch = PackedGraphs(dataset, torch.float64).batch(np.array(graphs))
    expected = Batch.from_data_list([as_pyg(dataset, graph) for graph in graphs])
    target, source = batch.adjacency.neighbours
    assert edge_set(torch.stack([source, target])) == edge_set(expected.edge_index)
    assert len(source) == expected.num_edges
    assert (target.diff() >= 0).all()
    assert torch.equal(batch.sizes, expected.ptr.diff())
    assert batch.num_nodes == expected.num_nodes
    features = batch.features
    if one_hot:
        assert features.dtype == torch.int64
        features = torch.nn.functional.one_hot(features, 4).double()
    torch.testing.assert_close(features, expected.x)


def test_rows_with_one_entry_that_is_not_one_are_floats():
    dataset = random_set()
    packed = PackedGraphs(replace(dataset, x=dataset.x * 2))
    assert packed.features.dtype == torch.float32
    torch.testing.assert_close(packed.features, torch.from_numpy(dataset.x.toarray()) * 2)


def test_an_edge_between_graphs_is_refused():
    dataset = random_set()
    last = dataset.offsets[-1] - 1
    with pytest.raises(InputError, match="between two graphs"):
        PackedGraphs(replace(dataset, edges=np.array([[0, last]])))


def test_a_graph_without_nodes_is_refused():
    dataset = random_set()
    offsets = np.insert(dataset.offsets, 3, dataset.offsets[3])
    with pytest.raises(InputError, match="without nodes"):
        PackedGraphs(replace(dataset, offsets=offsets, y=np.append(dataset.y, 0)))


def path_beside_clique(path: int, clique: int):
    """A long path (sparse products) and a clique (dense products) with an isolated node beside it."""
    steps = np.column_stack([np.arange(path - 1), np.arange(1, path)])
    pairs = np.column_stack(np.triu_indices(clique, 1)) + path
    dataset = random_set(graphs=3)
    n = path + clique + 1
    return replace(
        dataset,
        x=dataset.x[np.zeros(n, int)],
        edges=np.concatenate([steps, pairs]),
        offsets=np.array([0, path, n]),
        y=np.array([0, 1]),
    )


@pytest.mark.parametrize("dataset", [random_set(), path_beside_clique(600, 20)], ids=["random", "path"])
def test_structure_features_are_return_probabilities_and_degrees(dataset):
    features = PackedGraphs(dataset, torch.float64).structure.numpy()
    for first, last in zip(dataset.offsets[:-1], dataset.offsets[1:], strict=True):
        inside = (dataset.edges[:, 0] >= first) & (dataset.edges[:, 0] < last)
        u, v = (dataset.edges[inside] - first).T
        adjacency = np.zeros((last - first,) * 2)
        adjacency[u, v] = adjacency[v, u] = 1
        degree = adjacency.sum(0)
        walk = adjacency @ np.diag(np.divide(1, degree, out=np.zeros_like(degree), where=degree > 0))
        power = np.eye(len(walk))
        for step in range(WALKS):
            power = power @ walk
            np.testing.assert_allclose(features[first:last, step], np.diag(power), atol=1e-6)
        expected = np.eye(DEGREES)[np.clip(degree, 1, DEGREES).astype(int) - 1]
        np.testing.assert_array_equal(features[first:last, WALKS:], expected)
    packed = PackedGraphs(dataset, torch.float64)
    some = packed.batch(np.array([1, 0]))
    order = np.r_[dataset.offsets[1] : dataset.offsets[2], 0 : dataset.offsets[1]]
    np.testing.assert_allclose(some.structure.numpy(), features[order])
