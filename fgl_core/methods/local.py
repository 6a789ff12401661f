"""Local: every client trains alone; nothing travels."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fgl_core.methods.fedavg import FedAvg

if TYPE_CHECKING:
    import torch

    from fgl_core.federation import Server, Update


class Local(FedAvg):
    """Each client's model alone, with the steps and the optimiser boundaries of federated methods."""

    title: ClassVar[str] = "Local"
    keeps_norms: ClassVar[bool] = True
    evaluates_everywhere: ClassVar[bool] = True

    name: Literal["local"] = "local"

    def travels(self, model: torch.nn.Module) -> list[str]:
        """Nothing."""
        return []

    def aggregate(self, server: Server, updates: list[Update]) -> None:
        """Nothing arrives, nothing is sent."""
