"""``fgl study``: many runs that belong together."""

from __future__ import annotations

import re
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fgl_core.device import DEVICES, choose
from fgl_core.errors import InputError, unknown
from fgl_core.study.catalogue import PROFILES, STUDIES, title
from fgl_core.study.results import Results, collect, parse_only
from fgl_core.study.spec import RunSpec, Spec
from fgl_core.study.store import Store, write_atomically

Profile = Annotated[str, Parameter(help=f"one of: {', '.join(PROFILES)}")]
Only = Annotated[
    list[str] | None,
    Parameter(
        help="part of the study, as field=value,value; may be given more than once: dataset=cora", negative=()
    ),
]
Untuned = Annotated[
    bool, Parameter(help="the values before tuning, also where there are tuned ones", negative=())
]
Device = Annotated[
    str | None, Parameter(help=f"where to train: {', '.join(DEVICES)}; FGL_DEVICE if not given, else cpu")
]
ORDERS = {"cheapest": "the cheapest missing cell first", "table": "as the study's table lists them"}
EXPORTS = (".csv", ".parquet")
UNITS = {"h": 3600, "m": 60, "s": 1}


def show() -> None:
    """Every study and how much of it is recorded, under each profile."""
    store = Store()
    width = max(map(len, STUDIES))
    for name in STUDIES:
        shares = []
        for profile in PROFILES:
            results = collect(name, profile, {}, store)
            shares.append(f"{profile} {len(results.shown)}/{len(results.specs)}")
        print(f"{name:<{width}}  {', '.join(shares)}\n{'':<{width}}  {title(name)}")
    print("\nprofiles:")
    for profile, meaning in PROFILES.items():
        print(f"  {profile:<6} {meaning}")


def status(name: str, *, profile: Profile = "lite", only: Only = None, untuned: Untuned = False) -> None:
    """What a study has, and what it lacks and why.

    Args:
        name: the study, as ``fgl study list`` names it.
    """
    results = collect(name, profile, parse_only(only or []), Store(), tuned=not untuned)
    diverged, failed = results.having("diverged"), results.having("failed")
    print(f"{name}, profile {profile}: {len(results.shown)} of {len(results.specs)} runs recorded")
    for record in diverged:
        print(f"  diverged: {record.spec.slug}: {record.reason}")
    for record in failed:
        print(f"  failed, will be tried again: {record.spec.slug}: {record.reason}")
    for record in results.stale:
        now = record.spec.revision
        print(f"  stale: {record.spec.slug}: revision {record.data['revision']}, the code is at {now}")
    never = [spec for spec in results.missing if spec.digest not in results.found]
    for cell, count in Counter(map(_cell, never)).items():
        print(f"  missing: {cell}: {count} runs")
    if results.missing:
        print(f"to fill: {results.command}")


def run(
    name: str,
    *,
    profile: Profile = "lite",
    only: Only = None,
    untuned: Untuned = False,
    jobs: int | None = None,
    time_budget: str | None = None,
    order: Annotated[str, Parameter(help="; ".join(f"{k}: {v}" for k, v in ORDERS.items()))] = "cheapest",
    scheduler: str | None = None,
    device: Device = None,
) -> int:
    """Compute what a study lacks; go on where it was stopped.

    Args:
        name: the study, as ``fgl study list`` names it.
        jobs: runs computed at once; as many as there are cores if not given.
        time_budget: start no run that would end later, e.g. 90m or 1h30m.
        scheduler: a Dask scheduler whose workers compute, e.g. tcp://10.0.0.1:8786.
    """
    if order not in ORDERS:
        raise unknown("order", order, ORDERS)
    if device is not None and scheduler is not None:
        raise InputError("--device is for this machine: leave it out, and set FGL_DEVICE where workers start")
    if jobs is not None and scheduler is not None:
        raise InputError("--jobs is for this machine: leave it out, a scheduler has its own workers")
    jobs = workers(jobs)
    budget = None if time_budget is None else seconds(time_budget)
    choose(device)
    store, part = Store(), parse_only(only or [])
    results = collect(name, profile, part, store, tuned=not untuned)
    if not results.missing:
        print(f"nothing to do: all {len(results.specs)} runs of {name}, profile {profile}, are recorded")
        return 0
    from fgl_core.study.sweep import sweep

    folder = store.folder(name, profile)
    known = store.load(store.results, store.runs).values()
    jobs = min(jobs, len(results.missing))
    try:
        outcomes = sweep(
            results.missing,
            folder,
            jobs=jobs,
            time_budget=budget,
            known=known,
            progress=sys.stderr,
            order=order,
            scheduler=scheduler,
        )
    except KeyboardInterrupt:
        print(_state(collect(name, profile, part, store, tuned=not untuned)))
        raise
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    print(_state(collect(name, profile, part, store, tuned=not untuned)))
    print(f"records: {folder}")
    return 1 if failed else 0


