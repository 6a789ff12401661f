"""Clients that each hold many graphs and classify them as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from fgl_core.clients import Batch, confusion
from fgl_core.models import build_graph_model
from fgl_core.models.packed import PackedGraphs

if TYPE_CHECKING:
    from fgl_core.federation import Confusion
    from fgl_core.graph_partition import Holding
    from fgl_core.streams import Streams

EVALUATED_NODES = 16_384  # in a batch without gradients, about


@dataclass(frozen=True)
class GraphClient:
    """A client that holds graphs of one set, and trains on mini-batches of them.

    Attributes:
        name: the set's name, ``MUTAG#2`` for the second client that shares a set.
        dataset: the set's name.
        num_classes: classes of the set.
        packed: all graphs of the set; clients of one set share it.
        labels: class of each graph, int64 ``[g]``.
        train, val, test: positions in the set, int64.
        batch_size: graphs in a mini-batch.
    """

    name: str
    dataset: str
    num_classes: int
    packed: PackedGraphs
    labels: torch.Tensor
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray
    batch_size: int

    @property
    def weight(self) -> int:
        """Number of training graphs, ``|D_i|`` in eq. 13 of FedCCH."""
        return len(self.train)

    def batches(self, streams: Streams, number: int, epoch: int) -> Iterator[Batch]:
        """Mini-batches of all training graphs, in a new order each epoch."""
        order = streams.numpy("shuffle", self.name, number, epoch).permutation(self.train)
        for index, start in enumerate(range(0, len(order), self.batch_size)):
            graphs = order[start : start + self.batch_size]
            yield Batch(index, self.packed.batch(graphs), slice(None), self.labels[graphs])

    @torch.no_grad()
    def evaluate(self, model: torch.nn.Module) -> Confusion:
        """Confusion counts of ``model`` on the validation and test graphs."""
        model.eval()
        counts = {}
        for split in ("val", "test"):
            graphs = getattr(self, split)
            predicted = torch.cat([model(batch)[1].argmax(dim=1) for batch in self._in_parts(graphs)])
            counts[split] = confusion(self.labels[graphs], predicted, self.num_classes)
        return counts

    @torch.no_grad()
    def representations(self, model: torch.nn.Module) -> torch.Tensor:
        """Readouts of all training graphs in evaluation mode, ``[t, hidden]``: what FedCCH signs (eq. 9)."""
        model.eval()
        return torch.cat([model(batch)[0] for batch in self._in_parts(self.train)])

    def _in_parts(self, graphs: np.ndarray) -> Iterator:
        """All of ``graphs`` in batches of a bounded number of nodes, to bound memory."""
        part = np.cumsum(self.packed.sizes[graphs]) // EVALUATED_NODES
        for some in np.split(graphs, np.flatnonzero(np.diff(part)) + 1):
            yield self.packed.batch(some)


def graph_clients(
    holdings: list[Holding],
    *,
    batch_size: int,
    dtype: torch.dtype,
    device: str | torch.device = "cpu",
    packed: dict[str, PackedGraphs] | None = None,
) -> list[GraphClient]:
    """One client per holding; the graphs of a set are packed once, whatever the number of its clients.

    Args:
        batch_size: graphs in a mini-batch.
        dtype: floating point type of the features.
        device: where they are trained.
        packed: sets that are packed already, by name.
    """
    packed = dict(packed or {})
    clients = []
    for holding in holdings:
        dataset = holding.dataset
        if dataset.name not in packed:
            packed[dataset.name] = PackedGraphs(dataset, dtype, device)
        clients.append(
            GraphClient(
                name=holding.name,
                dataset=dataset.name,
                num_classes=dataset.num_classes,
                packed=packed[dataset.name],
                labels=torch.from_numpy(dataset.y).to(device),
                train=holding.train,
                val=holding.val,
                test=holding.test,
                batch_size=batch_size,
            )
        )
    return clients


def initial_models(
    clients: list[GraphClient],
    streams: Streams,
    *,
    backbone: str,
    hidden: int,
    dropout: float,
    norm: str,
    share_norm: bool,
    dtype: torch.dtype,
    common_start: bool = True,
) -> list[torch.nn.Module]:
    """The model of each client: what travels is drawn once, by the server, the rest by each client.

    Clients' streams are named after them, so that a client starts alike in every setting. Signatures can be
    compared only between clients that start from the same shared tensors.

    Args:
        backbone: ``gin`` or ``star``.
        norm: ``none``, ``batch`` or ``pf``.
        share_norm: whether the norms travel.
        dtype: of the parameters.
        common_start: False lets every client draw the shared tensors, too: a control, in which signatures say
            nothing at first.
    """

    def build(features: int, classes: int, generator: torch.Generator) -> torch.nn.Module:
        return build_graph_model(
            backbone,
            features,
            hidden,
            classes,
            norm=norm,
            share_norm=share_norm,
            dropout=dropout,
            generator=generator,
            dtype=dtype,
        )

    server = build(1, 1, streams.torch("init")).state_dict()
    models = []
    for client in clients:
        model = build(client.packed.num_features, client.num_classes, streams.torch("init", client.name))
        if common_start:
            shared = {name: server[name] for name in server if not name.startswith(model.local_modules)}
            model.load_state_dict(shared, strict=False)
        models.append(model)
    return models
