"""CKA against its definition and invariances; anonymous walks against exact enumeration; groupings."""

from __future__ import annotations

from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from fgl_core.analysis import awe
from fgl_core.analysis.agreement import adjusted_rand
from fgl_core.analysis.awe import anonymise, anonymous_walks, pairwise_js_distance, walk_distribution
from fgl_core.analysis.cka import linear_cka, pairwise_cka
from fgl_core.errors import InputError


def test_cka_is_the_normalised_hsic_of_centred_gram_matrices():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 5)), rng.normal(size=(30, 8)) ** 3
    centre = np.eye(30) - 1 / 30

    def hsic(a, b):
        return np.trace(centre @ a @ centre @ b)

    k, m = x @ x.T, y @ y.T
    assert linear_cka(x, y) == pytest.approx(hsic(k, m) / np.sqrt(hsic(k, k) * hsic(m, m)), abs=1e-12)


def test_cka_ignores_rotation_scale_and_shift_but_not_other_maps():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(40, 6)), rng.normal(size=(40, 6))
    rotation, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    expected = linear_cka(x, y)
    assert linear_cka(-3 * x @ rotation + 5, y) == pytest.approx(expected, abs=1e-12)
    assert linear_cka(x, x @ rotation * 0.1) == pytest.approx(1, abs=1e-12)
    assert abs(linear_cka(x @ np.diag([100, 1, 1, 1, 1, 1]), y) - expected) > 1e-3
    matrix = pairwise_cka([x, y, x @ rotation])
    np.testing.assert_allclose(matrix, matrix.T)
    assert matrix[0, 2] == pytest.approx(1) and matrix[0, 1] == pytest.approx(expected)


def test_cka_of_a_constant_or_of_other_inputs_is_refused():
    with pytest.raises(InputError, match="same for every input"):
        linear_cka(np.ones((4, 2)), np.eye(4))
    with pytest.raises(InputError, match="same inputs"):
        linear_cka(np.eye(3), np.eye(4))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_anonymous_walks_are_all_that_occur_on_a_complete_graph(length):
    walks = [w for w in product(range(length + 1), repeat=length + 1) if all(a != b for a, b in pairwise(w))]
    seen = {tuple(row) for row in anonymise(np.array(walks)).tolist()}
    assert anonymous_walks(length) == sorted(seen)


def test_anonymise_by_hand():
    np.testing.assert_array_equal(
        anonymise(np.array([[7, 3, 7, 9], [5, 4, 3, 4]])), [[0, 1, 0, 2], [0, 1, 2, 1]]
    )


def exact(graph: nx.Graph, length: int) -> np.ndarray:
    """Enumerate every walk with its probability."""
    share = dict.fromkeys(anonymous_walks(length), 0.0)
    starts = [node for node in graph if graph.degree(node)]
    pending = [((node,), 1 / len(starts)) for node in starts]
    while pending:
        walk, probability = pending.pop()
        if len(walk) == length + 1:
            names = {}
            share[tuple(names.setdefault(node, len(names)) for node in walk)] += probability
            continue
        for neighbour in graph[walk[-1]]:
            pending.append(((*walk, neighbour), probability / graph.degree(walk[-1])))
    return np.array(list(share.values()))


@pytest.mark.parametrize(
    "graph",
    [nx.path_graph(4), nx.cycle_graph(5), nx.complete_graph(4), nx.star_graph(5), nx.karate_club_graph()],
)
def test_walk_distribution_converges_to_exact_enumeration(graph):
    graph = nx.Graph(graph)
    graph.add_node(graph.number_of_nodes())  # a node without neighbours changes nothing
    edges = np.array(graph.edges)
    found = walk_distribution(edges, graph.number_of_nodes(), 3, 200_000, np.random.default_rng(0))
    np.testing.assert_allclose(found, exact(graph, 3), atol=0.005)  # above 4 standard errors of a share
    assert found.sum() == pytest.approx(1)


def test_js_distance_is_zero_for_equal_and_one_for_disjoint():
    matrix = pairwise_js_distance([np.array([1.0, 0, 0]), np.array([0, 0.5, 0.5]), np.array([1.0, 0, 0])])
    np.testing.assert_allclose(matrix, [[0, 1, 0], [1, 0, 1], [0, 1, 0]], atol=1e-12)


def test_js_distance_is_the_root_of_the_divergence():
    def entropy(*shares):
        return -sum(share * np.log2(share) for share in shares)

    # between (1, 0) and (1/2, 1/2): the entropy of their mean less the mean of their entropies, 0 and 1 bit
    divergence = entropy(0.75, 0.25) - 1 / 2
    matrix = pairwise_js_distance([np.array([1.0, 0]), np.array([0.5, 0.5])])
    assert matrix[0, 1] == matrix[1, 0] == pytest.approx(np.sqrt(divergence))


def test_walks_are_as_many_as_asked_for_though_they_are_drawn_in_batches(monkeypatch):
    monkeypatch.setattr(awe, "BATCH", 7)
    edges = np.array([[0, 1], [0, 2], [1, 2], [2, 3]])
    counts = 20 * walk_distribution(edges, 4, 3, 20, np.random.default_rng(0))
    assert counts.sum() == pytest.approx(20)
    np.testing.assert_allclose(counts, counts.round(), atol=1e-12)


def test_a_graph_without_edges_is_refused():
    with pytest.raises(InputError, match="without edges"):
        walk_distribution(np.empty((0, 2), dtype=np.int64), 3, 3, 10, np.random.default_rng(0))


def test_adjusted_rand_index_is_scikit_learns():
    rng = np.random.default_rng(0)
    for members in (1, 2, 5, 9):
        first, second = rng.integers(0, 3, (2, 40, members))
        expected = [adjusted_rand_score(a, b) for a, b in zip(first, second, strict=True)]
        np.testing.assert_allclose(adjusted_rand(first, second), expected, atol=1e-12)
        against_one = [adjusted_rand_score(a, second[0]) for a in first]
        np.testing.assert_allclose(adjusted_rand(first, second[0]), against_one, atol=1e-12)
    assert adjusted_rand([0, 0, 1, 1], [1, 1, 0, 0]) == 1
    assert adjusted_rand([0, 0, 0], [0, 1, 2]) == 0
    assert adjusted_rand([0, 1, 2], [2, 0, 1]) == adjusted_rand([1, 1], [0, 0]) == 1
