"""``fgl run`` and ``fgl methods``: one run, and what can be set."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from fgl_core.datasets import NODE_DATASETS
from fgl_core.errors import InputError
from fgl_core.methods import METHODS
from fgl_core.study.spec import NodeSpec, RunSpec
from fgl_core.study.store import Store, check_writable, write_record

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from fgl_core.federation import Round

BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def run_once(values: Mapping[str, Any]) -> int:
    """Train as the given fields say; write the record to ``data/runs`` and print what came out."""
    spec = RunSpec.parse(_spec_values(values))
    store = Store()
    check_writable(store.runs)
    from fgl_core.cli.data import fetching
    from fgl_core.datasets.sources import fetch

    with fetching() as progress:
        fetch([spec.dataset], progress)
    record = _train(spec)
    path = write_record(record, store.runs)
    print(_report(spec, record))
    print(f"record: {path}")
    return 0


def methods() -> None:
    """Every method with its parameters: default, range, meaning, source."""
    for name, method in METHODS.items():
        print(f"{name}: {method.title} ({method.paper})")
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
    fields = {key: value for key, value in given.items() if key in NodeSpec.model_fields}
    name = fields.get("method", "fedavg")
    own = METHODS[name].model_fields if name in METHODS else {}
    parameters = {key: value for key, value in given.items() if key not in fields}
    for key in parameters:
        if name in METHODS and key not in own:
            owners = ", ".join(_owners()[key])
            allowed = ", ".join(_flag(field) for field in own if field != "name") or "none"
            raise InputError(
                f"{_flag(key)} is a parameter of {owners}, not of {name}; parameters of {name}: {allowed}"
            )
    return {**fields, "method": {"name": name, **parameters}}


def _train(spec: RunSpec) -> dict[str, Any]:
    from tqdm import tqdm

    with tqdm(
        total=spec.rounds, desc=f"{spec.method.title} on {spec.dataset}", unit="round", file=sys.stderr
    ) as bar:
        from fgl_core.study.execute import execute  # imports torch: the bar is seen while it loads

        bar.reset()  # the time left is judged by rounds alone

        def advance(measured: Round, values: Mapping[str, Any]) -> None:
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
            bar.leave = False  # nothing was trained: the message stands alone
            raise


def _report(spec: RunSpec, record: Mapping[str, Any]) -> str:
    place = "the whole graph" if spec.method.centralised else f"{spec.clients} clients"
    seconds = record["timing"]["seconds"]
    lines = [f"{spec.method.title} on {spec.dataset}, {place}, seed {spec.seed}: {seconds:.1f} s"]
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


def _parameter(name: str, field: FieldInfo, group: Group, help: str, default: str) -> inspect.Parameter:
    annotation = Annotated[
        field.annotation | None, Parameter(group=group, help=help, show_default=lambda _: default)
    ]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _parameters() -> dict[str, inspect.Parameter]:
    """A flag for each field of a run, then for each parameter of a method."""
    of_the_run = Group("The run", sort_key=0)
    names = ", ".join(name for name, method in METHODS.items() if "node" in method.tasks)
    annotation = Annotated[
        str | None,
        Parameter(group=of_the_run, help=f"the federated method: {names}", show_default=lambda _: "fedavg"),
    ]
    flags = {
        "method": inspect.Parameter(
            "method", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
        )
    }
    for name, field in sorted(NodeSpec.model_fields.items(), key=lambda item: item[0] == "seed"):
        if name not in ("task", "method"):
            help = _help(field) + (f": {', '.join(NODE_DATASETS)}" if name == "dataset" else "")
            flags[name] = _parameter(name, field, of_the_run, help, str(field.default))
    for name, having in _owners().items():
        field = METHODS[having[0]].model_fields[name]
        defaults = {method: METHODS[method].model_fields[name].default for method in having}
        default = ", ".join(f"{value} for {method}" for method, value in defaults.items())
        if len(set(defaults.values())) == 1:
            default = str(field.default)
        group = Group(f"Only with --method {' or '.join(having)}", sort_key=1)
        flags[name] = _parameter(name, field, group, _help(field), default)
    return flags


def _owners() -> dict[str, list[str]]:
    """The methods of node classification that have a parameter, by its name."""
    owners: dict[str, list[str]] = {}
    for method, kind in METHODS.items():
        for name in kind.model_fields:
            if name != "name" and "node" in kind.tasks:
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
