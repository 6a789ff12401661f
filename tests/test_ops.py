"""The fast engine against the reference engine, compiled and not, and the dropout masks that both draw."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from graphs import dense, random_arrays, random_graph, random_view
from torch import Tensor

from fgl_core.errors import InputError
from fgl_core.losses import fgsd, fnsc
from fgl_core.models import BACKBONES, build_model, ops
from fgl_core.models.graph import Graph
from fgl_core.models.ops import kernels

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
BACKENDS = ["compiled", "without numba"]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The fast engine on its compiled loops, and as it runs where numba is not installed."""
    if request.param == "without numba":
        monkeypatch.setattr(kernels, "AVAILABLE", False)
        for name in ("product", "attention", "attention_backward", "compress", "neighbour_divergence"):
            monkeypatch.setattr(kernels, name, None)
    else:
        assert kernels.AVAILABLE, "numba is a dependency of the tests"
    yield request.param


def close(got: list[Tensor], expected: list[Tensor], dtype: torch.dtype) -> None:
    for a, b in zip(got, expected, strict=True):
        scale = max(1.0, b.abs().max().item()) if b.numel() else 1.0
        torch.testing.assert_close(a / scale, b / scale, rtol=0, atol=TOLERANCE[dtype])


def normal(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def few_full_rows(dtype: torch.dtype) -> Graph:
    """Three rows that are full, one that mostly is, and one with nothing in it."""
    x, edges = random_arrays(0, nodes=70, features=60)
    x = x.tolil()
    x[[3, 68, 69]] = normal(8, 3, 60).numpy()
    x[5, :40] = 1.0
    x[6] = 0.0
    graph = Graph.from_arrays(x.tocsr(), edges, dtype=dtype)
    assert graph.features.full.tolist() == [3, 5, 68, 69]
    return graph


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_project(backend: str, dtype: torch.dtype, masked: bool, full: bool) -> None:
    graph = few_full_rows(dtype) if full else random_graph(0, dtype, nodes=70, features=60)
    graph = random_view(graph, 0) if masked else graph
    weight = normal(1, 60, 13, dtype=dtype).requires_grad_()
    pull = normal(2, 70, 13, dtype=dtype)
    out = ops.project(graph.features, weight, graph.keep_columns)
    (gradient,) = torch.autograd.grad((out * pull).sum(), weight)
    close([out, gradient], [dense(graph) @ weight, dense(graph).T @ pull], dtype)
    if masked:
        assert (gradient[~graph.keep_columns] == 0).all()


def run_attention(graph: Graph, dtype: torch.dtype, width: int) -> list[Tensor]:
    x = normal(3, graph.num_nodes, width, dtype=dtype).requires_grad_()
    att_source, att_target, bias = (normal(s, width, dtype=dtype).requires_grad_() for s in (4, 5, 6))
    out = ops.attention(graph.adjacency, x, att_source, att_target, bias)
    pull = normal(7, graph.num_nodes, width, dtype=dtype)
    return [out, *torch.autograd.grad((out * pull).sum(), (x, att_source, att_target, bias))]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("width", [1, 3, 16, 33])
@pytest.mark.parametrize("masked", [False, True])
def test_attention(backend: str, dtype: torch.dtype, width: int, masked: bool) -> None:
    graph = random_graph(1, dtype, nodes=70)
    graph = random_view(graph, 1) if masked else graph
    with ops.engine("reference"):
        expected = run_attention(graph, dtype, width)
    close(run_attention(graph, dtype, width), expected, dtype)


def test_attention_passes_gradcheck(backend: str) -> None:
    graph = random_graph(2, nodes=12)
    inputs = [normal(s, *shape).requires_grad_() for s, shape in enumerate([(12, 3), (3,), (3,), (3,)])]
    assert torch.autograd.gradcheck(lambda *t: ops.attention(graph.adjacency, *t), inputs)


@pytest.mark.parametrize("engine", ops.ENGINES)
@pytest.mark.parametrize("slope", [0.0, 0.2, 0.7])
def test_attention_by_hand(backend: str, engine: str, slope: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes at 1 and 3, a_source = 1 and a_target = −2: node 0 scores −1 and 1, node 1 −5 and −3."""
    graph = Graph.from_arrays(np.ones((2, 1)), np.array([[0, 1]]), dtype=torch.float64)
    x, att_source, att_target = (torch.tensor(v, dtype=torch.float64) for v in ([[1], [3]], [1], [-2]))
    scores = torch.tensor([[-slope, 1], [-5 * slope, -3 * slope]], dtype=torch.float64)
    monkeypatch.setattr(ops, "SLOPE", slope)
    with ops.engine(engine):
        out = ops.attention(graph.adjacency, x, att_source, att_target, torch.tensor([0.5]).double())
    torch.testing.assert_close(out, scores.softmax(1) @ x + 0.5)


@pytest.mark.parametrize("engine", ops.ENGINES)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("own", [False, True])
def test_neighbour_sum_is_the_adjacency_product(
    backend: str, engine: str, dtype: torch.dtype, own: bool
) -> None:
    graph = random_view(random_graph(3, dtype), 3)
    target, source = graph.neighbours
    dense = torch.zeros(40, 40, dtype=dtype).index_put((target, source), torch.ones((), dtype=dtype))
    dense += torch.eye(40, dtype=dtype) * own
    x = normal(8, 40, 5, dtype=dtype).requires_grad_()
    pull = normal(9, 40, 5, dtype=dtype)
    with ops.engine(engine):
        out = ops.neighbour_sum(graph.adjacency, x, own=own)
    (gradient,) = torch.autograd.grad((out * pull).sum(), x)
    close([out, gradient], [dense @ x, dense.T @ pull], dtype)


@pytest.mark.parametrize("engine", ops.ENGINES)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("training", [False, True])
def test_elu_dropout(backend: str, engine: str, dtype: torch.dtype, rate: float, training: bool) -> None:
    h = normal(10, 31, 7, dtype=dtype).mul(3).requires_grad_()
    with ops.engine(engine):
        out = ops.elu_dropout(h, rate, torch.Generator().manual_seed(4) if training else None)
    keep, scale = ops.dropout_keep((31, 7), rate, torch.Generator().manual_seed(4))
    factor = keep.double() * scale if training and rate else torch.ones(31, 7)
    expected = torch.nn.functional.elu(h) * factor.to(dtype)
    (gradient,) = torch.autograd.grad((out * h.detach()).sum(), h)
    (theirs,) = torch.autograd.grad((expected * h.detach()).sum(), h)
    close([out, gradient], [expected, theirs], dtype)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_right_share_and_scale(rate: float) -> None:
    """Within 5 standard deviations; neighbouring elements are independent; the mean is restored."""
    size = 200_000
    keep, scale = ops.dropout_keep((size // 8, 8), rate, torch.Generator().manual_seed(0))
    assert keep.shape == (size // 8, 8)
    assert keep.unique().tolist() == [0, 1]
    deviation = (rate * (1 - rate) / size) ** 0.5
    assert abs(keep.double().mean().item() - (1 - rate)) < 5 * deviation
    columns = keep.double().mean(0)
    assert (columns - (1 - rate)).abs().max() < 5 * deviation * 8**0.5
    flat = keep.flatten().double() - (1 - rate)
    for lag in (1, 7, 8, 64):
        correlation = (flat[lag:] * flat[:-lag]).mean().item() / (rate * (1 - rate))
        assert abs(correlation) < 5 / size**0.5
    assert scale == pytest.approx(1 / (1 - rate), rel=1e-3)


def test_dropout_masks_differ_between_draws() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = (ops.dropout_keep((50,), 0.5, generator)[0] for _ in range(2))
    assert not torch.equal(first, second)
    again = ops.dropout_keep((50,), 0.5, torch.Generator().manual_seed(0))[0]
    assert torch.equal(first, again)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("masked", [False, True])
def test_models_and_losses_give_the_same_on_both_engines(
    backend: str, dtype: torch.dtype, backbone: str, masked: bool
) -> None:
    """Loss and every gradient of a training step with dropout, from a graph or a view of it."""
    whole = random_graph(4, dtype, nodes=80, features=50)
    rows, y = torch.arange(0, 60, 2), torch.arange(30) % 5

    def step() -> list[Tensor]:
        graph = random_view(whole, 5) if masked else whole
        generator = torch.Generator().manual_seed(1)
        model = build_model(backbone, 50, 16, 5, dropout=0.5, generator=generator, dtype=dtype)
        other = build_model(backbone, 50, 16, 5, dropout=0.5, generator=generator, dtype=dtype)
        h, z = model(graph, generator)
        with torch.no_grad():
            h_global, z_global = other(whole)
        loss = torch.nn.functional.cross_entropy(z[rows], y) + fgsd(z, z_global, whole, 5.0)
        for denominator in ("supcon", "pairwise"):
            loss = loss + fnsc(h[rows], h_global[rows], y, 0.1, denominator=denominator)
        return [loss, *torch.autograd.grad(loss, list(model.parameters()))]

    with ops.engine("reference"):
        expected = step()
    close(step(), expected, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_training_runs_agree_between_engines(dtype: torch.dtype) -> None:
    """Twenty SGD steps with dropout: float64 parameters agree to 1e-8."""
    graph = random_graph(5, dtype, nodes=80, features=50)
    y = torch.arange(80) % 5

    def train() -> list[Tensor]:
        generator = torch.Generator().manual_seed(1)
        model = build_model("gat", 50, 16, 5, dropout=0.5, generator=generator, dtype=dtype)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(20):
            sgd.zero_grad()
            torch.nn.functional.cross_entropy(model(graph, generator)[1], y).backward()
            sgd.step()
        return [p.detach() for p in model.parameters()]

    with ops.engine("reference"):
        expected = train()
    tolerance = 1e-8 if dtype == torch.float64 else 1e-3
    for a, b in zip(train(), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=tolerance)


def test_compressed_adjacency_is_the_same_compiled_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(6, nodes=60)
    compiled = random_view(graph, 6).adjacency
    monkeypatch.setattr(kernels, "AVAILABLE", False)
    plain = random_view(graph, 6).adjacency
    for name in ("pointer", "source", "edge"):
        mine, theirs = getattr(compiled, name), getattr(plain, name)
        assert mine.dtype == theirs.dtype == torch.int32
        assert torch.equal(mine, theirs)


def test_rows_and_adjacency_hold_what_they_were_given() -> None:
    x, edges = random_arrays(7)
    graph = Graph.from_arrays(x, edges)
    np.testing.assert_allclose(dense(graph).numpy(), x.toarray(), rtol=1e-6)
    pointer, row, value = graph.features.transposed_csr
    rebuilt = np.zeros((x.shape[1], x.shape[0]))
    for column in range(x.shape[1]):
        inside = slice(pointer[column], pointer[column + 1])
        rebuilt[column, row[inside]] = value[inside]
    np.testing.assert_allclose(rebuilt, x.toarray().T, rtol=1e-6)
    target, source = (side.tolist() for side in graph.neighbours)
    both = {(u, v) for u, v in edges.tolist()} | {(v, u) for u, v in edges.tolist()}
    assert list(zip(target, source, strict=True)) == sorted(both)
    assert graph.adjacency.degree[[0, 1, 3]].tolist() == [0, 0, 1]


def test_engines_are_named_and_restored() -> None:
    assert ops.current_engine() == "fast"
    with ops.engine("reference"):
        assert ops.current_engine() == "reference"
        with ops.engine("fast"):
            assert ops.current_engine() == "fast"
        assert ops.current_engine() == "reference"
    assert ops.current_engine() == "fast"
    with pytest.raises(InputError, match="did you mean 'fast'"), ops.engine("fats"):
        pass


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("engine", ops.ENGINES)
def test_cuda_gives_the_same_numbers(engine: str) -> None:
    x, edges = random_arrays(8)

    def step(device: str) -> list[Tensor]:
        graph = random_view(Graph.from_arrays(x, edges, dtype=torch.float64, device=device), 8)
        generator = torch.Generator().manual_seed(1)
        model = build_model("gat", 23, 8, 4, dropout=0.5, generator=generator, dtype=torch.float64).to(device)
        h, z = model(graph, generator)
        y = (torch.arange(40) % 4).to(device)
        loss = fnsc(h, 2 * h.flip(0), y, 0.1) + fgsd(z, z.flip(0), graph, 5.0)
        return [t.cpu() for t in (loss, *torch.autograd.grad(loss, list(model.parameters())))]

    with ops.engine(engine):
        close(step("cuda"), step("cpu"), torch.float64)
