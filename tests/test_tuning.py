"""Tuning: equal for all methods, resumable, chosen by validation alone, and used where it is said to be."""

import json
import math
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from invented import invented
from synthetic import synthetic_record

from fgl_core.errors import InputError
from fgl_core.study import tuning
from fgl_core.study.catalogue import PROFILES, STUDIES, study_specs
from fgl_core.study.spaces import SPACES, selection
from fgl_core.study.spec import RunSpec
from fgl_core.study.store import Record, Store
from fgl_core.study.trials import (
    FURTHER_OWN,
    FURTHER_RATES,
    OWN,
    RATES,
    REFINED,
    Protocol,
    Search,
    Trial,
    choices_of,
    read_search,
    read_searches,
    search_path,
    write_search,
)
from fgl_core.study.tuned import Choice, format_choices, read_choices
from fgl_core.study.tuning import beyond, plan, sobol, spaced, tune

ROOT = Path(__file__).parents[1]
TINY = Protocol(clients=2, rounds=2, points=2, further=0)


def trial(stage, value=0.5, **values):
    return Trial(stage, values, [value, value], [1, 1], ["done", "done"], ["a", "b"])


def walk(space, value, protocol=None):
    """All trials of a search whose runs reach ``value(values)``."""
    search, made, trials = plan(space, protocol or Protocol()), None, []
    while True:
        try:
            stage, points = search.send(made)
        except StopIteration:
            return trials
        made = [trial(stage, value(point), **point) for point in points]
        trials = trials + made


def counts(trials):
    stages = [trial.stage for trial in trials]
    return {stage: stages.count(stage) for stage in dict.fromkeys(stages)}


def peak(**at):
    """Best where every value is as given, worse with the distance in decades."""
    return lambda values: 0.9 - 0.1 * sum(abs(math.log10(values[name] / best)) for name, best in at.items())


# --- the stages


@pytest.mark.parametrize("name", SPACES)
def test_every_method_gets_the_same_number_of_trials(name):
    inside = {"lr": 0.1, **{own: math.sqrt(low * high) for own, (low, high) in SPACES[name].ranges.items()}}
    trials = walk(SPACES[name], peak(**inside))
    assert counts(trials) == {RATES: 8, OWN if SPACES[name].ranges else REFINED: 8}
    rates = [trial.values["lr"] for trial in trials[:8]]
    assert rates == [0.01, 0.0193, 0.0373, 0.072, 0.139, 0.268, 0.518, 1.0]
    assert {tuple((key, trial.values[key]) for key in SPACES[name].ranges) for trial in trials[:8]} == {
        tuple(SPACES[name].defaults.items())
    }
    assert all(trial.values.keys() == {"lr", *SPACES[name].ranges} for trial in trials)


def test_own_values_are_searched_at_the_best_learning_rate_and_cover_their_ranges():
    trials = walk(SPACES["fgssl"], peak(lr=0.25, lambda_c=0.5, lambda_d=2.0))
    own = [trial for trial in trials if trial.stage == OWN]
    assert {trial.values["lr"] for trial in own} == {0.268}
    for name, (low, high) in SPACES["fgssl"].ranges.items():
        eighths = [int(8 * math.log(trial.values[name] / low) / math.log(high / low)) for trial in own]
        assert sorted(eighths) == list(range(8))


def test_a_method_without_own_values_refines_the_learning_rate_between_its_neighbours():
    trials = walk(SPACES["fedavg"], peak(lr=0.16))
    refined = [trial.values["lr"] for trial in trials if trial.stage == REFINED]
    assert len(refined) == 8 and min(refined) >= 0.072 and max(refined) <= 0.268
    best = max(trials, key=lambda trial: trial.value)
    assert best.stage == REFINED and best.values["lr"] == min(
        refined, key=lambda lr: abs(math.log(lr / 0.16))
    )


