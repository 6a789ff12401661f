"""What a claim is about: one number per run, by seed, in a unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite

import numpy as np

from fgl_core.analysis.awe import chance_distance
from fgl_core.study.results import Results
from fgl_core.study.spec import Spec
from fgl_core.study.store import Record
from fgl_core.tables import privacy
from fgl_core.tables.cells import cells
from fgl_core.tables.curves import rounds_by_seed
from fgl_core.tables.frames import OWN
from fgl_core.tables.labels import place
from fgl_core.tables.similarity import mean_over_pairs
from fgl_core.tables.statistics import Interval

Place = tuple[str, int, str]  # dataset or setting, number of clients, label
Values = Mapping[Place, Mapping[int, float]]  # by place and seed


def _trained_runs(results: Results) -> Mapping[Place, list[Spec]]:
    return {(cell.dataset, cell.clients, cell.label): cell.specs for cell in cells(results)}


@dataclass(frozen=True)
class Quantity:
    """A number that every finished run has.

    Attributes:
        by_seed: its value for each run, by place and seed.
        runs: which runs it comes from, by place.
        unit: in words; short: where there is little room, empty for points of accuracy.
        scale: what the value is multiplied with to be shown in that unit.
        digits: shown behind the point.
        fewer: less of it is better, so that a difference counts what is saved.
        alone: it says something by itself, without a second run to compare with.
    """

    by_seed: Callable[[Results], Values]
    unit: str
    short: str = ""
    scale: float = 1.0
    digits: int = 1
    fewer: bool = False
    alone: bool = False
    runs: Callable[[Results], Mapping[Place, list[Spec]]] = _trained_runs

    def text(self, interval: Interval, *, brief: bool = False) -> str:
        """A difference with its interval, if there is one: ``+1.2 [+0.3, +2.1] points``."""
        text = self._number(interval.mean)
        if isfinite(interval.low):
            text += f" [{self._number(interval.low)}, {self._number(interval.high)}]"
        return f"{text} {self.short if brief else self.unit}".rstrip()

    def _number(self, value: float) -> str:
        # a zero has no sign, however it was computed
        return f"{round(self.scale * value, self.digits) + 0.0:+.{self.digits}f}"


def _accuracy(results: Results) -> Values:
    return {(c.dataset, c.clients, c.label): c.values(results) for c in cells(results)}


def _rounds(results: Results) -> Values:
    return {
        where: {seed: min(needed, _trained(results) + 1) for seed, needed in seeds.items()}
        for where, seeds in rounds_by_seed(results).items()
    }


def _trained(results: Results) -> int:
    return max(spec.rounds for spec in results.specs)


def _of_record(value: Callable[[Record], float | None]) -> Callable[[Results], Values]:
    """A quantity that a record gives by itself; None leaves a run out."""

    def by_seed(results: Results) -> Values:
        found: dict[Place, dict[int, float]] = {}
        for cell in cells(results):
            records = [record for spec in cell.specs if (record := results.record(spec))]
            known = {r.spec.seed: value(r) for r in records if r.status == "done"}
            at = (cell.dataset, cell.clients, cell.label)
            found[at] = {seed: number for seed, number in known.items() if number is not None}
        return found

    return by_seed


def _mean_accuracy(record: Record) -> float:
    return float(np.mean(record.data["curves"][OWN]))


def _kilobytes(record: Record) -> float:
    """Per client and round, both ways together."""
    rounds = [row for kinds in record.data["bytes"].values() for row in kinds.values()]
    return sum(map(float, map(np.mean, rounds))) / place(record.spec)[1] / 1000


def _cka(record: Record) -> float | None:
    means = record.data.get("heterogeneity", {}).get("mean_cka")
    return means[-1] if means else None


def _disagreement(record: Record) -> float | None:
    alike = _cka(record)
    return None if alike is None else 1 - alike


def _distance_above_chance(record: Record) -> float | None:
    distances = record.data.get("heterogeneity", {}).get("js_distance")
    if not distances:
        return None
    mean = mean_over_pairs(np.array(distances, dtype=float))
    return mean - chance_distance(record.spec.walk_length, record.spec.walks)


QUANTITIES: dict[str, Quantity] = {
    "accuracy": Quantity(_accuracy, "points", scale=100),
    "accuracy over all rounds": Quantity(_of_record(_mean_accuracy), "points", scale=100),
    "rounds": Quantity(_rounds, "rounds saved", "rounds", fewer=True),
    "bytes": Quantity(_of_record(_kilobytes), "kB saved per client and round", "kB", digits=3, fewer=True),
    "CKA": Quantity(_of_record(_cka), "in CKA", "CKA", digits=3),
    "1 − CKA": Quantity(_of_record(_disagreement), "below a CKA of 1", "CKA", digits=2, alone=True),
    "distance above chance": Quantity(
        _of_record(_distance_above_chance), "above chance", "JS", digits=2, alone=True
    ),
    "guessed": Quantity(privacy.guessed_by_seed, "points of right guesses", scale=100, runs=privacy.runs),
}
