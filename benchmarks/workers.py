"""How many times the work of one worker do two make?

    python benchmarks/workers.py

One worker and two compute the same four runs of 200 rounds. Beside it, one process and two do nothing but
multiply small matrices, or copy large arrays: what the machine itself leaves to a second worker. Writes
``benchmarks/results/workers.json``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from benchmarks.timing import fresh_process, write
from fgl_core.study.spec import RunSpec
from fgl_core.study.sweep import sweep

RUNS, PRODUCTS, COPIES = "runs", "matrix products", "copies"
PIECE_SECONDS = 10


def runs(workers: int) -> dict[str, float]:
    """Seconds on the clock for four runs, and how many of them pass outside of runs in each worker."""
    specs = [RunSpec.parse({"dataset": "cora", "method": "fgssl", "seed": seed}) for seed in range(4)]
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        outcomes = sweep(specs, Path(folder), jobs=workers)
        seconds = time.perf_counter() - started
    within = sum(outcome.seconds for outcome in outcomes) / workers
    return {"seconds": round(seconds, 2), "start": round(seconds - within, 2)}


def pieces_per_second(work: str) -> float:
    """Products of matrices that a cache holds, or copies of arrays too large for any."""
    a, b = (torch.rand(256, 256) for _ in range(2)) if work == PRODUCTS else torch.rand(2, 2**26)
    out, pieces, started = torch.empty_like(a), 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < PIECE_SECONDS:
        torch.mm(a, b, out=out) if work == PRODUCTS else out.copy_(a)
        pieces += 1
    return pieces / passed


def pieces(work: str, workers: int) -> dict[str, float]:
    """Seconds for a thousand pieces, by so many processes at once."""
    with ThreadPoolExecutor(workers) as pool:
        rates = pool.map(lambda work: fresh_process(__file__, "--pieces", work)[0], [work] * workers)
        return {"seconds": round(1000 / sum(rates), 4)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pieces", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.pieces:
        print(pieces_per_second(options.pieces))
        return
    rows = []
    for work in (PRODUCTS, COPIES, RUNS):
        for workers in (1, 2):
            measured = runs(workers) if work == RUNS else pieces(work, workers)
            rows.append({"work": work, "workers": workers, **measured})
        one, two = rows[-2:]
        print(
            f"{work}: two workers make {one['seconds'] / two['seconds']:.2f} times the work of one",
            flush=True,
        )
    print("target for runs: 1.8")
    write("workers", rows, key=("work", "workers"))


if __name__ == "__main__":
    main()
