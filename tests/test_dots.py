"""Dots of differences: where they stand, and how tall the figure is."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from fgl_core.plots import difference_dots


def frame_of(places, methods=("A", "B", "C")):
    rows = [
        {"dataset": dataset, "clients": number, "method": method, "measure": "test_accuracy"}
        for dataset, number in places
        for method in methods
    ]
    known = {"difference": 0.01, "low": -0.01, "high": 0.03, "pairs": 2}
    return pd.DataFrame(rows).assign(**known)


def heights(axes):
    return [float(height) for bars in axes.containers for height in bars.lines[0].get_ydata()]


def test_settings_with_a_number_of_clients_of_their_own_have_dots_on_their_lines():
    figure = difference_dots(frame_of([("CHEM", 7), ("MIX", 12), ("ALL", 15)]), None)
    for axes in figure.axes:
        assert heights(axes) == [0, 1, 2]
    assert figure.get_size_inches()[1] == pytest.approx(0.9 + 3 * (0.5 + 0.4 * 3))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "7 clients",
        "12 clients",
        "15 clients",
    ]
    plt.close(figure)


def test_several_numbers_of_clients_stand_side_by_side():
    figure = difference_dots(frame_of([("cora", 5), ("cora", 7), ("cora", 10), ("pubmed", 5)]), None)
    cora, pubmed = figure.axes
    assert heights(cora) == pytest.approx([-0.25, 0.75, 1.75, 0, 1, 2, 0.25, 1.25, 2.25])
    assert heights(pubmed) == [0, 1, 2]
    plt.close(figure)


def test_one_value_far_out_does_not_squeeze_the_others():
    frame = frame_of([("cora", 5)], methods="ABCDEFGH")
    figure = difference_dots(frame, None)
    assert figure.axes[0].get_xscale() == "linear"
    plt.close(figure)
    frame.loc[0, ["difference", "low", "high"]] = [-0.55, -0.57, -0.53]
    frame.loc[1, ["difference", "low", "high"]] = [float("nan")] * 3  # no runs
    figure = difference_dots(frame, None)
    (axes,) = figure.axes
    place = axes.transData.transform
    width = axes.get_window_extent().width
    # one point each way takes more than a tenth of the figure, and the far dot is still on it
    assert (place((1, 0)) - place((-1, 0)))[0] > 0.1 * width
    assert axes.get_xlim()[0] < -55 and "logarithmic beyond ±1" in axes.get_xlabel()
    assert "\N{MINUS SIGN}50" in [text.get_text() for text in axes.get_xticklabels()]
    plt.close(figure)


def test_values_that_are_mostly_zero_keep_a_linear_axis():
    frame = frame_of([("cora", 5)], methods="ABCDE").assign(difference=0.0, low=0.0, high=0.0)
    frame.loc[0, ["difference", "low", "high"]] = [0.003, 0.001, 0.005]
    figure = difference_dots(frame, None)
    assert figure.axes[0].get_xscale() == "linear"
    plt.close(figure)


def test_a_dataset_without_any_run_is_a_line_that_says_so():
    frame = frame_of([("CHEM", 7), ("MIX", 12)])
    lacks = frame["dataset"] == "MIX"
    frame.loc[lacks, ["difference", "low", "high"]] = float("nan")
    frame.loc[lacks, "pairs"] = 0
    figure = difference_dots(frame, None)
    full, empty = figure.axes
    assert [text.get_text() for text in empty.texts] == ["missing"] and not full.texts
    assert [axes.get_title(loc="left") for axes in (full, empty)] == ["CHEM", "MIX"]
    assert len(full.get_yticklabels()) == frame["method"].nunique() and not empty.get_yticklabels()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["7 clients"]
    plt.close(figure)
