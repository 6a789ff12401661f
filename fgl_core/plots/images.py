"""Small grey pictures, a row of them per name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from fgl_core.plots.style import WIDTH, note, styled


@styled()
def image_rows(rows: Mapping[str, Sequence[np.ndarray | None]], title: str) -> Figure:
    """Pictures side by side, a row per name and a column per client, all on one scale of ink.

    Args:
        rows: by name, each client's picture ``[height, width]``, 0 (white) to 1 (black); None where there is
            none.
        title: of a column; the client's number follows.
    """
    columns = max(map(len, rows.values()))
    side = WIDTH / columns
    figure, places = plt.subplots(
        len(rows),
        columns,
        figsize=(WIDTH, 0.3 + (side + 0.1) * len(rows)),
        squeeze=False,
        layout="constrained",
    )
    for axes in places.flat:
        axes.set_axis_off()
    for number, axes in enumerate(places[0], start=1):
        axes.set_title(f"{title} {number}", fontsize=11)
    for line, (name, pictures) in zip(places, rows.items(), strict=True):
        for axes, picture in zip(line, pictures, strict=False):
            if picture is None:
                note(axes, "none")
            else:
                axes.imshow(picture, cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
        line[0].text(-0.08, 0.5, name, transform=line[0].transAxes, rotation=90, ha="right", va="center")
    return figure
