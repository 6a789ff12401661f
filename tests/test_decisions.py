"""Decisions: the file, the flag, one choice at a time, the pages made of them."""

import pytest
from executed import run_here
from synthetic import synthetic_record

from fgl_core.cli import main
from fgl_core.errors import InputError
from fgl_core.methods import METHODS
from fgl_core.pages import decision_table
from fgl_core.study.catalogue import study_specs
from fgl_core.study.decisions import PARTS, alternatives, decided, decisions
from fgl_core.study.results import collect
from fgl_core.study.spec import GraphSpec, NodeSpec, RunSpec
from fgl_core.study.store import write_record
from fgl_core.tables.decisions import changes

SWITCHES = {id: decision for id, decision in decisions().items() if decision.options}


def owners(decision):
    """The methods a decision's fields are for: all, or those that have one of them as a parameter."""
    names = {name for fields in decision.options.values() for name in fields}
    task = "graph" if decision.part == "fedcch" else "node"
    fits = [name for name, method in METHODS.items() if names & set(method.model_fields)]
    return task, fits or ["fedavg"]


@pytest.mark.parametrize("id", SWITCHES)
def test_every_option_makes_a_run_and_the_default_is_the_run_without_it(id):
    decision = SWITCHES[id]
    task, names = owners(decision)
    spec_fields = (GraphSpec if task == "graph" else NodeSpec).model_fields
    for name in names:
        plain = RunSpec.parse({"task": task, "method": name})
        digests = []
        for option in decision.options:
            chosen = decided([f"{id}={option}"])
            own = {key: value for key, value in chosen.items() if key not in spec_fields}
            rest = {key: value for key, value in chosen.items() if key in spec_fields}
            spec = RunSpec.parse({"task": task, **rest, "method": {"name": name, **own}})
            digests.append(spec.digest)
            if option == decision.default:
                assert spec.digest == plain.digest, f"{id}: {option} is not what {name} does by default"
        assert len(set(digests)) == len(digests)
    assert decision.default in ("", *decision.options)
    assert len(decision.options) > 1


def test_what_is_wrong_with_a_choice_is_said_with_what_is_allowed():
    for choice, message in (
        ("momentum", "ID=OPTION"),
        ("nothing=keep", "nothing"),
        ("momentum=new", "keep, reset"),
        ("tuning=none", "tuning"),  # open, but no switch
    ):
        with pytest.raises(InputError, match=message):
            decided([choice])
    with pytest.raises(InputError, match="optimizer_state is decided already"):
        decided(["momentum=keep", "momentum=reset"])


def test_the_flag_sets_the_fields_and_is_not_set_twice(home, capsys):
    run = ["run", "--dataset", "karate", "--clients", "2", "--rounds", "1", "--method", "fgssl"]
    assert main([*run, "--decide", "momentum=keep", "--decide", "denominator=pairwise"]) == 0
    (record,) = home.load(home.runs).values()
    assert record.spec.optimizer_state == "keep" and record.spec.method.denominator == "pairwise"
    assert main([*run, "--decide", "momentum=keep", "--optimizer-state", "reset"]) == 2
    assert "--optimizer-state is set by --decide too" in capsys.readouterr().err
    assert main([*run, "--decide", "fedopt-server=sgd"]) == 2
    assert "--server-optimizer is a parameter of fedopt" in capsys.readouterr().err
    assert main(["decisions"]) == 0
    assert (
        "momentum: a client's momentum between rounds\n  reset (default), keep\n" in capsys.readouterr().out
    )


def test_the_list_has_every_decision_with_mark_evidence_and_options():
    tables = {part: decision_table(part) for part in PARTS}
    for decision in decisions().values():
        assert decision.question.replace("|", r"\|") in tables[decision.part]
        assert decision.evidence or decision.mark == "decided", f"inferred from what? {decision.question}"
    row = next(line for line in tables["training"].splitlines() if line.startswith("| a client's momentum"))
    assert "`momentum=reset` (default) or `momentum=keep`" in row
    assert row.endswith("{bdg-info}`inferred`; the released code makes a new optimiser in each round |")


@pytest.mark.parametrize("study", ["fgssl-decisions", "fedcch-decisions"])
def test_each_choice_is_compared_with_the_default_of_its_method(home, study):
    specs = study_specs(study, "lite")
    kind = type(specs[0])
    expected = {}
    for number, (method, title) in enumerate({s.method.name: s.method.title for s in specs}.items()):
        for place, (choice, fields) in enumerate(alternatives(method, kind).items()):
            value = 0.5 + 0.1 * number + 0.01 * place
            same = {"rounds": specs[0].rounds}
            same |= {"dataset": "cora"} if kind is NodeSpec else {"setting": "CHEM"}
            for seed in range(3):
                spec = RunSpec.parse({"task": specs[0].task, **same, **fields, "seed": seed})
                write_record(synthetic_record(spec, round(value, 5)), home.folder(study, "lite"))
            if choice != title:
                expected[f"{title}: {choice}"] = pytest.approx(0.01 * place)
    results = collect(study, "lite", {}, home)
    found = changes(results).set_index("method")["difference"].to_dict()
    assert found and all(found[name] == expected[name] for name in found)
    assert {name.split(": ")[0] for name in found} == {
        METHODS[m].title for m in {s.method.name for s in specs}
    }


def test_the_page_shows_both_papers_choices(home, monkeypatch):
    for study in ("fgssl-decisions", "fedcch-decisions"):
        for spec in study_specs(study, "lite"):
            changed = spec.optimizer_state == "keep"
            accuracy = 0.6 + 0.02 * changed + 0.001 * spec.seed * (1 + changed)
            write_record(synthetic_record(spec, round(accuracy, 5)), home.folder(study, "lite"))
    text = run_here("beyond/decisions.ipynb", profile="lite")
    assert "FGSSL: momentum=keep" in text and "+2.1 [" in text
    assert "FedCCH: moments=reset" in text and "-2.1" in text.replace("−", "-")
    assert "fgssl-decisions: 0 of" in text and "fedcch-decisions: 0 of" in text
