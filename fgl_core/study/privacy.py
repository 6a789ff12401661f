"""How much clients of FedCCH give away about their graphs: attacks on what they send."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch

from fgl_core.analysis.privacy import attack, changed_bits, kept_by_hash
from fgl_core.datasets import GraphDataset, load_graph_dataset
from fgl_core.errors import InputError
from fgl_core.federation import LocalTraining, Received, Tensors, copies, federate, train_locally
from fgl_core.graph_clients import GraphClient, graph_clients, initial_models
from fgl_core.graph_partition import Holding
from fgl_core.methods import METHODS
from fgl_core.models.packed import PackedGraphs
from fgl_core.signature import signature
from fgl_core.streams import Streams
from fgl_core.study.spec import GraphSpec, PrivacySpec, Spec

MAJORITY = 0.75  # of a client's graphs have what the attacker asks about, or have not
Sent = dict[str, np.ndarray]  # by part: signature, representation, update, norms


def leakage(spec: PrivacySpec) -> dict[str, Any]:
    """Run the attacks of a specification, and say for the record what they found.

    Returns:
        ``classes`` among which the attacker guesses, all equally frequent; ``targets``: number of clients
        attacked; ``rounds`` attacked; ``correct``: by view, right guesses in each of these rounds; ``kept``:
        :func:`~fgl_core.analysis.privacy.kept_by_hash` in each; ``changed_bits``: at the last round, how many
        graphs of the target clients change 0, 1, 2, ... bits when they are left out.

    Raises:
        InputError: the data cannot be had, or has too few graphs.
        Divergence: training breaks down.
    """
    scene = Scene(spec)
    sent: dict[str, list[list[Sent]]] = {"shadow": [], "target": []}
    changed = np.zeros(1, np.int64)
    for side, observed in sent.items():
        for number in range(spec.clients):
            visit = scene.visit(side, number)
            observed.append(list(visit.watched()))
            if side == "target":
                bits = np.bincount(changed_bits(visit.graphs), minlength=len(changed))
                changed = bits + np.pad(changed, (0, len(bits) - len(changed)))
    truth = np.array([scene.truth(number) for number in range(spec.clients)])
    correct: dict[str, list[int]] = {}
    kept = []
    for moment in range(len(spec.attacked)):
        shadow, target = (_stacked([one[moment] for one in sent[side]]) for side in ("shadow", "target"))
        for view, guesses in attack(shadow, truth, target).items():
            correct.setdefault(view, []).append(int((guesses == truth).sum()))
        kept.append(round(kept_by_hash(target["representation"]), 5))
    return {
        "classes": scene.classes,
        "targets": spec.clients,
        "rounds": list(spec.attacked),
        "correct": correct,
        "kept": kept,
        "changed_bits": changed.tolist(),
    }


@dataclass(frozen=True)
class Scene:
    """Who holds what, and what the server broadcasts.

    Every set is cut into two halves. The server's model is trained on the first half of each, by FedAvg with
    PF kept local; shadow clients draw their graphs from the first half, target clients from the second. Each
    of them takes part in this federation as one among many: it gets what the server broadcasts, and its own
    upload is too small a share to change that.
    """

    spec: PrivacySpec

    @cached_property
    def streams(self) -> Streams:
        return Streams(self.spec.seed)

    @cached_property
    def datasets(self) -> dict[str, GraphDataset]:
        return {name: load_graph_dataset(name) for name in self.spec.datasets}

    @cached_property
    def packed(self) -> dict[str, PackedGraphs]:
        return {name: PackedGraphs(dataset) for name, dataset in self.datasets.items()}

    @cached_property
    def run(self) -> GraphSpec:
        """The federation's run, for what it has in common with all others: model and optimiser."""
        return Spec.parse(
            {"setting": self.spec.setting, "method": "fedavg", "norm": "pf", "rounds": self.spec.rounds}
        )

    @cached_property
    def training(self) -> LocalTraining:
        adam = partial(torch.optim.Adam, lr=self.run.lr, weight_decay=self.run.weight_decay, fused=True)
        return LocalTraining(self.run.local_epochs, adam, self.run.optimizer_state)

    @cached_property
    def halves(self) -> dict[str, dict[str, np.ndarray]]:
        """By set and side, positions of graphs. The graph whose membership is asked about is in neither."""
        found = {}
        for name, dataset in self.datasets.items():
            order = self.streams.numpy("halves", name).permutation(dataset.num_graphs)
            if name == self.spec.dataset and self.spec.secret == "member":
                order = order[1:]
            found[name] = dict(zip(("shadow", "target"), np.array_split(order, 2), strict=True))
        return found

    @cached_property
    def asked(self) -> int:
        """The graph whose membership is asked about."""
        name = self.spec.dataset
        return int(self.streams.numpy("halves", name).permutation(self.datasets[name].num_graphs)[0])

    @property
    def classes(self) -> int:
        return len(self.datasets) if self.spec.secret == "set" else 2

    def truth(self, number: int) -> int:
        """What is true of a shadow or target client: all answers are equally frequent."""
        return number % self.classes

    @cached_property
    def broadcasts(self) -> list[Tensors]:
        """What the server sends in round 1, 2, ... up to the last."""
        holdings = [
            Holding(name, dataset, *(np.sort(self.halves[name]["shadow"])[:end] for end in (None, 1, 1)))
            for name, dataset in self.datasets.items()
        ]
        clients = graph_clients(holdings, batch_size=self.run.batch_size, dtype=torch.float32)
        models = self._models(clients)
        method = self.run.method
        names = method.travels(models[0])
        first, rounds = copies(models[0], names), self.spec.rounds - 1
        after = federate(method, clients, models, self.training, rounds=rounds, streams=self.streams)
        return [first, *(copies(models[0], names) for _ in after)]

    def visit(self, side: str, number: int) -> Visit:
        """A shadow or target client, as it trains along."""
        truth = self.truth(number)
        name = list(self.datasets)[truth] if self.spec.dataset is None else self.spec.dataset
        rng = self.streams.numpy("graphs", side, number)
        graphs = np.sort(self._drawn(self.datasets[name], self.halves[name][side], truth, rng))
        dataset = self.datasets[name]
        client = GraphClient(
            name=f"{side}-{number}",
            dataset=name,
            num_classes=dataset.num_classes,
            packed=self.packed[name],
            labels=torch.from_numpy(dataset.y),
            train=graphs,
            val=graphs,
            test=graphs,
            batch_size=self.run.batch_size,
        )
        return Visit(self, client, self._models([client])[0])

    def _models(self, clients: list[GraphClient]) -> list[torch.nn.Module]:
        run = self.run
        return initial_models(
            clients,
            self.streams,
            backbone="gin",
            hidden=run.hidden,
            dropout=run.dropout,
            norm=run.norm,
            share_norm=False,
            dtype=torch.float32,
        )

    def _drawn(
        self, dataset: GraphDataset, half: np.ndarray, truth: int, rng: np.random.Generator
    ) -> np.ndarray:
        """The graphs of one client, out of a half of the set."""
        count, asked = self.spec.graphs, self.spec.secret
        if asked == "set":
            return _some(half, count, dataset, rng)
        if asked == "member":
            others = _some(half, count, dataset, rng)
            return np.append(others[1:], self.asked) if truth else others
        has = dataset.y[half] == 0 if asked == "classes" else self._large(dataset)[half]
        most = round(MAJORITY * count)
        with_it = most if truth else count - most
        return np.concatenate(
            [_some(half[has], with_it, dataset, rng), _some(half[~has], count - with_it, dataset, rng)]
        )

    @staticmethod
    def _large(dataset: GraphDataset) -> np.ndarray:
        sizes = np.diff(dataset.offsets)
        return sizes > np.median(sizes)


