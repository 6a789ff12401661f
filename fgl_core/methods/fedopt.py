"""FedOpt: the server treats the clients' mean change as a gradient (Reddi et al., ICLR 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fgl_core.methods.fedavg import FedAvg, parameter, weighted_mean

if TYPE_CHECKING:
    from fgl_core.federation import Server, Update


class FedOpt(FedAvg):
    """FedAdam, FedYogi, FedAdagrad or server SGD: x ← x + η m/(√v + ϵ) with Δ the weighted mean change.

    As in Reddi et al. (2021, algorithm 2): v starts at ϵ², and there is no bias correction. SGD with η = 1 is
    FedAvg. Clients train as in FedAvg.
    """

    title: ClassVar[str] = "FedOpt"
    paper: ClassVar[str] = "reddi2021"
    tasks: ClassVar[tuple[str, ...]] = ("node",)  # an Adam step could make running variances negative

    name: Literal["fedopt"] = "fedopt"
    server_optimizer: Literal["adam", "yogi", "adagrad", "sgd"] = parameter(
        "adam", "optimiser of the server", "decided; the paper's was probably sgd"
    )
    server_lr: float = parameter(0.03, "learning rate η of the server", "decided", gt=0)
    beta1: float = parameter(0.9, "decay of the first moment", "Reddi et al. 2021", ge=0, lt=1)
    beta2: float = parameter(0.99, "decay of the second moment (adam, yogi)", "Reddi et al. 2021", ge=0, lt=1)
    adaptivity: float = parameter(1e-3, "ϵ of the adaptive step, τ in the paper", "Reddi et al. 2021", gt=0)

    def aggregate(self, server: Server, updates: list[Update]) -> None:
        """One step of the server's optimiser from what was sent out last (Reddi et al. 2021, algorithm 2)."""
        received, mean = server.outbox[0], weighted_mean(updates)
        sent = {}
        for name, tensor in received.items():
            change = mean[name] - tensor
            if self.server_optimizer == "sgd":
                sent[name] = tensor + self.server_lr * change
                continue
            first, second = server.state.get(name, (0 * change, 0 * change + self.adaptivity**2))
            first = self.beta1 * first + (1 - self.beta1) * change
            square = change.square()
            if self.server_optimizer == "adam":
                second = self.beta2 * second + (1 - self.beta2) * square
            elif self.server_optimizer == "yogi":
                second = second - (1 - self.beta2) * square * (second - square).sign()
            else:
                second = second + square
            server.state[name] = first, second
            sent[name] = tensor + self.server_lr * first / (second.sqrt() + self.adaptivity)
        server.broadcast(sent)
