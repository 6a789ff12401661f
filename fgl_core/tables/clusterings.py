"""Which clients were averaged together: what a run of FedCCH changes in that, and what records note of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from fgl_core.analysis.agreement import adjusted_rand
from fgl_core.datasets import domain
from fgl_core.signature import hash_similarity, linkage_tree
from fgl_core.study.results import Results
from fgl_core.study.spec import GraphSpec
from fgl_core.study.store import Record
from fgl_core.tables.labels import Label, place, placed_runs

FEDCCH = "FedCCH"  # as the paper has it, as far as it says
HASHES = {"perceptual": "pHash", "difference": "dHash", "wavelet": "wHash", "cosine": "cosine, no hash"}
ROUND_COLUMNS = ["dataset", "clients", "method", "name", "seed", "round", "number", "domains", "previous"]
LINKAGES = {"single": "single linkage", "complete": "complete linkage", "kmeans": "k-means"}
CONTROLS = {"random": "clusters by chance", "domain": "clusters by domain"}


def variation(spec: GraphSpec) -> list[tuple[str, str]]:
    """What a run of FedCCH changes: the factor (hash, linkage, number, frequency, control), and into what."""
    method, changes = spec.method, []
    if method.signature in HASHES:
        changes.append(("hash", HASHES[method.signature]))
    if method.clustering in LINKAGES:
        changes.append(("linkage", LINKAGES[method.clustering]))
    if method.clusters is not None:
        changes.append(("number", f"{method.clusters} cluster{'s' * (method.clusters > 1)}"))
    if method.cluster_every != 1:
        every = method.cluster_every
        changes.append(("frequency", f"every {every} rounds" if every else "first round only"))
    if method.clustering in CONTROLS:
        changes.append(("control", CONTROLS[method.clustering]))
    if method.unit_order:
        changes.append(("control", "shuffled units"))
    if not spec.common_start:
        changes.append(("control", "own starts"))
    return changes


def variant(spec: GraphSpec) -> str:
    """What a run of FedCCH is called: what it changes."""
    return ", ".join(text for _, text in variation(spec)) or FEDCCH


def factors(results: Results) -> dict[str, str]:
    """The factor of each variant, by the variant's name; a control is one whatever else changes with it."""
    found = {}
    for spec in results.specs:
        names = [factor for factor, _ in variation(spec)]
        found[variant(spec)] = "control" if "control" in names else next(iter(names), "")
    return found


def clustering_rounds(results: Results, label: Label = variant) -> pd.DataFrame:
    """One row per run and round: how many clusters, and how they agree with domains and the round before.

    Agreement is :func:`fgl_core.analysis.agreement.adjusted_rand`.

    Args:
        label: as in :func:`fgl_core.tables.cells.cells`.

    Returns:
        dataset (the setting), clients, method (its label), name, seed, round, number; domains, nan where all
        clients are of one domain; previous, nan in the first round.
    """
    parts = []
    for clients, text, spec in placed_runs(results, label):
        record = results.record(spec)
        noted = _noted(record, "clusters") if record is not None else []
        if not noted:
            continue
        labels = np.array(noted)
        _, domains = np.unique([domain(dataset) for dataset in _datasets(record)], return_inverse=True)
        columns = {
            "dataset": place(spec)[0],
            "clients": clients,
            "method": text,
            "name": spec.method.name,
            "seed": spec.seed,
            "round": np.arange(1, len(labels) + 1),
            "number": [len(set(groups)) for groups in noted],
            "domains": adjusted_rand(labels, domains) if domains.any() else nan,
            "previous": [nan, *adjusted_rand(labels[1:], labels[:-1])],
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=ROUND_COLUMNS)


@dataclass(frozen=True)
class Signatures:
    """What the clients of one run sent in one round, and what the server made of it.

    Attributes:
        clients: their names; none where there is no record.
        bits: bool ``[m, 64]``.
        clusters: each client's cluster, int64 ``[m]``.
    """

    setting: str
    seed: int
    round: int
    clients: list[str]
    bits: np.ndarray
    clusters: np.ndarray

    @property
    def similarity(self) -> np.ndarray:
        """E, float64 ``[m, m]`` (FedCCH, eqs. 11 and 12)."""
        return hash_similarity(self.bits)

    @property
    def tree(self) -> np.ndarray | None:
        """How average linkage joins the clients, as :func:`fgl_core.signature.linkage_tree`; None for one."""
        return linkage_tree(self.similarity) if len(self.clients) > 1 else None

    @property
    def between(self) -> np.ndarray:
        """The similarities of all pairs of different clients."""
        return self.similarity[np.triu_indices(len(self.clients), 1)]


