"""What a run was computed with: versions, processor, commit."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any


def environment() -> dict[str, Any]:
    """Versions, processor, commit and date, as records hold them."""
    names = (
        "numpy",
        "scipy",
        "torch",
        "torch-geometric",
        "python-louvain",
        "networkx",
        "numba",
        "scikit-learn",
        "ImageHash",
    )
    return {
        "versions": {"python": platform.python_version(), **{name: version(name) for name in names}},
        "cpu": cpu(),
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def cpu() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """The checkout's commit, with ``+`` when its code has uncommitted changes; None outside a checkout."""
    package = Path(__file__).parents[1]
    try:
        head = _git(package, "rev-parse", "--short=12", "HEAD")
        changed = _git(package, "status", "--porcelain", "--", str(package))
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
