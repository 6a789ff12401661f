"""How alike clients' models and graphs are, from records that compare them (FGSSL, Fig. 1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fgl_core.methods import METHODS
from fgl_core.study.results import Results
from fgl_core.study.store import Record
from fgl_core.tables.cells import paired
from fgl_core.tables.statistics import mean_std


@dataclass(frozen=True)
class Pairs:
    """Every pair of clients of one run.

    Attributes:
        cka: likeness of their models on the same input, ``[clients, clients]``, 1 where they are equal.
        js_distance: Jensen–Shannon distance of their graphs, ``[clients, clients]``, nan where a graph has
            no edge.
    """

    dataset: str
    clients: int
    seed: int
    cka: np.ndarray
    js_distance: np.ndarray


def client_pairs(results: Results, seed: int) -> list[Pairs]:
    """The pairs of clients of each dataset: of the run with this seed, or of the first one that there is.

    Clients of different seeds hold different parts of the graph, so that matrices of several seeds have no
    common average. A dataset without any run has matrices of nan.
    """
    found = []
    for dataset, clients in dict.fromkeys((spec.dataset, spec.clients) for spec in results.specs):
        records = [r for r in results.shown if (r.spec.dataset, r.spec.clients) == (dataset, clients)]
        measured = sorted(filter(_measured, records), key=lambda r: (r.spec.seed != seed, r.spec.seed))
        if measured:
            found.append(_pairs(measured[0]))
        else:
            empty = np.full((clients, clients), np.nan)
            found.append(Pairs(dataset, clients, seed, empty, empty))
    return found


def mean_over_pairs(matrix: np.ndarray) -> float:
    """Mean over pairs of different clients; nan entries are left out, nan if all are."""
    values = matrix[np.triu_indices(len(matrix), k=1)]
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else float("nan")


def similarity_table(results: Results) -> pd.DataFrame:
    """Mean CKA and mean Jensen–Shannon distance over pairs of clients, a row per dataset.

    Columns: dataset, clients, seeds (wanted), n (used), cka, cka_std, js, js_std: mean and deviation over
    seeds of each run's mean over pairs.
    """
    rows = []
    for dataset, clients in dict.fromkeys((spec.dataset, spec.clients) for spec in results.specs):
        specs = [spec for spec in results.specs if (spec.dataset, spec.clients) == (dataset, clients)]
        found = [_pairs(r) for r in map(results.record, specs) if r is not None and _measured(r)]
        row: dict[str, Any] = {"dataset": dataset, "clients": clients, "seeds": len(specs), "n": len(found)}
        row["cka"], row["cka_std"] = mean_std([mean_over_pairs(pairs.cka) for pairs in found])
        row["js"], row["js_std"] = mean_std([mean_over_pairs(pairs.js_distance) for pairs in found])
        rows.append(row)
    return pd.DataFrame(rows)


def similarity_curves(records: Iterable[Record]) -> pd.DataFrame:
    """Mean CKA over pairs of client models in each observed round.

    Columns as those of :func:`fgl_core.tables.frames.curves_frame`.
    """
    rows = [
        (spec.dataset, spec.clients, METHODS[spec.method.name].title, spec.method.name, spec.seed, at, value)
        for record in records
        if _measured(record)
        for spec, seen in [(record.spec, record.data["heterogeneity"])]
        for at, value in zip(seen["rounds"], seen["mean_cka"], strict=True)
    ]
    return pd.DataFrame(rows, columns=["dataset", "clients", "method", "name", "seed", "round", "value"])


def similarity_contrast(frame: pd.DataFrame, method: str, baseline: str) -> pd.DataFrame:
    """Mean CKA of two methods in the last observed round, and their difference seed by seed.

    Args:
        frame: from :func:`similarity_curves`.
        method, baseline: labels in it.

    Returns:
        One row per dataset and number of clients: dataset, clients, the mean of either method, and the
        columns of :func:`fgl_core.tables.cells.paired`.
    """
    rows = []
    for (dataset, clients), part in frame.groupby(["dataset", "clients"], sort=False):
        last = part.sort_values("round").groupby(["method", "seed"])["value"].last()
        first, second = (_by_seed(last, label) for label in (method, baseline))
        means = {method: mean_std(list(first.values()))[0], baseline: mean_std(list(second.values()))[0]}
        rows.append({"dataset": dataset, "clients": clients, **means, **paired(first, second)})
    columns = ["dataset", "clients", method, baseline, *paired({}, {})]
    return pd.DataFrame(rows, columns=columns)


def _by_seed(values: pd.Series, label: str) -> dict[int, float]:
    return values.loc[label].to_dict() if label in values.index.get_level_values("method") else {}


def _measured(record: Record) -> bool:
    # a run that diverged before the first comparison has no matrix
    return bool((record.data.get("heterogeneity") or {}).get("cka"))


def _pairs(record: Record) -> Pairs:
    spec, seen = record.spec, record.data["heterogeneity"]
    return Pairs(
        spec.dataset,
        spec.clients,
        spec.seed,
        np.array(seen["cka"], dtype=float),
        np.array(seen["js_distance"], dtype=float),  # None becomes nan
    )
