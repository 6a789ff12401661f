"""Views: what is dropped, how often, and what stays as it was."""

from __future__ import annotations

import pytest
import torch
from graphs import dense, random_graph

from fgl_core.augment import VIEW_RATES, draw_view
from fgl_core.errors import InputError
from fgl_core.models.graph import Graph


def pairs(graph: Graph) -> set[tuple[int, int]]:
    target, source = graph.neighbours
    return set(zip(target.tolist(), source.tolist(), strict=True))


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_both_directions_go_together_and_none_is_new() -> None:
    graph = random_graph(0, nodes=200)
    view = draw_view(graph, 0.5, 0.0, stream())
    kept = pairs(view)
    assert kept < pairs(graph)
    assert kept == {(v, u) for u, v in kept}
    assert view.num_edges == len(kept) // 2
    assert view.keep_columns is None


def test_columns_are_zeroed_for_all_nodes_alike() -> None:
    graph = random_graph(1)
    view = draw_view(graph, 0.0, 0.5, stream())
    dropped = ~view.keep_columns
    assert 0 < dropped.sum() < graph.num_features
    assert (dense(view)[:, dropped] == 0).all()
    assert torch.equal(dense(view)[:, view.keep_columns], dense(graph)[:, view.keep_columns])
    assert pairs(view) == pairs(graph)


@pytest.mark.parametrize("strength", ["weak", "strong"])
def test_shares_match_the_rates(strength: str) -> None:
    """Within 5 standard deviations of a binomial share."""
    graph = random_graph(2, nodes=300, features=2000)
    edge_rate, feature_rate = VIEW_RATES[strength]
    view = draw_view(graph, edge_rate, feature_rate, stream(3))
    for kept, total, rate in (
        (view.num_edges, graph.num_edges, edge_rate),
        (int(view.keep_columns.sum()), graph.num_features, feature_rate),
    ):
        assert abs(kept / total - (1 - rate)) < 5 * (rate * (1 - rate) / total) ** 0.5


def test_rate_zero_keeps_all_and_rate_one_nothing() -> None:
    graph = random_graph(3)
    assert VIEW_RATES["none"] == (0, 0)
    same = draw_view(graph, 0.0, 0.0, stream())
    assert pairs(same) == pairs(graph)
    assert torch.equal(dense(same), dense(graph))
    empty = draw_view(graph, 1.0, 1.0, stream())
    assert empty.num_edges == 0
    assert (dense(empty) == 0).all()


def test_drawn_from_the_generator_alone_and_the_graph_is_unchanged() -> None:
    graph = random_graph(4)
    before, features = pairs(graph), dense(graph).clone()
    torch.manual_seed(0)
    state = torch.random.get_rng_state()
    first, again, other = (draw_view(graph, 0.5, 0.5, stream(s)) for s in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert pairs(first) == pairs(again)
    assert torch.equal(first.keep_columns, again.keep_columns)
    assert pairs(first) != pairs(other)
    assert pairs(graph) == before
    assert torch.equal(dense(graph), features)
    assert first.features is graph.features


@pytest.mark.parametrize("rates", [(-0.1, 0.0), (0.0, 1.5)])
def test_rates_outside_0_to_1_are_refused(rates: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        draw_view(random_graph(5), *rates, stream())
