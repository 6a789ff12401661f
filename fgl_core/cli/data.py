"""``fgl data``: the datasets and where their bytes are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fgl_core.datasets import own_data, sources


def show() -> None:
    """Every dataset: where it is, how large, its licence."""
    rows = [("name", "state", "task", "size", "what it is", "licence")]
    for row in sources.data_status():
        size = f"{row['bytes'] / 1e6:.1f} MB" if row["bytes"] else "-"
        rows.append((row["name"], row["state"], row["task"], size, row["title"], row["licence"]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        print("  ".join(text.ljust(width) for text, width in zip(cells, widths, strict=True)).rstrip())


def fetch(*names: str) -> None:
    """Bring datasets into the cache, checked; all of them when none is named.

    Args:
        names: datasets, as ``fgl data list`` names them.
    """
    with fetching() as progress:
        rows = sources.fetch(names or None, progress)
    for row in rows:
        print(f"{row['name']}: {row['source']}" + (f", now in {row['folder']}" if row["folder"] else ""))


def add(folder: Path, *others: Path) -> None:
    """Check folders of your own data, say what they hold, and give the names that runs and notebooks take.

    Args:
        folder: with edges, features and labels (.csv or .npz), or a set of graphs in TU format.
        others: more of them.
    """
    for each in (folder, *others):
        data = own_data(each)
        print(f"{data.name}: {data.summary}")


def verify(*names: str) -> None:
    """Check the cached files against the registry; a damaged one is kept aside.

    Args:
        names: datasets, as ``fgl data list`` names them.
    """
    for row in sources.verify(names or None):
        print(f"{row['name']}: {row['status']}" + (f", {row['files']} files" if row["files"] else ""))


@contextmanager
def fetching() -> Iterator[Callable[[str, int, int | None], None]]:
    """A progress bar for bytes on their way, drawn only when some are."""
    from tqdm import tqdm

    bars: dict[str, tqdm] = {}

    def advance(what: str, moved: int, total: int | None) -> None:
        if what not in bars:
            bars[what] = tqdm(desc=what, total=total, unit="B", unit_scale=True, file=sys.stderr)
        bars[what].update(moved - bars[what].n)

    try:
        yield advance
    finally:
        for bar in bars.values():
            bar.close()
