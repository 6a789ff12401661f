"""What tuning found, as a page shows it, and which values the runs of a study take."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from fgl_core.errors import InputError, unknown
from fgl_core.root import project_root
from fgl_core.study.grid import CITATION
from fgl_core.study.results import Results, listed
from fgl_core.study.spaces import LEARNING_RATES, SPACES, space_of
from fgl_core.study.spec import NodeSpec
from fgl_core.study.trials import (
    FURTHER_OWN,
    FURTHER_RATES,
    OWN,
    RATES,
    REFINED,
    Search,
    Trial,
    best_of,
    read_searches,
)
from fgl_core.tables.labels import placed_runs

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

NAMES = {"mu": "μ", "server_lr": "server's rate", "lambda_c": "λ_C", "lambda_d": "λ_D"}
DEFAULT_LR = NodeSpec.model_fields["lr"].default
RESPONSE = ["dataset", "method", "parameter", "at", "value", "diverged", "chosen"]


@dataclass(frozen=True)
class Searches:
    """The searches of some datasets: those that are recorded, and those that are missing."""

    datasets: tuple[str, ...]
    found: list[Search]

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Dataset and space of each search that has no record, or one by an older revision of its method."""
        present = {(search.dataset, search.space) for search in self.found if not stale(search)}
        return [(name, space) for name in self.datasets for space in SPACES if (name, space) not in present]

    @property
    def command(self) -> str:
        """The command that fills what is missing."""
        lacking = dict.fromkeys(dataset for dataset, _ in self.missing)
        return shlex.join(["fgl", "tune", "--dataset", ",".join(lacking or self.datasets)])

    def stamp(self) -> str:
        """Where the numbers come from, in Markdown: newest run, searches shown, searches missing."""
        parts = [f"{len(self.found)} of {len(self.datasets) * len(SPACES)} searches shown."]
        if self.found:
            last = max((search.environment for search in self.found), key=lambda about: about.date or "")
            commit = f"commit `{last.commit}`" if last.commit else "outside a checkout"
            parts.append(f"Newest run: {(last.date or 'no date')[:10]}, {commit}.")
        if self.missing:
            parts.append(f"{len(self.missing)} missing; `{self.command}` fills them.")
        return " ".join(parts)


def open_searches(dataset: str | list[str] | None = None) -> Searches:
    """The searches on one dataset or several, or on all of FGSSL's.

    Raises:
        InputError: an unknown dataset, none at all, or a damaged file.
    """
    names = CITATION if dataset is None else tuple(dict.fromkeys(listed(dataset)))
    if not names:
        raise InputError("dataset: no value is given; name at least one, or None for all")
    for name in names:
        if name not in CITATION:
            raise unknown("dataset", name, CITATION)
    order = list(SPACES)
    recorded = [s for s in read_searches(project_root()) if s.dataset in names and s.space in SPACES]
    recorded.sort(key=lambda search: (names.index(search.dataset), order.index(search.space)))
    return Searches(names, recorded)


def stale(search: Search) -> bool:
    """Whether its method has another revision by now."""
    return search.definition.get("revision") != SPACES[search.space].untuned.revision


def space_table() -> Styler:
    """Every method with the ranges that are searched."""
    rows = {
        space.title: {
            "learning rate": _range(LEARNING_RATES),
            "own values": "; ".join(f"{NAMES[name]}: {_range(ends)}" for name, ends in space.ranges.items())
            or "none: the learning rate is refined",
        }
        for space in SPACES.values()
    }
    return pd.DataFrame(rows).T.rename_axis("method").style.set_uuid("spaces")


def chosen_table(searches: Searches) -> Styler:
    """What was chosen for each dataset and method, and from how many trials."""
    rows = [
        {
            "dataset": search.dataset,
            "method": SPACES[search.space].title + (" (older revision)" if stale(search) else ""),
            "learning rate": f"{search.choice.lr:g}",
            "own values": _own(search.choice.method),
            "validation": f"{100 * search.choice.val_accuracy:.1f}",
            "trials": len(search.trials),
            "beyond": sum(trial.stage in (FURTHER_RATES, FURTHER_OWN) for trial in search.trials),
            "diverged": sum("diverged" in trial.status for trial in search.trials),
        }
        for search in searches.found
    ]
    frame = pd.DataFrame(rows).set_index(["dataset", "method"])
    return frame.style.set_uuid("chosen").set_caption("Values chosen; validation accuracy in %")


def responses(searches: Searches, *, own: bool = False) -> pd.DataFrame:
    """One row per trial and value that was searched: what the validation accuracy was there.

    Columns: dataset, method (its title), parameter, at (its value), value (the accuracy), diverged (whether a
    run of the trial did), chosen (by the stages shown).

    Args:
        own: the methods' own values, at the best learning rate of the first stage; else the learning rate.
    """
    rows = [
        (
            search.dataset,
            SPACES[search.space].title,
            NAMES.get(name, "learning rate"),
            trial.values[name],
            trial.value,
            "diverged" in trial.status,
            trial == best,
        )
        for search in searches.found
        for best, placed in [_placed(search, own)]
        for name, trial in placed
    ]
    return pd.DataFrame(rows, columns=RESPONSE)


def values_table(results: Results) -> pd.DataFrame:
    """The learning rate and the tuned parameters of each row of a study, and where they come from."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for _, label, spec in placed_runs(results):
        name = space_of(spec.method)
        ranges = SPACES[name].ranges if name else {}
        own = {key: getattr(spec.method, key) for key in ranges if hasattr(spec.method, key)}
        origin = "default" if results.as_written(spec).lr == DEFAULT_LR else "set by the study"
        if origin == "default" and name in results.choices.get(spec.dataset, {}):
            origin = "tuned"
        rows[spec.dataset, label] = {"learning rate": f"{spec.lr:g}", "own values": _own(own), "from": origin}
    return pd.DataFrame(rows).T.rename_axis(["dataset", "method"])


def _placed(search: Search, own: bool) -> tuple[Trial, list[tuple[str, Trial]]]:
    """The best of the stages that are shown, and their trials, each by the name of what was varied."""
    rates = [trial for trial in search.trials if trial.stage in (RATES, FURTHER_RATES, REFINED)]
    if not own:
        return best_of(rates), [("lr", trial) for trial in rates]
    varied = [best_of(rates), *(trial for trial in search.trials if trial.stage in (OWN, FURTHER_OWN))]
    return search.best, [(name, trial) for name in SPACES[search.space].ranges for trial in varied]


def _range(ends: tuple[float, float]) -> str:
    return f"{ends[0]:g} … {ends[1]:g}"


def _own(values: dict[str, float]) -> str:
    return ", ".join(f"{NAMES[name]} {value:g}" for name, value in values.items())
