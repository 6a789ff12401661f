"""The methods of graph classification: against each other, by hand, and blind to test labels."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from graph_sets import random_set
from random_state import untouched_random_state

from fgl_core.datasets import SETTINGS, load_graph_dataset
from fgl_core.federation import Divergence, LocalTraining, Server, Update, federate
from fgl_core.graph_clients import graph_clients, initial_models
from fgl_core.graph_partition import hold_graphs
from fgl_core.methods import METHODS
from fgl_core.methods.fedavg import weighted_mean
from fgl_core.signature import hash_similarity, signature
from fgl_core.streams import Streams

GRAPH_METHODS = sorted(name for name, method in METHODS.items() if "graph" in method.tasks)
NAMES = ("MUTAG", "ENZYMES", "COLLAB", "IMDB-BINARY", "DD")  # of made-up sets, so that they have domains
ADAM = partial(torch.optim.Adam, lr=0.01, weight_decay=5e-5)
TRAINING = LocalTraining(1, ADAM, "keep")


def members(names=NAMES, *, dtype=torch.float64):
    datasets = []
    for number, name in enumerate(names):
        dataset = random_set(22 + 2 * number, seed=number, features=3 + number, classes=2 + number % 2)
        datasets.append(replace(dataset, name=name))
    return graph_clients(hold_graphs(datasets, Streams(0)), batch_size=10, dtype=dtype)


def start(method, clients, *, norm=None, share_norm=False, dtype=torch.float64, hidden=16):
    return initial_models(
        clients,
        Streams(0),
        backbone=method.backbone or "gin",
        hidden=hidden,
        dropout=0.5,
        norm=norm or method.norm,
        share_norm=share_norm,
        dtype=dtype,
    )


def trained(name, clients, *, rounds=3, training=TRAINING, options=None, **start_options):
    """The rounds of a method, and the clients' models after them."""
    method = METHODS[name](**(options or {}))
    models = start(method, clients, **start_options)
    measured = list(federate(method, clients, models, training, rounds=rounds, streams=Streams(0)))
    return measured, [model.state_dict() for model in models]


def assert_same(first, second, atol=0.0):
    for one, two in zip(first, second, strict=True):
        assert one.keys() == two.keys()
        for name in one:
            torch.testing.assert_close(one[name], two[name], rtol=0, atol=atol, msg=name)


@pytest.mark.parametrize(("norm", "share_norm"), list(product(["none", "batch", "pf"], [False, True])))
def test_fedcch_with_one_cluster_is_fedavg(norm, share_norm):
    clients = members()
    options = {"norm": norm, "share_norm": share_norm}
    _, one = trained("fedcch", clients, options={"clusters": 1}, **options)
    _, fedavg = trained("fedavg", clients, **options)
    assert_same(one, fedavg, atol=1e-12)
    _, local = trained("local", clients, **options)
    assert not torch.allclose(one[0]["convs.0.mlp.0.weight"], local[0]["convs.0.mlp.0.weight"])


@pytest.mark.parametrize(
    ("norm", "share_norm"), [("none", False), ("pf", False), ("pf", True), ("batch", True)]
)
def test_fedcch_with_as_many_clusters_as_clients_is_local(norm, share_norm):
    clients = members()
    options = {"norm": norm, "share_norm": share_norm}
    alone, first = trained("fedcch", clients, options={"clusters": len(clients)}, **options)
    local, second = trained("local", clients, **options)
    assert_same(first, second)
    for one, two in zip(alone, local, strict=True):
        assert one.loss == two.loss
        for a, b in zip(one.aggregated, two.aggregated, strict=True):
            assert all(np.array_equal(a[split], b[split]) for split in ("val", "test"))


def test_pf_stays_local_unless_shared():
    clients = members()
    _, local = trained("fedavg", clients, norm="pf")
    _, shared = trained("fedavg", clients, norm="pf", share_norm=True)
    for key in ("norms.0.alpha", "norms.1.gamma", "norms.2.beta"):
        assert not torch.equal(local[0][key], local[1][key])
        assert torch.equal(shared[0][key], shared[1][key])
    for key in ("convs.0.mlp.0.weight", "convs.2.mlp.2.bias"):
        assert torch.equal(local[0][key], local[1][key])


def test_gcfl_is_fedavg_until_its_warm_up_ends():
    clients, always = members(), {"epsilon_1": 1e9, "epsilon_2": 0.0}
    _, fedavg = trained("fedavg", clients)
    _, waiting = trained("gcfl", clients, options=always | {"warm_up": 3})
    assert_same(waiting, fedavg)
    _, cut = trained("gcfl", clients, options=always | {"warm_up": 1})
    assert not torch.allclose(cut[0]["convs.0.mlp.0.weight"], fedavg[0]["convs.0.mlp.0.weight"])


