"""How a run ended: its record, whatever became of it."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fgl_core.errors import InputError
from fgl_core.study.spec import PrivacySpec, RunSpec, Spec
from fgl_core.study.store import record_head, write_record


@dataclass(frozen=True)
class Outcome:
    """How one run ended."""

    spec: Spec
    status: str
    reason: str | None
    seconds: float | None  # None when it did not end well


def compute(spec: Spec) -> dict[str, Any]:
    """A run's record; of one that raises, a record that says why."""
    try:
        from fgl_core.study.execute import describe, execute, spy

        if isinstance(spec, RunSpec):
            return execute(spec)
        return spy(spec) if isinstance(spec, PrivacySpec) else describe(spec)
    except Exception as error:
        return record_head(spec, "failed", _reason(error))


def recorded(spec: Spec, record: dict[str, Any], folder: Path) -> Outcome:
    """Write a run's record into ``folder``; return how the run ended."""
    write_record(record, folder)
    timing = record["timing"] if record["status"] == "done" else None
    seconds = timing and timing["seconds"] - timing["setup_seconds"]
    return Outcome(spec, record["status"], record["reason"], seconds)


def _reason(error: Exception) -> str:
    """What happened and where in this package, in one line without the machine's paths."""
    if isinstance(error, InputError):
        return str(error)
    package = Path(__file__).parents[1]
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if package in Path(frame.filename).parents]
    places = [f"{Path(f.filename).relative_to(package.parent)}:{f.lineno} {f.name}" for f in own[:0:-1]]
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{what} (in {' < '.join(places)})" if places else what
