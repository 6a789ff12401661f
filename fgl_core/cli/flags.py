"""The flags of commands about one run: each field of a run, and each parameter of a method."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from fgl_core.datasets import NODE_DATASETS, own_data
from fgl_core.datasets.groups import GRAPH_DATASETS, SETTINGS
from fgl_core.device import DEVICES
from fgl_core.errors import InputError, unknown
from fgl_core.methods import METHODS
from fgl_core.study.decisions import decided
from fgl_core.study.spec import TASKS, RunSpec

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

TITLES = {("node", "heterogeneity", "noise"): "Node classification", ("graph",): "Graph classification"}
KNOWN = {*NODE_DATASETS, *SETTINGS, *GRAPH_DATASETS}
CHOICES = {"dataset": NODE_DATASETS, "setting": SETTINGS}
TRAINED = {task: kind for task, kind in TASKS.items() if issubclass(kind, RunSpec)}
BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def takes_flags(command: Callable[..., int]) -> Callable[..., int]:
    """A command about one run, with a flag for each of the run's fields and each parameter of a method.

    A command that has a parameter ``device`` is given that flag, too.
    """

    def with_flags(
        data: list[Path] | None = None,
        decide: list[str] | None = None,
        device: str | None = None,
        **given: Any,
    ) -> int:
        given = _with_decisions(given, decide or [])
        spec = RunSpec.parse({**_spec_values(given), **_own(data or [], given)})
        return command(spec, device) if trains else command(spec)

    trains = "device" in inspect.signature(command).parameters
    flags = _parameters()
    if not trains:
        del flags["device"]
    with_flags.__doc__ = command.__doc__
    with_flags.__signature__ = inspect.Signature(list(flags.values()), return_annotation=int)
    with_flags.__annotations__ = {name: flag.annotation for name, flag in flags.items()} | {"return": int}
    return with_flags


def flag(name: str) -> str:
    """A field's name as it is typed."""
    return "--" + name.replace("_", "-")


def source_of(field: FieldInfo) -> str:
    """Where the default of a method's parameter comes from; nothing for a field of a run."""
    extra = field.json_schema_extra
    return str(extra.get("source", "")) if isinstance(extra, dict) else ""


def range_of(field: FieldInfo) -> str:
    """The values that a field takes: choices, or bounds."""
    choices = getattr(field.annotation, "__args__", ())
    if choices and all(isinstance(choice, str) for choice in choices):
        return ", ".join(choices)
    bounds = [
        f"{sign} {bound}"
        for item in field.metadata
        for key, sign in BOUNDS.items()
        if (bound := getattr(item, key, None)) is not None
    ]
    return ", ".join(bounds)


