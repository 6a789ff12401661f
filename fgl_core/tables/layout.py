"""Comparisons as a reader sees them: rows methods, columns numbers of clients or settings."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

import pandas as pd

from fgl_core.methods import METHODS
from fgl_core.study.results import Results
from fgl_core.study.spec import RunSpec
from fgl_core.tables.cells import cells
from fgl_core.tables.frames import OWN
from fgl_core.tables.labels import Label, conditions

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler


def accuracy_table(
    frame: pd.DataFrame, *, columns: str = "clients", what: str = "accuracy", uuid: str = "accuracy"
) -> Styler:
    """Mean ± standard deviation of the test accuracy in per cent; the best of a column in bold.

    Args:
        frame: from :func:`~fgl_core.tables.cells.comparison`.
        columns: of ``frame``, whose values become the table's columns.
        what: is measured, for the caption.
        uuid: of the table's identifiers, different for each table of a page.
    """
    caption = f"Test {what} in %, mean ± standard deviation"
    return wide_table(frame, frame.apply(_accuracy_text, axis=1), caption, columns=columns, uuid=uuid)


def difference_table(
    frame: pd.DataFrame, to: str | None = "FedAvg", *, columns: str = "clients", uuid: str = "difference"
) -> Styler:
    """Paired difference to the baseline in percentage points with its 95 % interval.

    The caption says how small a difference could have been found.

    Args:
        frame: from :func:`~fgl_core.tables.cells.comparison` or :func:`fgl_core.tables.contrasts.contrasts`.
        to: name of the baseline, for the caption; None where each row names both sides.
        columns: as in :func:`accuracy_table`.
        uuid: as in :func:`accuracy_table`.
    """
    rows = frame[frame.groupby("method")["pairs"].transform("max") > 0]
    if rows.empty:
        rows = frame
    caption = f"Difference{f' to {to}' if to else ''} in percentage points, 95 % interval"
    if found := detectable_text(rows):
        caption += f". {found}"
    return wide_table(rows, rows.apply(_difference_text, axis=1), caption, columns=columns, uuid=uuid)


def detectable_text(frame: pd.DataFrame) -> str:
    """A sentence: which true difference would have been found; empty where nothing is known of the spread.

    Args:
        frame: as in :func:`difference_table`.
    """
    points = 100 * frame["detectable"].dropna()
    if points.empty:
        return ""
    low, high = f"{points.min():.1f}", f"{points.max():.1f}"
    span = f"{low} points" if low == high else f"{low} points where seeds agree most, {high} where least"
    return f"Four times out of five, so many seeds find a true difference of {span}."


def sensitivity_table(frame: pd.DataFrame) -> Styler:
    """How far each difference depends on the statistics: a row per difference that has an interval.

    Columns: the pairs of runs; the detectable difference, found four times out of five; the 95 % interval;
    its p-value, plain and after Holm's correction over the whole table; the interval of Nadeau and Bengio.

    Args:
        frame: as in :func:`difference_table`.
    """
    rows = frame[frame["pairs"] > 1]
    table = rows[["dataset", "clients", "method", "pairs"]].assign(
        detectable=(100 * rows["detectable"]).map(lambda x: "unknown" if isnan(x) else f"{x:.1f}"),
        interval=_bounds(rows["low"], rows["high"]),
        p=rows["p"].map(_p_text),
        Holm=rows["p_holm"].map(_p_text),
        corrected=_bounds(rows["corrected_low"], rows["corrected_high"]),
    )
    names = {"interval": "95 % interval", "Holm": "p (Holm)", "corrected": "Nadeau–Bengio interval"}
    styler = table.rename(columns=names).style.hide().set_uuid("sensitivity")
    return styler.set_caption("Differences in percentage points")


def wide_table(
    frame: pd.DataFrame, text: pd.Series, caption: str, *, columns: str = "clients", uuid: str
) -> Styler:
    """A text for each row of ``frame``, laid out by dataset and method against ``columns``."""
    wide = _wide(frame, text, columns).fillna("")
    styler = wide.style.set_uuid(uuid).set_caption(caption)
    if "best" not in frame:
        return styler
    bold = _wide(frame, frame["best"], columns).reindex_like(wide).eq(True)
    return styler.apply(lambda _: bold.map(lambda best: "font-weight: bold" if best else ""), axis=None)


def missing_table(results: Results, label: Label | None = None) -> pd.DataFrame:
    """How many runs each cell lacks: rows dataset and method, columns numbers of clients.

    Args:
        label: as in :func:`~fgl_core.tables.cells.cells`.
    """
    lacking = [
        (cell, sum(results.record(spec) is None for spec in cell.specs))
        for cell in cells(results, label=label)
        if cell.measure == OWN
    ]
    rows = [(cell.dataset, cell.clients, cell.label, count) for cell, count in lacking if count]
    frame = pd.DataFrame(rows, columns=["dataset", "clients", "method", "count"])
    return _wide(frame, frame["count"], "clients").fillna(0).astype(int)


def settings_table(results: Results) -> pd.DataFrame:
    """Every field of the runs beside dataset and clients with the values it takes; methods' own below."""
    values: dict[str, dict[str, None]] = {}
    for spec in results.specs:
        for name, value in {**conditions(spec), "seed": spec.seed}.items():
            values.setdefault(name, {})[str(value)] = None
    for spec in results.specs:
        if not isinstance(spec, RunSpec):  # an analysis has no method
            continue
        for name, value in spec.method.model_dump(exclude={"name"}).items():
            values.setdefault(f"{METHODS[spec.method.name].title}: {name}", {})[str(value)] = None
    rows = {name.replace("_", " "): ", ".join(taken) for name, taken in values.items()}
    if results.tuning:
        rows = {"learning rate and weights": results.tuning, **rows}
    return pd.DataFrame({"value": rows}).rename_axis("setting")


def _accuracy_text(row: pd.Series) -> str:
    notes = [f"{row['n']} of {row['seeds']}"]
    notes += [f"{row[kind]} {kind}" for kind in ("diverged", "failed", "stale") if row[kind]]
    note = f" ({', '.join(notes)})"
    if row["n"] == 0:
        return "missing" + note
    spread = "" if isnan(row["std"]) else f" ± {100 * row['std']:.1f}"
    return f"{100 * row['mean']:.1f}{spread}" + (note if row["n"] < row["seeds"] else "")


def _difference_text(row: pd.Series) -> str:
    if row["pairs"] == 0:
        return "missing"
    text = f"{100 * row['difference']:+.1f}"
    if not isnan(row["low"]):
        text += f" [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]"
    return text


def _bounds(low: pd.Series, high: pd.Series) -> list[str]:
    return [
        "unknown" if isnan(a) else f"[{100 * a:+.1f}, {100 * b:+.1f}]" for a, b in zip(low, high, strict=True)
    ]


def _p_text(p: float) -> str:
    return "unknown" if isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _wide(frame: pd.DataFrame, values: pd.Series, columns: str) -> pd.DataFrame:
    """Rows dataset and method, in the order of ``frame``; columns numbers of clients, or as they come."""
    rows = [name for name in ("dataset", "method") if name != columns]
    long = frame[[*rows, columns]].assign(value=values)
    wide = long.pivot(index=rows, columns=columns, values="value")
    order = pd.MultiIndex.from_frame(long[rows].drop_duplicates())
    across: Sequence[Any] = list(dict.fromkeys(long[columns]))
    if columns == "clients":
        across = sorted(across)
    wide = wide.reindex(order if len(rows) > 1 else order.get_level_values(0))[across]
    wide.columns = [f"{value} clients" if columns == "clients" else str(value) for value in across]
    return wide
