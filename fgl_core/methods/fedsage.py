"""FedSage: GraphSAGE trained by federated averaging (Zhang et al., NeurIPS 2021)."""

from __future__ import annotations

from typing import ClassVar, Literal

from fgl_core.methods.fedavg import FedAvg


class FedSage(FedAvg):
    """FedAvg whose model is a two-layer GraphSAGE with mean aggregation (Zhang et al. 2021, section 4.1)."""

    title: ClassVar[str] = "FedSage"
    paper: ClassVar[str] = "zhang2021fedsage"
    tasks: ClassVar[tuple[str, ...]] = ("node",)
    backbone: ClassVar[str | None] = "sage"

    name: Literal["fedsage"] = "fedsage"
