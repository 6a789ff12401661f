"""Who holds what, from the records' partition blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from fgl_core.partition import QUOTAS, default_quota
from fgl_core.study.results import Results
from fgl_core.study.store import Record

KEY = ["dataset", "clients", "partition"]
MEASURES = ("edges_lost_share", "label_skew", "size_skew", "smallest", "largest", "classes")


def partition_frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row per run: dataset, clients, partition, seed, edges_lost and :data:`MEASURES`.

    ``smallest`` and ``largest`` are clients in nodes, ``classes`` how many a client has nodes of, on average
    over clients. The others: :func:`fgl_core.partition.partition_statistics`.
    """
    rows = [_row(record) for record in records if _counted(record)]
    return pd.DataFrame(rows, columns=[*KEY, "seed", "edges_lost", *MEASURES])


def partition_table(results: Results) -> pd.DataFrame:
    """The mean over seeds of each of :data:`MEASURES`, a row per dataset, number of clients and kind.

    Further columns: seeds (wanted), n (used).
    """
    wanted = pd.DataFrame([(s.dataset, s.clients, s.partition) for s in results.specs], columns=KEY)
    seeds = wanted.groupby(KEY, sort=False).size().rename("seeds")
    frame = partition_frame(results.shown)
    means = frame.groupby(KEY)[list(MEASURES)].mean()
    table = pd.concat([seeds, frame.groupby(KEY).size().rename("n"), means], axis=1).reindex(seeds.index)
    return table.assign(n=table["n"].fillna(0).astype(int)).reset_index()


def class_counts(results: Results, dataset: str, clients: int, kind: str, seed: int) -> np.ndarray | None:
    """Nodes of each class at each client, ``[clients, classes]``, the largest client first.

    Of the run with this seed; None if it has no record.
    """
    wanted = dataset, clients, kind, seed
    for record in filter(_counted, results.shown):
        spec = record.spec
        if (spec.dataset, spec.clients, spec.partition, spec.seed) == wanted:
            counts = _counts(record)
            return counts[np.argsort(-counts.sum(axis=1), kind="stable")]
    return None


def majority_shares(records: Iterable[Record]) -> pd.DataFrame:
    """The accuracy to expect without learning anything but which class is the most frequent.

    Returns:
        One row per run: dataset, clients, split, seed; ``everyone``: always naming the most frequent class;
        ``own``: naming the most frequent class of the client that holds the node. A record counts classes
        over all nodes; of how many are for test, the split says for each class.
    """
    rows = []
    for record in filter(_counted, records):
        spec = record.spec
        counts = _counts(record) * _for_test(record)
        if not counts.any():
            continue
        shares = counts.sum(axis=0).max() / counts.sum(), counts.max(axis=1).sum() / counts.sum()
        rows.append((spec.dataset, spec.clients, spec.split, spec.seed, *map(float, shares)))
    return pd.DataFrame(rows, columns=["dataset", "clients", "split", "seed", "everyone", "own"])


def _for_test(record: Record) -> np.ndarray:
    """Of each class the share that is not for training; what is for validation is drawn evenly from it."""
    counts = _counts(record).sum(axis=0)
    if record.spec.split == "stratified":
        return np.ones(len(counts))  # the same share of every class
    dataset = record.spec.dataset
    per_class, _ = QUOTAS.get(dataset) or default_quota(int(counts.sum()), int((counts > 0).sum()))
    return 1 - np.minimum(per_class, counts) / np.maximum(counts, 1)


def _row(record: Record) -> dict[str, Any]:
    spec, partition = record.spec, record.data["partition"]
    nodes = [client["nodes"] for client in partition["clients"]]
    return {
        "dataset": spec.dataset,
        "clients": spec.clients,
        "partition": spec.partition,
        "seed": spec.seed,
        "edges_lost": partition["edges_lost"],
        **{name: partition[name] for name in ("edges_lost_share", "label_skew", "size_skew")},
        "smallest": min(nodes),
        "largest": max(nodes),
        "classes": float(np.mean([client["classes"] for client in partition["clients"]])),
    }


def _counted(record: Record) -> bool:
    # a failed run has no partition
    return "edges_lost_share" in (record.data.get("partition") or {})


def _counts(record: Record) -> np.ndarray:
    return np.array([client["class_counts"] for client in record.data["partition"]["clients"]])
