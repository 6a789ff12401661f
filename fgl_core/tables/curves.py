"""How runs get to their accuracy: rounds to a target, who leads, how steady."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fgl_core.study.results import Results
from fgl_core.tables.cells import cells
from fgl_core.tables.frames import OWN
from fgl_core.tables.labels import Label
from fgl_core.tables.layout import wide_table

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

PLACE = ["dataset", "clients"]


def rounds_by_seed(
    results: Results, label: Label | None = None
) -> dict[tuple[str, int, str], dict[int, float]]:
    """In which round each run first reaches what FedAvg of its seed ends with; infinite if never.

    The target of a seed is FedAvg's test accuracy at its best-validation round.

    Args:
        label: as in :func:`fgl_core.tables.cells.cells`.

    Returns:
        By dataset, number of clients and label, for every cell: the rounds by seed, for seeds with a target.
    """
    all_cells = [cell for cell in cells(results, label=label) if cell.measure == OWN]
    targets = {
        (cell.dataset, cell.clients): cell.values(results)
        for cell in reversed(all_cells)
        if cell.method == "fedavg"
    }
    found = {}
    for cell in all_cells:
        target = targets.get((cell.dataset, cell.clients), {})
        records = {spec.seed: results.record(spec) for spec in cell.specs}
        found[cell.dataset, cell.clients, cell.label] = {
            seed: _first_at_least(record.data["curves"][OWN], target[seed])
            for seed, record in records.items()
            if record is not None and record.status == "done" and seed in target
        }
    return found


def rounds_to_reach(results: Results, label: Label | None = None) -> pd.DataFrame:
    """:func:`rounds_by_seed`, seeds taken together.

    Returns:
        One row per cell: dataset, clients, method (its label); pairs (seeds with a target), reached (how many
        of them get there); median, first, last round, where a seed that never gets there counts as infinite;
        nan without a pair.
    """
    rows = []
    for (dataset, clients, text), seeds in rounds_by_seed(results, label).items():
        needed = list(seeds.values())
        rows.append(
            {
                "dataset": dataset,
                "clients": clients,
                "method": text,
                "pairs": len(needed),
                "reached": int(np.isfinite(needed).sum()),
                "median": float(np.median(needed)) if needed else nan,
                "first": min(needed, default=nan),
                "last": max(needed, default=nan),
            }
        )
    return pd.DataFrame(rows)


def reach_table(frame: pd.DataFrame, *, columns: str = "clients") -> Styler:
    """The median round of :func:`rounds_to_reach`, and how many seeds get there at all.

    Args:
        columns: as in :func:`fgl_core.tables.layout.accuracy_table`.
    """
    text = frame.apply(_reach_text, axis=1)
    caption = "Rounds to reach what FedAvg ends with, median over seeds (seeds that get there)"
    return wide_table(frame, text, caption, columns=columns, uuid="reach")


def lead(frame: pd.DataFrame, label: str) -> pd.DataFrame:
    """In how many rounds one method's mean accuracy is above every other's.

    Args:
        frame: from :func:`fgl_core.tables.frames.curves_frame`.

    Returns:
        One row per dataset and number of clients at which the method and another one have runs: dataset,
        clients, rounds (in which all have a value), led.
    """
    rows = []
    for (dataset, clients), part in frame.groupby(PLACE, sort=False):
        mean = part.pivot_table(index="round", columns="method", values="value").dropna()
        if label not in mean or mean.shape[1] < 2:
            continue
        led = mean[label] > mean.drop(columns=label).max(axis=1)
        rows.append({"dataset": dataset, "clients": clients, "rounds": len(mean), "led": int(led.sum())})
    return pd.DataFrame(rows, columns=[*PLACE, "rounds", "led"])


def steadiness(frame: pd.DataFrame) -> pd.DataFrame:
    """How much the accuracy still moves from round to round in the second half of training.

    Args:
        frame: from :func:`fgl_core.tables.frames.curves_frame`.

    Returns:
        One row per cell: dataset, clients, method, seeds; change: mean absolute difference between
        neighbouring rounds of the second half, averaged over seeds.
    """
    rows = []
    for (dataset, clients, method), part in frame.groupby([*PLACE, "method"], sort=False):
        changes = [
            run.sort_values("round")["value"].iloc[(len(run) - 1) // 2 :].diff().abs().mean()
            for _, run in part.groupby("seed")
        ]
        change = float(np.mean(changes))
        rows.append(
            {
                "dataset": dataset,
                "clients": clients,
                "method": method,
                "seeds": len(changes),
                "change": change,
            }
        )
    return pd.DataFrame(rows, columns=[*PLACE, "method", "seeds", "change"])


def _reach_text(row: pd.Series) -> str:
    if not row["pairs"]:
        return "missing"
    median = f"{row['median']:g}" if np.isfinite(row["median"]) else "not reached"
    return f"{median} ({row['reached']} of {row['pairs']})"


def _first_at_least(curve: list[float], target: float) -> float:
    reached = np.flatnonzero(np.asarray(curve) >= target)
    return float(reached[0] + 1) if len(reached) else float("inf")