def test_a_range_is_widened_once_where_the_best_lies_at_its_end():
    trials = walk(SPACES["fedprox"], peak(lr=1000.0, mu=1e-9))
    assert counts(trials) == {RATES: 8, FURTHER_RATES: 4, OWN: 8, FURTHER_OWN: 4}
    assert [t.values["lr"] for t in trials if t.stage == FURTHER_RATES] == [1.78, 3.16, 5.62, 10.0]
    further = [trial.values for trial in trials if trial.stage == FURTHER_OWN]
    assert further == [{"lr": 10.0, "mu": mu} for mu in (5.62e-05, 3.16e-05, 1.78e-05, 1e-05)]
    low = walk(SPACES["fedavg"], peak(lr=1e-6))
    assert [t.values["lr"] for t in low if t.stage == FURTHER_RATES] == [0.00562, 0.00316, 0.00178, 0.001]


def test_two_values_at_their_ends_move_together_and_one_inside_stays():
    ranges = SPACES["fgssl"].ranges
    corner = trial(OWN, lr=0.1, lambda_c=2.9, lambda_d=0.11)
    assert beyond(ranges, corner, 2) == [
        {"lr": 0.1, "lambda_c": 9.49, "lambda_d": 0.0316},
        {"lr": 0.1, "lambda_c": 30.0, "lambda_d": 0.01},
    ]
    side = trial(OWN, lr=0.1, lambda_c=2.9, lambda_d=1.0)
    assert [point["lambda_d"] for point in beyond(ranges, side, 2)] == [1.0, 1.0]
    assert beyond(ranges, trial(OWN, lr=0.1, lambda_c=1.0, lambda_d=1.0), 2) == []


def test_spaced_values_are_even_on_a_logarithmic_scale():
    assert spaced(0.01, 1.0, 3) == [0.01, 0.1, 1.0]
    assert spaced(1.0, 0.1, 2) == [1.0, 0.1]


def test_points_do_not_depend_on_what_came_out_of_others():
    ranges = SPACES["fedprox"].ranges
    one, other = (
        sobol(ranges, trial(RATES, value, lr=0.1, mu=mu), 8) for value, mu in ((0.2, 0.01), (0.9, 0.5))
    )
    assert one == other


# --- trials and choices


def record(status="done", best=0.8, test=0.1):
    data = synthetic_record(RunSpec.parse({"dataset": "karate", "rounds": 2}))
    data["best"] = data["best"] | {"val_accuracy": best, "test_accuracy": test}
    return Record.parse(data | {"status": status})


def test_a_trial_is_the_mean_over_seeds_and_the_worst_where_a_run_diverged():
    made = Trial.of(RATES, {"lr": 0.1}, [record(best=0.8), record(best=0.7)])
    assert made.value == pytest.approx(0.75) and made.val_accuracy == [0.8, 0.7] and made.round == [2, 2]
    diverged = Trial.of(RATES, {"lr": 0.1}, [record(best=0.9), record("diverged", best=0.9)])
    assert diverged.value == 0.0
    at_once = Record.parse(
        synthetic_record(RunSpec.parse({"rounds": 2})) | {"status": "diverged", "best": None}
    )
    assert Trial.of(RATES, {"lr": 0.1}, [record(), at_once]).val_accuracy == [0.8, None]


def test_test_accuracy_decides_nothing():
    """Poisoned test accuracies change no trial."""
    one, other = (Trial.of(RATES, {"lr": 0.1}, [record(test=test)]) for test in (0.0, 1.0))
    assert one == other


def test_the_choice_is_the_first_of_the_best_trials():
    trials = [trial(RATES, 0.7, lr=0.1), trial(RATES, 0.8, lr=0.2), trial(REFINED, 0.8, lr=0.3)]
    choice = Search("cora", "fedavg", {}, trials).choice
    assert (choice.lr, choice.val_accuracy, choice.trials, choice.method) == (0.2, 0.8, 3, {})
    changed = Search("cora", "fedavg", {}, [*trials[:2], trial(REFINED, 0.79, lr=0.3)]).choice
    assert changed.sha256 != choice.sha256


