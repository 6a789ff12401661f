"""The losses against loops over nodes, and their traps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from graphs import random_graph, random_view
from torch import Tensor

from fgl_core.errors import InputError
from fgl_core.losses import fgsd, fnsc, proximal
from fgl_core.models import build_model, ops
from fgl_core.models.graph import Graph

ENGINES = list(ops.ENGINES)
DENOMINATORS = ["supcon", "pairwise"]


def loop_fnsc(h_local: Tensor, h_global: Tensor, y: list[int], tau: float, denominator: str) -> Tensor:
    """FGSSL eq. 8, node by node."""

    def phi(i: int, p: int) -> Tensor:
        cosine = h_local[i] @ h_global[p] / (h_local[i].norm() * h_global[p].norm())
        return torch.exp(cosine / tau)

    samples = [p for p in range(len(y)) if h_global[p].norm() > 0]
    losses = []
    for i in range(len(y)):
        positives = [p for p in samples if y[p] == y[i]]
        negatives = [k for k in samples if y[k] != y[i]]
        if h_local[i].norm() == 0 or not positives:
            continue
        total = torch.zeros((), dtype=h_local.dtype)
        for p in positives:
            d = phi(i, p) if denominator == "pairwise" else sum(phi(i, a) for a in positives)
            total = total + torch.log(phi(i, p) / (d + sum(phi(i, k) for k in negatives)))
        losses.append(-total / len(positives))
    return torch.stack(losses).mean()


def loop_fgsd(z_local: Tensor, z_global: Tensor, edges: list[tuple[int, int]], omega: float) -> Tensor:
    """FGSSL eqs. 9 to 12, node by node."""
    losses = []
    for i in range(len(z_local)):
        neighbours = sorted({v for u, v in edges if u == i} | {u for u, v in edges if v == i})
        if not neighbours:
            continue
        s_local = torch.softmax(torch.stack([z_local[i] @ z_local[j] for j in neighbours]) / omega, 0)
        s_global = torch.softmax(torch.stack([z_global[i] @ z_global[j] for j in neighbours]) / omega, 0)
        losses.append(sum(g * torch.log(g / m) for g, m in zip(s_global, s_local, strict=True)))
    return torch.stack(losses).mean()


def embeddings(seed: int, nodes: int = 17, width: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    h_local = torch.randn(nodes, width, generator=generator, dtype=torch.float64)
    h_global = torch.randn(nodes, width, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 3, (nodes,), generator=generator)
    y[0] = 3  # a class with one node
    return h_local.requires_grad_(), h_global, y


def value_and_gradient(loss: Tensor, tensor: Tensor) -> tuple[Tensor, Tensor]:
    return loss.detach(), torch.autograd.grad(loss, tensor)[0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("denominator", DENOMINATORS)
@pytest.mark.parametrize("tau", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_fnsc_equals_loop_over_nodes(engine: str, denominator: str, tau: float, seed: int) -> None:
    h_local, h_global, y = embeddings(seed)
    expected = value_and_gradient(loop_fnsc(h_local, h_global, y.tolist(), tau, denominator), h_local)
    with ops.engine(engine):
        got = value_and_gradient(fnsc(h_local, h_global, y, tau, denominator=denominator), h_local)
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("denominator", DENOMINATORS)
def test_fnsc_leaves_out_zero_rows(engine: str, denominator: str) -> None:
    h_local, h_global, y = embeddings(2)
    with torch.no_grad():
        h_local[[0, 3, 5]] = 0
        h_global[[1, 3]] = 0
        y[1], y[2] = 4, 4
        h_global[2] = 0  # class 4 has anchors 1 and 2 and no sample: both are left out
    zeros = h_local.detach().norm(dim=1) == 0
    rows = [i for i in range(len(y)) if not zeros[i]]
    loop_rows = h_local[rows].detach().requires_grad_()
    full = h_local.detach().clone()
    full[rows] = loop_rows
    expected, gradient = value_and_gradient(
        loop_fnsc(full, h_global, y.tolist(), 0.1, denominator), loop_rows
    )
    with ops.engine(engine):
        value, got = value_and_gradient(fnsc(h_local, h_global, y, 0.1, denominator=denominator), h_local)
    torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(got[rows], gradient, rtol=1e-10, atol=1e-10)
    assert (got[zeros] == 0).all()
    assert (got[[1, 2]] == 0).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("denominator", DENOMINATORS)
@pytest.mark.parametrize(("norm", "kept"), [(1e-6 * (1 - 1e-9), False), (1e-6 * (1 + 1e-9), True)])
def test_fnsc_leaves_out_rows_with_a_norm_of_at_most_a_millionth(
    engine: str, denominator: str, norm: float, kept: bool
) -> None:
    h_local, h_global, y = embeddings(2)
    small = h_local.detach().clone(), h_global.clone()
    for h, row in zip(small, (4, 6), strict=True):
        h[row] *= norm / h[row].norm()
    shrunk = [h.clone() for h in small]
    if not kept:
        shrunk[0][4], shrunk[1][6] = 0, 0
    expected = loop_fnsc(*shrunk, y.tolist(), 0.1, denominator)
    with ops.engine(engine):
        torch.testing.assert_close(fnsc(*small, y, 0.1, denominator=denominator), expected)


@pytest.mark.parametrize("denominator", DENOMINATORS)
def test_fnsc_by_hand(denominator: str) -> None:
    """Two classes of one node each, orthogonal: −log(e / (e + 1)) per node at τ = 1."""
    h = torch.eye(2, dtype=torch.float64) * 3
    loss = fnsc(h, h, torch.tensor([0, 1]), 1.0, denominator=denominator)
    assert loss.item() == pytest.approx(math.log(1 + math.exp(-1)), abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_fnsc_of_one_class_by_denominator(engine: str) -> None:
    """With a single class there is no negative: every pairwise share is 1."""
    h_local, h_global, _ = embeddings(3)
    y = torch.zeros(len(h_local), dtype=torch.int64)
    with ops.engine(engine):
        value, gradient = value_and_gradient(fnsc(h_local, h_global, y, 0.1, denominator="pairwise"), h_local)
        assert value.item() == pytest.approx(0, abs=1e-12)
        assert gradient.abs().max() < 1e-12
        assert fnsc(h_local, h_global, y, 0.1).item() > math.log(len(y)) - 1e-9


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("denominator", DENOMINATORS)
@pytest.mark.parametrize("case", ["no node", "all local rows zero", "all global rows zero"])
def test_fnsc_without_anchors_is_a_connected_zero(engine: str, denominator: str, case: str) -> None:
    h_local, h_global, y = embeddings(4)
    if case == "no node":
        h_local, h_global, y = h_local.detach()[:0].requires_grad_(), h_global[:0], y[:0]
    elif case == "all local rows zero":
        h_local = torch.zeros_like(h_local).requires_grad_()
    else:
        h_global = torch.zeros_like(h_global)
    with ops.engine(engine):
        value, gradient = value_and_gradient(
            fnsc(h_local, h_global, y, 0.1, denominator=denominator), h_local
        )
    assert value == 0
    assert gradient.shape == h_local.shape
    assert (gradient == 0).all()


@pytest.mark.parametrize("denominator", DENOMINATORS)
@pytest.mark.parametrize("tau", [0.01, 0.1])
def test_fnsc_in_several_blocks(denominator: str, tau: float, monkeypatch: pytest.MonkeyPatch) -> None:
    h_local, h_global, y = embeddings(5, nodes=151, width=9)  # the last block is shorter
    with ops.engine("reference"):
        expected = value_and_gradient(fnsc(h_local, h_global, y, tau, denominator=denominator), h_local)
    monkeypatch.setattr("fgl_core.models.ops.pairs._BLOCK", 16)
    got = value_and_gradient(fnsc(h_local, h_global, y, tau, denominator=denominator), h_local)
    torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("denominator", DENOMINATORS)
@pytest.mark.parametrize("tau", [0.01, 0.02, 0.1, 10.0])
def test_fnsc_in_single_precision(denominator: str, tau: float) -> None:
    """No overflow or vanishing sum at small temperatures, opposed embeddings included."""
    h_local, h_global, y = embeddings(6)
    with torch.no_grad():
        h_global[:] = -h_local + 0.01 * h_global
    expected = value_and_gradient(fnsc(h_local, h_global, y, tau, denominator=denominator), h_local)
    single = h_local.detach().float().requires_grad_()
    got = value_and_gradient(fnsc(single, h_global.float(), y, tau, denominator=denominator), single)
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_fnsc_shows_divergence(engine: str) -> None:
    h_local, h_global, y = embeddings(7)
    with torch.no_grad():
        h_local[4] = torch.nan
    with ops.engine(engine):
        assert fnsc(h_local, h_global, y, 0.1).isnan()


def test_fnsc_passes_gradcheck() -> None:
    h_local, h_global, y = embeddings(8, nodes=9, width=4)
    for denominator in DENOMINATORS:
        assert torch.autograd.gradcheck(
            lambda h, d=denominator: fnsc(h, h_global, y, 0.3, denominator=d), (h_local,)
        )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("omega", [0.1, 5.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fgsd_equals_loop_over_nodes(engine: str, omega: float, seed: int) -> None:
    graph = random_graph(seed, nodes=25)
    generator = torch.Generator().manual_seed(seed)
    z_local = torch.randn(25, 4, generator=generator, dtype=torch.float64).requires_grad_()
    z_global = torch.randn(25, 4, generator=generator, dtype=torch.float64)
    target, source = (side.tolist() for side in graph.neighbours)
    edges = [(u, v) for u, v in zip(target, source, strict=True) if u < v]
    expected = value_and_gradient(loop_fgsd(z_local, z_global, edges, omega), z_local)
    with ops.engine(engine):
        got = value_and_gradient(fgsd(z_local, z_global, graph, omega), z_local)
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_fgsd_of_equal_models_and_of_single_edges_is_zero(engine: str) -> None:
    graph = random_graph(3)
    z = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    with ops.engine(engine):
        value, gradient = value_and_gradient(fgsd(z, z, graph, 5.0), z)
        assert value.abs() < 1e-14
        assert gradient.abs().max() < 1e-14
        pair = Graph.from_arrays(graph.features.matrix, np.array([[0, 1]]), dtype=torch.float64)
        value, gradient = value_and_gradient(fgsd(z, -2 * z, pair, 5.0), z)
        assert value == 0
        assert (gradient == 0).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_fgsd_without_edges_is_a_connected_zero(engine: str) -> None:
    graph = random_graph(4)
    graph = graph.view(torch.zeros(graph.num_edges, dtype=torch.bool))
    z = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    with ops.engine(engine):
        value, gradient = value_and_gradient(fgsd(z, 2 * z, graph, 5.0), z)
    assert value == 0
    assert (gradient == 0).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_fgsd_with_huge_logits_stays_finite(engine: str) -> None:
    graph = random_graph(5)
    z = 1e3 * torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    z_local = z.flip(0).requires_grad_()
    with ops.engine(engine):
        value, gradient = value_and_gradient(fgsd(z_local, z, graph, 0.1), z_local)
    assert value.isfinite()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("denominator", DENOMINATORS)
def test_gradients_reach_only_the_local_model(engine: str, denominator: str) -> None:
    graph = random_graph(6)
    y = torch.arange(20) % 4
    local, server = (
        build_model(
            "gat", 23, 8, 4, dropout=0.5, generator=torch.Generator().manual_seed(s), dtype=torch.float64
        )
        for s in (0, 1)
    )
    with ops.engine(engine):
        h_local, z_local = local(random_view(graph, 0), torch.Generator().manual_seed(5))
        h_global, z_global = server(random_view(graph, 1))
        loss = fnsc(h_local[:20], h_global[:20], y, 0.1, denominator=denominator)
        (loss + fgsd(z_local, z_global, graph, 5.0)).backward()
    assert all(p.grad is None for p in server.parameters())
    assert all(p.grad.isfinite().all() and p.grad.abs().max() > 0 for p in local.parameters())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("denominator", DENOMINATORS)
def test_no_nan_when_every_feature_is_masked(engine: str, denominator: str) -> None:
    graph = random_graph(7, dtype=torch.float32)
    blind = graph.view(
        torch.zeros(graph.num_edges, dtype=torch.bool), torch.zeros(graph.num_features, dtype=torch.bool)
    )
    y = torch.arange(40) % 4
    model = build_model(
        "gat", 23, 8, 4, dropout=0.5, generator=torch.Generator().manual_seed(0), dtype=torch.float32
    )
    with ops.engine(engine):
        for view in (blind, graph.view(None, torch.arange(graph.num_features) == 3)):
            model.zero_grad()
            h, z = model(view, torch.Generator().manual_seed(1))
            h_global, z_global = model(graph)
            loss = fnsc(h, h_global, y, 0.1, denominator=denominator) + fgsd(z, z_global, graph, 5.0)
            loss.backward()
            assert loss.isfinite()
            assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_proximal_by_hand_and_at_zero() -> None:
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    anchor = torch.tensor([0.0, 4.0], requires_grad=True)
    proximal([weight], [anchor]).backward()
    assert proximal([weight], [anchor]).item() == pytest.approx(2.5)
    assert weight.grad.tolist() == [1.0, -2.0]
    assert anchor.grad is None
    value, gradient = value_and_gradient(proximal([weight], [weight]), weight)
    assert value == 0
    assert gradient.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError):
        proximal([weight], [])


def test_bad_values_are_refused() -> None:
    h_local, h_global, y = embeddings(9)
    with pytest.raises(InputError, match="did you mean 'supcon'"):
        fnsc(h_local, h_global, y, 0.1, denominator="supcom")
    with pytest.raises(InputError, match="above 0"):
        fnsc(h_local, h_global, y, 0.0)
    with pytest.raises(InputError, match="above 0"):
        fgsd(h_local, h_global, random_graph(0), -1.0)
