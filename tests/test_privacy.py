"""Attacks on what clients of FedCCH send: who holds what, what is seen, what is guessed, what is shown."""

from __future__ import annotations

from functools import partial
from math import pi, sqrt

import numpy as np
import pytest
import torch
from executed import run_here

from fgl_core.analysis.privacy import VIEWS, attack, changed_bits, kept_by_hash
from fgl_core.errors import InputError
from fgl_core.federation import LocalTraining, copies, federate
from fgl_core.graph_clients import graph_clients, initial_models
from fgl_core.graph_partition import Holding
from fgl_core.methods import METHODS
from fgl_core.signature import signature
from fgl_core.study import privacy as attacks
from fgl_core.study.catalogue import study_specs
from fgl_core.study.execute import arithmetic, spy
from fgl_core.study.outcome import compute
from fgl_core.study.results import collect
from fgl_core.study.spec import Spec
from fgl_core.study.store import Record, record_head, write_record
from fgl_core.tables import privacy
from fgl_core.tables.claims import load_claims
from fgl_core.tables.ledger import Ledger

SETS = "digits-01,digits-23,digits-45"
SMALL = {"task": "privacy", "setting": SETS, "clients": 24, "graphs": 8, "attacked": (1, 3)}
SIZE = SMALL | {"secret": "size", "dataset": "digits-01"}


def scene(secret, **changes):
    dataset = None if secret == "set" else "digits-23"
    spec = Spec.parse(SMALL | {"secret": secret, "dataset": dataset} | changes)
    return attacks.Scene(spec, torch.device("cpu"))


def as_papers_train():
    return LocalTraining(1, partial(torch.optim.Adam, lr=1e-3, weight_decay=5e-5, fused=True), "keep")


@pytest.mark.parametrize("secret", ["set", "classes", "size", "member"])
def test_clients_hold_what_is_true_of_them(secret):
    drawn = scene(secret)
    held = {side: [drawn.visit(side, i).client for i in range(6)] for side in ("shadow", "target")}
    for side, clients in held.items():
        for number, client in enumerate(clients):
            truth, dataset = drawn.truth(number), drawn.datasets[client.dataset]
            graphs = client.train
            assert len(set(graphs)) == 8 and client.name == f"{side}-{number}"
            if secret == "set":
                assert truth == number % 3 and client.dataset == SETS.split(",")[truth]
            if secret == "classes":  # three quarters, or a quarter, of the first class
                assert (dataset.y[graphs] == 0).sum() == (6 if truth else 2)
            if secret == "size":
                sizes = np.diff(dataset.offsets)
                assert (sizes[graphs] > np.median(sizes)).sum() == (6 if truth else 2)
            if secret == "member":
                assert (drawn.asked in graphs) == bool(truth)
    for (
        name,
        parts,
    ) in drawn.graphs.items():  # nobody has seen what another holds, but for what is asked about
        asked = {drawn.asked} if secret == "member" and name == "digits-23" else set()
        listed = [graph for graphs in parts.values() for graph in graphs]
        everything = set(range(drawn.datasets[name].num_graphs))
        assert len(listed) == len(set(listed)) and set(listed) == everything - asked
        for side, clients in held.items():
            seen = {graph for client in clients if client.dataset == name for graph in client.train}
            assert seen <= set(parts[side]) | asked


