"""``fgl tune``: the same search for good values for every method."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from fgl_core.cli.study import Device, seconds, workers
from fgl_core.device import choose
from fgl_core.errors import InputError
from fgl_core.study.spaces import SPACES, selection
from fgl_core.study.store import Store
from fgl_core.study.tuned import FILE


def tune(
    *,
    dataset: Annotated[
        list[str], Parameter(help="the graph; more with commas, or given more than once", negative=())
    ],
    method: Annotated[
        list[str] | None,
        Parameter(help=f"what to tune, all if not given: {', '.join(SPACES)}", negative=()),
    ] = None,
    jobs: int | None = None,
    time_budget: str | None = None,
    device: Device = None,
) -> int:
    """Tune by validation accuracy, with the same number of trials for each method; go on where it stopped.

    Every trial is two runs of 60 rounds with five clients, on seeds that no table uses. Trials go to
    data/tuning, the values chosen to data/tuned.toml, once a method's search has ended.

    Args:
        jobs: runs computed at once; as many as there are cores if not given.
        time_budget: start no run that would end later, e.g. 90m or 1h30m.
    """
    from fgl_core.study.tuning import tune as search

    names, datasets = _listed(method or ["all"]), _listed(dataset)
    if not (names and datasets):
        raise InputError("name at least one dataset and one method, e.g. --dataset cora --method fgssl")
    choose(device)
    store = Store()
    searches = search(
        datasets,
        selection(None if names == ["all"] else names),
        store=store,
        jobs=workers(jobs),
        time_budget=None if time_budget is None else seconds(time_budget),
        progress=sys.stderr,
    )
    records = store.load(store.trials)
    failed = False
    for progress in searches:
        line = f"{progress.dataset}, {SPACES[progress.name].title}: "
        if progress.search is None:
            missing = progress.missing(records)
            print(f"{line}not done, {len(missing)} runs missing in stage: {progress.stage}")
            for record in filter(None, (records.get(spec.digest) for spec in missing)):
                failed = failed or record.status == "failed"
                print(f"  failed, will be tried again: {record.spec.slug}: {record.reason}")
            continue
        choice = progress.search.choice
        values = {"lr": choice.lr, **choice.method}
        listed = ", ".join(f"{name} {value:g}" for name, value in values.items())
        print(f"{line}{listed}; validation {choice.val_accuracy:.1%}, best of {choice.trials} trials")
    if any(progress.search for progress in searches):
        print(f"values: {store.root / FILE}")
    if any(progress.search is None for progress in searches):
        print("the same command goes on")
    return 1 if failed else 0


def _listed(texts: list[str]) -> list[str]:
    parts = [part.strip() for text in texts for part in text.split(",")]
    return list(dict.fromkeys(filter(None, parts)))