@dataclass
class Visit:
    """A client that takes part in the federation, watched by the server."""

    scene: Scene
    client: GraphClient
    model: torch.nn.Module

    def watched(self) -> Iterator[Sent]:
        """What it sends in each round that is attacked."""
        scene, method = self.scene, METHODS["fedavg"]()
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
                mean = self.graphs.mean(axis=0)
                before, after = received.tensors, self.model.state_dict()
                change = {name: (after[name] - before[name]).ravel() for name in after}
                norms = [change[name] for name in change if name.startswith("norms.")]
                yield {
                    "signature": signature(mean),
                    "representation": mean.astype(np.float32),
                    "update": torch.cat([change[name] for name in tensors]).numpy(),
                    "norms": torch.cat(norms).numpy(),  # would be seen if PF travelled
                }

    @property
    def graphs(self) -> np.ndarray:
        """The representation of each of its graphs by its model, float64 [graphs, hidden]."""
        return self.client.representations(self.model).double().numpy()


def _some(graphs: np.ndarray, count: int, dataset: GraphDataset, rng: np.random.Generator) -> np.ndarray:
    if len(graphs) < count:
        raise InputError(
            f"a client would need {count} graphs of a kind, and its half of {dataset.name} has {len(graphs)}:"
            " set graphs to fewer"
        )
    return rng.choice(graphs, count, replace=False)


def _stacked(clients: list[Sent]) -> Sent:
    return {part: np.stack([sent[part] for sent in clients]) for part in clients[0]}
