"""The graph-level models against PyTorch Geometric, and on the graphs that break models."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from graph_sets import as_pyg, random_set
from torch import nn
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, GINConv, GraphNorm, global_add_pool

from fgl_core.errors import InputError
from fgl_core.models import build_graph_model, ops
from fgl_core.models.packed import PackedGraphs

NORMS = ("none", "batch", "pf")


def model(name="gin", norm="none", *, features=4, classes=2, hidden=8, dropout=0.5, share_norm=False, seed=0):
    return build_graph_model(
        name,
        features,
        hidden,
        classes,
        norm=norm,
        share_norm=share_norm,
        dropout=dropout,
        generator=torch.Generator().manual_seed(seed),
        dtype=torch.float64,
    )


def twin_norm(norm, ours):
    """PyTorch's own normalisation with the same parameters, moved away from where they start."""
    with torch.no_grad():
        for number, parameter in enumerate(ours.parameters()):
            parameter.add_(0.1 * torch.arange(len(parameter)) * (number + 1) / len(parameter))
    if norm == "none":
        return lambda x, graph: x
    if norm == "batch":
        twin = nn.BatchNorm1d(8).double()
        twin.load_state_dict(ours.state_dict())
        return lambda x, graph: twin(x)
    twin = GraphNorm(8).double()
    twin.load_state_dict({"mean_scale": ours.alpha, "weight": ours.gamma, "bias": ours.beta})
    return twin


@pytest.mark.parametrize("engine", ops.ENGINES)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("one_hot", [True, False])
def test_gin_is_pygs_layers_in_a_row(norm, one_hot, engine):
    dataset = random_set(one_hot=one_hot)
    ours = model(norm=norm)
    convs = [GINConv(conv.mlp) for conv in ours.convs]
    norms = [twin_norm(norm, own) for own in ours.norms]
    packed = PackedGraphs(dataset, torch.float64)
    loader = DataLoader([as_pyg(dataset, graph) for graph in range(12)], batch_size=5)
    for start, data in zip(range(0, 12, 5), loader, strict=True):
        with ops.engine(engine):
            h, z = ours(packed.batch(np.arange(start, min(start + 5, 12))))
        x = data.x @ ours.embed.weight + ours.embed.bias
        for conv, own in zip(convs, norms, strict=True):
            x = own(conv(x, data.edge_index), data.batch).relu()
        expected = global_add_pool(x, data.batch)
        torch.testing.assert_close(h, expected)
        torch.testing.assert_close(z, ours.head(expected))


@pytest.mark.parametrize("engine", ops.ENGINES)
def test_star_is_pygs_two_channels(engine):
    dataset = random_set()
    ours = model("star", "pf")
    convs = [GINConv(conv.mlp) for conv in ours.convs]
    norms = [twin_norm("pf", own) for own in ours.norms]
    structures = []
    for own in ours.structure_convs:
        conv = GCNConv(8, 8).double()
        conv.load_state_dict({"bias": own.bias, "lin.weight": own.weight.T})
        structures.append(conv)
    data = next(iter(DataLoader([as_pyg(dataset, graph) for graph in range(12)], batch_size=12)))
    batch = PackedGraphs(dataset, torch.float64).batch(np.arange(12))
    with ops.engine(engine):
        h, z = ours(batch)
    x, s = data.x @ ours.embed.weight + ours.embed.bias, ours.structure_embed(batch.structure)
    for conv, norm, structure in zip(convs, norms, structures, strict=True):
        x = norm(conv(torch.cat([x, s], 1), data.edge_index), data.batch).relu()
        s = structure(s, data.edge_index).tanh()
    expected = global_add_pool(ours.fuse(torch.cat([x, s], 1)), data.batch)
    torch.testing.assert_close(h, expected)
    torch.testing.assert_close(z, ours.head(expected))


@pytest.mark.parametrize("name", ["gin", "star"])
@pytest.mark.parametrize("norm", ["none", "pf"])
def test_a_graph_is_the_same_alone_and_in_a_batch(name, norm):
    packed = PackedGraphs(random_set(), torch.float64)
    classifier = model(name, norm)
    together, _ = classifier(packed.batch(np.arange(12)))
    alone = torch.cat([classifier(packed.batch(np.array([graph])))[0] for graph in range(12)])
    torch.testing.assert_close(together, alone)


@pytest.mark.parametrize("name", ["gin", "star"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("graphs", [[1], [2], [0], [1, 2]], ids=["one node", "no edge", "one graph", "both"])
def test_training_on_graphs_that_break_models(name, norm, graphs):
    classifier = model(name, norm).train()
    batch = PackedGraphs(random_set(), torch.float64).batch(np.array(graphs))
    h, z = classifier(batch, dropout=torch.Generator().manual_seed(0))
    assert (h.shape, z.shape) == ((len(graphs), 8), (len(graphs), 2))
    nn.functional.cross_entropy(z, torch.zeros(len(graphs), dtype=torch.long)).backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in classifier.parameters())


@pytest.mark.parametrize("name", ["gin", "star"])
@pytest.mark.parametrize("norm", NORMS)
def test_engines_agree_in_value_and_gradient(name, norm):
    batch = PackedGraphs(random_set(), torch.float64).batch(np.arange(12))
    results = []
    for engine in ops.ENGINES:
        classifier = model(name, norm).train()
        with ops.engine(engine):
            _, z = classifier(batch, dropout=torch.Generator().manual_seed(1))
            z.logsumexp(1).sum().backward()
        results.append([z, *(parameter.grad for parameter in classifier.parameters())])
    for first, second in zip(*results, strict=True):
        torch.testing.assert_close(first, second)


def test_dropout_needs_a_generator_and_follows_it():
    batch = PackedGraphs(random_set(), torch.float64).batch(np.arange(12))
    classifier = model().train()
    torch.testing.assert_close(classifier(batch)[1], classifier(batch)[1], rtol=0, atol=0)
    first, again, other = (classifier(batch, torch.Generator().manual_seed(s))[1] for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_initial_parameters_come_from_the_generator_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = model(seed=3)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(1)
    second = model(seed=3)
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name])
        assert tensor.abs().max() <= 1


def test_widths_of_a_client_stand_in_local_modules_alone():
    for name in ("gin", "star"):
        for norm in NORMS:
            small, large = model(name, norm, features=2, classes=2), model(name, norm, features=9, classes=5)
            other = large.state_dict()
            for key, tensor in small.state_dict().items():
                if not key.startswith(small.local_modules):
                    assert tensor.shape == other[key].shape


def test_norms_travel_only_when_shared():
    for norm in ("batch", "pf"):
        local, shared = model(norm=norm), model(norm=norm, share_norm=True)
        norms = {key for key in local.state_dict() if key.startswith("norms.")}
        assert norms
        assert all(key.startswith(local.local_modules) for key in norms)
        assert not any(key.startswith(shared.local_modules) for key in norms)


def test_unknown_model_is_named():
    with pytest.raises(InputError, match="unknown graph model 'gni'"):
        model("gni")
