"""The studies of FedCCH: its table and figures, and how much of its gain is norm or clustering alone.

Each is a function from a profile to its runs; the first line of its docstring is its title.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from fgl_core.datasets.groups import SETTINGS, setting_datasets
from fgl_core.methods.gcfl import THRESHOLDS
from fgl_core.study.decisions import alternatives
from fgl_core.study.grid import distinct
from fgl_core.study.spec import GraphSpec, RunSpec, Spec


@dataclass(frozen=True)
class Scale:
    """What a profile changes in a graph-level study; seeds are 0 … ``seeds`` - 1."""

    settings: tuple[str, ...]
    seeds: int
    rounds: int


SIX = ("CHEM", "BIO-CHEM", "MIX", "BIO-SN-CV", "BIO-CV", "ALL")
SCALES = {
    "smoke": Scale(("digits-01,digits-23",), seeds=2, rounds=1),
    "lite": Scale(SIX, seeds=2, rounds=20),
    "paper": Scale(SIX, seeds=5, rounds=200),
    "power": Scale(("CHEM", "BIO-CV"), seeds=20, rounds=200),
}
# the paper's plain baselines carry no norm, FedBN its own; our control is Local with PF
ROWS: tuple[Mapping[str, Any], ...] = (
    {"method": "local"},
    {"method": "local", "norm": "pf"},
    {"method": "fedavg"},
    {"method": "fedavg", "norm": "pf"},
    {"method": "fedprox"},
    {"method": "fedprox", "norm": "pf"},
    {"method": "fedbn"},
    {"method": "fedstar"},
    {"method": "gcfl"},
    {"method": "fedcch", "norm": "none"},
    {"method": "fedcch", "norm": "pf"},
)


def table1(profile: str) -> list[RunSpec]:
    """FedCCH, Table 1: accuracy of eleven methods in six settings, and the gain over training alone."""
    return grid(SCALES[profile], ROWS)


def fig3(profile: str) -> list[RunSpec]:
    """FedCCH, Fig. 3: accuracy after each round, without other methods' normalisation."""
    plain = ("fedavg", "fedprox", "fedstar", "gcfl", "fedcch")
    kept = (
        row
        for row in ROWS
        if row["method"] in plain and (row.get("norm") != "pf" or row["method"] == "fedcch")
    )
    scale = SCALES[profile]
    return grid(replace(scale, settings=scale.settings[:4]), kept)


def fig4(profile: str) -> list[RunSpec]:
    """FedCCH, Fig. 4: hash against plain cosine similarity, and PF kept against PF shared."""
    return grid(
        _ablation(profile),
        (
            {"method": "fedcch"},
            {"method": {"name": "fedcch", "signature": "cosine"}},
            {"method": "fedcch", "share_norm": True},
        ),
    )


def ladder(profile: str) -> list[RunSpec]:
    """Ladder: from training alone to FedCCH: norm, averaging, clusters by chance, by domain, by hash."""
    clustered = ("random", "domain", "average")
    return grid(
        _ablation(profile),
        (
            {"method": "local"},
            {"method": "local", "norm": "pf"},
            {"method": "fedavg", "norm": "pf"},
            *({"method": {"name": "fedcch", "clustering": kind}} for kind in clustered),
        ),
    )


def norms(profile: str) -> list[RunSpec]:
    """Norms: every method without one, with batch normalisation and with PF, kept and shared."""
    kinds = (("none", False), ("batch", False), ("batch", True), ("pf", False), ("pf", True))
    scale, names = SCALES[profile], ("local", "fedavg", "fedprox", "fedstar", "gcfl", "fedcch")
    if profile == "smoke":
        names = ("local", "fedavg", "fedcch")
    if profile == "lite":  # five kinds for each method are many; GCFL is FedAvg as long as it warms up
        scale = replace(scale, settings=("CHEM",))
        names = tuple(name for name in names if name != "gcfl")
    every = (
        {"method": name, "norm": norm, "share_norm": shared}
        for name in names
        for norm, shared in kinds
        if not (name == "local" and shared)  # nothing travels
    )
    return grid(scale, [*every, {"method": "fedbn"}])  # which is batch kept local, to compare


def datasets(profile: str) -> list[Spec]:
    """FedCCH's datasets: how many graphs each holds, how large, and how unlike."""
    return _statistics(profile, SETTINGS["ALL"])


