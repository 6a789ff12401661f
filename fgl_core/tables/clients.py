"""What each client got, not only their mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from fgl_core.study.results import Results
from fgl_core.tables.labels import place, placed_runs

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler


def client_accuracies(results: Results) -> pd.DataFrame:
    """One row per run and client: setting, method (its label), seed, client, accuracy.

    The accuracy is that on the client's own test examples at the best-validation round; a client without test
    examples has none.
    """
    rows = [
        (place(spec)[0], label, spec.seed, client.get("name", str(number)), correct / client["test"])
        for _, label, spec in placed_runs(results)
        if (record := results.record(spec)) and record.data["best"]
        for number, (client, correct) in enumerate(
            zip(record.data["partition"]["clients"], record.data["best"]["test_correct"], strict=True)
        )
        if client["test"]
    ]
    return pd.DataFrame(rows, columns=["setting", "method", "seed", "client", "accuracy"])


def client_table(results: Results) -> Styler:
    """Mean over seeds of each client's test accuracy in per cent; a row per setting and method."""
    frame = client_accuracies(results)
    wide = frame.pivot_table(index=["setting", "method"], columns="client", values="accuracy", sort=False)
    return (
        (100 * wide).style.format("{:.1f}", na_rep="").set_uuid("clients").set_caption("Test accuracy in %")
    )
