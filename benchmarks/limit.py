"""How far a round is from what the same core can do at best.

    python benchmarks/limit.py

Every operator of a round needs some arithmetic, and must read its inputs and write its outputs once. Its
limit is the longer of the two: operations over the core's matrix-product rate, bytes over its copy rate, both
measured here, on matrices of the workload's own size. A workload's limit is the sum over its operators.

The same training steps on graphs of next to no nodes show what calls cost, from Python down to the operators.
What is left of the measured seconds was not measured piece by piece.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import scipy.sparse as sp
import torch

from benchmarks.timing import write
from fgl_core.clients import NodeClient
from fgl_core.datasets.embedded import GraphDataset
from fgl_core.graph_clients import GraphClient
from fgl_core.models.graph import Graph
from fgl_core.models.packed import PackedGraphs
from fgl_core.study.setup import Setup, graph_models, node_models, set_up
from fgl_core.study.spec import RunSpec

FLOAT, INDEX = 4, 4  # bytes
NARROW = 8  # the width of a model that has hardly anything to do
WORKLOADS = (
    {"dataset": "cora", "method": "fedavg"},
    {"dataset": "pubmed", "method": "fedavg"},
    {"dataset": "cora", "method": "fgssl"},
    {"dataset": "pubmed", "method": "fgssl"},
    {"setting": "NCI1", "method": "local", "norm": "none"},
    {"setting": "COLLAB", "method": "local", "norm": "none"},
)


@dataclass(frozen=True)
class Work:
    """What an operator needs at least."""

    operations: float  # floating point, a multiplication with an addition counts two
    bytes: float

    def seconds(self, operations_per_second: float, bytes_per_second: float) -> float:
        return max(self.operations / operations_per_second, self.bytes / bytes_per_second)


def product(n: int, k: int, m: int) -> Work:
    """A dense product [n, k] × [k, m]."""
    return Work(2 * n * k * m, FLOAT * (n * k + k * m + n * m))


def sparse_product(entries: float, n: int, k: int, m: int) -> Work:
    """A sparse [n, k] of so many entries × dense [k, m]."""
    return Work(2 * entries * m, entries * (FLOAT + INDEX) + FLOAT * (k * m + n * m))


def elementwise(n: int, m: int, arrays: int) -> Work:
    """So many arrays [n, m] read or written, an operation for each number."""
    return Work(arrays * n * m, FLOAT * arrays * n * m)


def gat_pass(client: NodeClient, hidden: int, *, backward: bool, columns: float, edges: float) -> list[Work]:
    """One pass through the two layers, and back; ``columns`` and ``edges`` are the shares a view keeps."""
    n, f, c = client.graph.num_nodes, client.graph.num_features, client.num_classes
    entries = columns * len(client.graph.features.csr[1])
    links = n + 2 * edges * client.graph.num_edges
    forward = [
        sparse_product(entries, n, f, hidden),
        sparse_product(links, n, n, hidden),  # weighted sum over neighbours; the softmax needs less
        elementwise(n, hidden, 2),  # ELU and dropout
        product(n, hidden, c),
        sparse_product(links, n, n, c),
    ]
    if not backward:
        return forward
    return [
        *forward,
        sparse_product(links, n, n, c),
        product(n, c, hidden),
        product(hidden, n, c),
        elementwise(n, hidden, 3),
        sparse_product(2 * links, n, n, hidden),  # by the rows and by the weights
        sparse_product(entries, f, n, hidden),
    ]


def node_round(clients: list[NodeClient], spec: RunSpec) -> Iterator[Work]:
    for client in clients:
        n, f, c = client.graph.num_nodes, client.graph.num_features, client.num_classes
        t, width = len(client.train), spec.hidden
        parameters = f * width + width * c
        for _ in range(spec.local_epochs):
            yield from gat_pass(client, width, backward=True, columns=1, edges=1)
            yield elementwise(parameters, 1, 5)  # SGD: weight, gradient, momentum
            if spec.method.name == "fgssl":
                yield from gat_pass(client, width, backward=True, columns=0.5, edges=0.2)
                yield from gat_pass(client, width, backward=False, columns=0.7, edges=0.7)
                yield product(t, width, t)  # similarities
                yield Work(t * t, 0)  # their exponentials, at best without any traffic
                yield product(t, t, width)  # the gradient
                yield sparse_product(4 * client.graph.num_edges, n, n, c)
        for _ in range(2):
            yield from gat_pass(client, width, backward=False, columns=1, edges=1)
        yield elementwise(parameters, 1, 6)  # received, sent, averaged


def gin_pass(nodes: int, links: int, hidden: int, *, backward: bool) -> list[Work]:
    """One pass through the three layers, and back; readout and head are small beside them."""
    sums = sparse_product(links, nodes, nodes, hidden)
    layer = [sums, product(nodes, hidden, hidden), product(nodes, hidden, hidden)]
    layer += [elementwise(nodes, hidden, 2), elementwise(nodes, hidden, 2)]  # ReLU, ReLU with dropout
    if backward:
        layer += [sums, *4 * [product(nodes, hidden, hidden)], *2 * [elementwise(nodes, hidden, 3)]]
    return 3 * layer


def graph_round(clients: list[GraphClient], spec: RunSpec) -> Iterator[Work]:
    for client in clients:
        edges = (
            client.packed.pointer[client.packed.offsets[1:]]
            - client.packed.pointer[client.packed.offsets[:-1]]
        )
        for part, passes, backward in (
            (client.train, 1, True),
            (client.val, 2, False),
            (client.test, 2, False),
        ):
            nodes, links = int(client.packed.sizes[part].sum()), int(edges[part].sum())
            for _ in range(passes):
                yield from gin_pass(nodes, links + nodes, spec.hidden, backward=backward)


def best_rate(run: Callable[[], object], amount: float, repeats: int = 25) -> float:
    """Amount a second, at the fastest of several tries."""
    run()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return amount / min(seconds)


def rates(nodes: int, hidden: int) -> tuple[float, float]:
    """Operations a second of a matrix product, and bytes a second of a copy, of matrices of this size."""
    a, b, square = torch.rand(nodes, hidden), torch.empty(nodes, hidden), torch.rand(512, 512)
    operations = max(
        best_rate(lambda: square @ square, 2 * 512**3),
        best_rate(lambda: a.T @ a, 2 * nodes * hidden**2),
    )
    return operations, best_rate(lambda: b.copy_(a), 2 * FLOAT * a.numel())


def next_to_nothing(setup: Setup) -> Setup:
    """The same training steps on graphs of a few nodes by narrow models: calls, and hardly any work."""
    spec = setup.spec.model_copy(update={"hidden": NARROW})
    if isinstance(setup.clients[0], NodeClient):
        clients = [small_client(client.name) for client in setup.clients]
        first = clients[0]
        models = node_models(spec, first.graph.num_features, first.num_classes, len(clients))
    else:
        clients = [replace(client, packed=pairs_of_nodes(client)) for client in setup.clients]
        models = graph_models(spec, clients, torch.float32, "cpu")
    return replace(setup, clients=clients, models=models)


def small_client(name: str) -> NodeClient:
    """A client with a ring of twelve nodes, who learns from six of them."""
    nodes = np.arange(12)
    ring = np.sort(np.column_stack([nodes, (nodes + 1) % 12]), axis=1)
    graph = Graph.from_arrays(sp.eye_array(12, format="csr"), ring)
    train, val, test = torch.arange(12).split([6, 3, 3])
    return NodeClient(
        name=name,
        num_classes=2,
        graph=graph,
        nodes=nodes,
        labels=torch.arange(12) % 2,
        train=train,
        val=val,
        test=test,
        evaluation_graph=graph,
        evaluation_rows=torch.arange(12),
    )


def pairs_of_nodes(client: GraphClient) -> PackedGraphs:
    """As many graphs as the client's set has, each of two linked nodes."""
    graphs = len(client.labels)
    first = 2 * np.arange(graphs)
    edges = np.column_stack([first, first + 1])
    x = sp.csr_array(np.tile(np.eye(2, dtype=np.float32), (graphs, 1)))
    offsets = 2 * np.arange(graphs + 1)
    dataset = GraphDataset(client.dataset, x, edges, offsets, client.labels.numpy(), client.num_classes)
    return PackedGraphs(dataset, torch.float32, "cpu")


