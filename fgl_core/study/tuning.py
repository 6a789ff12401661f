"""Equal tuning: for every method the same number of trials, chosen by validation accuracy alone.

1. *learning rate*: the same grid for every method, its own values as they are before tuning.
2. *own values*: as many trials on the method's own values at the best learning rate. A method without own
   values refines the learning rate between the neighbours of the best.

Where the best value lies at an end of its range, four *further* trials go one decade beyond it, once. The
points of the second stage are a scrambled Sobol sequence: they cover one or two dimensions evenly, eight of
them with one in each eighth of every range, and do not depend on what came out of each other. So all of them
can be computed at once and in any order; an adaptive sampler would have to wait, and eight trials are fewer
than it takes to learn from.

Every trial is an ordinary run, so that a search goes on where it was stopped.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from typing import TextIO

import numpy as np

from fgl_core.study.grid import distinct
from fgl_core.study.spaces import LEARNING_RATES, Space
from fgl_core.study.spec import RunSpec
from fgl_core.study.store import Record, Store, check_writable, save
from fgl_core.study.sweep import sweep
from fgl_core.study.trials import (
    FURTHER_OWN,
    FURTHER_RATES,
    OWN,
    RATES,
    REFINED,
    Origin,
    Protocol,
    Search,
    Trial,
    best_of,
    choices_of,
    definition,
    read_search,
    read_searches,
    search_path,
    trial_runs,
    write_search,
)
from fgl_core.study.tuned import FILE, format_choices

SEED = 0  # of the Sobol sequence
OUTER = 1 / 8  # of a range on its logarithmic scale: a value there lies at an end
DECADE = 10.0

Range = tuple[float, float]
Point = dict[str, float]
Asked = tuple[str, list[Point]]


def plan(space: Space, protocol: Protocol) -> Generator[Asked, list[Trial], None]:
    """The stages of a search: yields a stage's name and points, and is sent the trials made of them."""
    rates = spaced(*LEARNING_RATES, protocol.points)
    trials = yield RATES, [{"lr": lr, **space.defaults} for lr in rates]
    best = best_of(trials)
    if further := beyond({"lr": LEARNING_RATES}, best, protocol.further):
        trials += yield FURTHER_RATES, further
    best = best_of(trials)
    step = (LEARNING_RATES[1] / LEARNING_RATES[0]) ** (1 / (protocol.points - 1))
    ranges = space.ranges or {"lr": (best.values["lr"] / step, best.values["lr"] * step)}
    trials += yield OWN if space.ranges else REFINED, sobol(ranges, best, protocol.points)
    if further := beyond(space.ranges, best_of(trials), protocol.further):
        yield FURTHER_OWN, further


def spaced(low: float, high: float, count: int) -> list[float]:
    """``count`` values from ``low`` to ``high``, evenly on a logarithmic scale."""
    return [_three_digits(value) for value in np.geomspace(low, high, count)]


def beyond(ranges: Mapping[str, Range], best: Trial, count: int) -> list[Point]:
    """Points up to a decade beyond the ends at which the best values lie; none where they lie inside.

    Two values that lie at ends move together; all others stay.
    """
    columns: dict[str, list[float]] = {}
    for name, (low, high) in ranges.items():
        place = log(best.values[name] / low) / log(high / low)
        if place < OUTER:
            columns[name] = spaced(low, low / DECADE, count + 1)[1:]
        elif place > 1 - OUTER:
            columns[name] = spaced(high, high * DECADE, count + 1)[1:]
    rows = zip(*columns.values(), strict=True)
    return [{**best.values, **dict(zip(columns, row, strict=True))} for row in rows]


def sobol(ranges: Mapping[str, Range], best: Trial, count: int) -> list[Point]:
    """The first points of a scrambled Sobol sequence, logarithmic in each range; other values as the best.

    Args:
        best: a trial inside the ranges, from which Optuna's sampler learns which values there are.
    """
    import optuna

    space = {
        name: optuna.distributions.FloatDistribution(low, high, log=True)
        for name, (low, high) in ranges.items()
    }
    known = {name: best.values[name] for name in ranges}
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.QMCSampler(scramble=True, seed=SEED)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.add_trial(optuna.trial.create_trial(params=known, distributions=space, value=best.value))
        drawn = [study.ask(space).params for _ in range(count)]
    finally:
        optuna.logging.set_verbosity(verbosity)
    return [
        {**best.values, **{name: _three_digits(value) for name, value in point.items()}} for point in drawn
    ]


