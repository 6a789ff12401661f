"""The noise floor: how far chance alone moves a number, source by source."""

from __future__ import annotations

from itertools import product
from math import nan, sqrt
from typing import TYPE_CHECKING

import pandas as pd

from fgl_core.study.results import Results
from fgl_core.study.spec import NoiseSpec
from fgl_core.tables.cells import paired
from fgl_core.tables.statistics import LEVEL, detectable_difference, mean_std

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

MISSING = "missing"
SOURCES = {
    "all": "all of it: another seed",
    "partition": "who holds what",
    "split": "which nodes are for testing",
    "init": "initial weights",
    "training": "dropout and views",
}
DIFFERENCE = "FGSSL − FedAvg"
SEEDS = (3, 5, 10, 20, 50)


def spreads_by_source(results: Results) -> pd.DataFrame:
    """How much the test accuracy varies when one source of chance is drawn anew and all others stay.

    Columns: dataset, source (of :data:`SOURCES`), what (a method's title, or :data:`DIFFERENCE`, which pairs
    runs of the same draws), n, std (a fraction, n - 1), low, high (95 % interval of the deviation, by the χ²
    distribution, which takes the values for normal).
    """
    values = _values(results)
    rows = []
    for dataset, source in product(dict.fromkeys(spec.dataset for spec in results.specs), SOURCES):
        here = values[(values["dataset"] == dataset) & (values["source"] == source)]
        fedavg, fgssl = (
            here[here["method"] == name].set_index("draw")["value"] for name in ("fedavg", "fgssl")
        )
        for what, drawn in (("FedAvg", fedavg), ("FGSSL", fgssl), (DIFFERENCE, (fgssl - fedavg).dropna())):
            rows.append((dataset, source, what, len(drawn), *deviation_interval(list(drawn))))
    return pd.DataFrame(rows, columns=["dataset", "source", "what", "n", "std", "low", "high"])


def deviation_interval(values: list[float]) -> tuple[float, float, float]:
    """The sample standard deviation (n - 1) of normal values with its 95 % interval; nan below two values."""
    from scipy.stats import chi2

    _, std = mean_std(values)
    if len(values) < 2:
        return nan, nan, nan
    freedom = len(values) - 1
    low, high = (std * sqrt(freedom / chi2.ppf(share, freedom)) for share in (1 - LEVEL / 2, LEVEL / 2))
    return std, float(low), float(high)


def same_against_same(results: Results) -> pd.DataFrame:
    """The A/A test: FedAvg minus FedAvg, whose seeds differ in initial weights and training alone.

    A row per dataset: dataset, and the columns of :func:`fgl_core.tables.cells.paired`.
    """
    values = _values(results)
    fedavg = values[values["method"] == "fedavg"].set_index("draw")
    rows = []
    for dataset in dict.fromkeys(spec.dataset for spec in results.specs):
        here = fedavg[fedavg["dataset"] == dataset]
        first, again = (here.loc[here["source"] == source, "value"].to_dict() for source in ("all", "run"))
        rows.append({"dataset": dataset, **paired(again, first)})
    return pd.DataFrame(rows)


def decidable(results: Results) -> pd.DataFrame:
    """The smallest true difference that so many seeds find with probability 0.8, in each dataset.

    Columns: dataset, what (the difference whose spread is taken), n, then one per number of seeds: a
    fraction.
    """
    spreads = spreads_by_source(results)
    everything = spreads[spreads["source"] == "all"]
    rows = []
    for dataset in dict.fromkeys(everything["dataset"]):
        here = everything[everything["dataset"] == dataset].set_index("what")
        for what in here.index:
            # unpaired: the difference of two independent runs varies √2 times as much as one
            unpaired = what != DIFFERENCE
            std = here["std"][what] * (sqrt(2) if unpaired else 1)
            name = f"{what} against a method, unpaired" if unpaired else f"{what}, paired by seed"
            found = {seeds: detectable_difference(std, seeds) for seeds in SEEDS}
            rows.append({"dataset": dataset, "what": name, "n": here["n"][what], **found})
    return pd.DataFrame(rows, columns=["dataset", "what", "n", *SEEDS])


def _values(results: Results) -> pd.DataFrame:
    """The test accuracy of each run by dataset, source (``run`` for the A/A test), method and draw."""
    rows = []
    for spec in results.specs:
        record = results.record(spec)
        if record is None or record.status != "done":
            continue
        source = spec.varies if isinstance(spec, NoiseSpec) else "all"
        draw = spec.seed if source in ("all", "run") else spec.other
        value = record.data["best"]["test_accuracy"]
        rows.append((spec.dataset, source, spec.method.name, draw, value))
        # what one source moves is seen around the run of seed 0, which is one of its draws
        if source == "all" and spec.seed == 0:
            rows += [(spec.dataset, name, spec.method.name, 0, value) for name in SOURCES if name != "all"]
    return pd.DataFrame(rows, columns=["dataset", "source", "method", "draw", "value"])


def spreads_table(frame: pd.DataFrame) -> Styler:
    """:func:`spreads_by_source` with a column per quantity, in points."""

    def cell(row: pd.Series) -> str:
        if row["n"] < 2:
            return MISSING
        return f"{100 * row['std']:.2f} [{100 * row['low']:.2f}, {100 * row['high']:.2f}] ({row['n']})"

    texts = frame.assign(text=frame.apply(cell, axis=1))
    texts["source"] = texts["source"].map(SOURCES)
    wide = texts.set_index(["dataset", "source", "what"])["text"].unstack(sort=False)
    caption = (
        "Standard deviation of the test accuracy in points, with its 95 % interval and the number of draws."
    )
    return (
        wide.rename_axis([None, None]).rename_axis(None, axis=1).style.set_uuid("noise").set_caption(caption)
    )


def same_table(frame: pd.DataFrame) -> Styler:
    """:func:`same_against_same` in points."""
    columns = ("FedAvg − FedAvg", "p", "pairs", "detectable")
    rows = {}
    for row in frame.to_dict("records"):
        mean, low, high = (f"{100 * row[name]:+.2f}" for name in ("difference", "low", "high"))
        texts = f"{mean} [{low}, {high}]", f"{row['p']:.2f}", row["pairs"], f"{100 * row['detectable']:.2f}"
        rows[row["dataset"]] = dict(zip(columns, texts if row["pairs"] > 1 else [MISSING] * 4, strict=True))
    caption = "Differences of a method to itself in points, with 95 % intervals over seeds."
    return pd.DataFrame.from_dict(rows, orient="index").style.set_uuid("same").set_caption(caption)


def decidable_table(frame: pd.DataFrame) -> Styler:
    """:func:`decidable` in points."""
    wide = frame.drop(columns="n").set_index(["dataset", "what"])
    wide.columns = pd.MultiIndex.from_product([["seeds"], wide.columns])
    caption = "Smallest difference found with probability 0.8, in points, by the number of seeds."
    styled = (100 * wide).rename_axis([None, None]).style.format("{:.1f}", na_rep=MISSING)
    return styled.set_uuid("decidable").set_caption(caption)
