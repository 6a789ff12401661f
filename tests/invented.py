"""Sweeps that compute nothing: runs end at once with an accuracy that follows from their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from synthetic import synthetic_record

from fgl_core.study import tuning
from fgl_core.study.outcome import Outcome
from fgl_core.study.spec import RunSpec
from fgl_core.study.store import write_record


def invented(monkeypatch: pytest.MonkeyPatch, status: Callable[[RunSpec], str] = lambda spec: "done") -> None:
    """Let tuning's runs reach 0.8 minus a tenth of the distance of the learning rate from 0.1 in decades.

    Args:
        status: how each run ends.
    """

    def sweep(specs: Iterable[RunSpec], folder: Path, **options: Any) -> list[Outcome]:
        outcomes = []
        for spec in specs:
            ended = status(spec)
            record = synthetic_record(spec, round(0.8 - 0.1 * abs(math.log10(spec.lr / 0.1)), 5))
            record |= {"status": ended, "reason": None if ended == "done" else "x"}
            write_record(record, folder)
            outcomes.append(Outcome(spec, ended, record["reason"], None))
        return outcomes

    monkeypatch.setattr(tuning, "sweep", sweep)
