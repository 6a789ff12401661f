"""The round loop, the same for every method: broadcast, local training, upload, aggregation, evaluation.

The loop knows no method's name. A method (:mod:`fgl_core.methods`) says through its hooks which tensors
travel, what the local loss is, what else a client reports, and how the server turns updates into what each
client gets next. Clients are visited one after the other; every random draw comes from a named stream, so
that their order does not matter.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

if TYPE_CHECKING:
    from fgl_core.clients import Batch, Client
    from fgl_core.methods import Method
    from fgl_core.streams import Streams

Tensors = dict[str, torch.Tensor]
# by split ("val", "test"): int64 [classes, classes] counts, rows are the true class
Confusion = dict[str, np.ndarray]


class Divergence(ArithmeticError):
    """A client's loss or parameters are no longer finite."""


@dataclass(frozen=True)
class LocalTraining:
    """How a client trains in one round.

    Attributes:
        epochs: local epochs.
        optimizer: makes a client's optimiser from its parameters.
        optimizer_state: ``reset`` makes a client's optimiser anew each round, ``keep`` keeps its moments.
        clip: largest norm of a step's gradient; None does not clip.
    """

    epochs: int
    optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer]
    optimizer_state: Literal["reset", "keep"]
    clip: float | None = None


@dataclass(frozen=True)
class Received:
    """The model as a client received it: what local training is calibrated against. Frozen, never trained."""

    tensors: Tensors
    architecture: torch.nn.Module

    @cached_property
    def model(self) -> torch.nn.Module:
        """The received model in evaluation mode, without gradients."""
        own = {**dict(self.architecture.named_parameters()), **dict(self.architecture.named_buffers())}
        # the copy gets the received tensors in place of the architecture's own, which are not copied
        replaced = {id(own[name]): tensor for name, tensor in self.tensors.items()}
        return deepcopy(self.architecture, replaced).eval().requires_grad_(False)


@dataclass(frozen=True)
class LocalStep:
    """One step of local training, as a method's loss sees it."""

    model: torch.nn.Module
    received: Received
    client: Client
    batch: Batch
    streams: Streams
    round: int
    epoch: int

    def generator(self, purpose: str) -> torch.Generator:
        """The stream of this purpose for this client, round, epoch and batch."""
        return self.streams.torch(purpose, self.client.name, self.round, self.epoch, self.batch.index)


@dataclass(frozen=True)
class Preparation:
    """The clients as a method trains them, and what travelled to make them so, by kind."""

    clients: list[Client]
    bytes_up: dict[str, int] = field(default_factory=dict)
    bytes_down: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Update:
    """What one client sends after local training."""

    client: int
    weight: int  # number of training examples, |D_m|
    tensors: Tensors
    report: dict[str, np.ndarray]


@dataclass
class Server:
    """What the server holds.

    Attributes:
        outbox: the tensors each client gets next; during aggregation, what each one got last.
        streams: where a method's own draws come from.
        round: the number of the round, from 1.
        state: what the method remembers between rounds.
        notes: what the method says of this round for the record, ready for JSON.
    """

    outbox: list[Tensors]
    streams: Streams
    round: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def broadcast(self, tensors: Tensors) -> None:
        """Send the same tensors to every client."""
        self.outbox = [tensors] * len(self.outbox)


@dataclass(frozen=True)
class Round:
    """What was measured in one round. ``bytes_up`` and ``bytes_down`` are summed over clients, by kind."""

    number: int
    loss: float
    trained: list[Confusion]  # after local training, before aggregation
    aggregated: list[Confusion]  # after aggregation and download
    everywhere: list[np.ndarray] | None  # each client's model on all clients' test examples (method local)
    bytes_up: dict[str, int]
    bytes_down: dict[str, int]
    notes: dict[str, Any]  # what the method says of the round, e.g. who is in which cluster


