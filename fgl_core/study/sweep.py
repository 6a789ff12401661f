"""Many runs: in parallel, resumable, within a time budget.

A record is written as soon as its run ends, so that a killed sweep loses only the runs in progress and the
next one computes nothing twice. A run's numbers do not depend on where it is computed: each
worker uses one thread, and every random draw comes from the run's own named streams.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, TextIO

from fgl_core.datasets.sources import fetch
from fgl_core.device import requested
from fgl_core.study.costs import Costs, datasets_of
from fgl_core.study.outcome import Outcome
from fgl_core.study.processes import run_here
from fgl_core.study.scheduler import connected, run_on_workers
from fgl_core.study.spec import Spec
from fgl_core.study.store import Record, check_writable

# loky's threads, which may fail when their workers are killed under them
LOKY_THREADS = ("ExecutorManagerThread", "QueueFeederThread")
Order = Literal["cheapest", "table"]


def sweep(
    specs: Iterable[Spec],
    folder: Path,
    *,
    jobs: int = 1,
    time_budget: float | None = None,
    known: Iterable[Record] = (),
    progress: TextIO | None = None,
    order: Order = "cheapest",
    scheduler: str | None = None,
) -> list[Outcome]:
    """Compute runs and write a record for each into ``folder``.

    A run that raises is recorded as ``failed`` with its reason and does not stop the others.

    Args:
        specs: the runs to compute, e.g. ``results.missing``.
        jobs: worker processes on this machine; 1 computes in this process.
        time_budget: seconds; no run is started that is not expected to end within it.
        known: records whose times tell how long runs take.
        progress: where to write an estimate and draw the progress bar, None for none.
        order: the cheapest cell first, or as ``specs`` come, which for a study is the order of its table.
        scheduler: address of a Dask scheduler whose workers compute, in place of ``jobs``.

    Returns:
        How each run ended that was started; fewer than ``specs`` when the budget was used up.

    Raises:
        InputError: before anything is computed, when the folder cannot be written to, data cannot be had, or
            the device or the scheduler cannot be used; later, when the scheduler is lost.
        KeyboardInterrupt: on Ctrl-C or SIGTERM, after the workers were ended. Finished runs are recorded.
    """
    costs = Costs(known)
    waiting = sorted(specs, key=costs.order) if order == "cheapest" else list(specs)
    if not waiting:
        return []
    check_writable(folder)
    deadline = None if time_budget is None else time.monotonic() + time_budget
    outcomes: list[Outcome] = []
    with ExitStack() as stack:
        if scheduler is None:
            requested()
            # before workers ask for them
            fetch(sorted({name for spec in waiting for name in datasets_of(spec)}))
            start = partial(run_here, jobs=jobs)
        else:
            client = stack.enter_context(connected(scheduler))
            start, jobs = partial(run_on_workers, client), len(client.nthreads())
        if progress:
            print(costs.total(waiting, jobs), file=progress)
        stopped = stack.enter_context(_terminable())
        bar = stack.enter_context(_Bar(waiting, costs, jobs, progress))
        for outcome in stack.enter_context(closing(start(_affordable(waiting, costs, deadline), folder))):
            if stopped.is_set():  # the interrupt was raised inside a callback, which swallowed it
                raise KeyboardInterrupt
            outcomes.append(outcome)
            if outcome.seconds:
                costs.learn(outcome.spec, outcome.seconds)
            bar.update(outcome)
    return outcomes


def _affordable(specs: Iterable[Spec], costs: Costs, deadline: float | None) -> Iterator[Spec]:
    """The runs that are expected to end in time, asked one by one."""
    for spec in specs:
        expected = costs.seconds(spec) if costs.learnt(spec) else 0.0
        if deadline is None or time.monotonic() + expected <= deadline:
            yield spec


@contextmanager
def _terminable() -> Iterator[threading.Event]:
    """Within it, SIGTERM and Ctrl-C stop the sweep: workers are ended, finished runs are kept.

    The event is set once one of them has come.
    """
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def stop(number: int, frame: object) -> None:
        stopped.set()
        raise KeyboardInterrupt

    def report(failure: threading.ExceptHookArgs) -> None:
        name = failure.thread.name if failure.thread else ""
        if not (stopped.is_set() and name.startswith(LOKY_THREADS)):
            report_before(failure)

    report_before, threading.excepthook = threading.excepthook, report
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if not stopped.is_set():  # else threads may still fail, until the process ends
            threading.excepthook = report_before


class _Bar:
    """Runs done, how they ended, and the time left by what the runs so far took."""

    def __init__(self, waiting: list[Spec], costs: Costs, jobs: int, stream: TextIO | None) -> None:
        self._left = {spec.digest: spec for spec in waiting}
        self._costs, self._jobs, self._stream = costs, jobs, stream
        self._ended: Counter[str] = Counter()

    def __enter__(self) -> _Bar:
        from tqdm import tqdm

        self._bar = tqdm(
            total=len(self._left),
            desc="runs",
            file=self._stream,
            disable=self._stream is None,
            bar_format="{desc}: {n_fmt}/{total_fmt} |{bar}| {elapsed}{postfix}",
        )
        return self

    def update(self, outcome: Outcome) -> None:
        del self._left[outcome.spec.digest]
        self._ended[outcome.status] += 1
        left = sum(self._costs.seconds(spec) for spec in self._left.values()) / self._jobs
        troubles = [f"{self._ended[kind]} {kind}" for kind in ("diverged", "failed") if self._ended[kind]]
        self._bar.set_postfix_str(
            ", ".join([f"about {self._bar.format_interval(left)} left", *troubles, outcome.spec.slug]),
            refresh=False,
        )
        self._bar.update()
        if outcome.status == "failed":
            self._bar.write(f"failed: {outcome.spec.slug}: {outcome.reason}", file=self._stream)

    def __exit__(self, *_: object) -> None:
        self._bar.close()
