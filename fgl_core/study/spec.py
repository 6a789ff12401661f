"""Specifications: everything that decides the numbers of a record, and nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    field_validator,
    model_validator,
)

from fgl_core.datasets import NODE_DATASETS
from fgl_core.datasets.groups import GRAPH_DATASETS, SETTINGS, setting_datasets
from fgl_core.datasets.own import is_own
from fgl_core.errors import InputError, unknown
from fgl_core.methods import METHODS, Method
from fgl_core.streams import SOURCES, Streams


def _written_out(setting: str) -> str:
    """A setting's name, or its datasets as they are called."""
    return setting if setting in SETTINGS else ",".join(setting_datasets(setting))


Setting = Annotated[str, AfterValidator(_written_out)]


class Spec(BaseModel):
    """What has a record: a training run, or an analysis without one. Its task, a seed, an identity.

    Build one from plain values with :meth:`parse`, which turns every mistake into a one-line
    :class:`~fgl_core.errors.InputError`. Two specs with the same :attr:`digest` are the same run.

    Class attributes:
        measured: the blocks that a finished record holds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    measured: ClassVar[tuple[str, ...]]

    seed: int = Field(0, ge=0, le=2**31 - 1, description="root of every random stream")

    @staticmethod
    def parse(values: Mapping[str, Any]) -> Spec:
        """A spec of the right task from plain values.

        For example ``{"dataset": "cora", "method": {"name": "fgssl", "tau": 0.2}}``.

        Raises:
            InputError: one line that names the field, what was given, and what is allowed.
        """
        task = values.get("task", "graph" if "setting" in values else "node")
        if not isinstance(task, str) or task not in TASKS:
            raise unknown("task", task, TASKS)
        try:
            return TASKS[task](**values)
        except ValidationError as error:
            raise _one_line(error, "parameter", TASKS[task].model_fields) from None

    def canonical_json(self) -> str:
        """The spec as JSON with sorted keys and every default written out: what :attr:`digest` hashes."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of :meth:`canonical_json`, hexadecimal."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()

    @property
    def place(self) -> str:
        """Where it stands in a table: its setting if it has one, else its dataset."""
        return getattr(self, "setting", None) or self.dataset

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that it opens: those of its setting, or the one it has."""
        return setting_datasets(self.setting) if hasattr(self, "setting") else (self.dataset,)

    @property
    def revision(self) -> int:
        """Of the code that computes it: a record of another revision is stale."""
        raise NotImplementedError


class RunSpec(Spec):
    """What every training run has beside, whatever its task: a method."""

    measured: ClassVar[tuple[str, ...]] = ("curves", "best", "last", "bytes")

    method: SerializeAsAny[Method] = Field(default_factory=Method, description="the federated method")

    @field_validator("method", mode="before")
    @classmethod
    def _named_method(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, Mapping):
            return value
        name = value.get("name", "fedavg")
        if not isinstance(name, str) or name not in METHODS:
            raise unknown("method", name, METHODS)
        task = "graph" if issubclass(cls, GraphSpec) else "node"
        if task not in METHODS[name].tasks:
            allowed = ", ".join(other for other, method in METHODS.items() if task in method.tasks)
            raise InputError(f"method {name!r} does not do {task} classification: allowed: {allowed}")
        try:
            return METHODS[name](**value)
        except ValidationError as error:
            fields = METHODS[name].model_fields.keys() - {"name"}
            raise _one_line(error, f"parameter of method {name}", fields) from None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        self.method.check(self)
        return self

    @property
    def revision(self) -> int:
        """The method's."""
        return self.method.revision

    @property
    def streams(self) -> Streams:
        """Where the run's random numbers come from."""
        return Streams(self.seed)