CHOICES = {
    "cora": {
        "fedavg": Choice(0.25, 0.81, 16, "0" * 64),
        "fedopt": Choice(0.2, 0.8, 16, "1" * 64, {"server_lr": 0.02}),
        "fedopt-sgd": Choice(0.3, 0.8, 20, "2" * 64, {"server_lr": 0.9}),
        "fedsage+": Choice(0.4, 0.8, 16, "3" * 64),
        "fgssl": Choice(0.15, 0.82, 24, "4" * 64, {"lambda_c": 0.4, "lambda_d": 1e-05}),
    }
}


def test_choices_survive_their_file(tmp_path):
    path = tmp_path / "tuned.toml"
    path.write_text(format_choices(CHOICES))
    assert read_choices(path) == CHOICES
    shuffled = {"cora": dict(reversed(CHOICES["cora"].items()))}
    assert format_choices(shuffled) == path.read_text()


REST = 'val_accuracy = 0.8\ntrials = 16\nsha256 = ""'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[cora", "end of a table declaration"),
        ("cora = 1", "no attribute 'items'"),
        ("[cora]\nlr = 0.1", "must be a mapping"),
        ("[cora.fedavg]\nlr = 0.1", "val_accuracy: field required"),
        (f'[cora.fedavg]\nlr = "high"\n{REST}', "lr: input should be a valid number"),
        (f"[cora.fedavg]\nlr = nan\n{REST}", "lr: input should be a finite number"),
        (f"[cora.fedavg]\nlr = -1\n{REST}", "lr = -1.0: input should be greater than 0"),
        (f"[cora.fedavg]\nlr = 0.1\nmood = 1\n{REST}", "mood: unexpected keyword"),
        (f"[cora.fedprox]\nlr = 0.1\nmethod = 3\n{REST}", "method: input should be a valid dictionary"),
        (f"[cora.fedprox]\nlr = 0.1\n{REST}", "values of fedprox: none, not mu"),
        (f"[cora.fedavg]\nlr = 0.1\nmethod.mu = 0.1\n{REST}", "values of fedavg: mu, not none"),
        (f"[cora.fedprox]\nlr = 0.1\nmethod.mu = -1\n{REST}", "mu = -1.0: input should be greater"),
        (f"[cora.fedavrg]\nlr = 0.1\n{REST}", "did you mean 'fedavg'"),
        (f"[corra.fedavg]\nlr = 0.1\n{REST}", "did you mean 'cora'"),
    ],
)
def test_a_damaged_file_of_choices_is_named_in_one_line(tmp_path, text, why):
    path = tmp_path / "tuned.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"tuned\.toml .*run `fgl tune` again") as caught:
        read_choices(path)
    assert why in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("[", "line 1"),
        ("[1]", "must be a mapping"),
        ("{}", "dataset: field required"),
        ({"trials": []}, "no trials of the first stage"),
        ({"trials": [{"stage": RATES}]}, "trials.0.values: field required"),
        ({"space": "fedprox"}, "belongs to another place"),
        ({"environment": {"date": 3}}, "environment.date: input should be a valid string"),
        ({"mood": "good"}, "mood: unexpected keyword"),
    ],
)
def test_a_damaged_search_is_named_in_one_line(tmp_path, change, why):
    path = write_search(Search("cora", "fedavg", {}, [trial(RATES, 0.8, lr=0.1)]), tmp_path)
    assert read_search(path).choice.lr == 0.1
    path.write_text(change if isinstance(change, str) else json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=r"holds no search .*remove it, and run `fgl tune` again") as caught:
        read_search(path)
    assert why in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "values", [{"lr": -0.1}, {"mu": 0.1}, {"lr": 0.1, "mu": 0.1}, {"lr": 0.1, "lambda_c": 0.1}]
)
def test_a_search_whose_choice_no_run_could_take_is_refused(tmp_path, values):
    path = write_search(Search("cora", "fedavg", {}, [trial(RATES, 0.8, **values)]), tmp_path)
    with pytest.raises(InputError, match="holds no search"):
        read_search(path)


