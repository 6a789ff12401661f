"""What travels: bytes per client and round, from the ledgers of the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fgl_core.study.results import Results
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
    """:func:`traffic_frame` for a reader, in kB of 1000 bytes: a column per way and kind."""
    wide = frame.assign(kB=frame["bytes"] / 1000).pivot_table(
        index=["dataset", "method"], columns=["way", "kind"], values="kB", sort=False
    )
    wide = wide[sorted(wide.columns, key=lambda column: column[0] != "up")]
    styler = wide.rename_axis(columns=[None, None]).style.format("{:.3f}", na_rep="–")
    return styler.set_uuid("traffic").set_caption("kB per client and round")
