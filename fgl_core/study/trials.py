"""What a search for good values leaves behind: every trial with its validation accuracies, and the choice.

One file per dataset and search space, ``data/tuning/<dataset>/<space>.json``. It holds no test accuracy: a
choice cannot depend on one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass

from fgl_core.errors import InputError, reason
from fgl_core.study.spaces import LEARNING_RATES, Space
from fgl_core.study.spec import RunSpec
from fgl_core.study.store import Record, newest, save
from fgl_core.study.tuned import CHECKED, Choice

FOLDER = Path("data", "tuning")
RATES, FURTHER_RATES = "learning rate", "learning rate, further"
REFINED = "learning rate, refined"  # what a method without own values does instead of the next
OWN, FURTHER_OWN = "own values", "own values, further"
WORST = 0.0  # the value of a trial of which a run diverged


@dataclass(frozen=True)
class Protocol:
    """How every method is tuned.

    Attributes:
        clients, rounds, seeds: of each trial's runs. No table uses these seeds.
        points: trials for the learning rate, and as many for a method's own values.
        further: trials where the best value lies at an end of its range.
    """

    clients: int = 5
    rounds: int = 60
    seeds: tuple[int, ...] = (1000, 1001)
    points: int = 8
    further: int = 4


@dataclass(frozen=True, config=CHECKED)
class Trial:
    """One point of a search space with what its runs reached, a number per seed.

    Attributes:
        stage: of the search.
        values: the learning rate ``lr`` and the method's own values.
        val_accuracy: the best validation accuracy; None where there was none.
        round: in which it was reached.
        status: how the run ended, ``done`` or ``diverged``.
        digests: of the runs' specifications.
    """

    stage: str
    values: Mapping[str, float]
    val_accuracy: list[float | None]
    round: list[int | None]
    status: list[str]
    digests: list[str]

    @classmethod
    def of(cls, stage: str, values: Mapping[str, float], records: Iterable[Record]) -> Trial:
        """The trial that these runs make, in the order of their seeds."""
        listed = list(records)
        best = [record.data["best"] or {} for record in listed]
        return cls(
            stage,
            dict(values),
            [entry.get("val_accuracy") for entry in best],
            [entry.get("round") for entry in best],
            [record.status for record in listed],
            [record.spec.digest for record in listed],
        )

    @property
    def value(self) -> float:
        """What is maximised: the mean over seeds; the worst where a run diverged."""
        if any(status != "done" for status in self.status):
            return WORST
        return round(float(np.mean(self.val_accuracy)), 6)


@dataclass(frozen=True, config=CHECKED)
class Origin:
    """When, with which code and where the last of a search's runs was computed, and how long all took."""

    date: str | None = None
    commit: str | None = None
    cpu: str | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, records: Iterable[Record]) -> Origin:
        """The origin of a search that made these runs."""
        listed = list(records)
        last = newest(listed)
        about = last.data.get("environment", {}) if last else {}
        seconds = sum(record.seconds or 0.0 for record in listed)
        return cls(about.get("date"), about.get("commit"), about.get("cpu"), round(seconds, 1))


@dataclass(frozen=True, config=CHECKED)
class Search:
    """All trials of one search, in the order in which they were asked for.

    Attributes:
        definition: the space, the protocol and the method's revision; a search of another definition is not
            this one.
    """

    dataset: str
    space: str
    definition: Mapping[str, Any]
    trials: list[Trial]
    environment: Origin = field(default_factory=Origin)

    @property
    def best(self) -> Trial:
        """The first among the trials of the highest value."""
        return best_of(self.trials)

    @property
    def choice(self) -> Choice:
        """The best trial as the choice, with the mark of all trials it was chosen from."""
        values = dict(self.best.values)
        listed = json.dumps([asdict(trial) for trial in self.trials], sort_keys=True, separators=(",", ":"))
        return Choice(
            lr=values.pop("lr"),
            val_accuracy=self.best.value,
            trials=len(self.trials),
            sha256=sha256(listed.encode()).hexdigest(),
            method=values,
        )


def best_of(trials: Iterable[Trial]) -> Trial:
    """The first among the trials of the highest value."""
    return max(trials, key=lambda trial: trial.value)


def trial_runs(dataset: str, space: Space, values: Mapping[str, float], protocol: Protocol) -> list[RunSpec]:
    """The runs of a trial, one per seed."""
    own = {name: value for name, value in values.items() if name != "lr"}
    return [
        RunSpec.parse(
            {
                "dataset": dataset,
                "clients": protocol.clients,
                "rounds": protocol.rounds,
                "seed": seed,
                "lr": values["lr"],
                "method": {**space.method, **own},
            }
        )
        for seed in protocol.seeds
    ]


def definition(space: Space, protocol: Protocol) -> dict[str, Any]:
    """Everything that decides which trials a search makes, as JSON holds it."""
    ranges = {"lr": LEARNING_RATES, **space.ranges}
    return {
        "method": dict(space.method),
        "ranges": {name: list(ends) for name, ends in ranges.items()},
        "revision": space.untuned.revision,
        **asdict(protocol),
        "seeds": list(protocol.seeds),
    }


def search_path(root: Path, dataset: str, space: str) -> Path:
    """The file of a search below the project's root."""
    return root / FOLDER / dataset / f"{space}.json"


def write_search(search: Search, root: Path) -> Path:
    """Write a search's file atomically; return it.

    Raises:
        InputError: it cannot be written.
    """
    path = search_path(root, search.dataset, search.space)
    head = {name: value for name, value in asdict(search).items() if name != "trials"}
    lines = [f'"{name}": {_json(value)}' for name, value in head.items()]
    rows = ",\n".join(f"  {_json(asdict(trial))}" for trial in search.trials)
    lines.append(f'"trials": [\n{rows}\n ]')
    save(path, "{\n " + ",\n ".join(lines) + "\n}\n")
    return path


def read_search(path: Path) -> Search:
    """The search in a file.

    Raises:
        InputError: it is not as :func:`write_search` writes it.
    """
    try:
        search = Search(**json.loads(path.read_text(encoding="utf-8")))
        if not search.trials or search.trials[0].stage != RATES:
            raise ValueError("it has no trials of the first stage")
        if search_path(Path(), search.dataset, search.space).parts[-2:] != path.parts[-2:]:
            raise ValueError("it belongs to another place")
        if any(trial.values.keys() != search.trials[0].values.keys() for trial in search.trials):
            raise ValueError("its trials have different values")
        search.choice.check(search.dataset, search.space)
    except (ValueError, TypeError, KeyError, OSError, RecursionError) as error:
        raise InputError(
            f"{path} holds no search ({reason(error)}); remove it, and run `fgl tune` again"
        ) from None
    return search


def read_searches(root: Path) -> list[Search]:
    """Every search below the project's root, sorted by dataset and space.

    Raises:
        InputError: a file that is none.
    """
    return [read_search(path) for path in sorted((root / FOLDER).glob("*/*.json"))]


def choices_of(searches: Iterable[Search]) -> dict[str, dict[str, Choice]]:
    """The choice of each search, by dataset and space."""
    found: dict[str, dict[str, Choice]] = {}
    for search in searches:
        found.setdefault(search.dataset, {})[search.space] = search.choice
    return found


def _json(value: Any) -> str:
    return json.dumps(value, separators=(", ", ": "), ensure_ascii=False, allow_nan=False)
