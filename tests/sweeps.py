"""What tests of sweeps need: to wait for something, and records without what varies from run to run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fgl_core.study.store import Store


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until ``condition`` holds; fail when it takes longer."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def canonical(folder: Path) -> dict[str, dict[str, Any]]:
    """The records of a folder by digest, without times and versions."""
    return {digest: record.canonical() for digest, record in Store(folder).load(folder).items()}
