"""FedProx: local training stays near the received model (Li et al., MLSys 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fgl_core.methods.fedavg import FedAvg, parameter

if TYPE_CHECKING:
    import torch

    from fgl_core.federation import LocalStep


class FedProx(FedAvg):
    """Local loss + μ/2 ‖w − w_received‖² over the shared parameters; the server averages as FedAvg does."""

    title: ClassVar[str] = "FedProx"
    paper: ClassVar[str] = "li2020fedprox"

    name: Literal["fedprox"] = "fedprox"
    mu: float = parameter(0.01, "weight μ of the proximal term", "inferred, the field's usual value", ge=0)

    def loss(self, step: LocalStep) -> torch.Tensor:
        """Cross-entropy plus the proximal term (Li et al. 2020, eq. 2)."""
        from fgl_core.losses import proximal

        shared = set(self.travels(step.model))
        pairs = [
            (parameter, step.received.tensors[name])
            for name, parameter in step.model.named_parameters()
            if name in shared
        ]
        return super().loss(step) + self.mu * proximal(*zip(*pairs, strict=True))
