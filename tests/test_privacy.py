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
from fgl_core.federation import LocalTraining, federate
from fgl_core.methods import METHODS
from fgl_core.signature import signature
from fgl_core.study.catalogue import study_specs
from fgl_core.study.execute import spy
from fgl_core.study.outcome import compute
from fgl_core.study.privacy import Scene
from fgl_core.study.results import collect
from fgl_core.study.spec import Spec
from fgl_core.study.store import Record, record_head, write_record
from fgl_core.tables import privacy
from fgl_core.tables.claims import load_claims
from fgl_core.tables.ledger import Ledger

SETS = "digits-01,digits-23,digits-45"
SMALL = {"task": "privacy", "setting": SETS, "clients": 20, "graphs": 8, "attacked": (1, 3)}


def scene(secret, **changes):
    dataset = None if secret == "set" else "digits-23"
    return Scene(Spec.parse(SMALL | {"secret": secret, "dataset": dataset} | changes))


@pytest.mark.parametrize("secret", ["set", "classes", "size", "member"])
def test_clients_hold_what_is_true_of_them(secret):
    drawn = scene(secret)
    held = {side: [drawn.visit(side, number).client for number in range(6)] for side in ("shadow", "target")}
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
        name
    ) in drawn.datasets:  # what targets hold, no shadow has seen, but for the graph that is asked about
        seen, unseen = (
            {graph for client in held[side] if client.dataset == name for graph in client.train}
            for side in ("shadow", "target")
        )
        asked = {drawn.asked} if secret == "member" and name == "digits-23" else set()
        assert seen & unseen == asked and seen <= set(drawn.halves[name]["shadow"]) | asked


def test_a_client_sends_what_the_round_loop_would():
    """The oracle is the round loop itself, with this client alone: FedCCH's report, the model's change."""
    drawn = scene("classes", attacked=(1,))
    (sent,) = drawn.visit("target", 3).watched()
    visit = drawn.visit("target", 3)
    visit.model.load_state_dict(drawn.broadcasts[0], strict=False)
    before = {name: tensor.clone() for name, tensor in visit.model.state_dict().items()}
    updates = []

    class Seen(METHODS["fedcch"]):
        def aggregate(self, server, received):
            updates.extend(received)

    training = LocalTraining(1, partial(torch.optim.Adam, lr=1e-3, weight_decay=5e-5, fused=True), "keep")
    list(federate(Seen(), [visit.client], [visit.model], training, rounds=1, streams=drawn.streams))
    (update,) = updates
    bits = np.unpackbits(update.report["signature"]).astype(bool)
    np.testing.assert_array_equal(sent["signature"], bits)
    change = [(update.tensors[name] - before[name]).ravel() for name in update.tensors]
    np.testing.assert_array_equal(sent["update"], torch.cat(change).numpy())
    np.testing.assert_array_equal(signature(sent["representation"].astype(float)), bits)
    assert not any(name.startswith(("norms", "embed", "head")) for name in update.tensors)
    assert len(sent["norms"]) == 3 * 3 * 64 and np.abs(sent["norms"]).max() > 0


def test_the_server_broadcasts_what_it_would_without_spectators():
    drawn = scene("set", attacked=(3,))
    assert len(drawn.broadcasts) == 3
    first, last = drawn.broadcasts[0], drawn.broadcasts[-1]
    start = drawn.visit("shadow", 0).model.state_dict()
    assert all(torch.equal(first[name], start[name]) for name in first)  # the common start
    assert not any(torch.equal(first[name], last[name]) for name in first if name.endswith("weight"))
    again = Scene(drawn.spec)
    again.visit("target", 1)  # whoever looks on changes nothing
    assert all(torch.equal(again.broadcasts[-1][name], last[name]) for name in last)


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