def fig1(profile: str) -> list[Spec]:
    """FedCCH, Fig. 1: how unlike the graphs within one client are, in four of the datasets."""
    return _statistics(profile, ("MUTAG", "NCI1", "ENZYMES", "COLLAB"))


def _statistics(profile: str, names: Iterable[str]) -> list[Spec]:
    names = ("digits-graphs",) if profile == "smoke" else names
    return [Spec.parse({"task": "statistics", "dataset": name}) for name in names]


def hash_and_clusters(profile: str) -> list[RunSpec]:
    """FedCCH's hash and clusters: each choice changed by itself, beside clusters that mean nothing."""
    # two settings, one of one domain and one of two; in lite the first alone, as its variants are many
    scale = replace(SCALES[profile], settings=("CHEM",) if profile == "lite" else ("CHEM", "BIO-CV"))
    hashes, linkages = ("perceptual", "difference", "wavelet"), ("single", "complete", "kmeans")
    frequencies, members, width = (10, 0), ("random", "domain"), {}
    if profile == "smoke":
        width = {"hidden": 16}
        scale = replace(scale, settings=("digits-01,digits-23,digits-45",), rounds=2)
        hashes, linkages, frequencies, members = hashes[1:2], linkages[:1], frequencies[1:], members[:1]
    specs = []
    for setting in scale.settings:
        numbers = range(1, len(setting_datasets(setting)) + 1)
        variants = (
            _fedcch(),
            *(_fedcch(signature=kind) for kind in (*hashes, "cosine")),
            *(_fedcch(clustering=kind) for kind in linkages),
            *(_fedcch(clusters=number) for number in numbers),
            *(_fedcch(cluster_every=rounds) for rounds in frequencies),
            *(_fedcch(clustering=kind) for kind in members),
            # the average hash looks at each unit by itself, whatever their order
            *(_fedcch(signature=kind, unit_order=1) for kind in hashes),
            _fedcch() | {"common_start": False},
        )
        specs += grid(replace(scale, settings=(setting,)), (variant | width for variant in variants))
    return specs


def decisions(profile: str) -> list[RunSpec]:
    """FedCCH's decisions: what each of our choices changes, taken in another way; FedCCH and FedAvg."""
    scale = SCALES[profile]
    variants = (
        fields for method in ("fedavg", "fedcch") for fields in alternatives(method, GraphSpec).values()
    )
    return grid(replace(scale, settings=scale.settings[:1]), variants)


def privacy(profile: str) -> list[Spec]:
    """Privacy: what a server can guess about a client's graphs from what FedCCH's clients send."""
    size: dict[str, Any] = {}
    setting, dataset, seeds = "CHEM", "NCI1", SCALES[profile].seeds  # NCI1 has graphs for many clients
    if profile == "smoke":
        setting, dataset = "digits-01,digits-23", "digits-01"
        size = {"clients": 20, "graphs": 8, "attacked": (1, 2)}
    elif profile == "lite":
        size = {"clients": 70, "attacked": (1, 5)}
    secrets = ({"secret": "set"}, *({"secret": s, "dataset": dataset} for s in ("classes", "size", "member")))
    return [
        Spec.parse({"task": "privacy", "setting": setting, "seed": seed, **secret, **size})
        for secret, seed in product(secrets, range(seeds))
    ]


def _fedcch(**parameters: Any) -> dict[str, Any]:
    return {"method": {"name": "fedcch", **parameters}}


def _ablation(profile: str) -> Scale:
    """A study of parts; in ``lite`` only of the two settings that cost least, as its variants are many."""
    scale = SCALES[profile]
    return replace(scale, settings=("CHEM", "BIO-CV")) if profile == "lite" else scale


def grid(scale: Scale, variants: Iterable[Mapping[str, Any]]) -> list[RunSpec]:
    """Every setting × variant × seed, each distinct run once; GCFL with the thresholds of the setting.

    Args:
        variants: what differs besides, as fields of a spec, the method included.
    """
    return distinct(
        RunSpec.parse({"setting": setting, "rounds": scale.rounds, "seed": seed, **_placed(variant, setting)})
        for setting, variant, seed in product(scale.settings, list(variants), range(scale.seeds))
    )


def _placed(variant: Mapping[str, Any], setting: str) -> Mapping[str, Any]:
    if variant["method"] not in ("gcfl", "gcfl+") or setting not in THRESHOLDS:
        return variant
    first, second = THRESHOLDS[setting]
    return {**variant, "method": {"name": variant["method"], "epsilon_1": first, "epsilon_2": second}}