def test_values_that_cannot_be_kept_stop_a_search_before_it_computes(tmp_path, monkeypatch):
    monkeypatch.setattr("fgl_core.study.tuning.sweep", lambda *_, **__: pytest.fail("something was computed"))
    (tmp_path / "data" / "tuned.toml").mkdir(parents=True)
    with pytest.raises(InputError, match=r"cannot write to .*tuned\.toml .*FGL_HOME"):
        tune(["karate"], selection(["fedavg"]), store=Store(tmp_path))
    (tmp_path / "data" / "tuning").mkdir(exist_ok=True)
    (tmp_path / "data" / "tuning" / "cora").write_text("a file where the folder should be")
    with pytest.raises(InputError, match=r"cannot write to .*cora"):
        tune(["cora"], selection(["fedavg"]), store=Store(tmp_path))


def test_the_committed_choices_follow_from_the_committed_trials():
    text = (ROOT / "data" / "tuned.toml").read_text(encoding="utf-8")
    searches = read_searches(ROOT)
    assert text == format_choices(choices_of(searches))
    for search in searches:
        made, trials = None, []
        stages = plan(SPACES[search.space], Protocol())
        replayed = []
        try:
            while True:
                stage, points = stages.send(made)
                made = [trial for trial in search.trials if trial.stage == stage]
                trials += made
                replayed += [(stage, point) for point in points]
        except StopIteration:
            pass
        assert trials == search.trials
        assert len(trials) == len(replayed)


def test_the_committed_trials_hold_no_test_accuracy():
    for path in (ROOT / "data" / "tuning").glob("*/*.json"):
        assert "test" not in path.read_text(encoding="utf-8")
        assert path.stat().st_size < 100_000


# --- the search itself


def canonical(root):
    texts = {}
    for path in sorted((root / "data" / "tuning").rglob("*.json")):
        data = json.loads(path.read_text())
        assert data.pop("environment")["seconds"] > 0
        texts[path.name] = data
    return texts, (root / "data" / "tuned.toml").read_text()


@pytest.fixture(scope="module")
def tuned_root(tmp_path_factory):
    """Two methods tuned on a small graph, one run after the other."""
    root = tmp_path_factory.mktemp("tuned")
    tune(["karate"], selection(["fedavg", "fgssl"]), store=Store(root), protocol=TINY)
    return root


def test_serial_and_parallel_searches_make_the_same_trials_and_choices(tuned_root, tmp_path):
    tune(["karate"], selection(["fedavg", "fgssl"]), store=Store(tmp_path), protocol=TINY, jobs=2)
    assert canonical(tmp_path) == canonical(tuned_root)
    assert set(canonical(tmp_path)[0]) == {"fedavg.json", "fgssl.json"}


def test_trials_are_ordinary_runs_on_seeds_that_no_table_uses(tuned_root):
    search = read_search(search_path(tuned_root, "karate", "fgssl"))
    records = Store(tuned_root).load(tuned_root / "data" / "trials")
    for made in search.trials:
        runs = [records[digest] for digest in made.digests]
        assert [run.spec.seed for run in runs] == [1000, 1001]
        assert [run.data["best"]["val_accuracy"] for run in runs] == made.val_accuracy
        for run in runs:
            assert (run.spec.lr, run.spec.method.lambda_c) == (made.values["lr"], made.values["lambda_c"])
            assert (run.spec.clients, run.spec.rounds, run.spec.dataset) == (2, 2, "karate")
    used = {spec.seed for study in STUDIES for profile in PROFILES for spec in study_specs(study, profile)}
    assert not used & set(Protocol().seeds)


def counting(monkeypatch):
    computed = []
    real = tuning.sweep

    def noted(specs, *arguments, **options):
        outcomes = real(specs, *arguments, **options)
        computed.extend(outcome.spec.digest for outcome in outcomes)
        return outcomes

    monkeypatch.setattr(tuning, "sweep", noted)
    return computed


