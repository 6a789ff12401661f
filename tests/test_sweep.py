"""Many runs: in parallel as one after the other, resumable after a kill, undisturbed by runs that fail."""

import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sweeps import canonical, wait_for
from synthetic import synthetic_record

from fgl_core.cli import main
from fgl_core.errors import InputError
from fgl_core.methods import METHODS
from fgl_core.study import processes
from fgl_core.study import sweep as sweeping
from fgl_core.study.catalogue import study_specs
from fgl_core.study.costs import Costs, duration
from fgl_core.study.outcome import Outcome, compute
from fgl_core.study.results import collect
from fgl_core.study.spec import RunSpec
from fgl_core.study.store import Record, Store, write_record
from fgl_core.study.sweep import _terminable, sweep

SMALL = {"dataset": "digits-knn", "clients": 2, "hidden": 8, "rounds": 1, "local_epochs": 1}


def specs(*changes):
    return [RunSpec.parse(SMALL | change) for change in changes]


def small(count):
    return specs(*({"seed": seed} for seed in range(count)))


def test_two_workers_and_one_give_identical_records_and_failures_stop_no_other(tmp_path):
    crowded = RunSpec.parse({"dataset": "karate", "clients": 30, "rounds": 1})
    diverging = RunSpec.parse({"dataset": "karate", "clients": 2, "rounds": 30, "lr": 100.0})
    runs = [crowded, diverging, *specs({"method": "fgssl"}, {"seed": 1}, {"method": "local"})]
    bar = io.StringIO()
    sweep(runs, tmp_path / "one", jobs=1)
    sweep(reversed(runs), tmp_path / "two", jobs=2, progress=bar)
    one, two = canonical(tmp_path / "one"), canonical(tmp_path / "two")
    assert one == two
    assert [one[spec.digest]["status"] for spec in runs] == ["failed", "diverged", "done", "done", "done"]
    assert "training node" in one[crowded.digest]["reason"] and "round" in one[diverging.digest]["reason"]
    assert f"failed: {crowded.slug}" in bar.getvalue() and "5/5" in bar.getvalue()


def test_the_reason_of_a_failure_says_where_without_the_machines_paths(monkeypatch):
    def broken(self, step):
        raise ZeroDivisionError("three\nlines\nlong")

    monkeypatch.setattr(METHODS["fedavg"], "loss", broken)
    reason = compute(small(1)[0])["reason"]
    assert "\n" not in reason
    assert reason.startswith("ZeroDivisionError: three lines long (in fgl_core/federation.py:")
    assert str(Path(sweeping.__file__).parents[2]) not in reason


def test_failed_and_stale_runs_are_tried_again_and_finished_ones_are_not(tmp_path, monkeypatch):
    from fgl_core.study import catalogue

    monkeypatch.setitem(catalogue.STUDIES, "small", lambda profile: small(3))
    store = Store(tmp_path)
    run = store.folder("small", "lite")
    for spec, change in zip(
        small(3), ({}, {"status": "failed", "reason": "x"}, {"revision": 99}), strict=True
    ):
        write_record(synthetic_record(spec) | change, run)
    missing = collect("small", "lite", {}, store).missing
    assert [spec.seed for spec in missing] == [1, 2]
    sweep(missing, run)
    results = collect("small", "lite", {}, store)
    assert not results.missing and not results.stale and not results.having("failed")
    assert results.found[small(1)[0].digest].commit == "abcdef123456"  # untouched


def killed_by_seed_one(spec, folder, parent):
    if spec.seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    write_record(synthetic_record(spec), folder)
    return Outcome(spec, "done", None, 1.0)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_worker_that_is_killed_costs_only_its_own_run(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_work", killed_by_seed_one)
    outcomes = sweep(small(4), tmp_path, jobs=2)
    assert {outcome.spec.seed: outcome.status for outcome in outcomes} == {
        0: "done",
        1: "failed",
        2: "done",
        3: "done",
    }
    assert "was killed" in Store(tmp_path).load(tmp_path)[small(2)[1].digest].reason


def test_nothing_is_computed_when_the_folder_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "compute", None)
    (tmp_path / "data").write_text("in the way")
    with pytest.raises(InputError, match="cannot write to"):
        sweep(small(1), tmp_path / "data" / "runs")


