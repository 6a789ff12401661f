"""The claim ledger: what records say of each claim, as numbers, verdicts and text for the book."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, nan
from typing import Any, NamedTuple

import pandas as pd

from fgl_core.errors import unknown
from fgl_core.study.catalogue import PROFILES
from fgl_core.study.results import Results, collect
from fgl_core.study.store import Store, newest
from fgl_core.tables.cells import MARGIN, paired
from fgl_core.tables.claims import PROTOCOL, VERDICTS, Claim, Ruling, load_claims, rule
from fgl_core.tables.quantities import QUANTITIES, Place
from fgl_core.tables.statistics import LEVEL, Interval, equivalence, holm, paired_interval

DECIDING = ("power", "paper")  # more seeds first
HINTS = "lite"
COLUMNS = ["place", "clients", "contrast", "profile", "missing", "diverged", "by_seed", *paired({}, {})]


@dataclass(frozen=True)
class Finding:
    """What records say of a claim.

    Attributes:
        cells: one row per cell that the claim covers (dataset or setting, number of clients, pair of rows):
            place, clients, contrast, profile, missing and diverged (runs), by_seed (differences), the columns
            of :func:`fgl_core.tables.cells.paired`, and what :func:`fgl_core.tables.claims.rule` takes.
        hints: the same from a profile that decides nothing; empty where none was asked for.
        ruling: the verdict.
    """

    claim: Claim
    cells: pd.DataFrame
    hints: pd.DataFrame
    ruling: Ruling

    @property
    def number(self) -> str:
        """What the weakest pair of rows says, in brief: of all cells, of a part of them, or as a hint."""
        if (found := weakest(self.claim, self.cells)) is not None:
            part = "part: " if len(_used(self.cells)) < len(self.cells) or self.cells["missing"].any() else ""
            return part + self.claim.quantity.text(found.interval, brief=True)
        if (found := weakest(self.claim, self.hints)) is not None:
            return f"hint: {self.claim.quantity.text(found.interval, brief=True)}"
        return "no runs"


@dataclass(frozen=True)
class Ledger:
    """Claims and records brought together.

    Attributes:
        profile: ``auto``: ``power`` and ``paper`` decide, and ``lite`` gives a hint. Another name: that
            profile alone; of ``smoke`` and ``lite`` nothing is decided.
    """

    claims: list[Claim]
    profile: str = "auto"
    store: Store = field(default_factory=Store)

    def __post_init__(self) -> None:
        if self.profile not in ("auto", *PROFILES):
            raise unknown("profile", self.profile, ["auto", *PROFILES])

    @property
    def deciding(self) -> tuple[str, ...]:
        """The profiles that decide, the one to be preferred first."""
        return DECIDING if self.profile == "auto" else tuple({self.profile} & set(DECIDING))

    @property
    def hinting(self) -> str | None:
        """The profile that gives hints."""
        if self.profile == "auto":
            return HINTS
        return None if self.deciding else self.profile

    @cached_property
    def results(self) -> dict[tuple[str, str], Results]:
        """What is recorded of each study under each profile that the ledger reads."""
        studies = dict.fromkeys(claim.study for claim in self.claims)
        profiles = dict.fromkeys((PROTOCOL, *self.deciding, *filter(None, (self.hinting,))))
        return {(s, p): collect(s, p, {}, self.store) for s in studies for p in profiles}

    @cached_property
    def findings(self) -> list[Finding]:
        """What records say of each claim, in the order of the claims."""
        found = []
        for claim in self.claims:
            decided = self._cells(claim, PROTOCOL, self.deciding)
            hints = self._cells(claim, self.hinting, (self.hinting,)) if self.hinting else decided.iloc[:0]
            found.append(Finding(claim, decided, hints, rule(claim, decided)))
        return found

    def of(self, paper: str) -> list[Finding]:
        """The findings on one paper's claims."""
        return [finding for finding in self.findings if finding.claim.paper == paper]

    def stamp(self) -> str:
        """Where the numbers come from, in Markdown: studies, runs recorded per profile, the newest record."""
        studies = dict.fromkeys(study for study, _ in self.results)
        parts, shown = [f"Studies {', '.join(f'`{study}`' for study in studies)}."] if studies else [], []
        for profile in (*self.deciding, *filter(None, (self.hinting,))):
            read = [results for (_, name), results in self.results.items() if name == profile]
            wanted = {spec.digest for results in read for spec in results.specs}
            records = {r.spec.digest: r for results in read for r in results.shown}
            shown += records.values()
            role = "decides" if profile in self.deciding else "gives hints"
            parts.append(f"Profile {profile} {role}: {len(records)} of {len(wanted)} runs recorded.")
        if (last := newest(shown)) is not None:
            commit = f"commit `{last.commit}`" if last.commit else "outside a checkout"
            parts.append(f"Newest record: {last.date[:10] or 'no date'}, {commit}.")
        return " ".join(parts)

    def _cells(self, claim: Claim, covered: str, profiles: Iterable[str]) -> pd.DataFrame:
        """The claim's cells under the profile ``covered``, each from the first profile with all its runs."""
        rows = []
        tables = [self._table(claim.study, name, claim.measure) for name in profiles]
        known = claim.quantity.runs(self.results[claim.study, covered])
        for place, clients in dict.fromkeys(where[:2] for where in known):
            for pair in claim.pairs:
                sides = [(place, clients, label) for label in pair]
                if (not claim.places or place in claim.places) and set(sides) <= known.keys():
                    there = [table for table in tables if set(sides) <= table.runs.keys()]
                    rows.append(_row(claim, sides, there))
        frame = pd.DataFrame(rows, columns=COLUMNS)
        tests = [equivalence(list(seeds.values()), MARGIN) for seeds in frame["by_seed"]]
        return frame.assign(
            p_holm=holm(list(frame["p"])),
            within=holm([within for within, _ in tests]),
            outside=holm([outside for _, outside in tests]),
        )

    @cached_property
    def _tables(self) -> dict[tuple[str, str, str], _Table]:
        return {}

    def _table(self, study: str, profile: str, measure: str) -> _Table:
        key = (study, profile, measure)
        if key not in self._tables:
            results = self.results[study, profile]
            quantity = QUANTITIES[measure]
            runs = {place: _Runs.of(specs, results) for place, specs in quantity.runs(results).items()}
            self._tables[key] = _Table(profile, quantity.by_seed(results), runs)
        return self._tables[key]


