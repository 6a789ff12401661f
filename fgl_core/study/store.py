"""Records of runs: one JSON file per run, written atomically, read without torch.

Studies write ``data/results/<study>/<slug>.json``, which git keeps; single runs write
``data/runs/<slug>.json``, which it ignores. A record is found by the digest of its spec, whatever study
computed it, so that a run that two studies share is computed once.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from fgl_core.errors import InputError, reason
from fgl_core.root import project_root
from fgl_core.study.spec import Spec

FORMAT = 1
REQUIRED = {"format", "spec", "digest", "revision", "status"}
SHOWN = {"round", "val_accuracy", "test_accuracy"}  # at the best and at the last round
VOLATILE = ("timing", "environment")
STATUSES = ("done", "diverged", "failed")


Measured = float | list[float]  # a list holds a number per client


class _Times(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    seconds: float | None = None
    setup_seconds: float | None = None
    seconds_per_round: float | None = None


class _Origin(BaseModel):
    model_config = ConfigDict(strict=True)

    commit: str | None = None
    date: str | None = None


class _Blocks(BaseModel):
    """What the blocks of a record are made of; what they hold is up to the task and the method."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    revision: int
    reason: str | None = None
    partition: dict[str, Any] | None = None
    curves: dict[str, list[float] | list[list[float]]] | None = None
    best: dict[str, Measured] | None = None
    last: dict[str, Measured] | None = None
    bytes: dict[Literal["up", "down"], dict[str, list[int]]] | None = None
    notes: dict[str, list[Any]] | None = None
    heterogeneity: dict[str, Any] | None = None
    statistics: dict[str, Any] | None = None
    privacy: dict[str, Any] | None = None
    timing: _Times = _Times()
    environment: _Origin = _Origin()


FIELDS = REQUIRED | _Blocks.model_fields.keys()


class RecordWarning(UserWarning):
    """A file in a folder of records is not a record that can be used; it is left out."""


@dataclass(frozen=True)
class Record:
    """What one run left behind.

    Attributes:
        spec: what was run.
        data: the whole record, as in the file.
        path: the file, None when it was never written.
    """

    spec: Spec
    data: Mapping[str, Any]
    path: Path | None = None

    @classmethod
    def parse(cls, data: Any, path: Path | None = None) -> Record:
        """Check that ``data`` is a record.

        Raises:
            ValueError: one line that says why it is not.
        """
        if not isinstance(data, dict):
            raise ValueError("it holds no JSON object")
        if missing := REQUIRED - data.keys():
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']!r}, not {FORMAT}")
        if unknown := data.keys() - FIELDS:
            raise ValueError(f"it has unknown fields: {', '.join(sorted(unknown))}")
        if data["status"] not in STATUSES:
            raise ValueError(f"its status is {data['status']!r}, not one of {', '.join(STATUSES)}")
        if not isinstance(data["spec"], dict):
            raise ValueError("its spec is no JSON object")
        spec = Spec.parse(data["spec"])
        if data["status"] == "done" and not all(isinstance(data.get(key), dict) for key in spec.measured):
            raise ValueError(f"it is done, but lacks one of {', '.join(spec.measured)}")
        try:
            blocks = _Blocks.model_validate(data)
        except ValidationError as error:
            raise ValueError(f"its {reason(error)}") from None
        for moment in ("best", "last") if data["status"] == "done" and "best" in spec.measured else ():
            if lacking := SHOWN - data[moment].keys():
                raise ValueError(f"its {moment} round lacks {', '.join(sorted(lacking))}")
        sent = (series for kinds in (blocks.bytes or {}).values() for series in kinds.values())
        rounds = {len(series) for series in (*(blocks.curves or {}).values(), *sent)}
        if len(rounds) > 1:
            raise ValueError("its curves have different numbers of rounds")
        # compared as stored: a field added to a spec later must not orphan older records
        stored = json.dumps(data["spec"], sort_keys=True, separators=(",", ":"))
        if sha256(stored.encode()).hexdigest() != data["digest"]:
            raise ValueError("its digest does not match its spec")
        return cls(spec, data, path)

    @property
    def status(self) -> Literal["done", "diverged", "failed"]:
        return self.data["status"]

    @property
    def reason(self) -> str | None:
        """Why it diverged or failed."""
        return self.data.get("reason")

    @property
    def stale(self) -> bool:
        """Computed by another revision of its method, or of its analysis, than the present one."""
        return self.data["revision"] != self.spec.revision

    @property
    def settled(self) -> bool:
        """Present, and nothing to compute again: a failed or stale run is tried anew."""
        return not self.stale and self.status != "failed"

    @property
    def commit(self) -> str | None:
        return self.data.get("environment", {}).get("commit")

    @property
    def date(self) -> str:
        """When it was computed, ISO 8601 in UTC; empty when unknown."""
        return self.data.get("environment", {}).get("date") or ""

    @property
    def seconds(self) -> float | None:
        return self.data.get("timing", {}).get("seconds")

    @property
    def training_seconds(self) -> float | None:
        """Time of the rounds alone, without loading and partitioning: the processor's; in records made before
        commit 0204978, the clock's.
        """
        each = self.data.get("timing", {}).get("seconds_per_round")
        return None if each is None else each * self.spec.rounds

    def canonical(self) -> dict[str, Any]:
        """Everything that a rerun on the same machine repeats exactly."""
        return {key: value for key, value in self.data.items() if key not in VOLATILE}