def test_nothing_is_computed_when_data_cannot_be_had(tmp_path, monkeypatch):
    monkeypatch.setenv("FGL_HOME", str(tmp_path))
    monkeypatch.setenv("FGL_OFFLINE", "1")
    monkeypatch.delenv("FGL_DATA_MIRROR", raising=False)
    monkeypatch.setattr(processes, "compute", None)
    with pytest.raises(InputError, match="cannot get cora"):
        sweep([*small(1), RunSpec.parse({"dataset": "cora"})], tmp_path / "runs")


def test_the_cheapest_cell_comes_first_with_all_its_seeds():
    runs = [RunSpec.parse({"dataset": name, "seed": seed}) for seed in (0, 1) for name in ("pubmed", "cora")]
    runs.append(RunSpec.parse({"dataset": "pubmed", "rounds": 1}))
    ordered = sorted(runs, key=Costs().order)
    assert [(spec.dataset, spec.rounds, spec.seed) for spec in ordered] == [
        ("pubmed", 1, 0),
        ("cora", 200, 0),
        ("cora", 200, 1),
        ("pubmed", 200, 0),
        ("pubmed", 200, 1),
    ]
    slow_cora = synthetic_record(RunSpec.parse({"dataset": "cora", "seed": 9, "rounds": 2}))
    slow_cora["timing"]["seconds_per_round"] = 500.0
    learnt = Costs([Record.parse(slow_cora)])
    assert [spec.dataset for spec in sorted(runs, key=learnt.order)][-1] == "cora"
    assert learnt.seconds(runs[1]) == pytest.approx(1000 * 100)


def test_a_budget_starts_no_run_that_would_end_later(tmp_path):
    assert sweep(small(2), tmp_path, time_budget=-1.0) == []
    slow = synthetic_record(RunSpec.parse(SMALL | {"seed": 9}))
    slow["timing"]["seconds_per_round"] = 3600.0
    outcomes = sweep(
        [*small(2), *specs({"dataset": "karate"})], tmp_path, time_budget=600, known=[Record.parse(slow)]
    )
    assert [outcome.spec.dataset for outcome in outcomes] == ["karate"]


PART = ["fgssl-table1", "--profile", "smoke", "--only", "method=local,global,fedavg"]
COUNT = len(study_specs("fgssl-table1", "smoke", {"method": ["local", "global", "fedavg"]}))


