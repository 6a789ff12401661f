"""Ranks over datasets: by hand, by another library's tables, and as the pages say them."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import friedmanchisquare

from fgl_core import plots
from fgl_core.tables.ranks import ranking


def test_ranks_by_hand_and_blocks_with_a_gap_left_out():
    values = pd.DataFrame(
        {"a": [0.9, 0.8, 0.7, 0.1], "b": [0.8, 0.8, 0.9, np.nan], "c": [0.1, 0.2, 0.3, 0.9]},
        index=["w", "x", "y", "z"],
    )
    found = ranking(values)
    assert found.blocks == 3
    # w: a b c; x: a and b share the first two places; y: b a c
    assert found.ranks.to_dict() == pytest.approx({"a": (1 + 1.5 + 2) / 3, "b": (2 + 1.5 + 1) / 3, "c": 3})
    whole = values.iloc[:3]
    assert found.p == pytest.approx(friedmanchisquare(whole["a"], whole["b"], whole["c"]).pvalue)


@pytest.mark.parametrize(
    "methods, blocks, q", [(2, 10, 1.960), (4, 14, 2.569), (5, 30, 2.728), (10, 9, 3.164)]
)
def test_the_critical_difference_is_that_of_demsars_table(methods, blocks, q):
    """q is from Table 5 (a) of the paper, two-tailed Nemenyi test at 0.05."""
    rng = np.random.default_rng(0)
    values = pd.DataFrame(rng.random((blocks, methods)), columns=list("abcdefghij"[:methods]))
    expected = q * np.sqrt(methods * (methods + 1) / (6 * blocks))
    assert ranking(values).critical == pytest.approx(expected, abs=2e-3)


def test_groups_join_what_is_not_told_apart():
    # forty blocks in one order: neighbours in rank are 1 apart, and the critical difference is about 0.74
    ordered = pd.DataFrame(np.tile([0.9, 0.8, 0.7, 0.6], (40, 1)), columns=list("abcd"))
    assert ranking(ordered).groups == [] and "are not all alike" in ranking(ordered).sentence("datasets")
    few = ranking(ordered.iloc[:5])  # 2.10: neighbours, and those two apart, are joined
    assert few.groups == [("a", "c"), ("b", "d")]
    assert "Over 5 datasets" in few.sentence("datasets") and "**2.10**" in few.sentence("datasets")


def test_too_little_to_rank_is_said_and_drawn():
    for values in (
        pd.DataFrame({"a": [0.5], "b": [0.6]}),
        pd.DataFrame({"a": [np.nan, 0.4], "b": [0.1, 0.2]}),
    ):
        found = ranking(values)
        assert found.sentence("cells").startswith("Fewer than two cells")
        plots.rank_line(found).draw_without_rendering()
    plots.rank_line(ranking(pd.DataFrame())).draw_without_rendering()
