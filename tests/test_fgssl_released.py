"""FGSSL as released: its losses against loops over nodes and edges, and who gets a gradient."""

from __future__ import annotations

import math

import pytest
import torch
from graphs import random_graph
from test_fedsage import client_of
from torch import Tensor

from fgl_core.augment import VIEW_RATES, draw_view
from fgl_core.errors import InputError
from fgl_core.federation import LocalStep, Received
from fgl_core.losses import edge_distillation, fnsc, local_contrast
from fgl_core.methods import METHODS
from fgl_core.models import build_model
from fgl_core.models.graph import Graph
from fgl_core.streams import Streams
from fgl_core.study.execute import execute
from fgl_core.study.spec import NodeSpec

BOTH = ["fgssl-released", "fgssl-released-2023"]


def embeddings(seed: int, nodes: int = 17, width: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(nodes, width, generator=generator, dtype=torch.float64) for _ in range(2))
    y = torch.randint(0, 3, (nodes,), generator=generator)
    y[0] = 3  # a class with one node
    return a.requires_grad_(), b.requires_grad_(), y


def loop_contrast(a: Tensor, b: Tensor, y: list[int], tau: float) -> Tensor:
    """FGSSL eq. 6, node by node, without rows of length zero."""

    def phi(i: int, p: int) -> Tensor:
        return torch.exp(a[i] @ b[p] / (a[i].norm() * b[p].norm()) / tau)

    samples = [p for p in range(len(y)) if b[p].detach().norm() > 0]
    losses = []
    for i in range(len(y)):
        positives = [p for p in samples if y[p] == y[i]]
        if a[i].detach().norm() == 0 or not positives:
            continue
        total = sum(phi(i, p) for p in samples)
        losses.append(-sum(torch.log(phi(i, p) / total) for p in positives) / len(positives))
    return torch.stack(losses).mean()


def loop_distillation(z_local: Tensor, z_global: Tensor, graph: Graph, tau: float) -> Tensor:
    target, source = (side.tolist() for side in graph.neighbours)
    losses = []
    for i, j in zip(target, source, strict=True):  # both directions: the mean is the same
        teacher = torch.softmax((z_global[i] - z_global[j]).abs() / tau, 0)
        student = torch.softmax((z_local[i] - z_local[j]).abs() / tau, 0)
        losses.append(sum(t * torch.log(t / s) for t, s in zip(teacher, student, strict=True)))
    return torch.stack(losses).mean()