class NodeSpec(RunSpec):
    """One run of node classification over clients that hold subgraphs of one graph."""

    task: Literal["node"] = "node"
    dataset: str = Field("cora", description="the graph")
    clients: int = Field(5, ge=1, le=10_000, description="number of clients M (global always has one)")
    partition: Literal["louvain", "random"] = Field("louvain", description="who holds which nodes")
    split: Literal["stratified", "quota"] = Field(
        "stratified", description="60/20/20 per class, or the field's quota"
    )
    evaluation: Literal["union", "global"] = Field(
        "union", description="clients' own subgraphs, or the whole graph with cross-client edges"
    )
    features: Literal["raw", "row"] = Field("raw", description="as published, or rows that sum to 1")
    keep_unlabelled: bool = Field(False, description="keep Citeseer's 15 nodes without features and label")
    backbone: Literal["gat", "gcn", "sage"] = Field("gat", description="graph neural network, two layers")
    hidden: int = Field(128, ge=1, le=4096, description="hidden width")
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout on the hidden layer")
    lr: float = Field(0.1, gt=0, le=100, description="learning rate of the clients' SGD")
    momentum: float = Field(0.9, ge=0, lt=1, description="momentum of the clients' SGD")
    weight_decay: float = Field(5e-4, ge=0, le=1, description="weight decay of the clients' SGD")
    clip: float | None = Field(None, gt=0, description="largest norm of a step's gradient; none by default")
    optimizer_state: Literal["reset", "keep"] = Field("reset", description="clients' momentum between rounds")
    rounds: int = Field(200, ge=1, le=100_000, description="communication rounds")
    local_epochs: int = Field(4, ge=1, le=1000, description="local epochs in a round, full batch")

    @field_validator("dataset")
    @classmethod
    def _known_dataset(cls, name: str) -> str:
        if name not in NODE_DATASETS and not is_own(name):
            raise unknown("dataset", name, NODE_DATASETS)
        return name

    @model_validator(mode="before")
    @classmethod
    def _as_the_method_fixes(cls, values: Any) -> Any:
        name = _method_name(values)
        if name not in METHODS:
            return values
        if METHODS[name].centralised:
            # the whole graph has no partition: Global is one run, whatever the number of clients beside it
            values = {**values, "clients": 1, "partition": "louvain", "evaluation": "union"}
        if own := METHODS[name].backbone:
            if values.get("backbone", own) != own:
                given = values["backbone"]
                raise InputError(f"backbone = {given!r}: the model of {name} is always {own}: leave it out")
            values = {**values, "backbone": own}
        return values

    @property
    def slug(self) -> str:
        """Stem of the record's file name: readable, and unique by its last part."""
        return f"{self.dataset}-m{self.clients}-{self.method.name}-s{self.seed}-{self.digest[:12]}"


class HeterogeneitySpec(NodeSpec):
    """A run of node classification in which the clients' models and graphs are compared (FGSSL, Fig. 1)."""

    task: Literal["heterogeneity"] = "heterogeneity"
    clients: int = Field(20, ge=2, le=10_000, description="number of clients M, at least two to compare")
    representation: Literal["output", "hidden"] = Field(
        "output", description="what is compared between models: logits, or the hidden layer"
    )
    every: int = Field(1, ge=1, description="compare the models in every so many rounds")
    walk_length: int = Field(5, ge=1, le=8, description="steps of the anonymous walks")
    walks: int = Field(
        20_000, ge=100, le=10_000_000, description="anonymous walks drawn on each client's graph"
    )


class NoiseSpec(NodeSpec):
    """A run of node classification of which one source of chance has a seed of its own."""

    task: Literal["noise"] = "noise"
    varies: Literal[*SOURCES, "run"] = Field(
        "run", description="what is drawn from the other seed; run: the initial model and all of training"
    )
    other: int = Field(1, ge=0, le=2**31 - 1, description="that other seed")

    @property
    def streams(self) -> Streams:
        """Where the run's random numbers come from: what varies has the other seed as its root."""
        varied = ("init", "training") if self.varies == "run" else (self.varies,)
        return Streams(self.seed, varied, self.other)

    @property
    def slug(self) -> str:
        """Stem of the record's file name: readable, and unique by its last part."""
        stem, _, last = super().slug.rpartition("-")
        return f"{stem}-{self.varies}-{self.other}-{last}"


class GraphSpec(RunSpec):
    """One run of graph classification over clients that each hold a dataset of graphs (FedCCH, section 5)."""

    task: Literal["graph"] = "graph"
    setting: Setting = Field("CHEM", description="whose datasets: a setting's name, or datasets with commas")
    clients_per_dataset: int = Field(1, ge=1, le=1000, description="clients that share each dataset's graphs")
    attributes: bool = Field(False, description="add node attributes beside node labels")
    norm: Literal["none", "batch", "pf"] = Field(description="normalisation; by default as the method has it")
    share_norm: bool = Field(False, description="let the norms travel with the shared tensors")
    common_start: bool = Field(
        True, description="draw the shared tensors once for all clients; a control draws them for each"
    )
    hidden: int = Field(64, ge=1, le=4096, description="hidden width")
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout after each layer")
    lr: float = Field(1e-3, gt=0, le=100, description="learning rate of the clients' Adam")
    weight_decay: float = Field(5e-5, ge=0, le=1, description="weight decay of the clients' Adam")
    batch_size: int = Field(64, ge=1, le=100_000, description="graphs in a mini-batch")
    optimizer_state: Literal["reset", "keep"] = Field("keep", description="clients' moments between rounds")
    rounds: int = Field(200, ge=1, le=100_000, description="communication rounds")
    local_epochs: int = Field(1, ge=1, le=1000, description="local epochs in a round")

    @model_validator(mode="before")
    @classmethod
    def _norm_of_the_method(cls, values: Any) -> Any:
        name = _method_name(values)
        return {"norm": METHODS[name].norm, **values} if name in METHODS else values

    @model_validator(mode="after")
    def _norms_to_share(self) -> Self:
        # it would be the same run under a second digest
        if self.share_norm and self.norm == "none":
            raise InputError("share_norm: norm none leaves nothing to share: leave it out, or set norm")
        if self.share_norm and self.method.keeps_norms:
            raise InputError(f"share_norm: norms never travel with {self.method.name}: leave it out")
        return self

    @property
    def slug(self) -> str:
        """Stem of the record's file name: readable, and unique by its last part."""
        setting = self.setting if self.setting in SETTINGS else f"{len(self.datasets)}-sets"
        return f"{setting.lower()}-{self.method.name}-{self.norm}-s{self.seed}-{self.digest[:12]}"


