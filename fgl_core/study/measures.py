"""What a record says of each round: accuracies, macro-F1 and counts from the clients' confusion counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fgl_core.federation import Confusion, Round


def measure(measured: Round) -> dict[str, Any]:
    """One round's values for the record: ``curves`` and ``bytes``."""
    curves: dict[str, Any] = {"loss": _rounded(measured.loss)}
    for split in ("val", "test"):
        pooled = _pooled(measured.aggregated, split)
        curves[f"{split}_accuracy"] = _accuracy(pooled)
        curves[f"{split}_macro_f1"] = macro_f1(pooled)
        curves[f"{split}_balanced_accuracy"] = balanced_accuracy(pooled)
        curves[f"{split}_correct"] = [int(np.trace(counts[split])) for counts in measured.aggregated]
        curves[f"local_{split}_accuracy"] = _accuracy(_pooled(measured.trained, split))
    curves["test_accuracy_client_mean"] = _mean_accuracy(counts["test"] for counts in measured.aggregated)
    if measured.everywhere is not None:
        curves["everywhere_test_accuracy"] = _mean_accuracy(measured.everywhere)
    return {"curves": curves, "bytes": {"up": measured.bytes_up, "down": measured.bytes_down}}


def _pooled(confusions: list[Confusion], split: str) -> np.ndarray:
    return np.sum([counts[split] for counts in confusions], axis=0)


def _accuracy(confusion: np.ndarray) -> float:
    return _rounded(np.trace(confusion) / max(1, confusion.sum()))


def _mean_accuracy(confusions: Iterable[np.ndarray]) -> float:
    """Mean over clients; a client without examples has no accuracy and is left out."""
    return _rounded(np.mean([np.trace(c) / c.sum() for c in confusions if c.sum()]))


def macro_f1(confusion: np.ndarray) -> float:
    """Mean F1 over the classes that occur or are predicted; rows of ``confusion`` are the true class."""
    both = confusion.sum(axis=0) + confusion.sum(axis=1)
    return _rounded(np.mean(2 * np.diag(confusion)[both > 0] / both[both > 0]))


def balanced_accuracy(confusion: np.ndarray) -> float:
    """Mean recall over the classes that occur; rows of ``confusion`` are the true class."""
    count = confusion.sum(axis=1)
    return _rounded(np.mean(np.diag(confusion)[count > 0] / count[count > 0]))


def best_round(rounds: list[dict[str, Any]]) -> int:
    """The earliest round of the best validation accuracy. Test accuracy is never consulted."""
    return int(np.argmax([values["curves"]["val_accuracy"] for values in rounds]))


def selected(rounds: list[dict[str, Any]], index: int) -> dict[str, Any]:
    """All values of one round, with its 1-based number."""
    return {"round": index + 1, **rounds[index]["curves"]}


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """A list per key from a dict per round."""
    return {key: [row[key] for row in rows] for key in rows[0]} if rows else {}


def _rounded(value: float) -> float:
    return round(float(value), 5)
