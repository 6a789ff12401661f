"""What a study has so far: the runs it wants, the records there are, and what is missing."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fgl_core.errors import InputError, unknown
from fgl_core.study.catalogue import (
    PROFILES,
    STUDIES,
    TUNED_STUDIES,
    study_choices,
    study_specs,
    takes_tuned,
)
from fgl_core.study.grid import distinct
from fgl_core.study.spec import RunSpec, Spec
from fgl_core.study.store import Record, Store, newest
from fgl_core.study.tuned import Choices, tuning_of, with_tuned

AUTOMATIC = ("paper", "lite")  # the more demanding first; power holds only the cheap cells
COMPUTE = ("no", "missing")


@dataclass(frozen=True)
class Results:
    """The runs of a study, or of a part of it, and the records found for them.

    Attributes:
        specs: the runs that are wanted.
        found: records of those runs by digest, stale and failed ones included.
        only: the part of the study, as given to :func:`fgl_core.study.catalogue.study_specs`.
        changed: fields that have another value than in the study.
        tuned: whether runs take tuned values where the study and the profile do so.
        choices: the tuned values that there are for them.
        written: runs with tuned values, by digest, as the study writes them.
    """

    study: str
    profile: str
    specs: list[Spec]
    found: Mapping[str, Record]
    only: Mapping[str, list[Any]] = field(default_factory=dict)
    changed: Mapping[str, Any] = field(default_factory=dict)
    tuned: bool = True
    choices: Choices = field(default_factory=dict)
    written: Mapping[str, Spec] = field(default_factory=dict)

    def as_written(self, spec: Spec) -> Spec:
        """A run as the study writes it, before it took tuned values: what tells it apart from others."""
        return self.written.get(spec.digest, spec)

    @property
    def tuning(self) -> str:
        """In words, whether the runs' values are tuned; empty where a study never takes tuned values."""
        if self.study not in TUNED_STUDIES:
            return ""
        if not self.tuned or not takes_tuned(self.study, self.profile):
            return "defaults, not tuned"
        return tuning_of(self.specs, self.choices)

    def record(self, spec: Spec) -> Record | None:
        """The record of a run, done or diverged; None if it is missing, failed or stale."""
        record = self.found.get(spec.digest)
        return record if record is not None and record.settled else None

    @property
    def shown(self) -> list[Record]:
        """The records that tables may use."""
        return [record for spec in self.specs if (record := self.record(spec))]

    @property
    def missing(self) -> list[Spec]:
        """The runs to compute: never run, failed, or by an older revision of the method."""
        return [spec for spec in self.specs if self.record(spec) is None]

    def having(self, status: str) -> list[Record]:
        """The present records of this status: ``done``, ``diverged`` or ``failed``."""
        return [record for record in self.found.values() if not record.stale and record.status == status]

    @property
    def stale(self) -> list[Record]:
        """Records of another revision of their method; no table uses them."""
        return [record for record in self.found.values() if record.stale]

    @property
    def command(self) -> str:
        """The command that fills what is missing, as far as it is the study's own."""
        words = ["fgl", "study", "run", self.study, "--profile", self.profile]
        for name, values in self.only.items():
            words += ["--only", f"{name}={','.join(map(str, values))}"]
        if not self.tuned and takes_tuned(self.study, self.profile):
            words.append("--untuned")
        return shlex.join(words)

    def stamp(self) -> str:
        """Where the numbers come from, in Markdown: study, runs shown, seeds, newest record, runs missing."""
        last = newest(self.shown)
        parts = [f"Study `{self.study}`."]
        parts.append(f"Profile {self.profile}: {len(self.shown)} of {len(self.specs)} runs shown.")
        if seeds := sorted({record.spec.seed for record in self.shown}):
            listed = f"{seeds[0]} to {seeds[-1]}" if _consecutive(seeds) else ", ".join(map(str, seeds))
            parts.append(f"Seed{'s' * (len(seeds) > 1)} {listed}.")
        if self.changed:
            values = ", ".join(f"{name} {value}" for name, value in self.changed.items())
            parts.append(f"Other values than in the study: {values}.")
        if takes_tuned(self.study, self.profile):
            parts.append(f"Learning rates and weights: {self.tuning}.")
        if last is not None:
            commit = f"commit `{last.commit}`" if last.commit else "outside a checkout"
            parts.append(f"Newest record: {last.date[:10] or 'no date'}, {commit}.")
        for label, records in (("stale", self.stale), ("failed", self.having("failed"))):
            if records:
                parts.append(f"{len(records)} {label} and not used.")
        if self.missing:
            remedy = '`compute="missing"` runs' if self.changed else f"`{self.command}` fills"
            parts.append(f"{len(self.missing)} missing; {remedy} them.")
        return " ".join(parts)


