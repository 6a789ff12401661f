"""FedAvgM: a server with momentum (Hsu, Qi and Brown 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fgl_core.methods.fedavg import FedAvg, parameter, weighted_mean

if TYPE_CHECKING:
    from fgl_core.federation import Server, Update


class FedAvgM(FedAvg):
    """v ← βv + Δ, then x ← x + v; Δ is the mean change, and β = 0 is FedAvg."""

    title: ClassVar[str] = "FedAvgM"
    paper: ClassVar[str] = "hsu2019"
    # momentum could carry the running variances of graph models below zero
    tasks: ClassVar[tuple[str, ...]] = ("node",)

    name: Literal["fedavgm"] = "fedavgm"
    beta: float = parameter(
        0.9,
        "momentum β of the server",
        "decided, the usual value",
        ge=0,
        lt=1,
    )

    def aggregate(self, server: Server, updates: list[Update]) -> None:
        """One step with momentum from the model that was sent out last."""
        sent = {}
        for name, mean in weighted_mean(updates).items():
            received = server.outbox[0][name]
            change = mean - received
            velocity = self.beta * server.state.get(name, 0.0) + change
            server.state[name] = velocity
            sent[name] = received + velocity
        server.broadcast(sent)
