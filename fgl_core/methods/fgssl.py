"""FGSSL: contrast and structure distillation against the global model (Huang et al., IJCAI 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fgl_core.methods.fedavg import FedAvg, parameter

if TYPE_CHECKING:
    import torch

    from fgl_core.federation import LocalStep

View = Literal["none", "weak", "strong"]


class FGSSL(FedAvg):
    """Local loss L = L_CE + λ_C L_FNSC + λ_D L_FGSD (eq. 13, minimised); the server averages as FedAvg does.

    The received global model is frozen; it sees the weak view, the local model the strong one, both redrawn
    in every local epoch. Nothing but the model travels.
    """

    title: ClassVar[str] = "FGSSL"
    paper: ClassVar[str] = "huang2023fgssl"
    tasks: ClassVar[tuple[str, ...]] = ("node",)

    name: Literal["fgssl"] = "fgssl"
    lambda_c: float = parameter(1.0, "weight λ_C of the node contrast, FNSC", "decided", ge=0)
    lambda_d: float = parameter(1.0, "weight λ_D of the structure distillation, FGSD", "decided", ge=0)
    tau: float = parameter(0.1, "temperature τ of the contrast", "stated, section 4.3", gt=0)
    omega: float = parameter(5.0, "temperature ω of the distillation", "stated, section 4.3", gt=0)
    denominator: Literal["supcon", "pairwise"] = parameter(
        "supcon", "samples in the denominator: all, or the positive and the negatives", "inferred, eq. 8"
    )
    local_view: View = parameter("strong", "view that the local model sees", "stated, section 3.3")
    global_view: View = parameter("weak", "view that the global model sees", "stated, section 3.3")

    def loss(self, step: LocalStep) -> torch.Tensor:
        """Eq. 13: cross-entropy on the clean graph, contrast of training nodes, distillation over edges."""
        import torch

        from fgl_core.augment import VIEW_RATES, draw_view
        from fgl_core.losses import fgsd, fnsc

        graph, rows, labels = step.batch.graph, step.batch.rows, step.batch.labels
        local_graph = draw_view(graph, *VIEW_RATES[self.local_view], step.generator("local view"))
        global_graph = draw_view(graph, *VIEW_RATES[self.global_view], step.generator("global view"))
        h_local, z_local = step.model(local_graph, dropout=step.generator("view dropout"))
        with torch.no_grad():
            h_global, z_global = step.received.model(global_graph)

        # as h[rows], whose backward pass is slower
        anchors, samples = h_local.index_select(0, rows), h_global.index_select(0, rows)
        contrast = fnsc(anchors, samples, labels, self.tau, denominator=self.denominator)
        distillation = fgsd(z_local, z_global, graph, self.omega)
        return super().loss(step) + self.lambda_c * contrast + self.lambda_d * distillation
