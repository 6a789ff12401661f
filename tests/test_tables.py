"""Tables from records that hold known numbers."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from synthetic import synthetic_record

from fgl_core.errors import InputError
from fgl_core.study.catalogue import STUDIES, study_specs
from fgl_core.study.grid import SCALES, grid
from fgl_core.study.results import collect, open_results, parse_only, resolve_profile
from fgl_core.study.spec import RunSpec
from fgl_core.study.store import Store, write_record
from fgl_core.tables.cells import comparison
from fgl_core.tables.frames import curves_frame, runs_frame
from fgl_core.tables.labels import labels
from fgl_core.tables.layout import accuracy_table, difference_table, sensitivity_table

STUDY = "four-methods"


@pytest.fixture(autouse=True)
def four_methods(monkeypatch):
    def four(profile):
        """Four methods."""
        methods = ("local", "global", "fedavg", "fgssl")
        return grid(SCALES[profile], ({"method": {"name": name}} for name in methods))

    monkeypatch.setitem(STUDIES, STUDY, four)


@pytest.fixture(autouse=True)
def no_profile(monkeypatch):
    monkeypatch.delenv("FGL_PROFILE", raising=False)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def fill(store, specs, accuracy, **changes):
    for spec in specs:
        record = synthetic_record(spec, accuracy(spec))
        write_record(record | changes, store.folder(STUDY, "lite"))


def row(frame, method, clients=5, dataset="cora"):
    chosen = frame[(frame.method == method) & (frame.clients == clients) & (frame.dataset == dataset)]
    assert len(chosen) == 1
    return chosen.iloc[0]


ACCURACY = {
    "fedavg": [0.80, 0.82, 0.84],
    "fgssl": [0.83, 0.84, 0.87],
    "local": [0.7] * 3,
    "global": [0.8] * 3,
}


def known(spec):
    return ACCURACY[spec.method.name][spec.seed]


def cora(store, **only):
    return collect(STUDY, "lite", {"dataset": ["cora"], **only}, store)


def test_mean_deviation_and_paired_interval(store):
    fill(store, study_specs(STUDY, "lite", {"dataset": ["cora"]}), known)
    frame = comparison(cora(store, clients=[5]))
    fgssl = row(frame, "FGSSL")
    oracle = stats.ttest_rel(ACCURACY["fgssl"], ACCURACY["fedavg"])
    bounds = oracle.confidence_interval(0.95)
    assert (fgssl["mean"], fgssl["std"]) == pytest.approx((0.84667, 0.02082), abs=1e-5)
    assert fgssl["difference"] == pytest.approx(0.02667, abs=1e-5)
    assert (fgssl["low"], fgssl["high"], fgssl["p"]) == pytest.approx(
        (bounds.low, bounds.high, oracle.pvalue)
    )
    assert fgssl["p_holm"] >= fgssl["p"] and (fgssl["n"], fgssl["seeds"], fgssl["pairs"]) == (3, 3, 3)
    assert math.isnan(row(frame, "FedAvg")["difference"])


def test_the_round_that_counts_is_that_of_the_best_validation_accuracy(store):
    for spec in study_specs(STUDY, "lite", {"dataset": ["cora"], "clients": [5]}):
        record = synthetic_record(spec, 0.6)  # in the last round
        best = {"round": 3, "test_accuracy": known(spec), "everywhere_test_accuracy": 0.5}
        write_record(record | {"best": record["best"] | best}, store.folder(STUDY, "lite"))
    results = cora(store, clients=[5])
    frame = comparison(results)
    assert row(frame, "FGSSL")["mean"] == pytest.approx((0.83 + 0.84 + 0.87) / 3)
    assert row(frame, "FGSSL")["difference"] == pytest.approx((0.03 + 0.02 + 0.03) / 3)
    assert row(frame, "Local, all test nodes")["mean"] == 0.5
    runs = runs_frame(results.shown)
    fedavg = runs[runs["method"] == "fedavg"].sort_values("seed")
    assert fedavg["best_test_accuracy"].tolist() == ACCURACY["fedavg"][: len(fedavg)]
    assert fedavg["last_test_accuracy"].tolist() == [0.6] * len(fedavg) and set(fedavg["best_round"]) == {3}


def test_how_far_a_difference_depends_on_the_statistics(store):
    fill(store, study_specs(STUDY, "lite", {"dataset": ["cora"]}), known)
    frame = comparison(cora(store, clients=[5]))
    fgssl = row(frame, "FGSSL")
    # differences 3, 2, 3 points; clients have 6 nodes for training and 2 for testing
    half = stats.t.ppf(0.975, 2) * np.std([3, 2, 3], ddof=1) * math.sqrt(1 / 3 + 2 / 6)
    low, high = 100 * fgssl["corrected_low"], 100 * fgssl["corrected_high"]
    assert (low, high) == pytest.approx((8 / 3 - half, 8 / 3 + half), abs=2e-3)
    table = sensitivity_table(frame).data.set_index("method")
    assert table.loc["FGSSL", "Nadeau–Bengio interval"] == f"[{low:+.1f}, {high:+.1f}]"
    assert table.loc["FGSSL", "p"] == f"{fgssl['p']:.3f}" and table.loc["FGSSL", "pairs"] == 3
    assert table.loc["FGSSL", "p (Holm)"] == f"{fgssl['p_holm']:.3f}"
    found = frame["detectable"].dropna() * 100
    said = f"{found.min():.1f} points where seeds agree most, {found.max():.1f} where least."
    assert f"find a true difference of {said}" in difference_table(frame).to_html()


def test_equal_differences_have_no_statistics(store):
    fill(store, study_specs(STUDY, "lite", {"dataset": ["cora"], "clients": [5]}), lambda spec: 0.8)
    frame = comparison(cora(store, clients=[5], method=["fedavg", "fgssl"]))
    (shown,) = sensitivity_table(frame).data.to_dict("records")
    assert [shown[key] for key in ("detectable", "p", "95 % interval")] == ["unknown"] * 3
    assert "Four times" not in difference_table(frame).to_html()


def test_local_is_reported_twice_and_global_beside_every_number_of_clients(store):
    fill(store, study_specs(STUDY, "lite", {"dataset": ["cora"]}), known)
    frame = comparison(cora(store))
    assert row(frame, "Local, own test nodes")["mean"] == pytest.approx(0.7)
    assert row(frame, "Local, all test nodes")["mean"] == pytest.approx(0.35)
    assert [row(frame, "Global", clients)["n"] for clients in (5, 7, 10)] == [3, 3, 3]
    assert len(frame) == 5 * 3


def test_best_is_marked_only_where_the_advantage_is_clear(store):
    specs = study_specs(STUDY, "lite", {"dataset": ["cora"]})
    gain = [0.040, 0.041, 0.039]
    fill(store, specs, lambda spec: 0.8 + (gain[spec.seed] if spec.method.name == "fgssl" else 0.0))
    frame = comparison(cora(store, clients=[5]))
    assert frame.loc[frame["best"], "method"].tolist() == ["FGSSL"]
    noisy = [0.02, -0.03, 0.05]
    fill(store, specs, lambda spec: 0.8 + (noisy[spec.seed] if spec.method.name == "fgssl" else 0.0))
    assert not comparison(cora(store, clients=[5]))["best"].any()


def test_global_is_a_reference_and_never_the_best(store):
    fill(store, study_specs(STUDY, "lite"), lambda spec: 0.9 if spec.method.name == "global" else 0.8)
    assert not comparison(cora(store))["best"].any()


def test_missing_cells_are_shown_as_missing(store):
    specs = study_specs(STUDY, "lite", {"dataset": ["cora"], "clients": [5]})
    fill(store, [spec for spec in specs if spec.method.name != "fgssl"], known)
    fill(store, [spec for spec in specs if spec.method.name == "fgssl"][:1], known)
    results = cora(store)
    html = accuracy_table(comparison(results)).to_html()
    assert "missing (0 of 3)" in html and "83.0 (1 of 3)" in html and "82.0 ± 2.0" in html
    assert "nan" not in html and "nan" not in difference_table(comparison(results)).to_html()
    assert not comparison(results)["best"].any()
    assert len(results.missing) == 2 + 2 * 9
    assert results.stamp().startswith(
        "Study `four-methods`. Profile lite: 10 of 30 runs shown. Seeds 0 to 2. "
    )
    assert "20 missing" in results.stamp()
    assert "`fgl study run four-methods --profile lite --only dataset=cora`" in results.stamp()
    assert "2026-01-02, commit `abcdef123456`" in results.stamp()


def test_without_any_record_the_whole_table_is_missing(store):
    results = cora(store)
    frame = comparison(results)
    assert accuracy_table(frame).to_html().count("missing (0 of 3)") == 15
    assert difference_table(frame).to_html().count("missing") >= 12
    assert (
        "Newest record" not in results.stamp()
        and "Seed" not in results.stamp()
        and curves_frame(results).empty
    )
    assert runs_frame(results.shown).empty


def test_stale_failed_and_diverged_runs_never_enter_a_mean(store):
    specs = study_specs(STUDY, "lite", {"dataset": ["cora"], "clients": [5], "method": ["fedavg"]})
    fill(store, specs[:1], known)
    fill(store, specs[1:2], known, revision=99)
    fill(store, specs[2:], known, status="diverged", reason="the loss is inf")
    fedavg = row(comparison(cora(store)), "FedAvg")
    assert (fedavg["n"], fedavg["diverged"], fedavg["stale"]) == (1, 1, 1)
    assert "(1 of 3, 1 diverged, 1 stale)" in accuracy_table(comparison(cora(store))).to_html()
    assert [spec.seed for spec in cora(store, clients=[5], method=["fedavg"]).missing] == [1]
    fill(store, specs[2:], known, status="failed", reason="out of luck")
    assert [spec.seed for spec in cora(store, clients=[5], method=["fedavg"]).missing] == [1, 2]


def test_variants_of_a_method_are_told_apart(store, monkeypatch):
    def temperatures(profile):
        """Two temperatures."""
        variants = ({"method": {"name": "fgssl", "tau": tau}} for tau in (0.1, 1.0))
        return grid(SCALES[profile], variants)

    monkeypatch.setitem(STUDIES, "temperatures", temperatures)
    frame = comparison(collect("temperatures", "lite", {"dataset": ["cora"], "clients": ["5"]}, store))
    assert frame["method"].tolist() == ["FGSSL", "FGSSL, tau 1.0"]


def test_runs_frame_has_one_row_per_run_with_its_parameters(store):
    fill(store, study_specs(STUDY, "lite", {"dataset": ["cora"], "clients": [5]}), known)
    frame = runs_frame(cora(store).shown)
    fgssl = frame[frame.method == "fgssl"]
    assert len(frame) == 12 and list(fgssl["method.tau"]) == [0.1] * 3
    assert frame["bytes_up"].iloc[0] == 3_694_900 * frame["clients"].iloc[0] * 50
    assert list(fgssl["best_test_accuracy"]) == ACCURACY["fgssl"]


def test_curves_frame_has_one_row_per_round(store):
    fill(store, study_specs(STUDY, "lite", {"dataset": ["cora"]}), known)
    frame = curves_frame(cora(store, clients=[5]))
    assert len(frame) == 4 * 3 * 50 and frame["round"].min() == 1
    assert isinstance(frame, pd.DataFrame) and frame[frame["round"] == 50]["value"].max() == 0.87


def test_the_automatic_profile(store, monkeypatch):
    assert resolve_profile(STUDY, "auto", store) == "lite"
    lite = study_specs(STUDY, "lite")
    fill(store, lite[:5], lambda spec: 0.8)
    assert resolve_profile(STUDY, "auto", store) == "lite"
    *most, last = study_specs(STUDY, "paper", {"dataset": ["cora"], "clients": [7]})
    assert any(spec.method.centralised for spec in most)  # whole by themselves, which is not enough
    fill(store, study_specs(STUDY, "lite"), lambda spec: 0.8)
    fill(store, most, lambda spec: 0.8)
    assert resolve_profile(STUDY, "auto", store) == "lite"  # what is begun does not hide what is whole
    fill(store, [last], lambda spec: 0.8)
    assert resolve_profile(STUDY, "auto", store) == "paper"
    monkeypatch.setenv("FGL_PROFILE", "power")
    assert resolve_profile(STUDY, "auto", store) == "power"
    assert resolve_profile(STUDY, "lite", store) == "lite"
    with pytest.raises(InputError, match="did you mean 'paper'"):
        resolve_profile(STUDY, "papr", store)


def test_seeds_and_shared_runs_of_the_catalogue():
    lite = study_specs(STUDY, "lite")
    assert len(lite) == len({spec.digest for spec in lite}) == 2 * 3 * 3 * 3 + 2 * 3
    assert {spec.seed for spec in lite} == {0, 1, 2} and {spec.rounds for spec in lite} == {50}
    assert {spec.seed for spec in study_specs(STUDY, "power")} == set(range(20))
    assert {spec.dataset for spec in study_specs(STUDY, "smoke")} == {"digits-knn"}
    part = study_specs(STUDY, "lite", {"dataset": ["cora"], "clients": ["5", "10"]})
    assert {spec.clients for spec in part} == {1, 5, 10} and len(part) == 3 * (3 * 2 + 1)
    whole = {"dataset": ["cora"], "method": ["global"], "clients": [5]}
    for only in (whole, dict(reversed(whole.items()))):  # the whole graph stands beside every number
        assert len(study_specs(STUDY, "lite", only)) == 3


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ({"dataset": ["corra"]}, "no run of four-methods, profile lite, has dataset=corra; it has:"),
        ({"clients": [6]}, "clients=6; it has: 5, 7, 10"),
        ({"datset": ["cora"]}, "unknown field 'datset': did you mean 'dataset'?"),  # codespell:ignore
    ],
)
def test_wrong_parts_of_a_study(only, message):
    with pytest.raises(InputError) as error:
        study_specs(STUDY, "lite", only)
    assert message in str(error.value)


def test_filters_as_written_on_a_command_line():
    assert parse_only(["dataset=cora", "clients=5,10"]) == {"dataset": ["cora"], "clients": ["5", "10"]}
    with pytest.raises(InputError, match="field=value"):
        parse_only(["cora"])
    with pytest.raises(InputError, match="unknown value of compute"):
        open_results(STUDY, compute="all")
    # Global stands beside every number of clients, so that something would be left
    with pytest.raises(InputError, match="clients: no value is given"):
        open_results(STUDY, only={"clients": []})


def test_other_values_than_the_study_s(home):
    fill(home, study_specs(STUDY, "lite", {"dataset": ["cora"], "clients": [5]}), known)
    part = {"dataset": "cora", "clients": 5}
    same = open_results(STUDY, "lite", only=part, change={"rounds": 50, "hidden": None})
    assert not same.changed and not same.missing
    other = open_results(STUDY, "lite", only=part, change={"rounds": 7, "hidden": 128})
    assert {spec.rounds for spec in other.specs} == {7} and other.changed == {"rounds": 7}
    assert not other.shown and "Other values than in the study: rounds 7." in other.stamp()
    assert '12 missing; `compute="missing"` runs them' in other.stamp()
    write_record(synthetic_record(other.specs[0], 0.5), home.runs)
    assert len(open_results(STUDY, "lite", only=part, change={"rounds": 7}).shown) == 1
    with pytest.raises(InputError, match="unknown parameter 'runds'"):
        open_results(STUDY, "lite", change={"runds": 7})


def test_what_goes_along_with_another_parameter_is_no_part_of_a_name():
    def named(*methods):
        specs = [RunSpec.parse({"dataset": "cora", "method": method}) for method in methods]
        return list(labels(specs).values())

    adam, sgd = {"name": "fedopt"}, {"name": "fedopt", "server_optimizer": "sgd", "server_lr": 0.5}
    assert named(adam, sgd) == ["FedOpt", "FedOpt, server optimizer sgd"]
    # two rates with one optimiser do tell runs apart
    assert named(adam, sgd, sgd | {"server_lr": 1.0}) == [
        "FedOpt",
        "FedOpt, server optimizer sgd, server lr 0.5",
        "FedOpt, server optimizer sgd, server lr 1.0",
    ]
    one, other = {"name": "fgssl", "tau": 0.2}, {"name": "fgssl", "omega": 1.0}
    assert named({"name": "fgssl"}, one, other) == ["FGSSL", "FGSSL, tau 0.2", "FGSSL, omega 1.0"]