@pytest.mark.parametrize("share_norm", [False, True])
def test_fedbn_keeps_norms_and_their_buffers_local(share_norm):
    clients = members()
    method = METHODS["fedbn"]()
    assert method.norm == "batch"
    models = start(method, clients, share_norm=share_norm)
    travels = method.travels(models[0])
    assert sorted(travels) == sorted(key for key in models[0].state_dict() if key.startswith("convs."))
    _, states = trained("fedbn", clients, share_norm=share_norm)
    for key in states[0]:
        if key.startswith("norms."):
            alike = torch.equal(states[0][key], states[1][key])
            assert alike == key.endswith("num_batches_tracked") or not alike, key
        if key.startswith("convs."):
            assert torch.equal(states[0][key], states[1][key])
    assert float((states[0]["norms.0.running_mean"] - states[1]["norms.0.running_mean"]).abs().max()) > 1e-3


def test_fedavg_averages_shared_running_statistics_and_keeps_counts_whole():
    clients = members()
    _, states = trained("fedavg", clients, norm="batch", share_norm=True, rounds=1)
    assert states[0]["norms.0.num_batches_tracked"].dtype == torch.int64
    assert torch.equal(states[0]["norms.0.running_var"], states[1]["norms.0.running_var"])
    updates = [
        Update(0, 1, {"w": torch.tensor([1.0]), "n": torch.tensor(4)}, {}),
        Update(1, 3, {"w": torch.tensor([5.0]), "n": torch.tensor(7)}, {}),
    ]
    mean = weighted_mean(updates)
    assert mean["w"].tolist() == [4.0]
    assert mean["n"].dtype == torch.int64
    assert mean["n"].item() == 6  # 6.25


def test_fedstar_shares_only_the_structure_channel():
    clients = members()
    method = METHODS["fedstar"]()
    models = start(method, clients)
    travels = method.travels(models[0])
    assert travels
    assert all(key.startswith(("structure_embed.", "structure_convs.")) for key in travels)
    left = [key for key in models[0].state_dict() if key not in travels]
    assert not any("structure" in key for key in left)
    measured, states = trained("fedstar", clients)
    size = 8 * sum(models[0].state_dict()[key].numel() for key in travels)
    assert measured[0].bytes_up == {"model": size * len(clients)}
    for key in travels:
        assert torch.equal(states[0][key], states[1][key])
    for key in ("convs.0.mlp.2.weight", "fuse.weight"):
        assert not torch.allclose(states[0][key], states[1][key])


def test_proximal_term_pulls_shared_tensors_alone():
    clients = members()
    _, free = trained("fedprox", clients, options={"mu": 0.0}, norm="pf", rounds=1)
    _, fedavg = trained("fedavg", clients, norm="pf", rounds=1)
    assert_same(free, fedavg)
    method = METHODS["fedprox"](mu=1e6)
    models = start(method, clients, norm="pf")
    before = [{key: value.clone() for key, value in model.state_dict().items()} for model in models]
    sgd = LocalTraining(2, partial(torch.optim.SGD, lr=1e-7), "reset")
    list(federate(method, clients, models, sgd, rounds=1, streams=Streams(0)))
    # with lr · mu = 0.1 the shared tensors are pulled back each step, the local ones move as without the term
    moved = [
        {key: float((model.state_dict()[key] - old[key]).abs().max()) for key in old}
        for model, old in zip(models, before, strict=True)
    ]
    _, plain = trained("fedprox", clients, options={"mu": 0.0}, norm="pf", rounds=1, training=sgd)
    for model, old, new in zip(moved, before, plain, strict=True):
        assert model["head.0.weight"] == pytest.approx(
            float((new["head.0.weight"] - old["head.0.weight"]).abs().max()), rel=0.05
        )


def test_signature_is_the_hash_of_the_mean_training_representation():
    clients = members()
    method = METHODS["fedcch"]()
    (model, *_) = start(method, clients, hidden=64)
    report = method.report(clients[0], model)
    readouts = model.eval()(clients[0].packed.batch(clients[0].train))[0]
    mean = readouts.mean(0).detach().numpy()
    pixels = np.rint((mean - mean.min()) / np.ptp(mean) * 255)
    assert report["signature"].nbytes == 8
    np.testing.assert_array_equal(np.unpackbits(report["signature"]).astype(bool), pixels > pixels.mean())
    for kind in ("perceptual", "difference", "wavelet"):
        bits = np.unpackbits(METHODS["fedcch"](signature=kind).report(clients[0], model)["signature"])
        np.testing.assert_array_equal(bits, signature(mean, kind))
    shuffled = METHODS["fedcch"](unit_order=3).report(clients[0], model)["signature"]
    assert not np.array_equal(shuffled, report["signature"])
    # an average hash only looks at pixels one by one: another order permutes its bits
    assert np.unpackbits(shuffled).sum() == np.unpackbits(report["signature"]).sum()
    cosine = METHODS["fedcch"](signature="cosine").report(clients[0], model)["representation"]
    assert cosine.nbytes == 256
    np.testing.assert_allclose(cosine, mean, rtol=1e-6)


