"""FedStar: clients share what their graphs' structure says, and keep the rest (Tan et al., AAAI 2023)."""

from __future__ import annotations

from typing import ClassVar, Literal

from fgl_core.methods.fedavg import FedAvg


class FedStar(FedAvg):
    """FedAvg over the structure channel of a model with two channels (:mod:`fgl_core.models.star`)."""

    title: ClassVar[str] = "FedStar"
    paper: ClassVar[str] = "tan2023fedstar"
    tasks: ClassVar[tuple[str, ...]] = ("graph",)
    backbone: ClassVar[str | None] = "star"

    name: Literal["fedstar"] = "fedstar"
