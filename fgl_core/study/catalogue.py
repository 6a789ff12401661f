"""The studies: each a function from a profile to its runs.

A study says what is run, not what is shown. Add one by writing a function beside those of its paper and
naming it in :data:`STUDIES`; the first line of its docstring is its title.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fgl_core.errors import InputError, unknown
from fgl_core.study import fedcch, fgssl
from fgl_core.study.spec import RunSpec, Spec
from fgl_core.study.tuned import Choices, tuned_values, with_tuned

PROFILES = {
    "smoke": "embedded data, seconds: is everything in order?",
    "lite": "real data without the costliest sets, fewer rounds and seeds; never with tuned values",
    "paper": "the paper's protocol, with tuned values where there are any",
    "power": "20 seeds, for the cells that are cheap enough; tuned like paper",
}
TUNED_PROFILES = ("paper", "power")


STUDIES: dict[str, Callable[[str], list[Spec]]] = {
    "fgssl-table1": fgssl.table1,
    "fgssl-table2": fgssl.table2,
    "fgssl-table3": fgssl.table3,
    "fgssl-fig1": fgssl.fig1,
    "fgssl-fig3": fgssl.fig3,
    "fgssl-fig4": fgssl.fig4,
    "fgssl-which": fgssl.which,
    "fgssl-ladder": fgssl.ladder,
    "fgssl-protocols": fgssl.protocols,
    "fgssl-partitions": fgssl.partitions,
    "fgssl-noise": fgssl.noise,
    "fgssl-decisions": fgssl.decisions,
    "fedcch-table1": fedcch.table1,
    "fedcch-fig3": fedcch.fig3,
    "fedcch-fig4": fedcch.fig4,
    "fedcch-ladder": fedcch.ladder,
    "fedcch-norms": fedcch.norms,
    "fedcch-hash": fedcch.hash_and_clusters,
    "fedcch-datasets": fedcch.datasets,
    "fedcch-fig1": fedcch.fig1,
    "fedcch-privacy": fedcch.privacy,
    "fedcch-decisions": fedcch.decisions,
}


#: Studies that take tuned values. Fig. 1 trains in another way than trials do, partitions train for no
#: result, and FedCCH's values are its paper's.
TUNED_STUDIES = (
    *(f"fgssl-{name}" for name in ("table1", "table2", "table3", "fig3", "fig4")),
    *(f"fgssl-{name}" for name in ("which", "ladder", "protocols", "noise", "decisions")),
)


def study_specs(
    study: str, profile: str, only: Mapping[str, Iterable[Any]] | None = None, *, tuned: bool = True
) -> list[Spec]:
    """The runs of a study.

    Args:
        only: keep runs whose field has one of these values, e.g. ``{"dataset": ["cora"], "clients": [5,
            10]}``. Values may be written as text. A run on the whole graph has no number of clients: it
            stands beside every number, and ``clients`` does not filter it.
        tuned: let runs take the values chosen for their dataset and method, where the study and the profile
            do so; else all have the values that the study writes.

    Raises:
        InputError: unknown study, profile, field, a value that no run of the study has, or no value at all.
    """
    if study not in STUDIES:
        raise unknown("study", study, STUDIES)
    if profile not in PROFILES:
        raise unknown("profile", profile, PROFILES)
    specs = STUDIES[study](profile)
    if tuned and (choices := study_choices(study, profile)):
        specs = [with_tuned(spec, choices) for spec in specs]
    for name, wanted in (only or {}).items():
        specs = _filtered(specs, name, [str(value) for value in wanted], f"{study}, profile {profile}")
    return specs


def takes_tuned(study: str, profile: str) -> bool:
    """Whether the runs of a study take tuned values under a profile."""
    return study in TUNED_STUDIES and profile in TUNED_PROFILES


def study_choices(study: str, profile: str) -> Choices:
    """The values chosen so far, by dataset, that the runs of a study may take; empty where it takes none."""
    return tuned_values() if takes_tuned(study, profile) else {}


def title(study: str) -> str:
    """What a study shows, in one line."""
    return (STUDIES[study].__doc__ or study).splitlines()[0].rstrip(".")


def _filtered(specs: list[Spec], name: str, wanted: list[str], where: str) -> list[Spec]:
    # values are separated by commas, so that a field that is a list itself cannot be named
    lists = {name for name in type(specs[0]).model_fields if isinstance(getattr(specs[0], name), tuple)}
    allowed = [field for field in type(specs[0]).model_fields if field not in lists | {"task"}]
    if name not in allowed:
        raise unknown("field", name, allowed)
    if not wanted:
        raise InputError(f"{name}: no value is given; name at least one, or leave the filter out")
    kept, present = [], set()
    for spec in specs:
        value = spec.method.name if name == "method" else getattr(spec, name)
        everywhere = name == "clients" and isinstance(spec, RunSpec) and spec.method.centralised
        if not everywhere:
            present.add(value)
        if everywhere or str(value) in wanted:
            kept.append(spec)
    for value in wanted:
        if present and value not in map(str, present):
            listed = ", ".join(map(str, sorted(present, key=lambda value: (value is None, value))))
            raise InputError(f"no run of {where}, has {name}={value}; it has: {listed}")
    return kept
