"""Operators of the graph-level models: two-layer perceptron, sums and norms of each graph, dropout.

As in the rest of the package, the reference engine composes them from plain torch, and the fast engine takes
compiled loops that read and write each row once. Rows stand one graph after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from fgl_core.models.ops import current_engine, dropout_keep, kernels


def graph_sum(x: Tensor, sizes: Tensor) -> Tensor:
    """Sum of the rows of each graph, [n, d] → [g, d].

    Args:
        sizes: rows of each graph, int64 [g].
    """
    graph = torch.repeat_interleave(sizes, output_size=len(x))
    return x.new_zeros((len(sizes), x.shape[1])).index_add(0, graph, x)


def two_layers(x: Tensor, weight_1: Tensor, bias_1: Tensor, weight_2: Tensor, bias_2: Tensor) -> Tensor:
    """``ReLU(x W₁ᵀ + b₁) W₂ᵀ + b₂`` [n, out], the MLP within a GIN layer.

    Args:
        x: [n, in].
        weight_1, bias_1: [hidden, in] and [hidden].
        weight_2, bias_2: [out, hidden] and [out].
    """
    if current_engine() == "fast" and kernels.usable(x):
        return _TwoLayers.apply(x, weight_1, bias_1, weight_2, bias_2)
    return F.linear(F.relu(F.linear(x, weight_1, bias_1)), weight_2, bias_2)


def graph_norm(x: Tensor, sizes: Tensor, alpha: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> Tensor:
    """``γ (x_v − α μ) / √(σ̂² + ε) + β``, μ the graph's mean, σ̂² the mean of (x_v − α μ)², [n, d].

    Args:
        x: [n, d].
        sizes: rows of each graph, int64 [g].
        alpha, gamma, beta: [d].
    """
    if current_engine() == "fast" and kernels.usable(x):
        return _GraphNorm.apply(x, sizes, alpha, gamma, beta, eps)
    graph = torch.repeat_interleave(sizes, output_size=len(x))
    count = sizes.to(x.dtype)[:, None]
    centred = x - (alpha * graph_sum(x, sizes) / count)[graph]
    variance = graph_sum(centred.square(), sizes) / count
    return gamma * centred * (variance + eps).rsqrt()[graph] + beta


def relu_dropout(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """ReLU, then dropout when a generator is given: ``ReLU(x) ⊙ keep / (1 - rate)``.

    Args:
        x: any shape.
        rate: probability of zeroing, in [0, 1).
        generator: a stream on the CPU; None turns dropout off.
    """
    if generator is None or rate == 0:
        return F.relu(x)
    keep, scale = dropout_keep(tuple(x.shape), rate, generator)
    if current_engine() == "fast" and kernels.usable(x):
        return _ReluDropout.apply(x, keep, scale)
    return F.relu(x) * (keep.to(x.device, x.dtype) * scale)


class _TwoLayers(torch.autograd.Function):
    """Bias, activation and their derivatives in one pass over what a matrix product leaves in the cache."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight_1: Tensor, bias_1: Tensor, weight_2: Tensor, bias_2: Tensor
    ) -> Tensor:
        inner = x @ weight_1.T
        _add_relu(_array(inner), _array(bias_1))
        ctx.save_for_backward(x, inner, weight_1, weight_2)
        return torch.addmm(bias_2, inner, weight_2.T)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, inner, weight_1, weight_2 = ctx.saved_tensors
        grad_inner = grad @ weight_2
        grad_bias = grad.new_zeros(inner.shape[1])
        _relu_backward(_array(inner), _array(grad_inner), _array(grad_bias))
        grad_x = grad_inner @ weight_1 if ctx.needs_input_grad[0] else None
        return grad_x, grad_inner.T @ x, grad_bias, grad.T @ inner, grad.sum(0)


