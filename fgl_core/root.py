"""Where the project keeps data and records."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fgl_core.errors import InputError

MARK = Path("data", "registry.toml")


def project_root() -> Path:
    """The folder below which ``data/raw``, ``data/runs`` and ``data/results`` lie.

    ``FGL_HOME`` if set, else the nearest parent of the working folder, then of the package, that holds
    ``data/registry.toml`` (a checkout), else a folder in the user's cache (an installed wheel). It need not
    exist yet.

    Raises:
        InputError: ``FGL_HOME`` names something that is not a folder.
    """
    home = os.environ.get("FGL_HOME")
    if home:
        root = Path(home).expanduser().absolute()
        if root.exists() and not root.is_dir():
            raise InputError(
                f"the root FGL_HOME is not a folder: {root}; set it to one that you can write to"
            )
        return root
    here = Path.cwd()
    for folder in (here, *here.parents, *Path(__file__).resolve().parents):
        if (folder / MARK).is_file():
            return folder
    return _user_cache() / "fgl_core"


def shipped(module: str, place: str) -> Path:
    """A file that the code reads: beside the module in a wheel, at its place in a checkout.

    Args:
        module: the ``__file__`` of the module that reads it.
        place: the path in the checkout, such as ``data/registry.toml``.
    """
    beside = Path(module).with_name(Path(place).name)
    return beside if beside.is_file() else Path(__file__).resolve().parents[1] / place


def _user_cache() -> Path:
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"])
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
