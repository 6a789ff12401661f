"""Signatures, similarities and clusters, by hand and against ImageHash and scikit-learn."""

from __future__ import annotations

import subprocess
import sys

import imagehash
import numpy as np
import pytest
from PIL import Image
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import silhouette_score

from fgl_core.errors import InputError
from fgl_core.signature import (
    cluster,
    cosine_similarity,
    hash_similarity,
    linkage_tree,
    number_of_clusters,
    signature,
    silhouettes,
)

KINDS = {
    "average": imagehash.average_hash,
    "perceptual": imagehash.phash,
    "difference": imagehash.dhash,
    "wavelet": imagehash.whash,
}


def test_average_hash_by_hand():
    # scaled to 0…255 the 64 numbers are one of 0, one of 255 and 62 of 51; their mean is 53.4
    vector = np.full(64, 2.0)
    vector[3], vector[60] = 1.0, 6.0
    expected = np.zeros(64, bool)
    expected[60] = True
    np.testing.assert_array_equal(signature(vector), expected)


def test_average_hash_compares_rounded_pixels_with_their_mean():
    vector = np.random.default_rng(0).normal(size=64)
    pixels = np.rint((vector - vector.min()) / np.ptp(vector) * 255)
    np.testing.assert_array_equal(signature(vector), pixels > pixels.mean())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [64, 16, 36, 1024])
def test_hashes_are_imagehashs(kind, size):
    for seed in range(5):
        vector = np.random.default_rng(seed).normal(size=size) * 40
        side = int(size**0.5)
        image = ((vector - vector.min()) / np.ptp(vector) * 255).round().astype(np.uint8).reshape(side, side)
        expected = KINDS[kind](Image.fromarray(image), hash_size=8).hash.ravel()
        found = signature(vector, kind)
        assert found.shape == (64,)
        assert found.dtype == bool
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_shift_and_scale_leave_the_signature(kind):
    vector = np.random.default_rng(1).integers(0, 256, 64).astype(float)
    vector[:2] = 0, 255
    np.testing.assert_array_equal(signature(vector, kind), signature(3 * vector - 7, kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.0, -3.5, 1e300])
def test_a_constant_vector_has_no_bit_set(kind, value):
    assert not signature(np.full(64, value), kind).any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_not_finite_is_an_error(value):
    vector = np.ones(64)
    vector[5] = value
    with pytest.raises(ArithmeticError, match="not finite"):
        signature(vector)


def test_numbers_that_make_no_square_are_refused():
    with pytest.raises(InputError, match=r"48 numbers.*square"):
        signature(np.arange(48.0))
    with pytest.raises(InputError, match="did you mean 'average'"):
        signature(np.arange(64.0), "avrage")


def test_similarity_is_the_share_of_equal_bits():
    a = np.zeros(64, bool)
    b = a.copy()
    b[:16] = True
    similarity = hash_similarity([a, b, ~a])
    np.testing.assert_allclose(similarity, [[1, 0.75, 0], [0.75, 1, 0.25], [0, 0.25, 1]])
    hashes = [imagehash.ImageHash(bits.reshape(8, 8)) for bits in (a, b, ~a)]
    np.testing.assert_allclose(similarity, [[1 - (x - y) / 64 for y in hashes] for x in hashes])