def last_signatures(results: Results, seed: int) -> Signatures:
    """The signatures that FedCCH, as the paper has it, noted last in the study's first setting.

    Args:
        seed: of the run; where it has no signatures, the first run that has some.
    """
    record = _noting(results, seed, "signatures")
    if record is None:
        return Signatures(
            results.specs[0].setting, seed, 0, [], np.empty((0, 64), bool), np.empty(0, np.int64)
        )
    noted = _noted(record, "signatures")
    last = max(number for number, signatures in enumerate(noted) if signatures is not None)
    packed = [np.frombuffer(bytes.fromhex(text), np.uint8) for text in noted[last]]
    return Signatures(
        record.spec.setting,
        record.spec.seed,
        last + 1,
        _names(record),
        np.unpackbits(np.stack(packed), axis=1).astype(bool),
        np.array(_noted(record, "clusters")[last]),
    )


@dataclass(frozen=True)
class Company:
    """Who was averaged with whom in each round of one run.

    Attributes:
        clients: their names; none where there is no record.
        groups: int64 ``[rounds, m]``: equal numbers in a row were averaged together, -1 was alone. A group
            keeps the number of the one before it with which it shares most clients.
    """

    setting: str
    seed: int
    clients: list[str]
    groups: np.ndarray


def company(results: Results, seed: int) -> Company:
    """The groups of FedCCH, as the paper has it, in the study's first setting.

    Args:
        seed: of the run; where it noted no clusters, the first run that did.
    """
    record = _noting(results, seed, "clusters")
    if record is None:
        return Company(results.specs[0].setting, seed, [], np.empty((0, 0), np.int64))
    groups = handed_on(np.array(_noted(record, "clusters")))
    return Company(record.spec.setting, record.spec.seed, _names(record), groups)


def handed_on(labels: np.ndarray) -> np.ndarray:
    """Number the clusters of each round so that those that share members over rounds keep their number.

    Args:
        labels: each client's cluster, int ``[rounds, m]``.

    Returns:
        int64 ``[rounds, m]``, as :attr:`Company.groups`; numbers are below m // 2.
    """
    from scipy.optimize import linear_sum_assignment

    numbers = np.full(labels.shape, -1)
    before = np.full(labels.shape[1], -1)
    for row, found in zip(numbers, labels, strict=True):
        groups = [found == label for label in dict.fromkeys(found) if (found == label).sum() > 1]
        shared = [[(before[group] == number).sum() for number in range(len(found) // 2)] for group in groups]
        if groups:
            for group, number in zip(*linear_sum_assignment(shared, maximize=True), strict=True):
                row[groups[group]] = number
        before = np.where(row >= 0, row, before)  # who is alone for a while still stands for the last group
    return numbers


def warm_up_note(results: Results) -> str:
    """Where GCFL is FedAvg, as its runs end before it may cut a cluster, in Markdown."""
    specs = [spec for spec in results.specs if spec.method.name in ("gcfl", "gcfl+")]
    waiting = [spec for spec in specs if spec.rounds <= spec.method.warm_up]
    if not waiting:
        return "GCFL's warm-up ends before its runs do." if specs else "No run of GCFL is shown."
    longest = max(spec.rounds for spec in waiting)
    first = min(spec.method.warm_up for spec in waiting) + 1
    rounds = f"{longest} round{'s' * (longest > 1)}"
    return (
        f"**GCFL is FedAvg here.** It cuts no cluster before round {first}, and these runs have {rounds}: its"
        " row repeats FedAvg's, and says nothing about GCFL."
    )


def _noted(record: Record, kind: str) -> list:
    return (record.data.get("notes") or {}).get(kind) or []


def _noting(results: Results, seed: int, kind: str) -> Record | None:
    """FedCCH as the paper has it, in the first setting: this seed's record, else the first that has notes."""
    setting = results.specs[0].setting
    chosen = [spec for spec in results.specs if spec.setting == setting and variant(spec) == FEDCCH]
    records = map(results.record, sorted(chosen, key=lambda spec: (spec.seed != seed, spec.seed)))
    return next((record for record in records if record is not None and any(_noted(record, kind))), None)


def _names(record: Record) -> list[str]:
    return [client["name"] for client in record.data["partition"]["clients"]]


def _datasets(record: Record) -> list[str]:
    return [client["dataset"] for client in record.data["partition"]["clients"]]
