"""What do subnormal numbers cost late in a run?

    python benchmarks/late.py

Local with PF trains on DHFR for 200 rounds, once computing with numbers below 1e-38 and once taking them as
zero, as every run of a study does. Compared are the first and the last twenty rounds. Writes
``benchmarks/results/late.json``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from benchmarks.timing import write
from fgl_core.study.setup import set_up
from fgl_core.study.spec import RunSpec

SPEC = {"setting": "DHFR", "method": "local", "norm": "pf", "rounds": 200}
SPAN = 20  # rounds at either end


def trained(subnormal: str) -> dict[str, Any]:
    """Processor seconds of the first and the last rounds, and how many weights are subnormal in the end."""
    setup, seconds = set_up(RunSpec.parse(SPEC)), []
    torch.set_flush_denormal(subnormal == "zero")
    started = time.process_time()
    for _ in setup.run():
        ended = time.process_time()
        seconds.append(ended - started)
        started = ended
    torch.set_flush_denormal(False)  # or the comparison below would not see them
    weights = torch.cat([weight.detach().ravel() for weight in setup.models[0].parameters()])
    small = (weights != 0) & (weights.abs() < torch.finfo(torch.float32).tiny)
    return {
        "subnormal": subnormal,
        "first_seconds": round(sum(seconds[:SPAN]), 3),
        "last_seconds": round(sum(seconds[-SPAN:]), 3),
        "share": round(float(small.float().mean()), 4),
    }


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    trained("zero")  # compiles, and fills caches
    for subnormal in ("kept", "zero"):
        rows.append(trained(subnormal))
        print(rows[-1], flush=True)
    write("late", rows, key=("subnormal",))


if __name__ == "__main__":
    main()
