"""The studies of FGSSL: its tables, its figures, and what the paper leaves open.

Each is a function from a profile to its runs; the first line of its docstring is its title.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fgl_core.streams import SOURCES
from fgl_core.study.decisions import alternatives
from fgl_core.study.grid import CITATION, SCALES, Scale, grid
from fgl_core.study.spaces import SPACES
from fgl_core.study.spec import NodeSpec, RunSpec

TAUS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
OMEGAS = (0.1, 1.0, 5.0, 10.0, 20.0)
VIEWS = ("none", "weak", "strong")
# the optimiser of the authors' configurations: no momentum, a rate per dataset, on Citeseer with clipping
RELEASED = {
    "cora": {"lr": 0.25, "momentum": 0.0},
    "citeseer": {"lr": 5.0, "momentum": 0.0, "clip": 0.01},
    "pubmed": {"lr": 0.3, "momentum": 0.0},
    "digits-knn": {"lr": 0.25, "momentum": 0.0},
}


def table1(profile: str) -> list[RunSpec]:
    """FGSSL, Table 1: accuracy of each method on each dataset, for 5, 7 and 10 clients."""
    names = ("local", "global", "fedavg", "fedprox", "fedopt", "fedsage", "fedsage+", "fgssl")
    sgd_server = {"method": SPACES["fedopt-sgd"].method}
    return grid(SCALES[profile], [*({"method": {"name": name}} for name in names), sgd_server])


def fig1(profile: str) -> list[RunSpec]:
    """FGSSL, Fig. 1: how far the models and the graphs of 20 clients are apart."""
    smoke = profile == "smoke"
    scale = replace(SCALES[profile], clients=(5,) if smoke else (20,))
    common = {"task": "heterogeneity"}
    alone = {"method": "local", "rounds": 1, "local_epochs": 10 if smoke else 100}
    together = {"every": 1 if smoke else 10}
    return grid(
        scale,
        [common | alone, *(common | together | {"method": name} for name in ("fedavg", "fgssl"))],
    )


def fig3(profile: str) -> list[RunSpec]:
    """FGSSL, Fig. 3: test accuracy after each round on Citeseer."""
    part = {"clients": (5,)} if profile == "smoke" else {"datasets": ("citeseer",)}
    scale = replace(SCALES[profile], **part)
    names = ("fedavg", "fedprox", "fedopt", "fedsage", "fedsage+", "fgssl")
    return grid(scale, ({"method": {"name": name}} for name in names))


def table2(profile: str) -> list[RunSpec]:
    """FGSSL, Table 2: node contrast and structure distillation, each alone, both, neither."""
    return grid(
        SCALES[profile],
        ({"method": "fedavg"}, _fgssl(lambda_d=0), _fgssl(lambda_c=0), _fgssl()),
    )


def table3(profile: str) -> list[RunSpec]:
    """FGSSL, Table 3: which views the local and the global model see."""
    views = (_fgssl(local_view=local, global_view=other) for local in VIEWS for other in VIEWS)
    return grid(_five(profile), ({"method": "fedavg"}, *views))


def fig4(profile: str) -> list[RunSpec]:
    """FGSSL, Fig. 4: the temperatures τ (at ω = 5) and ω (at τ = 0.1), five clients."""
    taus, omegas = (TAUS, OMEGAS) if profile != "smoke" else (TAUS[::2], OMEGAS[::2])
    swept = (*(_fgssl(tau=tau) for tau in taus), *(_fgssl(omega=omega) for omega in omegas))
    return grid(_five(profile), ({"method": "fedavg"}, *swept))


def which(profile: str) -> list[RunSpec]:
    """Which FGSSL? The paper's loss with both denominators, and what the authors' code computes."""
    scale, specs = _five(profile), []
    common = (
        {"method": "fedavg"},
        _fgssl(),
        _fgssl(denominator="pairwise"),
        {"method": "fgssl-released"},
        {"method": "fgssl-released-2023"},
    )
    for dataset in scale.datasets:
        theirs = RELEASED[dataset]
        own = ({"method": name, **theirs} for name in ("fedavg", "fgssl-released", "fgssl-released-2023"))
        specs += grid(replace(scale, datasets=(dataset,)), [*common, *own])
    return specs


def protocols(profile: str) -> list[RunSpec]:
    """Protocols: how the split and the graph of the evaluation move the numbers."""
    return grid(
        _five(profile),
        (
            {"method": name, "split": split, "evaluation": evaluation}
            for name in ("local", "fedavg", "fgssl")
            for split in ("stratified", "quota")
            for evaluation in ("union", "global")
        ),
    )


def ladder(profile: str) -> list[RunSpec]:
    """Ladder: from FedAvg to FGSSL step by step, and FedAvg with as much computing."""
    return grid(
        _five(profile),
        (
            {"method": "fedavg"},
            {"method": {"name": "fedavg-view", "view": "strong"}},
            {"method": {"name": "fgssl-released", "lambda_c": 2.0}},  # halved: the weight of FGSSL's contrast
            _fgssl(lambda_d=0),
            _fgssl(),
            {"method": "fedavg", "local_epochs": 12},  # FGSSL's passes: three where FedAvg has one
        ),
    )


def partitions(profile: str) -> list[RunSpec]:
    """Partitions: who holds what, by Louvain communities and at random."""
    part = {"clients": (3, 5)} if profile == "smoke" else {"clients": (5, 7, 10, 20), "datasets": CITATION}
    scale = replace(SCALES[profile], rounds=1, **part)
    return grid(scale, ({"method": "fedavg", "partition": kind} for kind in ("louvain", "random")))


def noise(profile: str) -> list[RunSpec]:
    """Noise floor: how far chance alone moves a number, and which part of chance does."""
    scale = _five(profile)
    several = range(1, 1 + {"smoke": 2, "lite": 5}.get(profile, 10))
    one = ({"task": "noise", "varies": source, "other": other} for source in SOURCES for other in several)
    # FedAvg against FedAvg: the same clients and test nodes, other initial weights and training
    again = ({"task": "noise", "varies": "run", "other": 1000 + seed} for seed in range(scale.seeds))
    methods = ("fedavg", "fgssl")
    return [
        *grid(scale, ({"method": name} for name in methods)),
        *grid(scale, ({"method": name, "seed": 0, **fields} for fields in one for name in methods)),
        *grid(
            replace(scale, seeds=1),
            ({"method": "fedavg", "seed": seed, **fields} for seed, fields in enumerate(again)),
        ),
    ]


def decisions(profile: str) -> list[RunSpec]:
    """Decisions: what each of our choices changes, taken in another way; FGSSL and FedAvg."""
    scale = _five(profile)
    variants = [
        fields
        for method in ("fedavg", "fgssl")
        for fields in alternatives(method, NodeSpec).values()
        if "keep_unlabelled" not in fields  # only Citeseer has nodes without a label
    ]
    return grid(replace(scale, datasets=scale.datasets[:1]), variants)


def _fgssl(**parameters: Any) -> dict[str, Any]:
    return {"method": {"name": "fgssl", **parameters}}


def _five(profile: str) -> Scale:
    """Five clients only, as in the paper's ablations."""
    return replace(SCALES[profile], clients=(5,))
