"""The models against PyTorch Geometric's layers, and the graph they read."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import dense, random_arrays, random_graph, random_view
from torch import Tensor
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from fgl_core.errors import InputError
from fgl_core.models import BACKBONES, build_model, ops
from fgl_core.models.graph import Graph

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
HIDDEN, CLASSES = 16, 5


def model_of(backbone: str, graph: Graph, dropout: float = 0.5, seed: int = 0) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(seed)
    return build_model(
        backbone, graph.num_features, HIDDEN, CLASSES, dropout=dropout, generator=generator, dtype=graph.dtype
    )


def oracle_layer(backbone: str, layer: torch.nn.Module) -> torch.nn.Module:
    """PyTorch Geometric's layer with our parameters."""
    width = layer.bias.shape[0]
    make = {"gat": GATConv, "gcn": GCNConv, "sage": SAGEConv}[backbone]
    oracle = make(layer.weight.shape[0], width).to(layer.weight.dtype)
    if backbone == "sage":
        ours = {"lin_l.weight": layer.weight[:, :width].T, "lin_r.weight": layer.weight[:, width:].T}
        ours["lin_l.bias"] = layer.bias
    else:
        ours = {"lin.weight": layer.weight.T, "bias": layer.bias}
    if backbone == "gat":
        ours |= {"att_src": layer.att_source[None, None], "att_dst": layer.att_target[None, None]}
    assert set(ours) == set(dict(oracle.named_parameters()))
    oracle.load_state_dict(ours)
    return oracle


