"""The contrast of every anchor with every sample, in memory linear in the nodes."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

#: Rows at or below this norm are left out: the gradient of a cosine grows as one over the norm.
NORM_FLOOR = 1e-6
#: Numbers in one block of similarities: a block stays in the core's cache.
_BLOCK = 256 * 1024


def all_pairs(h_local: Tensor, h_global: Tensor, y: Tensor, tau: float, pairwise: bool) -> Tensor:
    """The contrast with the whole t × t matrix in memory, as the formula reads."""
    anchor, sample = _kept(h_local), _kept(h_global)
    a = h_local[anchor]
    b = h_global[sample]
    a, b = a / a.norm(dim=1, keepdim=True), b / b.norm(dim=1, keepdim=True)
    same = y[anchor][:, None] == y[sample][None, :]
    has_sample = same.any(1)
    a, same = a[has_sample], same[has_sample]
    if not len(a):
        return h_local.sum() * 0
    s = a @ b.T / tau
    if pairwise:
        others = s.masked_fill(same, -torch.inf).logsumexp(1, keepdim=True)
        log_denominator = torch.logaddexp(s, others)
    else:
        log_denominator = s.logsumexp(1, keepdim=True)
    log_share = (s - log_denominator).masked_fill(~same, 0)
    return -(log_share.sum(1) / same.sum(1)).mean()


def _kept(h: Tensor) -> Tensor:
    # Written so that a row with NaN is kept: divergence must show, not vanish.
    return ~(h.detach().norm(dim=1) <= NORM_FLOOR)


class Contrast(torch.autograd.Function):
    """The same value in blocks of anchors; the gradient is made on the way, as the loss is a scalar.

    The numerator needs only class means of the samples: Σ_p s_ip / |P_i| = a_i·m_{c_i} / τ.
    """

    @staticmethod
    def forward(ctx: Any, h_local: Tensor, h_global: Tensor, y: Tensor, tau: float, pairwise: bool) -> Tensor:
        anchor, sample = _kept(h_local), _kept(h_global)
        b = h_global[sample]
        b = b / b.norm(dim=1, keepdim=True)
        classes = int(y.max()) + 1 if len(y) else 0
        count = torch.bincount(y[sample], minlength=classes)
        anchor &= count[y] > 0
        # Sorted by class, the positives of an anchor are one slice of columns.
        rows = anchor.nonzero()[:, 0]
        rows = rows[torch.argsort(y[rows], stable=True)]
        order = torch.argsort(y[sample], stable=True)
        b = b[order]
        ctx.rows, ctx.shape = rows, h_local.shape
        if not len(rows):
            ctx.gradient = torch.zeros((0, h_local.shape[1]), dtype=h_local.dtype, device=h_local.device)
            return h_local.new_zeros(())
        a = h_local[rows]
        norm = a.norm(dim=1, keepdim=True)
        a = a / norm
        if pairwise:
            loss, towards = _pairwise(a, b, y[rows], count, tau)
        else:
            loss, towards = _supcon(a, b, y[rows], y[sample][order], count, tau)
        # Through the normalisation u = h / ‖h‖: only the part across u moves it.
        towards -= (towards * a).sum(1, keepdim=True) * a
        ctx.gradient = towards.div_(norm).div_(len(rows))
        return loss / len(rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        full = torch.zeros(ctx.shape, dtype=ctx.gradient.dtype, device=ctx.gradient.device)
        full[ctx.rows] = ctx.gradient * grad
        return full, None, None, None, None


def _supcon(
    a: Tensor, b: Tensor, y_a: Tensor, y_b: Tensor, count: Tensor, tau: float
) -> tuple[Tensor, Tensor]:
    """Sum of the anchors' losses, and its gradient by the unit rows a."""
    mean = torch.zeros((len(count), b.shape[1]), dtype=b.dtype, device=b.device).index_add(0, y_b, b)
    mean = (mean / count.clamp(min=1)[:, None])[y_a]
    loss = -(a * mean).sum() / tau
    towards = -mean
    # A cosine is at most 1: with this shift nothing overflows, and above τ = 1/40 nothing vanishes either.
    fixed = tau >= 1 / 40
    for block in _blocks(len(a), len(b)):
        s = (a[block] / tau) @ b.T
        shift = 1 / tau if fixed else s.amax(1, keepdim=True)
        s.sub_(shift).exp_()
        total = s.sum(1, keepdim=True)
        loss += (total.log() + shift).sum()
        towards[block].addcdiv_(s @ b, total)
    return loss, towards.div_(tau)


def _pairwise(a: Tensor, b: Tensor, y_a: Tensor, count: Tensor, tau: float) -> tuple[Tensor, Tensor]:
    """As :func:`_supcon`, where each positive pair has a denominator of its own."""
    loss = a.new_zeros(())
    towards = torch.empty_like(a)
    ends = count.cumsum(0).tolist()
    anchors = torch.bincount(y_a, minlength=len(count)).cumsum(0).tolist()
    for c, size in enumerate(count.tolist()):
        first, last = (anchors[c - 1] if c else 0), anchors[c]
        own = slice(ends[c] - size, ends[c])
        for block in _blocks(last - first, len(b)):
            rows = slice(first + block.start, first + block.stop)
            s = (a[rows] / tau) @ b.T
            positive = s[:, own].clone()
            s[:, own] = -torch.inf
            others = s.logsumexp(1, keepdim=True)
            # −log(φ/(φ+N)) = log(1 + N/φ), whose derivative by log N is N/(φ+N)
            margin = others - positive
            loss += torch.nn.functional.softplus(margin, threshold=50).sum() / size
            pull = margin.sigmoid_().div_(size)
            if size < len(b):
                s.sub_(others).exp_().mul_(pull.sum(1, keepdim=True))
            else:
                s.zero_()
            s[:, own] = -pull
            towards[rows] = s @ b
    return loss, towards.div_(tau)


def _blocks(rows: int, columns: int) -> list[slice]:
    step = max(16, math.ceil(_BLOCK / max(columns, 1)))
    return [slice(i, min(i + step, rows)) for i in range(0, rows, step)]
