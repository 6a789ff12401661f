"""Tuned values where they are used: which runs take them, what tables call those runs, what pages say."""

import pytest
from synthetic import synthetic_record

from fgl_core import cli
from fgl_core.errors import InputError
from fgl_core.study.catalogue import PROFILES, STUDIES, TUNED_STUDIES, study_specs
from fgl_core.study.fgssl import RELEASED
from fgl_core.study.results import collect, open_results
from fgl_core.study.spec import NodeSpec
from fgl_core.study.store import Store, write_record
from fgl_core.study.tuned import Choice, format_choices, tuned_values, with_tuned
from fgl_core.tables.cells import comparison
from fgl_core.tables.layout import accuracy_table, settings_table
from fgl_core.tables.tuning import values_table

CORA = {
    "local": Choice(0.5, 0.7, 16, "a"),
    "global": Choice(0.6, 0.7, 16, "b"),
    "fedavg": Choice(0.25, 0.81, 16, "c"),
    "fedprox": Choice(0.2, 0.81, 16, "d", {"mu": 0.3}),
    "fedopt": Choice(0.3, 0.8, 16, "e", {"server_lr": 0.02}),
    "fedopt-sgd": Choice(0.35, 0.8, 20, "f", {"server_lr": 0.9}),
    "fedsage": Choice(0.4, 0.8, 16, "g"),
    "fedsage+": Choice(0.45, 0.8, 16, "h"),
    "fgssl": Choice(0.15, 0.82, 24, "i", {"lambda_c": 0.4, "lambda_d": 7.0}),
    "fgssl-fnsc": Choice(0.16, 0.82, 24, "j", {"lambda_c": 2.0}),
    "fgssl-fgsd": Choice(0.17, 0.82, 24, "k", {"lambda_d": 9.0}),
}


def tuned(root, **datasets):
    path = root / "data" / "tuned.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(format_choices(datasets))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A root of its own in which only Cora is tuned, whatever this repository holds."""
    monkeypatch.setenv("FGL_HOME", str(tmp_path))
    monkeypatch.delenv("FGL_PROFILE", raising=False)
    monkeypatch.setattr("fgl_core.study.catalogue.tuned_values", lambda: {"cora": CORA})
    return Store(tmp_path)


def one(study, profile="paper", **wanted):
    """The values of a study's runs on Cora: what differs by method, as (lr, the method's own)."""
    found = []
    for spec in study_specs(study, profile, {"dataset": ["cora"]}):
        own = spec.method.model_dump()
        if all(own.get(name, getattr(spec, name, None)) == value for name, value in wanted.items()):
            found.append((spec.lr, own))
    return found


def check_all(runs, lr, **values):
    assert runs
    for rate, own in runs:
        assert rate == lr and values.items() <= own.items()


def test_smoke_and_lite_are_what_the_studies_write(home):
    for study in STUDIES:
        for profile in ("smoke", "lite"):
            assert study_specs(study, profile) == STUDIES[study](profile)


@pytest.mark.parametrize("profile", ["paper", "power"])
def test_table1_takes_each_methods_own_values(home, profile):
    for name, choice in CORA.items():
        if name.startswith(("fgssl-", "fedopt")):
            continue
        check_all(one("fgssl-table1", profile, name=name), choice.lr, **choice.method)
    check_all(one("fgssl-table1", profile, server_optimizer="adam"), 0.3, server_lr=0.02)
    check_all(one("fgssl-table1", profile, server_optimizer="sgd"), 0.35, server_lr=0.9)
    before = len(study_specs("fgssl-table1", profile, tuned=False))
    assert before == len(study_specs("fgssl-table1", profile))


def test_untuned_and_other_datasets_are_what_the_study_writes(home):
    for study in TUNED_STUDIES:
        written = STUDIES[study]("paper")
        assert study_specs(study, "paper", tuned=False) == written
        changed = [a for a, b in zip(written, study_specs(study, "paper"), strict=True) if a != b]
        assert {spec.dataset for spec in changed} == (set() if study == "fgssl-fig3" else {"cora"})


