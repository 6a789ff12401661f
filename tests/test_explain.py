"""What a run is said to send is what its ledger counts."""

from __future__ import annotations

import re

import pytest

from fgl_core.cli import main
from fgl_core.methods import METHODS
from fgl_core.study.execute import execute
from fgl_core.study.explain import alike, explain
from fgl_core.study.setup import set_up
from fgl_core.study.spec import RunSpec

TASKS = {
    "node": {"dataset": "karate", "clients": 2, "hidden": 8, "local_epochs": 1},
    "graph": {"setting": "digits-01,digits-23", "hidden": 16},
}
EVERY = [(name, task) for name, method in METHODS.items() for task in method.tasks]


def spec_of(name, task, rounds=1, parameters=None, **fields):
    few = {"generator_epochs": 2} if name == "fedsage+" else {}
    method = {"name": name, **few, **(parameters or {})}
    return RunSpec.parse({**TASKS[task], "method": method, "rounds": rounds, **fields})


def assert_the_ledger_agrees(spec):
    assert explain(set_up(spec)).ledger(spec.rounds) == execute(spec)["bytes"]


@pytest.mark.parametrize(("name", "task"), EVERY)
def test_bytes_are_those_of_the_ledger(name, task):
    assert_the_ledger_agrees(spec_of(name, task))


@pytest.mark.parametrize(
    ("name", "task", "parameters", "fields"),
    [
        ("fedsage+", "node", {}, {}),  # sends before the first round
        ("fedcch", "graph", {}, {}),
        ("fedcch", "graph", {"signature": "cosine"}, {}),
        ("fedcch", "graph", {"clustering": "domain"}, {}),
        ("gcfl+", "graph", {}, {"norm": "batch", "share_norm": True}),
        ("fedstar", "graph", {}, {"norm": "pf", "share_norm": True}),
        ("fedavg", "graph", {}, {"clients_per_dataset": 2}),
    ],
)
def test_bytes_of_two_rounds_and_of_variants(name, task, parameters, fields):
    assert_the_ledger_agrees(spec_of(name, task, 2, parameters, **fields))


def test_what_fedcch_sends_by_hand():
    explanation = explain(set_up(spec_of("fedcch", "graph", 200)))
    convolution = 4 * 2 * (16 * 16 + 16)  # two linear layers of 16 numbers, four bytes each
    assert explanation.up == {"model": [3 * convolution] * 2, "signature": [8] * 2}
    assert explanation.down == {"model": [3 * convolution] * 2}
    sums = {way: sum(map(sum, kinds.values())) for way, kinds in explanation.ledger(200).items()}
    assert sums == {"up": 200 * 2 * (3 * convolution + 8), "down": 200 * 2 * 3 * convolution}
    travels = {f"{row.part}.{row.name}" for row in explanation.tensors if row.travels}
    assert travels == {
        f"convs.{i}.mlp.{j}.{kind}" for i in range(3) for j in (0, 2) for kind in ("weight", "bias")
    }
    assert {row.kind for row in explanation.tensors if row.part == "norms.1"} == {"PersonalisationFactor"}


def test_tensors_of_another_shape_have_a_row_of_their_own():
    explanation = explain(set_up(spec_of("fedavg", "graph", setting="digits-01,digits-graphs,digits-23")))
    rows = [(row.shape, row.bytes, row.clients) for row in explanation.tensors if row.name == "2.weight"]
    assert rows == [((2, 16), 128, (0, 2)), ((10, 16), 640, (1,))]
    assert {row.clients for row in explanation.tensors if row.part == "convs.0"} == {(0, 1, 2)}
    assert alike(["b", "a", "b"]) == {"b": (0, 2), "a": (1,)}


def test_the_command_prints_tensors_messages_and_totals(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("FGL_HOME", str(tmp_path))
    arguments = ["--setting", "digits-01,digits-graphs", "--method", "fedcch", "--hidden", "16"]
    assert main(["explain", *arguments, "--rounds", "3"]) == 0
    lines = [re.sub(" {2,}", "  ", line.strip()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "FedCCH on digits-01,digits-graphs, 2 clients, norm pf, hidden 16"
    assert "convs.0 (GINConv)" in lines and "norms.2 (PersonalisationFactor)" in lines
    assert "mlp.0.weight  16 × 16  1,024 B  up, down  all" in lines
    assert "gamma  16  64 B  stays  all" in lines
    assert "2.weight  2 × 16  128 B  stays  digits-01" in lines
    assert "2.weight  10 × 16  640 B  stays  digits-graphs" in lines
    assert "model  6,528 B  6,528 B  all" in lines and "signature  8 B  -  all" in lines
    assert "together  6,536 B  6,528 B  all" in lines
    assert "a round  13,072 B  13,056 B" in lines and "3 rounds  39,216 B  39,168 B" in lines
    assert not list(tmp_path.rglob("*.json"))


def test_the_command_explains_nodes_and_what_comes_before_the_first_round(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("FGL_HOME", str(tmp_path))
    nodes = ["explain", "--dataset", "karate", "--clients", "2", "--hidden", "8", "--rounds", "1"]
    assert main([*nodes, "--method", "fedsage+", "--generator-epochs", "2"]) == 0
    out = capsys.readouterr().out
    assert "FedSage+ on karate, 2 clients, backbone sage" in out
    assert "before the first round, generator gradients" in out and " 1 round " in out
    assert main([*nodes, "--method", "global"]) == 0
    out = capsys.readouterr().out
    assert "Global on karate, the whole graph" in out and "up, down" not in out
    assert main([*nodes, "--tau", "0.1"]) == 2
    assert "--tau is a parameter of fgssl" in capsys.readouterr().err


def test_the_molecules_and_what_they_share(real_data):
    real_data("NCI1")
    explanation = explain(set_up(RunSpec.parse({"setting": "CHEM", "method": "fedcch"})))
    (first, *_) = explanation.tensors
    assert (first.part, first.shape, first.clients) == ("embed", (7, 64), (0,))  # MUTAG's seven atoms
    assert explanation.ledger(1)["up"]["signature"] == [7 * 8]
