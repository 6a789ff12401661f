"""Features of a node that depend on its graph's structure alone, for FedStar's second channel."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

WALKS = 16
DEGREES = 16
WIDTH = WALKS + DEGREES
_COLUMNS = 512  # of a matrix power held at a time


def structure_features(offsets: np.ndarray, pointer: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Random walks' return probabilities after 1 to 16 steps, and the degree one-hot (Tan et al. 2023).

    The probabilities are diag((A D⁻¹)^k); a node without neighbours never returns (D⁻¹ = 0). Degrees above 16
    count as 16, degree 0 as 1.

    Args:
        offsets: graph i has the nodes ``offsets[i]`` to ``offsets[i + 1] - 1``, int [g + 1].
        pointer: edges that arrive at node v are ``pointer[v]:pointer[v + 1]``, int [n + 1].
        source: where they come from, counted within the graph, int [2e].

    Returns:
        float32 [n, 32].
    """
    degree = np.diff(pointer)
    features = np.zeros((offsets[-1], WIDTH), np.float32)
    features[np.arange(len(degree)), WALKS + np.clip(degree, 1, DEGREES) - 1] = 1
    scale = np.divide(1, np.sqrt(degree), out=np.zeros(len(degree)), where=degree > 0)
    for first, last in pairwise(offsets):
        size, edges = int(last - first), slice(pointer[first], pointer[last])
        column = source[edges]
        target = np.repeat(np.arange(size), degree[first:last])
        weight = scale[first + target] * scale[first + column]
        step = sp.csr_array((weight, column, pointer[first : last + 1] - pointer[first]), shape=(size, size))
        # dense products cost about a tenth per multiplication
        features[first:last, :WALKS] = _returns(step.toarray() if size**2 < 10 * len(column) else step)
    return features


def _returns(step: np.ndarray | sp.csr_array) -> np.ndarray:
    """diag((A D⁻¹)^k), k = 1…16, [n, 16], from S = D^-½ A D^-½.

    The diagonals of S^k are the same, and as S is symmetric diag(S^(i+j)) is the sum over rows of S^i ∘ S^j:
    eight powers give all sixteen diagonals.
    """
    n = step.shape[0]
    diagonals = np.empty((n, WALKS))
    for start in range(0, n, _COLUMNS):
        columns = np.arange(start, min(start + _COLUMNS, n))
        before = np.zeros((n, len(columns)))
        before[columns, np.arange(len(columns))] = 1
        for number in range(WALKS // 2):
            power = step @ before
            diagonals[columns, 2 * number] = np.einsum("vc,vc->c", before, power)
            diagonals[columns, 2 * number + 1] = np.einsum("vc,vc->c", power, power)
            before = power
    return diagonals
