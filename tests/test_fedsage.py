"""FedSage and FedSage+: NeighGen against loops over nodes, its ledger, and what must not change."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import dense, random_arrays, random_graph
from torch.nn.functional import cross_entropy, smooth_l1_loss

from fgl_core.clients import NodeClient, node_clients
from fgl_core.datasets.node import NodeDataset
from fgl_core.methods import METHODS
from fgl_core.models import build_model, neighgen
from fgl_core.models.graph import Graph
from fgl_core.models.neighgen import (
    Candidates,
    NeighGen,
    impair,
    nearest,
    reconstruction,
    repeated,
)
from fgl_core.partition import Subgraph
from fgl_core.streams import Streams
from fgl_core.study.execute import execute
from fgl_core.study.spec import NodeSpec

FedSagePlus = METHODS["fedsage+"]
QUICK = {"generator_epochs": 3, "latent": 8, "generator_hidden": 16}
SMALL = {"dataset": "digits-knn", "clients": 3, "hidden": 16, "rounds": 2, "local_epochs": 2}


def client_of(seed: int, name: str = "client-0", nodes: int = 40) -> NodeClient:
    """A client on a random graph in which some nodes are isolated and one has no features."""
    x, edges = random_arrays(seed, nodes=nodes)
    y = np.arange(nodes) % 3
    order = np.random.default_rng(seed).permutation(nodes)
    train, val, test = (
        np.isin(np.arange(nodes), part) for part in np.split(order, [nodes // 2, -nodes // 10])
    )
    part = Subgraph(np.arange(nodes), x, edges, y, train, val, test)
    client = node_clients(NodeDataset("random", x, edges, y, 3), [part], "union", torch.float64)[0]
    return replace(client, name=name)


def clients_of(number: int) -> list[NodeClient]:
    return [client_of(i, f"client-{i}", 40 + 5 * i) for i in range(number)]


def neighgen_of(client: NodeClient, seed: int = 0, most: int = 5) -> NeighGen:
    return NeighGen(
        client.graph.num_features,
        client.num_classes,
        latent=6,
        hidden=7,
        most=most,
        dropout=0,
        generator=torch.Generator().manual_seed(seed),
        dtype=torch.float64,
    )


def neighbours_of(graph: Graph) -> dict[int, set[int]]:
    found = {node: set() for node in range(graph.num_nodes)}
    for u, v in graph.undirected_edges.tolist():
        found[u].add(v)
        found[v].add(u)
    return found


def promise(model: NeighGen, counts: torch.Tensor) -> None:
    """Make the degree head predict these numbers, whatever the node."""
    model.counts = lambda expected: counts


@pytest.fixture
def eager(monkeypatch):
    """Scale what the degree head expects, so that a generator hardly trained makes neighbours, too."""
    counts = NeighGen.counts
    monkeypatch.setattr(NeighGen, "counts", lambda self, expected: counts(self, 100 * expected))


def grown(prepared: list[NodeClient], clients: list[NodeClient]) -> list[int]:
    pairs = zip(prepared, clients, strict=True)
    return [after.graph.num_nodes - before.graph.num_nodes for after, before in pairs]


def test_the_mended_graph_has_exactly_the_predicted_neighbours():
    client = client_of(0)
    model, graph = neighgen_of(client), client.graph
    counts = torch.randint(0, 4, (graph.num_nodes,), generator=torch.Generator().manual_seed(1))
    promise(model, counts)
    mended = model.mend(graph, torch.Generator().manual_seed(2))
    assert mended.num_nodes == graph.num_nodes + int(counts.sum())
    assert mended.num_edges == graph.num_edges + int(counts.sum())
    assert mended.num_features == graph.num_features and mended.dtype == graph.dtype
    before, after = neighbours_of(graph), neighbours_of(mended)
    new = graph.num_nodes
    for node in range(graph.num_nodes):
        expected = set(range(new, new + int(counts[node])))
        assert after[node] == before[node] | expected
        assert all(after[made] == {node} for made in expected)
        new += len(expected)
    torch.testing.assert_close(dense(mended)[: graph.num_nodes], dense(graph), rtol=0, atol=0)

    embeddings, _ = model.embed(graph)
    noise = torch.randn(int(counts.sum()), 6, generator=torch.Generator().manual_seed(2)).double()
    owner = [node for node, count in enumerate(counts.tolist()) for _ in range(count)]
    for row, node in enumerate(owner):
        made = model.features(embeddings[node] + noise[row])
        torch.testing.assert_close(dense(mended)[graph.num_nodes + row], made)


def test_counts_are_rounded_and_bounded():
    model = neighgen_of(client_of(0), most=2)
    expected = torch.tensor([0.0, 0.4, 0.6, 1.4, 1.6, 2.6, 9.0])
    assert model.counts(expected).tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert repeated(torch.tensor([2, 0, 1])).tolist() == [0, 0, 2]


def test_a_graph_without_predicted_neighbours_stays_itself():
    client = client_of(0)
    model = neighgen_of(client)
    promise(model, torch.zeros(client.graph.num_nodes, dtype=torch.int64))
    assert model.mend(client.graph, torch.Generator()) is client.graph


def test_hiding_nodes_equals_a_loop():
    graph = random_graph(3)
    hidden = np.array([4, 9, 17, 21, 30])
    impaired = impair(graph, hidden)
    before, after = neighbours_of(graph), neighbours_of(impaired.graph)
    for node in range(graph.num_nodes):
        if node in hidden:
            assert not after[node] and not impaired.visible[node] and impaired.degree[node] == 0
            continue
        assert after[node] == before[node] - set(hidden.tolist())
        lost = [h for h in hidden.tolist() if h in before[node]]
        assert impaired.degree[node] == len(lost)
        assert hidden[impaired.missing[[node]].nonzero()[1]].tolist() == lost
    np.testing.assert_array_equal(impaired.hidden.rows.toarray(), dense(graph)[hidden].numpy())


@pytest.mark.parametrize("block", [2**20, 7])
def test_nearest_and_reconstruction_equal_double_loops(block, monkeypatch):
    monkeypatch.setattr(neighgen, "_BLOCK", block)
    rng = np.random.default_rng(0)
    points = torch.from_numpy(rng.normal(size=(9, 4))).requires_grad_()
    sets = [Candidates(sp.csr_array(rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.7))) for n in (6, 11)]
    allowed = rng.random((9, 6)) < 0.4
    allowed[np.arange(9), np.arange(9) % 6] = True

    def loop(candidates, allowed):
        total, chosen = 0, []
        for i, point in enumerate(points):
            squares = [
                (point - torch.from_numpy(row)).square().mean() if allowed is None or allowed[i, u] else None
                for u, row in enumerate(candidates.rows.toarray())
            ]
            best = min((s.item(), u) for u, s in enumerate(squares) if s is not None)[1]
            total, chosen = total + squares[best], [*chosen, best]
        return total, chosen

    masked, everything = loop(sets[0], allowed), loop(sets[1], None)
    assert nearest(points, sets[0], sp.csr_array(allowed)).tolist() == masked[1]
    assert nearest(points, sets[1]).tolist() == everything[1]
    for got, expected in [
        (reconstruction(points, sets[:1], sp.csr_array(allowed)), masked[0]),
        (reconstruction(points, sets), loop(sets[0], None)[0] + everything[0]),
    ]:
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)
        gradients = (torch.autograd.grad(value, points)[0] for value in (got, expected))
        torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-9)
    assert reconstruction(points[:0], sets) == 0 and reconstruction(points, []) == 0


def test_classifier_on_the_mended_graph_equals_graphsage_there():
    client = client_of(1)
    model, graph = neighgen_of(client), client.graph
    counts = torch.arange(graph.num_nodes) % 3
    promise(model, counts)
    mended = model.mend(graph, torch.Generator().manual_seed(0))
    owner = repeated(counts)
    generated = dense(mended)[graph.num_nodes :].clone().requires_grad_()
    logits = model.classify(graph, generated, owner, torch.Generator())
    _, expected = model.classifier(mended)
    torch.testing.assert_close(logits, expected[: graph.num_nodes], rtol=0, atol=1e-12)
    logits.square().sum().backward()
    assert (generated.grad.abs().sum(1) > 0).all()


def test_generator_loss_equals_a_loop_over_nodes():
    clients = clients_of(3)
    method = FedSagePlus(**QUICK, generator_dropout=0, degree_weight=2, feature_weight=3, label_weight=5)
    streams, client = Streams(4), clients[0]
    model, impaired = method._build(client, streams), method._impair(client, streams)
    with torch.no_grad():
        model.degree.bias += 1  # so that some neighbours are predicted, more or fewer than are hidden
    others = [Candidates(other.graph.features.matrix) for other in clients[1:]]
    loss, sent = method._loss(model, impaired, client, others, streams, 7)

    embeddings, expected = model.embed(impaired.graph)
    lost = {node: impaired.missing[[node]].nonzero()[1].tolist() for node in range(len(expected))}
    visible = [node for node in range(len(expected)) if impaired.visible[node]]
    hidden = torch.from_numpy(impaired.hidden.rows.toarray())
    noise = torch.randn(len(sent), 8, generator=streams.torch("neighgen noise", "client-0", 7)).double()
    degree, features, row = 0, 0, 0
    kept, owners = [], []
    for node in visible:
        degree += smooth_l1_loss(expected[node], torch.tensor(float(len(lost[node])), dtype=torch.float64))
        predicted = min(round(expected[node].item()), 5)
        for rank in range(max(predicted, min(len(lost[node]), 5))):
            torch.testing.assert_close(sent[row], embeddings[node] + noise[row])
            made = model.features(sent[row])
            if lost[node]:
                features += min((made - hidden[u]).square().mean() for u in lost[node])
            for other in others:
                features += min((made - torch.from_numpy(x)).square().mean() for x in other.rows.toarray())
            if rank < predicted:
                kept.append(made)
                owners.append(node)
            row += 1
    assert row == len(sent) and 0 < len(kept) < row
    logits = model.classify(impaired.graph, torch.stack(kept), torch.tensor(owners), torch.Generator())
    labels = cross_entropy(logits[client.train], client.labels[client.train])
    total = 2 * degree / len(visible) + 3 * features / len(visible) + 5 * labels
    torch.testing.assert_close(loss, total, rtol=1e-9, atol=1e-9)


def test_other_clients_move_the_feature_generator_only_and_their_gradients_add_up():
    clients = clients_of(3)
    method, streams, client = FedSagePlus(**QUICK), Streams(0), clients[0]
    model, impaired = method._build(client, streams), method._impair(client, streams)
    others = [Candidates(other.graph.features.matrix) for other in clients[1:]]

    def gradients(others):
        model.zero_grad()
        loss, sent = method._loss(model, impaired, client, others, streams, 0)
        loss.backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}, sent

    (alone, sent), (together, _) = gradients([]), gradients(others)
    returned = []
    for other in others:  # what each other client computes, from what was sent to it
        model.zero_grad()
        (reconstruction(model.features(sent), [other]) / impaired.visible.sum()).backward()
        returned.append({name: p.grad.clone() for name, p in model.features.named_parameters()})
    assert alone.keys() == together.keys()
    for name, gradient in together.items():
        inner = name.removeprefix("features.")
        added = sum(g[inner] for g in returned) if name.startswith("features.") else 0
        torch.testing.assert_close(gradient, alone[name] + added, rtol=1e-9, atol=1e-12)
        assert name.startswith("features.") or torch.equal(gradient, alone[name])


def test_ledger_counts_generators_embeddings_and_gradients():
    clients = clients_of(3)
    rows = []

    class Watched(FedSagePlus):
        def _loss(self, *arguments):
            loss, sent = FedSagePlus._loss(self, *arguments)
            rows.append(len(sent))
            return loss, sent

    prepared = Watched.model_construct(**FedSagePlus(**QUICK).model_dump()).prepare(clients, Streams(0))
    assert len(rows) == 9 and all(rows)  # three clients, three epochs
    parameters = 8 * ((8 * 16 + 16) + (16 * 23 + 23))  # float64: latent → hidden → features
    assert prepared.bytes_up == {
        "generator": 9 * parameters,
        "node embeddings": 8 * 8 * sum(rows),
        "generator gradients": 9 * 2 * parameters,  # from each of the two others
    }
    assert prepared.bytes_down == {
        "generator": 9 * 2 * parameters,
        "node embeddings": 2 * 8 * 8 * sum(rows),
        "generator gradients": 9 * parameters,  # their sum
    }
    alone = FedSagePlus(**QUICK).prepare(clients[:1], Streams(0))
    assert alone.bytes_up == alone.bytes_down == {}
    assert alone.clients[0].graph.num_nodes >= clients[0].graph.num_nodes


def test_the_record_counts_the_generator_in_the_first_round():
    record = execute(NodeSpec(**SMALL, method={"name": "fedsage+", **QUICK}))
    for way in ("up", "down"):
        counted = record["bytes"][way]
        assert set(counted) == {"model", "generator", "node embeddings", "generator gradients"}
        assert counted["model"][0] == counted["model"][1] > 0
        assert all(counted[kind][0] > 0 == counted[kind][1] for kind in counted if kind != "model")


def test_without_generated_neighbours_fedsage_plus_is_fedsage(monkeypatch):
    seen = {}

    def run(name):
        class Watched(METHODS[name]):
            def aggregate(self, server, updates):
                METHODS[name].aggregate(self, server, updates)
                seen[name] = server.outbox[0]

        options = QUICK if name == "fedsage+" else {}
        watched = Watched.model_construct(**METHODS[name](**options).model_dump())
        spec = NodeSpec(**SMALL, method=name).model_copy(update={"method": watched})
        return execute(spec, dtype="float64")["curves"]

    monkeypatch.setattr(NeighGen, "counts", lambda self, expected: torch.zeros_like(expected).long())
    plain, plus = run("fedsage"), run("fedsage+")
    assert plain == plus
    for name, tensor in seen["fedsage"].items():
        torch.testing.assert_close(seen["fedsage+"][name], tensor, rtol=0, atol=1e-12)
    monkeypatch.undo()
    monkeypatch.setattr(NeighGen, "counts", lambda self, expected: torch.ones_like(expected).long())
    run("fedsage+")
    assert max((seen["fedsage+"][name] - t).abs().max() for name, t in seen["fedsage"].items()) > 1e-6


def test_mended_nodes_are_trained_on_and_never_evaluated(monkeypatch):
    monkeypatch.setattr(NeighGen, "counts", lambda self, expected: torch.ones_like(expected).long())
    clients = clients_of(2)
    for before, after in zip(clients, FedSagePlus(**QUICK).prepare(clients, Streams(0)).clients, strict=True):
        assert after.graph.num_nodes == 2 * before.graph.num_nodes
        assert replace(after, graph=before.graph) == before  # labels, masks and evaluation graph are the same
        model = build_model(
            "sage", 23, 8, 3, dropout=0.5, generator=torch.Generator().manual_seed(0), dtype=torch.float64
        )
        counted = after.evaluate(model)
        predicted = model(before.graph)[1].argmax(1)
        for split in ("val", "test"):
            rows = getattr(before, split)
            assert counted[split].sum() == len(rows)
            assert np.trace(counted[split]) == (predicted[rows] == before.labels[rows]).sum()


def test_accuracy_of_fedsage_plus_is_that_of_classifying_nodes():
    record = execute(NodeSpec(**SMALL | {"rounds": 20}, method={"name": "fedsage+", **QUICK}))
    sizes = [client["test"] for client in record["partition"]["clients"]]
    correct, accuracy = (record["curves"][name][-1] for name in ("test_correct", "test_accuracy"))
    assert accuracy == pytest.approx(sum(correct) / sum(sizes), abs=1e-5)
    assert accuracy > 0.8  # ten classes


def test_labels_of_validation_and_test_nodes_are_never_read(eager):
    clients = clients_of(2)
    poisoned = deepcopy(clients)
    for client in poisoned:
        for rows in (client.val, client.test):
            client.labels[rows] = (client.labels[rows] + 1) % 3
    prepared = [FedSagePlus(**QUICK).prepare(c, Streams(0)).clients for c in (clients, poisoned)]
    assert max(grown(prepared[0], clients)) > 0
    for clean, other in zip(*prepared, strict=True):
        assert torch.equal(dense(clean.graph), dense(other.graph))
        assert torch.equal(clean.graph.adjacency.source, other.graph.adjacency.source)


def test_preparation_repeats_in_any_order_and_leaves_global_random_state_alone(eager):
    clients = clients_of(3)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = FedSagePlus(**QUICK).prepare(clients, Streams(0)).clients
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    again = FedSagePlus(**QUICK).prepare(clients[::-1], Streams(0)).clients[::-1]
    for one, other in zip(first, again, strict=True):
        torch.testing.assert_close(dense(one.graph), dense(other.graph), rtol=0, atol=1e-10)
    assert max(grown(first, clients)) > 0


@pytest.mark.parametrize("hidden", [0.0, 1.0])
def test_hiding_nothing_or_all_validation_nodes(eager, hidden):
    clients = clients_of(2)
    prepared = FedSagePlus(**QUICK, hide_portion=hidden).prepare(clients, Streams(0))
    assert all(dense(client.graph).isfinite().all() for client in prepared.clients)


def test_clients_without_edges_or_validation_nodes(eager):
    clients = clients_of(2)
    bare = clients[0].graph
    bare = bare.view(torch.zeros(bare.num_edges, dtype=torch.bool))
    clients[0] = replace(clients[0], graph=bare, val=clients[0].val[:0])
    prepared = FedSagePlus(**QUICK).prepare(clients, Streams(0))
    assert all(dense(client.graph).isfinite().all() for client in prepared.clients)


@pytest.mark.parametrize("method", ["fedsage", "fedsage+"])
@pytest.mark.parametrize(
    ("dataset", "clients"),
    [("digits-knn", 5), ("digits-knn", 7), ("digits-knn", 10), ("digits-knn", 20), ("karate", 5)],
)
def test_every_number_of_clients_runs(dataset, clients, method):
    options = QUICK if method == "fedsage+" else {}
    record = execute(
        NodeSpec(
            dataset=dataset,
            clients=clients,
            rounds=1,
            local_epochs=1,
            hidden=8,
            method={"name": method, **options},
        )
    )
    assert record["status"] == "done"
    assert all(client["train"] > 0 for client in record["partition"]["clients"])


def test_fedsage_is_federated_averaging_of_graphsage():
    spec = NodeSpec(**SMALL, method="fedsage")
    assert spec.backbone == "sage"
    same = execute(NodeSpec(**SMALL, backbone="sage", method="fedavg"))
    assert execute(spec)["curves"] == same["curves"]