def test_a_record_says_the_same_each_time_and_counts_every_graph():
    spec = Spec.parse(SMALL | {"secret": "size", "dataset": "digits-01"})
    record, again = spy(spec), compute(spec)
    found = record["privacy"]
    assert found == again["privacy"] and Record.parse(record).settled
    assert found["classes"] == 2 and found["targets"] == 20 and found["rounds"] == [1, 3]
    assert set(found["correct"]) == set(VIEWS)
    assert all(0 <= right <= 20 for rights in found["correct"].values() for right in rights)
    assert sum(found["changed_bits"]) == 20 * 8 and len(found["kept"]) == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dataset": "digits-01"}, "dataset: it is what secret = set asks for: leave it out"),
        ({"setting": "digits-01"}, "setting 'digits-01' has one set: there is nothing to guess"),
        ({"secret": "size"}, "unknown dataset None"),
        ({"secret": "size", "dataset": "MUTAG"}, "unknown dataset 'MUTAG'"),
        ({"attacked": (3, 1)}, "attacked = [3, 1]: name rounds from 1 on, each once, in order"),
        ({"attacked": (0, 1)}, "attacked = [0, 1]"),
        ({"attacked": ()}, "attacked"),
        ({"clients": 2}, "clients = 2"),
    ],
)
def test_what_cannot_be_attacked(changes, said):
    with pytest.raises(InputError, match=r"\S") as caught:
        Spec.parse(SMALL | {"secret": "set"} | changes)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_too_few_graphs_of_a_kind_are_said():
    with pytest.raises(InputError, match=r"a client would need 150 graphs of a kind, and its half of digits"):
        spy(Spec.parse(SMALL | {"secret": "classes", "dataset": "digits-23", "graphs": 200}))


def recorded(spec, right):
    """A record in which each view is right so often in each attacked round, of 100 clients."""
    correct = {view: [right(spec, view)] * len(spec.attacked) for view in VIEWS}
    return {
        **record_head(spec, "done"),
        "privacy": {
            "classes": 7 if spec.secret == "set" else 2,
            "targets": 100,
            "rounds": list(spec.attacked),
            "correct": correct,
            "kept": [0.75] * len(spec.attacked),
            "changed_bits": [60, 30, 10],
        },
        "timing": {"seconds": 1.0, "setup_seconds": 0.0, "seconds_per_round": 0.1},
    }


def fill(home, profile, right):
    for spec in study_specs("fedcch-privacy", profile):
        write_record(recorded(spec, right), home.folder("fedcch-privacy", profile))


def right(spec, view):
    """From the representation 10 more than from the signature, ± 1 by seed; the update says nothing."""
    jitter = spec.seed % 2
    base = {"signature": 50, "representation": 60 + 2 * jitter, "update": 50}
    return base.get(view, 50) + jitter


def test_gains_are_paired_by_seed(home):
    fill(home, "lite", right)
    results = collect("fedcch-privacy", "lite", {}, home)
    pairs = {"hidden": ("representation", "signature"), "added": ("update and signature", "update")}
    gains = privacy.gains(results, pairs)
    hidden = gains[gains["method"] == "hidden"]
    # seeds 0 and 1: 10 and 12 points
    assert len(gains) == 8 and hidden["difference"].tolist() == pytest.approx([0.11] * 4)
    assert hidden["pairs"].tolist() == [2] * 4
    assert gains[gains["method"] == "added"]["difference"].tolist() == [0] * 4


def test_the_page(home, monkeypatch):
    monkeypatch.setenv("FGL_PROFILE", "lite")
    text = run_here("fedcch/privacy.ipynb")
    assert "Profile lite: 0 of 8 runs shown" in text and "missing" in text
    fill(home, "lite", right)
    text = run_here("fedcch/privacy.ipynb")
    assert "61.5 ± 2.1" in text  # 60 and 63
    assert "50.5 ± 0.7" in text and "14.3" in text and "which set of CHEM" in text
    assert "+11.0 [" in text and "0.75" in text and "60" in text and "0.50" in text
    assert "nan" not in text
    part = run_here("fedcch/privacy.ipynb", secret="member")
    assert "which set of CHEM" not in part and "one graph" in part


@pytest.mark.parametrize(("sign", "verdict"), [(1, "reproduced"), (-1, "not reproduced")])
def test_the_claim_is_decided_by_what_the_hash_hides(home, sign, verdict):
    claims = [claim for claim in load_claims() if claim.id == "fedcch-privacy"]
    (finding,) = Ledger(claims, "paper", home).findings
    assert finding.ruling.verdict == "undecided" and len(finding.cells) == 4
    fill(home, "paper", lambda spec, view: 50 + sign * (right(spec, view) - 50))
    (finding,) = Ledger(claims, "paper", home).findings
    assert finding.ruling.verdict == verdict
    assert finding.number.startswith("+" if sign > 0 else "-")
