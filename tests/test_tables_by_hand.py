"""What tables say, and which trials tuning asks for, by hand."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from scipy import stats
from synthetic import synthetic_record

from fgl_core.study.catalogue import STUDIES, study_specs
from fgl_core.study.grid import Scale, grid
from fgl_core.study.results import collect
from fgl_core.study.spaces import SPACES
from fgl_core.study.store import Store, write_record
from fgl_core.study.trials import Protocol, Trial, read_searches
from fgl_core.study.tuning import beyond, plan
from fgl_core.tables import fairness, noise, ranks
from fgl_core.tables.cells import comparison
from fgl_core.tables.curves import lead, steadiness
from fgl_core.tables.ledger import average
from fgl_core.tables.ranks import ranking_of_cells, ranking_of_clients
from fgl_core.tables.statistics import detectable_difference, holm

ROOT = Path(__file__).parents[1]


def trial(**values):
    return Trial("", values, [0.5, 0.5], [1, 1], ["done", "done"], ["a", "b"])


def test_an_end_of_a_range_is_an_eighth_of_it():
    ranges = {"lr": (0.01, 1.0)}
    low, high = 0.01 * 100 ** (1 / 8), 100 ** (-1 / 8)
    for inside in (low * 1.01, high / 1.01):
        assert beyond(ranges, trial(lr=inside), 2) == []
    assert [point["lr"] for point in beyond(ranges, trial(lr=low / 1.01), 2)] == [0.00316, 0.001]
    assert [point["lr"] for point in beyond(ranges, trial(lr=high * 1.01), 2)] == [3.16, 10.0]


def test_the_committed_trials_are_the_points_that_the_plan_asks_for():
    for search in read_searches(ROOT):
        stages, made, rest = plan(SPACES[search.space], Protocol()), None, list(search.trials)
        while rest:
            stage, points = stages.send(made)
            made, rest = rest[: len(points)], rest[len(points) :]
            assert {found.stage for found in made} == {stage}
            for found, point in zip(made, points, strict=True):
                assert found.values == pytest.approx(point, rel=6e-3)  # three digits
        with pytest.raises(StopIteration):
            stages.send(made)


@pytest.fixture
def three(monkeypatch, tmp_path):
    def methods(profile):
        """Three methods."""
        scale = Scale(("cora",), (5, 7), 3, rounds=2)
        return grid(scale, ({"method": name} for name in ("fedavg", "fedprox", "fgssl")))

    monkeypatch.setitem(STUDIES, "three", methods)
    return Store(tmp_path)


def test_the_best_is_marked_after_holms_correction_over_all_rows(three):
    gains = {"fedavg": [0, 0, 0], "fedprox": [0.01, -0.02, 0.012], "fgssl": [0.020, 0.030, 0.028]}
    for spec in study_specs("three", "lite"):
        value = 0.8 + gains[spec.method.name][spec.seed]
        write_record(synthetic_record(spec, round(value, 5)), three.folder("three", "lite"))
    frame = comparison(collect("three", "lite", {}, three))
    assert frame["p_holm"].tolist() == pytest.approx(holm(list(frame["p"])), nan_ok=True)
    fgssl = frame[frame["name"] == "fgssl"]
    assert (fgssl["p"] < 0.05).all() and (fgssl["p_holm"] > 0.05).all()
    assert not frame["best"].any()


def test_fairness_is_corrected_over_the_rows_it_shows(monkeypatch):
    rows = [("fedavg", math.nan), ("global", 0.001), ("fgssl", 0.02), ("local", 0.03)]
    frame = pd.DataFrame(rows, columns=["name", "p"]).assign(p_holm=9.0, measure="", best=True)
    monkeypatch.setattr(fairness, "comparison", lambda *_, **__: frame)
    shown = fairness.fairness_frame(SimpleNamespace(), "worst")
    assert shown["name"].tolist() == ["fedavg", "fgssl", "local"]
    assert shown["p_holm"].tolist() == pytest.approx([math.nan, 0.04, 0.04], nan_ok=True)


def test_the_mean_over_cells_has_the_interval_of_each_seeds_mean():
    cells = [{0: 0.01, 1: 0.03, 2: 0.05}, {0: 0.04, 1: 0.02, 2: 0.09, 3: 0.9}]
    found = average(pd.DataFrame({"by_seed": cells}))
    oracle = stats.ttest_1samp([0.025, 0.025, 0.07], 0)
    bounds = oracle.confidence_interval(0.95)
    assert (found.mean, found.low, found.high) == pytest.approx((0.04, bounds.low, bounds.high))
    assert (found.p, found.n) == (pytest.approx(oracle.pvalue), 3)


def cell_row(clients, method, mean, name=None, measure="test_accuracy"):
    return {
        "dataset": "cora",
        "clients": clients,
        "method": method,
        "name": name or method,
        "measure": measure,
        "mean": mean,
    }


def test_a_ranking_of_cells_leaves_out_the_whole_graph_and_other_measures():
    rows = []
    for clients, (a, b, c) in {5: (0.8, 0.7, 0.6), 7: (0.7, 0.8, 0.6), 10: (0.8, 0.7, 0.6)}.items():
        rows += [cell_row(clients, "fedavg", b), cell_row(clients, "fgssl", a)]
        rows += [cell_row(clients, "own", c, "local")]
        rows += [cell_row(clients, "everyone", 0.99, "local", "everywhere_test_accuracy")]
        rows += [cell_row(clients, "global", 0.95)]
    found = ranking_of_cells(pd.DataFrame(rows))
    assert found.blocks == 3
    assert found.ranks.to_dict() == pytest.approx({"fgssl": 4 / 3, "fedavg": 5 / 3, "own": 3})


def test_a_ranking_of_clients_takes_means_over_seeds_in_every_setting(monkeypatch):
    by_seed = {
        ("CHEM", "MUTAG"): {"a": [0.9, 0.1, 0.1], "b": [0.3, 0.4, 0.5], "c": [0.2, 0.2, 0.2]},
        ("CHEM", "BZR"): {"a": [0.9, 0.9, 0.9], "b": [0.8, 0.8, 0.8], "c": [0.1, 0.1, 0.1]},
        ("MIX", "MUTAG"): {"a": [0.5, 0.5, 0.5], "b": [0.6, 0.6, 0.6], "c": [0.7, 0.7, 0.7]},
    }
    rows = [
        (setting, method, seed, client, value)
        for (setting, client), methods in by_seed.items()
        for method, values in methods.items()
        for seed, value in enumerate(values)
    ]
    frame = pd.DataFrame(rows, columns=["setting", "method", "seed", "client", "accuracy"])
    monkeypatch.setattr(ranks, "client_accuracies", lambda results: frame)
    found = ranking_of_clients(SimpleNamespace())
    # means of MUTAG in CHEM: 0.367, 0.4, 0.2
    assert found.blocks == 3
    assert found.ranks.to_dict() == pytest.approx({"b": 5 / 3, "a": 2, "c": 7 / 3})


def curve(method, *values):
    rows = [("cora", 5, method, 0, number, value) for number, value in enumerate(values, 1)]
    return pd.DataFrame(rows, columns=["dataset", "clients", "method", "seed", "round", "value"])


def test_equal_accuracies_lead_nobody_and_falls_count_like_rises():
    frame = pd.concat([curve("A", 0.5, 0.6, 0.8, 0.7), curve("B", 0.5, 0.5, 0.8, 0.6)])
    assert lead(frame, "A")["led"].tolist() == [2] and lead(frame, "B")["led"].tolist() == [0]
    change = steadiness(frame).set_index("method")["change"]
    assert change.to_dict() == pytest.approx({"A": (0.2 + 0.1) / 2, "B": (0.3 + 0.2) / 2})


def test_only_unpaired_differences_vary_more_than_one_run(monkeypatch):
    spreads = pd.DataFrame(
        [("cora", "all", what, 5, std) for what, std in (("FedAvg", 0.02), (noise.DIFFERENCE, 0.01))],
        columns=["dataset", "source", "what", "n", "std"],
    )
    monkeypatch.setattr(noise, "spreads_by_source", lambda results: spreads)
    found = noise.decidable(SimpleNamespace()).set_index("what")
    for seeds in noise.SEEDS:
        paired = found.loc["FGSSL − FedAvg, paired by seed", seeds]
        assert paired == pytest.approx(detectable_difference(0.01, seeds))
        unpaired = found.loc["FedAvg against a method, unpaired", seeds]
        assert unpaired == pytest.approx(detectable_difference(0.02 * math.sqrt(2), seeds))
