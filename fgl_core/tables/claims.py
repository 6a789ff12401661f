"""The claims of the papers, and the rules by which runs decide them.

Claims stand in ``book/claims.toml``, without a verdict: :mod:`fgl_core.tables.ledger` computes it from
records.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Self

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from fgl_core.errors import InputError, reason, unknown
from fgl_core.root import shipped
from fgl_core.study.catalogue import STUDIES, study_specs
from fgl_core.study.results import Results
from fgl_core.tables.cells import MARGIN
from fgl_core.tables.quantities import QUANTITIES, Quantity
from fgl_core.tables.statistics import LEVEL

VERDICTS = ("reproduced", "partly", "not reproduced", "undecided")
PROTOCOL = "paper"  # the profile whose cells a claim covers


class Claim(BaseModel):
    """One claim of a paper, in our words, and what decides it; ``book/claims.toml`` explains the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    paper: str
    place: str
    short: str
    text: str
    reading: str = ""
    kind: Literal["superiority", "equivalence", "cheaper", "no dearer"] = "superiority"
    study: str
    pairs: tuple[tuple[str, ...], ...] = ()
    measure: str = "accuracy"
    places: tuple[str, ...] = ()
    claimed: float | dict[str, float] = {}
    page: str

    @model_validator(mode="after")
    def _decidable(self) -> Self:
        if self.study not in STUDIES:
            raise unknown("study", self.study, STUDIES)
        if self.measure not in QUANTITIES:
            raise unknown("measure", self.measure, QUANTITIES)
        if not self.pairs or {len(pair) for pair in self.pairs} != {1 if self.quantity.alone else 2}:
            count = "one row" if self.quantity.alone else "two rows"
            raise InputError(f"pairs: name {count} in each, as the measure is {self.measure}")
        if (self.kind in ("cheaper", "no dearer")) != (self.measure == "bytes"):
            raise InputError(f"kind {self.kind} does not go with the measure {self.measure}")
        if self.kind == "equivalence" and self.quantity.scale != 100:
            raise InputError("equivalence has a margin in points: name a measure in points")
        return self

    @property
    def quantity(self) -> Quantity:
        """What is compared."""
        return QUANTITIES[self.measure]

    def claimed_at(self, place: str) -> float | None:
        """The difference that the paper gives for a dataset or setting, in the quantity's own unit."""
        points = self.claimed.get(place) if isinstance(self.claimed, Mapping) else self.claimed
        return None if points is None else points / self.quantity.scale


def load_claims(path: Path | None = None) -> list[Claim]:
    """Read the claims, and check that studies, rows, places and pages exist.

    Args:
        path: the file; ``book/claims.toml`` of the code if not given, in a wheel beside this module.

    Raises:
        InputError: one line that names the file, the claim, and what is wrong with it.
    """
    path = path or shipped(__file__, "book/claims.toml")
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("claim", [])
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); it holds [[claim]] tables of TOML") from None
    claims: dict[str, Claim] = {}
    rows: dict[tuple[str, str], _Rows] = {}
    for entry in entries:
        name = entry.get("id", "without an id")
        try:
            claim = Claim(**entry)
            if name in claims:
                raise InputError("its id is taken by another claim: give it one of its own")
            key = (claim.study, claim.measure)
            if key not in rows:
                rows[key] = _rows(claim)
            _check_rows(claim, rows[key])
            _check_page(claim, path)
        except (ValidationError, InputError) as error:
            raise InputError(f"{path.name}, claim {name}: {reason(error)}") from None
        claims[name] = claim
    return list(claims.values())


class Ruling(NamedTuple):
    """A verdict, and in a few words why it is undecided; empty if it is not."""

    verdict: str
    why: str = ""


def rule(claim: Claim, frame: pd.DataFrame) -> Ruling:
    """The verdict on a claim.

    *Undecided* as long as runs of any cell are missing. A superiority claim is then *not reproduced* if a
    difference is significantly negative in any cell, and *reproduced* if its adjusted interval lies above 0
    in every one. Of what is left, it is *undecided* if in a cell without a clear difference the detectable
    one exceeds the claimed one, *partly* reproduced if differences are positive in most cells, and else *not
    reproduced*.

    An equivalence claim goes by the same steps, with "surely within the margin" for above 0, "surely outside"
    for negative, and the margin for the claimed difference. What travels is counted, not estimated: a claim
    of less holds in all cells, or it does not.

    Args:
        frame: a row per cell: place, missing, pairs, difference, detectable, and the p-values p_holm (against
            0), within and outside (the margin), each adjusted by Holm over the claim's cells. An adjusted
            interval excludes 0 exactly where p_holm is below 5 %.
    """
    counted = claim.kind in ("cheaper", "no dearer")
    lacking = frame["pairs"] < 1 if counted else (frame["missing"] > 0) | (frame["pairs"] < 2)
    if frame.empty or lacking.any():
        verb = "lacks" if lacking.sum() == 1 else "lack"
        return Ruling("undecided", f"{lacking.sum()} of {len(frame)} cells {verb} runs")
    if counted:
        holds = frame["difference"] > 0 if claim.kind == "cheaper" else frame["difference"] >= 0
        return Ruling("reproduced" if holds.all() else "not reproduced")
    if claim.kind == "equivalence":
        clear, against = frame["within"] < LEVEL, frame["outside"] < LEVEL
        towards, sought = frame["difference"].abs() < MARGIN, pd.Series(MARGIN, frame.index)
    else:
        clear = (frame["p_holm"] < LEVEL) & (frame["difference"] > 0)
        against = (frame["p_holm"] < LEVEL) & (frame["difference"] < 0)
        towards, sought = frame["difference"] > 0, frame["place"].map(claim.claimed_at).astype(float)
    if against.any():
        return Ruling("not reproduced")
    if clear.all():
        return Ruling("reproduced")
    if (~clear & (frame["detectable"] > sought)).any():
        return Ruling("undecided", "too few seeds to find it")
    return Ruling("partly" if towards.mean() > 0.5 else "not reproduced")


class _Rows(NamedTuple):
    labels: set[str]
    places: set[str]


def _rows(claim: Claim) -> _Rows:
    results = Results(claim.study, PROTOCOL, study_specs(claim.study, PROTOCOL, tuned=False), {})
    places = claim.quantity.runs(results)
    return _Rows({label for _, _, label in places}, {name for name, _, _ in places})


def _check_rows(claim: Claim, rows: _Rows) -> None:
    for label in (label for pair in claim.pairs for label in pair):
        if label not in rows.labels:
            raise unknown(f"row of {claim.study}", label, rows.labels)
    claimed = claim.claimed if isinstance(claim.claimed, Mapping) else ()
    for place in (*claim.places, *claimed):
        if place not in rows.places:
            raise unknown(f"dataset or setting of {claim.study}", place, rows.places)


def _check_page(claim: Claim, path: Path) -> None:
    root = path.resolve().parents[1]
    # an installed package has no pages
    if (root / "_toc.yml").is_file() and not (root / claim.page).is_file():
        raise InputError(f"there is no page {claim.page}: name a notebook or chapter from the project's root")
