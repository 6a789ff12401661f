"""An epoch of graph classification: the package against the plain loop, interleaved in one process.

    python benchmarks/graphs.py [--datasets NCI1 DD] [--methods fedstar] [--repeats 5]

For each of the fifteen datasets, a client that trains one epoch and is evaluated before and after the
(empty) aggregation: GIN 3 × 64, batches of 64 graphs, float32, one thread. FedStar runs on three of them.
Prints medians and ratios, their geometric mean, and writes ``benchmarks/results/graphs.json``.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from torch_geometric.data import Data

from benchmarks.plain_graphs import PlainClient, PlainGIN, PlainStar
from benchmarks.timing import in_turn, write
from fgl_core.datasets.groups import SETTINGS
from fgl_core.graph_clients import GraphClient
from fgl_core.study.setup import set_up
from fgl_core.study.spec import RunSpec

STAR = ("MUTAG", "NCI1", "IMDB-BINARY")
TARGETS = {("NCI1", "local"): 2.5, ("DD", "local"): 2.5, ("COLLAB", "local"): 12.0}
GEOMETRIC_MEAN_TARGET, STAR_TARGET = 3.0, 2.0
LONG = {"COLLAB": 1, "DD": 2}  # repeats at most: the plain loop takes long


def package_and_plain(name: str, method: str) -> tuple[Callable[[], float], Callable[[], float]]:
    """The next round of each, on the same split."""
    spec = RunSpec.parse({"setting": name, "method": method, "norm": "none", "rounds": 100_000})
    setup = set_up(spec)
    (client,) = setup.clients
    plain = plain_client(client, method)
    run = setup.run()
    return plain.one_round, lambda: next(run).loss


def plain_client(client: GraphClient, method: str) -> PlainClient:
    """The same graphs as ``Data`` objects with dense features."""

    def data(graph: int) -> Data:
        batch = client.packed.batch([graph])
        target, source = batch.adjacency.neighbours
        x = batch.features
        if x.dtype == torch.int64:
            x = torch.nn.functional.one_hot(x, client.packed.num_features).float()
        whole = {"x": x, "edge_index": torch.stack([source, target]), "y": client.labels[graph].view(1)}
        return Data(**whole, structure=batch.structure) if method == "fedstar" else Data(**whole)

    train, val, test = ([data(i) for i in part] for part in (client.train, client.val, client.test))
    model = PlainStar if method == "fedstar" else PlainGIN
    torch.manual_seed(0)
    return PlainClient(train, [val, test], model(client.packed.num_features, client.num_classes))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", default=SETTINGS["ALL"], choices=SETTINGS["ALL"])
    parser.add_argument("--methods", nargs="+", default=("local", "fedstar"), choices=("local", "fedstar"))
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds of each kind")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    print("one client, one epoch and two evaluations, hidden 64, batches of 64, float32, one thread")
    for method in options.methods:
        for name in options.datasets:
            if method == "fedstar" and name not in STAR:
                continue
            plain, package = package_and_plain(name, method)
            timed = in_turn(plain, package, min(options.repeats, LONG.get(name, options.repeats)))
            rows.append({"dataset": name, "method": method} | timed)
            line = f"{name:13} {method:8} plain {timed['plain_seconds']:8.3f} s"
            line += f"  package {timed['package_seconds']:7.3f} s  ratio {timed['ratio']:5.2f}"
            line += f" ({timed['ratio_lowest']:.2f}–{timed['ratio_highest']:.2f})"
            target = STAR_TARGET if method == "fedstar" else TARGETS.get((name, method))
            print(line + (f", target {target}" if target else ""), flush=True)
    ratios = [row["ratio"] for row in rows if row["method"] == "local"]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean over {len(ratios)}: {mean:.2f}, target {GEOMETRIC_MEAN_TARGET}")
    write("graphs", rows, key=("dataset", "method"))


if __name__ == "__main__":
    main()
