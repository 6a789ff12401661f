"""Where models are trained: on the processor, or on a CUDA device."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fgl_core.errors import InputError, unknown

if TYPE_CHECKING:
    import torch

VARIABLE = "FGL_DEVICE"
DEVICES = ("cpu", "cuda")


def chosen(name: str | None = None) -> torch.device:
    """The device of this name; that of ``FGL_DEVICE`` if none is given, which workers inherit; else the CPU.

    Args:
        name: ``cpu`` or ``cuda``.

    Raises:
        InputError: another name, or no CUDA device that PyTorch can use.
    """
    import torch

    said = "--device" if name else VARIABLE
    name = name or os.environ.get(VARIABLE) or "cpu"
    if name not in DEVICES:
        raise unknown(said, name, DEVICES)
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError(f"{said} cuda: PyTorch finds no CUDA device here: leave it out to use the CPU")
    return torch.device(name)


def choose(name: str | None) -> None:
    """Let this process and its workers train there; None leaves the choice as it is.

    Raises:
        InputError: as :func:`chosen` says.
    """
    if name is not None:
        chosen(name)
        os.environ[VARIABLE] = name
