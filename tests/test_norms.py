"""Normalisations against PyTorch Geometric and PyTorch, and the fused operators against plain ones."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GraphNorm

from fgl_core.errors import InputError
from fgl_core.models import ops
from fgl_core.models.norms import BatchNorm, PersonalisationFactor, build_norm
from fgl_core.models.ops.pergraph import graph_norm, graph_sum, relu_dropout, two_layers

SIZES = torch.tensor([4, 1, 7, 2])


class Batch:
    def __init__(self, sizes=SIZES):
        self.sizes = sizes


def drawn(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("engine", ops.ENGINES)
def test_pf_is_graphnorm_and_so_are_its_gradients(engine):
    ours, theirs = PersonalisationFactor(5, torch.float64), GraphNorm(5).double()
    with torch.no_grad():
        for parameter, other, seed in (
            (ours.alpha, theirs.mean_scale, 1),
            (ours.gamma, theirs.weight, 2),
            (ours.beta, theirs.bias, 3),
        ):
            parameter.copy_(drawn(5, seed=seed))
            other.copy_(parameter)
    x, pull = drawn(14, 5) * 3 + 1, drawn(14, 5, seed=4)
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    with ops.engine(engine):
        out = ours(a, Batch())
        (out * pull).sum().backward()
    expected = theirs(b, SIZES.new_tensor(range(4)).repeat_interleave(SIZES))
    (expected * pull).sum().backward()
    torch.testing.assert_close(out, expected)
    for mine, other in (
        (a, b),
        (ours.alpha, theirs.mean_scale),
        (ours.gamma, theirs.weight),
        (ours.beta, theirs.bias),
    ):
        torch.testing.assert_close(mine.grad, other.grad)


def test_pf_starts_as_plain_standardisation_of_each_graph():
    norm = PersonalisationFactor(3, torch.float64)
    x = drawn(14, 3) * 5 + 2
    for part, out in zip(x.split(SIZES.tolist()), norm(x, Batch()).split(SIZES.tolist()), strict=True):
        variance = part.var(0, unbiased=False)
        torch.testing.assert_close(out, (part - part.mean(0)) / (variance + 1e-5).sqrt())


def test_pf_by_hand():
    norm = PersonalisationFactor(1, torch.float64)
    with torch.no_grad():
        norm.alpha.fill_(0.5)
        norm.gamma.fill_(3)
        norm.beta.fill_(-1)
    # mean 2, so that x - 2 α = 0, 2; mean square 2
    out = norm(torch.tensor([[1.0], [3.0]], dtype=torch.float64), Batch(torch.tensor([2])))
    expected = torch.tensor([[-1.0], [3 * 2 / (2 + 1e-5) ** 0.5 - 1]], dtype=torch.float64)
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("engine", ops.ENGINES)
def test_graph_norm_gradients_by_finite_differences(engine):
    tensors = [drawn(6, 2).requires_grad_(), *(drawn(2, seed=s).requires_grad_() for s in (1, 2, 3))]
    sizes = torch.tensor([3, 1, 2])
    with ops.engine(engine):
        assert torch.autograd.gradcheck(lambda x, a, g, b: graph_norm(x, sizes, a, g, b, 1e-2), tensors)


def test_graph_sum():
    x = drawn(14, 3)
    expected = torch.stack([part.sum(0) for part in x.split(SIZES.tolist())])
    torch.testing.assert_close(graph_sum(x, SIZES), expected)


@pytest.mark.parametrize("rate", [0, 0.3, 0.5])
def test_relu_dropout_engines_agree(rate):
    x, pull = drawn(50, 7), drawn(50, 7, seed=1)
    results = []
    for engine in ops.ENGINES:
        leaf = x.clone().requires_grad_()
        with ops.engine(engine):
            out = relu_dropout(leaf, rate, torch.Generator().manual_seed(3))
            (out * pull).sum().backward()
        results.append((out, leaf.grad))
    for first, second in zip(*results, strict=True):
        torch.testing.assert_close(first, second)
    torch.testing.assert_close(relu_dropout(x, rate, None), x.clamp(min=0))
    kept = results[0][0][x > 0.1] > 0
    assert abs(kept.double().mean() - (1 - rate)) < 0.12


def test_batch_norm_is_pytorchs():
    ours, theirs = BatchNorm(4, dtype=torch.float64), torch.nn.BatchNorm1d(4, dtype=torch.float64)
    for seed in range(3):
        x = drawn(14, 4, seed=seed) * 2 + 1
        torch.testing.assert_close(ours(x, Batch()), theirs(x))
    ours.eval(), theirs.eval()
    torch.testing.assert_close(ours(x, Batch()), theirs(x))


def test_batch_norm_of_one_row_uses_the_running_statistics():
    norm = BatchNorm(2, dtype=torch.float64)
    norm(drawn(14, 2) + 3, Batch())
    before = {name: tensor.clone() for name, tensor in norm.state_dict().items()}
    row = drawn(1, 2, seed=1)
    out = norm(row, Batch(torch.tensor([1])))
    expected = (row - norm.running_mean) / (norm.running_var + 1e-5).sqrt()
    torch.testing.assert_close(out, expected)
    assert all(torch.equal(tensor, before[name]) for name, tensor in norm.state_dict().items())


def test_none_changes_nothing_and_has_no_tensors():
    norm = build_norm("none", 3, torch.float64)
    x = drawn(14, 3)
    assert norm(x, Batch()) is x
    assert not norm.state_dict()


def test_unknown_norm_is_named():
    with pytest.raises(InputError, match="did you mean 'batch'"):
        build_norm("bacht", 3, torch.float64)


@pytest.mark.parametrize("engine", ops.ENGINES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_two_layers_are_torchs_own_and_so_are_their_gradients(engine, dtype):
    mlp = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 3)).to(dtype)
    with torch.no_grad():
        for seed, parameter in enumerate(mlp.parameters()):
            parameter.copy_(drawn(*parameter.shape, seed=seed, dtype=dtype))
    x, pull = drawn(14, 5, seed=8, dtype=dtype), drawn(14, 3, seed=9, dtype=dtype)
    inputs = [x.requires_grad_(), *mlp.parameters()]
    with ops.engine(engine):
        out = two_layers(*inputs)
    torch.testing.assert_close(out, mlp(x))
    ours = torch.autograd.grad((out * pull).sum(), inputs)
    theirs = torch.autograd.grad((mlp(x) * pull).sum(), inputs)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("engine", ops.ENGINES)
def test_graph_sum_adds_the_rows_of_each_graph_and_its_gradient_repeats(engine):
    x = drawn(14, 3).requires_grad_()
    with ops.engine(engine):
        out = graph_sum(x, SIZES)
    torch.testing.assert_close(out, torch.stack([part.sum(0) for part in x.split(SIZES.tolist())]))
    pull = drawn(4, 3, seed=1)
    (gradient,) = torch.autograd.grad((out * pull).sum(), x)
    torch.testing.assert_close(gradient, torch.cat([pull[[i]].expand(n, 3) for i, n in enumerate(SIZES)]))


@pytest.mark.parametrize("engine", ops.ENGINES)
def test_a_row_that_is_not_a_number_stays_so(engine):
    x = drawn(14, 5).index_fill(0, torch.tensor([2]), torch.nan)
    weights = (drawn(7, 5), drawn(7), drawn(3, 7), drawn(3))
    with ops.engine(engine):
        assert two_layers(x, *weights).isnan().any(1).nonzero().tolist() == [[2]]
        assert relu_dropout(x, 0.0, None).isnan().any(1).nonzero().tolist() == [[2]]
        kept = relu_dropout(x, 0.5, torch.Generator().manual_seed(0))
        assert kept.isnan().any(1).nonzero().tolist() == [[2]]
