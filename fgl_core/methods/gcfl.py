"""GCFL and GCFL+: clusters that are cut in two when their clients pull apart (Xie et al., NeurIPS 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from fgl_core.methods.fedavg import FedAvg, parameter, weighted_mean

if TYPE_CHECKING:
    import torch

    from fgl_core.clients import Client
    from fgl_core.federation import Server, Update


#: Setting → ε₁ and ε₂, which public code chooses for molecules, with bioinformatics, and for mixed domains.
#: That the settings which it does not know are mixed ones is our reading.
THRESHOLDS: dict[str, tuple[float, float]] = {
    "CHEM": (0.07, 0.28),
    "BIO-CHEM": (0.07, 0.35),
    "MIX": (0.08, 0.4),
    "BIO-SN-CV": (0.08, 0.4),
    "BIO-CV": (0.08, 0.4),
    "ALL": (0.08, 0.4),
}


class GCFL(FedAvg):
    """FedAvg within clusters; a cluster is cut where its clients' changes ΔW are least alike.

    It is cut when its mean change is small (‖mean ΔW‖ < ε₁: the cluster has converged) while a member still
    moves (max ‖ΔW‖ > ε₂), it has more than two members, and the warm-up is over: in two, by the minimum cut
    (Stoer and Wagner 1997) of the graph whose edges weigh cosine similarity + 1.

    The defaults of the thresholds are those for molecules; studies take those of their setting
    (:data:`THRESHOLDS`). A run that is no longer than the warm-up is one of FedAvg.
    """

    title: ClassVar[str] = "GCFL"
    paper: ClassVar[str] = "xie2021gcfl"
    tasks: ClassVar[tuple[str, ...]] = ("graph",)

    name: Literal["gcfl"] = "gcfl"
    epsilon_1: float = parameter(
        0.07,
        "ε₁, below which a cluster's mean change is small",
        "inferred, public code: 0.07 for molecules, also with bioinformatics; 0.08 for mixed domains",
        ge=0,
    )
    epsilon_2: float = parameter(
        0.28,
        "ε₂, above which a member's change is large",
        "inferred, public code: 0.28 for molecules, 0.35 with bioinformatics, 0.4 for mixed domains",
        ge=0,
    )
    warm_up: int = parameter(
        20, "rounds before the first cut; a run of no more rounds is FedAvg", "inferred, public code", ge=0
    )

    def aggregate(self, server: Server, updates: list[Update]) -> None:
        """Cut clusters that meet the condition, then move each cluster by its weighted mean change."""
        changes = np.stack([_change(server, update) for update in updates])
        clusters = server.state.get("clusters", [list(range(len(updates)))])
        self.observe(server, updates)
        cut = []
        for members in clusters:
            norms = np.linalg.norm(changes[members], axis=1)
            split = (
                np.linalg.norm(changes[members].mean(axis=0)) < self.epsilon_1
                and norms.max() > self.epsilon_2
                and len(members) > 2
                and self.may_cut(server)
            )
            cut += minimum_cut(members, self.similarity(server, changes, members)) if split else [members]
        if len(cut) > len(clusters):
            self.forget(server)
        server.state["clusters"] = cut
        for members in cut:
            # members received the same tensors: these plus the mean change are the mean of what they send
            mean = weighted_mean([updates[member] for member in members])
            for member in members:
                server.outbox[member] = mean
        server.notes["clusters"] = labels(cut, len(updates))

    def may_cut(self, server: Server) -> bool:
        """Whether a cluster may be cut in this round at all."""
        return server.round > self.warm_up

    def observe(self, server: Server, updates: list[Update]) -> None:
        """Remember what the round shows of the clients; nothing for GCFL."""

    def forget(self, server: Server) -> None:
        """Drop what was remembered, after a cut; nothing for GCFL."""

    def similarity(self, server: Server, changes: np.ndarray, members: list[int]) -> np.ndarray:
        """What the edges between members weigh: cosine similarity of their changes + 1, [k, k]."""
        from fgl_core.signature import cosine_similarity

        return cosine_similarity(changes[members]) + 1


class GCFLPlus(GCFL):
    """GCFL that cuts by the history of the clients' gradient norms, compared by dynamic time warping.

    Edges weigh the largest distance between two members less their own.
    """

    title: ClassVar[str] = "GCFL+"

    name: Literal["gcfl+"] = "gcfl+"
    window: int = parameter(5, "last gradient norms that are compared", "inferred, public code", ge=1)

    def report(self, client: Client, model: torch.nn.Module) -> dict[str, np.ndarray]:
        """The norm of the last step's gradient by the shared tensors, one float."""
        shared = set(self.travels(model))
        squares = [
            float(tensor.grad.square().sum())
            for name, tensor in model.named_parameters()
            if name in shared and tensor.grad is not None
        ]
        return {"gradient norm": np.array([np.sqrt(sum(squares))], np.float32)}

    def may_cut(self, server: Server) -> bool:
        """After the warm-up, once there are as many gradient norms as are compared."""
        return super().may_cut(server) and len(server.state["history"][0]) >= self.window

    def observe(self, server: Server, updates: list[Update]) -> None:
        """Append the round's gradient norms to the clients' histories."""
        history = server.state.setdefault("history", [[] for _ in updates])
        for norms, update in zip(history, updates, strict=True):
            norms.append(float(update.report["gradient norm"][0]))

    def forget(self, server: Server) -> None:
        """Histories start anew after a cut."""
        server.state.pop("history")

    def similarity(self, server: Server, changes: np.ndarray, members: list[int]) -> np.ndarray:
        """The largest distance between two members' histories less their own, [k, k]."""
        recent = [server.state["history"][member][-self.window :] for member in members]
        distance = np.array([[time_warping(a, b) for b in recent] for a in recent])
        return distance.max() - distance


def _change(server: Server, update: Update) -> np.ndarray:
    """ΔW, what a client sends less what it received, as one vector."""
    received = server.outbox[update.client]
    parts = [
        (tensor - received[name]).flatten().double().cpu().numpy()
        for name, tensor in update.tensors.items()
        if tensor.is_floating_point()
    ]
    return np.concatenate(parts)


def minimum_cut(members: list[int], similarity: np.ndarray) -> list[list[int]]:
    """The two parts of the cut that cuts the least similarity (Stoer and Wagner 1997), first members first.

    Args:
        members: ids, two at least.
        similarity: weights ≥ 0 of the edges between them, [k, k].
    """
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(members)))
    for i in range(len(members)):
        for j in range(i):
            graph.add_edge(i, j, weight=max(float(similarity[i, j]), 0.0))
    _, parts = nx.stoer_wagner(graph)
    return sorted(sorted(members[i] for i in part) for part in parts)


def time_warping(a: list[float], b: list[float]) -> float:
    """Distance of two sequences under dynamic time warping (Sakoe and Chiba 1978).

    The root of the least sum of squared differences along a monotone alignment from start to start and end to
    end.
    """
    cost = np.full((len(a) + 1, len(b) + 1), np.inf)
    cost[0, 0] = 0
    for i, x in enumerate(a, start=1):
        for j, y in enumerate(b, start=1):
            cost[i, j] = (x - y) ** 2 + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    return float(np.sqrt(cost[-1, -1]))


def labels(clusters: list[list[int]], clients: int) -> list[Any]:
    """Each client's cluster, numbered in the order of their first members."""
    number = [0] * clients
    for index, members in enumerate(sorted(clusters)):
        for member in members:
            number[member] = index
    return number
