"""The sets of graphs by name, the domains they come from, and the settings that put them together.

A setting is a list of sets, one per client (FedCCH, section 5.1).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fgl_core.datasets.embedded import GraphDataset, digits_graphs
from fgl_core.datasets.own import bare_name, is_own, load_own
from fgl_core.datasets.registry import entry
from fgl_core.errors import InputError, unknown

#: Domain → its sets, in the paper's order. The digits are the embedded stand-in for smoke runs and teaching.
DOMAINS: dict[str, tuple[str, ...]] = {
    "molecules": ("MUTAG", "BZR", "COX2", "DHFR", "PTC_MR", "AIDS", "NCI1"),
    "bioinformatics": ("ENZYMES", "DD"),
    "social": ("COLLAB", "IMDB-BINARY", "IMDB-MULTI"),
    "vision": ("Letter-low", "Letter-med", "Letter-high"),
    "digits": ("digits-01", "digits-23", "digits-45", "digits-67", "digits-89"),
}

#: Setting → the sets of its clients. The paper also writes BIO-CHEM-SN for MIX.
SETTINGS: dict[str, tuple[str, ...]] = {
    "CHEM": DOMAINS["molecules"],
    "BIO-CHEM": DOMAINS["molecules"] + DOMAINS["bioinformatics"],
    "MIX": DOMAINS["molecules"] + DOMAINS["bioinformatics"] + DOMAINS["social"],
    "BIO-SN-CV": DOMAINS["bioinformatics"] + DOMAINS["social"] + DOMAINS["vision"],
    "BIO-CV": DOMAINS["bioinformatics"] + DOMAINS["vision"],
    "ALL": DOMAINS["molecules"] + DOMAINS["bioinformatics"] + DOMAINS["social"] + DOMAINS["vision"],
    "DIGITS": DOMAINS["digits"],
}

GRAPH_DATASETS: tuple[str, ...] = (*(name for names in DOMAINS.values() for name in names), "digits-graphs")


def setting_datasets(setting: str) -> tuple[str, ...]:
    """The sets of a setting, given by its name or as their own names with commas: ``MUTAG,BZR``.

    Raises:
        InputError: an unknown name, or a set that is named twice.
    """
    if setting in SETTINGS:
        return SETTINGS[setting]
    names = tuple(name.strip() for name in setting.split(","))
    for name in names:
        if name not in GRAPH_DATASETS and not is_own(name):
            allowed = GRAPH_DATASETS if len(names) > 1 else (*SETTINGS, *GRAPH_DATASETS)
            raise unknown("dataset" if len(names) > 1 else "setting or dataset", name, allowed)
    if len(set(map(bare_name, names))) < len(names):  # clients, and their draws, are called after their sets
        raise InputError(
            f"setting {setting!r} names a dataset twice: name it once, and set clients_per_dataset instead"
        )
    return names


def domain(name: str) -> str:
    """The domain that a set of graphs comes from.

    Raises:
        InputError: unknown name.
    """
    for title, names in DOMAINS.items():
        if name in names:
            return title
    if name == "digits-graphs":
        return "digits"
    if is_own(name):
        raise InputError(f"{name}, own data, is of no domain: take another clustering than domain")
    raise unknown("dataset for graph classification", name, GRAPH_DATASETS)


def registry_name(name: str) -> str:
    """The entry of the registry that holds a set's graphs: the sets of two digits are part of one."""
    return "digits-graphs" if name in DOMAINS["digits"] else name


def load_graph_dataset(name: str, *, attributes: bool = False) -> GraphDataset:
    """Load a set of graphs; fetch and check its files first where needed.

    Args:
        name: one of :data:`GRAPH_DATASETS`, or the name that :func:`~fgl_core.datasets.own.own_data` gave;
            ``digits-01`` to ``digits-89`` hold two digits' images each.
        attributes: add the node attributes of sets that have them beside node labels (BZR, COX2, DHFR, AIDS,
            ENZYMES).

    Raises:
        InputError: an unknown name, data that cannot be had, or a damaged file.
    """
    if is_own(name):
        return load_own(name, "graph", attributes=attributes)
    if name not in GRAPH_DATASETS:
        raise unknown("dataset for graph classification", name, GRAPH_DATASETS)
    if name == "digits-graphs":
        return digits_graphs()
    if name in DOMAINS["digits"]:
        return _some_classes(digits_graphs(), name, [int(digit) for digit in name.removeprefix("digits-")])
    from fgl_core.datasets.tudataset import load_tudataset

    return load_tudataset(entry(name), attributes=attributes)


def _some_classes(dataset: GraphDataset, name: str, classes: list[int]) -> GraphDataset:
    """The graphs of some classes, which are numbered anew in this order."""
    graphs = np.flatnonzero(np.isin(dataset.y, classes))
    sizes = np.diff(dataset.offsets)
    kept = np.zeros(dataset.num_graphs, bool)
    kept[graphs] = True
    nodes = np.repeat(kept, sizes)
    number = np.cumsum(nodes) - 1
    offsets = np.concatenate([[0], np.cumsum(sizes[graphs])])
    return replace(
        dataset,
        name=name,
        x=dataset.x[np.flatnonzero(nodes)],
        edges=number[dataset.edges[nodes[dataset.edges[:, 0]]]],
        offsets=offsets.astype(np.int64),
        y=np.array([classes.index(label) for label in dataset.y[graphs]], dtype=np.int64),
        num_classes=len(classes),
    )
