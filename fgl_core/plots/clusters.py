"""How clients cluster: their tree beside their similarities, and what the number of clusters does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from fgl_core.plots.heat import GAP, MAP
from fgl_core.plots.style import COLOURS, WIDTH, grid, ink, note, styled

LINE, CHOICE = COLOURS[0], COLOURS[1]


@styled()
def client_tree(
    names: Sequence[str], similarity: np.ndarray, tree: np.ndarray | None, clusters: np.ndarray
) -> Figure:
    """The tree that joins alike clients, and their similarities in the order of its leaves.

    A dashed line cuts the tree into the clusters, boxes mark them in the matrix.

    Args:
        names: of the clients, m; none draws that there is no record.
        similarity: E, ``[m, m]``.
        tree: from :func:`fgl_core.signature.linkage_tree`; None for a single client.
        clusters: each client's cluster, int ``[m]``.
    """
    from scipy.cluster.hierarchy import dendrogram

    m = len(names)
    height = 1.2 + 0.42 * max(m, 4)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(WIDTH, height), width_ratios=(1, 2.2), layout="constrained"
    )
    if m == 0:
        for axes in (left, right):
            axes.set_axis_off()
        note(right, "no record yet")
        return figure
    order = list(range(m))
    if tree is not None:
        order = dendrogram(tree, orientation="left", no_labels=True, ax=left, link_color_func=lambda _: LINE)[
            "leaves"
        ]
        left.invert_yaxis()  # the first leaf on top, as the matrix has it
        _cut(left, tree, len(np.unique(clusters)))
    left.set_yticks([])
    left.set_xlabel("Distance 1 − E")
    left.spines["left"].set_visible(False)
    between = similarity[~np.eye(m, dtype=bool)] if m > 1 else np.array([0.0, 1.0])
    sns.heatmap(
        similarity[np.ix_(order, order)],
        cmap=MAP,
        vmin=between.min(),
        vmax=between.max(),
        mask=np.eye(m, dtype=bool),  # a client is like itself: 1 would take up most of the colours
        annot=m <= 9,
        fmt=".2f",
        annot_kws={"fontsize": 10},
        xticklabels=[names[client] for client in order],
        yticklabels=[names[client] for client in order],
        cbar=False,
        ax=right,
    )
    right.set_facecolor(GAP)
    right.tick_params(axis="x", rotation=90, labelsize=10)
    right.tick_params(axis="y", rotation=0, labelsize=10)
    _boxes(right, np.asarray(clusters)[order])
    colours = right.collections[0]
    for text in right.texts:
        text.set_color(ink(colours.to_rgba(float(text.get_text()))))
    # below both, so that leaves stay in line with rows
    figure.colorbar(colours, ax=[left, right], location="bottom", shrink=0.6, label="Similarity E")
    return figure


def _cut(axes: Axes, tree: np.ndarray, clusters: int) -> None:
    """A line through the tree that leaves so many branches."""
    heights = [0.0, *tree[:, 2]]
    low = heights[len(heights) - clusters]
    high = heights[len(heights) - clusters + 1] if clusters > 1 else 1.1 * low
    axes.axvline((low + high) / 2, color=CHOICE, linestyle="--")


def _boxes(axes: Axes, clusters: np.ndarray) -> None:
    """A box around each run of neighbours of one cluster."""
    starts = [0, *(np.flatnonzero(np.diff(clusters)) + 1), len(clusters)]
    for first, last in pairwise(starts):
        box = Rectangle((first, first), last - first, last - first, fill=False, edgecolor=CHOICE, linewidth=3)
        box.set_clip_on(False)
        axes.add_patch(box)


@styled()
def company_bands(names: Sequence[str], groups: np.ndarray) -> Figure:
    """A band per client along the rounds: in a round, bands of one colour were averaged together.

    Args:
        names: of the clients, m; none draws that there is no record.
        groups: int ``[rounds, m]``, as :func:`fgl_core.tables.clusterings.company` numbers them: -1, in grey,
            was alone; beyond seven groups, colours come again.
    """
    figure, axes = plt.subplots(figsize=(WIDTH, 1.2 + 0.3 * max(len(names), 4)), layout="constrained")
    if not len(names):
        axes.set_axis_off()
        note(axes, "no record yet")
        return figure
    colours = ListedColormap([GAP, *COLOURS])
    extent = (0.5, len(groups) + 0.5, len(names) - 0.5, -0.5)
    axes.imshow(
        np.where(groups < 0, -1, groups % len(COLOURS)).T,
        cmap=colours,
        vmin=-1,
        vmax=len(COLOURS) - 1,
        aspect="auto",
        interpolation="nearest",
        extent=extent,
    )
    axes.set_yticks(range(len(names)), names)
    axes.set_yticks(np.arange(len(names) - 1) + 0.5, minor=True)
    axes.grid(axis="y", which="minor", color="white", linewidth=2)
    axes.tick_params(axis="y", which="both", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("Round")
    axes.spines[["left", "bottom"]].set_visible(False)
    return figure


@styled()
def cluster_numbers(fixed: pd.DataFrame, chosen: pd.DataFrame, rounds: pd.DataFrame) -> Figure:
    """Mean accuracy with a fixed number of clusters, beside what choosing the number in each round gives.

    Per setting, above: accuracy by number, bars of one standard deviation; a dashed line and its band for the
    runs that choose, with a diamond at the mean number they choose. Below: in which share of the rounds they
    choose each number.

    Args:
        fixed: rows of a comparison, with a column ``clusters``.
        chosen: rows of the same comparison, of the runs that choose.
        rounds: their rounds, from :func:`fgl_core.tables.clusterings.clustering_rounds`.
    """
    settings = list(dict.fromkeys(fixed["dataset"]))
    figure, panels = plt.subplots(
        2 * len(settings),
        1,
        figsize=(WIDTH, 0.6 + 4.0 * len(settings)),
        height_ratios=[3, 1] * len(settings),
        squeeze=False,
        layout="constrained",
    )
    for setting, above, below in zip(settings, panels[::2, 0], panels[1::2, 0], strict=True):
        rows = fixed[fixed["dataset"] == setting].sort_values("clusters")
        seen = rounds[rounds["dataset"] == setting]["number"]
        below.sharex(above)
        _by_number(above, rows)
        for _, row in chosen[chosen["dataset"] == setting].iterrows():
            _choice(above, row, seen)
        above.set_title(setting, loc="left")
        above.set_ylabel("Test accuracy\nin %")
        shares = seen.value_counts(normalize=True)
        below.bar(shares.index, 100 * shares, color=CHOICE)
        below.set_ylabel("% of\nrounds")
        if seen.empty:
            note(below, "no record yet")
        below.set_xlim(0.5, max(rows["clusters"]) + 0.5)
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        grid(above, "y")
        grid(below, "y")
    panels[-1, 0].set_xlabel("Number of clusters")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _by_number(axes: Axes, rows: pd.DataFrame) -> None:
    axes.errorbar(
        rows["clusters"],
        100 * rows["mean"],
        yerr=100 * rows["std"].fillna(0),
        color=LINE,
        marker="o",
        capsize=3,
        label="fixed number",
    )
    place = axes.get_xaxis_transform()  # x in data, y in parts of the axis
    for number in rows.loc[rows["n"] == 0, "clusters"]:
        axes.text(
            number, 0.03, "missing", transform=place, ha="center", fontsize=10, style="italic", color=LINE
        )


def _choice(axes: Axes, row: pd.Series, numbers: pd.Series) -> None:
    mean, spread = 100 * row["mean"], 100 * np.nan_to_num(row["std"])
    if np.isnan(mean):
        return
    axes.axhline(mean, color=CHOICE, linestyle="--", label="chosen by silhouette in each round")
    axes.axhspan(mean - spread, mean + spread, color=CHOICE, alpha=0.15, linewidth=0)
    axes.plot(numbers.mean(), mean, color=CHOICE, marker="D", markersize=9, linestyle="none")
