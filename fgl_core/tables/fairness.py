"""How evenly accuracy is spread over clients: the worst-off client, and how far clients are apart."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from fgl_core.study.results import Results
from fgl_core.study.store import Record
from fgl_core.tables.cells import cells, paired
from fgl_core.tables.frames import OWN
from fgl_core.tables.labels import Label
from fgl_core.tables.statistics import holm, mean_std


def fairness_frame(
    results: Results, measure: str, baseline: str = "fedavg", *, label: Label | None = None
) -> pd.DataFrame:
    """A measure of fairness, and its paired difference to a baseline, as :func:`~fgl_core.tables.comparison`.

    Args:
        measure: ``worst``: the accuracy of the client that has the least; ``spread``: the standard deviation
            of accuracy over clients. Of a run's clients on their own test examples, at its best-validation
            round; clients without test examples have none.
        baseline: a method's name, or the label of a cell.
        label: as in :func:`fgl_core.tables.cells.cells`.
    """
    all_cells = [cell for cell in cells(results, label=label) if cell.measure == OWN]
    beside = {
        (cell.dataset, cell.clients): _by_seed(results, cell.specs, measure)
        for cell in reversed(all_cells)
        if baseline in (cell.method, cell.label)
    }
    rows = []
    for cell in all_cells:
        values = _by_seed(results, cell.specs, measure)
        mean, std = mean_std(list(values.values()))
        itself = baseline in (cell.method, cell.label)
        reference = {} if itself else beside.get((cell.dataset, cell.clients), {})
        about = {"dataset": cell.dataset, "clients": cell.clients, "method": cell.label, "name": cell.method}
        about |= {"measure": OWN, "seeds": len(cell.specs), "n": len(values), **cell.counts(results)}
        rows.append({**about, "mean": mean, "std": std, **paired(values, reference)})
    frame = pd.DataFrame(rows)
    frame["p_holm"] = holm(list(frame["p"]))
    frame["best"] = False
    return frame


def client_shares(record: Record) -> np.ndarray:
    """The test accuracy of each client that has test examples, at the best-validation round."""
    clients, correct = record.data["partition"]["clients"], record.data["best"]["test_correct"]
    return np.array(
        [hits / client["test"] for client, hits in zip(clients, correct, strict=True) if client["test"]]
    )


def _by_seed(results: Results, specs: list, measure: str) -> Mapping[int, float]:
    of = {"worst": np.min, "spread": np.std}[measure]
    found = ((spec.seed, results.record(spec)) for spec in specs)
    return {
        seed: float(of(client_shares(record))) for seed, record in found if record and record.status == "done"
    }
