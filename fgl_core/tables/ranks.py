"""Methods ranked over datasets (Demšar, JMLR 7, 2006): Friedman's test, and Nemenyi's critical difference."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isnan, nan, sqrt

import pandas as pd

from fgl_core.methods import METHODS
from fgl_core.study.results import Results
from fgl_core.tables.clients import client_accuracies
from fgl_core.tables.frames import OWN
from fgl_core.tables.statistics import LEVEL


@dataclass(frozen=True)
class Ranking:
    """Average ranks over blocks.

    Attributes:
        ranks: by method, 1 for the best, ties shared; the best first.
        blocks: how many were ranked: those in which every method has a value.
        p: of Friedman's test that all methods are alike; nan below two blocks or three methods.
        critical: Nemenyi's difference: average ranks that are less apart are not told apart at 5 %.
    """

    ranks: pd.Series
    blocks: int
    p: float
    critical: float

    @property
    def groups(self) -> list[tuple[str, str]]:
        """First and last method of each largest run of methods that are not told apart; singles left out."""
        names, found = list(self.ranks.index), []
        for start, best in enumerate(self.ranks):
            last = max(i for i, rank in enumerate(self.ranks) if rank - best < self.critical)
            if last > start and (not found or last > found[-1][1]):
                found.append((start, last))
        return [(names[start], names[last]) for start, last in found]

    def sentence(self, of: str) -> str:
        """What the ranking says, in Markdown.

        Args:
            of: what the blocks are, e.g. ``datasets``.
        """
        if self.blocks < 2:
            return f"Fewer than two {of} in which every method has a value: nothing to rank yet."
        alike = "may all be alike" if self.p >= LEVEL else "are not all alike"
        p = "unknown" if isnan(self.p) else f"{self.p:.3f}" if self.p >= 0.001 else "below 0.001"
        return (
            f"Over {self.blocks} {of} the methods {alike} (Friedman, p {p}). Average ranks less than"
            f" **{self.critical:.2f}** apart are not told apart."
        )


def ranking(values: pd.DataFrame) -> Ranking:
    """Rank methods over blocks.

    Args:
        values: a row per block, a column per method; a block that lacks a value is left out.
    """
    from scipy.stats import friedmanchisquare, studentized_range

    whole = values.dropna()
    blocks, methods = whole.shape
    ranks = whole.rank(axis=1, ascending=False).mean().sort_values(kind="stable")
    if blocks < 2 or methods < 2:
        return Ranking(ranks, blocks, nan, inf)
    p = friedmanchisquare(*whole.to_numpy().T).pvalue if methods > 2 else nan
    spread = studentized_range.ppf(1 - LEVEL, methods, inf) / sqrt(2)
    return Ranking(ranks, blocks, float(p), float(spread) * sqrt(methods * (methods + 1) / (6 * blocks)))


def ranking_of_cells(frame: pd.DataFrame) -> Ranking:
    """Federated and local methods ranked over the cells of a table by their mean accuracy.

    Args:
        frame: from :func:`fgl_core.tables.cells.comparison`.
    """
    centralised = frame["name"].map(lambda name: METHODS[name].centralised)
    rows = frame[(frame["measure"] == OWN) & ~centralised]
    return ranking(rows.pivot(index=["dataset", "clients"], columns="method", values="mean"))


def ranking_of_clients(results: Results) -> Ranking:
    """Methods ranked over the clients of all settings by their mean test accuracy over seeds."""
    frame = client_accuracies(results)
    means = frame.groupby(["setting", "client", "method"], sort=False)["accuracy"].mean()
    return ranking(means.unstack(sort=False))
