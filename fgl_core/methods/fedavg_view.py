"""FedAvg on augmented graphs: what augmentation alone gives, without contrast or distillation."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fgl_core.methods.fedavg import FedAvg, parameter

if TYPE_CHECKING:
    import torch

    from fgl_core.federation import LocalStep


class FedAvgView(FedAvg):
    """FedAvg whose clients see a view of their graph, redrawn in every local epoch: a control for FGSSL."""

    title: ClassVar[str] = "FedAvg on views"
    tasks: ClassVar[tuple[str, ...]] = ("node",)

    name: Literal["fedavg-view"] = "fedavg-view"
    view: Literal["weak", "strong"] = parameter(
        "strong", "view that the clients train on", "decided, a control"
    )

    def loss(self, step: LocalStep) -> torch.Tensor:
        """Cross-entropy on the view."""
        from torch.nn.functional import cross_entropy

        from fgl_core.augment import VIEW_RATES, draw_view

        graph = draw_view(step.batch.graph, *VIEW_RATES[self.view], step.generator("local view"))
        _, logits = step.model(graph, dropout=step.generator("dropout"))
        return cross_entropy(logits[step.batch.rows], step.batch.labels)
