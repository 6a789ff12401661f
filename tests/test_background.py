"""The background pages: what they show is right, and heeds their parameters."""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
import pytest
from executed import run_here

from fgl_core.datasets import load_node_dataset
from fgl_core.errors import InputError, check_between
from fgl_core.partition import partition_nodes, partition_statistics, split_nodes
from fgl_core.plots import client_networks, image_rows, spreading
from fgl_core.streams import Streams


def test_federated_learning_counts_what_travels_and_heeds_its_parameters() -> None:
    text = run_here("background/federated-learning.ipynb", dataset="karate", clients=2, rounds=2)
    assert "average: 2.0" in text  # (30 · 1 + 10 · 5) / 40
    weights = int(re.search(r"weights of the model: (\d+)", text)[1])
    assert f"2 clients x {weights} x 4 bytes = {8 * weights}" in text
    assert f"up {{'model': {8 * weights}}} down {{'model': {8 * weights}}}" in text


@pytest.mark.parametrize("start", [0, 16])
def test_a_message_reaches_as_many_as_are_so_many_steps_away(start: int) -> None:
    text = run_here("background/message-passing.ipynb", start=start, layers=2)
    assert "2 neighbours: average 1, sum 2" in text and "3 neighbours: average 1, sum 3" in text
    steps = nx.single_source_shortest_path_length(nx.karate_club_graph(), start)
    for layer in (1, 2):
        reached = sum(distance <= layer for distance in steps.values())
        assert f"layer {layer}: {reached} of 34 have heard it" in text
    assert "layer 3" not in text


def test_heterogeneity_measures_both_partitions() -> None:
    text = run_here("background/heterogeneity.ipynb", clients=6, rounds=1, seed=1)
    graph, streams = load_node_dataset("digits-knn"), Streams(1)
    split = split_nodes(graph.y, "stratified", streams.numpy("split"))
    for kind in ("louvain", "random"):
        owner = partition_nodes(graph, 6, kind, streams.numpy("partition"))
        expected = partition_statistics(graph, split, owner)
        assert f"{kind}: label skew {expected['label_skew']:.2f}" in text
        assert f">{100 * expected['edges_lost_share']:.1f}<" in text
    louvain, random = (float(value) for value in re.findall(r"a digit are ([\d.]+) apart", text))
    assert louvain > 2 * random


@pytest.mark.parametrize(
    ("page", "parameters", "message"),
    [
        ("message-passing", {"start": 34}, "start is 34: choose 0 to 33"),
        ("message-passing", {"start": -1}, "start is -1: choose 0 to 33"),
        ("message-passing", {"layers": 13}, "layers is 13: choose 0 to 12"),
        ("heterogeneity", {"digit": 10}, "digit is 10: choose 0 to 9"),
    ],
)
def test_values_that_mean_nothing_are_refused(page: str, parameters: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}$"):
        run_here(f"background/{page}.ipynb", **parameters)


def test_nan_is_in_no_range() -> None:
    check_between("rate", 0.5, 0, 1)
    check_between("jobs", 7, 1)
    with pytest.raises(InputError, match=r"^rate is nan: choose at least 0$"):
        check_between("rate", float("nan"), 0)


def test_client_networks_draw_every_node_and_edge() -> None:
    edges, classes = np.array([[0, 1], [1, 2]]), np.array([0, 1, 8])
    figure = client_networks({"louvain": [(edges, classes)] * 4, "random": [(edges[:0], classes)]})
    assert len(figure.axes) == 9  # two lines of clients, and one
    drawn = figure.axes[0].lines
    assert sum(len(line.get_xdata()) == 2 and line.get_linestyle() == "-" for line in drawn) == len(edges)
    assert sum(len(line.get_xdata()) for line in drawn if line.get_marker() != "None") == len(classes)
    looks = {(line.get_color(), line.get_marker()) for line in drawn if line.get_marker() != "None"}
    assert len(looks) == 3  # class 8 has the colour of class 1 and another marker
    assert [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")] == [
        "louvain, client 1", "client 2", "client 3", "louvain, client 4", "random, client 1",
    ]  # fmt: skip


def test_spreading_keeps_nodes_in_their_places_and_their_values() -> None:
    edges = np.array([[0, 1], [1, 2]])
    values = {"before": np.array([1.0, 0, 0]), "layer 1": np.array([0.5, 0.5, 0])}
    figure = spreading(edges, values, "Share")
    first, second = (axes.collections[0] for axes in figure.axes[:2])
    assert (first.get_offsets() == second.get_offsets()).all()
    assert second.get_array().tolist() == [0.5, 0.5, 0]
    assert first.cmap(first.norm(0.0)) == (1, 1, 1, 1)  # nothing has arrived: white


def test_pictures_share_one_scale_and_a_missing_one_says_so() -> None:
    figure = image_rows({"louvain": [np.zeros((8, 8)), None], "random": [np.ones((8, 8))] * 2}, "client")
    assert [axes.get_title() for axes in figure.axes] == ["client 1", "client 2", "", ""]
    assert figure.axes[0].images[0].get_clim() == figure.axes[2].images[0].get_clim() == (0, 1)
    assert not figure.axes[1].images and "none" in [text.get_text() for text in figure.axes[1].texts]
