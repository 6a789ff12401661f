"""How much clients of FedCCH give away about their graphs: attacks on what they send."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from fgl_core.analysis.privacy import attack, changed_bits, kept_by_hash
from fgl_core.datasets import GraphDataset, load_graph_dataset
from fgl_core.errors import InputError
from fgl_core.federation import LocalTraining, Received, Tensors, copies, federate, train_locally
from fgl_core.graph_clients import GraphClient, graph_clients
from fgl_core.graph_partition import Holding
from fgl_core.models.packed import PackedGraphs
from fgl_core.signature import signature
from fgl_core.streams import Streams
from fgl_core.study.setup import graph_models, graph_training
from fgl_core.study.spec import GraphSpec, PrivacySpec, Spec

PARTS = ("federation", "shadow", "target")  # of each set; no graph is in two of them
Sent = dict[str, np.ndarray]  # by part: signature, representation, update, norms


def leakage(spec: PrivacySpec, device: torch.device) -> dict[str, Any]:
    """Run the attacks of a specification, and say for the record what they found.

    Args:
        device: where the models are trained.

    Returns:
        ``classes`` among which the attacker guesses, all equally frequent; ``targets``: number of clients
        attacked; ``rounds`` attacked; ``correct``: by view, right guesses in each of these rounds; ``kept``:
        :func:`~fgl_core.analysis.privacy.kept_by_hash` in each; ``changed_bits``: at the last round, how many
        graphs of the target clients change 0, 1, 2, ... bits when they are left out.

    Raises:
        InputError: the data cannot be had, or has too few graphs.
        Divergence: training breaks down.
    """
    scene = Scene(spec, device)
    sent: dict[str, list[list[Sent]]] = {"shadow": [], "target": []}
    changed = []
    for side, observed in sent.items():
        for number in range(spec.clients):
            visit = scene.visit(side, number)
            observed.append(list(visit.watched()))
            if side == "target":
                changed.append(changed_bits(visit.represented()))
    truth = np.array([scene.truth(number) for number in range(spec.clients)])
    correct: dict[str, list[int]] = {}
    kept = []
    for moment in range(len(spec.attacked)):
        shadow, target = (_stacked([one[moment] for one in sent[side]]) for side in ("shadow", "target"))
        for view, guesses in attack(shadow, truth, target).items():
            correct.setdefault(view, []).append(int((guesses == truth).sum()))
        kept.append(round(kept_by_hash(target["representation"]), 5))
    return {
        "classes": spec.answers,
        "targets": spec.clients,
        "rounds": list(spec.attacked),
        "correct": correct,
        "kept": kept,
        "changed_bits": np.bincount(np.concatenate(changed)).tolist(),
    }


@dataclass(frozen=True)
class Scene:
    """Who holds what, and what the server broadcasts.

    Every set is cut into three :data:`PARTS`. The server's model is trained on the first, by FedAvg with PF
    kept local; shadow clients draw their graphs from the second, target clients from the third. Each of them
    takes part in this federation as one among many: it gets what the server broadcasts, and its own upload is
    too small a share to change that.
    """

    spec: PrivacySpec
    device: torch.device

    @cached_property
    def datasets(self) -> dict[str, GraphDataset]:
        return {name: load_graph_dataset(name) for name in self.spec.datasets}

    @cached_property
    def packed(self) -> dict[str, PackedGraphs]:
        return {name: PackedGraphs(data, device=self.device) for name, data in self.datasets.items()}

    @cached_property
    def run(self) -> GraphSpec:
        """The federation's run, for what it has in common with all others: model, optimiser, streams."""
        fields = {"setting": self.spec.setting, "method": "fedavg", "norm": "pf"}
        return Spec.parse(fields | {"seed": self.spec.seed})

    @property
    def streams(self) -> Streams:
        return self.run.streams

    @cached_property
    def training(self) -> LocalTraining:
        return graph_training(self.run)

    @cached_property
    def asked(self) -> int | None:
        """The graph whose membership is guessed; None where something else is."""
        if self.spec.secret != "member":
            return None
        name = self.spec.dataset
        return int(self.streams.numpy("asked", name).integers(self.datasets[name].num_graphs))

    @cached_property
    def graphs(self) -> dict[str, dict[str, np.ndarray]]:
        """By set and part, positions of graphs. The graph that is asked about is in no part."""
        found = {}
        for name, dataset in self.datasets.items():
            order = self.streams.numpy("parts", name).permutation(dataset.num_graphs)
            if name == self.spec.dataset:
                order = order[order != self.asked]
            found[name] = dict(zip(PARTS, np.array_split(order, len(PARTS)), strict=True))
        return found

    def truth(self, number: int) -> int:
        """What is true of a shadow or target client: the set's place, or 1 for what is asked."""
        return number % self.spec.answers

    @cached_property
    def broadcasts(self) -> list[Tensors]:
        """What the server sends in round 1, 2, ... up to the last."""
        clients = self._clients(
            {name: (dataset, self.graphs[name]["federation"]) for name, dataset in self.datasets.items()}
        )
        models = graph_models(self.run, clients, torch.float32, self.device)
        method = self.run.method
        names = method.travels(models[0])
        first, rounds = copies(models[0], names), self.spec.rounds - 1
        after = federate(method, clients, models, self.training, rounds=rounds, streams=self.streams)
        return [first, *(copies(models[0], names) for _ in after)]

    def visit(self, side: str, number: int) -> Visit:
        """A shadow or target client, as it trains along."""
        truth = self.truth(number)
        dataset = self.datasets[self.spec.dataset or self.spec.datasets[truth]]
        rng = self.streams.numpy("graphs", side, number)
        graphs = self._drawn(dataset, self.graphs[dataset.name][side], truth, rng)
        (client,) = self._clients({f"{side}-{number}": (dataset, graphs)})
        (model,) = graph_models(self.run, [client], torch.float32, self.device)
        return Visit(self, client, model)

    def _clients(self, held: dict[str, tuple[GraphDataset, np.ndarray]]) -> list[GraphClient]:
        """Clients by name, who train on all their graphs; what they are evaluated on is not looked at."""
        holdings = []
        for name, (dataset, graphs) in held.items():
            train = np.sort(graphs)
            holdings.append(Holding(name, dataset, train, train[:1], train[:1]))
        return graph_clients(
            holdings,
            batch_size=self.run.batch_size,
            dtype=torch.float32,
            device=self.device,
            packed=self.packed,
        )

    def _drawn(
        self, dataset: GraphDataset, part: np.ndarray, truth: int, rng: np.random.Generator
    ) -> np.ndarray:
        """The graphs of one client, out of a part of the set."""
        count, secret = self.spec.graphs, self.spec.secret
        if secret == "set":
            return _some(part, count, dataset, rng)
        if secret == "member":
            others = _some(part, count, dataset, rng)
            return np.append(others[1:], self.asked) if truth else others
        sizes = np.diff(dataset.offsets)
        has = (dataset.y == 0 if secret == "classes" else sizes > np.median(sizes))[part]
        with_it = count * (3 if truth else 1) // 4
        return np.concatenate(
            [_some(part[has], with_it, dataset, rng), _some(part[~has], count - with_it, dataset, rng)]
        )


