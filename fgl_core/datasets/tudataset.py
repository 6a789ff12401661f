"""The TU collection's sets for graph classification, from their zips to arrays."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fgl_core.datasets.checks import zip_members
from fgl_core.datasets.embedded import GraphDataset
from fgl_core.datasets.registry import Entry
from fgl_core.datasets.sources import obtain, raw_folder
from fgl_core.datasets.transfer import arriving

PARSED_FORMAT = 1  # bumped when the parsed form changes, so that an older one is made anew
Arrays = dict[str, np.ndarray]


def load_tudataset(entry: Entry, *, attributes: bool = False) -> GraphDataset:
    """Load a set, from its parsed form in the cache where that was made from the very zip that is there.

    Node features are the node labels, one-hot; where there are none the node attributes; where there are
    neither (social networks) the degree, one-hot. Columns are numbered as in PyTorch Geometric: from the
    smallest label to the largest, from degree 0 to the largest.

    Args:
        attributes: put the node attributes, where there are any, before the one-hot labels.

    Raises:
        InputError: the data cannot be had, or a file is damaged.
    """
    folder = raw_folder() / entry.folder
    archive, parsed = folder / f"{entry.name}.zip", folder / "parsed" / f"{entry.name}.npz"
    arrays = _read(parsed, _sha256(archive)) if archive.is_file() else None
    if arrays is None:
        (archive,), _ = obtain(entry)
        arrays = _parse(archive, entry)
        _write(parsed, arrays | {"archive": np.array(_sha256(archive)), "format": np.array(PARSED_FORMAT)})
    return GraphDataset(
        name=entry.name,
        x=node_features(arrays, attributes),
        edges=arrays["edges"].astype(np.int64),
        offsets=arrays["offsets"],
        y=arrays["y"],
        num_classes=int(arrays["y"].max()) + 1,
    )


def node_features(arrays: Arrays, attributes: bool) -> sp.csr_array:
    """The features of all nodes, as :func:`load_tudataset` says, float32 ``[n, f]``.

    Args:
        arrays: ``edges`` and ``offsets``, and of ``labels`` and ``attributes`` what there is.
    """
    parts = []
    if "labels" in arrays:
        parts = [_one_hot(labels - labels.min()) for labels in arrays["labels"].T]
    if "attributes" in arrays and (attributes or not parts):
        parts.insert(0, sp.csr_array(arrays["attributes"]))
    if not parts:
        parts = [_one_hot(np.bincount(arrays["edges"].ravel(), minlength=arrays["offsets"][-1]))]
    return sp.csr_array(sp.hstack(parts, format="csr")) if len(parts) > 1 else parts[0]


def _one_hot(columns: np.ndarray) -> sp.csr_array:
    n = len(columns)
    values = np.ones(n, np.float32), columns.astype(np.int32), np.arange(n + 1, dtype=np.int32)
    return sp.csr_array(values, shape=(n, int(columns.max()) + 1))


def _parse(archive: Path, entry: Entry) -> Arrays:
    """The arrays of a verified zip; nodes are numbered from 0 through all graphs, in file order."""
    with zipfile.ZipFile(archive) as zipped:
        members = zip_members(zipped)

        def table(suffix: str, dtype: type) -> np.ndarray:
            import pandas as pd

            with zipped.open(members[f"{entry.name}_{suffix}.txt"]) as file:
                return pd.read_csv(file, header=None, skipinitialspace=True, dtype=dtype).to_numpy()

        def there(suffix: str) -> bool:
            return f"{entry.name}_{suffix}.txt" in members

        graph = table("graph_indicator", np.int64)[:, 0]
        sizes = np.bincount(graph - 1)
        _, y = np.unique(table("graph_labels", np.int64)[:, 0], return_inverse=True)
        arrays = {
            "offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            "y": y.astype(np.int64),
            "edges": _undirected(table("A", np.int64) - 1, len(graph)),
        }
        if there("node_labels"):
            arrays["labels"] = table("node_labels", np.int64)
        if there("node_attributes"):
            arrays["attributes"] = table("node_attributes", np.float32)
    return arrays


def _undirected(pairs: np.ndarray, n: int) -> np.ndarray:
    """Each undirected edge once as u < v, sorted, int32 [e, 2]; as one number each they sort fast."""
    u, v = pairs[:, 0], pairs[:, 1]
    keys = (np.minimum(u, v) * n + np.maximum(u, v))[u != v]
    keys.sort()  # np.unique takes ten times as long on COLLAB's 25 million
    keys = keys[np.diff(keys, prepend=-1) != 0]
    return np.column_stack(np.divmod(keys, n)).astype(np.int32)


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path, archive: str) -> Arrays | None:
    """The parsed form; None where it is missing or damaged, or of another zip or older code."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            if str(stored["archive"]) != archive or stored["format"] != PARSED_FORMAT:
                return None
            return {name: stored[name] for name in stored if name not in ("archive", "format")}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _write(path: Path, arrays: Arrays) -> None:
    try:
        with arriving(path) as part, open(part, "wb") as file:
            np.savez(file, **arrays)
    except OSError:
        pass  # only a shortcut: without it the text files are read again next time
