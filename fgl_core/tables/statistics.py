"""Statistics over seeds: what a few repetitions can and cannot say.

Methods are compared seed by seed: two runs of one seed share partition, split and initialisation, so their
difference varies less than either accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np

LEVEL = 0.05  # of tests; intervals hold with the rest of the probability
POWER = 0.8  # with which a detectable difference is found
ROUNDING = 2e-5  # records hold five digits: differences that vary by less are equal


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval and the p-value against 0; in the unit of the values."""

    mean: float
    low: float
    high: float
    p: float
    n: int


def mean_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation (n - 1); the deviation of one value is unknown (nan)."""
    array = np.asarray(values, dtype=float)
    if len(array) == 0:
        return nan, nan
    return float(array.mean()), float(array.std(ddof=1)) if len(array) > 1 else nan


def paired_interval(differences: Sequence[float], *, test_to_train: float = 0.0) -> Interval:
    """Student's 95 % t interval of the mean of paired differences, df = n - 1.

    A percentile bootstrap of five values would cover about 83 %, not 95 %. With fewer than two values, or
    when all are equal (a small test set gives few distinct accuracies), nothing is known of the spread: the
    interval is the whole line and there is no p-value.

    Args:
        test_to_train: test examples per training example. Splits drawn from the same examples overlap, and
            their results are less independent than they look; Nadeau and Bengio (Machine Learning 52, 2003)
            therefore take 1/n + ``test_to_train`` where the t interval has 1/n. 0 is the plain interval.
    """
    from scipy.stats import t

    mean, std = mean_std(differences)
    n = len(differences)
    if n < 2 or std <= ROUNDING:
        return Interval(mean, -inf, inf, nan, n)
    error = std * sqrt(1 / n + test_to_train)
    half = float(t.ppf(1 - LEVEL / 2, n - 1)) * error
    p = 2 * float(t.sf(abs(mean) / error, n - 1))
    return Interval(mean, mean - half, mean + half, p, n)


def equivalence(differences: Sequence[float], margin: float) -> tuple[float, float]:
    """Two questions to paired differences: is their true mean surely within ± ``margin``, surely outside?

    Returns:
        Two p-values. Within: the larger of two one-sided t tests (TOST). Outside: twice the smaller of the
        tests that it lies above the margin, and below minus the margin, as either would do. Both nan
        where there is no spread to measure by.
    """
    from scipy.stats import ttest_1samp

    if len(differences) < 2 or mean_std(differences)[1] <= ROUNDING:
        return nan, nan

    def p_value(edge: float, side: str) -> float:
        return float(ttest_1samp(differences, edge, alternative=side).pvalue)

    within = max(p_value(margin, "less"), p_value(-margin, "greater"))
    outside = min(p_value(margin, "greater"), p_value(-margin, "less"))
    return within, min(1.0, 2 * outside)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given; nan (no test) stays nan and is not counted."""
    tests = sorted((p, index) for index, p in enumerate(p_values) if not np.isnan(p))
    adjusted = [nan] * len(p_values)
    running = 0.0
    for rank, (p, index) in enumerate(tests):
        running = max(running, min(1.0, (len(tests) - rank) * p))
        adjusted[index] = running
    return adjusted


def detectable_difference(std: float, n: int) -> float:
    """The smallest true mean difference that a two-sided paired t test at 5 % finds with probability 0.8.

    Args:
        std: standard deviation of the paired differences.
        n: number of pairs.

    Returns:
        the difference in the unit of ``std``, from the noncentral t distribution; nan below two pairs, or
        when they show no spread.
    """
    from scipy.optimize import brentq
    from scipy.stats import nct, t

    if n < 2 or np.isnan(std) or std <= ROUNDING:
        return nan
    critical = float(t.ppf(1 - LEVEL / 2, n - 1))

    def shortfall(noncentrality: float) -> float:
        # finding it with the wrong sign is left out: at usual powers that adds less than 1e-6
        return float(nct.sf(critical, n - 1, noncentrality)) - POWER

    return float(brentq(shortfall, 0, 2 * critical + 2)) * std / sqrt(n)
