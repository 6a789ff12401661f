"""Operators of the node-level models, each in two engines that give the same numbers.

``reference`` is the plain loop: dense features, gather and scatter. ``fast`` (the default) multiplies sparse
rows, and fuses the edge softmax with the aggregation; its loops are compiled by numba where that is
installed, and fall back on torch and scipy where it is not, or on a CUDA device. Nothing outside this package
knows which engine runs.

>>> with ops.engine("reference"):
...     h, z = model(graph)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType

import torch
from torch import Tensor

from fgl_core.errors import unknown
from fgl_core.models.ops import fused, plain
from fgl_core.models.ops.masks import dropout_keep
from fgl_core.models.ops.pairs import Contrast, all_pairs
from fgl_core.models.ops.structures import Adjacency, Rows

ENGINES = ("fast", "reference")
SLOPE = 0.2  # of attention's leaky ReLU below zero, as Veličković et al. have it
_engine: ContextVar[str] = ContextVar("engine", default="fast")


@contextmanager
def engine(name: str) -> Iterator[None]:
    """Run the operators inside the block on this engine.

    Raises:
        InputError: there is no engine of this name.
    """
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    token = _engine.set(name)
    try:
        yield
    finally:
        _engine.reset(token)


def current_engine() -> str:
    """The engine that runs now."""
    return _engine.get()


def _current() -> ModuleType:
    return plain if _engine.get() == "reference" else fused


def project(rows: Rows, weight: Tensor, keep_columns: Tensor | None = None) -> Tensor:
    """Features times weight, ``(x ⊙ keep_columns) W``.

    Args:
        rows: x, [n, f].
        weight: W, [f, d].
        keep_columns: bool [f]; a column that is not kept counts as zero.

    Returns:
        [n, d].
    """
    return _current().project(rows, weight, keep_columns)


def attention(
    adjacency: Adjacency, x: Tensor, att_source: Tensor, att_target: Tensor, bias: Tensor
) -> Tensor:
    """One attention head over the neighbours and the node itself (Veličković et al. 2018, eqs. 1 to 4).

    ``out_i = b + Σ_j α_ij x_j``; α_i is the softmax over j of ``LeakyReLU(a_source·x_j + a_target·x_i)``.

    Args:
        adjacency: who is whose neighbour, without self-loops (they are added here).
        x: [n, d], the projected nodes.
        att_source, att_target, bias: [d].

    Returns:
        [n, d].
    """
    return _current().attention(adjacency, x, att_source, att_target, bias, SLOPE)


def neighbour_sum(adjacency: Adjacency, x: Tensor, *, own: bool = False) -> Tensor:
    """Sum of the neighbours' rows, ``out_i = Σ_{j∈A_i} x_j``, [n, d]; ``own`` adds the node's own row x_i."""
    return _current().neighbour_sum(adjacency, x, own)


def elu_dropout(h: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """ELU, then dropout when a generator is given: ``ELU(h) ⊙ keep / (1 - rate)``.

    Args:
        h: any shape.
        rate: probability of zeroing, in [0, 1).
        generator: a stream on the CPU; None turns dropout off.
    """
    if generator is None or rate == 0:
        return _current().elu_dropout(h, None, 1.0)
    keep, scale = dropout_keep(tuple(h.shape), rate, generator)
    return _current().elu_dropout(h, keep.to(h.device), scale)


def dropout(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Dropout alone; arguments as in :func:`elu_dropout`."""
    if generator is None or rate == 0:
        return x
    keep, scale = dropout_keep(tuple(x.shape), rate, generator)
    return x * (keep.to(x.device, x.dtype) * scale)


def neighbour_divergence(adjacency: Adjacency, z_local: Tensor, z_global: Tensor, omega: float) -> Tensor:
    """Mean over nodes with neighbours of ``KL(S^g_i ‖ S^m_i)``, S_ij = softmax over j∈A_i of ``z_i·z_j/ω``.

    Args:
        adjacency: the neighbours A_i, without self-loops.
        z_local, z_global: [n, c]; no gradient reaches ``z_global``.
        omega: ω > 0.

    Returns:
        A scalar; 0 without any edge.
    """
    return _current().neighbour_divergence(adjacency, z_local, z_global.detach(), omega)


def contrast(h_local: Tensor, h_global: Tensor, y: Tensor, tau: float, *, pairwise: bool) -> Tensor:
    """Supervised contrast of local anchors with global samples; :func:`fgl_core.losses.fnsc` has the formula.

    The fast engine holds one block of similarities at a time; the reference engine all of them.
    """
    if current_engine() == "reference":
        return all_pairs(h_local, h_global.detach(), y, tau, pairwise)
    return Contrast.apply(h_local, h_global.detach(), y, tau, pairwise)


__all__ = [
    "ENGINES",
    "Adjacency",
    "Rows",
    "attention",
    "contrast",
    "current_engine",
    "dropout",
    "dropout_keep",
    "elu_dropout",
    "engine",
    "neighbour_divergence",
    "neighbour_sum",
    "project",
]
