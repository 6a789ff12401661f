"""What a record says of each round: accuracies, macro-F1 and counts from the clients' confusion counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fgl_core.federation import Round


def measure(measured: Round, *, pooled: bool) -> dict[str, Any]:
    """One round's values for the record: ``curves``, ``bytes``, and the method's ``notes``.

    Args:
        pooled: measure over the clients' examples together; else the mean of the clients' own measures.
    """
    curves: dict[str, Any] = {"loss": _rounded(measured.loss)}
    for split in ("val", "test"):
        counts = [confusion[split] for confusion in measured.aggregated]
        groups = [np.sum(counts, axis=0)] if pooled else counts
        for name, of in (
            ("accuracy", accuracy),
            ("macro_f1", macro_f1),
            ("balanced_accuracy", balanced_accuracy),
        ):
            curves[f"{split}_{name}"] = _mean(of, groups)
        curves[f"{split}_correct"] = [int(np.trace(confusion)) for confusion in counts]
        trained = [confusion[split] for confusion in measured.trained]
        curves[f"local_{split}_accuracy"] = _mean(accuracy, [np.sum(trained, axis=0)] if pooled else trained)
    if pooled:
        curves["test_accuracy_client_mean"] = _mean(accuracy, counts)
    if measured.everywhere is not None:
        curves["everywhere_test_accuracy"] = _mean(accuracy, measured.everywhere)
    return {
        "curves": curves,
        "bytes": {"up": measured.bytes_up, "down": measured.bytes_down},
        "notes": measured.notes,
    }


def _mean(of: Callable[[np.ndarray], float], confusions: list[np.ndarray]) -> float:
    """Mean over clients; a client without examples has no value and is left out."""
    return _rounded(np.mean([of(confusion) for confusion in confusions if confusion.sum()]))


def accuracy(confusion: np.ndarray) -> float:
    """Share of correct predictions; rows of ``confusion`` are the true class."""
    return float(np.trace(confusion) / confusion.sum())


def macro_f1(confusion: np.ndarray) -> float:
    """Mean F1 over the classes that occur or are predicted; rows of ``confusion`` are the true class."""
    both = confusion.sum(axis=0) + confusion.sum(axis=1)
    return float(np.mean(2 * np.diag(confusion)[both > 0] / both[both > 0]))


def balanced_accuracy(confusion: np.ndarray) -> float:
    """Mean recall over the classes that occur; rows of ``confusion`` are the true class."""
    count = confusion.sum(axis=1)
    return float(np.mean(np.diag(confusion)[count > 0] / count[count > 0]))


def best_round(rounds: list[dict[str, Any]]) -> int:
    """The earliest round of the best validation accuracy. Test accuracy is never consulted."""
    return int(np.argmax([values["curves"]["val_accuracy"] for values in rounds]))


def selected(rounds: list[dict[str, Any]], index: int) -> dict[str, Any]:
    """All values of one round, with its 1-based number."""
    return {"round": index + 1, **rounds[index]["curves"]}


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """A list per key from a dict per round; None in rounds that lack the key."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: [row.get(key) for row in rows] for key in keys}


def _rounded(value: float) -> float:
    return round(float(value), 5)
