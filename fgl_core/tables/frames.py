"""Records as frames: one row per run, or per run and round."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from fgl_core.study.results import Results
from fgl_core.study.spec import RunSpec
from fgl_core.study.store import Record
from fgl_core.tables.labels import Label, labels, place, placed_runs

OWN, EVERYWHERE = "test_accuracy", "everywhere_test_accuracy"


def runs_frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row per run: its fields, the method's own as ``method.tau`` and so on, and what came out.

    Accuracies are fractions, at the best-validation round and at the last; bytes are summed over clients and
    rounds. Of the statistics of a set of graphs, those that are a number, as ``statistics.graphs``.
    """
    return pd.DataFrame([_row(record) for record in records])


def rounds_frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row per run and round: what tells the run apart, round (from 1), and every curve with one value.

    Columns: digest (of the run, as in :func:`runs_frame`), dataset (or setting), clients, method (its label),
    seed, round; then the curves of the records, such as loss and val_accuracy. Analyses without training have
    no rounds.
    """
    trained = [record for record in records if isinstance(record.spec, RunSpec)]
    names = labels([record.spec for record in trained])
    frames = []
    for record in trained:
        curves = record.data.get("curves") or {}  # none where the first round diverged
        scalar = {name: values for name, values in curves.items() if not any(map(_is_list, values))}
        frame = pd.DataFrame(scalar)
        dataset, clients = place(record.spec)
        label, seed = names[record.spec.digest], record.spec.seed
        own = {"digest": record.spec.digest, "dataset": dataset, "clients": clients, "method": label}
        own |= {"seed": seed, "round": range(1, len(frame) + 1)}
        frames.append(pd.DataFrame({**own, **frame}))
    columns = ["digest", "dataset", "clients", "method", "seed", "round"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def curves_frame(results: Results, label: Label | None = None) -> pd.DataFrame:
    """The test accuracy of every run after each round.

    Columns: dataset, clients, method (its label), name, seed, round (from 1), value (a fraction). A run on
    the whole graph appears beside every number of clients.

    Args:
        label: as in :func:`fgl_core.tables.cells.cells`.
    """
    placed = ((clients, text, results.record(spec)) for clients, text, spec in placed_runs(results, label))
    return _curves((clients, text, record) for clients, text, record in placed if record)


def record_curves(records: Iterable[Record]) -> pd.DataFrame:
    """:func:`curves_frame` for records of any origin, e.g. of runs just made."""
    listed = list(records)
    names = labels([record.spec for record in listed])
    return _curves((place(r.spec)[1], names[r.spec.digest], r) for r in listed)


def _curves(placed: Iterable[tuple[int, str, Record]]) -> pd.DataFrame:
    rows = [
        (place(record.spec)[0], clients, label, record.spec.method.name, record.spec.seed, number, value)
        for clients, label, record in placed
        for number, value in enumerate(record.data["curves"].get(OWN, ()), start=1)
    ]
    return pd.DataFrame(rows, columns=["dataset", "clients", "method", "name", "seed", "round", "value"])


def _row(record: Record) -> dict[str, Any]:
    fields = record.spec.model_dump(mode="json")
    method = fields.pop("method", {})  # an analysis without training has none
    data = record.data
    measured = {
        f"{moment}_{name}": value
        for moment in ("best", "last")
        for name, value in (data.get(moment) or {}).items()
        if not _is_list(value)
    }
    counted = {
        f"statistics.{name}": value
        for name, value in (data.get("statistics") or {}).items()
        if isinstance(value, int | float)
    }
    sent = {
        f"bytes_{way}": sum(sum(rounds) for rounds in kinds.values())
        for way, kinds in (data.get("bytes") or {}).items()
    }
    return {
        **fields,
        **{"method" if name == "name" else f"method.{name}": value for name, value in method.items()},
        "status": record.status,
        "stale": record.stale,
        **measured,
        **counted,
        **sent,
        "seconds": record.seconds,
        "commit": record.commit,
        "date": record.date,
        "digest": data["digest"],
    }


def _is_list(value: Any) -> bool:
    return isinstance(value, list)