def _spec_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that were given as fields of a spec; a parameter of another method is refused by name."""
    given = {key: value for key, value in given.items() if value is not None}
    fields = {key: value for key, value in given.items() if key in _fields()}
    if fields.get("task", "node") not in TRAINED:
        raise unknown("task", fields["task"], TRAINED)
    name = fields.get("method", "fedavg")
    parameters = {key: value for key, value in given.items() if key not in fields}
    own = [key for key in METHODS[name].model_fields if key != "name"] if name in METHODS else []
    for key in parameters if name in METHODS else ():
        if key not in own:
            owners, allowed = ", ".join(_owners()[key]), ", ".join(map(flag, own)) or "none"
            raise InputError(
                f"{flag(key)} is a parameter of {owners}, not of {name}; parameters of {name}: {allowed}"
            )
    return {**fields, "method": {"name": name, **parameters}}


def _with_decisions(given: Mapping[str, Any], choices: list[str]) -> dict[str, Any]:
    """The flags that were given, and those that ``--decide`` stands for."""
    chosen = decided(choices)
    for name in chosen:
        if given.get(name) is not None:
            raise InputError(f"{flag(name)} is set by --decide too: leave one of them out")
    return {**given, **chosen}


def _own(folders: list[Path], given: Mapping[str, Any]) -> dict[str, str]:
    """What ``--data`` sets: the dataset, or a setting of one client for each folder."""
    for name in ("dataset", "setting"):
        value = given.get(name)
        if folders and value is not None:
            raise InputError(f"--data stands in place of {flag(name)}: leave one of them out")
        if value is not None and value not in KNOWN and Path(value).is_dir():
            raise InputError(f"{flag(name)} takes a name, and {value} is a folder: write --data {value}")
    found = [own_data(folder) for folder in folders]
    for data in found:
        task = "graph" if (given.get("task") or data.task) == "graph" else "node"
        if data.task != task:
            holds = "one graph" if data.task == "node" else "a set of graphs"
            raise InputError(f"{data.folder} holds {holds}, which is not for --task {given['task']}")
    if len(found) > 1 and any(data.task == "node" for data in found):
        raise InputError("--data: nodes are classified in one graph: give one folder, or only sets of graphs")
    field = "dataset" if found and found[0].task == "node" else "setting"
    return {field: ",".join(data.name for data in found)} if found else {}


def _parameter(name: str, kind: Any, group: Group, help: str, default: str) -> inspect.Parameter:
    about = Parameter(group=group, help=help, show_default=lambda _: default, negative_iterable=())
    annotation = Annotated[kind | None, about]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _parameters() -> dict[str, inspect.Parameter]:
    """A flag for each field of a run, then for each parameter of a method. Not given: None."""
    of_every_run = Group("The run", sort_key=0)
    names = ", ".join(METHODS)
    flags = {"method": _parameter("method", str, of_every_run, f"federated method: {names}", "fedavg")}
    flags["task"] = _parameter(
        "task", str, of_every_run, ", ".join(TRAINED), "node, or graph when a setting is given"
    )
    about = "own data in place of a dataset: a folder; for graph classification one for each client, or more"
    flags["data"] = _parameter("data", list[Path], of_every_run, about, "none")
    about = "what a paper leaves open, decided in another way: ID=OPTION; `fgl decisions` lists all"
    flags["decide"] = _parameter("decide", list[str], of_every_run, about, "none")
    about = f"where to train: {', '.join(DEVICES)}; FGL_DEVICE if not given"
    flags["device"] = _parameter("device", str, of_every_run, about, "cpu")
    for name, having in _fields().items():
        if name not in flags:
            group = Group(TITLES.get(tuple(having), f"Only with --task {' or '.join(having)}"), sort_key=1)
            group = of_every_run if len(having) == len(TRAINED) else group
            flags[name] = _merged(name, {task: TRAINED[task].model_fields[name] for task in having}, group)
    for name, having in _owners().items():
        group = Group(f"Only with --method {' or '.join(having)}", sort_key=2)
        flags[name] = _merged(name, {method: METHODS[method].model_fields[name] for method in having}, group)
    return flags


def _merged(name: str, fields: Mapping[str, FieldInfo], group: Group) -> inspect.Parameter:
    """One flag for fields of the same name; where their defaults differ, the help gives each."""
    field = next(iter(fields.values()))
    defaults = {owner: str(other.default) for owner, other in fields.items() if not other.is_required()}
    default = ", ".join(f"{value} for {owner}" for owner, value in defaults.items())
    if len(set(defaults.values())) <= 1:
        default = next(iter(defaults.values()), "as the method has it")
    help = _help(field) + (f": {', '.join(CHOICES[name])}" if name in CHOICES else "")
    return _parameter(name, field.annotation, group, help, default)


def _fields() -> dict[str, list[str]]:
    """The tasks whose runs have a field, by its name; the seed comes last."""
    having: dict[str, list[str]] = {}
    for task, kind in TRAINED.items():
        for name in kind.model_fields:
            having.setdefault(name, []).append(task)
    return {**having, "seed": having.pop("seed")}


def _owners() -> dict[str, list[str]]:
    """The methods that have a parameter, by its name."""
    owners: dict[str, list[str]] = {}
    for method, kind in METHODS.items():
        for name in kind.model_fields:
            if name != "name":
                owners.setdefault(name, []).append(method)
    return owners


def _help(field: FieldInfo) -> str:
    notes = [range_of(field) if field.metadata else "", source_of(field)]
    note = "; ".join(filter(None, notes))
    return f"{field.description} ({note})" if note else str(field.description)
