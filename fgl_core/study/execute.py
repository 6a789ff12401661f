"""From a specification to a record: of a training run, or of an analysis without one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch

from fgl_core.analysis.graph_statistics import graph_statistics
from fgl_core.datasets import load_graph_dataset
from fgl_core.device import chosen
from fgl_core.federation import Divergence, Round
from fgl_core.models import ops
from fgl_core.streams import Streams
from fgl_core.study.environment import environment
from fgl_core.study.heterogeneity import Heterogeneity
from fgl_core.study.measures import best_round, columns, measure, selected
from fgl_core.study.privacy import leakage
from fgl_core.study.setup import set_up
from fgl_core.study.spec import PrivacySpec, RunSpec, StatisticsSpec
from fgl_core.study.store import record_head


def execute(
    spec: RunSpec,
    *,
    engine: Literal["fast", "reference"] = "fast",
    dtype: Literal["float32", "float64"] = "float32",
    device: str | None = None,
    on_round: Callable[[Round, dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Train as ``spec`` says and return the record, ready for JSON.

    A run whose loss or parameters stop being finite ends as ``diverged``, with the curves up to there.

    Args:
        engine: the sparse kernels, or the plain loop they are tested against.
        dtype: floating point type of data and model.
        device: where to train, as :func:`fgl_core.device.chosen` takes it. Random numbers are drawn on the
            CPU, whatever the device.
        on_round: called after each round with the round and its curve values, e.g. for a progress bar.

    Raises:
        InputError: the data cannot be had, or cannot be split over so many clients; there is no such device.
    """
    started = time.perf_counter()
    where, numbers = chosen(device), getattr(torch, dtype)
    setup = set_up(spec, numbers, where)
    ready, computing = time.perf_counter(), time.process_time()
    watch = Heterogeneity(spec, setup, numbers, where) if spec.task == "heterogeneity" else None
    rounds: list[dict[str, Any]] = []
    status, reason = "done", None
    with ops.engine(engine), arithmetic() as subnormal:
        try:
            for measured in setup.run(on_trained=watch.compare if watch else None):
                rounds.append(measure(measured, pooled=setup.pooled))
                if on_round:
                    on_round(measured, rounds[-1])
        except Divergence as error:
            status, reason = "diverged", str(error)
    ended, computed = time.perf_counter(), time.process_time()
    return {
        **record_head(spec, status, reason),
        "partition": setup.partition,
        "curves": columns([values["curves"] for values in rounds]),
        "best": selected(rounds, best_round(rounds)) if rounds else None,
        "last": selected(rounds, len(rounds) - 1) if rounds else None,
        "bytes": {way: columns([values["bytes"][way] for values in rounds]) for way in ("up", "down")},
        "notes": columns([values["notes"] for values in rounds]),
        **({"heterogeneity": watch.result()} if watch else {}),
        "timing": {
            "seconds": round(ended - started, 3),
            "setup_seconds": round(ready - started, 3),
            # of the processor: what else the machine does meanwhile, or a pause, does not count
            "seconds_per_round": round((computed - computing) / max(1, len(rounds)), 4),
        },
        "environment": {
            **environment(),
            "subnormal": subnormal,
            "engine": engine,
            "dtype": dtype,
            **_named(where),
        },
    }


def _named(device: torch.device) -> dict[str, str]:
    """A record names the device where it is not the processor, which it names in any case."""
    return {} if device.type == "cpu" else {"device": torch.cuda.get_device_name(device)}


def describe(spec: StatisticsSpec) -> dict[str, Any]:
    """Count as ``spec`` says and return the record, ready for JSON.

    Raises:
        InputError: the data cannot be had.
    """
    started = time.perf_counter()
    dataset = load_graph_dataset(spec.dataset)
    ready = time.perf_counter()
    statistics = graph_statistics(dataset, Streams(spec.seed).numpy("drawn graphs", dataset.name))
    ended = time.perf_counter()
    return {
        **record_head(spec, "done"),
        "statistics": statistics,
        "timing": {"seconds": round(ended - started, 3), "setup_seconds": round(ready - started, 3)},
        "environment": environment(),
    }


def spy(spec: PrivacySpec) -> dict[str, Any]:
    """Attack as ``spec`` says and return the record, ready for JSON.

    Raises:
        InputError: the data cannot be had, or has too few graphs; ``FGL_DEVICE`` is none.
    """
    started, computing = time.perf_counter(), time.process_time()
    where = chosen()
    status, reason, found = "done", None, None
    with arithmetic() as subnormal:
        try:
            found = leakage(spec, where)
        except Divergence as error:
            status, reason = "diverged", str(error)
    ended, computed = time.perf_counter(), time.process_time()
    return {
        **record_head(spec, status, reason),
        "privacy": found,
        "timing": {
            "seconds": round(ended - started, 3),
            "setup_seconds": 0.0,
            "seconds_per_round": round((computed - computing) / spec.rounds, 4),
        },
        "environment": {**environment(), "subnormal": subnormal, **_named(where)},
    }


@contextmanager
def arithmetic() -> Iterator[str]:
    """The arithmetic of records: one thread of PyTorch, and numbers below 1e-38 taken as zero.

    Yields:
        What became of subnormal numbers: ``zero``, or ``kept`` on a processor that cannot leave them out.
    """
    # sums over several threads round differently: one thread makes records repeatable, and is faster here
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    # weights without a gradient decay to subnormal numbers, with which products are slow: benchmarks/late.py
    flushed = torch.set_flush_denormal(True)
    try:
        yield "zero" if flushed else "kept"
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(before)
