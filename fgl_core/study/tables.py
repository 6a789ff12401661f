"""Tables of records: one row per run, one row per cell of a comparison, and both as a reader sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan, nan
from typing import TYPE_CHECKING, Any

import pandas as pd

from fgl_core.methods import METHODS
from fgl_core.study.results import Results
from fgl_core.study.spec import GraphSpec, RunSpec
from fgl_core.study.statistics import detectable_difference, holm, mean_std, paired_interval
from fgl_core.study.store import Record

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

OWN, EVERYWHERE = "test_accuracy", "everywhere_test_accuracy"
LEVEL = 0.05
MARGIN = 0.01  # two accuracies that differ by less than a point count as alike

Label = Callable[[RunSpec], str]  # what a run is called in a table


def runs_frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row per run: its fields, the method's own as ``method.tau`` and so on, and what came out.

    Accuracies are fractions, at the best-validation round and at the last; bytes are summed over clients and
    rounds.
    """
    return pd.DataFrame([_row(record) for record in records])


def curves_frame(results: Results, measure: str = OWN, label: Label | None = None) -> pd.DataFrame:
    """One row per run and round: dataset, clients, method (its label), name, seed, round (from 1), value.

    A run on the whole graph appears beside every number of clients.

    Args:
        measure: a curve of the record, e.g. ``val_accuracy``, ``loss``, ``local_test_accuracy``.
        label: as in :func:`cells`.
    """
    placed = ((clients, text, results.record(spec)) for clients, text, spec in placed_runs(results, label))
    return _curves(((clients, text, record) for clients, text, record in placed if record), measure)


def record_curves(records: Iterable[Record], measure: str = OWN) -> pd.DataFrame:
    """:func:`curves_frame` for records of any origin, e.g. of runs just made."""
    listed = list(records)
    labels = _labels([record.spec for record in listed])
    return _curves(((place(r.spec)[1], labels[r.spec.digest], r) for r in listed), measure)


def _curves(placed: Iterable[tuple[int, str, Record]], measure: str) -> pd.DataFrame:
    rows = [
        (place(record.spec)[0], clients, label, record.spec.method.name, record.spec.seed, number, value)
        for clients, label, record in placed
        for number, value in enumerate(record.data["curves"].get(measure, ()), start=1)
    ]
    return pd.DataFrame(rows, columns=["dataset", "clients", "method", "name", "seed", "round", "value"])


@dataclass(frozen=True)
class Cell:
    """All seeds of one method at one place of the table, by one measure."""

    dataset: str
    clients: int
    label: str
    method: str
    measure: str
    specs: list[RunSpec]

    def values(self, results: Results) -> dict[int, float]:
        """The measure at the best-validation round of each finished run, by seed."""
        found = ((spec.seed, results.record(spec)) for spec in self.specs)
        return {
            seed: record.data["best"][self.measure]
            for seed, record in found
            if record is not None and record.status == "done"
        }

    def counts(self, results: Results) -> dict[str, int]:
        """How many seeds diverged, failed, or have only a stale record."""
        records = [record for spec in self.specs if (record := results.found.get(spec.digest))]
        return {
            "diverged": sum(record.status == "diverged" and not record.stale for record in records),
            "failed": sum(record.status == "failed" and not record.stale for record in records),
            "stale": sum(record.stale for record in records),
        }


def cells(results: Results, *, label: Label | None = None, measure: str = OWN) -> list[Cell]:
    """The cells of the comparison, in the study's order. Local has two: own test nodes, and everyone's.

    Args:
        label: what a run is called; runs of one name are seeds of one cell. By default the method's title
            and what tells its runs apart.
        measure: a value of the record's best round. Only the accuracy is measured everywhere.
    """
    grouped: dict[tuple[str, int, str], list[RunSpec]] = {}
    for clients, text, spec in placed_runs(results, label):
        grouped.setdefault((place(spec)[0], clients, text), []).append(spec)
    found = []
    for (dataset, clients, text), specs in grouped.items():
        method = specs[0].method.name
        # clients of graph classification have classes of their own: no model is asked about other clients
        if METHODS[method].evaluates_everywhere and not isinstance(specs[0], GraphSpec):
            found.append(Cell(dataset, clients, f"{text}, own test nodes", method, measure, specs))
            if measure == OWN:
                found.append(Cell(dataset, clients, f"{text}, all test nodes", method, EVERYWHERE, specs))
        else:
            found.append(Cell(dataset, clients, text, method, measure, specs))
    return found