def test_the_other_studies_take_none(home):
    for study in STUDIES.keys() - set(TUNED_STUDIES):
        for profile in PROFILES:
            assert study_specs(study, profile) == STUDIES[study](profile)


def test_a_weight_that_is_switched_off_stays_so(home):
    check_all(one("fgssl-table2", name="fgssl", lambda_d=0.0), 0.15, lambda_c=0.4)
    check_all(one("fgssl-table2", name="fgssl", lambda_c=0.0), 0.15, lambda_d=7.0)
    check_all(one("fgssl-table2", name="fedavg"), 0.25)
    assert {own["lambda_c"] for _, own in one("fgssl-table2", name="fgssl")} == {0.0, 0.4}


def test_variants_of_fgssl_take_its_values(home):
    for study in ("fgssl-table3", "fgssl-fig4", "fgssl-protocols"):
        check_all(one(study, name="fgssl"), 0.15, lambda_c=0.4, lambda_d=7.0)
    released = one("fgssl-which", name="fgssl-released")
    theirs = RELEASED["cora"]["lr"]
    assert {(lr, own["lambda_c"]) for lr, own in released} == {(0.15, 3.0), (theirs, 3.0)}
    assert {lr for lr, _ in one("fgssl-which", name="fedavg")} == {0.25, theirs}


def test_the_ladders_contrasts_keep_the_same_weight(home):
    (local,) = {(lr, own["lambda_c"]) for lr, own in one("fgssl-ladder", name="fgssl-released")}
    assert local == (0.15, 2 * 0.4)  # halved by the method
    check_all(one("fgssl-ladder", name="fedavg-view"), 0.25)
    check_all(one("fgssl-ladder", name="fedavg", local_epochs=12), 0.25)


def test_what_a_study_sets_by_itself_stays():
    spec = NodeSpec.parse({"lr": 0.7, "method": {"name": "fedprox", "mu": 0.5}})
    assert with_tuned(spec, {"cora": CORA}) == spec
    yogi = NodeSpec.parse({"method": {"name": "fedopt", "server_optimizer": "yogi"}})
    assert with_tuned(yogi, {"cora": CORA}) == yogi


def test_a_root_of_its_own_comes_before_what_the_code_carries(tmp_path, monkeypatch):
    monkeypatch.setenv("FGL_HOME", str(tmp_path))
    carried = tuned_values()
    tuned(tmp_path, karate={"fedavg": CORA["fedavg"]})
    assert tuned_values() == carried | {"karate": {"fedavg": CORA["fedavg"]}}


# --- tables and pages


def fill(store, study, specs):
    for spec in specs:
        value = {"fgssl": 0.85, "fedopt": 0.75}.get(spec.method.name, 0.8) + 0.01 * spec.seed
        value += 0.05 * (spec.split == "quota") + 0.001 * spec.seed * (spec.method.name == "fgssl")
        write_record(synthetic_record(spec, round(value, 5)), store.folder(study, "paper"))


def test_tuned_values_tell_no_rows_apart(home):
    labels = {profile: set() for profile in ("lite", "paper")}
    for profile, found in labels.items():
        found |= set(comparison(collect("fgssl-table1", profile, {}, home))["method"])
    assert labels["lite"] == labels["paper"]
    assert "FedOpt" in labels["paper"] and "FGSSL" in labels["paper"]


def test_a_row_is_compared_with_the_baseline_under_its_conditions_whatever_the_learning_rates(home):
    specs = study_specs("fgssl-protocols", "paper", {"dataset": ["cora"]})
    fill(home, "fgssl-protocols", specs)
    frame = comparison(collect("fgssl-protocols", "paper", {"dataset": ["cora"]}, home))
    rows = frame[frame["name"] == "fgssl"]
    # FGSSL is 5 points above FedAvg under either split; the other split's FedAvg is 5 points away
    assert list(rows["difference"].round(3)) == [0.052] * 4


