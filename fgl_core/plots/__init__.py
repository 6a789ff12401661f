"""Every figure. Drawn on white, in colours that colour-blind readers tell apart, legible on a phone.

Functions take frames from :mod:`fgl_core.study` and return the figure; they compute no results. One file per
kind of figure.
"""

from fgl_core.plots.classes import class_bars
from fgl_core.plots.curves import accuracy_per_round
from fgl_core.plots.dots import accuracy_dots, difference_dots

__all__ = ["accuracy_dots", "accuracy_per_round", "class_bars", "difference_dots"]