@dataclass
class Progress:
    """How far the search of one method on one dataset is.

    Attributes:
        search: once it has ended.
        stage: that waits for runs.
        wanted: the runs of that stage, those of a trial one after the other.
    """

    dataset: str
    name: str
    search: Search | None = None
    stage: str = ""
    wanted: list[RunSpec] = field(default_factory=list)
    _points: list[Point] = field(default_factory=list)
    _trials: list[Trial] = field(default_factory=list)
    _records: list[Record] = field(default_factory=list)
    _plan: Generator[Asked, list[Trial], None] | None = None

    def missing(self, records: Mapping[str, Record]) -> list[RunSpec]:
        """The wanted runs that have no record yet, or one that does not count."""
        return [spec for spec in self.wanted if not _settled(records, spec)]

    def advance(self, space: Space, protocol: Protocol, records: Mapping[str, Record]) -> None:
        """Go on as far as the records reach."""
        made: list[Trial] | None = None
        while self.search is None and not self.missing(records):
            if self._plan is None:
                self._plan = plan(space, protocol)
            else:
                made = self._made(len(protocol.seeds), records)
                self._trials += made
            try:
                self.stage, self._points = self._plan.send(made)
            except StopIteration:
                about = definition(space, protocol), self._trials, Origin.of(self._records)
                self.search = Search(self.dataset, self.name, *about)
                return
            runs = (trial_runs(self.dataset, space, point, protocol) for point in self._points)
            self.wanted = [spec for listed in runs for spec in listed]

    def _made(self, seeds: int, records: Mapping[str, Record]) -> list[Trial]:
        found = [records[spec.digest] for spec in self.wanted]
        self._records += found
        parts = (found[start : start + seeds] for start in range(0, len(found), seeds))
        return [Trial.of(self.stage, point, part) for point, part in zip(self._points, parts, strict=True)]


def tune(
    datasets: Iterable[str],
    spaces: Mapping[str, Space],
    *,
    store: Store | None = None,
    protocol: Protocol | None = None,
    jobs: int = 1,
    time_budget: float | None = None,
    progress: TextIO | None = None,
) -> list[Progress]:
    """Tune methods on datasets; write every search that ends, and the values chosen by all searches so far.

    Args:
        spaces: by name, see :func:`fgl_core.study.spaces.selection`.
        protocol: the one of the book if not given; another one is for tests and other datasets.
        jobs, time_budget, progress: as in :func:`fgl_core.study.sweep.sweep`.

    Returns:
        How far each search is. Those that the time budget or a failed run stopped have no ``search``.

    Raises:
        InputError: an unknown dataset, data that cannot be had, an unwritable folder, a damaged file.
        KeyboardInterrupt: on Ctrl-C or SIGTERM. Finished runs are recorded.
    """
    store, protocol = store or Store(), protocol or Protocol()
    deadline = None if time_budget is None else time.monotonic() + time_budget
    searches = [
        _begin(dataset, name, space, protocol, store)
        for dataset in datasets
        for name, space in spaces.items()
    ]
    for search in searches:
        check_writable(search_path(store.root, search.dataset, search.name).parent)
    tried: set[str] = set()  # a run that failed is tried again by the next call, not by this one
    while True:
        records = store.load(store.trials)
        for search in searches:
            if search.search is None:
                search.advance(spaces[search.name], protocol, records)
                if search.search is not None:
                    write_search(search.search, store.root)
        _write_choices(store.root)
        open_ones = (search for search in searches if search.search is None)
        missing = distinct(spec for search in open_ones for spec in search.missing(records))
        missing = [spec for spec in missing if spec.digest not in tried]
        outcomes = sweep(
            missing,
            store.trials,
            jobs=min(jobs, max(1, len(missing))),
            time_budget=None if deadline is None else deadline - time.monotonic(),
            known=store.load(store.results, store.trials).values(),
            progress=progress,
        )
        if not outcomes:
            return searches
        tried |= {outcome.spec.digest for outcome in outcomes}


def _begin(dataset: str, name: str, space: Space, protocol: Protocol, store: Store) -> Progress:
    """A search that goes on, or one that ended before with the same definition."""
    trial_runs(dataset, space, {"lr": LEARNING_RATES[0]}, protocol)  # an unknown dataset shows at once
    path = search_path(store.root, dataset, name)
    before = read_search(path) if path.is_file() else None
    ended = before is not None and before.definition == definition(space, protocol)
    return Progress(dataset, name, before if ended else None)


def _write_choices(root: Path) -> None:
    choices = choices_of(read_searches(root))
    if choices or (root / FILE).exists():
        save(root / FILE, format_choices(choices))


def _settled(records: Mapping[str, Record], spec: RunSpec) -> bool:
    record = records.get(spec.digest)
    return record is not None and record.settled


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")