def open_ledger(profile: str = "auto") -> Ledger:
    """The papers' claims with what is recorded; what the notebook reads.

    Args:
        profile: as :class:`Ledger` takes it, except that ``auto`` first looks for ``FGL_PROFILE``.

    Raises:
        InputError: an unknown profile, or a claim that names what does not exist.
    """
    if profile == "auto":
        profile = os.environ.get("FGL_PROFILE") or "auto"
    return Ledger(load_claims(), profile)


class Contrast(NamedTuple):
    """A pair of rows with its mean difference over datasets or settings and numbers of clients."""

    name: str
    interval: Interval


def weakest(claim: Claim, frame: pd.DataFrame) -> Contrast | None:
    """The pair of rows that speaks least for a claim: what is said of all pairs holds as far as for this one.

    That is the smallest mean difference, or the one farthest from zero where none is claimed.

    Args:
        frame: cells of a :class:`Finding`. Those that lack runs are left out if others do not; None where no
            cell has runs.
    """
    contrasts = [Contrast(name, average(part)) for name, part in _used(frame).groupby("contrast", sort=False)]
    if claim.kind == "equivalence":
        return max(contrasts, key=lambda contrast: abs(contrast.interval.mean), default=None)
    return min(contrasts, key=lambda contrast: contrast.interval.mean, default=None)


def average(frame: pd.DataFrame) -> Interval:
    """The mean difference over cells that have runs, with its interval over the seeds that all of them share.

    Without an interval where they share fewer than two.
    """
    seeds = list(frame["by_seed"])
    shared = sorted(set.intersection(*(set(by_seed) for by_seed in seeds)))
    if len(shared) > 1:
        return paired_interval([sum(each[seed] for each in seeds) / len(seeds) for seed in shared])
    mean = sum(sum(each.values()) / len(each) for each in seeds) / len(seeds)
    return Interval(mean, -inf, inf, nan, len(shared))


def _used(frame: pd.DataFrame) -> pd.DataFrame:
    seen = frame[frame["pairs"] > 0]
    complete = seen[seen["missing"] == 0]
    return complete if len(complete) else seen


def counts(findings: Iterable[Finding]) -> pd.DataFrame:
    """How many claims of each paper have which verdict: rows papers, columns verdicts."""
    listed = [(finding.claim.paper, finding.ruling.verdict) for finding in findings]
    papers = list(dict.fromkeys(paper for paper, _ in listed))
    table = {verdict: [listed.count((paper, verdict)) for paper in papers] for verdict in VERDICTS}
    return pd.DataFrame(table, index=papers)


def summary(findings: Iterable[Finding], folder: str) -> str:
    """A row per claim in Markdown: claim, our number, verdict, and a link to where the book shows it.

    Args:
        folder: of the page that shows it, from the project's root, for links to be relative to it.
    """
    lines = ["| claim | here | verdict | where |", "| --- | --- | --- | --- |"]
    for finding in findings:
        claim, ruling = finding.claim, finding.ruling
        verdict = f"**{ruling.verdict}**" if ruling.verdict != "undecided" else ruling.verdict
        # only the claim breaks into lines
        unbroken = [_unbroken(text) for text in (finding.number, verdict)]
        lines.append(f"| {claim.short} | {' | '.join(unbroken)} | {_link(claim, folder, _figure(claim))} |")
    return "\n".join(lines)


