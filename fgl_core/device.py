"""Where models are trained: on the processor, or on a CUDA device."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fgl_core.errors import InputError, unknown

if TYPE_CHECKING:
    import torch

VARIABLE = "FGL_DEVICE"
DEVICES = ("cpu", "cuda")


def requested(name: str | None = None) -> str:
    """The device that is asked for: this one, or that of ``FGL_DEVICE``, which workers inherit, or the CPU.

    Raises:
        InputError: it is none of :data:`DEVICES`, or there is no CUDA device that PyTorch can use.
    """
    said = "--device" if name else VARIABLE
    name = name or os.environ.get(VARIABLE) or "cpu"
    if name not in DEVICES:
        raise unknown(said, name, DEVICES)
    if name == "cuda":
        import torch  # takes seconds, and is not needed to use the CPU

        if not torch.cuda.is_available():
            raise InputError(f"no CUDA device is found by PyTorch: leave {said} out to use the CPU")
    return name


def chosen(name: str | None = None) -> torch.device:
    """:func:`requested` as PyTorch's device.

    Raises:
        InputError: as :func:`requested` says.
    """
    import torch

    return torch.device(requested(name))


def choose(name: str | None) -> None:
    """Let this process and its workers train there; None leaves the choice as it is.

    Raises:
        InputError: as :func:`requested` says.
    """
    if name is not None:
        os.environ[VARIABLE] = requested(name)
