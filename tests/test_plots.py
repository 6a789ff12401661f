"""What all figures share."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from fgl_core.plots.heat import Heat, heat_maps
from fgl_core.plots.style import COLOURS, FIXED, ink, looks
from fgl_core.plots.sweeps import sweep_lines


def test_a_method_keeps_its_look_and_no_two_lines_have_one_colour():
    methods = ["fedavg", "fedprox", "fedstar", "gcfl", "fedcch", "fedcch"]
    chosen = looks((f"{method} {number}", method) for number, method in enumerate(methods))
    assert chosen["fedavg 0"] == FIXED["fedavg"]
    assert len({colour for colour, _ in chosen.values()}) == len(methods)
    last = looks([("a", "fedprox"), ("FGSSL", "fgssl")])
    assert last["FGSSL"] == FIXED["fgssl"] and last["a"][0] != FIXED["fgssl"][0]


def test_lines_beyond_the_palette_differ_in_colour_or_style():
    chosen = looks((str(number), "fedprox") for number in range(len(COLOURS) + 2))
    assert len(chosen) == len(set(chosen.values())) == len(COLOURS) + 2


@pytest.mark.parametrize(
    ("colour", "word"),
    # contrasts with black and with white: 1 and 21; 21 and 1; 5.3 and 3.9; 3.7 and 5.7
    [("black", "white"), ("white", "black"), ("#808080", "black"), ("#666666", "white")],
)
def test_words_on_a_colour_stand_out(colour, word):
    assert ink(colour) == word


def test_words_on_a_map_of_colours_change_once_from_white_to_black():
    words = [ink(plt.colormaps["cividis"](step / 100)) for step in range(101)]
    assert words == sorted(words, reverse=True) and set(words) == {"white", "black"}


def test_a_map_without_values_has_no_colours_to_read():
    full, empty = Heat("cora", np.arange(9.0).reshape(3, 3)), Heat("pubmed", np.full((3, 3), np.nan))
    figure = heat_maps([[full, full, empty]], ["points"] * 3)
    bars = [axes for axes in figure.axes if axes.get_label() == "<colorbar>"]
    assert [bar.axison for bar in bars] == [True, True, False]
    figure.canvas.draw()
    for bar in bars[:2]:
        words = [
            text.get_window_extent()
            for text in bar.get_xticklabels()
            if bar.viewLim.x0 <= text.get_position()[0] <= bar.viewLim.x1
        ]
        assert len(words) >= 2
        assert all(left.x1 < right.x0 for left, right in pairwise(words))


def test_a_panel_without_runs_has_no_scale():
    columns = ["dataset", "clients", "tau", "mean", "std", "n", "diverged"]
    rows = [("cora", 5, 0.1, 0.8, 0.01, 5, 0), ("cora", 5, 1.0, 0.7, 0.01, 5, 0)]
    rows += [("pubmed", 5, tau, np.nan, np.nan, 0, 0) for tau in (0.1, 1.0)]
    figure = sweep_lines(pd.DataFrame(rows, columns=columns), "tau", "Temperature")
    drawn, empty = figure.axes
    assert len(drawn.get_yticks()) > 2 and len(empty.get_yticks()) == 0
    assert [text.get_text() for text in empty.texts] == ["missing", "missing"]
