"""Rounds of node classification: the package against the plain loop, interleaved in one process.

    python benchmarks/node.py [--datasets cora pubmed] [--methods fgssl] [--repeats 15] [--engine reference]

Prints medians and ratios, and writes ``benchmarks/results/node.json``. A ratio of 4 says that the plain loop
takes four times as long. Seconds are processor time of the one thread, which other programs disturb less than
the clock. A round is 5 clients × 4 steps, aggregation, and evaluation before and after it, by the package's
own round loop. Peak memory is that of a fresh process that does one round and nothing else.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from benchmarks.timing import fresh_process, in_turn, peak_mib, write
from fgl_core.datasets import load_node_dataset
from fgl_core.methods import METHODS
from fgl_core.models import ops
from fgl_core.partition import partition_nodes, split_nodes, subgraphs
from fgl_core.streams import Streams
from fgl_core.study.setup import set_up
from fgl_core.study.spec import NodeSpec

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
    """Seconds and ratio, and the loss of each one's next round, which must be alike."""
    plain, package = plain_round(name, method), package_round(name, method)
    with ops.engine(engine):
        timed = in_turn(plain, package, repeats)
        return timed | {"plain_loss": round(plain(), 4), "package_loss": round(package(), 4)}


def alone(name: str, method: str, who: str, engine: str) -> float:
    """Do one round and return the peak of this process in MiB."""
    run = plain_round(name, method) if who == "plain" else package_round(name, method)
    with ops.engine(engine):
        run()
    return peak_mib()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--methods", nargs="+", default=tuple(TARGETS), choices=tuple(TARGETS))
    parser.add_argument("--repeats", type=int, default=15, help="timed rounds of each kind")
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
                    asked = (
                        "--alone",
                        who,
                        "--datasets",
                        name,
                        "--methods",
                        method,
                        "--engine",
                        options.engine,
                    )
                    row[f"{who}_peak_mib"] = round(fresh_process(__file__, *asked)[0], 1)
                line += f"  peak {row['plain_peak_mib']:.0f} → {row['package_peak_mib']:.0f} MiB"
            print(line, flush=True)
            rows.append(row)
    if options.engine == "fast" and not options.no_memory:
        write("node", rows, key=("dataset", "method"))


if __name__ == "__main__":
    main()
