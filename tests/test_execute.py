"""From spec to record: repeatable, honest about test labels, and complete."""

from __future__ import annotations

import json
from time import sleep

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, f1_score

from fgl_core.errors import InputError
from fgl_core.methods import METHODS
from fgl_core.study.execute import execute
from fgl_core.study.measures import balanced_accuracy, best_round, macro_f1, measure
from fgl_core.study.setup import set_up
from fgl_core.study.spec import NodeSpec, RunSpec

QUICK = {"fedsage+": {"generator_epochs": 2}}  # its default of 20 is not needed here
NODE_METHODS = [
    {"name": name, **QUICK.get(name, {})} for name, method in METHODS.items() if "node" in method.tasks
]
SMALL = {"dataset": "digits-knn", "clients": 3, "hidden": 16, "rounds": 2, "local_epochs": 2}


def same(record: dict) -> dict:
    return {key: value for key, value in record.items() if key not in ("environment", "timing")}


@pytest.mark.parametrize("method", NODE_METHODS, ids=lambda method: method["name"])
def test_a_run_repeats_exactly(method):
    spec = NodeSpec(**SMALL, method=method)
    first = execute(spec)
    torch.rand(3), np.random.rand(3)
    second = execute(spec)
    assert same(first) == same(second)
    assert first["status"] == "done"
    assert json.loads(json.dumps(first, allow_nan=False)) == first
    assert all(len(curve) == 2 for curve in first["curves"].values())


def test_a_pause_is_no_computing():
    spec = NodeSpec(**SMALL)
    execute(spec)  # compiles what is not compiled yet
    timing = execute(spec, on_round=lambda *_: sleep(1))["timing"]
    assert timing["seconds"] > 2 and 0 < timing["seconds_per_round"] < 1


def test_numbers_with_which_products_are_slow_are_zero_within_a_run_and_only_there():
    def product() -> float:
        return float(torch.tensor(1e-30) * 1e-10)

    if not torch.set_flush_denormal(False):
        pytest.skip("this processor computes with subnormal numbers in any case")
    found = []
    record = execute(NodeSpec(**SMALL), on_round=lambda *_: found.append(product()))
    assert record["environment"]["subnormal"] == "zero"
    assert found == [0, 0] and product() == pytest.approx(1e-40)


@pytest.mark.parametrize("method", NODE_METHODS, ids=lambda method: method["name"])
def test_engines_agree_over_whole_runs(method):
    spec = NodeSpec(**SMALL, method=method)
    fast, reference = (execute(spec, engine=engine, dtype="float64") for engine in ("fast", "reference"))
    np.testing.assert_allclose(fast["curves"]["loss"], reference["curves"]["loss"], atol=1e-5)
    assert fast["curves"]["test_correct"] == reference["curves"]["test_correct"]


def test_poisoned_test_labels_change_test_accuracy_and_nothing_else():
    spec = NodeSpec(**SMALL, method="fgssl")

    def outcome(poison: bool):
        setup = set_up(spec)
        if poison:
            for client in setup.clients:
                client.labels[client.test] = (client.labels[client.test] + 1) % client.num_classes
        rounds = [measure(measured, pooled=True) for measured in setup.run()]
        return setup.partition, rounds, best_round(rounds)

    clean, poisoned = outcome(False), outcome(True)
    assert clean[0] == poisoned[0] and clean[2] == poisoned[2]
    for before, after in zip(clean[1], poisoned[1], strict=True):
        assert before["bytes"] == after["bytes"]
        for name in before["curves"]:
            assert (before["curves"][name] == after["curves"][name]) == ("test" not in name), name


def test_best_round_is_the_earliest_of_the_best_validation_accuracy():
    rounds = [
        {"curves": {"val_accuracy": v, "test_accuracy": t}} for v, t in [(0.5, 0.9), (0.7, 0.1), (0.7, 0.8)]
    ]
    assert best_round(rounds) == 1


def test_pooled_measures_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    for classes in (2, 5):
        true, guess = rng.integers(0, classes, 200), rng.integers(0, classes, 200)
        confusion = confusion_matrix(true, guess, labels=range(classes))
        assert macro_f1(confusion) == pytest.approx(f1_score(true, guess, average="macro"), abs=1e-5)
        assert balanced_accuracy(confusion) == pytest.approx(balanced_accuracy_score(true, guess), abs=1e-5)
    absent = np.array([[3, 1, 0], [0, 2, 0], [0, 0, 0]])  # the third class never occurs
    assert balanced_accuracy(absent) == pytest.approx((3 / 4 + 1) / 2, abs=1e-5)
    assert macro_f1(absent) == pytest.approx((6 / 7 + 4 / 5) / 2, abs=1e-5)