class Store:
    """The folders of records below the project's root."""

    def __init__(self, root: Path | None = None) -> None:
        """Args: root: where ``data/`` lies; :func:`fgl_core.root.project_root` if not given."""
        self.root = project_root() if root is None else Path(root)
        self._read: dict[tuple[Path, int], Record | None] = {}  # by file and when it was written

    @property
    def runs(self) -> Path:
        """Folder of single runs and of the smoke profile."""
        return self.root / "data" / "runs"

    @property
    def results(self) -> Path:
        """Folder of the studies' folders."""
        return self.root / "data" / "results"

    @property
    def trials(self) -> Path:
        """Folder of the runs that tuning makes; apart, as no table reads them."""
        return self.root / "data" / "trials"

    def folder(self, study: str, profile: str) -> Path:
        """Where a study writes. The smoke profile checks the machinery: its records are not results."""
        return self.runs if profile == "smoke" else self.results / study

    def load(self, *folders: Path) -> dict[str, Record]:
        """The records below ``folders`` (all studies' if none is given) by the digest of their spec.

        When a run was recorded more than once, a settled record beats others, then the newest wins. Files
        that are not records are left out with a :class:`RecordWarning`.
        """
        found: dict[str, Record] = {}
        for folder in folders or (self.results,):
            for path in sorted(folder.rglob("*.json")):
                record = self._record(path)
                if record is None:
                    continue
                other = found.get(record.spec.digest)
                if other is None or (other.settled, other.date) < (record.settled, record.date):
                    found[record.spec.digest] = record
        return found

    def _record(self, path: Path) -> Record | None:
        try:
            key = path, path.stat().st_mtime_ns
        except OSError:  # gone since it was listed
            return None
        if key not in self._read:
            self._read[key] = read_record(path)
        return self._read[key]

    def available(self, profile: str) -> dict[str, Record]:
        """The records that a profile's tables are made of: the studies', and for smoke also single runs."""
        return self.load(self.results, self.runs) if profile == "smoke" else self.load(self.results)


def read_record(path: Path) -> Record | None:
    """The record in a file, or None with a :class:`RecordWarning` that names the file."""
    try:
        return Record.parse(json.loads(path.read_text(encoding="utf-8")), path)
    except (ValueError, OSError, RecursionError) as error:  # JSON, UTF-8 and InputError are ValueErrors
        kind = "not valid JSON: " if isinstance(error, json.JSONDecodeError) else ""
        warnings.warn(f"skipped {path}: {kind}{error}", RecordWarning, stacklevel=2)
        return None


def record_head(spec: Spec, status: str, reason: str | None = None) -> dict[str, Any]:
    """What every record begins with, also that of a run that raised.

    Args:
        status: one of :data:`STATUSES`.
        reason: why it is not done.
    """
    return {
        "format": FORMAT,
        "spec": spec.model_dump(mode="json"),
        "digest": spec.digest,
        "revision": spec.revision,
        "status": status,
        "reason": reason,
    }


def write_record(data: Mapping[str, Any], folder: Path) -> Path:
    """Write a record into ``folder`` so that no reader ever sees half of it; return the file.

    Raises:
        InputError: the folder cannot be written to.
    """
    spec = Spec.parse(data["spec"])
    path = folder / f"{spec.slug}.json"
    save(path, format_record(data))
    return path


def save(path: Path, text: str) -> None:
    """Write a file below the project's root, and its folder, so that no reader ever sees half of it.

    Raises:
        InputError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    except OSError as error:
        raise _unwritable(path, error) from error


def check_writable(folder: Path) -> None:
    """Make ``folder`` and try it, so that nothing is computed that could not be kept.

    Raises:
        InputError: the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from error


def format_record(data: Mapping[str, Any]) -> str:
    """A record as JSON text with one line per value or curve, so that a change reads well in a diff."""
    return _lines(data, "") + "\n"


def newest(records: Iterable[Record]) -> Record | None:
    """The record computed last."""
    return max(records, key=lambda record: record.date, default=None)


def _lines(value: Any, indent: str) -> str:
    if not isinstance(value, Mapping) or not value:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    inner = indent + " "
    body = ",\n".join(f"{inner}{json.dumps(key)}: {_lines(item, inner)}" for key, item in value.items())
    return f"{{\n{body}\n{indent}}}"


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8, so that no reader ever sees half of it.

    Raises:
        OSError: it cannot be written.
    """
    # a suffix other than .json: what a killed process leaves behind is never taken for a record
    draft = path.with_name(f".{path.stem}-{os.getpid()}.tmp")
    try:
        with open(draft, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _unwritable(place: Path, error: OSError) -> InputError:
    why = error.strerror or type(error).__name__
    return InputError(
        f"cannot write to {place} ({why}); make it writable, or set FGL_HOME to a folder that is"
    )
