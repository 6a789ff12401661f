"""Runs on this machine: in this process, or in worker processes that write their own records."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from fgl_core.study.outcome import Outcome, compute, recorded
from fgl_core.study.spec import Spec
from fgl_core.study.store import record_head

PARENT_CHECK = 1.0  # seconds between a worker's looks at whether the sweep that started it still lives
# what loky's clean-up process says of semaphores of killed workers: it removes them, users need not know
QUIET = "ignore:resource_tracker"


def run_here(specs: Iterator[Spec], folder: Path, *, jobs: int) -> Iterator[Outcome]:
    """Compute runs, ``jobs`` at once, and write a record for each; yields them as they end.

    A run whose worker process is killed is recorded as failed, and does not stop the others.
    """
    if jobs == 1:
        for spec in specs:
            yield recorded(spec, compute(spec), folder)
        return
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    begun: dict[str, Spec] = {}

    def noted() -> Iterator[Spec]:
        for spec in specs:
            begun[spec.digest] = spec
            yield spec

    while True:
        try:
            for outcome in _parallel(noted(), folder, jobs):
                del begun[outcome.spec.digest]
                yield outcome
            return
        except TerminatedWorkerError:
            # mostly for want of memory: which run did it shows when each runs alone
            for spec in list(begun.values()):
                yield _alone(spec, folder)
            begun.clear()


def _alone(spec: Spec, folder: Path) -> Outcome:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        return next(iter(_parallel([spec], folder, jobs=2)))  # joblib computes a single job in this process
    except TerminatedWorkerError:
        reason = "the process that computed it was killed, perhaps for want of memory"
        return recorded(spec, record_head(spec, "failed", reason), folder)


def _parallel(specs: Iterable[Spec], folder: Path, jobs: int) -> Iterator[Outcome]:
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky import get_reusable_executor

    filters = os.environ.get("PYTHONWARNINGS", "").split(",")
    os.environ["PYTHONWARNINGS"] = ",".join(dict.fromkeys(filter(None, [*filters, QUIET])))
    # loky replaces a worker that has grown, e.g. by the data it loaded; nothing is lost
    warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
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
    return recorded(spec, compute(spec), folder)


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
