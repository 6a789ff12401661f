"""How evenly accuracy is spread over clients: the worst-off client, and how far clients are apart."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from fgl_core.methods import METHODS
from fgl_core.study.results import Results
from fgl_core.study.store import Record
from fgl_core.tables.cells import comparison
from fgl_core.tables.frames import OWN
from fgl_core.tables.statistics import holm


def fairness_frame(
    results: Results, measure: Literal["worst", "spread"], baseline: str = "fedavg"
) -> pd.DataFrame:
    """A measure of fairness, as :func:`~fgl_core.tables.cells.comparison`; ``best`` marks no row.

    A method that trains on the whole graph has no clients to compare, and no row.

    Args:
        measure: ``worst``: the accuracy of the client that has the least; ``spread``: the standard deviation
            of accuracy over clients. Of a run's clients on their own test examples, at its best-validation
            round; clients without test examples have none.
        baseline: a method's name, or the label of a cell.
    """
    of = {"worst": np.min, "spread": np.std}[measure]
    frame = comparison(results, baseline, measure=lambda record: float(of(client_shares(record))))
    frame = frame[~frame["name"].map(lambda name: METHODS[name].centralised)].reset_index(drop=True)
    return frame.assign(measure=OWN, best=False, p_holm=holm(list(frame["p"])))


def client_shares(record: Record) -> np.ndarray:
    """The test accuracy of each client that has test examples, at the best-validation round."""
    clients, correct = record.data["partition"]["clients"], record.data["best"]["test_correct"]
    return np.array(
        [hits / client["test"] for client, hits in zip(clients, correct, strict=True) if client["test"]]
    )
