"""``fgl tune``: what it prints, what it refuses."""

import pytest
from invented import invented

from fgl_core import cli
from fgl_core.study.trials import search_path
from fgl_core.study.tuned import read_choices


def test_the_command_tunes_and_says_what_it_chose(root, monkeypatch, capsys):
    invented(monkeypatch)
    assert (
        cli.main(["tune", "--dataset", "karate,digits-knn", "--method", "fedavg,fedprox", "--jobs", "1"]) == 0
    )
    out = capsys.readouterr().out
    assert (
        out.count("best of 16 trials") == 4 and "karate, FedProx: lr 0.072, mu 0.01; validation 78.6%" in out
    )
    assert f"values: {root / 'data' / 'tuned.toml'}" in out and "goes on" not in out
    values = read_choices(root / "data" / "tuned.toml")
    assert {name: list(methods) for name, methods in values.items()} == {
        "digits-knn": ["fedavg", "fedprox"],
        "karate": ["fedavg", "fedprox"],
    }


def test_the_command_says_what_failed_and_goes_on(root, monkeypatch, capsys):
    invented(monkeypatch, lambda spec: "failed" if spec.lr == 1.0 else "done")
    assert cli.main(["tune", "--dataset", "karate", "--method", "fedavg"]) == 1
    out = capsys.readouterr().out
    assert "karate, FedAvg: not done, 2 runs missing in stage: learning rate" in out
    assert out.count("failed, will be tried again: karate-m5-fedavg-s100") == 2
    assert "the same command goes on" in out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--dataset", "corra"], "did you mean 'cora'?"),
        (["--dataset", "MUTAG"], "unknown dataset 'MUTAG'"),
        (["--dataset", "karate", "--method", "fgsl"], "unknown method to tune 'fgsl': did you mean 'fgssl'?"),
        (["--dataset", ","], "name at least one dataset"),
        (["--dataset", "karate", "--jobs", "0"], "give a number of at least 1"),
        (["--dataset", "karate", "--time-budget", "soon"], "write a duration"),
        ([], "requires an argument"),
    ],
)
def test_bad_input_is_one_line(root, capsys, arguments, complaint):
    assert cli.main(["tune", *arguments]) == 2
    err = capsys.readouterr().err
    assert complaint in err and len(err.splitlines()) == 1
    assert not (root / "data").exists()


def test_a_damaged_search_is_not_overwritten(root, capsys):
    path = search_path(root, "karate", "fedavg")
    path.parent.mkdir(parents=True)
    path.write_text("[")
    assert cli.main(["tune", "--dataset", "karate"]) == 2
    assert "holds no search" in capsys.readouterr().err and path.read_text() == "["
