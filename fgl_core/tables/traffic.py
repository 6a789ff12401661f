"""What travels: bytes per client and round, from the ledgers of the records."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fgl_core.study.results import Results
from fgl_core.study.store import Record
from fgl_core.tables.cells import cells
from fgl_core.tables.curves import rounds_by_seed
from fgl_core.tables.frames import OWN
from fgl_core.tables.labels import Label, place, placed_runs

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler


def traffic_frame(results: Results, label: Label | None = None) -> pd.DataFrame:
    """Mean bytes per client and round, over rounds and seeds.

    Args:
        label: as in :func:`fgl_core.tables.cells.cells`.

    Returns:
        One row per cell, way and kind of tensor: dataset, clients, method (its label), way (``up`` to the
        server, ``down`` from it), kind, bytes. A cell without a record has no row.
    """
    rows = [
        (place(spec)[0], clients, text, way, kind, np.mean(rounds) / clients)
        for clients, text, spec in placed_runs(results, label)
        if (record := results.record(spec)) and record.status == "done"
        for way, kinds in record.data["bytes"].items()
        for kind, rounds in kinds.items()
    ]
    columns = ["dataset", "clients", "method", "way", "kind", "bytes"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.groupby(columns[:-1], sort=False, as_index=False)["bytes"].mean()


def traffic_table(frame: pd.DataFrame) -> Styler:
    """:func:`traffic_frame` for a reader, in kB of 1000 bytes: a column per way and kind.

    A row is a mean over numbers of clients.
    """
    wide = frame.assign(kB=frame["bytes"] / 1000).pivot_table(
        index=["dataset", "method"], columns=["way", "kind"], values="kB", sort=False
    )
    wide = wide[sorted(wide.columns, key=lambda column: column[0] != "up")]
    styler = wide.rename_axis(columns=[None, None]).style.format("{:.3f}", na_rep="–")
    return styler.set_uuid("traffic").set_caption(
        "kB per client and round, mean over seeds and numbers of clients"
    )


def costs_to_reach(results: Results) -> pd.DataFrame:
    """What it takes until a run first reaches what FedAvg of its seed ends with.

    Returns:
        One row per cell: dataset, clients, method (its label); pairs (seeds with a target), reached (how many
        of them get there); medians over seeds of rounds, megabytes (up and down, all clients together) and
        seconds (of the machine of the records), infinite unless more than half get there, nan without a pair.
    """
    reached = rounds_by_seed(results)
    rows = []
    for cell in (cell for cell in cells(results) if cell.measure == OWN):
        at = {spec.seed: results.record(spec) for spec in cell.specs}
        seeds = reached[cell.dataset, cell.clients, cell.label]
        spent = [_spent(record, rounds) for seed, rounds in seeds.items() if (record := at[seed])]
        middle = np.median(spent, axis=0) if spent else [nan] * 3
        about = {"dataset": cell.dataset, "clients": cell.clients, "method": cell.label, "pairs": len(spent)}
        about["reached"] = int(np.isfinite([rounds for rounds, _, _ in spent]).sum())
        rows.append(about | dict(zip(("rounds", "megabytes", "seconds"), map(float, middle), strict=True)))
    return pd.DataFrame(rows)


def costs_table(frame: pd.DataFrame) -> Styler:
    """:func:`costs_to_reach` for a reader; a row per cell."""

    def text(value: float, form: str) -> str:
        return "missing" if np.isnan(value) else format(value, form) if np.isfinite(value) else "not reached"

    columns = {"rounds": "g", "megabytes": ".2f", "seconds": ".0f"}
    shown = frame.assign(
        **{name: frame[name].map(lambda v, f=form: text(v, f)) for name, form in columns.items()}
    )
    shown["seeds that get there"] = frame["reached"].astype(str) + " of " + frame["pairs"].astype(str)
    styler = shown.drop(columns=["reached", "pairs"]).style.hide().set_uuid("reach-costs")
    return styler.set_caption("Until FedAvg's final accuracy is reached, medians over seeds")


def _spent(record: Record, rounds: float) -> tuple[float, float, float]:
    """Rounds, megabytes and seconds of a run's first rounds."""
    if not np.isfinite(rounds):
        return inf, inf, inf
    first = slice(int(rounds))
    sent = sum(sum(kind[first]) for kinds in record.data["bytes"].values() for kind in kinds.values())
    return rounds, sent / 1e6, rounds * record.data["timing"]["seconds_per_round"]
