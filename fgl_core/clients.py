"""Clients: who holds which data, in the form that the round loop trains and evaluates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from fgl_core.models.graph import Graph

if TYPE_CHECKING:
    from fgl_core.datasets.node import NodeDataset
    from fgl_core.federation import Confusion
    from fgl_core.partition import Subgraph
    from fgl_core.streams import Streams


@dataclass(frozen=True)
class Batch:
    """What one step of local training sees.

    Attributes:
        index: position in the epoch.
        graph: the input of the model.
        rows: rows of the output that carry a training label, int64 ``[t]``.
        labels: their classes, int64 ``[t]``.
    """

    index: int
    graph: Graph
    rows: torch.Tensor
    labels: torch.Tensor


class Client(Protocol):
    """What the round loop asks of a client."""

    name: str

    @property
    def weight(self) -> int:
        """Number of training examples, ``|D_m|`` in eq. 3 of FGSSL."""

    def batches(self, streams: Streams, number: int, epoch: int) -> Iterator[Batch]:
        """The batches of one local epoch."""

    def evaluate(self, model: torch.nn.Module) -> Confusion:
        """Confusion counts of ``model`` on this client's validation and test examples."""


@dataclass(frozen=True)
class NodeClient:
    """A client that holds a subgraph and classifies its nodes, full batch.

    Attributes:
        graph: the subgraph it trains on.
        nodes: where its nodes stand in the whole graph, int64 ``[n]``.
        labels: classes of its nodes, int64 ``[n]``.
        train, val, test: node positions in ``graph``, int64.
        evaluation_graph: the graph it is evaluated on: its own, or the whole graph with cross-client edges.
        evaluation_rows: where its nodes stand in ``evaluation_graph``, int64 ``[n]``.
    """

    name: str
    num_classes: int
    graph: Graph
    nodes: np.ndarray
    labels: torch.Tensor
    train: torch.Tensor
    val: torch.Tensor
    test: torch.Tensor
    evaluation_graph: Graph
    evaluation_rows: torch.Tensor

    @property
    def weight(self) -> int:
        return len(self.train)

    def batches(self, streams: Streams, number: int, epoch: int) -> Iterator[Batch]:
        yield Batch(0, self.graph, self.train, self.labels[self.train])

    @torch.no_grad()
    def evaluate(self, model: torch.nn.Module) -> Confusion:
        model.eval()
        _, logits = model(self.evaluation_graph)
        predicted = logits.argmax(dim=1)[self.evaluation_rows]
        counts = {}
        for split in ("val", "test"):
            rows = getattr(self, split)
            counts[split] = confusion(self.labels[rows], predicted[rows], self.num_classes)
        return counts


def confusion(labels: torch.Tensor, predicted: torch.Tensor, num_classes: int) -> np.ndarray:
    """How many examples of each class were taken for which, int64 [classes, classes]; rows are the true ones.

    Args:
        labels, predicted: classes, int64 of the same length.
        num_classes: how many there are.
    """
    counts = torch.bincount(labels * num_classes + predicted, minlength=num_classes**2)
    return counts.reshape(num_classes, num_classes).cpu().numpy()


def node_clients(
    dataset: NodeDataset,
    subgraphs: list[Subgraph],
    evaluation: str,
    dtype: torch.dtype,
    device: str | torch.device = "cpu",
) -> list[NodeClient]:
    """One client per subgraph.

    Args:
        evaluation: ``union`` evaluates each client on its own subgraph, ``global`` on the whole graph,
            with the edges between clients.
        dtype: floating point type of the features.
        device: where they are trained.
    """

    def place(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(device)

    whole = None
    if evaluation == "global":
        whole = Graph.from_arrays(dataset.x, dataset.edges, dtype=dtype, device=device)
    clients = []
    for index, part in enumerate(subgraphs):
        graph = Graph.from_arrays(part.x, part.edges, dtype=dtype, device=device)
        clients.append(
            NodeClient(
                name=f"client-{index}",
                num_classes=dataset.num_classes,
                graph=graph,
                nodes=part.nodes,
                labels=place(part.y),
                train=place(np.flatnonzero(part.train)),
                val=place(np.flatnonzero(part.val)),
                test=place(np.flatnonzero(part.test)),
                evaluation_graph=whole or graph,
                evaluation_rows=place(part.nodes if whole else np.arange(len(part.nodes))),
            )
        )
    return clients
