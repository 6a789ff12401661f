"""Linear centred kernel alignment: how alike two representations of the same inputs are."""

from __future__ import annotations

import numpy as np

from fgl_core.errors import InputError


def linear_cka(first: np.ndarray, second: np.ndarray) -> float:
    """``‖YᵀX‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F)`` of column-centred X, Y (Kornblith et al., ICML 2019, section 3).

    0 (nothing in common) to 1 (equal up to an orthogonal transform and one scale).

    Args:
        first: representation of n inputs, [n, p].
        second: representation of the same inputs in the same order, [n, q].

    Raises:
        InputError: the numbers of inputs differ, or a representation is constant, which has no alignment.
    """
    if len(first) != len(second):
        raise InputError(f"{len(first)} and {len(second)} inputs: give both representations the same inputs")
    x = np.asarray(first, dtype=np.float64)
    y = np.asarray(second, dtype=np.float64)
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    scale = np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    if scale == 0:
        raise InputError("a representation is the same for every input: its alignment is not defined")
    return float(np.linalg.norm(y.T @ x) ** 2 / scale)


def pairwise_cka(representations: list[np.ndarray]) -> np.ndarray:
    """Linear CKA between every two representations of the same inputs, float64 ``[m, m]``, diagonal 1."""
    count = len(representations)
    matrix = np.eye(count)
    for i in range(count):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = linear_cka(representations[i], representations[j])
    return matrix