def test_pooled_accuracy_is_the_clients_counts_over_all_test_nodes():
    record = execute(NodeSpec(**SMALL))
    sizes = [client["test"] for client in record["partition"]["clients"]]
    for correct, accuracy, mean in zip(
        record["curves"]["test_correct"],
        record["curves"]["test_accuracy"],
        record["curves"]["test_accuracy_client_mean"],
        strict=True,
    ):
        assert accuracy == pytest.approx(sum(correct) / sum(sizes), abs=1e-5)
        assert mean == pytest.approx(np.mean(np.divide(correct, sizes)), abs=1e-5)


def test_a_run_that_diverges_is_a_record():
    record = execute(NodeSpec(**SMALL | {"rounds": 30}, lr=100, weight_decay=1))
    assert record["status"] == "diverged"
    assert "not finite" in record["reason"] or "loss" in record["reason"]
    assert len(record["curves"].get("loss", [])) < 30
    json.dumps(record, allow_nan=False)


def test_global_evaluation_sees_the_edges_between_clients():
    union, whole = (execute(NodeSpec(**SMALL, evaluation=kind)) for kind in ("union", "global"))
    assert union["curves"]["loss"] == whole["curves"]["loss"]
    assert union["partition"] == whole["partition"]
    assert union["curves"]["test_correct"] != whole["curves"]["test_correct"]
    alone = [execute(NodeSpec(**SMALL | {"clients": 1}, evaluation=kind)) for kind in ("union", "global")]
    assert alone[0]["curves"] == alone[1]["curves"]


def test_quota_split_has_the_fields_numbers(real_data):
    real_data("citeseer")
    clients = set_up(RunSpec.parse({"dataset": "citeseer", "split": "quota"})).partition["clients"]
    sizes = [sum(counts) for counts in zip(*(client["class_counts"] for client in clients), strict=True)]
    # the quota counts the 15 nodes that are dropped; a smaller class gives all it has
    assert sum(client["train"] for client in clients) == sum(min(332, size) for size in sizes)
    assert sum(client["val"] for client in clients) == 665


def test_number_of_clients_and_global_share_the_test_nodes():
    ids = {}
    for clients in (1, 3, 5):
        spec = NodeSpec(**SMALL | {"clients": clients})
        setup = set_up(spec)
        ids[clients] = sum(client["test"] for client in setup.partition["clients"])
    assert len(set(ids.values())) == 1


def test_more_clients_than_nodes_is_refused():
    with pytest.raises(InputError, match="client"):
        execute(NodeSpec(dataset="karate", clients=40))


@pytest.mark.parametrize("dataset", ["cora"])
@pytest.mark.parametrize("method", NODE_METHODS, ids=lambda method: method["name"])
def test_methods_run_on_real_data(real_data, dataset, method):
    real_data(dataset)
    record = execute(NodeSpec(dataset=dataset, rounds=2, method=method))
    assert record["status"] == "done"
    assert record["curves"]["test_accuracy"][-1] > 1 / 7


def test_spec_names_what_is_allowed():
    for values, words in [
        ({"dataset": "coar"}, ["unknown dataset 'coar'", "cora"]),
        ({"method": "fgsll"}, ["unknown method 'fgsll'", "fgssl"]),
        ({"method": {"name": "fgssl", "tua": 1}}, ["'tua'", "tau", "fgssl"]),
        ({"method": {"name": "fgssl", "tau": 0}}, ["tau", "greater than 0"]),
        ({"method": {"name": "fgssl", "tau": "x"}}, ["tau", "number"]),
        ({"rounds": 0}, ["rounds", "greater than or equal to 1"]),
        ({"round": 3}, ["unknown parameter 'round'", "rounds"]),
        ({"split": "half"}, ["split", "stratified"]),
        ({"lr": float("nan")}, ["lr", "finite"]),
    ]:
        with pytest.raises(InputError) as error:
            RunSpec.parse(values)
        message = str(error.value)
        assert "\n" not in message
        assert all(word in message for word in words), message


def test_digest_depends_on_every_field_and_not_on_how_it_was_written():
    base = NodeSpec(dataset="cora", method="fgssl")
    assert RunSpec.parse(base.model_dump(mode="json")).digest == base.digest
    assert NodeSpec(dataset="cora", method={"name": "fgssl", "tau": 0.1}).digest == base.digest
    changes = {"seed": 1, "clients": 7, "rounds": 3, "lr": 0.2, "method": {"name": "fgssl", "tau": 0.2}}
    digests = {
        RunSpec.parse({**base.model_dump(mode="json"), name: value}).digest for name, value in changes.items()
    }
    assert len(digests | {base.digest}) == len(changes) + 1


def test_global_is_one_run_whatever_the_number_of_clients():
    assert NodeSpec(method="global", clients=5).digest == NodeSpec(method="global", clients=10).digest
