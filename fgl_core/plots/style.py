"""What all figures share: size, fonts, colours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.typing import ColorType

T = TypeVar("T")
WIDTH = 6.4  # inches; with the font below, text stays legible when a page is 420 pixels wide
ACROSS = 3  # small drawings in a line, so that they stay legible on a phone
GREY = "#767676"  # 4.5:1 on white
# Okabe and Ito's palette; methods also differ in line style, so that no figure depends on colour alone
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
FIXED = {
    "fedavg": ("#0072B2", "-"),
    "fgssl": ("#D55E00", "-"),
    "local": (GREY, ":"),
    "global": ("#000000", "--"),
}
STYLES = ("-.", "--", ":", "-")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
RC = {
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "figure.dpi": 130,
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "fgl_core",
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the book's style; also a decorator."""
    # not matplotlib's rc_context: it would also take back the notebook's own switch to show figures
    before = {name: plt.rcParams[name] for name in RC}
    plt.rcParams.update(RC)
    try:
        yield
    finally:
        plt.rcParams.update(before)


def looks(lines: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Colour and line style by label; a method's first line has the method's own, where it has one.

    No two lines have one colour, as long as there are colours left.

    Args:
        lines: label and method of each line, in the order in which they are drawn.
    """
    listed = list(lines)
    taken = {FIXED[method][0] for _, method in listed if method in FIXED}
    chosen: dict[str, tuple[str, str]] = {}
    for position, (label, method) in enumerate(listed):
        fixed = FIXED.get(method)
        if fixed and fixed not in chosen.values():
            chosen[label] = fixed
            continue
        order = [COLOURS[(position + 2 + further) % 7] for further in range(7)]
        colour = next((colour for colour in order if colour not in taken), order[0])
        chosen[label] = colour, STYLES[position % 4]
        taken.add(colour)
    return chosen


def ink(colour: ColorType) -> str:
    """Black or white, whichever stands out more on a colour: a contrast of 4.5:1 or more.

    Contrast as the Web Content Accessibility Guidelines define it, from relative luminance.
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "white"


def in_lines(groups: Mapping[str, Sequence[T]]) -> list[tuple[str, int, Sequence[T]]]:
    """The members of each group in lines of :data:`ACROSS` at most: group, place of the first, members."""
    return [
        (name, start, members[start : start + ACROSS])
        for name, members in groups.items()
        for start in range(0, len(members), ACROSS)
    ]


def grid(axes: Axes, axis: str) -> None:
    """Faint lines behind the data, along ``x`` or ``y``."""
    axes.grid(axis=axis, color="#d9d9d9", linewidth=0.8)
    axes.set_axisbelow(True)


def note(axes: Axes, text: str) -> None:
    """A word in place of data."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center")
