"""FedBN: the normalisation layers never leave the client (Li et al., ICLR 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fgl_core.methods.fedavg import FedAvg

if TYPE_CHECKING:
    import torch


class FedBN(FedAvg):
    """FedAvg over all shared tensors but those of normalisation layers, parameters and running statistics."""

    title: ClassVar[str] = "FedBN"
    paper: ClassVar[str] = "li2021fedbn"
    tasks: ClassVar[tuple[str, ...]] = ("graph",)
    norm: ClassVar[Literal["none", "batch", "pf"]] = "batch"
    keeps_norms: ClassVar[bool] = True

    name: Literal["fedbn"] = "fedbn"

    def travels(self, model: torch.nn.Module) -> list[str]:
        """The shared tensors outside of normalisation layers, which are known by their type."""
        from fgl_core.models.norms import is_norm

        norms = tuple(f"{name}." for name, module in model.named_modules() if is_norm(module))
        return [name for name in super().travels(model) if not name.startswith(norms)]
