"""Loops over edges and sparse rows, compiled by numba when it is there."""

from __future__ import annotations

from torch import Tensor

AVAILABLE = False


def usable(tensor: Tensor) -> bool:
    """Whether the compiled loops can work on this tensor."""
    return AVAILABLE and tensor.device.type == "cpu"