class StatisticsSpec(Spec):
    """Counts and spreads of a set of graphs, and a few of its graphs to be drawn; nothing is trained."""

    measured: ClassVar[tuple[str, ...]] = ("statistics",)

    task: Literal["statistics"] = "statistics"
    dataset: str = Field("MUTAG", description="the set of graphs")

    @field_validator("dataset")
    @classmethod
    def _known_dataset(cls, name: str) -> str:
        if name not in GRAPH_DATASETS:
            raise unknown("dataset for graph classification", name, GRAPH_DATASETS)
        return name

    @property
    def revision(self) -> int:
        """Bumped when the numbers of :mod:`fgl_core.analysis.graph_statistics` change."""
        return 1

    @property
    def slug(self) -> str:
        """Stem of the record's file name: readable, and unique by its last part."""
        return f"{self.dataset.lower()}-statistics-s{self.seed}-{self.digest[:12]}"


class PrivacySpec(Spec):
    """Attacks on what clients of FedCCH send: a server guesses one thing about each client's graphs."""

    measured: ClassVar[tuple[str, ...]] = ("privacy",)

    task: Literal["privacy"] = "privacy"
    setting: Setting = Field("CHEM", description="the federation: a setting's name, or datasets with commas")
    secret: Literal["set", "classes", "size", "member"] = Field(
        "set",
        description="what is guessed: the set that the graphs are of, whether most are of its first class,"
        " whether most are large, or whether a certain graph is among them",
    )
    dataset: str | None = Field(
        None, description="the set that the attacked clients' graphs are of; none where it is to be guessed"
    )
    clients: int = Field(210, ge=20, le=10_000, description="shadow clients, and as many that are attacked")
    graphs: int = Field(52, ge=4, le=10_000, multiple_of=4, description="graphs that each of them holds")
    attacked: tuple[int, ...] = Field((1, 5, 20), min_length=1, description="rounds whose uploads are read")

    @field_validator("attacked")
    @classmethod
    def _in_order(cls, attacked: tuple[int, ...]) -> tuple[int, ...]:
        if list(attacked) != sorted(set(attacked)) or attacked[0] < 1 or attacked[-1] > 100_000:
            raise InputError(f"attacked = {list(attacked)}: name rounds, 1 to 100000, each once, in order")
        return attacked

    @model_validator(mode="after")
    def _something_to_guess(self) -> Self:
        if self.secret == "set":
            if self.dataset is not None:
                raise InputError("dataset: it is what secret = set asks for: leave it out")
            if len(self.datasets) < 2:
                raise InputError(f"setting {self.setting!r} has one set: there is nothing to guess")
        elif self.dataset is None:
            raise InputError("dataset: name the set of the setting that the clients' graphs are of")
        elif self.dataset not in self.datasets:
            raise unknown("dataset", self.dataset, self.datasets)
        if self.clients % self.answers:
            raise InputError(
                f"clients = {self.clients}: take a multiple of {self.answers}, the number of answers"
            )
        return self

    @property
    def answers(self) -> int:
        """Among how many the attacker guesses."""
        return len(self.datasets) if self.secret == "set" else 2

    @property
    def rounds(self) -> int:
        """Communication rounds: up to the last that is attacked."""
        return self.attacked[-1]

    @property
    def revision(self) -> int:
        """Bumped when the numbers of :mod:`fgl_core.study.privacy` change."""
        return 1

    @property
    def slug(self) -> str:
        """Stem of the record's file name: readable, and unique by its last part."""
        place = (self.dataset or self.setting).lower().replace(",", "-")
        return f"{place}-{self.secret}-privacy-s{self.seed}-{self.digest[:12]}"


TASKS: dict[str, type[Spec]] = {
    "node": NodeSpec,
    "heterogeneity": HeterogeneitySpec,
    "noise": NoiseSpec,
    "graph": GraphSpec,
    "statistics": StatisticsSpec,
    "privacy": PrivacySpec,
}


def _method_name(values: Mapping[str, Any]) -> str:
    """The method's name in unchecked values; FedAvg where none is given."""
    method = values.get("method", "fedavg")
    name = method.get("name", "fedavg") if isinstance(method, Mapping) else getattr(method, "name", method)
    return name if isinstance(name, str) else ""


def _one_line(error: ValidationError, kind: str, fields: Iterable[str]) -> InputError:
    """The first of pydantic's complaints, in the user's words."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return cause
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return unknown(kind, where, fields)
    return InputError(f"{where} = {first['input']!r}: {first['msg'][0].lower()}{first['msg'][1:]}")
