"""Loops over edges and sparse rows on numpy arrays, compiled by numba.

Without numba the package works on torch and scipy: :func:`usable` is False. All loops run on one thread and
release the interpreter lock; the compiled code is cached on disk. Indices are int32, those of :func:`product`
uint32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

try:
    import numba
except ImportError:
    AVAILABLE = False

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        return function
else:
    AVAILABLE = True

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        # Sums may be reordered, for vector instructions; NaN and infinity keep their meaning.
        options = {"nogil": True, "fastmath": {"reassoc", "contract", "arcp", "nsz"}}
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # no folder to write the cache to: compile anew in every process
            return numba.njit(**options)(function)


def usable(tensor: Tensor) -> bool:
    """Whether the compiled loops can work on this tensor."""
    return AVAILABLE and tensor.device.type == "cpu"


@compiled
def compress(pointer, source, edge, keep):
    """Adjacency without the undirected edges where keep is False; the edges that stay are renumbered."""
    number = np.empty(len(keep), np.int32)
    kept = 0
    for e in range(len(keep)):
        number[e] = kept
        kept += keep[e]
    new_pointer = np.empty_like(pointer)
    new_source = np.empty(2 * kept, np.int32)
    new_edge = np.empty(2 * kept, np.int32)
    new_pointer[0] = 0
    at = 0
    for i in range(len(pointer) - 1):
        for k in range(pointer[i], pointer[i + 1]):
            e = edge[k]
            if keep[e]:
                new_source[at] = source[k]
                new_edge[at] = number[e]
                at += 1
        new_pointer[i + 1] = at
    return new_pointer, new_source, new_edge


@compiled
def product(pointer, column, value, keep_row, keep_column, dense, out):
    """out = (keep_row ⊙ sparse ⊙ keep_column) dense, the keeps as uint8; pointer and column are uint32.

    The entries of a row that are kept are gathered without a branch. Eight of them are added at once, so that
    a row of the output is read and written once for eight rows of the dense factor.
    """
    width = dense.shape[1]
    longest = 0
    for i in range(len(pointer) - 1):
        longest = max(longest, np.int64(pointer[i + 1] - pointer[i]))
    at = np.empty(longest, column.dtype)
    v = np.empty(longest, value.dtype)
    for i in range(len(pointer) - 1):
        row = out[i]
        for c in range(width):
            row[c] = 0
        if not keep_row[i]:
            continue
        kept = 0
        for k in range(pointer[i], pointer[i + 1]):
            at[kept] = column[k]
            v[kept] = value[k]
            kept += np.int64(keep_column[column[k]])
        g = 0
        while g + 8 <= kept:
            v0, v1, v2, v3 = v[g], v[g + 1], v[g + 2], v[g + 3]
            v4, v5, v6, v7 = v[g + 4], v[g + 5], v[g + 6], v[g + 7]
            r0, r1, r2, r3 = dense[at[g]], dense[at[g + 1]], dense[at[g + 2]], dense[at[g + 3]]
            r4, r5, r6, r7 = dense[at[g + 4]], dense[at[g + 5]], dense[at[g + 6]], dense[at[g + 7]]
            for c in range(width):
                first = v0 * r0[c] + v1 * r1[c] + v2 * r2[c] + v3 * r3[c]
                row[c] += first + v4 * r4[c] + v5 * r5[c] + v6 * r6[c] + v7 * r7[c]
            g += 8
        while g < kept:
            factor, other = v[g], dense[at[g]]
            for c in range(width):
                row[c] += factor * other[c]
            g += 1


@compiled
def neighbour_sum(pointer, source, x, own, out):
    """out_i = Σ_{j∈A_i} x_j, and x_i if own."""
    width = x.shape[1]
    for i in range(len(pointer) - 1):
        row, here = out[i], x[i]
        for c in range(width):
            row[c] = here[c] if own else 0
        for k in range(pointer[i], pointer[i + 1]):
            other = x[source[k]]
            for c in range(width):
                row[c] += other[c]


@compiled
def attention(pointer, source, x, att_source, att_target, bias, slope, out, weight, own, score):
    """Forward pass of one attention head with self-loops.

    Writes out [n, d]; the attention weights of edges (weight [2e]) and of self-loops (own [n]); and the two
    halves of the scores (score [n, 2]: as a source, as a target), whose sign the backward pass needs.
    """
    n, width = x.shape
    for i in range(n):
        row = x[i]
        as_source = x.dtype.type(0)
        as_target = x.dtype.type(0)
        for c in range(width):
            as_source += row[c] * att_source[c]
            as_target += row[c] * att_target[c]
        score[i, 0] = as_source
        score[i, 1] = as_target
    for i in range(n):
        first, last = pointer[i], pointer[i + 1]
        own_score = score[i, 0] + score[i, 1]
        if own_score < 0:
            own_score *= slope
        highest = own_score
        for k in range(first, last):
            s = score[source[k], 0] + score[i, 1]
            if s < 0:
                s *= slope
            weight[k] = s
            highest = max(highest, s)
        total = math.exp(own_score - highest)
        own[i] = total
        for k in range(first, last):
            weight[k] = math.exp(weight[k] - highest)
            total += weight[k]
        own[i] /= total
        row, here, factor = out[i], x[i], own[i]
        for c in range(width):
            row[c] = bias[c] + factor * here[c]
        for k in range(first, last):
            weight[k] /= total
            factor, other = weight[k], x[source[k]]
            for c in range(width):
                row[c] += factor * other[c]


@compiled
def attention_backward(
    pointer, source, x, att_source, att_target, bias, slope, out, weight, own, score, grad, grad_x, grad_score
):
    """Backward pass of :func:`attention`; adds to grad_x [n, d], and to grad_score [n, 2] of the halves.

    With g the gradient of out, the derivative by α_ij is g_i·x_j, and by the score it is
    α_ij (g_i·x_j − g_i·(out_i − b)); x is reached through the weighted sum and both halves of the score.
    """
    n, width = x.shape
    for i in range(n):
        g, result, here, grad_here = grad[i], out[i], x[i], grad_x[i]
        mean = x.dtype.type(0)
        slant = x.dtype.type(0)
        factor = own[i]
        for c in range(width):
            mean += g[c] * (result[c] - bias[c])
            slant += g[c] * here[c]
        for c in range(width):
            grad_here[c] += factor * g[c]
        d = factor * (slant - mean)
        if score[i, 0] + score[i, 1] < 0:
            d *= slope
        grad_score[i, 0] += d
        grad_score[i, 1] += d
        for k in range(pointer[i], pointer[i + 1]):
            j = source[k]
            other, grad_other = x[j], grad_x[j]
            factor = weight[k]
            slant = x.dtype.type(0)
            for c in range(width):
                slant += g[c] * other[c]
            for c in range(width):
                grad_other[c] += factor * g[c]
            d = factor * (slant - mean)
            if score[j, 0] + score[i, 1] < 0:
                d *= slope
            grad_score[j, 0] += d
            grad_score[i, 1] += d
    for i in range(n):
        grad_here = grad_x[i]
        as_source, as_target = grad_score[i, 0], grad_score[i, 1]
        for c in range(width):
            grad_here[c] += as_source * att_source[c] + as_target * att_target[c]


@compiled
def elu_dropout(h, power, keep, scale):
    """power = exp(h) becomes ELU(h) ⊙ keep · scale, in place; arrays are flat, keep is uint8."""
    for k in range(len(h)):
        value = h[k] if h[k] > 0 else power[k] - 1
        power[k] = value * (keep[k] * scale)


@compiled
def elu_dropout_backward(grad, out, keep, scale, grad_h):
    """Derivative of :func:`elu_dropout`: the slope of ELU is ELU + 1 below zero, and out = scale · ELU."""
    for k in range(len(grad)):
        slope = scale if out[k] > 0 else out[k] + scale
        grad_h[k] = grad[k] * (keep[k] * slope)


@compiled
def neighbour_divergence(pointer, source, z_local, z_global, omega, grad):
    """Sum over nodes of KL(S^g_i ‖ S^m_i), and its gradient by z_local, added to grad [n, c]."""
    width = z_local.shape[1]
    widest = 0
    for i in range(len(pointer) - 1):
        widest = max(widest, pointer[i + 1] - pointer[i])
    student = np.empty(widest, z_local.dtype)
    teacher = np.empty(widest, z_local.dtype)
    total = 0.0
    for i in range(len(pointer) - 1):
        first, degree = pointer[i], pointer[i + 1] - pointer[i]
        if degree < 2:
            continue
        for k in range(degree):
            j = source[first + k]
            student[k] = 0
            teacher[k] = 0
            for c in range(width):
                student[k] += z_local[i, c] * z_local[j, c]
                teacher[k] += z_global[i, c] * z_global[j, c]
            student[k] /= omega
            teacher[k] /= omega
        log_student = _log_sum_exp(student, degree)
        log_teacher = _log_sum_exp(teacher, degree)
        for k in range(degree):
            log_s, log_t = student[k] - log_student, teacher[k] - log_teacher
            share = math.exp(log_t)
            total += share * (log_t - log_s)
            d = (math.exp(log_s) - share) / omega
            j = source[first + k]
            for c in range(width):
                grad[i, c] += d * z_local[j, c]
                grad[j, c] += d * z_local[i, c]
    return total


@compiled
def _log_sum_exp(values, length):
    highest = values[0]
    for k in range(1, length):
        highest = max(highest, values[k])
    total = 0.0
    for k in range(length):
        total += math.exp(values[k] - highest)
    return highest + math.log(total)