def comparison(
    results: Results, baseline: str = "fedavg", *, label: Label | None = None, measure: str = OWN
) -> pd.DataFrame:
    """One row per cell: how accurate, and how different from the baseline, seed by seed.

    Columns: dataset, clients, method (its label), name, measure; seeds (wanted), n (used), diverged, failed,
    stale; mean, std of the accuracy; those of :func:`paired`; p_holm (Holm over all rows of this table);
    best.

    Args:
        baseline: a method's name, for all of its cells, or the label of one.
        label: as in :func:`cells`.
        measure: as in :func:`cells`.

    The baseline of a row is the one run under the same conditions (split, evaluation, learning rate, ...);
    where there is none, as for a method with another backbone, the study's first.

    ``best`` marks the most accurate federated or local row of a column (dataset, number of clients) if no row
    there is missing and its advantage over the baseline holds after Holm's correction at 5 %.
    """
    all_cells = cells(results, label=label, measure=measure)
    baselines = [cell for cell in all_cells if baseline in (cell.method, cell.label)]
    rows = []
    for cell in all_cells:
        values = cell.values(results)
        mean, std = mean_std(list(values.values()))
        beside = None if cell in baselines else _baseline(cell, baselines, results)
        rows.append(
            {
                "dataset": cell.dataset,
                "clients": cell.clients,
                "method": cell.label,
                "name": cell.method,
                "measure": cell.measure,
                "seeds": len(cell.specs),
                "n": len(values),
                **cell.counts(results),
                "mean": mean,
                "std": std,
                **paired(values, beside.values(results) if beside else {}),
            }
        )
    frame = pd.DataFrame(rows)
    frame["p_holm"] = holm(list(frame["p"]))
    frame["best"] = _best(frame)
    return frame


def paired(values: Mapping[int, float], reference: Mapping[int, float]) -> dict[str, Any]:
    """What seeds say of a difference, from two measures by seed.

    Returns:
        difference, low, high (95 % t interval of paired differences), p; pairs; detectable (the difference
        found with probability 0.8); alike: two one-sided tests at 5 % say that it is less than a point.
    """
    differences = [values[seed] - reference[seed] for seed in sorted(values.keys() & reference.keys())]
    interval, narrow = paired_interval(differences), paired_interval(differences, confidence=0.9)
    several = isfinite(interval.low)
    return {
        "difference": interval.mean,
        "low": interval.low if several else nan,
        "high": interval.high if several else nan,
        "p": interval.p,
        "pairs": len(differences),
        "detectable": detectable_difference(mean_std(differences)[1], len(differences)),
        "alike": several and narrow.low > -MARGIN and narrow.high < MARGIN,
    }


def missing_table(results: Results, label: Label | None = None) -> pd.DataFrame:
    """How many runs each cell lacks: rows dataset and method, columns numbers of clients.

    Args:
        label: as in :func:`cells`.
    """
    lacking = [
        (cell, sum(results.record(spec) is None for spec in cell.specs))
        for cell in cells(results, label=label)
        if cell.measure == OWN
    ]
    rows = [(cell.dataset, cell.clients, cell.label, count) for cell, count in lacking if count]
    frame = pd.DataFrame(rows, columns=["dataset", "clients", "method", "count"])
    return _wide(frame, frame["count"], "clients").fillna(0).astype(int)


def settings_table(results: Results) -> pd.DataFrame:
    """Every field of the runs beside dataset and clients with the values it takes; methods' own below."""
    values: dict[str, dict[str, None]] = {}
    for spec in results.specs:
        for name, value in {**_common(spec), "seed": spec.seed}.items():
            values.setdefault(name, {})[str(value)] = None
    for spec in results.specs:
        for name, value in spec.method.model_dump(exclude={"name"}).items():
            values.setdefault(f"{METHODS[spec.method.name].title}: {name}", {})[str(value)] = None
    rows = {name.replace("_", " "): ", ".join(taken) for name, taken in values.items()}
    if results.tuning:
        rows = {"learning rate and weights": results.tuning, **rows}
    return pd.DataFrame({"value": rows}).rename_axis("setting")