def test_a_search_goes_on_with_what_it_lacks_and_computes_nothing_twice(tuned_root, tmp_path, monkeypatch):
    source, target = tuned_root / "data" / "trials", tmp_path / "data" / "trials"
    target.mkdir(parents=True)
    paths = sorted(source.glob("*.json"))
    for path in paths[::2]:
        (target / path.name).write_bytes(path.read_bytes())
    computed = counting(monkeypatch)
    tune(["karate"], selection(["fedavg", "fgssl"]), store=Store(tmp_path), protocol=TINY)
    assert canonical(tmp_path) == canonical(tuned_root)
    assert len(computed) == len(set(computed)) == len(paths) - len(paths[::2])

    computed.clear()
    again = tune(["karate"], selection(["fedavg", "fgssl"]), store=Store(tmp_path), protocol=TINY)
    assert not computed and all(progress.search for progress in again)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_after_kill_nine_nothing_is_lost(tuned_root, tmp_path, monkeypatch):
    script = f"""
from pathlib import Path
from fgl_core.study.tuning import tune
from fgl_core.study.trials import Protocol
from fgl_core.study.spaces import selection
from fgl_core.study.store import Store

tune(["karate"], selection(["fedavg", "fgssl"]), store=Store(Path({str(tmp_path)!r})), protocol={TINY!r})
"""
    process = subprocess.Popen([sys.executable, "-c", script])
    trials, deadline = tmp_path / "data" / "trials", time.monotonic() + 120
    while len(list(trials.glob("*.json"))) < 2:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    before = {path.name for path in trials.glob("*.json")}
    computed = counting(monkeypatch)
    tune(["karate"], selection(["fedavg", "fgssl"]), store=Store(tmp_path), protocol=TINY)
    assert canonical(tmp_path) == canonical(tuned_root)
    assert len(computed) == len(list(trials.glob("*.json"))) - len(before)


def test_a_run_that_diverges_makes_its_trial_the_worst(tmp_path, monkeypatch):
    invented(monkeypatch, lambda spec: "diverged" if spec.lr > 0.08 and spec.seed == 1001 else "done")
    (progress,) = tune(["karate"], selection(["fedavg"]), store=Store(tmp_path))
    worst = [made for made in progress.search.trials if made.values["lr"] > 0.08]
    assert worst and {made.value for made in worst} == {0.0}
    assert 0.0373 < progress.search.choice.lr <= 0.08
    assert {made.status[0] for made in worst} == {"done"} and {made.status[1] for made in worst} == {
        "diverged"
    }


def test_a_failed_run_leaves_its_search_open_and_stops_no_other(tmp_path, monkeypatch):
    invented(
        monkeypatch, lambda spec: "failed" if spec.method.name == "fedprox" and spec.seed == 1000 else "done"
    )
    one, two = tune(["karate"], selection(["fedavg", "fedprox"]), store=Store(tmp_path))
    assert one.search is not None and two.search is None and two.stage == RATES
    records = Store(tmp_path).load(tmp_path / "data" / "trials")
    assert {spec.seed for spec in two.missing(records)} == {1000} and len(two.missing(records)) == 8
    assert read_choices(tmp_path / "data" / "tuned.toml")["karate"].keys() == {"fedavg"}

    invented(monkeypatch)
    *_, mended = tune(["karate"], selection(["fedavg", "fedprox"]), store=Store(tmp_path))
    assert mended.search is not None
    assert read_choices(tmp_path / "data" / "tuned.toml")["karate"].keys() == {"fedavg", "fedprox"}


def test_a_time_budget_leaves_a_search_open(tmp_path):
    (progress,) = tune(["karate"], selection(["fedavg"]), store=Store(tmp_path), protocol=TINY, time_budget=0)
    assert progress.search is None and len(progress.missing({})) == 4
    assert not (tmp_path / "data" / "tuned.toml").exists()


def test_a_new_revision_of_a_method_is_tuned_anew(tmp_path, monkeypatch):
    invented(monkeypatch)
    space = selection(["fedavg"])
    tune(["karate"], space, store=Store(tmp_path))
    path = search_path(tmp_path, "karate", "fedavg")
    search = read_search(path)
    write_search(replace(search, definition={**search.definition, "revision": 0}), tmp_path)
    tune(["karate"], space, store=Store(tmp_path))
    assert read_search(path).definition == search.definition
