"""A study on a Dask scheduler: the same records as here, also when a worker is killed in the middle."""

import os
import signal
import socket
import subprocess
import sys

import pytest
from sweeps import canonical, wait_for

from fgl_core.errors import InputError
from fgl_core.study.catalogue import study_specs
from fgl_core.study.scheduler import connected, run_on_workers
from fgl_core.study.sweep import sweep

pytest.importorskip("distributed")
PART = {"method": ["local", "global", "fedavg"]}
SPECS = study_specs("fgssl-table1", "smoke", PART)
STUDY = ["study", "run", "fgssl-table1", "--profile", "smoke", "--only", "method=local,global,fedavg"]


@pytest.fixture
def start(tmp_path):
    """Starts a Python module in a process of its own, which ends with the test."""
    started = []

    def begin(*command, **more):
        environment = os.environ | {"FGL_HOME": str(tmp_path), "PYTHONWARNINGS": "ignore"}
        environment |= {"DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False"}
        process = subprocess.Popen([sys.executable, "-m", *command], env=environment, cwd=tmp_path, **more)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture
def scheduler(start):
    """A scheduler on this machine; its address, and a function that starts a worker of it."""
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    address = f"tcp://127.0.0.1:{free_port()}"
    start("dask", "scheduler", "--host", address, "--no-dashboard", "--no-jupyter", **silent)

    def worker(threads=1):
        options = ("--nthreads", str(threads), "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
        return start("dask", "worker", address, *options, **silent)

    return address, worker


def workers_of(address):
    from distributed import Client

    with Client(address, timeout=60, set_as_default=False) as client:
        return len(client.nthreads())


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_worker_killed_in_the_middle_costs_nothing_and_records_are_as_computed_here(
    start, scheduler, tmp_path
):
    address, worker = scheduler
    doomed, _ = worker(), worker()
    wait_for(lambda: workers_of(address) == 2)
    records = tmp_path / "data" / "runs"
    study = start(
        "fgl_core.cli",
        *STUDY,
        "--scheduler",
        address,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: len(list(records.glob("*.json"))) >= 1)
    assert len(list(records.glob("*.json"))) < len(SPECS)
    doomed.send_signal(signal.SIGKILL)
    out, err = study.communicate(timeout=300)
    assert study.returncode == 0, err
    assert f"{len(SPECS)} of {len(SPECS)} runs recorded" in out and "on 2 workers" in err
    sweep(SPECS, tmp_path / "here")
    assert canonical(records) == canonical(tmp_path / "here")


def test_runs_go_on_when_every_worker_was_away_for_a_moment(tmp_path, monkeypatch):
    from distributed import Client, LocalCluster

    one = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(**one) as cluster, Client(cluster, set_as_default=False) as client:
        monkeypatch.setattr(client, "nthreads", dict)
        outcomes = list(run_on_workers(client, iter(SPECS[:3]), tmp_path))
    assert [(outcome.spec, outcome.status) for outcome in outcomes] == [(spec, "done") for spec in SPECS[:3]]


def test_what_is_wrong_with_a_scheduler_is_said_in_one_line(scheduler):
    address, worker = scheduler
    with pytest.raises(InputError, match="no Dask scheduler answers"), connected("tcp://127.0.0.1:1"):
        pass
    with pytest.raises(InputError, match="no Dask scheduler answers"), connected("nonsense://here"):
        pass
    wait_for(lambda: workers_of(address) == 0)
    with pytest.raises(InputError, match="has no worker; start some: dask worker tcp://"), connected(address):
        pass
    worker(threads=2)
    wait_for(lambda: workers_of(address) == 1)
    with pytest.raises(InputError, match="start each with --nthreads 1"), connected(address):
        pass