def _baseline(cell: Cell, baselines: list[Cell], results: Results) -> Cell | None:
    beside = [other for other in baselines if (other.dataset, other.clients) == (cell.dataset, cell.clients)]
    conditions = _common(results.as_written(cell.specs[0]))  # a tuned value is none
    alike = [other for other in beside if _common(results.as_written(other.specs[0])) == conditions]
    return next(iter(alike or beside), None)


def accuracy_table(
    frame: pd.DataFrame, *, columns: str = "clients", what: str = "accuracy", uuid: str = "accuracy"
) -> Styler:
    """Mean ± standard deviation of the test accuracy in per cent; the best of a column in bold.

    Args:
        frame: from :func:`comparison`.
        columns: of ``frame``, whose values become the table's columns.
        what: is measured, for the caption.
        uuid: of the table's identifiers, different for each table of a page.
    """
    caption = f"Test {what} in %, mean ± standard deviation"
    return wide_table(frame, frame.apply(_accuracy_text, axis=1), caption, columns=columns, uuid=uuid)


def difference_table(
    frame: pd.DataFrame, to: str | None = "FedAvg", *, columns: str = "clients", uuid: str = "difference"
) -> Styler:
    """Paired difference to the baseline in percentage points with its 95 % interval.

    Args:
        frame: from :func:`comparison` or :func:`fgl_core.study.contrasts.contrasts`.
        to: name of the baseline, for the caption; None where each row names both sides.
        columns: as in :func:`accuracy_table`.
        uuid: as in :func:`accuracy_table`.
    """
    rows = frame[frame.groupby("method")["pairs"].transform("max") > 0]
    if rows.empty:
        rows = frame
    caption = f"Difference{f' to {to}' if to else ''} in percentage points, 95 % interval"
    return wide_table(rows, rows.apply(_difference_text, axis=1), caption, columns=columns, uuid=uuid)


def wide_table(
    frame: pd.DataFrame, text: pd.Series, caption: str, *, columns: str = "clients", uuid: str
) -> Styler:
    """A text for each row of ``frame``, laid out by dataset and method against ``columns``."""
    wide = _wide(frame, text, columns).fillna("")
    styler = wide.style.set_uuid(uuid).set_caption(caption)
    if "best" not in frame:
        return styler
    bold = _wide(frame, frame["best"], columns).reindex_like(wide).eq(True)
    return styler.apply(lambda _: bold.map(lambda best: "font-weight: bold" if best else ""), axis=None)


def place(spec: RunSpec) -> tuple[str, int]:
    """Where a run stands in a table: its dataset or setting, and its number of clients."""
    if isinstance(spec, GraphSpec):
        return spec.setting, len(spec.datasets) * spec.clients_per_dataset
    return spec.dataset, spec.clients


def placed_runs(results: Results, label: Label | None = None) -> Iterator[tuple[int, str, RunSpec]]:
    """Each run with its number of clients and its label. The whole graph stands beside every number.

    Args:
        label: as in :func:`cells`.
    """
    specs = results.specs
    numbers: dict[str, dict[int, None]] = {}
    for spec in specs:
        if not METHODS[spec.method.name].centralised:
            dataset, clients = place(spec)
            numbers.setdefault(dataset, {})[clients] = None
    labels = _labels(specs, results.as_written) if label is None else {s.digest: label(s) for s in specs}
    for spec in specs:
        dataset, clients = place(spec)
        beside = METHODS[spec.method.name].centralised and numbers.get(dataset)
        for number in beside or (clients,):
            yield number, labels[spec.digest], spec