def test_a_client_sends_what_the_round_loop_would():
    """The oracle is the round loop, with this client alone: its report and the model's change, twice."""
    drawn = scene("classes", attacked=(1, 2))
    both = list(drawn.visit("target", 3).watched())
    visit = drawn.visit("target", 3)
    visit.model.load_state_dict(drawn.broadcasts[0], strict=False)
    updates, norms = [], []

    class Seen(METHODS["fedcch"]):
        def aggregate(self, server, received):
            updates.extend(received)
            state = visit.model.state_dict()
            norms.append(torch.cat([state[n].ravel() for n in state if n.startswith("norms.")]).numpy())
            server.broadcast(drawn.broadcasts[-1])

    list(federate(Seen(), [visit.client], [visit.model], as_papers_train(), rounds=2, streams=drawn.streams))
    for number, (sent, update) in enumerate(zip(both, updates, strict=True)):
        bits = np.unpackbits(update.report["signature"]).astype(bool)
        np.testing.assert_array_equal(sent["signature"], bits)
        np.testing.assert_array_equal(signature(sent["representation"].astype(float)), bits)
        before = drawn.broadcasts[number]
        change = [(update.tensors[name] - before[name]).ravel() for name in update.tensors]
        np.testing.assert_array_equal(sent["update"], torch.cat(change).numpy())
        np.testing.assert_array_equal(sent["norms"], norms[number])
    assert not any(name.startswith(("norms", "embed", "head")) for name in updates[0].tensors)
    assert len(norms[0]) == 3 * 3 * 64 and np.abs(norms[1] - norms[0]).max() > 0


def test_the_server_broadcasts_what_fedavg_makes_of_the_first_part():
    drawn = scene("set", attacked=(3,))
    nothing = np.array([0])
    held = [
        Holding(name, dataset, np.sort(drawn.graphs[name]["federation"]), nothing, nothing)
        for name, dataset in drawn.datasets.items()
    ]
    clients = graph_clients(held, batch_size=64, dtype=torch.float32)
    options = {"backbone": "gin", "hidden": 64, "dropout": 0.5, "norm": "pf", "share_norm": False}
    models = initial_models(clients, drawn.streams, **options, dtype=torch.float32)
    method = METHODS["fedavg"]()
    names = method.travels(models[0])
    expected = [copies(models[0], names)]
    for _ in federate(method, clients, models, as_papers_train(), rounds=2, streams=drawn.streams):
        expected.append(copies(models[0], names))
    drawn.visit("target", 1)  # whoever looks on changes nothing
    assert len(drawn.broadcasts) == 3
    for sent, right in zip(drawn.broadcasts, expected, strict=True):
        assert sent.keys() == right.keys() and all(torch.equal(sent[name], right[name]) for name in sent)
    assert not torch.equal(expected[0][names[0]], expected[2][names[0]])


def test_the_attack_finds_what_a_part_says_and_nothing_where_it_says_nothing():
    rng = np.random.default_rng(0)
    truth = np.arange(200) % 2

    def sent():
        says = np.where(truth, 1.0, -1.0)[:, None] * np.array([1.0, 0, 0]) + 0.2 * rng.normal(size=(200, 3))
        return {
            "signature": rng.random((200, 64)) < 0.5,
            "representation": 1e6 + 1e3 * says,  # whatever the scale
            "update": np.hstack([rng.normal(size=(200, 500)), np.ones((200, 5))]),
            "norms": np.zeros((200, 4)),
        }

    guesses = attack(sent(), truth, sent())
    right = {view: (guess == truth).mean() for view, guess in guesses.items()}
    assert right["representation"] == 1 and right["update and representation"] > 0.98
    for view in ("signature", "update", "update and signature"):
        assert abs(right[view] - 0.5) < 4 * sqrt(0.25 / 200)
    # constant columns add nothing: a part that never varies leaves all guesses as they are
    np.testing.assert_array_equal(guesses["update and norms"], guesses["update"])


def test_bits_keep_as_much_as_their_correlation_says():
    rng = np.random.default_rng(1)
    assert kept_by_hash(rng.normal(size=(300, 64))) == pytest.approx(sqrt(2 / pi), abs=0.01)
    two_valued = np.where(rng.random((5, 64)) < 0.5, 3.0, -7.0)
    assert kept_by_hash(two_valued) == pytest.approx(1)
    assert kept_by_hash(np.ones((2, 64))) == 0


def test_changed_bits_are_those_of_a_signature_without_the_graph():
    rng = np.random.default_rng(2)
    graphs = rng.normal(size=(6, 64))
    graphs[2] = 100 * rng.normal(size=64)  # decides the signature by itself
    expected = [
        int((signature(np.delete(graphs, i, axis=0).mean(axis=0)) != signature(graphs.mean(axis=0))).sum())
        for i in range(6)
    ]
    assert changed_bits(graphs).tolist() == expected
    assert expected[2] > 10 and max(expected[:2] + expected[3:]) < 5
    assert changed_bits(np.tile(graphs[:1], (4, 1))).tolist() == [0] * 4


