"""Grids of runs: every dataset × number of clients × variant × seed of a node-level study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from fgl_core.study.spec import RunSpec, Spec


@dataclass(frozen=True)
class Scale:
    """What a profile changes in a node-level study; seeds are 0 … ``seeds`` - 1."""

    datasets: tuple[str, ...]
    clients: tuple[int, ...]
    seeds: int
    rounds: int


CITATION = ("cora", "citeseer", "pubmed")
SCALES = {
    "smoke": Scale(("digits-knn",), (3, 5), seeds=2, rounds=2),
    # Pubmed costs three times as much as the other two together
    "lite": Scale(CITATION[:2], (5, 7, 10), seeds=3, rounds=50),
    "paper": Scale(CITATION, (5, 7, 10), seeds=5, rounds=200),
    "power": Scale(CITATION[:2], (5, 7, 10), seeds=20, rounds=200),
}


def grid(scale: Scale, variants: Iterable[Mapping[str, Any]]) -> list[RunSpec]:
    """Every dataset × number of clients × variant × seed, each distinct run once.

    Args:
        variants: what differs besides, as fields of a spec, the method included; a field given here wins.
    """
    specs = [
        RunSpec.parse(
            {"dataset": dataset, "clients": clients, "rounds": scale.rounds, "seed": seed, **variant}
        )
        for dataset, clients, variant, seed in product(
            scale.datasets, scale.clients, list(variants), range(scale.seeds)
        )
    ]
    return distinct(specs)


def distinct(specs: Iterable[Spec]) -> list[Spec]:
    """Each run once, in the order given."""
    return list({spec.digest: spec for spec in specs}.values())
