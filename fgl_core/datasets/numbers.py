"""Tables of numbers as users write them, CSV or NPZ: read whole, or refused with the place of the fault."""

from __future__ import annotations

import csv
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fgl_core.errors import InputError

BROKEN = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Numbers:
    """A table without missing values.

    Attributes:
        path: the file it was read from.
        values: float64 ``[rows, columns]``, finite; sparse where the file is.
    """

    path: Path
    values: np.ndarray | sp.csr_array

    def __len__(self) -> int:
        return self.values.shape[0]

    def place(self, row: int) -> str:
        """Where a row stands, for a message."""
        if self.path.suffix == ".npz":
            return f"{self.path}, row {row} counted from 0"
        line, _ = next(islice(_rows(self.path), row, None))
        return f"{self.path}, line {line}"

    def whole(self, columns: int, what: str) -> np.ndarray:
        """The values as int64 ``[rows, columns]``.

        Args:
            what: what a row is, e.g. ``"an edge is two node numbers"``.

        Raises:
            InputError: another number of columns, or a value that is not whole.
        """
        if self.values.shape[1] != columns:
            raise InputError(f"{self.path} has {self.values.shape[1]} columns instead of {columns}: {what}")
        values = self.values.toarray() if sp.issparse(self.values) else self.values
        # beyond 2**53, float64 holds no longer every whole number
        odd = ((values != np.rint(values)) | (np.abs(values) > 2**53)).any(axis=1)
        if odd.any():
            row = int(odd.argmax())
            raise InputError(f"{self.place(row)}: {_listed(values[row])} is not whole: {what}")
        return values.astype(np.int64)


def read_numbers(path: Path) -> Numbers:
    """Read a table: text with commas and perhaps a line of column names, or an NPZ file with one array in it.

    An NPZ file may also be one of :func:`scipy.sparse.save_npz`.

    Raises:
        InputError: one line with the place of the first fault.
    """
    values = _from_npz(path) if path.suffix == ".npz" else _from_text(path)
    table = Numbers(path, values)
    if not len(table):
        raise InputError(f"{path} holds no numbers: it needs a row for each thing that it lists")
    stored = values.data if sp.issparse(values) else values
    if not np.isfinite(stored).all():
        bad = ~np.isfinite(stored)
        row = int(values.tocoo().row[bad.argmax()] if sp.issparse(values) else bad.any(axis=1).argmax())
        raise InputError(
            f"{table.place(row)}: a value is NaN or infinite: give a number, or leave the row out"
        )
    return table


def _from_text(path: Path) -> np.ndarray:
    try:
        line, fields = next(_rows(path, names=True), (0, []))
        _refuse_counted(path, fields)
        if next(_rows(path), None) is None:
            return np.empty((0, len(fields)))
        return np.loadtxt(
            path,
            delimiter=",",
            quotechar='"',
            comments=None,
            ndmin=2,
            skiprows=line if _are_names(fields) else 0,
            encoding="utf-8-sig",
        )
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(f"{path} is no text in UTF-8: write it as CSV") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): make it a readable file") from None
    except (ValueError, csv.Error) as error:
        fault = _fault(path) or " ".join(str(error).split())
        raise InputError(f"{path}, {fault}: write numbers only, separated by commas") from None


def _from_npz(path: Path) -> np.ndarray | sp.csr_array:
    try:
        with np.load(path, allow_pickle=False) as stored:
            names = list(stored)
            if "indptr" in names:
                return sp.csr_array(sp.load_npz(path), dtype=np.float64)
            if len(names) != 1:
                raise InputError(f"{path} holds {len(names)} arrays: save one, np.savez(file, array)")
            array = stored[names[0]]
    except InputError:
        raise
    except BROKEN as error:
        raise InputError(
            f"{path} is no readable NPZ file of numbers ({' '.join(str(error).split())})"
        ) from None
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        raise InputError(
            f"{path} holds {array.ndim} dimensions of {array.dtype}: save numbers, one row per node or edge"
        )
    return array.astype(np.float64).reshape(len(array), -1) if len(array) else np.empty((0, 0))


def _rows(path: Path, names: bool = False) -> Iterator[tuple[int, list[str]]]:
    """The lines of a CSV file that are not empty, numbered from 1; column names only if asked for."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        first = True
        for fields in reader:
            if fields and not (first and not names and _are_names(fields)):
                yield reader.line_num, fields
            first = first and not fields


def _refuse_counted(path: Path, fields: list[str]) -> None:
    """Refuse what pandas writes unless told not to: row numbers as a column, column numbers as a row."""
    if fields[:1] == [""] and len(fields) > 1:
        raise InputError(
            f"{path}: its first column has no name, as when pandas adds row numbers: write with index=False"
        )
    if len(fields) > 2 and fields == [str(number) for number in range(len(fields))]:
        raise InputError(
            f"{path}: its first line counts the columns, as when pandas names them: write with header=False"
        )


def _are_names(fields: list[str]) -> bool:
    return not any(_is_number(field) for field in fields)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _fault(path: Path) -> str | None:
    """The first line that is no row of numbers, or has more or fewer columns than the first."""
    width = None
    for line, fields in _rows(path):
        for column, field in enumerate(fields, start=1):
            if not _is_number(field):
                return f"line {line}, column {column}: {field.strip()!r} is not a number"
        width = width or len(fields)
        if len(fields) != width:
            return f"line {line}: {len(fields)} columns, where the lines before have {width}"
    return None


def _listed(values: np.ndarray) -> str:
    return ", ".join(f"{value:g}" for value in values)
