"""What all tests share: real data where it is at hand, and no network anywhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fgl_core.datasets import (
    NODE_DATASETS,
    GraphDataset,
    NodeDataset,
    load_graph_dataset,
    load_node_dataset,
)
from fgl_core.datasets.sources import data_status
from fgl_core.errors import InputError
from fgl_core.study.store import Store

# inherited by every process that a test starts: no test fetches
os.environ["FGL_OFFLINE"] = "1"


@pytest.fixture(scope="session")
def real_data() -> Callable[..., NodeDataset | GraphDataset]:
    """``real_data("cora")`` loads a dataset, or skips the test where its files are not at hand."""

    def load(name: str, **options: object) -> NodeDataset | GraphDataset:
        try:
            state = next(row["state"] for row in data_status() if row["name"] == name)
        except InputError as error:
            pytest.skip(str(error))
        if state not in ("cached", "in the mirror"):
            pytest.skip(f"{name} is {state}: set FGL_DATA_MIRROR, or run `fgl data fetch {name}`")
        loader = load_node_dataset if name in NODE_DATASETS else load_graph_dataset
        return loader(name, **options)

    return load


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """The project's root is an empty folder, without a mirror of data and without a profile."""
    monkeypatch.setenv("FGL_HOME", str(tmp_path / "home"))
    for name in ("FGL_DATA_MIRROR", "FGL_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.fixture
def home(root) -> Store:
    """The store of that root."""
    return Store(root)