def test_a_signature_that_is_not_finite_is_a_divergence():
    clients = members()
    method = METHODS["fedcch"]()
    (model, *_) = start(method, clients, norm="none")
    with torch.no_grad():
        model.convs[2].mlp[2].bias.fill_(torch.inf)
    with pytest.raises(Divergence, match="MUTAG"):
        method.report(clients[0], model)


def updates_with(reports, values):
    tensors = [{"w": torch.tensor([float(value)], dtype=torch.float64)} for value in values]
    return [
        Update(index, index + 1, one, report)
        for index, (one, report) in enumerate(zip(tensors, reports, strict=True))
    ]


def serve(method, rounds):
    """Notes and outboxes of the server after each round of made-up updates."""
    server = Server(outbox=[{"w": torch.zeros(1, dtype=torch.float64)}] * len(rounds[0]), streams=Streams(0))
    for number, updates in enumerate(rounds, start=1):
        server.round, server.notes = number, {}
        method.aggregate(server, updates)
        yield server.notes, [float(tensors["w"]) for tensors in server.outbox]


def bits(*flipped, base=0):
    pattern = np.full(64, base, bool)
    pattern[list(flipped)] ^= True
    return {"signature": np.packbits(pattern)}


ALIKE = [bits(), bits(1), bits(0, base=1), bits(2), bits(base=1)]  # clients 0, 1, 3 and clients 2, 4


def test_fedcch_averages_within_clusters_by_training_graphs():
    ((notes, sent),) = serve(METHODS["fedcch"](), [updates_with(ALIKE, [1, 2, 3, 4, 5])])
    assert notes["clusters"] == [0, 0, 1, 0, 1]
    first, second = (1 * 1 + 2 * 2 + 4 * 4) / 7, (3 * 3 + 5 * 5) / 8
    assert sent == pytest.approx([first, first, second, first, second])
    assert notes["signatures"][0] == "0" * 16
    similarity = hash_similarity([np.unpackbits(report["signature"]) for report in ALIKE])
    assert similarity[0, 2] == pytest.approx(1 / 64)


@pytest.mark.parametrize(("every", "expected"), [(1, "abab"), (2, "aabb"), (3, "aaab"), (0, "aaaa")])
def test_fedcch_clusters_anew_when_it_is_due(every, expected):
    apart = [bits(), bits(base=1), bits(1), bits(base=1), bits(2)]
    labels = {"a": [0, 0, 1, 0, 1], "b": [0, 1, 0, 1, 0]}
    reports = [ALIKE, apart, ALIKE, apart]
    if every == 2:
        reports[2] = apart  # rounds 1 and 3 are due
    rounds = [updates_with(report, range(5)) for report in reports]
    found = [notes["clusters"] for notes, _ in serve(METHODS["fedcch"](cluster_every=every), rounds)]
    assert found == [labels[letter] for letter in expected]


def test_signatures_are_noted_often_at_first():
    rounds = [updates_with(ALIKE, range(5))] * 21
    noted = [
        notes["signatures"] is not None for notes, _ in serve(METHODS["fedcch"](cluster_every=0), rounds)
    ]
    assert [number for number, there in enumerate(noted, start=1) if there] == [*range(1, 11), 20]


def test_controls_of_fedcch():
    rounds = [updates_with(ALIKE, range(5))] * 20
    found = [notes["clusters"] for notes, _ in serve(METHODS["fedcch"](clustering="random"), rounds)]
    assert all(sorted(np.bincount(labels)) == [2, 3] for labels in found)
    assert len(set(map(tuple, found))) > 3
    again = [notes["clusters"] for notes, _ in serve(METHODS["fedcch"](clustering="random"), rounds)]
    assert found == again

    for clusters in (1, 2, 4, 5, 9):
        for clustering in ("average", "single", "complete", "kmeans"):
            method = METHODS["fedcch"](clusters=clusters, clustering=clustering)
            ((notes, _),) = serve(method, rounds[:1])
            assert len(set(notes["clusters"])) == min(clusters, 5)

    clients = members()
    method = METHODS["fedcch"](clustering="domain")
    reports = [
        method.report(client, model) for client, model in zip(clients, start(method, clients), strict=True)
    ]
    ((notes, _),) = serve(method, [updates_with(reports, range(5))])
    assert notes["clusters"] == [0, 1, 2, 2, 1]

    vectors = [[1.0, 0], [0, 1], [2, 0.1], [0.1, 3], [0, 1]]
    reports = [{"representation": np.array(vector, np.float32)} for vector in vectors]
    ((notes, _),) = serve(METHODS["fedcch"](signature="cosine"), [updates_with(reports, range(5))])
    assert notes["clusters"] == [0, 1, 0, 1, 1]


