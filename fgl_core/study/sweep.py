"""Many runs: in parallel, resumable, within a time budget.

Every worker writes its own record as soon as the run ends, so that a killed sweep loses only the runs in
progress and the next one computes nothing twice. A run's numbers do not depend on where it is computed: each
worker uses one thread, and every random draw comes from the run's own named streams.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from fgl_core.errors import InputError
from fgl_core.study.costs import Costs, datasets_of
from fgl_core.study.spec import RunSpec, Spec
from fgl_core.study.store import Record, check_writable, record_head, write_record

PARENT_CHECK = 1.0  # seconds between a worker's looks at whether the sweep that started it still lives
# what loky's clean-up process says of semaphores of killed workers: it removes them, users need not know
QUIET = "ignore:resource_tracker"
# loky's threads, which may fail when their workers are killed under them
LOKY_THREADS = ("ExecutorManagerThread", "QueueFeederThread")


@dataclass(frozen=True)
class Outcome:
    """How one run ended."""

    spec: Spec
    status: str
    reason: str | None
    seconds: float | None  # None when it did not end well


def sweep(
    specs: Iterable[Spec],
    folder: Path,
    *,
    jobs: int = 1,
    time_budget: float | None = None,
    known: Iterable[Record] = (),
    progress: TextIO | None = None,
) -> list[Outcome]:
    """Compute runs, the cheapest cell first, and write a record for each into ``folder``.

    A run that raises is recorded as ``failed`` with its reason and does not stop the others.

    Args:
        specs: the runs to compute, e.g. ``results.missing``.
        jobs: worker processes; 1 computes in this process.
        time_budget: seconds; no run is started that is not expected to end within it.
        known: records whose times tell how long runs take.
        progress: where to write an estimate and draw the progress bar, None for none.

    Returns:
        How each run ended that was started; fewer than ``specs`` when the budget was used up.

    Raises:
        InputError: before anything is computed, when the folder cannot be written to or data cannot be had.
        KeyboardInterrupt: on Ctrl-C or SIGTERM, after the workers were ended. Finished runs are recorded.
    """
    costs = Costs(known)
    waiting = sorted(specs, key=costs.order)
    if not waiting:
        return []
    check_writable(folder)
    _fetch({name for spec in waiting for name in datasets_of(spec)})
    deadline = None if time_budget is None else time.monotonic() + time_budget
    outcomes: list[Outcome] = []
    if progress:
        print(costs.total(waiting, jobs), file=progress)
    runs = closing(_execute_all(waiting, folder, jobs, deadline, costs))
    with _terminable() as stopped, _Bar(waiting, costs, jobs, progress) as bar, runs as ended:
        for outcome in ended:
            if stopped.is_set():  # the interrupt was raised inside a callback, which swallowed it
                raise KeyboardInterrupt
            outcomes.append(outcome)
            if outcome.seconds:
                costs.learn(outcome.spec, outcome.seconds)
            bar.update(outcome)
    return outcomes


def run_recorded(spec: Spec, folder: Path) -> Outcome:
    """Compute one run and write its record, also when it fails."""
    try:
        from fgl_core.study.execute import describe, execute

        record = execute(spec) if isinstance(spec, RunSpec) else describe(spec)
        write_record(record, folder)
    except Exception as error:
        record = record_head(spec, "failed", _reason(error))
        write_record(record, folder)
    timing = record["timing"] if record["status"] == "done" else None
    seconds = timing and timing["seconds"] - timing["setup_seconds"]
    return Outcome(spec, record["status"], record["reason"], seconds)


def _reason(error: Exception) -> str:
    """What happened and where in this package, in one line without the machine's paths."""
    if isinstance(error, InputError):
        return str(error)
    package = Path(__file__).parents[1]
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if package in Path(frame.filename).parents]
    places = [f"{Path(f.filename).relative_to(package.parent)}:{f.lineno} {f.name}" for f in own[:0:-1]]
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{what} (in {' < '.join(places)})" if places else what


def _execute_all(
    waiting: list[Spec], folder: Path, jobs: int, deadline: float | None, costs: Costs
) -> Iterator[Outcome]:
    def affordable() -> Iterator[Spec]:
        for spec in waiting:
            expected = costs.seconds(spec) if costs.learnt(spec) else 0.0
            if deadline is None or time.monotonic() + expected <= deadline:
                yield spec

    if jobs == 1:
        for spec in affordable():
            yield run_recorded(spec, folder)
        return
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    begun: list[Spec] = []
    ended: set[str] = set()

    def noted() -> Iterator[Spec]:
        for spec in affordable():
            begun.append(spec)
            yield spec

    try:
        for outcome in _parallel(noted(), folder, jobs):
            ended.add(outcome.spec.digest)
            yield outcome
        return
    except TerminatedWorkerError:
        suspects = [spec for spec in begun if spec.digest not in ended]
    # a worker was killed, mostly for want of memory: which run did it shows when each runs alone
    for spec in suspects:
        yield _alone(spec, folder)
    left = [spec for spec in waiting if spec not in begun]
    yield from _execute_all(left, folder, jobs, deadline, costs)


def _alone(spec: Spec, folder: Path) -> Outcome:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        return next(iter(_parallel([spec], folder, jobs=2)))  # joblib computes a single job in this process
    except TerminatedWorkerError:
        reason = "the process that computed it was killed, perhaps for want of memory"
        write_record(record_head(spec, "failed", reason), folder)
        return Outcome(spec, "failed", reason, None)


def _parallel(specs: Iterable[Spec], folder: Path, jobs: int) -> Iterator[Outcome]:
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky import get_reusable_executor

    filters = os.environ.get("PYTHONWARNINGS", "").split(",")
    os.environ["PYTHONWARNINGS"] = ",".join(dict.fromkeys(filter(None, [*filters, QUIET])))
    with parallel_config(backend="loky", inner_max_num_threads=1):
        # runs are handed out one by one: what has not begun when the budget ends is never started
        pool = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=jobs)
        try:
            yield from pool(delayed(_work)(spec, folder, os.getpid()) for spec in specs)
        finally:
            get_reusable_executor().shutdown(wait=False, kill_workers=True)


def _work(spec: Spec, folder: Path, parent: int) -> Outcome:
    """What a worker process does."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends us
    _end_with(parent)
    return run_recorded(spec, folder)


_watch: threading.Thread | None = None


def _end_with(parent: int) -> None:
    """End this process soon after ``parent`` is gone: a killed sweep must not go on unseen."""
    global _watch
    if _watch is not None or not hasattr(os, "getppid") or os.getppid() != parent:
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK)
        os._exit(1)

    _watch = threading.Thread(target=watch, daemon=True)
    _watch.start()


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


def _fetch(datasets: set[str]) -> None:
    """Have every dataset in the cache before workers ask for it, or raise before anything is computed."""
    from fgl_core.datasets.sources import fetch

    fetch(sorted(datasets))


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
