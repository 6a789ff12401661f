"""What a specification sets up: data, clients, initial models, local training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from fgl_core.clients import Client, node_clients
from fgl_core.datasets import load_node_dataset
from fgl_core.datasets.groups import load_graph_dataset
from fgl_core.errors import InputError
from fgl_core.federation import LocalTraining, Round, federate
from fgl_core.graph_clients import GraphClient, graph_clients, initial_models
from fgl_core.graph_partition import hold_graphs, holding_statistics
from fgl_core.models import build_model
from fgl_core.partition import (
    QUOTAS,
    partition_digest,
    partition_nodes,
    partition_statistics,
    split_nodes,
    subgraphs,
)
from fgl_core.study.spec import GraphSpec, NodeSpec, RunSpec


@dataclass(frozen=True)
class Setup:
    """A run, ready to start.

    Attributes:
        models: the initial model of each client.
        partition: what the record says of who holds what.
        pooled: clients share their classes, and accuracy is over all their test examples together; else it is
            the mean over clients.
    """

    spec: RunSpec
    clients: list[Client]
    models: list[torch.nn.Module]
    training: LocalTraining
    partition: dict[str, Any]
    pooled: bool

    def run(self, on_trained: Callable[[int, list[torch.nn.Module]], None] | None = None) -> Iterator[Round]:
        """Train, and yield each round as it ends.

        Args:
            on_trained: as in :func:`~fgl_core.federation.federate`.
        """
        return federate(
            self.spec.method,
            self.clients,
            self.models,
            self.training,
            rounds=self.spec.rounds,
            streams=self.spec.streams,
            everywhere=self.pooled and self.spec.method.evaluates_everywhere,
            on_trained=on_trained,
        )


def set_up(spec: RunSpec, dtype: torch.dtype = torch.float32, device: str | torch.device = "cpu") -> Setup:
    """Load, partition and split the data; build clients and models.

    Args:
        dtype: floating point type of data and models.
        device: where the models are trained. Every random number is drawn on the CPU, whatever the device.

    Raises:
        InputError: the data cannot be had, or cannot be split over so many clients.
    """
    setup = (_set_up_graphs if isinstance(spec, GraphSpec) else _set_up_nodes)(spec, dtype, device)
    for part, use in (("val", "choose a round by"), ("test", "measure accuracy on")):
        if not any(client[part] for client in setup.partition["clients"]):
            raise InputError(
                f"no client has {part} examples to {use}: take another split or a larger dataset"
            )
    return setup


def _set_up_nodes(spec: NodeSpec, dtype: torch.dtype, device: str | torch.device) -> Setup:
    streams = spec.streams
    dataset = load_node_dataset(spec.dataset, features=spec.features, keep_unlabelled=spec.keep_unlabelled)
    # the split is drawn before and independently of the partition: every M shares its test nodes
    split = split_nodes(dataset.y, spec.split, streams.numpy("split"), quota=QUOTAS.get(spec.dataset))
    owner = partition_nodes(dataset, spec.clients, spec.partition, streams.numpy("partition"))
    parts = subgraphs(dataset, split, owner)
    statistics = partition_statistics(dataset, split, owner)
    return Setup(
        spec=spec,
        clients=node_clients(dataset, parts, spec.evaluation, dtype, device),
        models=node_models(spec, dataset.x.shape[1], dataset.num_classes, len(parts), dtype, device),
        training=LocalTraining(
            epochs=spec.local_epochs,
            optimizer=partial(
                torch.optim.SGD,
                lr=spec.lr,
                momentum=spec.momentum,
                weight_decay=spec.weight_decay,
                fused=True,
            ),
            optimizer_state=spec.optimizer_state,
            clip=spec.clip,
        ),
        partition={
            "hash": partition_digest(owner, split),
            **{
                name: round(value, 5) if isinstance(value, float) else value
                for name, value in statistics.items()
            },
        },
        pooled=True,
    )


def _set_up_graphs(spec: GraphSpec, dtype: torch.dtype, device: str | torch.device) -> Setup:
    datasets = [load_graph_dataset(name, attributes=spec.attributes) for name in spec.datasets]
    holdings = hold_graphs(datasets, spec.streams, spec.clients_per_dataset)
    clients = graph_clients(holdings, batch_size=spec.batch_size, dtype=dtype, device=device)
    return Setup(
        spec=spec,
        clients=clients,
        models=graph_models(spec, clients, dtype, device),
        training=graph_training(spec),
        partition=holding_statistics(holdings),
        pooled=False,
    )


def node_models(
    spec: NodeSpec,
    features: int,
    classes: int,
    clients: int,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> list[torch.nn.Module]:
    """The initial model of each of so many clients that hold subgraphs, all alike, on its device.

    Args:
        features, classes: widths of the input and of the logits.
    """
    return [
        build_model(
            spec.backbone,
            features,
            spec.hidden,
            classes,
            dropout=spec.dropout,
            generator=spec.streams.torch("init"),
            dtype=dtype,
        ).to(device)
        for _ in range(clients)
    ]


def graph_models(
    spec: GraphSpec, clients: list[GraphClient], dtype: torch.dtype, device: str | torch.device
) -> list[torch.nn.Module]:
    """The initial model of each client that holds graphs, on its device."""
    models = initial_models(
        clients,
        spec.streams,
        backbone=spec.method.backbone or "gin",
        hidden=spec.hidden,
        dropout=spec.dropout,
        norm=spec.norm,
        share_norm=spec.share_norm,
        dtype=dtype,
        common_start=spec.common_start,
    )
    return [model.to(device) for model in models]


def graph_training(spec: GraphSpec) -> LocalTraining:
    """How clients that hold graphs train."""
    return LocalTraining(
        epochs=spec.local_epochs,
        optimizer=partial(torch.optim.Adam, lr=spec.lr, weight_decay=spec.weight_decay, fused=True),
        optimizer_state=spec.optimizer_state,
    )