@pytest.fixture
def study(tmp_path):
    """Starts a part of the smoke study in a process of its own."""
    started = []

    def start(*more):
        command = [sys.executable, "-m", "fgl_core.cli", "study", "run", *PART]
        environment = os.environ | {"FGL_HOME": str(tmp_path)}
        process = subprocess.Popen(
            [*command, *more], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def records(root):
    return {path: path.stat().st_mtime_ns for path in (root / "data" / "runs").glob("*.json")}


def children(parent):
    """Processes started by ``parent``, loky's workers among them."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [int(pid) for pid, above, state in rows if int(above) == parent and not state.startswith("Z")]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_after_kill_nine_workers_end_and_a_rerun_computes_nothing_twice(study, tmp_path):
    process = study("--jobs", "2")
    wait_for(lambda: len(records(tmp_path)) >= 2)
    workers = children(process.pid)
    process.kill()
    process.wait()
    assert workers
    wait_for(lambda: not any(alive(pid) for pid in workers), seconds=30)
    before = records(tmp_path)
    assert 2 <= len(before) < COUNT

    again = study("--jobs", "1")
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    after = records(tmp_path)
    assert f"{COUNT} of {COUNT} runs recorded" in out and len(after) == COUNT
    assert {path: after[path] for path in before} == before
    assert f"{COUNT - len(before)}/{COUNT - len(before)}" in err


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM")
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_study_ends_its_workers_and_says_how_to_go_on(study, tmp_path, sign):
    process = study("--jobs", "2")
    wait_for(lambda: len(children(process.pid)) >= 2)
    workers = children(process.pid)
    process.send_signal(sign)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "fgl: stopped" in err.splitlines() and "Traceback" not in err
    assert f"of {COUNT} runs recorded; fgl study run {' '.join(PART)} goes on" in out
    wait_for(lambda: not any(alive(pid) for pid in workers), seconds=30)


def test_what_killed_workers_leave_behind_is_removed_without_a_word(tmp_path):
    script = """if __name__ == "__main__":
    import sys
    from pathlib import Path
    from joblib.externals.loky.backend import resource_tracker
    from fgl_core.study.spec import RunSpec
    from fgl_core.study.sweep import sweep

    runs = [RunSpec.parse({"dataset": "karate", "clients": 2, "rounds": 1, "seed": seed}) for seed in (0, 1)]
    print([outcome.status for outcome in sweep(runs, Path(sys.argv[1]), jobs=2)])
    resource_tracker.register("/left-by-a-killed-worker", "semlock")
"""
    (tmp_path / "leave.py").write_text(script)
    command = [sys.executable, str(tmp_path / "leave.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "['done', 'done']\n" and done.stderr == ""


def test_an_estimate_says_how_long_and_what_of_it_is_guessed():
    runs = specs({"dataset": "karate", "clients": 2, "rounds": 10}) * 3
    record = synthetic_record(runs[0])
    record["timing"]["seconds_per_round"] = 6.0
    assert Costs([Record.parse(record)]).total(runs, jobs=2) == "3 runs, about 2 min on 2 workers"
    guessed = Costs().total(runs[:1])
    assert guessed.endswith("on 1 worker; 1 of a kind that was never timed")
    assert [duration(s) for s in (40, 89, 600, 5399, 7200)] == ["40 s", "89 s", "10 min", "90 min", "2.0 h"]


def test_the_newest_five_runs_of_a_kind_say_how_long_the_next_will_take():
    records = []
    for day, seconds in enumerate([90.0, 90.0, 90.0, 1.0, 2.0, 3.0, 4.0, 5.0], start=1):
        spec = RunSpec.parse({"dataset": "karate", "clients": 2, "rounds": 10, "seed": day})
        record = synthetic_record(spec)
        record["timing"]["seconds_per_round"] = seconds
        record["environment"]["date"] = f"2026-01-{day:02}T00:00:00Z"
        records.append(Record.parse(record))
    assert Costs(records[::-1]).seconds(records[0].spec) == pytest.approx(10 * 3.0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_threads_that_lose_their_workers_are_not_reported_once_stopped(monkeypatch):
    reported = []
    monkeypatch.setattr(threading, "excepthook", lambda failure: reported.append(failure.thread.name))

    def fail(name):
        thread = threading.Thread(target=lambda: 1 / 0, name=name)
        thread.start()
        thread.join()

    with _terminable() as stopped:
        fail("ExecutorManagerThread")
        stopped.set()
        fail("ExecutorManagerThread")
        fail("QueueFeederThread")
        fail("another")
    assert reported == ["ExecutorManagerThread", "another"]


def test_the_order_is_the_table_s_if_wished(tmp_path):
    runs = specs({"rounds": 3}, {"rounds": 2}, {"dataset": "karate"})
    cheapest = [outcome.spec.rounds for outcome in sweep(runs, tmp_path / "one")]
    listed = [outcome.spec for outcome in sweep(runs, tmp_path / "two", order="table")]
    assert cheapest == [1, 2, 3] and listed == runs


def test_flags_that_exclude_each_other_or_are_unknown(home, capsys):
    study = ["study", "run", "fgssl-table1", "--profile", "smoke"]
    assert main([*study, "--jobs", "2", "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "--jobs is for this machine" in capsys.readouterr().err
    assert main([*study, "--order", "random"]) == 2
    assert "unknown order 'random': allowed: cheapest, table" in capsys.readouterr().err
