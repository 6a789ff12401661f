"""What can be learned from: citation networks, sets of graphs, and small data that comes with the libraries.

:mod:`fgl_core.datasets.sources` says where bytes come from, ``data/registry.toml`` which bytes are right.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from fgl_core.datasets.embedded import EMBEDDED, GraphDataset, digits_graphs
from fgl_core.datasets.groups import (
    DOMAINS,
    GRAPH_DATASETS,
    SETTINGS,
    domain,
    load_graph_dataset,
    setting_datasets,
)
from fgl_core.datasets.node import NodeDataset, row_normalised
from fgl_core.datasets.own import OwnData, is_own, load_own, own_data
from fgl_core.datasets.registry import entry
from fgl_core.errors import unknown

NODE_DATASETS: tuple[str, ...] = ("cora", "citeseer", "pubmed", "digits-knn", "karate")

__all__ = [
    "DOMAINS",
    "GRAPH_DATASETS",
    "NODE_DATASETS",
    "SETTINGS",
    "GraphDataset",
    "NodeDataset",
    "OwnData",
    "digits_graphs",
    "domain",
    "load_graph_dataset",
    "load_node_dataset",
    "own_data",
    "setting_datasets",
]


def load_node_dataset(
    name: str,
    *,
    features: Literal["raw", "row"] = "raw",
    keep_unlabelled: bool = False,
) -> NodeDataset:
    """Load a dataset for node classification; fetch and check its files first where needed.

    Args:
        name: one of :data:`NODE_DATASETS`, or the name that :func:`~fgl_core.datasets.own.own_data` gave.
        features: ``raw`` as published, ``row`` scaled so that every node's features sum to 1.
        keep_unlabelled: keep Citeseer's 15 nodes without features and label, as nodes of class 0.

    Raises:
        InputError: an unknown name, data that cannot be had, or a damaged file.
    """
    if name not in NODE_DATASETS and not is_own(name):
        raise unknown("dataset for node classification", name, NODE_DATASETS)
    if features not in ("raw", "row"):
        raise unknown("kind of features", features, ("raw", "row"))
    if name in EMBEDDED:
        dataset = EMBEDDED[name]()
    elif is_own(name):
        dataset = load_own(name, "node")
    else:
        from fgl_core.datasets.citation import load_citation

        dataset = load_citation(entry(name), keep_unlabelled=keep_unlabelled)
    return replace(dataset, x=row_normalised(dataset.x)) if features == "row" else dataset