def test_stamp_command_and_settings_say_which_values(home):
    results = open_results("fgssl-table1", "paper")
    assert (
        "Learning rates and weights: tuned on cora; defaults on citeseer, pubmed, not tuned yet."
        in results.stamp()
    )
    assert "--untuned" not in results.command
    assert "tuned on cora" in settings_table(results).loc["learning rate and weights", "value"]

    plain = open_results("fgssl-table1", "paper", tuned=False)
    assert "Learning rates and weights: defaults, not tuned." in plain.stamp()
    assert plain.command == "fgl study run fgssl-table1 --profile paper --untuned"
    assert {spec.digest for spec in plain.specs} != {spec.digest for spec in results.specs}

    lite = open_results("fgssl-table1", "lite", tuned=False)
    assert "Learning rates" not in lite.stamp() and "--untuned" not in lite.command
    assert settings_table(lite).loc["learning rate and weights", "value"] == "defaults, not tuned"
    assert "learning rate and weights" not in settings_table(open_results("fedcch-table1", "paper")).index


def test_a_method_without_a_choice_is_named(home, monkeypatch):
    few = {name: CORA[name] for name in ("fedavg", "fgssl")}
    monkeypatch.setattr("fgl_core.study.catalogue.tuned_values", lambda: {"cora": few})
    assert open_results("fgssl-table2", "paper", only={"dataset": "cora"}).tuning == "tuned on cora"
    tuning = open_results("fgssl-protocols", "paper", only={"dataset": "cora"}).tuning
    assert tuning == "tuned on cora (but for Local)"


def test_the_values_of_each_row_and_where_they_come_from(home):
    table = values_table(open_results("fgssl-table1", "paper", only={"dataset": ["cora", "pubmed"]}))
    assert list(table.loc["cora", "FGSSL"]) == ["0.15", "λ_C 0.4, λ_D 7", "tuned"]
    assert list(table.loc["pubmed", "FGSSL"]) == ["0.1", "λ_C 1, λ_D 1", "default"]
    assert list(table.loc["cora", "FedAvg"]) == ["0.25", "", "tuned"]
    which = values_table(open_results("fgssl-which", "paper", only={"dataset": "cora"}))
    assert sorted(which["from"]) == ["set by the study"] * 3 + ["tuned"] * 5


def test_changed_fields_keep_tuned_values_and_labels(home):
    results = open_results("fgssl-table2", "paper", only={"dataset": "cora"}, change={"hidden": 16})
    assert {(spec.hidden, spec.lr) for spec in results.specs} == {(16, 0.25), (16, 0.15)}
    labels = set(comparison(results)["method"])
    assert labels == {"FedAvg", "FGSSL", "FGSSL, lambda d 0.0", "FGSSL, lambda c 0.0"}


def test_an_unreadable_file_of_values_stops_a_study_with_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FGL_HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tuned.toml").write_text("[cora")
    assert cli.main(["study", "status", "fgssl-table1", "--profile", "paper"]) == 2
    err = capsys.readouterr().err
    assert "tuned.toml" in err and len(err.splitlines()) == 1
    assert cli.main(["study", "status", "fgssl-table1", "--profile", "paper", "--untuned"]) == 0
    with pytest.raises(InputError):
        study_specs("fgssl-table1", "paper")


def test_the_command_line_switches_tuned_values_off(home, capsys):
    write_record(
        synthetic_record(study_specs("fgssl-table2", "paper", tuned=False)[0]),
        home.folder("fgssl-table2", "paper"),
    )
    assert cli.main(["study", "status", "fgssl-table2", "--profile", "paper", "--untuned"]) == 0
    out = capsys.readouterr().out
    assert ": 1 of " in out and "to fill: fgl study run fgssl-table2 --profile paper --untuned" in out
    assert cli.main(["study", "status", "fgssl-table2", "--profile", "paper"]) == 0
    assert ": 0 of " in capsys.readouterr().out


def test_a_table_of_tuned_runs(home):
    specs = study_specs("fgssl-table2", "paper", {"dataset": ["cora"], "clients": [5]})
    fill(home, "fgssl-table2", specs)
    results = open_results("fgssl-table2", "paper", only={"dataset": "cora", "clients": 5})
    assert not results.missing and results.tuning == "tuned on cora"
    assert "85.0" not in accuracy_table(comparison(results)).to_html()  # 85, 86.1, 87.2 …: mean 87.2
    assert "87.2 ±" in accuracy_table(comparison(results)).to_html()