@dataclass
class Visit:
    """A client that takes part in the federation, watched by the server."""

    scene: Scene
    client: GraphClient
    model: torch.nn.Module

    def watched(self) -> Iterator[Sent]:
        """What it sends in each round that is attacked."""
        scene, method = self.scene, self.scene.run.method
        optimizer = scene.training.optimizer(self.model.parameters())
        for number, tensors in enumerate(scene.broadcasts, start=1):
            self.model.load_state_dict(tensors, strict=False)
            received = Received(copies(self.model, self.model.state_dict()), self.model)
            train_locally(
                method,
                self.client,
                self.model,
                received,
                scene.training,
                optimizer,
                scene.streams,
                number,
            )
            if number in scene.spec.attacked:
                mean, after = self.represented().mean(axis=0), self.model.state_dict()
                yield {
                    "signature": signature(mean),
                    "representation": mean.astype(np.float32),
                    "update": _joined(after[name] - sent for name, sent in tensors.items()),
                    # stay at home with FedCCH; would be seen if PF were uploaded
                    "norms": _joined(after[name] for name in after if name.startswith("norms.")),
                }

    def represented(self) -> np.ndarray:
        """The representation of each of its graphs by its model, as it is now, float64 [graphs, hidden]."""
        return self.client.representations(self.model).double().cpu().numpy()


def _joined(tensors: Iterator[torch.Tensor]) -> np.ndarray:
    return torch.cat([tensor.ravel() for tensor in tensors]).cpu().numpy()


def _some(graphs: np.ndarray, count: int, dataset: GraphDataset, rng: np.random.Generator) -> np.ndarray:
    if len(graphs) < count:
        raise InputError(
            f"a client would need {count} graphs of a kind, and its third of {dataset.name} has"
            f" {len(graphs)}: set graphs to fewer"
        )
    return rng.choice(graphs, count, replace=False)


def _stacked(clients: list[Sent]) -> Sent:
    return {part: np.stack([sent[part] for sent in clients]) for part in clients[0]}
