"""Statistics over seeds, against scipy and against numbers worked out by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from fgl_core.tables.statistics import (
    detectable_difference,
    equivalence,
    holm,
    mean_std,
    paired_interval,
)


def test_mean_and_sample_deviation():
    assert mean_std([1.0, 2.0, 3.0, 6.0]) == pytest.approx((3.0, math.sqrt(14 / 3)))
    assert math.isnan(mean_std([0.5])[1])
    assert all(math.isnan(value) for value in mean_std([]))


def test_paired_interval_by_hand():
    # differences 1, 2, 3: mean 2, standard error 1/sqrt(3), t(0.975, 2) = 4.302653
    interval = paired_interval([1.0, 2.0, 3.0])
    half = 4.302653 / math.sqrt(3)
    assert (interval.low, interval.high) == pytest.approx((2 - half, 2 + half), abs=1e-5)
    assert interval.low < 0 < interval.high


@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_paired_interval_equals_scipy(n):
    rng = np.random.default_rng(n)
    first, second = rng.normal(size=n), rng.normal(loc=0.3, size=n)
    oracle = stats.ttest_rel(first, second)
    bounds = oracle.confidence_interval(0.95)
    interval = paired_interval(first - second)
    assert (interval.low, interval.high, interval.p) == pytest.approx(
        (bounds.low, bounds.high, oracle.pvalue)
    )


def test_few_or_equal_differences():
    assert (paired_interval([0.1]).low, paired_interval([0.1]).high) == (-math.inf, math.inf)
    for equal in ([0.0, 0.0, 0.0], [0.25, 0.25], [0.05263, 0.05264, 0.05263]):  # one graph of 19, rounded
        interval = paired_interval(equal)
        assert (interval.low, interval.high) == (-math.inf, math.inf) and math.isnan(interval.p)
        assert math.isnan(detectable_difference(float(np.std(equal, ddof=1)), len(equal)))


def test_nadeau_and_bengio_by_hand():
    # as above, 20 % for testing and 60 % for training: variance 1/3 + 1/3 where the t interval has 1/3
    corrected = paired_interval([1.0, 2.0, 3.0], test_to_train=20 / 60)
    half = 4.302653 * math.sqrt(2 / 3)
    assert (corrected.low, corrected.high) == pytest.approx((2 - half, 2 + half), abs=1e-5)
    assert corrected.p == pytest.approx(2 * stats.t.sf(2 / math.sqrt(2 / 3), 2))
    assert paired_interval([1.0, 2.0, 3.0], test_to_train=0.0) == paired_interval([1.0, 2.0, 3.0])
    assert math.isnan(paired_interval([1.0, 2.0, 3.0], test_to_train=math.nan).low)


@pytest.mark.parametrize("mean", [-0.03, -0.004, 0.0, 0.012, 0.03])
def test_equivalence_equals_two_one_sided_tests_of_scipy(mean):
    differences = np.random.default_rng(1).normal(mean, 0.005, size=6)
    within, outside = equivalence(differences, 0.01)
    below = stats.ttest_1samp(differences, 0.01, alternative="less").pvalue
    above = stats.ttest_1samp(differences, -0.01, alternative="greater").pvalue
    assert within == pytest.approx(max(below, above))
    assert outside == pytest.approx(min(1, 2 * min(1 - below, 1 - above)))


def test_equivalence_needs_a_spread():
    for values in ([], [0.0], [0.0, 0.0, 0.0]):
        assert all(math.isnan(p) for p in equivalence(values, 0.01))


def test_holm_by_hand():
    # sorted 0.01, 0.02, 0.03, 0.5: times 4, 3, 2, 1 and made monotone
    assert holm([0.03, 0.5, 0.01, 0.02]) == pytest.approx([0.06, 0.5, 0.04, 0.06])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    with_gap = holm([0.02, math.nan, 0.03])
    assert with_gap[0] == pytest.approx(0.04) and math.isnan(with_gap[1])


def test_detectable_difference_is_found_with_the_stated_power():
    std, n = 2.0, 5
    smallest = detectable_difference(std, n)
    samples = np.random.default_rng(0).normal(smallest, std, size=(100_000, n))
    found = stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.01)
    assert detectable_difference(std, 20) < smallest / 2 < detectable_difference(std, 2)
    assert math.isnan(detectable_difference(0.0, 3))
    assert math.isnan(detectable_difference(1.0, 1))
