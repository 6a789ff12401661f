"""Runs by the workers of a Dask scheduler, wherever they are; this process writes the records.

Workers need this package, but no folder in common with it: they fetch the data that a run reads, and send the
record back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgl_core.datasets.sources import fetch
from fgl_core.errors import InputError
from fgl_core.study.costs import datasets_of
from fgl_core.study.outcome import Outcome, compute, recorded
from fgl_core.study.spec import Spec
from fgl_core.study.store import record_head

if TYPE_CHECKING:
    from distributed import Client, Future

PATIENCE = 10  # seconds to wait for the scheduler's answer


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A connection to the Dask scheduler at ``address``, which has workers.

    Raises:
        InputError: no Dask here, no scheduler there, no worker, or a worker of several threads.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError("--scheduler needs Dask: pip install 'dask[distributed]'") from None
    there = f"--scheduler {address}"
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{there}: no Dask scheduler answers ({why}); start one: dask scheduler") from None
    with client:
        threads = client.nthreads()
        if not threads:
            raise InputError(f"{there}: it has no worker; start some: dask worker {address} --nthreads 1")
        # PyTorch's number of threads belongs to a process: runs side by side in one would disturb each other
        if max(threads.values()) > 1:
            raise InputError(f"{there}: a worker has several threads; start each with --nthreads 1")
        yield client


def run_on_workers(client: Client, specs: Iterator[Spec], folder: Path) -> Iterator[Outcome]:
    """Compute runs, as many at once as there are workers; write each one's record when it comes.

    A run whose worker dies is given to another one; one that has lost several workers is recorded as failed.

    Raises:
        InputError: the scheduler is gone. Records that came before it went are written.
    """
    from distributed import as_completed

    running: dict[Future, Spec] = {}
    ended = as_completed(loop=client.loop)

    def begin() -> None:
        # one also while there is no worker, as when the last one is being restarted: it waits for the next
        workers = max(1, len(client.nthreads()))
        for spec in islice(specs, max(0, workers - len(running))):
            future = client.submit(_on_worker, spec, pure=False)
            running[future] = spec
            ended.add(future)

    try:
        begin()
        for future in ended:
            spec = running.pop(future)
            yield recorded(spec, _result(spec, future), folder)
            begin()
    finally:
        client.cancel(list(running), force=True)


def _on_worker(spec: Spec) -> dict[str, Any]:
    """What a worker does: a record, also of a run that fails."""
    try:
        fetch(datasets_of(spec))
    except InputError as error:
        return record_head(spec, "failed", str(error))
    return compute(spec)


def _result(spec: Spec, future: Future) -> dict[str, Any]:
    from distributed import CancelledError, KilledWorker

    try:
        record = future.result()
    except KilledWorker:
        return record_head(spec, "failed", "the workers that computed it died, perhaps for want of memory")
    except CancelledError:
        again = "what was computed is recorded: start it, and run the command again"
        raise InputError(f"the Dask scheduler is gone; {again}") from None
    if record["revision"] != spec.revision:
        theirs = f"a worker is at revision {record['revision']}, this code at {spec.revision}"
        return record_head(spec, "failed", f"{theirs}: install the same version everywhere")
    return record
