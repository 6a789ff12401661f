"""Dropout masks from raw random bits."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor


def dropout_keep(shape: tuple[int, ...], rate: float, generator: torch.Generator) -> tuple[Tensor, float]:
    """What dropout keeps, drawn from a generator on the CPU: the same for every engine and device.

    A rate of one half takes one random bit for an element, other rates take 16 and are rounded to a multiple
    of 2^-16: a fraction of the cost of a uniform number for each.

    Args:
        shape: of the mask.
        rate: probability of zeroing, in [0, 1).
        generator: the stream to draw from.

    Returns:
        ``(keep, scale)``: uint8 of the shape, 1 where kept, and the factor that restores the mean.
    """
    size = math.prod(shape)
    if rate == 0.5:
        bits = _random_bytes(-(-size // 8), generator)
        return torch.from_numpy(np.unpackbits(bits, count=size)).view(shape), 2.0
    threshold = round(rate * 2**16)
    keep = _random_bytes(2 * size, generator).view("<u2") >= threshold
    return torch.from_numpy(keep.view(np.uint8)).view(shape), 2**16 / (2**16 - threshold)


def _random_bytes(count: int, generator: torch.Generator) -> np.ndarray:
    words = torch.empty(-(-count // 8), dtype=torch.int64).random_(-(2**63), None, generator=generator)
    return words.numpy().astype("<i8", copy=False).view(np.uint8)[:count]