def test_cosine_by_hand():
    similarity = cosine_similarity([[1, 0], [2, 2], [-3, 0], [0, 0]])
    half = 0.5**0.5
    expected = [[1, half, -1, 0], [half, 1, -half, 0], [-1, -half, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(similarity, expected, atol=1e-12)


def blocks(*sizes: int, within: float = 0.9, between: float = 0.3) -> np.ndarray:
    owner = np.repeat(np.arange(len(sizes)), sizes)
    similarity = np.where(owner[:, None] == owner[None], within, between)
    np.fill_diagonal(similarity, 1)
    return similarity


@pytest.mark.parametrize("algorithm", ["average", "single", "complete", "kmeans"])
def test_blocks_are_found_and_numbered_in_order(algorithm):
    similarity = blocks(3, 2, 4)
    for clusters in (None, 3):
        labels = cluster(similarity, algorithm=algorithm, clusters=clusters)
        assert labels.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]
    mixed = [8, 0, 3, 1, 7, 4, 2, 5, 6]
    labels = cluster(similarity[np.ix_(mixed, mixed)], algorithm=algorithm)
    assert labels.tolist() == [0, 1, 2, 1, 0, 2, 1, 0, 0]


@pytest.mark.parametrize("method", ["average", "single", "complete"])
def test_linkages_are_scipys(method):
    for seed in range(4):
        points = np.random.default_rng(seed).normal(size=(9, 3))
        distance = np.linalg.norm(points[:, None] - points[None], axis=2)
        distance /= 2 * distance.max()
        tree = linkage(squareform(distance, checks=False), method)
        for clusters in range(1, 10):
            expected = fcluster(tree, clusters, "maxclust")
            found = cluster(1 - distance, algorithm=method, clusters=clusters)
            assert len(np.unique(found)) == clusters
            np.testing.assert_array_equal(found[:, None] == found[None], expected[:, None] == expected[None])


def test_the_tree_joins_the_most_alike_first_at_their_distance():
    similarity = np.array([[1, 0.9, 0.4, 0.3], [0.9, 1, 0.6, 0.5], [0.4, 0.6, 1, 0.8], [0.3, 0.5, 0.8, 1]])
    first, second, last = linkage_tree(similarity)
    np.testing.assert_allclose(first, [0, 1, 0.1, 2])
    np.testing.assert_allclose(second, [2, 3, 0.2, 2])
    np.testing.assert_allclose(last, [4, 5, 0.55, 4])  # the mean of 0.6, 0.7, 0.4 and 0.5


def test_number_of_clusters_has_the_best_silhouette():
    for seed in range(5):
        similarity = hash_similarity(np.random.default_rng(seed).random((8, 64)) < 0.5)
        scores = {
            clusters: silhouette_score(
                1 - similarity, cluster(similarity, clusters=clusters), metric="precomputed"
            )
            for clusters in range(2, 8)
        }
        best = max(scores.values())
        expected = 1 if best <= 0 else min(c for c, score in scores.items() if score >= best - 1e-12)
        assert number_of_clusters(similarity) == expected
        assert silhouettes(similarity) == pytest.approx(scores)


@pytest.mark.parametrize("algorithm", ["average", "kmeans"])
def test_one_cluster_where_there_is_nothing_to_tell_apart(algorithm):
    alike = [np.ones((1, 1)), blocks(2), np.ones((5, 5)), blocks(1, 1, 1, 1), blocks(1, 1)]
    for similarity in alike:
        assert cluster(similarity, algorithm=algorithm).tolist() == [0] * len(similarity)
        assert silhouettes(similarity, algorithm=algorithm) == {}


def test_as_many_clusters_as_clients_and_more():
    for algorithm in ("average", "kmeans"):
        for clusters in (5, 9):
            labels = cluster(blocks(2, 3), algorithm=algorithm, clusters=clusters)
            assert labels.tolist() == [0, 1, 2, 3, 4]
        assert cluster(blocks(2, 3), algorithm=algorithm, clusters=1).tolist() == [0] * 5


def test_kmeans_of_clients_that_coincide_warns_of_nothing(recwarn):
    assert cluster(blocks(2, 3, within=1), algorithm="kmeans", clusters=4).max() == 1
    assert cluster(blocks(2, 3, within=1), algorithm="kmeans").tolist() == [0, 0, 1, 1, 1]
    assert not recwarn.list


def test_signatures_need_no_torch():
    code = "import fgl_core.signature, numpy, sys; fgl_core.signature.signature(numpy.arange(64.)); "
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
