"""Who holds what, and what a record says of a run, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_partition import dataset_of

from fgl_core.federation import Round
from fgl_core.partition import Split, partition_nodes, partition_statistics
from fgl_core.study.execute import execute
from fgl_core.study.measures import measure
from fgl_core.study.spec import GraphSpec, NodeSpec


def test_label_skew_is_a_mean_over_nodes():
    y = [0, 0, 1, 1, 1, 1]
    dataset = dataset_of([(0, 1)], 6, y=y)
    none = np.zeros(6, bool)
    owner = np.array([0, 0, 0, 0, 0, 1])
    skew = partition_statistics(dataset, Split(~none, none, none), owner)["label_skew"]
    # shares 2/5 3/5 and 0 1 against 1/3 2/3: 1/15 for five nodes, 1/3 for one
    assert skew == pytest.approx((5 / 15 + 1 / 3) / 6)


def test_a_random_partition_gives_every_node_to_every_client_alike():
    dataset = dataset_of([(0, 1)], 12)
    owners = [partition_nodes(dataset, 4, "random", np.random.default_rng(seed)) for seed in range(2000)]
    for client in range(4):
        share = np.mean([owner == client for owner in owners], axis=0)
        np.testing.assert_allclose(share, 1 / 4, atol=5 * math.sqrt(3 / 16 / 2000))


def counted(rng, size):
    return rng.multinomial(size, np.full(9, 1 / 9)).reshape(3, 3)


def f1(confusion):
    found = []
    for c in range(3):
        wrong = confusion[c].sum() + confusion[:, c].sum()
        if wrong:
            found.append(2 * confusion[c, c] / wrong)
    return np.mean(found)


def recall(confusion):
    return np.mean([confusion[c, c] / confusion[c].sum() for c in range(3) if confusion[c].sum()])


@pytest.mark.parametrize("pooled", [True, False])
def test_every_curve_by_hand(pooled):
    rng = np.random.default_rng(0)
    # the third client has no example for validation and none for testing
    sizes = [{"val": 9, "test": 20}, {"val": 30, "test": 11}, {"val": 0, "test": 0}]
    trained, aggregated = (
        [{split: counted(rng, n) for split, n in client.items()} for client in sizes] for _ in range(2)
    )
    crossed = [counted(rng, n) for n in (31, 31, 31)]
    measured = Round(1, 0.1234567, trained, aggregated, crossed, {"model": 3}, {"model": 4}, {"a": 1})
    found = measure(measured, pooled=pooled)
    assert found["bytes"] == {"up": {"model": 3}, "down": {"model": 4}} and found["notes"] == {"a": 1}
    expected = {"loss": 0.12346}

    def share(confusion):
        return np.trace(confusion) / confusion.sum()

    def mean(of, clients, split):
        parts = [client[split] for client in clients if client[split].sum()]
        return of(sum(parts)) if pooled else np.mean([of(part) for part in parts])

    for split in ("val", "test"):
        expected[f"{split}_accuracy"] = mean(share, aggregated, split)
        expected[f"{split}_macro_f1"] = mean(f1, aggregated, split)
        expected[f"{split}_balanced_accuracy"] = mean(recall, aggregated, split)
        expected[f"local_{split}_accuracy"] = mean(share, trained, split)
    if pooled:
        expected["test_accuracy_client_mean"] = np.mean([share(c["test"]) for c in aggregated[:2]])
    expected["everywhere_test_accuracy"] = np.mean([share(confusion) for confusion in crossed])
    correct = {f"{split}_correct": [int(np.trace(c[split])) for c in aggregated] for split in ("val", "test")}
    curves = found["curves"]
    assert {name: curves.pop(name) for name in correct} == correct
    assert curves == pytest.approx(expected, abs=1e-5)


def test_clients_of_graphs_count_alike_whatever_their_sizes():
    record = execute(GraphSpec(setting="digits-01,digits-89", hidden=16, norm="pf", rounds=1))
    curves = record["curves"]
    for split in ("val", "test"):
        sizes = np.array([client[split] for client in record["partition"]["clients"]])
        shares = curves[f"{split}_correct"][0] / sizes
        assert sizes[0] != sizes[1] and shares[0] != shares[1]
        assert curves[f"{split}_accuracy"][0] == pytest.approx(shares.mean(), abs=1e-5)


def test_the_best_round_of_a_record_is_that_of_the_best_validation_accuracy():
    # at this learning rate the models are good in rounds 2 to 4 and at chance in the end
    record = execute(NodeSpec(dataset="karate", clients=2, hidden=8, rounds=8, lr=0.5))
    curves, best, last = record["curves"], dict(record["best"]), dict(record["last"])
    val = curves["val_accuracy"]
    number, end = best.pop("round"), last.pop("round")
    assert (number, end) == (val.index(max(val)) + 1, 8) and max(val) > val[-1]
    assert best == {name: values[number - 1] for name, values in curves.items()}
    assert last == {name: values[-1] for name, values in curves.items()}