def test_targets_are_guessed_from_what_targets_send(monkeypatch):
    spec = Spec.parse(SIZE)
    seen = []

    def wrong_twice(shadow, truth, target):
        seen.append((truth, {"shadow": shadow, "target": target}))
        return {view: np.where(np.arange(24) < 2, 1 - truth, truth) for view in VIEWS}

    monkeypatch.setattr(attacks, "attack", wrong_twice)
    assert spy(spec)["privacy"]["correct"] == {view: [22, 22] for view in VIEWS}
    drawn = attacks.Scene(spec, torch.device("cpu"))
    for moment, (truth, sides) in enumerate(seen):
        assert truth.tolist() == [0, 1] * 12
        for side, sent in sides.items():
            for number in (0, 23):
                with arithmetic():  # as the attack trains: sums over several threads round differently
                    right = list(drawn.visit(side, number).watched())[moment]
                for part, values in right.items():
                    np.testing.assert_array_equal(sent[part][number], values)


def test_a_record_says_the_same_each_time_and_counts_every_graph():
    spec = Spec.parse(SIZE)
    record, again = spy(spec), compute(spec)
    found = record["privacy"]
    assert found == again["privacy"] and Record.parse(record).settled
    assert found["classes"] == 2 and found["targets"] == 24 and found["rounds"] == [1, 3]
    assert set(found["correct"]) == set(VIEWS)
    assert all(0 <= right <= 24 for rights in found["correct"].values() for right in rights)
    assert sum(found["changed_bits"]) == 24 * 8 and len(found["kept"]) == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dataset": "digits-01"}, "dataset: it is what secret = set asks for: leave it out"),
        ({"setting": "digits-01"}, "setting 'digits-01' has one set: there is nothing to guess"),
        ({"secret": "size"}, "dataset: name the set of the setting that the clients' graphs are of"),
        ({"secret": "size", "dataset": "MUTAG"}, "unknown dataset 'MUTAG'"),
        ({"attacked": (3, 1)}, "attacked = [3, 1]: name rounds, 1 to 100000, each once, in order"),
        ({"attacked": (0, 1)}, "attacked = [0, 1]"),
        ({"attacked": (1, 10**6)}, "attacked = [1, 1000000]: name rounds, 1 to 100000"),
        ({"attacked": ()}, "attacked"),
        ({"clients": 2}, "clients = 2"),
        ({"clients": 200}, "clients = 200: take a multiple of 3, the number of answers"),
        ({"graphs": 50}, "graphs = 50: input should be a multiple of 4"),
    ],
)
def test_what_cannot_be_attacked(changes, said):
    with pytest.raises(InputError) as caught:
        Spec.parse(SMALL | {"secret": "set"} | changes)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_too_few_graphs_of_a_kind_are_said():
    with pytest.raises(
        InputError, match=r"a client would need 150 graphs of a kind, and its third of digits"
    ):
        spy(Spec.parse(SMALL | {"secret": "classes", "dataset": "digits-23", "graphs": 200}))


def test_a_part_of_the_study_is_named_by_what_has_single_values():
    assert len(study_specs("fedcch-privacy", "paper", {"secret": ["set", "size"]})) == 10
    with pytest.raises(InputError, match=r"unknown field 'attacked'.*allowed: clients"):
        study_specs("fedcch-privacy", "paper", {"attacked": ["1"]})


def recorded(spec, right):
    """A record in which each view is right so often in each attacked round, of 100 clients."""
    rounds = len(spec.attacked)
    return {
        **record_head(spec, "done"),
        "privacy": {
            "classes": spec.answers,
            "targets": 100,
            "rounds": list(spec.attacked),
            "correct": {view: [right(spec, view)] * rounds for view in VIEWS},
            "kept": [0.75] * rounds,
            "changed_bits": [60, 30, 10],
        },
        "timing": {"seconds": 1.0, "setup_seconds": 0.0, "seconds_per_round": 0.1},
    }