def open_results(
    study: str,
    profile: str = "auto",
    *,
    only: Mapping[str, Any] | None = None,
    change: Mapping[str, Any] | None = None,
    compute: str = "no",
    tuned: bool = True,
) -> Results:
    """The results of a study; what a notebook reads.

    Args:
        profile: ``auto`` takes ``FGL_PROFILE`` if set, else the best profile with committed records.
        only: a part of the study: by field a value, a list of values, or None for all.
        change: other values for fields of every run, e.g. ``{"walk_length": 7}``; None leaves a field as it
            is. The study's records do not answer such runs; they are single runs, as ``fgl run`` makes them.
        compute: ``missing`` computes first what is missing, one run after the other, with a progress bar. The
            smoke profile always does, silently: its runs on embedded data take seconds and are not committed.
        tuned: let runs take tuned values where the study and the profile do so.

    Raises:
        InputError: an unknown name or value; with ``missing``, data that cannot be had or an unwritable
            folder.
    """
    if compute not in COMPUTE:
        raise unknown("value of compute", compute, COMPUTE)
    store = Store()
    profile = resolve_profile(study, profile, store, tuned=tuned)
    part = {name: listed(values) for name, values in (only or {}).items() if values is not None}
    changed = _changed(study_specs(study, profile, part, tuned=tuned), change or {})
    results = collect(study, profile, part, store, changed, tuned=tuned)
    if results.missing and (compute == "missing" or profile == "smoke"):
        from fgl_core.study.sweep import sweep

        sweep(
            results.missing,
            store.runs if changed else store.folder(study, profile),
            known=store.available(profile).values(),
            progress=sys.stdout if compute == "missing" else None,
        )
        results = collect(study, profile, part, store, changed, tuned=tuned)
    return results


def collect(
    study: str,
    profile: str,
    only: Mapping[str, list[Any]],
    store: Store,
    changed: Mapping[str, Any] | None = None,
    *,
    tuned: bool = True,
) -> Results:
    """What the store holds of a study under a profile, as it is."""
    specs = study_specs(study, profile, only, tuned=tuned)
    choices = study_choices(study, profile) if tuned else {}
    untuned = study_specs(study, profile, tuned=False) if choices else []
    written = {with_tuned(spec, choices).digest: spec for spec in untuned}
    if changed:
        wanted = [(_with(spec, changed), _with(written.get(spec.digest, spec), changed)) for spec in specs]
        specs, written = (
            distinct(spec for spec, _ in wanted),
            {spec.digest: before for spec, before in wanted},
        )
    # single runs are kept apart from the studies' results
    records = store.load(store.results, store.runs) if changed else store.available(profile)
    found = {spec.digest: records[spec.digest] for spec in specs if spec.digest in records}
    return Results(study, profile, specs, found, only, changed or {}, tuned, choices, written)


def resolve_profile(study: str, profile: str, store: Store, *, tuned: bool = True) -> str:
    """The profile meant by ``auto``; any other name stands for itself.

    The best profile is the more demanding one that has all its runs at one place of its tables, which is a
    dataset with a number of clients, or a setting; if there is none, the one recorded to the largest part;
    without any record, ``lite``: what is missing is then real data.
    """
    if study not in STUDIES:
        raise unknown("study", study, STUDIES)
    if profile == "auto":
        profile = os.environ.get("FGL_PROFILE") or "auto"
    if profile != "auto":
        if profile not in PROFILES:
            raise unknown("profile", profile, ["auto", *PROFILES])
        return profile
    shares = {}
    for name in AUTOMATIC:
        results = collect(study, name, {}, store, tuned=tuned)
        shares[name] = len(results.shown) / len(results.specs)
        if _places(results.specs) - _places(results.missing):
            return name
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] > 0 else "lite"


def parse_only(filters: Iterable[str]) -> dict[str, list[str]]:
    """``["dataset=cora", "clients=5,10"]`` as a mapping.

    Raises:
        InputError: a filter that is not of the form ``field=value,value``.
    """
    parsed: dict[str, list[str]] = {}
    for text in filters:
        name, equals, values = text.partition("=")
        listed = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not listed:
            raise InputError(f"--only {text}: write field=value or field=value,value, e.g. dataset=cora")
        parsed.setdefault(name.strip().replace("-", "_"), []).extend(listed)
    return parsed


def _places(specs: Iterable[Spec]) -> set[tuple[str, int | None]]:
    """Where runs stand in tables; those on the whole graph, which has no clients, stand beside all others."""
    clients = (spec for spec in specs if not (isinstance(spec, RunSpec) and spec.method.centralised))
    return {(spec.place, getattr(spec, "clients", None)) for spec in clients}


def _consecutive(seeds: list[int]) -> bool:
    """Whether a list without repeats, in ascending order, has three or more and leaves none out."""
    return len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1


def _with(spec: Spec, values: Mapping[str, Any]) -> Spec:
    return Spec.parse({**spec.model_dump(mode="json"), **values})


def _changed(specs: list[Spec], change: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of which some run has another value; an unknown one too, for its error to be raised."""
    return {
        name: value
        for name, value in change.items()
        if value is not None and any(getattr(spec, name, None) != value for spec in specs)
    }


def listed(values: Any) -> list[Any]:
    """A part of a study as a list: of one value, or of several."""
    return [values] if isinstance(values, str | int | float) else list(values)
