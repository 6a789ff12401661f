"""Comparisons: one row per cell, which is a method at a place of the table with all its seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

import pandas as pd

from fgl_core.methods import METHODS
from fgl_core.study.results import Results
from fgl_core.study.spec import GraphSpec, RunSpec
from fgl_core.study.store import Record
from fgl_core.tables.frames import EVERYWHERE, OWN
from fgl_core.tables.labels import Label, conditions, place, placed_runs
from fgl_core.tables.statistics import (
    LEVEL,
    detectable_difference,
    equivalence,
    holm,
    mean_std,
    paired_interval,
)

Measure = str | Callable[[Record], float]  # a value of a record's best round, or made of a record
MARGIN = 0.01  # two accuracies that differ by less than a point count as alike


@dataclass(frozen=True)
class Cell:
    """All seeds of one method at one place of the table, by one measure."""

    dataset: str
    clients: int
    label: str
    method: str
    measure: Measure
    specs: list[RunSpec]

    def values(self, results: Results) -> dict[int, float]:
        """The measure at the best-validation round of each finished run, by seed."""
        measure = self.measure
        found = ((spec.seed, results.record(spec)) for spec in self.specs)
        return {
            seed: measure(record) if callable(measure) else record.data["best"][measure]
            for seed, record in found
            if record is not None and record.status == "done"
        }

    def test_to_train(self, results: Results) -> float:
        """Test examples per training example, over all clients and seeds; nan without a record."""
        clients = [
            client
            for spec in self.specs
            if (record := results.record(spec))
            for client in (record.data.get("partition") or {}).get("clients", ())
        ]
        train = sum(client["train"] for client in clients)
        return sum(client["test"] for client in clients) / train if train else nan

    def counts(self, results: Results) -> dict[str, int]:
        """How many seeds diverged, failed, or have only a stale record."""
        records = [record for spec in self.specs if (record := results.found.get(spec.digest))]
        return {
            "diverged": sum(record.status == "diverged" and not record.stale for record in records),
            "failed": sum(record.status == "failed" and not record.stale for record in records),
            "stale": sum(record.stale for record in records),
        }


def cells(results: Results, *, label: Label | None = None, measure: Measure = OWN) -> list[Cell]:
    """The cells of the comparison, in the study's order. Local has two: own test nodes, and everyone's.

    Args:
        label: what a run is called; runs of one name are seeds of one cell. By default the method's title
            and what tells its runs apart.
        measure: a value of the record's best round, or what makes one of a record that is done. Only the
            accuracy is measured everywhere.
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
    results: Results, baseline: str = "fedavg", *, label: Label | None = None, measure: Measure = OWN
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
                **paired(values, beside.values(results) if beside else {}, cell.test_to_train(results)),
            }
        )
    frame = pd.DataFrame(rows)
    frame["p_holm"] = holm(list(frame["p"]))
    frame["best"] = _best(frame)
    return frame


def paired(
    values: Mapping[int, float], reference: Mapping[int, float], test_to_train: float = nan
) -> dict[str, Any]:
    """What seeds say of a difference, from two measures by seed.

    Args:
        test_to_train: test examples per training example, for the correction.

    Returns:
        difference, low, high (95 % t interval of paired differences), p; pairs; detectable (the difference
        found with probability 0.8); alike: two one-sided tests at 5 % say that it is less than a point;
        corrected_low, corrected_high: the interval as Nadeau and Bengio correct it, nan where
        ``test_to_train`` is.
    """
    differences = [values[seed] - reference[seed] for seed in sorted(values.keys() & reference.keys())]
    interval = paired_interval(differences)
    corrected = paired_interval(differences, test_to_train=test_to_train)
    several = isfinite(interval.low)
    return {
        "difference": interval.mean,
        "low": interval.low if several else nan,
        "high": interval.high if several else nan,
        "p": interval.p,
        "pairs": len(differences),
        "detectable": detectable_difference(mean_std(differences)[1], len(differences)),
        "alike": equivalence(differences, MARGIN)[0] < LEVEL,
        "corrected_low": corrected.low if several else nan,
        "corrected_high": corrected.high if several else nan,
    }


def _baseline(cell: Cell, baselines: list[Cell], results: Results) -> Cell | None:
    beside = [other for other in baselines if (other.dataset, other.clients) == (cell.dataset, cell.clients)]
    same = conditions(results.as_written(cell.specs[0]))  # a tuned value is none
    alike = [other for other in beside if conditions(results.as_written(other.specs[0])) == same]
    return next(iter(alike or beside), None)


def _best(frame: pd.DataFrame) -> pd.Series:
    best = pd.Series(False, index=frame.index)
    competing = ~frame["name"].map(lambda name: METHODS[name].centralised)
    for _, column in frame[competing].groupby(["dataset", "clients"]):
        if (column["n"] > 0).all():
            row = column["mean"].idxmax()
            best[row] = bool(column["difference"][row] > 0 and column["p_holm"][row] < LEVEL)
    return best
