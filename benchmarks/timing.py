"""What every benchmark needs: rounds in turn, peak memory, the machine's name, the results file."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from fgl_core.study.environment import environment

RESULTS = Path(__file__).parent / "results"


def in_turn(plain: Callable[[], Any], package: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Median seconds of each, one after the other within a repeat, and the median of the paired ratios.

    Both run once untimed, which compiles and fills caches. Seconds are processor time of this process, which
    other programs disturb less than the clock.
    """
    runs = {"plain": plain, "package": package}
    seconds: dict[str, list[float]] = {who: [] for who in runs}
    for run in runs.values():
        run()
    for _ in range(repeats):
        for who, run in runs.items():
            started = time.process_time()
            run()
            seconds[who].append(time.process_time() - started)
    ratios = [a / b for a, b in zip(seconds["plain"], seconds["package"], strict=True)]
    return {
        "plain_seconds": round(median(seconds["plain"]), 5),
        "package_seconds": round(median(seconds["package"]), 5),
        "ratio": round(median(ratios), 2),
        "ratio_lowest": round(min(ratios), 2),
        "ratio_highest": round(max(ratios), 2),
    }


def fresh_process(script: str, *arguments: str) -> list[float]:
    """The numbers in the last line that a script prints when it runs alone, in a process of its own."""
    done = subprocess.run([sys.executable, script, *arguments], check=True, capture_output=True, text=True)
    return [float(number) for number in done.stdout.splitlines()[-1].split()]


def peak_mib() -> float:
    """The most memory that this process has held so far, in MiB."""
    # what getrusage says on Linux includes the process that started this one
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def machine() -> dict[str, str]:
    """Processor and versions, which a ratio depends on."""
    known = environment()
    packages = ("python", "torch", "torch-geometric", "numba", "numpy", "scipy")
    return {"cpu": known["cpu"]} | {name: known["versions"][name] for name in packages}


def write(name: str, rows: Sequence[Mapping[str, Any]], key: Sequence[str]) -> None:
    """Write ``results/<name>.json``; other rows in it stay when they were measured on the same machine.

    Args:
        key: the fields that name a row.
    """
    path, merged = RESULTS / f"{name}.json", {}
    if path.exists():
        before = json.loads(path.read_text())
        if before["machine"] == machine():
            merged = {tuple(row[field] for field in key): row for row in before["rows"]}
    merged |= {tuple(row[field] for field in key): row for row in rows}
    RESULTS.mkdir(exist_ok=True)
    path.write_text(
        json.dumps({"machine": machine(), "rows": list(merged.values())}, indent=1, allow_nan=False) + "\n"
    )
    print(f"written to {path}")
