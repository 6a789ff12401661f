"""Initial values of parameters, drawn from an explicit generator."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """Uniform values in ±bound; drawn in float64, so that every dtype starts from the same numbers."""
    return torch.empty(shape, dtype=torch.float64).uniform_(-bound, bound, generator=generator).to(dtype)


def glorot(shape: tuple[int, int], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """Uniform in ±√(6 / (rows + columns)) (Glorot and Bengio 2010)."""
    return uniform(shape, math.sqrt(6 / sum(shape)), generator, dtype)
