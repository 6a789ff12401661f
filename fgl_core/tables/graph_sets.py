"""Sets of graphs side by side, from the records of their statistics."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import TYPE_CHECKING, Any

import pandas as pd

from fgl_core.analysis.graph_statistics import PERCENTILES
from fgl_core.datasets.groups import domain
from fgl_core.graph_partition import SHARE
from fgl_core.study.results import Results

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

#: Graphs, classes, mean nodes and mean edges as the TU collection publishes them (Morris et al. 2020).
PUBLISHED = {
    "MUTAG": (188, 2, 17.93, 19.79),
    "BZR": (405, 2, 35.75, 38.36),
    "COX2": (467, 2, 41.22, 43.45),
    "DHFR": (756, 2, 42.43, 44.54),
    "PTC_MR": (344, 2, 14.29, 14.69),
    "AIDS": (2000, 2, 15.69, 16.20),
    "NCI1": (4110, 2, 29.87, 32.30),
    "ENZYMES": (600, 6, 32.63, 62.14),
    "DD": (1178, 2, 284.32, 715.66),
    "COLLAB": (5000, 3, 74.49, 2457.78),
    "IMDB-BINARY": (1000, 2, 19.77, 96.53),
    "IMDB-MULTI": (1500, 3, 13.00, 65.94),
    "Letter-low": (2250, 15, 4.68, 3.13),
    "Letter-med": (2250, 15, 4.67, 3.21),
    "Letter-high": (2250, 15, 4.67, 4.50),
}
COUNTS = ("graphs", "classes", "nodes", "edges")


def set_statistics(results: Results) -> dict[str, Mapping[str, Any]]:
    """The statistics of each set that has a record (:mod:`fgl_core.analysis.graph_statistics`), by name."""
    return {record.spec.dataset: record.data["statistics"] for record in results.shown}


def set_frame(results: Results) -> pd.DataFrame:
    """One row per set of the study, of nan where it has no record.

    Columns: dataset, domain; graphs, classes; nodes, edges: mean over graphs; features: columns of the node
    features; smallest, largest: share of a class; point: what one test graph more or less changes in the
    accuracy.
    """
    found = set_statistics(results)
    rows = []
    for spec in results.specs:
        row: dict[str, Any] = {"dataset": spec.dataset, "domain": domain(spec.dataset)}
        if one := found.get(spec.dataset):
            shares = [count / one["graphs"] for count in one["class_counts"]]
            row |= {
                "graphs": one["graphs"],
                "classes": len(shares),
                "nodes": one["per_graph"]["nodes"]["mean"],
                "edges": one["per_graph"]["edges"]["mean"],
                "features": one["features"],
                "smallest": min(shares),
                "largest": max(shares),
                "point": 1 / round(SHARE * one["graphs"]),
            }
        rows.append(row)
    columns = ["dataset", "domain", *COUNTS, "features", "smallest", "largest", "point"]
    return pd.DataFrame(rows, columns=columns)


def published_frame(results: Results) -> pd.DataFrame:
    """The published counts beside those of the records, rounded as published.

    Returns:
        One row per set and count: dataset, count (of :data:`COUNTS`), published, here, differs; nan where
        one is not known.
    """
    rows = []
    for _, found in set_frame(results).iterrows():
        published = PUBLISHED.get(found["dataset"], (nan,) * len(COUNTS))
        for name, value in zip(COUNTS, published, strict=True):
            here = round(float(found[name]), 2)
            differs = pd.notna(value) and pd.notna(here) and value != here
            rows.append((found["dataset"], name, value, here, bool(differs)))
    return pd.DataFrame(rows, columns=["dataset", "count", "published", "here", "differs"])


def published_table(results: Results) -> Styler:
    """:func:`published_frame` for a reader: what differs is bold and has the sign ≠."""
    frame = published_frame(results)
    texts = []
    for row in frame.itertuples():
        form = "{:.0f}" if row.count in ("graphs", "classes") else "{:.2f}"
        published, here = ("–" if pd.isna(v) else form.format(v) for v in (row.published, row.here))
        texts.append((published, f"≠ {here}" if row.differs else here))
    frame[["published", "here"]] = texts
    wide = frame.pivot(index="dataset", columns="count", values=["published", "here"]).swaplevel(axis=1)
    wide = wide.reindex(index=dict.fromkeys(frame["dataset"]), columns=_sides()).rename_axis(
        index=None, columns=[None, None]
    )
    styler = wide.style.map(lambda text: "font-weight: bold" if text.startswith("≠") else "")
    return styler.set_uuid("published").set_caption("Published, and counted here; nodes and edges are means")


def spread_frame(results: Results, *measures: str) -> pd.DataFrame:
    """How the graphs of each set spread: a row per measure and set.

    Args:
        measures: of ``nodes``, ``edges``, ``degree`` (mean of a graph), ``rings``, ``components``.

    Returns:
        Columns measure, dataset, mean, and a column per percentile, named by its number; nan where a set
        has no record.
    """
    found = set_statistics(results)
    rows = []
    for measure in measures:
        for spec in results.specs:
            row: dict[Any, Any] = {"measure": measure, "dataset": spec.dataset}
            if one := found.get(spec.dataset):
                spread = one["per_graph"][measure]
                row |= {"mean": spread["mean"], **dict(zip(PERCENTILES, spread["percentiles"], strict=True))}
            rows.append(row)
    return pd.DataFrame(rows, columns=["measure", "dataset", "mean", *PERCENTILES])


def share_frame(results: Results, block: str) -> pd.DataFrame:
    """What a graph of each set is made of: degrees of its nodes, or their features.

    Args:
        block: ``degrees`` or ``feature_means``.

    Returns:
        One row per set and column: dataset, column (its name), mean, low, high: over graphs, the mean and the
        10th and 90th percentile of the share of a graph's nodes (of features that are no labels, of their
        mean in a graph). Degrees that no node has are left out.
    """
    rows = []
    for dataset, one in set_statistics(results).items():
        part = one[block]
        names = _bins(part["columns"]) if block == "degrees" else list(map(str, part["columns"]))
        values = zip(names, part["mean"], part["low"], part["high"], strict=True)
        rows += [(dataset, *value) for value in values if block != "degrees" or value[1] > 0]
    return pd.DataFrame(rows, columns=["dataset", "column", "mean", "low", "high"])


def between_frame(results: Results) -> pd.DataFrame:
    """How much of the nodes' variance lies between graphs.

    See :func:`~fgl_core.analysis.graph_statistics.between_share`.

    Returns:
        One row per set: dataset; degree, features: the shares; chance: what to expect of nodes dealt to
        graphs at random. nan where a set has no record, or all its nodes are equal.
    """
    found = set_statistics(results)
    rows = []
    for spec in results.specs:
        between = found[spec.dataset]["between"] if spec.dataset in found else {}
        row = {name: (between.get(name) or {}).get("share", nan) for name in ("degree", "features")}
        chance = (between.get("degree") or {}).get("chance", nan)
        rows.append({"dataset": spec.dataset, **row, "chance": chance})
    return pd.DataFrame(rows, columns=["dataset", "degree", "features", "chance"])


def _sides() -> list[tuple[str, str]]:
    return [(count, side) for count in COUNTS for side in ("published", "here")]


def _bins(lowest: list[int]) -> list[str]:
    """Names of bins by their smallest degrees: ``4``, ``5–8``, ``257+``."""
    ends = [first - 1 for first in lowest[1:]]
    names = [str(a) if a == b else f"{a}–{b}" for a, b in zip(lowest, ends, strict=False)]
    return [*names, f"{lowest[-1]}+"]
