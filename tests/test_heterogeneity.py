"""Comparing the clients' models and graphs: the right models, the right input, the right moment."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fgl_core.analysis.cka import pairwise_cka
from fgl_core.datasets import load_node_dataset
from fgl_core.errors import InputError
from fgl_core.models.graph import Graph
from fgl_core.study.execute import execute
from fgl_core.study.setup import set_up
from fgl_core.study.spec import RunSpec

VALUES = {
    "task": "heterogeneity",
    "dataset": "digits-knn",
    "clients": 4,
    "hidden": 16,
    "rounds": 3,
    "every": 2,
}


def test_models_are_compared_before_aggregation_on_all_test_nodes():
    spec = RunSpec.parse(VALUES)
    record = execute(spec)
    seen = {}

    def keep(number, models):
        seen[number] = [{name: t.clone() for name, t in model.state_dict().items()} for model in models]

    setup = set_up(spec)
    list(setup.run(on_trained=keep))
    dataset = load_node_dataset("digits-knn")
    graph = Graph.from_arrays(dataset.x, dataset.edges)
    test = sorted(node for client in setup.clients for node in client.nodes[client.test.numpy()])
    outputs = []
    for model, state in zip(setup.models, seen[3], strict=True):
        model.load_state_dict(state)
        outputs.append(model.eval()(graph)[1].detach().numpy()[test])
    found = record["heterogeneity"]
    assert found["rounds"] == [2, 3]
    expected = pairwise_cka(outputs)
    np.testing.assert_allclose(found["cka"], expected, atol=2e-4)
    assert found["mean_cka"][-1] == round(float(expected[np.triu_indices(4, k=1)].mean()), 5)
    assert found["mean_cka"][-1] < 0.999  # aggregated models would be equal


def test_watching_changes_no_number():
    watched = execute(RunSpec.parse(VALUES))
    plain = execute(RunSpec.parse({key: VALUES[key] for key in ("dataset", "clients", "hidden", "rounds")}))
    assert watched["curves"] == plain["curves"] and watched["partition"] == plain["partition"]


def test_a_client_without_edges_has_no_walks_and_stops_nothing():
    spec = RunSpec.parse(
        {
            "task": "heterogeneity",
            "dataset": "karate",
            "clients": 7,
            "rounds": 1,
            "seed": 0,
            "partition": "random",
            "hidden": 4,
            "walks": 1000,
        }
    )
    record = execute(spec)
    lonely = [index for index, client in enumerate(record["partition"]["clients"]) if client["edges"] == 0]
    matrix = record["heterogeneity"]["js_distance"]
    assert lonely, "pick another seed: this test needs a client without edges"
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            assert (value is None) == (i in lonely or j in lonely)
            if i == j and value is not None:
                assert value == 0


def test_undirected_edges_are_those_the_graph_was_built_from():
    dataset = load_node_dataset("karate")
    graph = Graph.from_arrays(dataset.x, dataset.edges, dtype=torch.float64)
    np.testing.assert_array_equal(np.unique(graph.undirected_edges, axis=0), np.unique(dataset.edges, axis=0))


def test_one_client_has_nothing_to_be_compared_with():
    for values in ({"clients": 1}, {"method": "global"}):
        with pytest.raises(InputError, match=r"clients = 1: .* 2"):
            RunSpec.parse({"task": "heterogeneity", "dataset": "karate", **values})
