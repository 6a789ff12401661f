"""FedCCH's signatures: a hash of what a client's graphs look like to its model; clusters of alike clients.

Nothing here needs torch: representations come as NumPy arrays.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from fgl_core.errors import InputError, unknown

Hash = Literal["average", "perceptual", "difference", "wavelet"]
Linkage = Literal["average", "single", "complete"]
SIDE = 8  # bits along each side of the hash
STARTS = 10  # of k-means


def signature(vector: np.ndarray, kind: Hash = "average") -> np.ndarray:
    """The hash of a vector read as a square image (FedCCH, eq. 10).

    The numbers are scaled to 0…255 (smallest to largest) and rounded; ImageHash does the rest. A constant
    vector has no pattern: all its bits are 0.

    Args:
        vector: [d], d a square number; 64 in the paper, an image of 8 × 8.
        kind: ``average`` (bit = pixel above the mean), ``perceptual``, ``difference`` or ``wavelet``.

    Returns:
        bool [64].

    Raises:
        InputError: d is not a square number, or there is no such hash.
        ArithmeticError: the vector holds NaN or infinity.
    """
    vector = np.asarray(vector, dtype=np.float64)
    if not np.isfinite(vector).all():
        raise ArithmeticError("the representation is not finite, so that it has no signature")
    side = image_side(len(vector))
    hashes = {"average": "average_hash", "perceptual": "phash", "difference": "dhash", "wavelet": "whash"}
    if kind not in hashes:
        raise unknown("hash", kind, hashes)
    low, high = vector.min(), vector.max()
    if low == high:
        return np.zeros(SIDE**2, bool)
    pixels = np.rint((vector - low) / (high - low) * 255).astype(np.uint8).reshape(side, side)

    import imagehash
    from PIL import Image

    return getattr(imagehash, hashes[kind])(Image.fromarray(pixels), hash_size=SIDE).hash.ravel()


def image_side(length: int) -> int:
    """Pixels along each side of the square image that a vector of this length makes; hashes scale any square.

    Raises:
        InputError: the length is no square number.
    """
    side = math.isqrt(length)
    if side**2 != length or side == 0:
        raise InputError(
            f"a signature reads {length} numbers as a square image: their number, the hidden width, must be a"
            " square such as 64"
        )
    return side


def hash_similarity(signatures: np.ndarray) -> np.ndarray:
    """``E_ij = 1 − Hamming(S_i, S_j) / len(S)`` (FedCCH, eqs. 11 and 12).

    Args:
        signatures: bool [m, bits].

    Returns:
        float64 [m, m], 0 to 1.
    """
    signatures = np.asarray(signatures, dtype=bool)
    return 1 - (signatures[:, None] != signatures[None]).mean(axis=2)


def cosine_similarity(vectors: np.ndarray) -> np.ndarray:
    """Cosine of the representations themselves, what the paper's ablation puts in the hash's place.

    Args:
        vectors: [m, d]; the cosine with a zero vector is 0.

    Returns:
        float64 [m, m], with 1 on the diagonal.
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    similarity = np.clip(unit @ unit.T, -1, 1)
    np.fill_diagonal(similarity, 1)
    return similarity


def cluster(
    similarity: np.ndarray,
    *,
    algorithm: Linkage | Literal["kmeans"] = "average",
    clusters: int | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Clusters of alike clients (FedCCH, section 4.3).

    Args:
        similarity: E, [m, m].
        algorithm: hierarchical clustering on 1 − E with this linkage, or k-means on the rows of E.
        clusters: how many, capped at m; None chooses by silhouette (:func:`number_of_clusters`).
        seed: of k-means.

    Returns:
        int64 [m], clusters numbered in the order in which they first occur.
    """
    similarity = np.asarray(similarity, dtype=np.float64)
    if clusters is None:
        clusters = number_of_clusters(similarity, algorithm=algorithm, seed=seed)
    return _labels(similarity, min(clusters, len(similarity)), algorithm, seed)


def number_of_clusters(
    similarity: np.ndarray, *, algorithm: Linkage | Literal["kmeans"] = "average", seed: int = 0
) -> int:
    """The number with the best silhouette on 1 − E among 2…m − 1, the smallest on ties.

    1 when there is nothing to tell apart: fewer than three clients, all distances equal, or no silhouette
    above 0.
    """
    best, chosen = 0.0, 1
    for clusters, score in silhouettes(similarity, algorithm=algorithm, seed=seed).items():
        if score > best + 1e-12:
            best, chosen = score, clusters
    return chosen


def silhouettes(
    similarity: np.ndarray, *, algorithm: Linkage | Literal["kmeans"] = "average", seed: int = 0
) -> dict[int, float]:
    """The mean silhouette on 1 − E by number of clusters, 2…m − 1 (Rousseeuw 1987), -1 to 1.

    A number that k-means does not reach, as clients coincide, is left out; nothing is left where there is
    nothing to tell apart: fewer than three clients, or all distances equal.
    """
    from sklearn.metrics import silhouette_score

    similarity = np.asarray(similarity, dtype=np.float64)
    m = len(similarity)
    distance = _distance(similarity)
    if m < 3 or np.ptp(distance[np.triu_indices(m, 1)]) < 1e-12:
        return {}
    scores = {}
    for clusters in range(2, m):
        labels = _labels(similarity, clusters, algorithm, seed)
        if len(np.unique(labels)) == clusters:
            scores[clusters] = float(silhouette_score(distance, labels, metric="precomputed"))
    return scores


def linkage_tree(similarity: np.ndarray) -> np.ndarray:
    """The tree that clustering by average linkage on 1 − E cuts, as SciPy's ``dendrogram`` takes it.

    Returns:
        float64 [m − 1, 4]: in each row the two branches that are joined, their distance, and how many clients
        they hold.
    """
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    return hierarchy.linkage(squareform(_distance(np.asarray(similarity, dtype=np.float64))), "average")


def _labels(similarity: np.ndarray, clusters: int, algorithm: str, seed: int) -> np.ndarray:
    m = len(similarity)
    if clusters <= 1:
        return np.zeros(m, np.int64)
    if clusters >= m:
        return np.arange(m)
    if algorithm == "kmeans":
        from sklearn.cluster import KMeans

        clusters = min(clusters, len(np.unique(similarity, axis=0)))
        model = KMeans(clusters, n_init=STARTS, random_state=seed)
        return in_order(model.fit_predict(similarity))
    from sklearn.cluster import AgglomerativeClustering

    model = AgglomerativeClustering(clusters, metric="precomputed", linkage=algorithm)
    return in_order(model.fit_predict(_distance(similarity)))


def _distance(similarity: np.ndarray) -> np.ndarray:
    distance = np.maximum(1 - similarity, 0)
    np.fill_diagonal(distance, 0)
    return distance


def in_order(labels: np.ndarray) -> np.ndarray:
    """The same clusters, numbered in the order in which they first occur, int64 [m]."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)