def seconds_of_a_round(setup: Setup, repeats: int) -> float:
    """Median of the processor time of so many rounds, after one that is not timed."""
    run = setup.run()
    next(run)
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        next(run)
        seconds.append(time.process_time() - started)
    return median(seconds)


def measure(fields: dict[str, str]) -> dict[str, object]:
    """One workload: seconds of a round, its limit and its calls, and the ratio of the first two."""
    spec = RunSpec.parse({**fields, "rounds": 100_000})
    setup = set_up(spec)
    seconds = seconds_of_a_round(setup, repeats=5)
    calls = seconds_of_a_round(next_to_nothing(setup), repeats=15)
    node = isinstance(setup.clients[0], NodeClient)
    work = list((node_round if node else graph_round)(setup.clients, spec))
    first = setup.clients[0]
    nodes = first.graph.num_nodes if node else int(first.packed.sizes.mean() * spec.batch_size)
    operations, bytes_ = rates(nodes, spec.hidden)
    limit = sum(each.seconds(operations, bytes_) for each in work)
    return {
        "workload": " ".join((fields.get("dataset") or fields["setting"], fields["method"])),
        "gflop": round(sum(each.operations for each in work) / 1e9, 4),
        "gbyte": round(sum(each.bytes for each in work) / 1e9, 4),
        "gflop_per_second": round(operations / 1e9, 1),
        "gbyte_per_second": round(bytes_ / 1e9, 1),
        "limit_seconds": round(limit, 5),
        "calls_seconds": round(calls, 5),
        "seconds": round(seconds, 5),
        "ratio": round(seconds / limit, 2),
    }


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for fields in WORKLOADS:
        row = measure(fields)
        print(
            f"{row['workload']:14} {row['gflop']:8.3f} GFLOP, {row['gbyte']:6.3f} GB, limit"
            f" {row['limit_seconds']:.4f} s, calls {row['calls_seconds']:.4f} s, measured"
            f" {row['seconds']:.4f} s: {row['ratio']:.1f} times",
            flush=True,
        )
        rows.append(row)
    write("limit", rows, key=("workload",))


if __name__ == "__main__":
    main()