class _GraphNorm(torch.autograd.Function):
    """The compiled loops :func:`_norm` and :func:`_norm_backward`."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, sizes: Tensor, alpha: Tensor, gamma: Tensor, beta: Tensor, eps: float
    ) -> Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        mean, inverse = x.new_zeros((len(sizes), x.shape[1])), x.new_zeros((len(sizes), x.shape[1]))
        parameters = (alpha, gamma, beta)
        _norm(*map(_array, (x, sizes, *parameters, mean, inverse, out)), _array(x).dtype.type(eps))
        ctx.save_for_backward(x, sizes, alpha, gamma, mean, inverse)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, sizes, alpha, gamma, mean, inverse = ctx.saved_tensors
        grad_x = torch.empty_like(x)
        grads = [torch.zeros_like(alpha) for _ in range(3)]
        tensors = (x, sizes, alpha, gamma, mean, inverse, grad.contiguous(), grad_x, *grads)
        _norm_backward(*map(_array, tensors))
        return grad_x, None, *grads, None


class _ReluDropout(torch.autograd.Function):
    """Where the result is above zero, the derivative is the scale; elsewhere it is zero."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: Tensor, scale: float) -> Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        ctx.scale = _array(x).dtype.type(scale)
        _relu_dropout(_array(x).ravel(), keep.numpy().ravel(), ctx.scale, out.numpy().ravel())
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (out,) = ctx.saved_tensors
        grad_x = torch.empty_like(out)
        arrays = (_array(tensor).ravel() for tensor in (grad.contiguous(), out, grad_x))
        _relu_dropout_backward(*arrays, ctx.scale)
        return grad_x, None, None


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()


@kernels.compiled
def _norm(x, sizes, alpha, gamma, beta, mean, inverse, out, eps):
    """Forward pass of graph_norm; mean and inverse (1/√(σ̂² + ε)) come in as zeros, [g, d]."""
    width = x.shape[1]
    first = 0
    for i in range(len(sizes)):
        last = first + sizes[i]
        share = x.dtype.type(1) / x.dtype.type(sizes[i])
        centre, scale = mean[i], inverse[i]
        for v in range(first, last):
            row = x[v]
            for c in range(width):
                centre[c] += row[c]
        for c in range(width):
            centre[c] *= share
        for v in range(first, last):
            row, to = x[v], out[v]
            for c in range(width):
                to[c] = row[c] - alpha[c] * centre[c]
                scale[c] += to[c] * to[c]
        for c in range(width):
            scale[c] = x.dtype.type(1) / np.sqrt(scale[c] * share + eps)
        for v in range(first, last):
            to = out[v]
            for c in range(width):
                to[c] = gamma[c] * scale[c] * to[c] + beta[c]
        first = last


@kernels.compiled
def _norm_backward(x, sizes, alpha, gamma, mean, inverse, grad, grad_x, grad_alpha, grad_gamma, grad_beta):
    """Backward pass of graph_norm; the gradients by the parameters come in as zeros.

    With x̂ = (x − α μ) s, s = 1/√(σ̂² + ε) and g = γ ∂out: ∂(x − α μ) = s (g − x̂ mean(g x̂)) =: d, and
    ∂x = d − α mean(d), ∂α = −μ Σ d.
    """
    width = x.shape[1]
    along = np.empty(width, x.dtype)
    total = np.empty(width, x.dtype)
    first = 0
    for i in range(len(sizes)):
        last = first + sizes[i]
        share = x.dtype.type(1) / x.dtype.type(sizes[i])
        centre, scale = mean[i], inverse[i]
        for c in range(width):
            along[c] = 0
            total[c] = 0
        for v in range(first, last):
            row, g, to = x[v], grad[v], grad_x[v]
            for c in range(width):
                to[c] = (row[c] - alpha[c] * centre[c]) * scale[c]
                along[c] += g[c] * to[c]
                total[c] += g[c]
        for c in range(width):
            grad_gamma[c] += along[c]
            grad_beta[c] += total[c]
            along[c] *= share
            total[c] = 0
        for v in range(first, last):
            g, to = grad[v], grad_x[v]
            for c in range(width):
                to[c] = gamma[c] * scale[c] * (g[c] - to[c] * along[c])
                total[c] += to[c]
        for c in range(width):
            grad_alpha[c] -= centre[c] * total[c]
            total[c] *= alpha[c] * share
        for v in range(first, last):
            to = grad_x[v]
            for c in range(width):
                to[c] -= total[c]
        first = last


@kernels.compiled
def _add_relu(x, bias):
    """x becomes ReLU(x + bias)."""
    for i in range(len(x)):
        row = x[i]
        for c in range(len(bias)):
            row[c] = max(row[c] + bias[c], 0)


@kernels.compiled
def _relu_backward(out, grad, total):
    """grad becomes zero where out is; what is left of it is added to total, column by column."""
    for i in range(len(out)):
        row, g = out[i], grad[i]
        for c in range(len(total)):
            g[c] = g[c] if row[c] > 0 else 0
            total[c] += g[c]


@kernels.compiled
def _relu_dropout(x, keep, scale, out):
    for k in range(len(x)):
        out[k] = max(x[k], 0) * (keep[k] * scale)


@kernels.compiled
def _relu_dropout_backward(grad, out, grad_x, scale):
    for k in range(len(grad)):
        grad_x[k] = grad[k] * scale if out[k] > 0 else 0
