"""Own data: a folder of the user's as a dataset that runs, records and notebooks can name.

The folder holds one graph (:mod:`fgl_core.datasets.own_graph`) or a set of graphs
(:mod:`fgl_core.datasets.own_graphs`). Its name, ``own-club-0123456789abcdef``, is made of the folder's name,
or the set's, and of a sha256 of what was read from it: a record says which data it was made on, and a run
never takes others in their place. Where the folder lies is noted in ``data/raw/own``; no record holds a path.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from fgl_core.datasets.own_graph import read_own_graph
from fgl_core.datasets.own_graphs import as_dataset, read_own_graphs, set_name
from fgl_core.datasets.sources import raw_folder
from fgl_core.datasets.transfer import arriving
from fgl_core.errors import InputError

NAME = re.compile(r"own-(?P<bare>[\w.-]+)-(?P<sha256>[0-9a-f]{16})", re.ASCII)


@dataclass(frozen=True)
class OwnData:
    """A folder of own data that was read and found in order.

    Attributes:
        name: what runs call it.
        task: ``node`` (it holds one graph) or ``graph`` (a set of them).
        folder: where it lies.
        sha256: of what was read.
        summary: what it holds, and what was left out.
    """

    name: str
    task: Literal["node", "graph"]
    folder: str
    sha256: str
    summary: str


def own_data(folder: Path | str) -> OwnData:
    """Check a folder of own data and give it the name that runs take as ``dataset`` or ``setting``.

    Raises:
        InputError: one line that says what is wrong with the folder, and where.
    """
    data, _ = _read(Path(folder))
    try:
        with arriving(_note(data.name)) as part:
            part.write_text(json.dumps(asdict(data), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot note in {_note(data.name).parent} where {folder} lies ({error.strerror}); make it"
            " writable, or set FGL_HOME to a folder that is"
        ) from error
    return data


def is_own(name: str) -> bool:
    """Whether a dataset's name is one that :func:`own_data` gives; not whether its folder is there."""
    return NAME.fullmatch(name) is not None


def bare_name(name: str) -> str:
    """The name without what marks it as own data; other names as they are."""
    found = NAME.fullmatch(name)
    return found["bare"] if found else name


def noted(name: str) -> OwnData:
    """What is known of own data by its name.

    Raises:
        InputError: nothing, on this machine.
    """
    note = _note(name)
    try:
        return OwnData(**json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        raise InputError(
            f"nothing here says where {name} lies: give its folder once, `fgl data add FOLDER`"
        ) from None


def load_own(name: str, task: Literal["node", "graph"], *, attributes: bool = False) -> Any:
    """The data of this name, read from its folder anew: for ``node`` a
    :class:`~fgl_core.datasets.node.NodeDataset`, for ``graph`` a
    :class:`~fgl_core.datasets.embedded.GraphDataset`.

    Args:
        task: what it is to be used for.
        attributes: as in :func:`~fgl_core.datasets.groups.load_graph_dataset`.

    Raises:
        InputError: its folder is not known, is gone or damaged, or holds other data than it did.
    """
    before = noted(name)
    folder = Path(before.folder)
    if before.task != task:
        raise InputError(f"{name} is for {before.task} classification, not for {task} classification")
    if not folder.is_dir():
        raise InputError(f"{folder}, the folder of {name}, is gone: `fgl data add` tells where it is now")
    now, content = _read(folder)
    if now.name != name:
        raise InputError(
            f"the data in {folder} have changed since they were called {name} (sha256 {before.sha256[:16]}"
            f" then, {now.sha256[:16]} now): put them back, or take the new ones by `fgl data add {folder}`"
        )
    return content if task == "node" else as_dataset(bare_name(name), content, attributes)


def _note(name: str) -> Path:
    return raw_folder() / "own" / f"{name}.json"


def _read(folder: Path) -> tuple[OwnData, Any]:
    """What a folder holds: about it, and a :class:`NodeDataset` or the arrays of a set of graphs."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is no folder: own data are a folder with an edge list, features and labels"
        )
    if prefix := set_name(folder):
        arrays, sha256, summary = read_own_graphs(folder, prefix)
        return _named(prefix, "graph", folder, sha256, summary), arrays
    dataset, summary = read_own_graph(folder, _spelled(folder.resolve().name))
    return _named(dataset.name, "node", folder, dataset.digest(), summary), dataset


def _named(bare: str, task: Literal["node", "graph"], folder: Path, sha256: str, summary: str) -> OwnData:
    name = f"own-{_spelled(bare)}-{sha256[:16]}"
    return OwnData(name, task, str(folder.resolve()), sha256, summary)


def _spelled(name: str) -> str:
    """A name that can stand in file names, lists with commas and on command lines."""
    return re.sub(r"[^\w.]+", "-", name, flags=re.ASCII).strip("-.")[:40].strip("-.") or "data"