def test_signatures_are_in_the_ledger():
    clients = members()
    measured, _ = trained("fedcch", clients, rounds=2)
    model = start(METHODS["fedcch"](), clients)[0]
    size = 8 * sum(tensor.numel() for key, tensor in model.state_dict().items() if key.startswith("convs."))
    for one in measured:
        assert one.bytes_up == {"model": 5 * size, "signature": 5 * 8}
        assert one.bytes_down == {"model": 5 * size}
        assert len(one.notes["clusters"]) == 5
    measured, _ = trained("gcfl+", clients, rounds=1, norm="pf")
    assert measured[0].bytes_up == {"model": 5 * size, "gradient norm": 5 * 4}


@pytest.mark.parametrize("name", GRAPH_METHODS)
def test_no_method_reads_test_labels(name):
    options = {"warm_up": 1, "window": 1, "epsilon_1": 1e9, "epsilon_2": 0.0}
    fields = METHODS[name].model_fields
    options = {key: value for key, value in options.items() if key in fields}

    def outcome(poison):
        clients = members()
        if poison:
            for client in clients:
                labels = client.labels.clone()
                labels[client.test] = (labels[client.test] + 1) % client.num_classes
                object.__setattr__(client, "labels", labels)
        return trained(name, clients, options=options)

    clean, states = outcome(poison=False)
    poisoned, other = outcome(poison=True)
    assert_same(states, other)
    for one, two in zip(clean, poisoned, strict=True):
        assert one.loss == two.loss
        assert one.notes == two.notes
        for a, b in zip(one.aggregated + one.trained, two.aggregated + two.trained, strict=True):
            np.testing.assert_array_equal(a["val"], b["val"])
            assert np.array_equal(a["test"].sum(axis=0), b["test"].sum(axis=0))  # the same predictions
    changed = [
        not np.array_equal(a["test"], b["test"])
        for one, two in zip(clean, poisoned, strict=True)
        for a, b in zip(one.aggregated, two.aggregated, strict=True)
    ]
    assert any(changed)
    if name.startswith("gcfl"):
        assert len(set(clean[-1].notes["clusters"])) > 1


@pytest.mark.parametrize("name", GRAPH_METHODS)
def test_every_method_learns_the_digits(name):
    datasets = [load_graph_dataset(digits) for digits in SETTINGS["DIGITS"][::2]]
    clients = graph_clients(hold_graphs(datasets, Streams(0)), batch_size=64, dtype=torch.float32)
    measured, _ = trained(name, clients, rounds=2, dtype=torch.float32)
    assert measured[1].loss < measured[0].loss
    assert [counts["test"].sum() for counts in measured[1].aggregated] == [36, 36, 35]


@pytest.mark.parametrize("name", GRAPH_METHODS)
@pytest.mark.parametrize(
    ("norm", "share_norm"), [("none", False), ("batch", False), ("batch", True), ("pf", True)]
)
def test_every_method_takes_every_norm(name, norm, share_norm):
    _, states = trained(name, members(NAMES[:3]), rounds=1, norm=norm, share_norm=share_norm)
    assert all(tensor.isfinite().all() for state in states for tensor in state.values())


def test_order_of_clients_does_not_matter():
    for name in ("fedavg", "fedcch", "gcfl"):
        _, forward = trained(name, members(), norm="pf")
        _, backward = trained(name, members()[::-1], norm="pf")
        assert_same(forward, backward[::-1], atol=1e-10)


def test_no_global_random_state_is_read_or_written():
    clients = members()
    states = []
    for seed in (1, 2):
        with untouched_random_state(seed):
            states.append(trained("fedcch", clients, options={"clustering": "kmeans"})[1])
    assert_same(*states)


@pytest.mark.parametrize("name", GRAPH_METHODS)
def test_methods_run_on_real_data(real_data, name):
    datasets = [real_data(dataset) for dataset in ("MUTAG", "PTC_MR", "IMDB-MULTI", "Letter-low")]
    clients = graph_clients(hold_graphs(datasets, Streams(0)), batch_size=64, dtype=torch.float32)
    measured, _ = trained(name, clients, rounds=1, dtype=torch.float32, hidden=64)
    assert [counts["test"].sum() for counts in measured[0].aggregated] == [19, 34, 150, 225]
    assert np.isfinite(measured[0].loss)
