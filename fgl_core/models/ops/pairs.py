"""The contrast of every anchor with every sample, in memory linear in the nodes."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

#: Rows at or below this norm are left out: the gradient of a cosine grows as one over the norm.
NORM_FLOOR = 1e-6
#: Numbers in one block of similarities. Products with many rows at once gain more than a block loses by not
#: fitting into the core's own cache.
_BLOCK = 1024 * 1024


def all_pairs(h_local: Tensor, h_global: Tensor, y: Tensor, tau: float, pairwise: bool) -> Tensor:
    """The contrast with the whole t × t matrix in memory, as the formula reads."""
    anchor, sample = kept(h_local), kept(h_global)
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


def kept(h: Tensor) -> Tensor:
    """Which rows count, bool [n]: those whose norm is above the floor."""
    return _above_floor(h.detach().norm(dim=1, keepdim=True))


def _above_floor(norm: Tensor) -> Tensor:
    # Written so that a row with NaN is kept: divergence must show, not vanish.
    return ~(norm[:, 0] <= NORM_FLOOR)


class Contrast(torch.autograd.Function):
    """The same value in blocks of anchors; the gradient is made on the way, as the loss is a scalar."""

    @staticmethod
    def forward(ctx: Any, h_local: Tensor, h_global: Tensor, y: Tensor, tau: float, pairwise: bool) -> Tensor:
        norm_a, norm_b = (h.norm(dim=1, keepdim=True) for h in (h_local, h_global))
        anchor, sample = _above_floor(norm_a), _above_floor(norm_b)
        b, norm_b, y_b = _rows(sample, h_global, norm_b, y)
        count = torch.bincount(y_b, minlength=int(y.max()) + 1 if len(y) else 0)
        anchor &= (count > 0)[y]
        a, norm_a, y_a = _rows(anchor, h_local, norm_a, y)
        ctx.anchor, ctx.shape = anchor, h_local.shape
        if not len(a):
            ctx.gradient = torch.zeros_like(a)
            return h_local.new_zeros(())
        a, b = a / norm_a, b / norm_b
        loss, towards = (_pairwise if pairwise else _supcon)(a, b, y_a, y_b, count, tau)
        # Through the normalisation u = h / ‖h‖: only the part across u moves it.
        towards.addcmul_((towards * a).sum(1, keepdim=True), a, value=-1)
        ctx.gradient = towards.div_(norm_a * (tau * len(a)))
        return loss / len(a)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        gradient = ctx.gradient * grad
        if len(gradient) < ctx.shape[0]:
            gradient = gradient.new_zeros(ctx.shape).masked_scatter_(ctx.anchor[:, None], gradient)
        return gradient, None, None, None, None


def _rows(keep: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
    return tensors if keep.all() else tuple(tensor[keep] for tensor in tensors)


def _supcon(
    a: Tensor, b: Tensor, y_a: Tensor, y_b: Tensor, count: Tensor, tau: float
) -> tuple[Tensor, Tensor]:
    """Sum of the anchors' losses, and τ times its gradient by the unit rows a.

    The numerator needs only class means of the samples: Σ_p s_ip / |P_i| = a_i·m_{c_i} / τ.
    """
    zeros = b.new_zeros(len(count), b.shape[1])
    mean = zeros.index_add(0, y_b, b).div_(count.clamp(min=1)[:, None])
    loss = -(zeros.index_add(0, y_a, a) * mean).sum() / tau
    towards = mean.neg_().index_select(0, y_a)
    columns = b.T / tau
    # A cosine is at most 1: down to τ = 1/40 no exponential leaves the range of single precision.
    shifted = tau < 1 / 40
    blocks = _blocks(len(a), len(b))
    space = a.new_empty(blocks[0].stop, len(b))  # for all blocks: fresh memory costs time
    for block in blocks:
        s = torch.mm(a[block], columns, out=space[: block.stop - block.start])
        if shifted:
            highest = s.amax(1, keepdim=True)
            s.sub_(highest)
            loss += highest.sum()
        total = s.exp_().sum(1, keepdim=True)
        loss += total.log().sum()
        towards[block].addcdiv_(s @ b, total)
    return loss, towards


def _pairwise(
    a: Tensor, b: Tensor, y_a: Tensor, y_b: Tensor, count: Tensor, tau: float
) -> tuple[Tensor, Tensor]:
    """As :func:`_supcon`, where each positive pair has a denominator of its own."""
    loss = a.new_zeros(())
    towards = torch.empty_like(a)
    # Sorted by class, the positives of an anchor are one slice of columns.
    order = torch.argsort(y_a, stable=True)
    b = b[torch.argsort(y_b, stable=True)]
    last_sample = 0
    anchors = order.split(torch.bincount(y_a, minlength=len(count)).tolist())
    for rows_of_class, size in zip(anchors, count.tolist(), strict=True):
        own = slice(last_sample, last_sample + size)
        last_sample += size
        for block in _blocks(len(rows_of_class), len(b)):
            rows = rows_of_class[block]
            s = (a[rows] / tau) @ b.T
            positive = s[:, own].clone()
            s[:, own] = -torch.inf
            others = s.logsumexp(1, keepdim=True)
            # −log(φ/(φ+N)) = log(1 + N/φ), whose derivative by log N is N/(φ+N)
            margin = others - positive
            loss += F.softplus(margin, threshold=50).sum() / size
            pull = margin.sigmoid_().div_(size)
            if size < len(b):
                s.sub_(others).exp_().mul_(pull.sum(1, keepdim=True))
            else:
                s.zero_()
            s[:, own] = -pull
            towards[rows] = s @ b
    return loss, towards


def _blocks(rows: int, columns: int) -> list[slice]:
    """Slices of rows, all but the last of one size: of at most about ``_BLOCK`` numbers, or 16 rows."""
    most = max(16, math.ceil(_BLOCK / columns))
    step = math.ceil(rows / math.ceil(rows / most)) if rows else 1
    return [slice(i, min(i + step, rows)) for i in range(0, rows, step)]
