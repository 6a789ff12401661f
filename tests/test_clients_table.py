"""Accuracies by client, from records that hold known counts."""

from __future__ import annotations

import pytest

from fgl_core.study.catalogue import STUDIES
from fgl_core.study.fedcch import Scale, grid
from fgl_core.study.results import collect
from fgl_core.study.store import Store, write_record
from fgl_core.tables.cells import comparison
from fgl_core.tables.clients import client_accuracies, client_table


@pytest.fixture
def results(tmp_path, monkeypatch):
    def two(profile):
        """Two methods."""
        return grid(Scale(("MUTAG,BZR",), seeds=2, rounds=1), ({"method": "local"}, {"method": "fedavg"}))

    monkeypatch.setitem(STUDIES, "two", two)
    store = Store(tmp_path)
    for spec in two("lite"):
        correct = [10 + spec.seed, 30] if spec.method.name == "fedavg" else [5, 20]
        accuracy = round((correct[0] / 20 + correct[1] / 40) / 2, 5)
        moment = {"round": 1, "test_accuracy": accuracy, "val_accuracy": 0.5, "test_correct": correct}
        record = {
            "format": 1,
            "spec": spec.model_dump(mode="json"),
            "digest": spec.digest,
            "revision": 1,
            "status": "done",
            "partition": {
                "clients": [
                    {"name": "MUTAG", "train": 150, "test": 20},
                    {"name": "BZR", "train": 320, "test": 40},
                ]
            },
            "curves": {"test_accuracy": [accuracy]},
            "best": moment,
            "last": moment,
            "bytes": {"up": {}, "down": {}},
        }
        write_record(record, store.folder("two", "lite"))
    return collect("two", "lite", {}, store)


def test_each_clients_accuracy_is_its_correct_over_its_test_examples(results):
    frame = client_accuracies(results)
    fedavg = frame[frame["method"] == "FedAvg"].set_index(["seed", "client"])["accuracy"]
    assert fedavg.to_dict() == {(0, "MUTAG"): 0.5, (0, "BZR"): 0.75, (1, "MUTAG"): 0.55, (1, "BZR"): 0.75}
    assert "52.5" in client_table(results).to_html()  # MUTAG by FedAvg: the mean of 50 and 55


def test_the_best_round_counts_and_a_client_without_test_examples_has_no_row(results):
    for record in results.shown:
        record.data["last"] = record.data["last"] | {"test_correct": [0, 0]}
        bzr, number = record.data["partition"]["clients"][1], record.spec.seed
        bzr["test"] = 40 if number == 0 else 0
        bzr.pop("name")  # clients that hold parts of one graph have numbers
    frame = client_accuracies(results)
    fedavg = frame[frame["method"] == "FedAvg"].set_index(["seed", "client"])["accuracy"]
    assert fedavg.to_dict() == {(0, "MUTAG"): 0.5, (0, "1"): 0.75, (1, "MUTAG"): 0.55}


def test_local_has_one_row_where_clients_have_classes_of_their_own(results):
    cells = comparison(results, baseline="local").set_index("method")
    assert list(cells.index) == ["Local", "FedAvg"]
    assert cells.loc["FedAvg", "difference"] == pytest.approx((0.625 + 0.65) / 2 - 0.375, abs=1e-5)
