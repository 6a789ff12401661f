"""Tables over values of a parameter."""

from __future__ import annotations

from math import nan

import pandas as pd

from fgl_core.study.results import Results
from fgl_core.tables.cells import cells
from fgl_core.tables.labels import Label


def with_fields(
    frame: pd.DataFrame, results: Results, *names: str, label: Label | None = None
) -> pd.DataFrame:
    """A comparison with further columns: values of the runs' fields, the method's own or the run's.

    A method without such a field has nan.

    Args:
        frame: from :func:`fgl_core.tables.cells.comparison`, made with the same ``label``.
    """
    specs = {(c.dataset, c.clients, c.label): c.specs[0] for c in cells(results, label=label)}

    def field(row: pd.Series, name: str) -> object:
        spec = specs[row["dataset"], row["clients"], row["method"]]
        return getattr(spec.method, name, getattr(spec, name, nan))

    columns = {name: [field(row, name) for _, row in frame.iterrows()] for name in names}
    return frame.assign(**columns)
