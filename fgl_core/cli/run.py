"""``fgl run`` and ``fgl methods``: one run, and what can be set."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from fgl_core.datasets import NODE_DATASETS
from fgl_core.datasets.groups import SETTINGS
from fgl_core.errors import InputError, unknown
from fgl_core.methods import METHODS
from fgl_core.study.spec import TASKS, GraphSpec, RunSpec
from fgl_core.study.store import Store, check_writable, write_record
from fgl_core.study.sweep import datasets_of

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from fgl_core.federation import Round

TITLES = {("node", "heterogeneity"): "Node classification", ("graph",): "Graph classification"}
CHOICES = {"dataset": NODE_DATASETS, "setting": SETTINGS}
TRAINED = {task: kind for task, kind in TASKS.items() if issubclass(kind, RunSpec)}
BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def run_once(values: Mapping[str, Any]) -> int:
    """Train as the given fields say; write the record to ``data/runs`` and print what came out."""
    spec = RunSpec.parse(_spec_values(values))
    store = Store()
    check_writable(store.runs)
    from fgl_core.cli.data import fetching
    from fgl_core.datasets.sources import fetch

    with fetching() as progress:
        fetch(datasets_of(spec), progress)
    record = _train(spec)
    path = write_record(record, store.runs)
    print(_report(spec, record))
    print(f"record: {path}")
    return 0


def methods() -> None:
    """Every method with its parameters: default, range, meaning, source."""
    for name, method in METHODS.items():
        source = f" ({method.paper})" if "paper" in vars(method) else ""
        print(f"{name}: {method.title}{source}")
        print(f"  {_first_line(method)}")
        rows = [
            (_flag(key), str(field.default), _range(field), field.description or "", _source(field))
            for key, field in method.model_fields.items()
            if key != "name"
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            print(
                "    "
                + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            )
        print()


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
            owners, allowed = ", ".join(_owners()[key]), ", ".join(map(_flag, own)) or "none"
            raise InputError(
                f"{_flag(key)} is a parameter of {owners}, not of {name}; parameters of {name}: {allowed}"
            )
    return {**fields, "method": {"name": name, **parameters}}


def _train(spec: RunSpec) -> dict[str, Any]:
    from tqdm import tqdm

    with ExitStack() as bars:

        def draw() -> tqdm:
            bar = tqdm(total=spec.rounds, desc=_title(spec), unit="round", file=sys.stderr)
            return bars.enter_context(bar)

        # into a file, nothing is drawn before the first round: an error stays a single line
        bar = draw() if sys.stderr.isatty() else None
        from fgl_core.study.execute import execute  # imports torch: the bar is seen while it loads

        if bar is not None:
            bar.reset()  # the time left is judged by rounds alone

        def advance(measured: Round, values: Mapping[str, Any]) -> None:
            nonlocal bar
            if bar is None:
                bar = draw()
            curves = values["curves"]
            bar.set_postfix(
                loss=f"{curves['loss']:.3f}",
                val=f"{curves['val_accuracy']:.1%}",
                test=f"{curves['test_accuracy']:.1%}",
                refresh=False,
            )
            bar.update()

        try:
            return execute(spec, on_round=advance)
        except InputError:
            if bar is not None:
                bar.leave = False  # nothing was trained: the message stands alone
            raise


def _title(spec: RunSpec) -> str:
    return f"{spec.method.title} on {spec.setting if isinstance(spec, GraphSpec) else spec.dataset}"


def _report(spec: RunSpec, record: Mapping[str, Any]) -> str:
    number = len(record["partition"]["clients"])
    clients = "the whole graph" if spec.method.centralised else f"{number} clients"
    seconds = record["timing"]["seconds"]
    lines = [f"{_title(spec)}, {clients}, seed {spec.seed}: {seconds:.1f} s"]
    if record["status"] == "diverged":
        lines.append(f"diverged: {record['reason']}; what was measured before:")
    for moment, title in (("best", "best validation"), ("last", "last")):
        if values := record[moment]:
            lines.append(
                f"{title} round, {values['round']} of {spec.rounds}: "
                f"val {values['val_accuracy']:.1%}, test {values['test_accuracy']:.1%}"
            )
            if (everywhere := values.get("everywhere_test_accuracy")) is not None:
                lines[-1] += f" (each client's model on all test nodes: {everywhere:.1%})"
    sent = {
        way: {kind: sum(rounds) for kind, rounds in kinds.items()} for way, kinds in record["bytes"].items()
    }
    lines.append("travelled: " + "; ".join(f"{way} {_megabytes(kinds)}" for way, kinds in sent.items()))
    return "\n".join(lines)


def _megabytes(kinds: Mapping[str, int]) -> str:
    kinds = {kind: count for kind, count in kinds.items() if count}
    return ", ".join(f"{count / 1e6:.1f} MB ({kind})" for kind, count in kinds.items()) or "nothing"


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _first_line(method: type) -> str:
    return (inspect.getdoc(method) or "").splitlines()[0]


def _source(field: FieldInfo) -> str:
    extra = field.json_schema_extra
    return str(extra.get("source", "")) if isinstance(extra, dict) else ""


def _range(field: FieldInfo) -> str:
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


def _parameter(name: str, kind: Any, group: Group, help: str, default: str) -> inspect.Parameter:
    about = Parameter(group=group, help=help, show_default=lambda _: default)
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
    notes = [_range(field) if field.metadata else "", _source(field)]
    note = "; ".join(filter(None, notes))
    return f"{field.description} ({note})" if note else str(field.description)


def _command() -> Callable[..., int]:
    def run(**given: Any) -> int:
        """Train once, write a record to data/runs, print what came out.

        The round reported is the one of the best validation accuracy; test accuracy never chooses it.
        """
        return run_once(given)

    flags = _parameters()
    run.__signature__ = inspect.Signature(list(flags.values()), return_annotation=int)
    run.__annotations__ = {name: flag.annotation for name, flag in flags.items()} | {"return": int}
    return run


run = _command()
