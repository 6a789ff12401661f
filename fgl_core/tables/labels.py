"""Where a run stands in a table, and what it is called there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fgl_core.methods import METHODS
from fgl_core.study.results import Results
from fgl_core.study.spec import GraphSpec, RunSpec

Label = Callable[[RunSpec], str]  # what a run is called in a table


def place(spec: RunSpec) -> tuple[str, int]:
    """Where a run stands in a table: its dataset or setting, and its number of clients."""
    if isinstance(spec, GraphSpec):
        return spec.place, len(spec.datasets) * spec.clients_per_dataset
    return spec.place, spec.clients


def placed_runs(results: Results, label: Label | None = None) -> Iterator[tuple[int, str, RunSpec]]:
    """Each run with its number of clients and its label. The whole graph stands beside every number.

    Args:
        label: as in :func:`fgl_core.tables.cells.cells`.
    """
    specs = results.specs
    numbers: dict[str, dict[int, None]] = {}
    for spec in specs:
        if not METHODS[spec.method.name].centralised:
            dataset, clients = place(spec)
            numbers.setdefault(dataset, {})[clients] = None
    names = labels(specs, results.as_written) if label is None else {s.digest: label(s) for s in specs}
    for spec in specs:
        dataset, clients = place(spec)
        beside = METHODS[spec.method.name].centralised and numbers.get(dataset)
        for number in beside or (clients,):
            yield number, names[spec.digest], spec


def labels(specs: list[RunSpec], before: Callable[[RunSpec], RunSpec] = lambda spec: spec) -> dict[str, str]:
    """The method's title, and each value that tells its runs at one place apart unless it is the default.

    A parameter that only goes along with another one, as FedOpt's server lr with its server optimiser, tells
    nothing more.
    """
    fields = {spec.digest: _fields(before(spec)) for spec in specs}  # tuned values tell no rows apart
    taken: dict[tuple[str, str, str], set[str]] = {}
    for spec in specs:
        where = spec.place
        for name, value in fields[spec.digest].items():
            taken.setdefault((where, spec.method.name, name), set()).add(str(value))
    # a value that follows from the place, as GCFL's thresholds do, tells no rows apart
    varied = {key[1:] for key, values in taken.items() if len(values) > 1}
    for method in {spec.method.name for spec in specs}:
        runs = [fields[spec.digest] for spec in specs if spec.method.name == method]
        own = [name for name in METHODS[method].model_fields if (method, name) in varied]
        varied -= {(method, name) for name in _following(own, runs)}
    names = {}
    for spec in specs:
        defaults = {**type(spec).model_fields, **type(spec.method).model_fields}
        parts = [
            f"{name.replace('_', ' ')} {value}"
            for name, value in fields[spec.digest].items()
            if (spec.method.name, name) in varied and value != defaults[name].default
        ]
        names[spec.digest] = ", ".join([METHODS[spec.method.name].title, *parts])
    return names


def _following(names: list[str], runs: list[dict[str, Any]]) -> set[str]:
    """Of these fields, those whose value follows from one that stands before."""
    leading: list[str] = []
    for name in names:
        if not any(
            len({(run[a], run[name]) for run in runs}) == len({run[a] for run in runs}) for a in leading
        ):
            leading.append(name)
    return set(names) - set(leading)


def conditions(spec: RunSpec) -> dict[str, Any]:
    """The fields that are not the method's, beside place and seed."""
    placed = {"task", "dataset", "setting", "clients", "clients_per_dataset", "seed", "method"}
    return {name: value for name, value in spec.model_dump().items() if name not in placed}


def _fields(spec: RunSpec) -> dict[str, Any]:
    """What tells a run apart beside its place and its seed."""
    return conditions(spec) | spec.method.model_dump(exclude={"name"})
