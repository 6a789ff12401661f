"""The plain loop that the package is timed against does the same work."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from graph_sets import random_set
from graphs import random_arrays

from fgl_core.clients import NodeClient
from fgl_core.graph_clients import GraphClient
from fgl_core.losses import fgsd, fnsc
from fgl_core.models import build_graph_model, build_model
from fgl_core.models.graph import Graph
from fgl_core.models.packed import PackedGraphs
from fgl_core.study.setup import Setup, set_up
from fgl_core.study.spec import RunSpec


def test_plain_loop_computes_the_same_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from benchmarks import plain

    x, edges = random_arrays(0, nodes=60)
    y, train = torch.arange(60) % 4, torch.arange(60) >= 4
    client = plain.PlainClient.from_arrays(x, edges, y.numpy(), train.numpy())
    graph = Graph.from_arrays(x, edges)
    outputs = []
    for seed in (0, 1):
        generator = torch.Generator().manual_seed(seed)
        ours = build_model("gat", 23, 16, 4, dropout=0.5, generator=generator, dtype=torch.float32)
        theirs = plain.PlainGAT(23, 16, 4).eval()
        for mine, layer in ((ours.encoder, theirs.encoder), (ours.classifier, theirs.classifier)):
            layer.load_state_dict(
                {
                    "lin.weight": mine.weight.T,
                    "att_src": mine.att_source[None, None],
                    "att_dst": mine.att_target[None, None],
                    "bias": mine.bias,
                }
            )
        h, z = ours(graph)
        torch.testing.assert_close((h, z), theirs(client.x, client.edge_index), rtol=1e-4, atol=1e-5)
        expected = torch.nn.functional.cross_entropy(z[train], y[train])
        torch.testing.assert_close(plain.cross_entropy(theirs, client), expected, rtol=1e-4, atol=1e-5)
        outputs.append((h, z))
    (h, z), (h_global, z_global) = outputs
    torch.testing.assert_close(
        plain.contrast(h[train], h_global[train], y[train], 0.1),
        fnsc(h[train], h_global[train], y[train], 0.1),
    )
    torch.testing.assert_close(
        plain.distillation(z, z_global, client.edge_index, 5.0), fgsd(z, z_global, graph, 5.0)
    )


@pytest.mark.parametrize("method", ["local", "fedstar"])
def test_plain_graph_loop_computes_the_same_logits(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from torch_geometric.loader import DataLoader

    from benchmarks import graphs

    dataset = random_set()
    every = torch.arange(dataset.num_graphs).numpy()
    client = GraphClient(
        "a", "a", 2, PackedGraphs(dataset), torch.from_numpy(dataset.y), every, every, every, batch_size=64
    )
    ours = build_graph_model(
        "star" if method == "fedstar" else "gin",
        4,
        64,
        2,
        norm="none",
        share_norm=False,
        dropout=0.5,
        generator=torch.Generator().manual_seed(0),
        dtype=torch.float32,
    )
    plain = graphs.plain_client(client, method)
    state = {f"convs.{layer}.eps": torch.zeros(1) for layer in range(3)}
    for name, tensor in ours.state_dict().items():
        turned = name == "embed.weight" or (name.startswith("structure_convs") and name.endswith("weight"))
        target = name.replace("mlp.", "nn.")
        if name.startswith("structure_convs") and name.endswith("weight"):
            target = name.replace("weight", "lin.weight")
        state[target] = tensor.T if turned else tensor
    plain.model.load_state_dict(state)
    plain.model.eval()
    (whole,) = DataLoader(plain.train, dataset.num_graphs)
    _, logits = ours(client.packed.batch(every))
    torch.testing.assert_close(plain.model(whole), logits, rtol=1e-4, atol=1e-5)


def test_the_limit_counts_each_product_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from benchmarks import limit

    assert limit.product(2, 3, 4) == limit.Work(48, 4 * (6 + 12 + 8))
    assert limit.sparse_product(5, 2, 3, 4) == limit.Work(40, 5 * 8 + 4 * (12 + 8))
    assert limit.Work(100, 10).seconds(10.0, 2.0) == 10 and limit.Work(10, 100).seconds(10.0, 2.0) == 50
    setup = set_up(RunSpec.parse({"dataset": "karate", "clients": 2, "hidden": 8, "local_epochs": 3}))
    (client, _) = setup.clients
    assert isinstance(client, NodeClient)
    n, c = client.graph.num_nodes, client.num_classes
    links = n + 2 * client.graph.num_edges
    entries = len(client.graph.features.csr[1])
    forward = 2 * entries * 8 + 2 * links * 8 + 2 * n * 8 + 2 * n * 8 * c + 2 * links * c
    passes = limit.gat_pass(client, 8, backward=False, columns=1, edges=1)
    assert sum(work.operations for work in passes) == forward


@pytest.mark.parametrize(
    "fields", [{"dataset": "karate", "clients": 2}, {"setting": "digits-01", "method": "local"}]
)
def test_calls_are_counted_in_as_many_steps_on_hardly_any_nodes(
    fields: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from benchmarks import limit

    setup = set_up(RunSpec.parse({**fields, "rounds": 1}))
    small = limit.next_to_nothing(setup)

    def steps(setup: Setup) -> list[int]:
        return [len(list(client.batches(setup.spec.streams, 1, 0))) for client in setup.clients]

    assert steps(small) == steps(setup)
    assert [len(models) for models in (small.models, setup.models)] == 2 * [len(setup.clients)]
    weights = [weight for model in small.models for weight in model.parameters()]
    assert all(max(weight.shape) <= 12 for weight in weights if weight.dim())
    for client in small.clients:
        for batch in client.batches(setup.spec.streams, 1, 0):
            assert batch.graph.num_nodes == (12 if "dataset" in fields else 2 * len(batch.labels))
    (measured,) = small.run()
    assert measured.loss > 0 and all(confusion["test"].sum() for confusion in measured.aggregated)
