"""How clients train and are evaluated in a round, beside what golden runs can see."""

from __future__ import annotations

import math
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import torch
from test_graph_clients import members as sharing
from torch.nn.functional import cross_entropy

from fgl_core.federation import LocalTraining, federate
from fgl_core.methods import METHODS
from fgl_core.streams import Streams
from fgl_core.study.setup import set_up
from fgl_core.study.spec import GraphSpec, NodeSpec

SGD = partial(torch.optim.SGD, lr=0.5)


def test_the_loss_of_a_round_is_a_mean_over_steps_then_over_training_examples():
    class Fixed(METHODS["fedavg"]):
        def loss(self, step):
            known = 10.0 * int(step.client.name[-1]) + step.epoch**2
            return known + 0 * sum(parameter.sum() for parameter in step.model.parameters())

    setup = set_up(NodeSpec(dataset="karate", clients=2, hidden=4), torch.float64)
    # half of one client's training nodes are left out, so that weights matter
    first, second = setup.clients
    object.__setattr__(second, "train", second.train[: len(second.train) // 2])
    training = LocalTraining(3, SGD, "reset")
    (found,) = federate(
        Fixed.model_construct(name="fedavg"),
        setup.clients,
        setup.models,
        training,
        rounds=1,
        streams=Streams(0),
    )
    sizes = [len(first.train), len(second.train)]
    assert sizes[0] != sizes[1]
    steps = (0 + 1 + 4) / 3
    assert found.loss == pytest.approx((sizes[0] * steps + sizes[1] * (10 + steps)) / sum(sizes))


def test_evaluation_is_before_and_after_aggregation():
    setup = set_up(NodeSpec(dataset="digits-knn", clients=3, hidden=8, rounds=3))
    before, after = [], []

    class Watched(METHODS["fedavg"]):
        def aggregate(self, server, updates):
            METHODS["fedavg"].aggregate(self, server, updates)
            mean = deepcopy(setup.models[0])
            mean.load_state_dict(server.outbox[0])
            after.append([client.evaluate(mean) for client in setup.clients])

    def trained(number, models):
        pairs = zip(setup.clients, models, strict=True)
        before.append([client.evaluate(model) for client, model in pairs])

    watched = Watched.model_construct(name="fedavg")
    rounds = list(
        federate(
            watched,
            setup.clients,
            setup.models,
            setup.training,
            rounds=3,
            streams=Streams(0),
            on_trained=trained,
        )
    )
    for found, local, shared in zip(rounds, before, after, strict=True):
        for kind, expected in ((found.trained, local), (found.aggregated, shared)):
            for one, other in zip(kind, expected, strict=True):
                for split in ("val", "test"):
                    np.testing.assert_array_equal(one[split], other[split])
    assert any(
        not np.array_equal(a["test"], b["test"])
        for found in rounds
        for a, b in zip(found.trained, found.aggregated, strict=True)
    )


def test_each_local_model_is_asked_about_the_test_nodes_of_all():
    setup = set_up(NodeSpec(dataset="digits-knn", clients=3, hidden=8, rounds=2, method="local"))
    *_, last = setup.run()
    expected = [sum(c.evaluate(model)["test"] for c in setup.clients) for model in setup.models]
    assert not np.array_equal(expected[0], expected[1])
    np.testing.assert_array_equal(last.everywhere, expected)


@pytest.mark.parametrize("clip", [None, 0.01])
def test_a_clipped_step_is_as_long_as_the_clip(clip):
    values = {"momentum": 0.0, "weight_decay": 0.0, "lr": 0.5, "local_epochs": 1, "rounds": 1}
    setup = set_up(NodeSpec(dataset="karate", clients=1, hidden=8, clip=clip, **values), torch.float64)
    plain = deepcopy(setup.models[0])
    list(setup.run())
    client = setup.clients[0]
    masks = Streams(0).torch("dropout", "client-0", 1, 0, 0)
    logits = plain(client.graph, dropout=masks)[1]
    cross_entropy(logits[client.train], client.labels[client.train]).backward()
    length = math.sqrt(sum(float(p.grad.square().sum()) for p in plain.parameters()))
    assert length > 0.02
    shrunk = 1 if clip is None else clip / length
    trained = dict(setup.models[0].named_parameters())
    for name, parameter in plain.named_parameters():
        expected = parameter - 0.5 * shrunk * parameter.grad
        torch.testing.assert_close(trained[name], expected, rtol=1e-6, atol=1e-8)


def test_clients_keep_or_reset_their_optimiser_as_the_run_says():
    for state in ("keep", "reset"):
        node = NodeSpec(dataset="karate", clients=2, hidden=4, optimizer_state=state)
        graph = GraphSpec(setting="digits-01,digits-23", hidden=4, norm="none", optimizer_state=state)
        assert [set_up(spec).training.optimizer_state for spec in (node, graph)] == [state, state]


def test_clients_train_with_the_optimiser_of_their_run():
    node = {"lr": 0.3, "momentum": 0.6, "weight_decay": 0.02}
    graph = {"lr": 0.003, "weight_decay": 0.07}
    specs = (
        (NodeSpec(dataset="karate", clients=2, hidden=4, **node), torch.optim.SGD, node),
        (GraphSpec(setting="digits-01", hidden=4, norm="none", **graph), torch.optim.Adam, graph),
    )
    for spec, kind, values in specs:
        setup = set_up(spec)
        optimizer = setup.training.optimizer(setup.models[0].parameters())
        assert type(optimizer) is kind and values.items() <= optimizer.defaults.items()
        assert len(optimizer.param_groups) == 1 and setup.training.epochs == spec.local_epochs


def test_clients_with_starts_of_their_own():
    same, own = (
        set_up(GraphSpec(setting="digits-01,digits-23", hidden=4, norm="none", common_start=common)).models
        for common in (True, False)
    )
    name = "convs.0.mlp.0.weight"
    assert torch.equal(*(model.state_dict()[name] for model in same))
    assert not torch.equal(*(model.state_dict()[name] for model in own))


def test_clients_of_one_set_get_graphs_at_random():
    parts = [np.sort(np.concatenate([c.train, c.val, c.test])) for c in sharing(["a"], clients_per_dataset=2)]
    order = Streams(0).numpy("clients", "a").permutation(np.arange(40))
    for part, expected in zip(parts, (order[:20], order[20:]), strict=True):
        np.testing.assert_array_equal(part, np.sort(expected))
