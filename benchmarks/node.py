"""Rounds of node classification: the package against the plain loop, interleaved in one process.

    python benchmarks/node.py [--datasets cora pubmed] [--methods fgssl] [--repeats 7] [--engine reference]

Prints medians and ratios, and writes ``benchmarks/results/node.json``. A ratio of 4 says that the plain loop
takes four times as long. Seconds are processor time of the one thread, which other programs disturb less than
the clock. A round is 5 clients × 4 steps, aggregation, and evaluation before and after it, by the package's
own round loop. Peak memory is that of a fresh process that does one round and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from fgl_core.datasets import load_node_dataset
from fgl_core.methods import METHODS
from fgl_core.models import ops
from fgl_core.partition import partition_nodes, split_nodes, subgraphs
from fgl_core.streams import Streams
from fgl_core.study.setup import set_up
from fgl_core.study.spec import NodeSpec

RESULTS = Path(__file__).parent / "results" / "node.json"
DATASETS = ("cora", "citeseer", "pubmed")
TARGETS = {"fedavg": 3.5, "fgssl": 4.0}
CLIENTS, HIDDEN = 5, 128


def package_round(name: str, method: str) -> Callable[[], float]:
    """The next round of a run by the package; returns its loss."""
    spec = NodeSpec(dataset=name, clients=CLIENTS, hidden=HIDDEN, method=METHODS[method](), rounds=10_000)
    run = set_up(spec).run()
    return lambda: next(run).loss


def plain_round(name: str, method: str) -> Callable[[], float]:
    """The next round by the plain loop, on the same subgraphs; returns its loss."""
    from benchmarks import plain

    dataset, streams = load_node_dataset(name), Streams(0)
    split = split_nodes(dataset.y, "stratified", streams.numpy("split"))
    owner = partition_nodes(dataset, CLIENTS, "louvain", streams.numpy("partition"))
    held = subgraphs(dataset, split, owner)
    clients = [plain.PlainClient.from_arrays(part.x, part.edges, part.y, part.train) for part in held]
    torch.manual_seed(0)
    model = plain.PlainGAT(dataset.x.shape[1], HIDDEN, dataset.num_classes)
    return lambda: plain.one_round(model, clients, method)


def measure(name: str, method: str, repeats: int, engine: str) -> dict[str, float]:
    """Median seconds of a round by each, in turn, and the median of the paired ratios."""
    rounds = {"plain": plain_round(name, method), "package": package_round(name, method)}
    seconds: dict[str, list[float]] = {who: [] for who in rounds}
    with ops.engine(engine):
        losses = {who: run() for who, run in rounds.items()}  # compiles and fills caches, untimed
        for _ in range(repeats):
            for who, run in rounds.items():
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
        "plain_loss": round(losses["plain"], 4),
        "package_loss": round(losses["package"], 4),
    }


def peak_memory(name: str, method: str, who: str, engine: str) -> float:
    """MiB that a fresh process needs at most for one round."""
    command = [sys.executable, __file__, "--alone", who, "--datasets", name, "--methods", method]
    done = subprocess.run(
        [*command, "--engine", engine], check=True, capture_output=True, text=True, cwd=Path.cwd()
    )
    return float(done.stdout.split()[-1])


def alone(name: str, method: str, who: str, engine: str) -> float:
    """Do one round and return the peak of this process in MiB."""
    run = plain_round(name, method) if who == "plain" else package_round(name, method)
    with ops.engine(engine):
        run()
    status = Path(
        "/proc/self/status"
    )  # what getrusage says on Linux includes the process that started this one
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def machine() -> dict[str, str]:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        cpu = names[0] if names else cpu
    packages = ("torch", "torch-geometric", "numba", "numpy", "scipy")
    return {"cpu": cpu, "python": platform.python_version()} | {name: version(name) for name in packages}


def write(rows: list[dict[str, Any]]) -> None:
    """Write the rows; others in the file stay when they were measured on the same machine."""
    kept = []
    if RESULTS.exists():
        before = json.loads(RESULTS.read_text())
        measured = {(row["dataset"], row["method"]) for row in rows}
        if before["machine"] == machine():
            kept = [row for row in before["rows"] if (row["dataset"], row["method"]) not in measured]
    order = [(name, method) for name in DATASETS for method in TARGETS]
    rows = sorted([*kept, *rows], key=lambda row: order.index((row["dataset"], row["method"])))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
    print(f"written to {RESULTS}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--methods", nargs="+", default=tuple(TARGETS), choices=tuple(TARGETS))
    parser.add_argument("--repeats", type=int, default=7, help="timed rounds of each kind")
    parser.add_argument("--engine", default="fast", choices=ops.ENGINES)
    parser.add_argument("--no-memory", action="store_true", help="measure time only")
    parser.add_argument("--alone", choices=("plain", "package"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.alone:
        print(alone(options.datasets[0], options.methods[0], options.alone, options.engine))
        return
    rows = []
    print("one round of 5 clients × 4 steps, GAT hidden 128, float32, one thread")
    for name in options.datasets:
        for method in options.methods:
            row = {"dataset": name, "method": method} | measure(name, method, options.repeats, options.engine)
            line = f"{name:9} {method:7} plain {row['plain_seconds']:.3f} s"
            line += f"  package {row['package_seconds']:.3f} s"
            line += f"  ratio {row['ratio']:.2f} ({row['ratio_lowest']:.2f}–{row['ratio_highest']:.2f})"
            line += f", target {TARGETS[method]}"
            if not options.no_memory:
                for who in ("plain", "package"):
                    row[f"{who}_peak_mib"] = round(peak_memory(name, method, who, options.engine), 1)
                line += f"  peak {row['plain_peak_mib']:.0f} → {row['package_peak_mib']:.0f} MiB"
            print(line, flush=True)
            rows.append(row)
    if options.engine == "fast" and not options.no_memory:
        write(rows)


if __name__ == "__main__":
    main()
