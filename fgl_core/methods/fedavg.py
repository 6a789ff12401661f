"""FedAvg: every client trains the shared model, the server averages (McMahan et al., AISTATS 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    import numpy as np
    import torch

    from fgl_core.clients import Client
    from fgl_core.federation import LocalStep, Preparation, Server, Update
    from fgl_core.streams import Streams
    from fgl_core.study.spec import RunSpec


def parameter(default: Any, description: str, source: str, **bounds: float) -> Any:
    """A method's parameter as a pydantic field.

    Args:
        source: where the default comes from: stated (with the place), inferred, or decided by us.
        bounds: ``ge``, ``gt``, ``le``, ``lt``.
    """
    return Field(default, description=description, json_schema_extra={"source": source}, **bounds)


class FedAvg(BaseModel):
    """Weighted averaging of all tensors; the base that other methods override.

    Class attributes:
        title: the name in tables.
        paper: key in ``book/references.bib``.
        revision: bumped when the method's numbers change; records of an older revision are stale. 0: a draft,
            whose numbers are not stored for tests.
        tasks: what it can learn: ``node`` classification over subgraphs, ``graph`` classification over sets.
        backbone: the node model it always uses; None leaves the choice to the run.
        norm: the normalisation its graph models carry by default.
        keeps_norms: normalisation layers never travel, so that there is none to share.
        centralised: one client holds the whole graph.
        evaluates_everywhere: clients' models differ, so each is also evaluated on every client's test nodes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    title: ClassVar[str] = "FedAvg"
    paper: ClassVar[str] = "mcmahan2017"
    revision: ClassVar[int] = 1
    tasks: ClassVar[tuple[str, ...]] = ("node", "graph")
    backbone: ClassVar[str | None] = None
    norm: ClassVar[Literal["none", "batch", "pf"]] = "none"
    keeps_norms: ClassVar[bool] = False
    centralised: ClassVar[bool] = False
    evaluates_everywhere: ClassVar[bool] = False

    name: Literal["fedavg"] = "fedavg"

    def check(self, spec: RunSpec) -> None:
        """Refuse a run that could only fail later; FedAvg does every run of its tasks.

        Raises:
            InputError: one line that says what cannot be, and what to do.
        """

    def prepare(self, clients: list[Client], streams: Streams) -> Preparation:
        """What happens before the first round; nothing for FedAvg."""
        from fgl_core.federation import Preparation

        return Preparation(clients)

    def travels(self, model: torch.nn.Module) -> list[str]:
        """Names of the tensors that are shared, parameters and buffers: all but the model's local modules.

        Clients whose graphs differ in features and classes keep the layers that have these widths.
        """
        local = tuple(getattr(model, "local_modules", ()))
        return [name for name in model.state_dict() if not name.startswith(local)]

    def loss(self, step: LocalStep) -> torch.Tensor:
        """Cross-entropy on the client's training examples (FGSSL, eq. 5)."""
        from torch.nn.functional import cross_entropy

        _, logits = step.model(step.batch.graph, dropout=step.generator("dropout"))
        return cross_entropy(logits[step.batch.rows], step.batch.labels)

    def report(self, client: Client, model: torch.nn.Module) -> dict[str, np.ndarray]:
        """What else the client sends after local training, by kind; nothing for FedAvg."""
        return {}

    def aggregate(self, server: Server, updates: list[Update]) -> None:
        """``θ ← Σ_m (|D_m|/|D|) θ_m``, for every client alike (FGSSL, eq. 3)."""
        server.broadcast(weighted_mean(updates))


def weighted_mean(updates: list[Update]) -> dict[str, torch.Tensor]:
    """Mean of the updates' tensors, weighted by their numbers of training examples; counts are rounded."""
    total = sum(update.weight for update in updates)
    means = {}
    for name, tensor in updates[0].tensors.items():
        mean = sum(update.tensors[name] * (update.weight / total) for update in updates)
        means[name] = mean if tensor.is_floating_point() else mean.round().to(tensor.dtype)
    return means