def export(
    name: str,
    *,
    profile: Profile = "lite",
    only: Only = None,
    untuned: Untuned = False,
    curves: Annotated[bool, Parameter(help="a row per run and round, with every curve", negative=())] = False,
    output: Path | None = None,
) -> None:
    """A study's records as one table: a row per run, its fields and what came out; no stale or failed ones.

    Args:
        name: the study, as ``fgl study list`` names it.
        output: the file, .csv or .parquet; CSV to the terminal if not given.
    """
    suffix = ".csv" if output is None else output.suffix
    if suffix not in EXPORTS:
        raise InputError(f"--output {output}: give a file that ends in {' or '.join(EXPORTS)}")
    if suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(f"--output {output}: Parquet needs pyarrow: pip install pyarrow, or name a .csv")
    results = collect(name, profile, parse_only(only or []), Store(), tuned=not untuned)
    if not results.shown:
        raise InputError(f"{name}, profile {profile}: no record to export; {results.command} makes them")
    from fgl_core.tables.frames import rounds_frame, runs_frame

    frame = (rounds_frame if curves else runs_frame)(results.shown)
    if frame.empty:
        raise InputError(f"{name}, profile {profile}: no round to export; leave out --curves")
    if output is None:
        print(frame.to_csv(index=False), end="")
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(output, (frame.to_csv if suffix == ".csv" else frame.to_parquet)(index=False))
    except OSError as error:
        raise InputError(f"cannot write {output} ({error.strerror}); name another file") from None
    print(f"{len(frame)} rows of {len(results.shown)} runs, {len(results.missing)} missing: {output}")


def workers(jobs: int | None) -> int:
    """The number of worker processes: as asked for, or one per core.

    Raises:
        InputError: a number below one.
    """
    if jobs is None:
        from joblib import cpu_count

        return cpu_count()  # heeds affinity and the limits of a container
    if jobs < 1:
        raise InputError(f"--jobs {jobs}: give a number of at least 1")
    return jobs


def seconds(text: str) -> int:
    """A duration such as ``90m``, ``45s`` or ``1h30m`` in seconds.

    Raises:
        InputError: when it is not one.
    """
    if not re.fullmatch(r"(\d+[hms])+", text):
        raise InputError(f"--time-budget {text}: write a duration such as 90m, 45s or 1h30m")
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([hms])", text))


def _cell(spec: Spec) -> str:
    from fgl_core.tables.labels import place

    if not isinstance(spec, RunSpec):
        return spec.slug.rpartition(f"-s{spec.seed}-")[0]
    dataset, clients = place(spec)
    where = "whole graph" if spec.method.centralised else f"{clients} clients"
    return f"{dataset}, {where}, {spec.method.name}"


def _state(results: Results) -> str:
    line = f"{len(results.shown)} of {len(results.specs)} runs recorded"
    for status in ("diverged", "failed"):
        if count := len(results.having(status)):
            line += f", {count} {status}"
    return line + (f"; {results.command} goes on" if results.missing else "")
