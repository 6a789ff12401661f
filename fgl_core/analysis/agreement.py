"""How far two groupings agree."""

from __future__ import annotations

import numpy as np


def adjusted_rand(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The adjusted Rand index of two groupings (Hubert and Arabie 1985), for many pairs of them at once.

    It counts the pairs of members that are together in both groupings, less what chance would give, in parts
    of the most there could be: 1 for the same groups, 0 on average for groups by chance. Scikit-learn's
    ``adjusted_rand_score`` gives the same for one pair of groupings.

    Args:
        first, second: the group of each member, ``[..., m]``; leading axes are broadcast.

    Returns:
        float64 ``[...]``.
    """
    one, two = _together(np.asarray(first)), _together(np.asarray(second))
    both, first_pairs, second_pairs = ((one & two).sum(-1), one.sum(-1), two.sum(-1))
    expected = first_pairs * second_pairs / max(1, one.shape[-1])
    most = (first_pairs + second_pairs) / 2
    # both groupings are one group, or groups of one: they are the same
    alike = most == expected
    return np.where(alike, 1.0, (both - expected) / np.where(alike, 1.0, most - expected))


def _together(labels: np.ndarray) -> np.ndarray:
    """Whether each pair of members is in one group, bool ``[..., m (m - 1) / 2]``."""
    low, high = np.triu_indices(labels.shape[-1], 1)
    return labels[..., low] == labels[..., high]