@pytest.mark.parametrize("engine", ops.ENGINES)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("masked", [False, True])
def test_layers_equal_pytorch_geometric(engine: str, dtype: torch.dtype, backbone: str, masked: bool) -> None:
    """Outputs and gradients of every parameter, through both layers, on a graph and on a view."""
    graph = random_graph(0, dtype, nodes=60)
    graph = random_view(graph, 1) if masked else graph
    model = model_of(backbone, graph)
    with torch.no_grad():
        for layer in (model.encoder, model.classifier):
            layer.bias.uniform_(-1, 1, generator=torch.Generator().manual_seed(2))
    first, second = (oracle_layer(backbone, layer) for layer in (model.encoder, model.classifier))
    target, source = graph.neighbours
    edge_index = torch.stack([source, target])
    activation = torch.nn.functional.elu if backbone == "gat" else torch.relu
    h_expected = first(dense(graph), edge_index)
    z_expected = second(activation(h_expected), edge_index)
    pull = torch.Generator().manual_seed(3)
    on_h = torch.randn(h_expected.shape, generator=pull, dtype=dtype)
    on_z = torch.randn(z_expected.shape, generator=pull, dtype=dtype)
    ((h_expected * on_h).sum() + (z_expected * on_z).sum()).backward()

    with ops.engine(engine):
        h, z = model(graph)
        loss = (h * on_h).sum() + (z * on_z).sum()
        loss.backward()
    tolerance = TOLERANCE[dtype]
    torch.testing.assert_close(h, h_expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(z, z_expected, rtol=tolerance, atol=tolerance)
    for layer, oracle in ((model.encoder, first), (model.classifier, second)):
        expected = {name: p.grad for name, p in oracle.named_parameters()}
        for name, gradient in gradients_by_oracle_name(backbone, layer).items():
            scale = max(1.0, expected[name].abs().max().item())
            torch.testing.assert_close(gradient / scale, expected[name] / scale, rtol=0, atol=tolerance)


def gradients_by_oracle_name(backbone: str, layer: torch.nn.Module) -> dict[str, Tensor]:
    width = layer.bias.shape[0]
    if backbone == "sage":
        return {
            "lin_l.weight": layer.weight.grad[:, :width].T,
            "lin_r.weight": layer.weight.grad[:, width:].T,
            "lin_l.bias": layer.bias.grad,
        }
    named = {"lin.weight": layer.weight.grad.T, "bias": layer.bias.grad}
    if backbone == "gat":
        named |= {"att_src": layer.att_source.grad[None, None], "att_dst": layer.att_target.grad[None, None]}
    return named


@pytest.mark.parametrize("backbone", BACKBONES)
def test_initial_values_follow_pytorch_geometric(backbone: str) -> None:
    """Same bounds as the oracle's own initialisation, nearly reached, and zero biases where it has them."""
    graph = random_graph(1, features=200)
    model = model_of(backbone, graph)
    oracle = oracle_layer(backbone, model.encoder)
    oracle.reset_parameters()
    bound = {"gat": (6 / (200 + HIDDEN)) ** 0.5, "gcn": (6 / (200 + HIDDEN)) ** 0.5, "sage": 200**-0.5}[
        backbone
    ]
    name = "lin_l.weight" if backbone == "sage" else "lin.weight"
    assert dict(oracle.named_parameters())[name].abs().max().item() == pytest.approx(bound, rel=0.01)
    assert model.encoder.weight.abs().max().item() == pytest.approx(bound, rel=0.01)
    assert model.encoder.weight.mean().abs() < 0.05 * bound
    if backbone != "sage":
        assert (model.encoder.bias == 0).all()
    if backbone == "gat":
        wide = (6 / (1 + HIDDEN)) ** 0.5
        assert wide / 2 < model.encoder.att_source.abs().max() <= wide


@pytest.mark.parametrize("engine", ops.ENGINES)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_randomness_comes_from_the_given_generators_alone(engine: str, backbone: str) -> None:
    graph = random_graph(2)
    state = torch.random.get_rng_state()
    with ops.engine(engine):
        one, two, other = (model_of(backbone, graph, seed=s) for s in (0, 0, 1))
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
        assert not torch.equal(one.encoder.weight, other.encoder.weight)
        first, again, another = (one(graph, torch.Generator().manual_seed(s))[1] for s in (0, 0, 1))
        assert torch.equal(first, again)
        assert not torch.equal(first, another)
        assert torch.equal(one(graph)[1], one(graph)[1])
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_every_dtype_starts_from_the_same_numbers(backbone: str) -> None:
    single, double = (model_of(backbone, random_graph(3, d)) for d in (torch.float32, torch.float64))
    for a, b in zip(single.parameters(), double.parameters(), strict=True):
        assert torch.equal(a, b.float())


@pytest.mark.parametrize("engine", ops.ENGINES)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_h_is_before_dropout_and_dropout_keeps_the_mean(engine: str, backbone: str) -> None:
    graph = random_graph(4)
    model = model_of(backbone, graph)
    with ops.engine(engine), torch.no_grad():
        h, z = model(graph)
        drawn = [model(graph, torch.Generator().manual_seed(s)) for s in range(200)]
    assert all(torch.equal(other, h) for other, _ in drawn)
    if backbone != "gat":  # attention is not linear in what dropout zeroes
        mean = torch.stack([other for _, other in drawn]).mean(0)
        assert (mean - z).abs().mean() < 0.15 * z.abs().mean()


@pytest.mark.parametrize("engine", ops.ENGINES)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_a_graph_without_edges_and_features_is_finite(engine: str, backbone: str) -> None:
    graph = Graph.from_arrays(sp.csr_array((3, 4)), np.empty((0, 2), np.int64))
    model = model_of(backbone, graph)
    with ops.engine(engine):
        h, z = model(graph, torch.Generator().manual_seed(0))
        (h.sum() + z.square().sum()).backward()
    assert torch.equal(h.detach(), model.encoder.bias.detach().expand(3, -1))
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_view_equals_a_graph_built_without_those_edges_and_columns() -> None:
    x, edges = random_arrays(5)
    graph = Graph.from_arrays(x, edges, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    keep_edges = torch.rand(len(edges), generator=generator) < 0.5
    keep_columns = torch.rand(x.shape[1], generator=generator) < 0.5
    view = graph.view(keep_edges, keep_columns)
    built = Graph.from_arrays(
        sp.csr_array(x.toarray() * keep_columns.numpy()),
        edges[keep_edges.numpy()],
        dtype=torch.float64,
    )
    for mine, theirs in zip(view.neighbours, built.neighbours, strict=True):
        assert torch.equal(mine, theirs)
    assert torch.equal(view.adjacency.edge, built.adjacency.edge)
    assert torch.equal(dense(view), dense(built))
    again = view.view(torch.ones(view.num_edges, dtype=torch.bool), ~keep_columns)
    assert (dense(again) == 0).all()
    assert torch.equal(again.adjacency.source, view.adjacency.source)


@pytest.mark.parametrize(
    ("edges", "message"),
    [([[0, 9]], "outside 0…2"), ([[1, 0]], "u < v"), ([[1, 1]], "u < v"), ([[0, 1], [0, 1]], "given twice")],
)
def test_bad_edges_are_refused(edges: list[list[int]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Graph.from_arrays(sp.csr_array((3, 2)), np.array(edges))


def test_bad_masks_and_backbones_are_refused() -> None:
    graph = random_graph(6)
    with pytest.raises(InputError, match="keep_edges must be a bool tensor"):
        graph.view(torch.ones(3, dtype=torch.bool))
    with pytest.raises(InputError, match="keep_columns must be a bool tensor"):
        graph.view(None, torch.ones(graph.num_features))
    with pytest.raises(InputError, match=r"unknown backbone 'gatt': did you mean 'gat'\?"):
        model_of("gatt", graph)


def test_naming_the_backbones_does_not_import_torch() -> None:
    code = "import sys, fgl_core.models; assert fgl_core.models.BACKBONES; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