def details(findings: Iterable[Finding], folder: str) -> str:
    """Each claim in full, in Markdown: what the paper says and where, how it is read, and what was found.

    Args:
        folder: as in :func:`summary`.
    """
    return "\n".join(_detail(finding, folder) for finding in findings)


@dataclass(frozen=True)
class _Runs:
    """How many runs of a cell are missing, and how many diverged."""

    missing: int
    diverged: int

    @classmethod
    def of(cls, specs: Iterable[Any], results: Results) -> _Runs:
        records = [results.record(spec) for spec in specs]
        return cls(records.count(None), sum(r is not None and r.status == "diverged" for r in records))


@dataclass(frozen=True)
class _Table:
    """A study under one profile."""

    profile: str
    by_seed: Mapping[Place, Mapping[int, float]]
    runs: Mapping[Place, _Runs]

    def lacks(self, sides: Iterable[Place]) -> int:
        return sum(self.runs[side].missing for side in sides)


def _row(claim: Claim, sides: list[Place], tables: list[_Table]) -> dict[str, Any]:
    place, clients, _ = sides[0]
    contrast = " against ".join(label for _, _, label in sides)
    row: dict[str, Any] = {"place": place, "clients": clients, "contrast": contrast}
    if not tables:  # no profile that is read has this cell
        return row | {"profile": "", "missing": 1, "diverged": 0, "by_seed": {}, **paired({}, {})}
    table = next((table for table in tables if not table.lacks(sides)), tables[-1])
    first, *rest = (table.by_seed.get(side, {}) for side in sides)
    second = rest[0] if rest else dict.fromkeys(first, 0.0)
    if claim.quantity.fewer:
        first, second = second, first
    return row | {
        "profile": table.profile,
        "missing": table.lacks(sides),
        "diverged": sum(table.runs[side].diverged for side in sides),
        "by_seed": {seed: first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())},
        **paired(first, second),
    }


def _detail(finding: Finding, folder: str) -> str:
    claim, ruling = finding.claim, finding.ruling
    said = f"- **{claim.short}.** {claim.text} {claim.place}; {_link(claim, folder, 'shown here')}."
    if claim.reading:
        said += f" *How we read it:* {claim.reading}"
    why = f": {ruling.why}" if ruling.why else ""
    lines = [said, f"  - **{ruling.verdict}**{why}. {_seen(claim, finding.cells)}".rstrip()]
    if hint := _seen(claim, finding.hints):
        lines.append(f"  - a hint from `{finding.hints['profile'].iloc[0]}`, which decides nothing: {hint}")
    return "\n".join(lines)


def _seen(claim: Claim, frame: pd.DataFrame) -> str:
    """What the cells with runs say, in a sentence or two; empty without any."""
    if (found := weakest(claim, frame)) is None:
        return ""
    seen = _used(frame)
    text = f"{claim.quantity.text(found.interval)}"
    text += f" ({found.name}{', the weakest' if len(claim.pairs) > 1 else ''})"
    text += f". {len(seen)} of {len(frame)} cells have runs"
    if claim.kind == "superiority":
        clear = seen["p_holm"] < LEVEL
        above, below = (clear & (seen["difference"] > 0)).sum(), (clear & (seen["difference"] < 0)).sum()
        text += f", {above} clearly above 0, {below} clearly below"
    if claim.kind == "equivalence":
        within, outside = (seen["within"] < LEVEL).sum(), (seen["outside"] < LEVEL).sum()
        text += f", {within} surely within a point, {outside} surely outside"
    if len(seen) > 1:
        ends = (seen.loc[seen["difference"].idxmin()], seen.loc[seen["difference"].idxmax()])
        text += "; they go from " + " to ".join(_cell_text(claim, row) for row in ends)
    diverged = int(frame["diverged"].sum())
    return text + (f". Runs that diverged: {diverged}." if diverged else ".")


def _cell_text(claim: Claim, row: pd.Series) -> str:
    alone = Interval(row["difference"], -inf, inf, row["p"], row["pairs"])
    return f"{claim.quantity.text(alone)} ({row['contrast']}, {row['place']}, {row['clients']} clients)"


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _figure(claim: Claim) -> str:
    name = claim.place.rpartition(", ")[2]
    return _unbroken(name) if name.startswith(("Table", "Fig")) else "page"


def _link(claim: Claim, folder: str, text: str) -> str:
    return f"[{text}]({os.path.relpath(claim.page, folder).replace(os.sep, '/')})"
