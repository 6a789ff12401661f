"""Global: one model trained on the whole graph, the reference without federation."""

from __future__ import annotations

from typing import ClassVar, Literal

from fgl_core.methods.local import Local


class Global(Local):
    """A single client that holds the whole graph, with as many steps as the federated methods get."""

    title: ClassVar[str] = "Global"
    tasks: ClassVar[tuple[str, ...]] = ("node",)
    centralised: ClassVar[bool] = True
    evaluates_everywhere: ClassVar[bool] = False

    name: Literal["global"] = "global"
