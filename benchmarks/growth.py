"""How seconds and memory of a round grow with the number of clients, of nodes, and of rounds.

    python benchmarks/growth.py

Every point is a fresh process that trains FedAvg or FGSSL with one local epoch: Cora cut into 5 to 100
clients; Cora, Citeseer, Pubmed and an invented graph of 200,000 nodes at 20 clients; 5 to 40 rounds on Cora.
Writes ``benchmarks/results/growth.json``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import scipy.sparse as sp
import torch

from benchmarks.timing import fresh_process, peak_mib, write
from fgl_core.clients import node_clients
from fgl_core.datasets.node import NodeDataset
from fgl_core.datasets.registry import entry
from fgl_core.federation import federate
from fgl_core.methods import METHODS
from fgl_core.partition import split_nodes, subgraphs
from fgl_core.streams import Streams
from fgl_core.study.setup import node_models, set_up
from fgl_core.study.spec import RunSpec

INVENTED, INVENTED_NODES = "invented", 200_000
POINTS = (
    *(("clients", "cora", clients, 5) for clients in (5, 10, 20, 50, 100)),
    *(("nodes", name, 20, 3) for name in ("cora", "citeseer", "pubmed", INVENTED)),
    *(("rounds", "cora", 5, rounds) for rounds in (5, 10, 20, 40)),
)
METHODS_MEASURED = ("fedavg", "fgssl")


def invented_graph(communities: int = 200, degree: int = 4) -> NodeDataset:
    """A planted partition with about as many edges and feature entries a node as Pubmed has."""
    nodes, rng = INVENTED_NODES, np.random.default_rng(0)
    community = np.arange(nodes) % communities
    source = np.repeat(np.arange(nodes), degree // 2)
    inside = (source + communities * rng.integers(1, nodes // communities, len(source))) % nodes
    target = np.where(rng.random(len(source)) < 0.9, inside, rng.integers(0, nodes, len(source)))
    pairs = np.sort(np.stack([source, target], axis=1), axis=1)
    edges = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)
    columns = np.sort(rng.integers(0, 500, (nodes, 50)), axis=1)
    x = sp.csr_array((np.ones(columns.size, np.float32), columns.ravel(), np.arange(0, columns.size + 1, 50)))
    x.sum_duplicates()
    return NodeDataset(name=INVENTED, x=x, y=community % 3, edges=edges, num_classes=3)


def run_of(name: str, clients: int, method: str):
    """An endless run; the invented graph is cut along its communities, as Louvain would take minutes."""
    fields = {"dataset": name, "clients": clients, "method": method, "local_epochs": 1, "rounds": 100_000}
    if name != INVENTED:
        return set_up(RunSpec.parse(fields)).run()
    spec, streams = RunSpec.parse(fields | {"dataset": "pubmed"}), Streams(0)
    dataset = invented_graph()
    split = split_nodes(dataset.y, "stratified", streams.numpy("split"))
    owner = np.arange(len(dataset.y)) % 200 % clients
    held = node_clients(dataset, subgraphs(dataset, split, owner), "union", torch.float32)
    models = node_models(spec, dataset.x.shape[1], dataset.num_classes, clients)
    training = set_up(RunSpec.parse({"dataset": "karate", "clients": 2, "local_epochs": 1})).training
    return federate(METHODS[method](), held, models, training, rounds=100_000, streams=streams)


def point(name: str, clients: int, rounds: int, method: str) -> tuple[float, float, float]:
    """Median seconds of a round, seconds of all rounds, and peak MiB of this process."""
    run, seconds = run_of(name, clients, method), []
    next(run)
    for _ in range(rounds):
        started = time.process_time()
        next(run)
        seconds.append(time.process_time() - started)
    return median(seconds), sum(seconds), peak_mib()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--alone", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.alone:
        name, clients, rounds, method = options.alone
        print(*point(name, int(clients), int(rounds), method))
        return
    rows = []
    for axis, name, clients, rounds in POINTS:
        for method in METHODS_MEASURED:
            each, total, peak = fresh_process(__file__, "--alone", name, str(clients), str(rounds), method)
            nodes = INVENTED_NODES if name == INVENTED else entry(name).counts["nodes"]
            at = {"clients": clients, "nodes": nodes, "rounds": rounds}[axis]
            row = {"axis": axis, "dataset": name, "method": method, "at": at}
            row |= {"seconds": round(total if axis == "rounds" else each, 4), "peak_mib": round(peak)}
            print(row, flush=True)
            rows.append(row)
    write("growth", rows, key=("axis", "dataset", "method", "at"))


if __name__ == "__main__":
    main()
