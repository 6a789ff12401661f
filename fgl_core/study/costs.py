"""How long runs take, and what they read: learnt from records where there are any, guessed where not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from fgl_core.datasets.groups import registry_name
from fgl_core.datasets.own import is_own
from fgl_core.study.spec import PrivacySpec, RunSpec, Spec
from fgl_core.study.store import Record

# seconds per local epoch on one core, roughly; for kinds of runs that were never timed
GUESS = {
    **{"karate": 0.005, "digits-knn": 0.02, "cora": 0.03, "citeseer": 0.04, "pubmed": 0.2},
    **{"MUTAG": 0.02, "BZR": 0.05, "COX2": 0.06, "DHFR": 0.1, "PTC_MR": 0.03, "AIDS": 0.15, "NCI1": 0.5},
    **{"ENZYMES": 0.07, "DD": 1.5, "COLLAB": 3.0, "IMDB-BINARY": 0.1, "IMDB-MULTI": 0.1},
    **{"Letter-low": 0.1, "Letter-med": 0.1, "Letter-high": 0.1},
}
FACTOR = {"fgssl": 3.0, "fedstar": 2.0}  # beside FedAvg
RECENT = 5  # runs of a kind that count, the newest: code gets faster
VISIT = 0.02  # seconds per round of one client that is attacked and its shadow


class Costs:
    """How long runs take: learnt from the newest records of their kind, guessed where there is none."""

    def __init__(self, known: Iterable[Record] = ()) -> None:
        self._seconds: dict[tuple[Any, ...], deque[float]] = {}
        for record in sorted(known, key=lambda record: record.date):
            if record.status == "done" and record.training_seconds:
                self.learn(record.spec, record.training_seconds)

    def learn(self, spec: Spec, seconds: float) -> None:
        """Take note that a run took so long."""
        seen = self._seconds.setdefault(self._kind(spec), deque(maxlen=RECENT))
        seen.append(seconds / self._epochs(spec))

    def seconds(self, spec: Spec) -> float:
        """The expected duration of a run."""
        seen = self._seconds.get(self._kind(spec))
        return (sum(seen) / len(seen) if seen else self._guess(spec)) * self._epochs(spec)

    def learnt(self, spec: Spec) -> bool:
        """Whether a run of this kind was timed."""
        return self._kind(spec) in self._seconds

    def order(self, spec: Spec) -> tuple[Any, ...]:
        """Sorting key: the cheapest cell first, all its seeds together."""
        return (self.seconds(spec), spec.model_copy(update={"seed": 0}).canonical_json(), spec.seed)

    def total(self, specs: Iterable[Spec], jobs: int = 1) -> str:
        """What so many runs take on so many workers, in words; says which part is a guess."""
        listed = list(specs)
        seconds = sum(map(self.seconds, listed)) / jobs
        new = sum(not self.learnt(spec) for spec in listed)
        text = f"{len(listed)} run{'s' * (len(listed) != 1)}, about {duration(seconds)}"
        text += f" on {jobs} worker{'s' * (jobs > 1)}"
        return f"{text}; {new} of a kind that was never timed" if new else text

    @staticmethod
    def _guess(spec: Spec) -> float:
        if isinstance(spec, PrivacySpec):
            return VISIT
        factor = FACTOR.get(spec.method.name, 1.0) if isinstance(spec, RunSpec) else 1.0
        return factor * sum(GUESS.get(name, 0.1) for name in datasets_of(spec))

    @staticmethod
    def _kind(spec: Spec) -> tuple[Any, ...]:
        if not isinstance(spec, RunSpec):
            return spec.task, datasets_of(spec)
        fields = ("clients", "clients_per_dataset", "backbone", "norm", "hidden")
        size = tuple(getattr(spec, name, None) for name in fields)
        return spec.task, datasets_of(spec), spec.method.name, *size

    @staticmethod
    def _epochs(spec: Spec) -> int:
        if isinstance(spec, PrivacySpec):
            return spec.rounds * spec.clients
        return spec.rounds * spec.local_epochs if isinstance(spec, RunSpec) else 1


def datasets_of(spec: Spec) -> tuple[str, ...]:
    """The datasets that a run opens, as the registry names them, without own data, which it does not know."""
    return tuple(dict.fromkeys(registry_name(name) for name in spec.datasets if not is_own(name)))


def duration(seconds: float) -> str:
    """Seconds as a reader says them: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
