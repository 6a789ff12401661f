"""Methods' losses and server steps against hand computation and brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from test_fgssl_released import compare, step_of
from test_gcfl import gcfl_server, vector_updates
from test_graph_methods import bits, members, serve, start, updates_with
from test_losses import loop_fgsd, loop_fnsc
from torch.nn.functional import cross_entropy

from fgl_core.augment import VIEW_RATES, draw_view
from fgl_core.federation import Server, Update
from fgl_core.methods import METHODS
from fgl_core.signature import cluster, hash_similarity, signature
from fgl_core.streams import Streams

VECTORS = [[-2.5, -0.9], [-0.2, 1.5], [0.2, 1.4], [-0.4, -0.3], [-3.9, 0.5]]


@pytest.mark.parametrize("kind", ["adam", "yogi", "adagrad", "sgd"])
def test_two_rounds_of_each_server_optimiser_by_hand(kind):
    method = METHODS["fedopt"](server_optimizer=kind, server_lr=0.3, beta1=0.8, beta2=0.7, adaptivity=0.1)
    server = Server(outbox=[{"w": torch.tensor([1.0, -2.0], dtype=torch.float64)}] * 2, streams=Streams(0))
    x, m, v = np.array([1.0, -2.0]), np.zeros(2), np.full(2, 0.1**2)
    # in the second round one change is small beside v and one large, so that yogi moves both ways
    for sent in ([[3.0, 0.5], [1.0, -2.5]], [[1.3, 4.0], [0.9, -1.0]]):
        updates = [
            Update(i, weight, {"w": torch.tensor(tensor, dtype=torch.float64)}, {})
            for i, (weight, tensor) in enumerate(zip((3, 1), sent, strict=True))
        ]
        method.aggregate(server, updates)
        change = (3 * np.array(sent[0]) + np.array(sent[1])) / 4 - x
        m = 0.8 * m + 0.2 * change
        v = {
            "adam": 0.7 * v + 0.3 * change**2,
            "yogi": v - 0.3 * change**2 * np.sign(v - change**2),
            "adagrad": v + change**2,
            "sgd": v,
        }[kind]
        x = x + (0.3 * change if kind == "sgd" else 0.3 * m / (np.sqrt(v) + 0.1))
        for outbox in server.outbox:
            np.testing.assert_allclose(outbox["w"], x, rtol=1e-12)


@pytest.mark.parametrize(("local", "other"), [("weak", "none"), ("none", "strong"), ("strong", "weak")])
@pytest.mark.parametrize("denominator", ["supcon", "pairwise"])
def test_fgssl_takes_its_views_temperatures_weights_and_denominator(local, other, denominator):
    step = step_of()
    method = METHODS["fgssl"](
        lambda_c=0.7, lambda_d=20.0, tau=0.4, omega=0.5, denominator=denominator,
        local_view=local, global_view=other,
    )  # fmt: skip
    graph, rows, labels = step.batch.graph, step.batch.rows, step.batch.labels
    mine = draw_view(graph, *VIEW_RATES[local], step.generator("local view"))
    theirs = draw_view(graph, *VIEW_RATES[other], step.generator("global view"))
    h, z = step.model(mine, dropout=step.generator("view dropout"))
    h_global, z_global = (tensor.detach() for tensor in step.received.model(theirs))
    target, source = (side.tolist() for side in graph.neighbours)
    edges = [(u, v) for u, v in zip(target, source, strict=True) if u < v]
    contrast = loop_fnsc(h[rows], h_global[rows], labels.tolist(), 0.4, denominator)
    expected = METHODS["fedavg"]().loss(step) + 0.7 * contrast + 20 * loop_fgsd(z, z_global, edges, 0.5)
    compare(method.loss(step), expected, *step.model.parameters())


def test_fedprox_adds_half_of_mu_times_the_squared_distance():
    step = step_of()
    received = step.received.tensors
    squares = sum((w - received[name]).square().sum() for name, w in step.model.named_parameters())
    assert squares > 1
    expected = METHODS["fedavg"]().loss(step) + 0.3 / 2 * squares
    compare(METHODS["fedprox"](mu=0.3).loss(step), expected, *step.model.parameters())


@pytest.mark.parametrize("strength", ["weak", "strong"])
def test_fedavg_on_views_trains_on_the_view_it_says(strength):
    step = step_of()
    view = draw_view(step.batch.graph, *VIEW_RATES[strength], step.generator("local view"))
    logits = step.model(view, dropout=step.generator("dropout"))[1][step.batch.rows]
    expected = cross_entropy(logits, step.batch.labels)
    compare(METHODS["fedavg-view"](view=strength).loss(step), expected, *step.model.parameters())


def test_one_member_that_moves_is_enough_for_gcfl_to_cut():
    # three hardly move, two much and against each other: the mean is small, and so is the median
    vectors = [[0.02, 0.0], [0.02, 0.01], [0.02, -0.01], [0.5, 0.0], [-0.5, 0.0]]
    server = gcfl_server(5)
    METHODS["gcfl"]().aggregate(server, vector_updates(vectors))
    assert len(set(server.notes["clusters"])) == 2
    # and three members are enough
    server = gcfl_server(3)
    METHODS["gcfl"]().aggregate(server, vector_updates([[0.5, 0.0], [-0.25, 0.1], [-0.25, -0.1]]))
    assert server.notes["clusters"] == [0, 1, 1]


def smallest_cut(weights):
    k = len(weights)
    parts = [set(part) for size in range(1, k // 2 + 1) for part in combinations(range(k), size)]
    return min(parts, key=lambda part: sum(weights[i][j] for i in part for j in set(range(k)) - part))


def test_gcfl_weighs_edges_by_cosine_plus_one():
    # by cosines alone, or by those above 0, another client would be cut off
    vectors = np.array(VECTORS)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    expected = smallest_cut(cosine + 1)
    assert expected not in (smallest_cut(cosine.clip(min=0)), set(range(5)) - smallest_cut(cosine.clip(0)))
    server = gcfl_server(5)
    METHODS["gcfl"](epsilon_1=10.0).aggregate(server, vector_updates(vectors.tolist()))
    apart = {i for i, label in enumerate(server.notes["clusters"]) if label}
    assert expected in (apart, set(range(5)) - apart)


def test_gcfl_cuts_a_later_cluster_by_its_own_members():
    # the first two are alike, and so are the last two; 2 and 4 stand against 3 and 5
    vectors = [[0.3, 0.0], [0.3, 0.01], [0.5, 0.1], [-0.5, 0.1], [0.5, -0.1], [-0.5, -0.1]]
    server = gcfl_server(6)
    server.state["clusters"] = [[0, 1], [2, 3, 4, 5]]
    METHODS["gcfl"]().aggregate(server, vector_updates(vectors))
    assert server.state["clusters"] == [[0, 1], [2, 4], [3, 5]]
    assert server.notes["clusters"] == [0, 0, 1, 2, 1, 2]


def test_gcfl_plus_looks_at_the_last_norms_of_a_clusters_own_members():
    vectors = [[0.3, 0.0], [0.3, 0.01], [0.5, 0.1], [-0.5, 0.1], [0.5, -0.1], [-0.5, -0.1]]
    server = gcfl_server(6)
    server.state["clusters"] = [[0, 1], [2, 3, 4, 5]]
    # long ago 2 and 3 were far from 4 and 5, lately 2 and 5 are far from 3 and 4
    old = [1.0, 9.0, 1.0, 1.0, 99.0, 99.0]
    late = [1.0, 1.1, 1.0, 5.0, 5.1, 1.1]
    server.state["history"] = [[a] * 6 + [b] * 2 for a, b in zip(old, late, strict=True)]
    reports = [{"gradient norm": np.array([value], np.float32)} for value in late]
    method = METHODS["gcfl+"](window=3)
    method.aggregate(server, vector_updates(vectors, reports=reports))
    assert server.state["clusters"] == [[0, 1], [2, 5], [3, 4]]


def test_gcfl_plus_sends_the_length_of_the_last_gradient_by_shared_tensors():
    clients = members()
    method = METHODS["gcfl+"]()
    model = start(method, clients)[0].train()
    batch = next(iter(clients[0].batches(Streams(0), 1, 0)))
    cross_entropy(model(batch.graph)[1], batch.labels).backward()
    shared = [p.grad.flatten() for name, p in model.named_parameters() if name.startswith("convs.")]
    report = method.report(clients[0], model)["gradient norm"]
    assert report.dtype == np.float32
    assert float(report[0]) == pytest.approx(float(torch.cat(shared).norm()), rel=1e-6)


def test_shuffled_units_have_one_order_for_all_clients():
    clients = members()
    method = METHODS["fedcch"](signature="difference", unit_order=1)
    order = np.random.default_rng(1).permutation(64)
    for client, model in zip(clients, start(method, clients, hidden=64), strict=True):
        mean = client.representations(model).mean(0).numpy()
        found = np.unpackbits(method.report(client, model)["signature"]).astype(bool)
        np.testing.assert_array_equal(found, signature(mean[order], "difference"))


def test_fedcch_clusters_by_the_linkage_it_is_given():
    similarity, reports = None, None
    for seed in range(200):  # signatures that the linkages do not agree on
        rng = np.random.default_rng(seed)
        flipped = [np.flatnonzero(rng.random(64) < 0.5) for _ in range(9)]
        reports = [bits(*some) for some in flipped]
        similarity = hash_similarity([np.unpackbits(report["signature"]) for report in reports])
        labels = {
            kind: cluster(similarity, algorithm=kind, clusters=3).tolist()
            for kind in ("average", "single", "complete")
        }
        if len(set(map(tuple, labels.values()))) == 3:
            break
    assert len(set(map(tuple, labels.values()))) == 3
    for kind, expected in labels.items():
        method = METHODS["fedcch"](clustering=kind, clusters=3)
        ((notes, _),) = serve(method, [updates_with(reports, range(9))])
        assert notes["clusters"] == expected, kind
