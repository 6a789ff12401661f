"""FGSSL as its authors' code computes it, which is not what the paper says (Huang et al., IJCAI 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fgl_core.methods.fedavg import FedAvg, parameter

if TYPE_CHECKING:
    import torch

    from fgl_core.federation import LocalStep


class FGSSLReleased(FedAvg):
    """Local loss L = L_CE + λ_C · ½ · contrast(local model on the strong view, local model on the weak view).

    The newest commit of the authors' repository: eq. 6 in place of eq. 8, so that no global model calibrates
    anything, and no structure distillation. The gradient reaches both sides of the contrast.
    """

    title: ClassVar[str] = "FGSSL (released)"
    paper: ClassVar[str] = "huang2023fgssl"
    tasks: ClassVar[tuple[str, ...]] = ("node",)

    name: Literal["fgssl-released"] = "fgssl-released"
    lambda_c: float = parameter(3.0, "weight λ_C of the local contrast, halved", "released code", ge=0)
    tau: float = parameter(0.1, "temperature τ of the contrast", "released code", gt=0)

    def loss(self, step: LocalStep) -> torch.Tensor:
        """Cross-entropy on the clean graph, and the contrast of the training nodes in two views (eq. 6)."""
        from fgl_core.augment import VIEW_RATES, draw_view
        from fgl_core.losses import local_contrast

        graph, rows, labels = step.batch.graph, step.batch.rows, step.batch.labels
        embedded = []
        for strength in ("strong", "weak"):
            view = draw_view(graph, *VIEW_RATES[strength], step.generator(f"{strength} view"))
            embedded.append(step.model(view, dropout=step.generator(f"{strength} view dropout"))[0][rows])
        contrast = local_contrast(*embedded, labels, self.tau)
        return super().loss(step) + self.lambda_c / 2 * contrast


class FGSSLReleased2023(FedAvg):
    """Local loss L_CE + λ_D · mean over edges of KL(S^g_ij ‖ S^m_ij) with ``S_ij = softmax(|z_i − z_j|/τ)``.

    The earlier commits of the authors' repository: the received global model sees the weak view and stays
    frozen, the local model the strong one; the softmax runs over classes; no contrast of nodes.
    """

    title: ClassVar[str] = "FGSSL (released 2023)"
    paper: ClassVar[str] = "huang2023fgssl"
    tasks: ClassVar[tuple[str, ...]] = ("node",)

    name: Literal["fgssl-released-2023"] = "fgssl-released-2023"
    lambda_d: float = parameter(0.1, "weight λ_D of the distillation over edges", "released code", ge=0)
    tau: float = parameter(0.1, "temperature τ of the distillation", "released code", gt=0)

    def loss(self, step: LocalStep) -> torch.Tensor:
        """Cross-entropy on the clean graph, and the distillation over the client's edges."""
        import torch

        from fgl_core.augment import VIEW_RATES, draw_view
        from fgl_core.losses import edge_distillation

        graph = step.batch.graph
        strong = draw_view(graph, *VIEW_RATES["strong"], step.generator("local view"))
        weak = draw_view(graph, *VIEW_RATES["weak"], step.generator("global view"))
        _, z_local = step.model(strong, dropout=step.generator("view dropout"))
        with torch.no_grad():
            _, z_global = step.received.model(weak)
        return super().loss(step) + self.lambda_d * edge_distillation(z_local, z_global, graph, self.tau)