def _labels(specs: list[RunSpec], before: Callable[[RunSpec], RunSpec] = lambda spec: spec) -> dict[str, str]:
    """The method's title, and each value that tells its runs at one place apart unless it is the default."""
    fields = {spec.digest: _fields(before(spec)) for spec in specs}  # tuned values tell no rows apart
    taken: dict[tuple[str, str, str], set[str]] = {}
    for spec in specs:
        for name, value in fields[spec.digest].items():
            taken.setdefault((place(spec)[0], spec.method.name, name), set()).add(str(value))
    # a value that follows from the place, as GCFL's thresholds do, tells no rows apart
    varied = {key[1:] for key, values in taken.items() if len(values) > 1}
    labels = {}
    for spec in specs:
        defaults = {**type(spec).model_fields, **type(spec.method).model_fields}
        parts = [
            f"{name.replace('_', ' ')} {value}"
            for name, value in fields[spec.digest].items()
            if (spec.method.name, name) in varied and value != defaults[name].default
        ]
        labels[spec.digest] = ", ".join([METHODS[spec.method.name].title, *parts])
    return labels


def _fields(spec: RunSpec) -> dict[str, Any]:
    """What tells a run apart beside its place and its seed."""
    return _common(spec) | {name: value for name, value in spec.method.model_dump().items() if name != "name"}


def _common(spec: RunSpec) -> dict[str, Any]:
    """The fields that are not the method's, beside place and seed."""
    placed = {"task", "dataset", "setting", "clients", "clients_per_dataset", "seed", "method"}
    return {name: value for name, value in spec.model_dump().items() if name not in placed}


def _row(record: Record) -> dict[str, Any]:
    fields = record.spec.model_dump(mode="json")
    method = fields.pop("method")
    data = record.data
    measured = {
        f"{moment}_{name}": value
        for moment in ("best", "last")
        for name, value in (data.get(moment) or {}).items()
        if not isinstance(value, list)
    }
    sent = {
        f"bytes_{way}": sum(sum(rounds) for rounds in kinds.values())
        for way, kinds in (data.get("bytes") or {}).items()
    }
    return {
        **fields,
        "method": method.pop("name"),
        **{f"method.{name}": value for name, value in method.items()},
        "status": record.status,
        "stale": record.stale,
        **measured,
        **sent,
        "seconds": record.seconds,
        "commit": record.commit,
        "date": record.date,
        "digest": data["digest"],
    }


def _best(frame: pd.DataFrame) -> pd.Series:
    best = pd.Series(False, index=frame.index)
    competing = ~frame["name"].map(lambda name: METHODS[name].centralised)
    for _, column in frame[competing].groupby(["dataset", "clients"]):
        if (column["n"] > 0).all():
            row = column["mean"].idxmax()
            best[row] = bool(column["difference"][row] > 0 and column["p_holm"][row] < LEVEL)
    return best


def _accuracy_text(row: pd.Series) -> str:
    notes = [f"{row['n']} of {row['seeds']}"]
    notes += [f"{row[kind]} {kind}" for kind in ("diverged", "failed", "stale") if row[kind]]
    note = f" ({', '.join(notes)})"
    if row["n"] == 0:
        return "missing" + note
    spread = "" if isnan(row["std"]) else f" ± {100 * row['std']:.1f}"
    return f"{100 * row['mean']:.1f}{spread}" + (note if row["n"] < row["seeds"] else "")


def _difference_text(row: pd.Series) -> str:
    if row["pairs"] == 0:
        return "missing"
    text = f"{100 * row['difference']:+.1f}"
    if not isnan(row["low"]):
        text += f" [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]"
    return text


def _wide(frame: pd.DataFrame, values: pd.Series, columns: str) -> pd.DataFrame:
    """Rows dataset and method, in the order of ``frame``; columns numbers of clients, or as they come."""
    rows = [name for name in ("dataset", "method") if name != columns]
    long = frame[[*rows, columns]].assign(value=values)
    wide = long.pivot(index=rows, columns=columns, values="value")
    order = pd.MultiIndex.from_frame(long[rows].drop_duplicates())
    across: Sequence[Any] = list(dict.fromkeys(long[columns]))
    if columns == "clients":
        across = sorted(across)
    wide = wide.reindex(order if len(rows) > 1 else order.get_level_values(0))[across]
    wide.columns = [f"{value} clients" if columns == "clients" else str(value) for value in across]
    return wide
