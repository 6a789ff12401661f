"""Small datasets in the raw form of Planetoid, with the registry entries that describe them."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fgl_core.datasets.citation import _from_planetoid
from fgl_core.datasets.registry import Entry, RawFile

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
FOLDER = "planetoid/citeseer/raw"


@dataclass(frozen=True)
class Made:
    """A made-up Citeseer: what was written, as arrays, and its registry entry."""

    entry: Entry
    x: np.ndarray  # [n, f], zero for the gaps
    y: np.ndarray  # [n], -1 for the gaps
    edges: np.ndarray  # [e, 2], u < v, sorted


def write_citeseer(root: Path, seed: int = 0) -> Made:
    """Write 8 raw files below ``root``; nodes 515 and 518 stand in no file, as 15 nodes of Citeseer do.

    The listed order of test nodes is shuffled, the graph lists self-loops, repeats and both directions.
    """
    rng = np.random.default_rng(seed)
    n, known, labelled, classes = 522, 510, 8, 3  # PyG wants 500 nodes after the labelled ones
    gaps = [515, 518]
    x = (rng.random((n, 12)) < 0.3).astype(np.float32)
    y = rng.integers(classes, size=n)
    y[:classes] = range(classes)
    pairs = rng.integers(n, size=(900, 2))
    x[gaps], y[gaps] = 0, -1
    listed = rng.permutation([node for node in range(known, n) if node not in gaps])
    graph: dict[int, list[int]] = {node: [] for node in range(n)}
    for u, v in pairs.tolist():
        graph[u].append(v)
        graph[v].append(u)
    onehot = np.eye(classes, dtype=np.int32)
    contents = {
        "x": sp.csr_matrix(x[:labelled]),
        "tx": sp.csr_matrix(x[listed]),
        "allx": sp.csr_matrix(x[:known]),
        "y": onehot[y[:labelled]],
        "ty": onehot[y[listed]],
        "ally": onehot[y[:known]],
        "graph": graph,
    }
    folder = root / FOLDER
    folder.mkdir(parents=True)
    for part, content in contents.items():
        (folder / f"ind.citeseer.{part}").write_bytes(pickle.dumps(content, protocol=2))
    (folder / "ind.citeseer.test.index").write_text("".join(f"{node}\n" for node in listed))
    paths = [folder / f"ind.citeseer.{part}" for part in PARTS]
    files = tuple(
        RawFile(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), "bytes", path.stat().st_size)
        for path in paths
    )
    entry = Entry("citeseer", "made up", "planetoid", "node", "none", "none", FOLDER, files)
    edges = np.array(sorted({(min(u, v), max(u, v)) for u, v in pairs.tolist() if u != v}))
    return Made(replace(entry, parsed=_from_planetoid("citeseer", paths).digest()), x, y, edges)


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def raw(home: Path) -> Path:
    return home / "data" / "raw"


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    path.write_bytes(
        {
            "truncated": content[:-1],
            "longer": content + b"\n",
            "changed": bytes([content[0] ^ 1]) + content[1:],
            "empty": b"",
        }[how]
    )
