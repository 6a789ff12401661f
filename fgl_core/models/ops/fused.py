"""The fast engine: sparse rows, and loops over sorted edges that make forward and backward pass in one go.

Each operator takes the compiled loops where they are usable, else torch and scipy. Gradients are first order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fgl_core.models.ops import kernels, plain
from fgl_core.models.ops.structures import Adjacency, Rows


class _Project(torch.autograd.Function):
    """(x ⊙ keep) W; the weight's gradient is (x ⊙ keep)^T g, its dropped rows zero."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: Rows, keep_columns: Tensor | None) -> Tensor:
        ctx.rows, ctx.keep_columns = rows, keep_columns
        if not kernels.usable(weight):
            return _times(rows.matrix, _zeroed(weight, keep_columns))
        keep = rows.all_columns if keep_columns is None else keep_columns.numpy().view(np.uint8)
        out = weight.new_empty(rows.shape[0], weight.shape[1])
        kernels.product(*rows.csr, rows.all_rows, keep, _array(weight), out.numpy())
        if rows.full is not None:
            out[rows.full] = rows.block @ _zeroed(weight.detach(), keep_columns)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, keep_columns = ctx.rows, ctx.keep_columns
        if not kernels.usable(grad):
            return _zeroed(_times(rows.transposed, grad), keep_columns), None, None
        keep = rows.all_columns if keep_columns is None else keep_columns.numpy().view(np.uint8)
        out = grad.new_empty(rows.shape[1], grad.shape[1])
        kernels.product(*rows.transposed_csr, keep, rows.all_rows, _array(grad), out.numpy())
        if rows.full is not None:
            out += _zeroed(rows.block.T @ grad[rows.full], keep_columns)
        return out, None, None


class _Attention(torch.autograd.Function):
    """What the backward pass reads stays as arrays: turning tensors into arrays takes time."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        att_source: Tensor,
        att_target: Tensor,
        bias: Tensor,
        adjacency: Adjacency,
        slope: float,
    ) -> Tensor:
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        inputs = (*adjacency.arrays, *map(_array, (x, att_source, att_target, bias)))
        dtype, n = inputs[2].dtype, len(x)
        made = (out.numpy(), np.empty(len(inputs[1]), dtype), np.empty(n, dtype), np.empty((n, 2), dtype))
        ctx.arrays = (*inputs, dtype.type(slope), *made)
        kernels.attention(*ctx.arrays)
        return out.detach()  # the arrays hold out: returned itself, it would hold its own graph

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad_x = torch.zeros_like(grad, memory_format=torch.contiguous_format)
        grad_score = grad.new_zeros(len(grad), 2)
        kernels.attention_backward(*ctx.arrays, _array(grad), grad_x.numpy(), grad_score.numpy())
        grad_source, grad_target = grad_score.T @ torch.from_numpy(ctx.arrays[2])
        return grad_x, grad_source, grad_target, grad.sum(0), None, None


class _NeighbourSum(torch.autograd.Function):
    """The adjacency is symmetric: the backward pass is the same sum."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, adjacency: Adjacency, own: bool) -> Tensor:
        ctx.adjacency, ctx.own = adjacency, own
        return _neighbour_sum(x, adjacency, own)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _neighbour_sum(grad, ctx.adjacency, ctx.own), None, None


class _EluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, keep: Tensor, scale: float) -> Tensor:
        out = h.exp().contiguous()
        ctx.arrays = (out.numpy().ravel(), keep.numpy().ravel(), out.numpy().dtype.type(scale))
        kernels.elu_dropout(_array(h).ravel(), *ctx.arrays)
        return out.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad_h = torch.empty_like(grad, memory_format=torch.contiguous_format)
        kernels.elu_dropout_backward(_array(grad).ravel(), *ctx.arrays, grad_h.numpy().ravel())
        return grad_h, None, None


class _NeighbourDivergence(torch.autograd.Function):
    """A scalar, so that its gradient is made with it."""

    @staticmethod
    def forward(ctx: Any, z_local: Tensor, z_global: Tensor, adjacency: Adjacency, omega: float) -> Tensor:
        grad = torch.zeros_like(z_local, memory_format=torch.contiguous_format)
        z_local, z_global = map(_array, (z_local, z_global))
        nodes = max(1, int((adjacency.degree > 0).sum()))
        total = kernels.neighbour_divergence(
            *adjacency.arrays, z_local, z_global, z_local.dtype.type(omega), grad.numpy()
        )
        ctx.grad = grad.div_(nodes)
        return grad.new_tensor(total / nodes)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.grad * grad, None, None, None


def project(rows: Rows, weight: Tensor, keep_columns: Tensor | None) -> Tensor:
    if weight.device.type != "cpu":  # a dense product is what such devices are made for
        return plain.project(rows, weight, keep_columns)
    return _Project.apply(weight, rows, keep_columns)


def attention(
    adjacency: Adjacency, x: Tensor, att_source: Tensor, att_target: Tensor, bias: Tensor, slope: float
) -> Tensor:
    if not kernels.usable(x):
        return plain.attention(adjacency, x, att_source, att_target, bias, slope)
    return _Attention.apply(x, att_source, att_target, bias, adjacency, slope)


def neighbour_sum(adjacency: Adjacency, x: Tensor, own: bool) -> Tensor:
    if not kernels.usable(x):
        return plain.neighbour_sum(adjacency, x, own)
    return _NeighbourSum.apply(x, adjacency, own)


def elu_dropout(h: Tensor, keep: Tensor | None, scale: float) -> Tensor:
    if not kernels.usable(h):
        return plain.elu_dropout(h, keep, scale)
    keep = torch.ones(h.shape, dtype=torch.uint8) if keep is None else keep
    return _EluDropout.apply(h, keep, scale)


def neighbour_divergence(adjacency: Adjacency, z_local: Tensor, z_global: Tensor, omega: float) -> Tensor:
    if not kernels.usable(z_local):
        return plain.neighbour_divergence(adjacency, z_local, z_global, omega)
    return _NeighbourDivergence.apply(z_local, z_global, adjacency, omega)


def _neighbour_sum(x: Tensor, adjacency: Adjacency, own: bool) -> Tensor:
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    kernels.neighbour_sum(*adjacency.arrays, _array(x), own, out.numpy())
    return out


def _times(matrix: sp.csr_array, dense: Tensor) -> Tensor:
    return torch.from_numpy(matrix @ dense.detach().numpy())


def _zeroed(weight: Tensor, keep: Tensor | None) -> Tensor:
    return weight if keep is None else weight * keep[:, None]


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()
