"""Records without training, for tests of what reads them."""

from __future__ import annotations

from typing import Any

from fgl_core.study.spec import GraphSpec, RunSpec
from fgl_core.tables.labels import place


def synthetic_record(
    spec: RunSpec, test: float = 0.8, *, date: str = "2026-01-02T03:04:05+00:00"
) -> dict[str, Any]:
    """A finished run of ``spec`` whose best round is its last and has the test accuracy ``test``."""
    rounds, (_, clients) = spec.rounds, place(spec)
    climb = [round(test * (number + 1) / rounds, 5) for number in range(rounds)]
    names = (
        "val_accuracy",
        "test_accuracy",
        "local_val_accuracy",
        "local_test_accuracy",
        "test_accuracy_client_mean",
    )
    names += tuple(
        f"{split}_{kind}" for split in ("val", "test") for kind in ("macro_f1", "balanced_accuracy")
    )
    curves: dict[str, list[Any]] = {"loss": [round(2.0 - value, 5) for value in climb]}
    curves |= {name: list(climb) for name in names}
    for split in ("val", "test"):
        curves[f"{split}_correct"] = [[300 + number] * clients for number in range(rounds)]
    if spec.method.evaluates_everywhere and not isinstance(spec, GraphSpec):
        curves["everywhere_test_accuracy"] = [round(value / 2, 5) for value in climb]
    last = {"round": rounds, **{name: values[-1] for name, values in curves.items()}}
    return {
        "format": 1,
        "spec": spec.model_dump(mode="json"),
        "digest": spec.digest,
        "revision": spec.method.revision,
        "status": "done",
        "reason": None,
        "partition": {
            "hash": "0" * 64,
            "clients": [_client(spec, number) for number in range(clients)],
            "edges_lost": 3,
            "edges_lost_share": 0.25,
            "label_skew": 0.2,
            "size_skew": 0.0,
        },
        "curves": curves,
        "best": last,
        "last": last,
        **({"heterogeneity": _pairs(spec, test)} if spec.task == "heterogeneity" else {}),
        "bytes": {way: {"model": [3_694_900 * clients] * rounds} for way in ("up", "down")},
        "notes": {"clusters": [[0] * clients] * rounds} if spec.method.name == "fedcch" else {},
        "timing": {"seconds": 2.0, "seconds_per_round": round(2.0 / rounds, 4)},
        "environment": {"versions": {}, "cpu": "", "commit": "abcdef123456", "date": date, "engine": "fast"},
    }


def _client(spec: RunSpec, number: int) -> dict[str, Any]:
    """Ten nodes of two classes: seven of the first at even clients, eight of the second at odd ones."""
    counts = [2, 8] if number % 2 else [7, 3]
    if isinstance(spec, GraphSpec):
        dataset = spec.datasets[number // spec.clients_per_dataset]
        sizes = {"graphs": 10, "train": 6, "val": 2, "test": 2}
        return {"name": dataset, "dataset": dataset, **sizes, "class_counts": counts}
    return {
        "nodes": 10,
        "edges": 9,
        "train": 6,
        "val": 2,
        "test": 2,
        "classes": 2,
        "class_counts": counts,
    }


def _pairs(spec: RunSpec, likeness: float) -> dict[str, Any]:
    """All models equally alike, all graphs 0.2 apart."""
    clients = range(spec.clients)
    rounds = sorted({*range(spec.every, spec.rounds + 1, spec.every), spec.rounds})
    return {
        "rounds": rounds,
        "mean_cka": [likeness] * len(rounds),
        "cka": [[1.0 if i == j else likeness for j in clients] for i in clients],
        "js_distance": [[0.0 if i == j else 0.2 for j in clients] for i in clients],
    }
