"""Differences between any two rows of a table, and in how many cells a difference is clear."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from fgl_core.study.results import Results
from fgl_core.tables.cells import cells, paired
from fgl_core.tables.frames import OWN
from fgl_core.tables.labels import Label
from fgl_core.tables.statistics import LEVEL, holm

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

VERDICTS = ("clearly better", "clearly worse", "alike", "undecided", "missing")


def contrasts(
    results: Results,
    pairs: Mapping[str, tuple[str, str]],
    *,
    label: Label | None = None,
) -> pd.DataFrame:
    """First minus second, seed by seed, at each place where the study has both.

    Args:
        pairs: the labels of two cells, by the name of their contrast.
        label: as in :func:`fgl_core.tables.cells.cells`.

    Returns:
        One row per contrast, dataset and number of clients: dataset, clients, method (the contrast's name),
        name (empty), measure, the columns of :func:`fgl_core.tables.cells.paired`, p_holm (Holm over all
        rows), best (nowhere). What tables and figures of differences take.
    """
    found = {(cell.dataset, cell.clients, cell.label): cell for cell in cells(results, label=label)}
    rows = [
        {
            "dataset": dataset,
            "clients": clients,
            "method": contrast,
            "name": "",
            "measure": OWN,
            **paired(
                found[dataset, clients, first].values(results),
                found[dataset, clients, second].values(results),
                found[dataset, clients, first].test_to_train(results),
            ),
        }
        for dataset, clients in dict.fromkeys(key[:2] for key in found)
        for contrast, (first, second) in pairs.items()
        if (dataset, clients, first) in found and (dataset, clients, second) in found
    ]
    columns = ["dataset", "clients", "method", "name", "measure", *paired({}, {})]
    frame = pd.DataFrame(rows, columns=columns)
    frame["p_holm"] = holm(list(frame["p"]))
    frame["best"] = False
    return frame


def verdicts(frame: pd.DataFrame) -> pd.Series:
    """What each row's difference says, one of :data:`VERDICTS`.

    Clear: Holm's corrected p-value is below 5 %. Alike: not clear, and two one-sided tests say that the
    difference is less than a point. Missing: fewer than two pairs of runs.

    Args:
        frame: from :func:`contrasts` or :func:`fgl_core.tables.cells.comparison`.
    """
    return frame.apply(_verdict, axis=1, result_type="reduce").astype(object)


def verdict_table(frame: pd.DataFrame) -> Styler:
    """In how many cells (dataset and number of clients) each difference is clear.

    Args:
        frame: as in :func:`verdicts`; a table's baseline, which has no difference, is left out.
    """
    counted = verdict_counts(frame)
    caption = "Number of cells (dataset and number of clients) in which the difference is ..."
    return counted.rename_axis(None).style.set_uuid("verdicts").set_caption(caption)


def verdict_counts(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per method or contrast, one column per verdict: the numbers of cells."""
    order = list(dict.fromkeys(frame["method"]))
    counted = pd.crosstab(frame["method"], verdicts(frame)) if len(frame) else pd.DataFrame()
    return counted.reindex(index=order, columns=VERDICTS, fill_value=0).rename_axis(None, axis=1)


def answer(frame: pd.DataFrame, method: str, profile: str) -> str:
    """What a table says of one method or contrast, as a sentence of Markdown.

    Args:
        frame: as in :func:`verdicts`.
        profile: of the results; only ``paper`` and ``power`` follow the paper's protocol.
    """
    rows = frame[frame["method"] == method]
    counted = verdict_counts(rows).sum()
    seen = int(len(rows) - counted["missing"])
    if not seen:
        return f"**{method}**: fewer than two pairs of runs, so nothing can be said yet."
    parts = [f"{counted[verdict]} {verdict}" for verdict in VERDICTS[:4] if counted[verdict]]
    rest = f"; {counted['missing']} more without runs" if counted["missing"] else ""
    mean = 100 * rows["difference"].mean()
    hint = "" if profile in ("paper", "power") else f" Profile {profile}: a hint, not a verdict."
    number = "1 cell" if seen == 1 else f"{seen} cells"
    return f"**{method}**: on average {mean:+.1f} points. {number}: {', '.join(parts)}{rest}.{hint}"


def _verdict(row: pd.Series) -> str:
    if row["pairs"] < 2:
        return "missing"
    if row["p_holm"] < LEVEL:
        return "clearly better" if row["difference"] > 0 else "clearly worse"
    return "alike" if row["alike"] else "undecided"
