"""The registry of datasets: which files each one consists of, and how to know that they are the right ones.

It is read from ``data/registry.toml`` in a checkout; a wheel carries the same file inside the package. It
always comes with the code, never from the working folder, so that the checksums fit what the loaders expect.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from fgl_core.errors import unknown
from fgl_core.root import MARK, shipped


@dataclass(frozen=True)
class RawFile:
    """One file and what it must hold.

    Attributes:
        name: the file's name, without folder.
        sha256: of the file's bytes, or of its content, see :mod:`fgl_core.datasets.checks`.
        kind: what ``sha256`` covers: ``bytes``; ``numbers`` (all numbers of a text file, in order); ``edges``
            (the sorted directed edges, without self-loops and repeats).
        count: how many bytes, numbers or edges.
    """

    name: str
    sha256: str
    kind: Literal["bytes", "numbers", "edges"]
    count: int


@dataclass(frozen=True)
class Package:
    """A Python package whose wheel carries the files.

    Attributes:
        name, version: of the package.
        folder: where the files lie inside the wheel.
        files: the files it carries, where they are other ones than the dataset's own.
        target: the folder in ``data/raw`` for those files.
    """

    name: str
    version: str
    folder: str
    files: tuple[RawFile, ...] = ()
    target: str = ""


@dataclass(frozen=True)
class Entry:
    """One dataset.

    Attributes:
        carrier: ``planetoid`` (plain files), ``tudataset`` (a zip of text files) or ``embedded`` (no files).
        task: ``node`` or ``graph`` classification.
        folder: where the files lie, below ``data/raw`` and below ``FGL_DATA_MIRROR``.
        files: the plain files, or the files inside the zip.
        addresses: official addresses, ``{file}`` stands for the file's name.
        archive: one known copy of the zip, by its bytes; copies from elsewhere may differ in bytes.
        package: a package that carries the files.
        parsed: sha256 of the parsed arrays (:meth:`fgl_core.datasets.node.NodeDataset.digest`).
        counts: graphs, nodes, edges, features, classes, as loaded unless asked otherwise.
    """

    name: str
    title: str
    carrier: Literal["planetoid", "tudataset", "embedded"]
    task: Literal["node", "graph"]
    licence: str
    citation: str
    folder: str = ""
    files: tuple[RawFile, ...] = ()
    addresses: tuple[str, ...] = ()
    archive: RawFile | None = None
    package: Package | None = None
    parsed: str = ""
    counts: dict[str, int] = field(default_factory=dict)


def registry_path() -> Path:
    """The registry that belongs to this code."""
    return shipped(__file__, str(MARK))


@cache
def entries() -> dict[str, Entry]:
    """All datasets by name, in the order of the registry."""
    with open(registry_path(), "rb") as file:
        table = tomllib.load(file)
    return {name: _entry(name, values) for name, values in table.items()}


def entry(name: str) -> Entry:
    """The dataset of this name.

    Raises:
        InputError: no such dataset; the message lists all.
    """
    if name not in entries():
        raise unknown("dataset", name, entries())
    return entries()[name]


def selection(names: Iterable[str] | None) -> list[Entry]:
    """The datasets of these names, all of them for ``None``."""
    return [entry(name) for name in (entries() if names is None else names)]


def _entry(name: str, values: dict[str, Any]) -> Entry:
    values = dict(values)
    if "archive" in values:
        values["archive"] = _file(f"{name}.zip", values["archive"])
    if "package" in values:
        package = dict(values["package"])
        package["files"] = _files(package.get("files", {}))
        values["package"] = Package(**package)
    values["files"] = _files(values.get("files", {}))
    values["addresses"] = tuple(values.get("addresses", ()))
    return Entry(name=name, **values)


def _files(table: dict[str, Any]) -> tuple[RawFile, ...]:
    return tuple(_file(name, values) for name, values in table.items())


def _file(name: str, values: dict[str, Any]) -> RawFile:
    kind = next(kind for kind in ("bytes", "numbers", "edges") if kind in values)
    return RawFile(name, values["sha256"], kind, values[kind])
