"""Who holds which graphs: sets dealt to clients, and each client's training, validation and test graphs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fgl_core.datasets import GraphDataset
from fgl_core.errors import InputError
from fgl_core.streams import Streams

SHARE = 0.1  # of a client's graphs, each for validation and test (FedCCH, section 5.1)
FEWEST = 10  # graphs: below, validation and test sets could be empty; of a class: below, it is not stratified


@dataclass(frozen=True)
class Holding:
    """The graphs of one client.

    Attributes:
        name: the set's name; ``MUTAG#2`` for the second of several clients that share a set.
        dataset: the whole set.
        train, val, test: positions in the set, int64, ascending.
    """

    name: str
    dataset: GraphDataset
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray

    def lacking(self, split: str) -> list[int]:
        """Classes of this client that ``train``, ``val`` or ``test`` has no graph of."""
        everything = np.concatenate([self.train, self.val, self.test])
        return np.setdiff1d(self.dataset.y[everything], self.dataset.y[getattr(self, split)]).tolist()


def hold_graphs(
    datasets: list[GraphDataset], streams: Streams, clients_per_dataset: int = 1
) -> list[Holding]:
    """Deal each set's graphs to its clients evenly at random, and split each client's 80/10/10.

    Every draw comes from a stream that is named after the client, not after its position: a client is the
    same in every setting.

    Raises:
        InputError: a client would get fewer than 10 graphs.
    """
    holdings = []
    for dataset in datasets:
        order = np.arange(dataset.num_graphs)
        if clients_per_dataset > 1:
            order = streams.numpy("clients", dataset.name).permutation(order)
        for number, graphs in enumerate(np.array_split(order, clients_per_dataset), start=1):
            name = dataset.name if number == 1 else f"{dataset.name}#{number}"
            if len(graphs) < FEWEST:
                most = dataset.num_graphs // FEWEST
                if not most:
                    raise InputError(
                        f"the set {dataset.name} has {dataset.num_graphs} graphs, and a client needs {FEWEST}"
                    )
                raise InputError(
                    f"clients_per_dataset = {clients_per_dataset} leaves {name} with {len(graphs)} of"
                    f" {dataset.num_graphs} graphs, and a client needs {FEWEST}: take {most} at most, for"
                    f" {dataset.name}"
                )
            graphs = np.sort(graphs)
            parts = split_graphs(dataset.y[graphs], streams.numpy("split", name))
            holdings.append(Holding(name, dataset, *(graphs[part] for part in parts)))
    return holdings


def split_graphs(y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training, validation and test graphs, 80/10/10 at random.

    Stratified when every class has at least 10 graphs: each class gets its share, rounded so that the sizes
    are those of the plain split (largest remainders, then the smaller class).

    Args:
        y: class of each graph, int [g].

    Returns:
        Positions in ``y``, int64, ascending: train, val, test.
    """
    held_out = round(SHARE * len(y))
    classes, count = np.unique(y, return_counts=True)
    if count.min() < FEWEST:
        order = rng.permutation(len(y))
        return _sorted(order[2 * held_out :], order[:held_out], order[held_out : 2 * held_out])
    quota = count * held_out / len(y)
    share = np.floor(quota).astype(np.int64)
    share[np.argsort(share - quota, kind="stable")[: held_out - share.sum()]] += 1
    train, val, test = [], [], []
    for label, number in zip(classes, share, strict=True):
        order = rng.permutation(np.flatnonzero(y == label))
        val.append(order[:number])
        test.append(order[number : 2 * number])
        train.append(order[2 * number :])
    return _sorted(np.concatenate(train), np.concatenate(val), np.concatenate(test))


def _sorted(*parts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    train, val, test = (np.sort(part).astype(np.int64) for part in parts)
    return train, val, test


def holding_statistics(holdings: list[Holding]) -> dict[str, Any]:
    """What a record says of who holds what.

    Returns:
        ``hash`` of all splits, and ``clients``: name, dataset, graphs, train, val, test, classes,
        class_counts (by class, over all its graphs), and which classes the validation and test sets lack.
    """
    return {"hash": holding_digest(holdings), "clients": list(_rows(holdings))}


def _rows(holdings: list[Holding]) -> Iterator[dict[str, Any]]:
    for holding in holdings:
        sizes = {split: len(getattr(holding, split)) for split in ("train", "val", "test")}
        graphs = np.concatenate([holding.train, holding.val, holding.test])
        classes = holding.dataset.num_classes
        yield {
            "name": holding.name,
            "dataset": holding.dataset.name,
            "graphs": sum(sizes.values()),
            **sizes,
            "classes": classes,
            "class_counts": np.bincount(holding.dataset.y[graphs], minlength=classes).tolist(),
            "val_lacks": holding.lacking("val"),
            "test_lacks": holding.lacking("test"),
        }


def holding_digest(holdings: list[Holding]) -> str:
    """sha256 of every client's name and splits, hexadecimal."""
    digest = hashlib.sha256()
    for holding in holdings:
        digest.update(repr((holding.name, *(len(part) for part in (holding.train, holding.val)))).encode())
        for part in (holding.train, holding.val, holding.test):
            digest.update(part.astype("<i8").tobytes())
    return digest.hexdigest()
