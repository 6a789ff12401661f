"""Clients of many graphs: who holds what, mini-batches, evaluation, initial models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from graph_sets import random_set
from sklearn.metrics import confusion_matrix

from fgl_core.datasets import load_graph_dataset
from fgl_core.errors import InputError
from fgl_core.graph_clients import EVALUATED_NODES, graph_clients, initial_models
from fgl_core.graph_partition import hold_graphs, holding_statistics, split_graphs
from fgl_core.streams import Streams

MODEL = {"backbone": "gin", "hidden": 16, "dropout": 0.5, "norm": "pf", "share_norm": False}
MODEL["dtype"] = torch.float64


def named_set(name: str, graphs: int = 40, **options):
    return replace(random_set(graphs, **options), name=name)


def members(names=("a", "b"), *, batch_size=8, clients_per_dataset=1, seed=0):
    datasets = [named_set(name, seed=number) for number, name in enumerate(names)]
    holdings = hold_graphs(datasets, Streams(seed), clients_per_dataset)
    return graph_clients(holdings, batch_size=batch_size, dtype=torch.float64)


@pytest.mark.parametrize("counts", [(63, 125), (20, 20, 21), (11, 400), (150,) * 15, (10, 10)])
def test_split_is_80_10_10_and_stratified(counts):
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    train, val, test = split_graphs(y, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(np.concatenate([train, val, test])), np.arange(len(y)))
    assert len(val) == len(test) == round(len(y) / 10)
    for part in (val, test):
        assert (np.diff(part) > 0).all()
        for label, count in enumerate(counts):
            assert abs((y[part] == label).sum() - count * len(part) / len(y)) < 1
    np.testing.assert_array_equal(np.bincount(y[val]), np.bincount(y[test]))


def test_split_by_hand():
    # 188 graphs: 19 are held out, 6.37 and 12.63 of the classes, so that the second gets the last one
    y = np.repeat([0, 1], [63, 125])
    _, _, test = split_graphs(y, np.random.default_rng(0))
    assert np.bincount(y[test]).tolist() == [6, 13]


def test_a_class_with_few_graphs_turns_stratification_off():
    y = np.repeat([0, 1, 2], [50, 45, 5])
    sizes = set()
    for seed in range(20):
        train, val, test = split_graphs(y, np.random.default_rng(seed))
        assert (len(train), len(val), len(test)) == (80, 10, 10)
        assert len(np.unique(np.concatenate([train, val, test]))) == 100
        sizes.add((y[test] == 0).sum())
    assert len(sizes) > 1


def test_seeds_draw_other_splits():
    y = np.arange(60) % 2
    first, again, other = (split_graphs(y, np.random.default_rng(seed))[2].tolist() for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_a_client_is_the_same_in_every_setting():
    alone, together = members(["b"]), members(["a", "b"])
    # "b" is drawn from another seed in this position
    datasets = [named_set("a"), named_set("c"), named_set("b", seed=0)]
    first = hold_graphs(datasets, Streams(0))
    second = hold_graphs(datasets[::-1], Streams(0))
    for one, two in zip(first, second[::-1], strict=True):
        assert one.name == two.name
        for part in ("train", "val", "test"):
            np.testing.assert_array_equal(getattr(one, part), getattr(two, part))
    assert not np.array_equal(first[0].test, first[1].test)
    np.testing.assert_array_equal(alone[0].test, together[1].test)
    models = initial_models(alone, Streams(0), **MODEL), initial_models(together, Streams(0), **MODEL)
    for name, tensor in models[0][0].state_dict().items():
        assert torch.equal(tensor, models[1][1].state_dict()[name])


def test_clients_of_one_set_share_its_graphs_out():
    clients = members(["a"], clients_per_dataset=3)
    assert [client.name for client in clients] == ["a", "a#2", "a#3"]
    assert {client.dataset for client in clients} == {"a"}
    held = [np.concatenate([client.train, client.val, client.test]) for client in clients]
    assert sorted(len(graphs) for graphs in held) == [13, 13, 14]
    np.testing.assert_array_equal(np.sort(np.concatenate(held)), np.arange(40))
    assert len({id(client.packed) for client in clients}) == 1


def test_too_many_clients_for_a_set_are_refused():
    with pytest.raises(InputError, match=r"clients_per_dataset = 5 leaves a with 8 of 40 graphs.*4 at most"):
        members(["a"], clients_per_dataset=5)


def test_statistics_report_classes_that_a_test_set_lacks():
    y = np.repeat([0, 1], [38, 2]).astype(np.int64)
    datasets = [replace(named_set("a"), y=y), named_set("b")]
    holdings = hold_graphs(datasets, Streams(0))
    statistics = holding_statistics(holdings)
    first, second = statistics["clients"]
    assert first["class_counts"] == [38, 2]
    assert (first["train"], first["val"], first["test"], first["graphs"]) == (32, 4, 4, 40)
    assert first["test_lacks"] == ([] if (y[holdings[0].test] == 1).any() else [1])
    assert second["test_lacks"] == second["val_lacks"] == []
    assert len(first["val_lacks"]) + len(first["test_lacks"]) >= 1
    assert statistics["hash"] == holding_statistics(hold_graphs(datasets, Streams(0)))["hash"]
    assert statistics["hash"] != holding_statistics(hold_graphs(datasets, Streams(1)))["hash"]


def test_an_epoch_sees_every_training_graph_once_in_a_new_order():
    (client,) = members(["a"])
    labels = client.labels.numpy()
    seen = {}
    for number, epoch in [(1, 0), (1, 1), (2, 0)]:
        batches = list(client.batches(Streams(0), number, epoch))
        assert [batch.index for batch in batches] == [0, 1, 2, 3]
        assert [len(batch.graph.sizes) for batch in batches] == [8, 8, 8, 8]
        order = Streams(0).numpy("shuffle", "a", number, epoch).permutation(client.train)
        np.testing.assert_array_equal(torch.cat([batch.labels for batch in batches]), labels[order])
        sizes = torch.cat([batch.graph.sizes for batch in batches])
        np.testing.assert_array_equal(sizes, client.packed.sizes[order])
        seen[number, epoch] = order.tolist()
    assert all(sorted(order) == client.train.tolist() for order in seen.values())
    assert len(set(map(tuple, seen.values()))) == 3


@pytest.mark.parametrize(("size", "expected"), [(31, [31, 1]), (64, [32]), (1, [1] * 32)])
def test_batches_of_one_graph_and_clients_smaller_than_a_batch(size, expected):
    (client,) = members(["a"], batch_size=size)
    model = initial_models([client], Streams(0), **MODEL | {"norm": "batch"})[0].train()
    sizes = []
    for batch in client.batches(Streams(0), 1, 0):
        sizes.append(len(batch.graph.sizes))
        _, logits = model(batch.graph, dropout=torch.Generator())
        assert torch.isfinite(logits).all()
    assert sizes == expected


def test_evaluation_counts_are_scikit_learns(monkeypatch):
    (client,) = members(["a"])
    (model,) = initial_models([client], Streams(0), **MODEL)
    whole = client.evaluate(model)
    for split in ("val", "test"):
        graphs = getattr(client, split)
        predicted = model(client.packed.batch(graphs))[1].argmax(1)
        expected = confusion_matrix(client.labels[graphs], predicted, labels=[0, 1])
        np.testing.assert_array_equal(whole[split], expected)
    h, _ = model(client.packed.batch(client.train))
    torch.testing.assert_close(client.representations(model), h)
    monkeypatch.setattr("fgl_core.graph_clients.EVALUATED_NODES", 10)
    parts = client.evaluate(model)
    assert all(np.array_equal(parts[split], whole[split]) for split in whole)
    torch.testing.assert_close(client.representations(model), h)
    assert client.packed.sizes.max() < EVALUATED_NODES
    assert not model.training


def test_shared_tensors_start_alike_and_local_ones_do_not():
    datasets = [named_set("a", features=3), named_set("b", features=5, classes=3)]
    clients = graph_clients(hold_graphs(datasets, Streams(0)), batch_size=8, dtype=torch.float64)
    for backbone in ("gin", "star"):
        options = MODEL | {"backbone": backbone}
        first, second = (m.state_dict() for m in initial_models(clients, Streams(0), **options))
        local = initial_models(clients, Streams(0), **options)[0].local_modules
        assert any(not name.startswith(local) for name in first)
        for name, tensor in first.items():
            if not name.startswith(local):
                assert torch.equal(tensor, second[name]), name
        assert not torch.equal(first["head.0.weight"], second["head.0.weight"])
        apart = [m.state_dict() for m in initial_models(clients, Streams(0), **options, common_start=False)]
        shared = next(name for name in first if name.endswith("weight") and not name.startswith(local))
        assert not torch.equal(apart[0][shared], apart[1][shared])


def test_digits_are_clients_too():
    holdings = hold_graphs([load_graph_dataset("digits-01")], Streams(0))
    statistics = holding_statistics(holdings)["clients"][0]
    assert statistics["test"] == 36
    assert statistics["class_counts"] == [178, 182]
