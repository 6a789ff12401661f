"""Every figure. Drawn on white, in colours that colour-blind readers tell apart, legible on a phone.

Functions take frames of :mod:`fgl_core.tables`, or arrays, and return the figure; they compute no results.
One file per kind of figure.
"""

from fgl_core.plots.classes import class_bars, class_panels
from fgl_core.plots.clusters import client_tree, cluster_numbers, company_bands
from fgl_core.plots.curves import accuracy_per_round, per_round
from fgl_core.plots.deviations import deviation_dots
from fgl_core.plots.dots import difference_dots
from fgl_core.plots.drawings import graph_drawings
from fgl_core.plots.heat import Heat, heat_maps
from fgl_core.plots.images import image_rows
from fgl_core.plots.networks import client_networks, spreading
from fgl_core.plots.ranks import rank_line
from fgl_core.plots.shares import share_bars
from fgl_core.plots.speed import growth_lines, ratio_dots
from fgl_core.plots.spreads import spreads
from fgl_core.plots.sweeps import sweep_lines
from fgl_core.plots.trials import trial_panels

__all__ = [
    "Heat",
    "accuracy_per_round",
    "class_bars",
    "class_panels",
    "client_networks",
    "client_tree",
    "cluster_numbers",
    "company_bands",
    "deviation_dots",
    "difference_dots",
    "graph_drawings",
    "growth_lines",
    "heat_maps",
    "image_rows",
    "per_round",
    "rank_line",
    "ratio_dots",
    "share_bars",
    "spreading",
    "spreads",
    "sweep_lines",
    "trial_panels",
]