def fill(home, profile, right):
    for spec in study_specs("fedcch-privacy", profile):
        write_record(recorded(spec, right), home.folder("fedcch-privacy", profile))


def right(spec, view):
    """From the representation 10 more than from the signature, and seeds apart; the update says nothing."""
    odd = spec.seed % 2
    return {"representation": 60 + 2 * odd}.get(view, 50) + odd


def test_gains_are_paired_by_seed(home):
    fill(home, "lite", right)
    results = collect("fedcch-privacy", "lite", {}, home)
    pairs = {
        "hidden": ("representation", "signature"),
        "added": ("update and signature", "update"),
        "told": ("signature", privacy.CHANCE),
    }
    gains = privacy.gains(results, pairs).set_index(["method", "dataset"])
    # seeds 0 and 1: 10 and 12 points, for each secret and for all together
    assert len(gains) == 15 and gains["pairs"].tolist() == [2] * 15
    assert gains.loc["hidden", "difference"].tolist() == pytest.approx([0.11] * 5)
    assert gains.loc["added", "difference"].tolist() == [0] * 5
    # 50 and 51 of 100, against a seventh for the set and a half for all others
    told, a_set = gains.loc["told", "difference"], 0.505 - 1 / 7
    assert told["large or small graphs, NCI1"] == pytest.approx(0.005)
    assert told["which set of CHEM"] == pytest.approx(a_set)
    assert told[privacy.ALL] == pytest.approx((3 * 0.005 + a_set) / 4)


def test_a_seed_without_all_secrets_does_not_count_for_all_together(home):
    fill(home, "lite", right)
    (spec,) = study_specs("fedcch-privacy", "lite", {"secret": ["member"], "seed": [1]})
    (home.folder("fedcch-privacy", "lite") / f"{spec.slug}.json").unlink()
    guessed = privacy.guessed_by_seed(collect("fedcch-privacy", "lite", {}, home))
    assert list(guessed[privacy.ALL, 70, "signature"]) == [0]
    assert list(guessed["which set of CHEM", 70, "signature"]) == [0, 1]


def test_the_page(home, monkeypatch):
    monkeypatch.setenv("FGL_PROFILE", "lite")
    text = run_here("fedcch/privacy.ipynb")
    assert "Profile lite: 0 of 8 runs shown" in text and "missing" in text
    fill(home, "lite", right)
    text = run_here("fedcch/privacy.ipynb")
    assert "61.5 ± 2.1" in text  # 60 and 63
    assert "50.5 ± 0.7" in text and "14.3" in text and "which set of CHEM" in text
    assert "+11.0 [" in text and "0.75" in text and "60" in text and "0.50" in text
    assert "nan" not in text and "± 0.0" not in text
    part = run_here("fedcch/privacy.ipynb", secret="member")
    assert "which set of CHEM" not in part and "one graph" in part


def nothing(spec, view):
    """The signature is right as often as pure guessing, the representation more often."""
    odd = spec.seed % 2
    chance = 14 + odd if spec.secret == "set" else 50
    return chance + (9 + odd) * (view == "representation")


@pytest.mark.parametrize(
    ("share", "verdicts"),
    [
        (right, ["reproduced", "not reproduced"]),  # less is told, but the set is
        (lambda spec, view: 100 - right(spec, view), ["not reproduced", "not reproduced"]),
        (nothing, ["reproduced", "reproduced"]),
    ],
    ids=["less", "more", "nothing"],
)
def test_the_claims_are_decided_over_all_secrets(home, share, verdicts):
    claims = [claim for claim in load_claims() if claim.id.startswith("fedcch-privacy")]
    findings = Ledger(claims, "paper", home).findings
    assert [finding.ruling.verdict for finding in findings] == ["undecided"] * 2
    assert [len(finding.cells) for finding in findings] == [1, 1]
    fill(home, "paper", share)
    findings = Ledger(claims, "paper", home).findings
    assert [finding.ruling.verdict for finding in findings] == verdicts
