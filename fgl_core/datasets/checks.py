"""Is this file the one the registry describes? Decided before anything in it is unpickled or parsed."""

from __future__ import annotations

import hashlib
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import numpy as np

from fgl_core.datasets.registry import Entry, RawFile

CHUNK = 1 << 20
# what the zip module raises on damaged zips, by where the damage is
BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError)
ROWS = 1 << 20
LONGEST_LINE = 40  # bytes of text for one edge (listed twice, at most) or one number


class Mismatch(Exception):
    """A file is not the one the registry describes."""

    def __init__(self, inside: str, expected: str, found: str) -> None:
        where = f"{inside} inside it: " if inside else ""
        super().__init__(f"{where}expected {expected}, found {found}")


def check_file(path: Path, file: RawFile) -> None:
    """Compare a plain file with its registry entry.

    Raises:
        Mismatch: with both checksums.
    """
    with open(path, "rb") as stream:
        _check(stream, file, "")


def check_zip(path: Path, entry: Entry) -> None:
    """Compare a zip with its registry entry: the known copy by its bytes, any other by every file inside.

    README files inside are not looked at, and never read.

    Raises:
        Mismatch: a file inside is missing or differs, or the zip cannot be read.
        UnsafeZip: see :func:`zip_members`.
    """
    with open(path, "rb") as stream:
        size, sha256 = _sha256(stream)
    known = entry.archive
    if known and sha256 == known.sha256:
        return
    expected = f"a zip of {entry.name} (sha256 {known.sha256})" if known else f"a zip of {entry.name}"
    found = f"{size} bytes with sha256 {sha256}"
    try:
        with zipfile.ZipFile(path) as archive:
            members = zip_members(archive)
            for file in entry.files:
                if file.name not in members:
                    raise Mismatch("", f"{expected} holding {file.name}", f"{found} without it")
                member = members[file.name]
                if file.kind != "bytes" and member.file_size > LONGEST_LINE * file.count:
                    raise Mismatch(file.name, f"{file.count} {file.kind}", f"{member.file_size} bytes")
                with archive.open(member) as stream:
                    _check(stream, file, file.name)
    except BROKEN as error:
        raise Mismatch("", expected, f"{found}, which cannot be unpacked ({error})") from error


class UnsafeZip(Exception):
    """A zip would write outside the folder it is unpacked into."""


def zip_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files of a zip by their name without folder.

    Raises:
        UnsafeZip: an entry is absolute, climbs up with ``..``, or is a link.
    """
    members = {}
    for info in archive.infolist():
        # zipfile cleans info.filename on some systems; what the zip really says is in orig_filename
        for name in (info.filename, info.orig_filename):
            path = PurePosixPath(name.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:", name) or "\0" in name:
                raise UnsafeZip(f"the entry {name!r} leaves the folder it is unpacked into")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise UnsafeZip(f"the entry {info.filename!r} is a link")
        if not info.is_dir():
            members[PurePosixPath(info.filename).name] = info
    return members


def content_sha256(stream: BinaryIO, kind: str) -> tuple[int, str]:
    """Count and sha256 of what a text file says, whatever its spacing, line ends or order of edges.

    ``numbers``: all numbers in file order, as little-endian int64. ``edges``: the distinct directed edges
    u, v without self-loops, sorted, each as the little-endian int64 ``u * 2**32 + v``.

    Raises:
        ValueError: the file holds something other than whole numbers.
    """
    if kind == "numbers":
        numbers = np.concatenate([np.empty(0, np.int64), *(rows[:, 0] for rows in _rows(stream, columns=1))])
        return len(numbers), hashlib.sha256(numbers.astype("<i8", copy=False)).hexdigest()
    keys = [np.empty(0, np.int64)]
    for pairs in _rows(stream, columns=2):
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        keys.append(pairs[:, 0] << 32 | pairs[:, 1])
    edges = np.concatenate(keys)
    del keys
    edges.sort()  # in place: COLLAB has 25 million
    edges = edges[np.diff(edges, prepend=-1) != 0]
    return len(edges), hashlib.sha256(edges.astype("<i8", copy=False)).hexdigest()


def _check(stream: BinaryIO, file: RawFile, inside: str) -> None:
    if file.kind == "bytes":
        size, sha256 = _sha256(stream)
        if (size, sha256) != (file.count, file.sha256):
            raise Mismatch(
                inside, f"{file.count} bytes with sha256 {file.sha256}", f"{size} bytes with sha256 {sha256}"
            )
        return
    expected = f"{file.count} {file.kind} with sha256 {file.sha256}"
    try:
        count, sha256 = content_sha256(stream, file.kind)
    except ValueError as error:
        raise Mismatch(inside, expected, str(error)) from error
    if (count, sha256) != (file.count, file.sha256):
        raise Mismatch(inside, expected, f"{count} {file.kind} with sha256 {sha256}")


def _sha256(stream: BinaryIO) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    while block := stream.read(CHUNK):
        digest.update(block)
        size += len(block)
    return size, digest.hexdigest()


def _rows(stream: BinaryIO, columns: int) -> Iterator[np.ndarray]:
    """The numbers of a comma-separated text file, some lines at a time, int64 ``[lines, columns]``."""
    import pandas as pd

    try:
        for table in pd.read_csv(
            stream, header=None, dtype=np.int64, skipinitialspace=True, chunksize=ROWS, engine="c"
        ):
            if table.shape[1] != columns:
                raise ValueError(f"a line holds {table.shape[1]} numbers instead of {columns}")
            yield table.to_numpy()
    except pd.errors.EmptyDataError:
        return
    except OverflowError as error:
        raise ValueError(str(error)) from error