def federate(
    method: Method,
    clients: list[Client],
    models: list[torch.nn.Module],
    training: LocalTraining,
    *,
    rounds: int,
    streams: Streams,
    everywhere: bool = False,
    on_trained: Callable[[int, list[torch.nn.Module]], None] | None = None,
) -> Iterator[Round]:
    """Train ``clients`` together and yield each round as it ends.

    Round t broadcasts, trains, uploads and aggregates; the evaluation after it uses the model that round
    t + 1 would broadcast. The ledger counts one broadcast and one upload per client and round; what a method
    sends before the first round counts in it.

    Args:
        models: one initial model per client, trained in place.
        everywhere: evaluate each client's model on all clients' test examples, too.
        on_trained: called in each round with its number and the clients' models, before aggregation.

    Raises:
        Divergence: when a client's loss or parameters are not finite.
    """
    travelling = method.travels(models[0])
    prepared = method.prepare(clients, streams)
    clients = prepared.clients
    server = Server(
        outbox=[copies(local, travelling) for local in models],
        streams=streams,
    )
    optimizers: dict[int, torch.optim.Optimizer] = {}

    for number in range(1, rounds + 1):
        # every kind in every round, so that each makes one curve
        bytes_up = Counter({kind: size * (number == 1) for kind, size in prepared.bytes_up.items()})
        bytes_down = Counter({kind: size * (number == 1) for kind, size in prepared.bytes_down.items()})
        losses, updates = [], []
        for index, client in enumerate(clients):
            local = models[index]
            bytes_down["model"] += sum(tensor.nbytes for tensor in server.outbox[index].values())
            received = Received(copies(local, local.state_dict()), local)
            if index not in optimizers or training.optimizer_state == "reset":
                optimizers[index] = training.optimizer(local.parameters())
            losses.append(
                train_locally(method, client, local, received, training, optimizers[index], streams, number)
            )
            tensors = copies(local, travelling)
            report = method.report(client, local)
            bytes_up["model"] += sum(tensor.nbytes for tensor in tensors.values())
            for kind, values in report.items():
                bytes_up[kind] += values.nbytes
            updates.append(Update(index, client.weight, tensors, report))
        trained = [client.evaluate(local) for client, local in zip(clients, models, strict=True)]

        if on_trained:
            on_trained(number, models)
        server.round, server.notes = number, {}
        method.aggregate(server, updates)
        for local, tensors in zip(models, server.outbox, strict=True):
            local.load_state_dict(tensors, strict=False)
        aggregated = [client.evaluate(local) for client, local in zip(clients, models, strict=True)]
        crossed = None
        if everywhere:
            crossed = [sum(client.evaluate(local)["test"] for client in clients) for local in models]
        loss = float(np.average(losses, weights=[client.weight for client in clients]))
        yield Round(
            number, loss, trained, aggregated, crossed, dict(bytes_up), dict(bytes_down), server.notes
        )


def train_locally(
    method: Method,
    client: Client,
    model: torch.nn.Module,
    received: Received,
    training: LocalTraining,
    optimizer: torch.optim.Optimizer,
    streams: Streams,
    number: int,
) -> float:
    """Train one client for its local epochs; return the mean loss over its steps.

    Args:
        model: trained in place.
        received: the model as it came, which some losses compare with.
        number: of the round, which names the streams of its random numbers.

    Raises:
        Divergence: when the loss or the parameters are not finite.
    """
    model.train()
    losses = []
    for epoch in range(training.epochs):
        for batch in client.batches(streams, number, epoch):
            loss = method.loss(LocalStep(model, received, client, batch, streams, number, epoch))
            losses.append(loss.item())
            if not math.isfinite(losses[-1]):
                raise Divergence(f"the loss of {client.name} is {losses[-1]} in round {number}")
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            if training.clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), training.clip)
            optimizer.step()
    # a sum is finite only if every number is, and costs a fraction of looking at each
    if not all(torch.isfinite(parameter.detach().sum()) for parameter in model.parameters()):
        raise Divergence(f"the parameters of {client.name} are not finite after round {number}")
    return float(np.mean(losses))


def copies(model: torch.nn.Module, names: Iterable[str]) -> Tensors:
    """The model's tensors of these names, as they are now."""
    state = model.state_dict()
    return {name: state[name].clone() for name in names}
