"""The round loop against plainly written training, and the methods against each other."""

from __future__ import annotations

import random
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import torch
from random_state import untouched_random_state
from torch.nn.functional import cross_entropy

from fgl_core.federation import LocalTraining, federate
from fgl_core.methods import METHODS
from fgl_core.methods.fedavg import weighted_mean
from fgl_core.streams import Streams
from fgl_core.study.setup import set_up
from fgl_core.study.spec import NodeSpec

SGD = partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=5e-4)


def setting(clients: int, seed: int = 0):
    spec = NodeSpec(dataset="karate", clients=clients, hidden=16, seed=seed)
    setup = set_up(spec, torch.float64)
    return setup.clients, setup.models[0]


def final_models(method, clients, model, rounds=3, state="reset", epochs=4, seed=0):
    """Run the loop and return its rounds and what every client would get next."""
    kept = {}

    class Watched(type(method)):
        def aggregate(self, server, updates):
            type(method).aggregate(method, server, updates)
            kept["updates"], kept["next"] = updates, server.outbox

    watched = Watched.model_construct(**method.model_dump())
    measured = list(
        federate(
            watched,
            clients,
            [deepcopy(model) for _ in clients],
            LocalTraining(epochs, SGD, state),
            rounds=rounds,
            streams=Streams(seed),
            everywhere=method.evaluates_everywhere,
        )
    )
    return measured, kept


@pytest.mark.parametrize("state", ["reset", "keep"])
def test_one_client_fedavg_is_centralised_training(state):
    clients, model = setting(clients=1)
    _, kept = final_models(METHODS["fedavg"](), clients, model, rounds=10, state=state)

    plain, client = deepcopy(model), clients[0]
    optimizer = SGD(plain.parameters())
    for number in range(1, 11):
        if state == "reset":
            optimizer = SGD(plain.parameters())
        for epoch in range(4):
            masks = Streams(0).torch("dropout", "client-0", number, epoch, 0)
            _, logits = plain(client.graph, dropout=masks)
            loss = cross_entropy(logits[client.train], client.labels[client.train])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for name, tensor in plain.state_dict().items():
        torch.testing.assert_close(kept["next"][0][name], tensor, rtol=0, atol=1e-10)


def test_reset_and_keep_differ():
    clients, model = setting(clients=2)
    ends = [
        final_models(METHODS["fedavg"](), clients, model, state=s)[1]["next"][0] for s in ("reset", "keep")
    ]
    assert any(not torch.allclose(ends[0][name], ends[1][name]) for name in ends[0])


def test_fgssl_without_weights_is_fedavg_and_its_terms_act():
    clients, model = setting(clients=2)
    _, fedavg = final_models(METHODS["fedavg"](), clients, model)
    _, off = final_models(METHODS["fgssl"](lambda_c=0, lambda_d=0), clients, model)
    for name, tensor in fedavg["next"][0].items():
        torch.testing.assert_close(off["next"][0][name], tensor, rtol=0, atol=1e-12)
    for weights in ({"lambda_c": 1, "lambda_d": 0}, {"lambda_c": 0, "lambda_d": 1}):
        _, on = final_models(METHODS["fgssl"](**weights), clients, model)
        change = max((on["next"][0][name] - fedavg["next"][0][name]).abs().max() for name in on["next"][0])
        assert change > 1e-6, weights


def test_fgssl_calibrates_against_the_received_model_not_the_moving_one():
    # in the first epoch the frozen copy and the live model coincide; after a step they differ
    clients, model = setting(clients=2)
    seen = []

    class Spy(METHODS["fgssl"]):
        def loss(self, step):
            seen.append(
                (step.epoch, deepcopy(step.received.model.state_dict()), deepcopy(step.model.state_dict()))
            )
            return METHODS["fgssl"].loss(self, step)

    list(
        federate(
            Spy.model_construct(**METHODS["fgssl"]().model_dump()),
            clients,
            [deepcopy(model) for _ in clients],
            LocalTraining(2, SGD, "reset"),
            rounds=1,
            streams=Streams(0),
        )
    )
    for epoch, received, live in seen:
        for name, tensor in model.state_dict().items():
            torch.testing.assert_close(received[name], tensor, rtol=0, atol=0)
        moved = any(not torch.equal(live[name], received[name]) for name in live)
        assert moved == (epoch > 0)


def test_average_is_weighted_by_training_nodes():
    clients, model = setting(clients=2)
    _, kept = final_models(METHODS["fedavg"](), clients, model, rounds=1)
    first, second = kept["updates"]
    assert [u.weight for u in kept["updates"]] == [len(c.train) for c in clients]
    total = first.weight + second.weight
    for name, tensor in kept["next"][1].items():
        expected = (first.weight * first.tensors[name] + second.weight * second.tensors[name]) / total
        torch.testing.assert_close(tensor, expected, rtol=0, atol=1e-12)
    assert weighted_mean([first])[name] is not first.tensors[name]


def test_order_of_clients_does_not_matter():
    clients, model = setting(clients=3)
    _, forward = final_models(METHODS["fgssl"](), clients, model)
    _, backward = final_models(METHODS["fgssl"](), clients[::-1], model)
    for name, tensor in forward["next"][0].items():
        torch.testing.assert_close(backward["next"][0][name], tensor, rtol=0, atol=1e-10)


def test_ledger_counts_every_tensor_that_travels():
    clients, model = setting(clients=3)
    size = 8 * sum(tensor.numel() for tensor in model.state_dict().values())  # float64
    for name, expected in [("fedavg", 3 * size), ("fgssl", 3 * size), ("local", 0)]:
        measured, _ = final_models(METHODS[name](), clients, model, rounds=2)
        assert [r.bytes_up for r in measured] == [{"model": expected}] * 2
        assert [r.bytes_down for r in measured] == [{"model": expected}] * 2


def test_local_clients_learn_alone():
    clients, model = setting(clients=2)
    measured, _ = final_models(METHODS["local"](), clients, model)
    alone, _ = final_models(METHODS["local"](), clients[:1], model)
    for together, single in zip(measured, alone, strict=True):
        np.testing.assert_array_equal(together.aggregated[0]["test"], single.aggregated[0]["test"])
        np.testing.assert_array_equal(together.trained[0]["test"], together.aggregated[0]["test"])
    total = sum(len(c.test) for c in clients)
    assert all(confusion.sum() == total for confusion in measured[-1].everywhere)


def test_evaluation_leaves_no_trace_in_training():
    clients, model = setting(clients=2)
    blind = [deepcopy(c) for c in clients]
    for client in blind:
        object.__setattr__(client, "test", client.test[:0])
    _, seen = final_models(METHODS["fgssl"](), clients, model)
    _, unseen = final_models(METHODS["fgssl"](), blind, model)
    assert all(torch.equal(seen["next"][0][name], unseen["next"][0][name]) for name in seen["next"][0])


def test_no_global_random_state_is_read_or_written():
    clients, model = setting(clients=2)
    states = []
    for seed in (1, 2):
        with untouched_random_state(seed):
            _, kept = final_models(METHODS["fgssl"](), clients, model, rounds=1)
        states.append(kept["next"][0])
    first, second = states
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("draw", [random.random, np.random.rand, lambda: torch.rand(1)])
def test_a_draw_from_a_global_random_state_is_noticed(draw):
    with pytest.raises(AssertionError, match="was read or written"), untouched_random_state(1):
        draw()
