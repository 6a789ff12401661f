"""Contrasts, verdicts, rounds to a target, similarities and partitions, with known numbers."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from synthetic import synthetic_record

from fgl_core.partition import QUOTAS, split_nodes
from fgl_core.study.catalogue import study_specs
from fgl_core.study.results import collect
from fgl_core.study.spec import RunSpec
from fgl_core.study.store import Record, Store, write_record
from fgl_core.tables.cells import comparison, paired
from fgl_core.tables.contrasts import answer, contrasts, verdict_counts, verdict_table, verdicts
from fgl_core.tables.curves import lead, reach_table, rounds_to_reach, steadiness
from fgl_core.tables.frames import curves_frame
from fgl_core.tables.layout import missing_table, settings_table
from fgl_core.tables.partitions import class_counts, majority_shares, partition_frame, partition_table
from fgl_core.tables.similarity import (
    client_pairs,
    mean_over_pairs,
    similarity_contrast,
    similarity_curves,
    similarity_table,
)
from fgl_core.tables.sweeps import with_fields


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def fill(store, study, accuracy, only, **changes):
    for spec in study_specs(study, "lite", only):
        if (value := accuracy(spec)) is not None:
            write_record(synthetic_record(spec, value) | changes, store.folder(study, "lite"))
    return collect(study, "lite", only, store)


CORNERS = {"neither": [0.80, 0.82, 0.84], "FNSC": [0.83, 0.84, 0.87], "FGSD": [0.81, 0.83, 0.84]}
CORNERS["both"] = [0.84, 0.85, 0.89]


def corner(spec):
    if spec.method.name == "fedavg":
        return "neither"
    if spec.method.lambda_c and spec.method.lambda_d:
        return "both"
    return "FNSC" if spec.method.lambda_c else "FGSD"


def table2(store, **only):
    part = {"dataset": ["cora"], "clients": [5, 7]} | only
    return fill(store, "fgssl-table2", lambda spec: CORNERS[corner(spec)][spec.seed], part)


def test_a_contrast_is_the_paired_test_of_its_two_sides(store):
    frame = contrasts(table2(store), {"a": ("FNSC", "FGSD"), "b": ("both", "FNSC")}, label=corner)
    assert frame[["clients", "method"]].values.tolist() == [[5, "a"], [5, "b"], [7, "a"], [7, "b"]]
    for label, pair in {"a": ("FNSC", "FGSD"), "b": ("both", "FNSC")}.items():
        oracle = stats.ttest_rel(*(CORNERS[side] for side in pair))
        row = frame[frame["method"] == label].iloc[0]
        bounds = oracle.confidence_interval(0.95)
        assert (row["low"], row["high"], row["p"]) == pytest.approx((bounds.low, bounds.high, oracle.pvalue))
    p = sorted(frame["p"])
    assert frame["p_holm"].min() == pytest.approx(min(1, 4 * p[0])) and not frame["best"].any()


def test_a_baseline_may_be_the_label_of_one_cell(store):
    frame = comparison(table2(store), "FGSD", label=corner)
    by_label = frame[frame["clients"] == 5].set_index("method")
    assert by_label.loc["FNSC", "difference"] == pytest.approx(0.02)
    assert by_label.loc["neither", "difference"] == pytest.approx(-0.02 / 3)
    assert math.isnan(by_label.loc["FGSD", "difference"])


def test_another_measure_than_accuracy(store):
    results = fill(store, "fgssl-protocols", lambda spec: 0.8, {"dataset": ["cora"], "method": ["local"]})
    assert set(comparison(results)["measure"]) == {"test_accuracy", "everywhere_test_accuracy"}
    assert set(comparison(results, measure="test_macro_f1")["measure"]) == {"test_macro_f1"}


def test_alike_needs_the_whole_ninety_percent_interval_within_a_point():
    zeros = dict.fromkeys(range(3), 0.0)
    # intervals 0.3 to 0.7 points, and 0.0 to 1.2 points
    for values, expected in (([0.004, 0.005, 0.006], True), ([0.002, 0.006, 0.009], False)):
        low, high = stats.t.interval(0.9, 2, np.mean(values), stats.sem(values))
        assert bool(low > -0.01 and high < 0.01) == expected
        assert paired(dict(enumerate(values)), zeros)["alike"] is expected
    assert not paired({0: 0.0, 1: 0.012}, {0: 0.0, 1: 0.0})["alike"]
    assert not paired({0: 0.0}, {0: 0.0})["alike"]


def test_verdicts_and_their_sentence():
    rows = [("a", 5, 0.05, 0.001, 3, False), ("a", 7, -0.02, 0.04, 3, False), ("a", 10, 0.001, 0.9, 3, True)]
    rows += [("b", 5, 0.03, 0.2, 3, False), ("b", 7, math.nan, math.nan, 1, False)]
    frame = pd.DataFrame(rows, columns=["method", "clients", "difference", "p_holm", "pairs", "alike"])
    assert verdicts(frame).tolist() == ["clearly better", "clearly worse", "alike", "undecided", "missing"]
    assert verdict_counts(frame).loc["a"].tolist() == [1, 1, 1, 0, 0]
    assert "clearly worse" in verdict_table(frame).to_html()
    sentence = answer(frame, "a", "paper")
    assert sentence == ("**a**: on average +1.0 points. 3 cells: 1 clearly better, 1 clearly worse, 1 alike.")
    assert answer(frame, "b", "lite").endswith(
        "1 cell: 1 undecided; 1 more without runs. Profile lite: a hint, not a verdict."
    )
    assert "nothing can be said" in answer(frame[frame["clients"] == 7].tail(1), "b", "lite")
    assert verdict_counts(frame.iloc[:0]).empty


def test_fields_of_the_runs_beside_their_comparison(store):
    results = fill(store, "fgssl-fig4", lambda spec: 0.8, {"dataset": ["cora"]})

    def setting(spec):
        return "FedAvg" if spec.method.name == "fedavg" else f"{spec.method.tau} {spec.method.omega}"

    frame = with_fields(comparison(results, label=setting), results, "tau", "omega", "hidden", label=setting)
    assert len(frame) == 1 + 6 + 4 and set(frame["hidden"]) == {128}
    fgssl = frame[frame["name"] == "fgssl"]
    assert (fgssl["tau"].astype(str) + " " + fgssl["omega"].astype(str)).tolist() == list(fgssl["method"])
    assert frame[frame["name"] == "fedavg"]["tau"].isna().all()
    assert settings_table(results).loc["FGSSL: omega", "value"] == "5.0, 0.1, 1.0, 10.0, 20.0"


def test_what_is_missing_has_the_names_of_the_table(store):
    results = fill(
        store,
        "fgssl-table2",
        lambda spec: None if corner(spec) == "both" and spec.seed else 0.8,
        {"dataset": ["cora"], "clients": [5]},
    )
    table = missing_table(results, corner)
    assert table.index.tolist() == [("cora", "both")] and table.iloc[0, 0] == 2


# FedAvg climbs linearly over 50 rounds to its value at the last, so that a run that ends at a reaches the
# value b in round ceil(50 b / a)


def test_rounds_until_a_run_is_where_the_baseline_ends(store):
    accuracy = {"fedavg": [0.5, 0.6, 0.8], "fgssl": [0.8, 0.8, 0.7], "fedopt": [0.6, 0.5, 0.5]}

    def known(spec):
        return accuracy.get(spec.method.name, [None] * 3)[spec.seed]

    results = fill(store, "fgssl-fig3", known, {"clients": [5]})
    frame = rounds_to_reach(results).set_index("method")
    # FGSSL: 50 · 5/8 = 31.25, 50 · 6/8 = 37.5, never
    assert frame.loc["FGSSL", ["pairs", "reached", "median", "first"]].tolist() == [3, 2, 38, 32]
    assert frame.loc["FGSSL", "last"] == math.inf
    # FedOpt: 50 · 5/6 = 41.7, never, never
    assert frame.loc["FedOpt", ["reached", "median", "first"]].tolist() == [1, math.inf, 42]
    assert frame.loc["FedAvg", "median"] == 50 and frame.loc["FedSage", "pairs"] == 0
    html = reach_table(frame.reset_index()).to_html()
    assert "38 (2 of 3)" in html and "not reached (1 of 3)" in html and "missing" in html


def curve(method, seed, *values):
    rows = [
        ("cora", 5, method, method.lower(), seed, number, value) for number, value in enumerate(values, 1)
    ]
    return pd.DataFrame(rows, columns=["dataset", "clients", "method", "name", "seed", "round", "value"])


def test_who_leads_and_who_is_steady():
    parts = [
        curve("A", 0, 0.1, 0.4, 0.6, 0.6),
        curve("A", 1, 0.3, 0.4, 0.6, 0.8),
        curve("B", 0, 0.1, 0.5, 0.5, 0.6),
        curve("C", 0, 0.3, 0.1, 0.1),
    ]
    frame = pd.concat(parts)
    # means of A: 0.2 0.4 0.6 0.7; C has no fourth round
    assert lead(frame, "A").values.tolist() == [["cora", 5, 3, 1]]
    assert lead(frame, "B").values.tolist() == [["cora", 5, 3, 1]]
    assert lead(parts[0], "A").empty and lead(frame, "D").empty
    steady = steadiness(frame).set_index("method")["change"]
    # from the second of four rounds on: A 0.2, 0 and 0.2, 0.2
    assert steady["A"] == pytest.approx((0.1 + 0.2) / 2) and steady["B"] == pytest.approx(0.05)
    assert steadiness(frame.iloc[:0]).empty


def test_similarities_of_one_seed_and_over_seeds(store):
    only = {"dataset": ["cora"], "method": ["local"]}
    results = fill(store, "fgssl-fig1", lambda spec: [None, 0.3, 0.5][spec.seed], only)
    (pairs,) = client_pairs(results, seed=2)
    assert (
        pairs.seed == 2 and pairs.cka.shape == (20, 20) and mean_over_pairs(pairs.cka) == pytest.approx(0.5)
    )
    (other,) = client_pairs(results, seed=0)
    assert other.seed == 1  # seed 0 has no record
    row = similarity_table(results).iloc[0]
    assert (row["n"], row["seeds"], row["cka"], row["js"]) == (2, 3, pytest.approx(0.4), pytest.approx(0.2))
    assert row["cka_std"] == pytest.approx(np.sqrt(0.02))
    assert math.isnan(mean_over_pairs(np.full((3, 3), np.nan)))
    holes = np.array([[0, 0.2, np.nan], [0.2, 0, np.nan], [np.nan] * 3])
    assert mean_over_pairs(holes) == pytest.approx(0.2)


def test_a_run_that_diverged_before_any_comparison_has_no_similarity(store):
    nothing = {"rounds": [], "mean_cka": [], "cka": [], "js_distance": [[0.0]]}
    only = {"dataset": ["cora"]}
    results = fill(store, "fgssl-fig1", lambda spec: 0.5, only, heterogeneity=nothing, status="diverged")
    assert similarity_curves(results.shown).empty
    assert all(np.isnan(pairs.cka).all() for pairs in client_pairs(results, 0))
    assert similarity_table(results)["n"].tolist() == [0]
    assert similarity_contrast(similarity_curves(results.shown), "FGSSL", "FedAvg").empty


def test_the_difference_in_similarity_is_taken_in_the_last_round_seed_by_seed(store):
    values = {"fedavg": [0.5, 0.6, 0.4], "fgssl": [0.6, 0.8, 0.7]}
    only = {"dataset": ["cora"], "method": ["fedavg", "fgssl"]}
    results = fill(store, "fgssl-fig1", lambda spec: values[spec.method.name][spec.seed], only)
    frame = similarity_curves(results.shown)
    assert sorted(set(frame["round"])) == [10, 20, 30, 40, 50]
    row = similarity_contrast(frame, "FGSSL", "FedAvg").iloc[0]
    oracle = stats.ttest_rel(values["fgssl"], values["fedavg"])
    assert (row["FGSSL"], row["FedAvg"], row["difference"]) == pytest.approx((0.7, 0.5, 0.2))
    assert row["p"] == pytest.approx(oracle.pvalue)
    alone = similarity_contrast(frame[frame["method"] == "FGSSL"], "FGSSL", "FedAvg").iloc[0]
    assert math.isnan(alone["FedAvg"]) and alone["pairs"] == 0


def test_partitions_from_records(store):
    only = {"dataset": ["cora"], "clients": [5, 7]}
    results = fill(store, "fgssl-partitions", lambda spec: None if spec.clients == 7 else 0.5, only)
    frame = partition_frame(results.shown)
    assert len(frame) == 2 * 3 and set(frame["edges_lost_share"]) == {0.25}
    table = partition_table(results)
    assert table[["clients", "partition", "seeds", "n"]].values.tolist() == [
        [5, "louvain", 3, 3],
        [5, "random", 3, 3],
        [7, "louvain", 3, 0],
        [7, "random", 3, 0],
    ]
    assert (table["smallest"][0], table["classes"][0]) == (10, 2) and math.isnan(table["smallest"][3])
    counts = class_counts(results, "cora", 5, "louvain", 0)
    assert counts.sum(axis=0).tolist() == [3 * 7 + 2 * 2, 3 * 3 + 2 * 8]
    assert class_counts(results, "cora", 7, "louvain", 0) is None


def test_majorities_by_hand():
    spec = RunSpec.parse({"dataset": "cora", "clients": 5, "rounds": 1})
    row = majority_shares([Record.parse(synthetic_record(spec))]).iloc[0]
    # two classes with 25 nodes each; clients hold 7 + 3, 2 + 8, 7 + 3, 2 + 8, 7 + 3
    assert (row["everyone"], row["own"]) == pytest.approx((0.5, (3 * 7 + 2 * 8) / 50))


def test_majorities_under_the_quota_are_those_of_the_nodes_left_for_testing():
    spec = RunSpec.parse({"dataset": "cora", "clients": 2, "rounds": 1, "split": "quota"})
    record = synthetic_record(spec)
    per_class, _ = QUOTAS["cora"]
    counts = [[per_class, 3 * per_class], [0, per_class]]
    for client, held in zip(record["partition"]["clients"], counts, strict=True):
        client["class_counts"] = held
    row = majority_shares([Record.parse(record)]).iloc[0]
    assert (row["everyone"], row["own"]) == (1.0, 1.0)  # the first class is for training altogether
    y = np.repeat([0, 1], np.sum(counts, axis=0))
    split = split_nodes(y, "quota", np.random.default_rng(0), quota=QUOTAS["cora"])
    assert set(y[split.test]) == {1}


def test_curves_take_the_names_of_the_table(store):
    assert set(curves_frame(table2(store), label=corner)["method"]) == set(CORNERS)