def compare(got: Tensor, expected: Tensor, *tensors: Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)
    for mine, theirs in zip(
        torch.autograd.grad(got, tensors), torch.autograd.grad(expected, tensors), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("tau", [0.05, 0.1, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_local_contrast_equals_a_loop_on_both_sides(tau, seed):
    a, b, y = embeddings(seed)
    compare(local_contrast(a, b, y, tau), loop_contrast(a, b, y.tolist(), tau), a, b)


def test_local_contrast_in_several_blocks():
    a, b, y = embeddings(2, nodes=1500, width=3)
    value = local_contrast(a, b, y, 0.1)  # three blocks of anchors
    torch.testing.assert_close(value, fnsc(a, b, y, 0.1), rtol=1e-10, atol=0)
    (gradient,) = torch.autograd.grad(value, a)
    (expected,) = torch.autograd.grad(fnsc(a, b, y, 0.1), a)
    torch.testing.assert_close(gradient, expected, rtol=1e-8, atol=1e-12)


def test_local_contrast_leaves_out_rows_of_length_zero():
    a, b, y = embeddings(3)
    with torch.no_grad():
        a[[1, 4]] = 0
        b[[2, 4]] = 0
        y[5], b[5] = 4, 0  # an anchor without any sample of its class
    value = local_contrast(a, b, y, 0.1)
    gradients = torch.autograd.grad(value, (a, b))
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert (gradients[0][[1, 4, 5]] == 0).all() and (gradients[1][[2, 4, 5]] == 0).all()
    left = [i for i in range(len(y)) if i not in (1, 4)]
    ids = torch.tensor(left)
    kept = a.detach()[ids].requires_grad_()
    samples = b.detach()[ids].requires_grad_()
    with torch.no_grad():
        absent = b[[1, 4]]  # node 1 is no anchor, but still a sample
    everyone = torch.cat([samples, absent])
    anchors = torch.cat([kept, torch.zeros_like(absent)])
    labels = [*y[ids].tolist(), *y[[1, 4]].tolist()]
    expected = loop_contrast(anchors, everyone, labels, 0.1)
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(
        gradients[0][ids], torch.autograd.grad(expected, kept)[0], rtol=1e-8, atol=1e-9
    )


@pytest.mark.parametrize("case", ["no node", "anchors zero", "samples zero"])
def test_local_contrast_without_anchors_is_a_connected_zero(case):
    a, b, y = embeddings(4)
    if case == "no node":
        a, b, y = a.detach()[:0].requires_grad_(), b[:0], y[:0]
    elif case == "anchors zero":
        a = torch.zeros_like(a).requires_grad_()
    else:
        b = torch.zeros_like(b).requires_grad_()
    value = local_contrast(a, b, y, 0.1)
    assert value == 0
    assert (torch.autograd.grad(value, a)[0] == 0).all()


def test_local_contrast_by_hand_and_with_nan():
    h = 3 * torch.eye(2, dtype=torch.float64)
    loss = local_contrast(h, h, torch.tensor([0, 1]), 1.0)
    assert loss.item() == pytest.approx(math.log(1 + math.exp(-1)), abs=1e-12)
    h[0, 0] = torch.nan
    assert local_contrast(h, h, torch.tensor([0, 1]), 1.0).isnan()


@pytest.mark.parametrize("tau", [0.1, 2.0])
def test_edge_distillation_equals_a_loop(tau):
    graph = random_graph(0, nodes=25)
    generator = torch.Generator().manual_seed(0)
    z_local, z_global = (torch.randn(25, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    z_local.requires_grad_()
    z_global.requires_grad_()
    value = edge_distillation(z_local, z_global, graph, tau)
    compare(value, loop_distillation(z_local, z_global.detach(), graph, tau), z_local)
    value = edge_distillation(z_local, z_global, graph, tau)
    assert torch.autograd.grad(value, z_global, allow_unused=True)[0] is None
    assert edge_distillation(z_local, z_local, graph, tau).abs() < 1e-14


def test_edge_distillation_without_edges_and_with_huge_logits():
    graph = random_graph(1)
    bare = graph.view(torch.zeros(graph.num_edges, dtype=torch.bool))
    z = 1e4 * torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    z.requires_grad_()
    assert edge_distillation(z, 2 * z, bare, 0.1) == 0
    value = edge_distillation(z, z.flip(0), graph, 0.1)
    assert value.isfinite() and torch.autograd.grad(value, z)[0].isfinite().all()


def test_temperatures_must_be_positive():
    a, b, y = embeddings(5)
    with pytest.raises(InputError, match="above 0"):
        local_contrast(a, b, y, 0.0)
    with pytest.raises(InputError, match="above 0"):
        edge_distillation(a, b, random_graph(0), -1.0)


def step_of(seed: int = 0) -> LocalStep:
    """A step in which the local model has moved away from the received one."""
    client = client_of(seed)
    local, received = (
        build_model(
            "gat", 23, 8, 3, dropout=0.5, generator=torch.Generator().manual_seed(s), dtype=torch.float64
        )
        for s in (1, 2)
    )
    batch = next(iter(client.batches(Streams(0), 3, 1)))
    return LocalStep(local, Received(received.state_dict(), received), client, batch, Streams(0), 3, 1)


def test_released_loss_is_cross_entropy_and_three_halves_of_the_contrast_of_the_local_views():
    step = step_of()
    method = METHODS["fgssl-released"]()
    rows, h = step.batch.rows, {}
    for strength in ("strong", "weak"):
        view = draw_view(step.batch.graph, *VIEW_RATES[strength], step.generator(f"{strength} view"))
        h[strength] = step.model(view, dropout=step.generator(f"{strength} view dropout"))[0][rows]
    expected = METHODS["fedavg"]().loss(step) + 1.5 * loop_contrast(
        h["strong"], h["weak"], step.batch.labels.tolist(), 0.1
    )
    compare(method.loss(step), expected, *step.model.parameters())


def test_released_2023_loss_is_cross_entropy_and_a_tenth_of_the_distillation():
    step = step_of()
    graph = step.batch.graph
    strong = draw_view(graph, *VIEW_RATES["strong"], step.generator("local view"))
    weak = draw_view(graph, *VIEW_RATES["weak"], step.generator("global view"))
    z_local = step.model(strong, dropout=step.generator("view dropout"))[1]
    z_global = step.received.model(weak)[1]
    expected = METHODS["fedavg"]().loss(step) + 0.1 * loop_distillation(z_local, z_global, graph, 0.1)
    compare(METHODS["fgssl-released-2023"]().loss(step), expected, *step.model.parameters())


@pytest.mark.parametrize("name", BOTH)
def test_without_its_weight_a_variant_is_fedavg(name):
    weight = "lambda_c" if name == "fgssl-released" else "lambda_d"
    step = step_of()
    parameters = list(step.model.parameters())
    compare(METHODS[name](**{weight: 0}).loss(step), METHODS["fedavg"]().loss(step), *parameters)
    on, off = METHODS[name]().loss(step), METHODS["fedavg"]().loss(step)
    assert (on - off).abs() > 1e-6


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(("dataset", "clients"), [("digits-knn", 7), ("digits-knn", 20), ("karate", 5)])
def test_every_number_of_clients_runs(name, dataset, clients):
    spec = NodeSpec(dataset=dataset, clients=clients, rounds=2, local_epochs=2, hidden=8, method=name)
    record = execute(spec)
    assert record["status"] == "done"
    assert record["bytes"]["up"].keys() == {"model"}  # nothing else travels
    assert all(loss > 0 for loss in record["curves"]["loss"])
