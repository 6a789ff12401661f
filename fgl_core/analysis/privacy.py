"""What a server could learn about a client from what it is sent: the attacks behind the privacy page.

The attacker has *shadow* clients, whose graphs it knows, and *target* clients, about which it wants to know
one thing, such as whether most of their graphs are large. It watches both alike and learns from the shadows
to tell (Shokri et al. 2017; Melis et al. 2019). Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fgl_core.signature import signature

#: What the attacker looks at: each a part of what a client sends, or several parts together.
VIEWS: dict[str, tuple[str, ...]] = {
    "signature": ("signature",),
    "representation": ("representation",),
    "update": ("update",),
    "update and signature": ("update", "signature"),
    "update and representation": ("update", "representation"),
    "update and norms": ("update", "norms"),
}
PENALTIES = np.logspace(-3, 5, 17)  # of the attack's linear model; chosen on shadow clients alone


def attack(
    shadow: Mapping[str, np.ndarray], truth: np.ndarray, target: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Guess the truth about each target client, once from each of :data:`VIEWS`.

    A ridge classifier on standardised columns. Each part weighs as much as the others, however many columns
    it has, and the penalty is the one with the least leave-one-out error on the shadow clients.

    Args:
        shadow: by part (``signature``, ``representation``, ``update``, ``norms``) a row per shadow client,
            [n, columns].
        truth: class of each shadow client, int [n].
        target: the same parts of the target clients, [t, columns].

    Returns:
        By view, the guessed class of each target client, int [t].
    """
    from sklearn.linear_model import RidgeClassifierCV

    scaled = {part: _standardised(shadow[part], target[part]) for part in shadow}
    guesses = {}
    for view, parts in VIEWS.items():
        known, unknown = (np.hstack([scaled[part][side] for part in parts]) for side in (0, 1))
        guesses[view] = RidgeClassifierCV(PENALTIES).fit(known, truth).predict(unknown)
    return guesses


def _standardised(shadow: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns with mean 0 over the shadow clients and variance 1 / columns, or 0 where one is constant."""
    from sklearn.preprocessing import StandardScaler

    shadow, target = np.asarray(shadow, dtype=np.float64), np.asarray(target, dtype=np.float64)
    scaler = StandardScaler().fit(shadow)
    width = np.sqrt(shadow.shape[1])
    return scaler.transform(shadow) / width, scaler.transform(target) / width


def kept_by_hash(representations: np.ndarray) -> float:
    """How much of a representation's shape its bits give away: their correlation, mean over clients.

    64 normal numbers and the bits that say which are above their mean correlate by √(2/π) ≈ 0.8. A client
    whose numbers are all equal has no shape, and counts as 0.

    Args:
        representations: [n, d], d as :func:`fgl_core.signature.signature` takes it.
    """
    found = []
    for vector in np.asarray(representations, dtype=np.float64):
        bits = signature(vector)
        found.append(np.corrcoef(vector, bits)[0, 1] if 0 < bits.sum() < len(bits) else 0.0)
    return float(np.mean(found))


def changed_bits(graphs: np.ndarray) -> np.ndarray:
    """How many bits of a client's signature change when one of its graphs is left out, int [n].

    The model stays as it is: what is counted is what the graph does to the mean alone.

    Args:
        graphs: representation of each graph, [n, d], at least two.
    """
    graphs = np.asarray(graphs, dtype=np.float64)
    total, n = graphs.sum(axis=0), len(graphs)
    bits = signature(total / n)
    return np.array([(signature((total - one) / (n - 1)) != bits).sum() for one in graphs])
