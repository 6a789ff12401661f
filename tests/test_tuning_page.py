"""The page on tuning, and Table 1 with and without tuned values."""

import math

import pytest
from executed import run, run_here
from invented import invented
from synthetic import synthetic_record

from fgl_core.errors import InputError
from fgl_core.study.catalogue import study_specs
from fgl_core.study.spaces import SPACES, selection
from fgl_core.study.store import write_record
from fgl_core.study.trials import Protocol, read_search, search_path, write_search
from fgl_core.study.tuning import tune
from fgl_core.tables.tuning import chosen_table, open_searches, responses, stale


@pytest.fixture
def cora(home, monkeypatch):
    """Cora tuned in full; the best learning rate is near 0.1, and 1.0 diverges."""
    invented(monkeypatch, lambda spec: "diverged" if spec.lr == 1.0 else "done")
    tune(["cora"], SPACES, store=home)
    return home


def test_the_page_shows_trials_and_choices(cora, tmp_path):
    text, pictures = run("fgssl/tuning.ipynb", tmp_path)
    assert "11 of 33 searches shown." in text and "abcdef123456" in text
    assert "22 missing; `fgl tune --dataset citeseer,pubmed` fills them." in text
    assert "λ_C: 0.1 … 3; λ_D: 0.1 … 30" in text and "none: the learning rate is refined" in text
    # of the grid, 0.072 and 0.139 are equally far from 0.1; the first of them is taken
    assert "cora, FGSSL: lr 0.072, lambda_c 1, lambda_d 1; 78.6%" in text
    assert "citeseer: Local; Global; FedAvg" in text
    assert len(pictures) == 2

    part = run_here("fgssl/tuning.ipynb", dataset="cora")
    assert "11 of 11 searches shown." in part and "Nothing: every method is tuned." in part
    assert "citeseer" not in part


def test_without_any_search_everything_is_missing(home):
    text = run_here("fgssl/tuning.ipynb")
    assert "0 of 33 searches shown." in text and "Nothing yet." in text
    assert "pubmed: Local; Global" in text and "nothing yet" in text


def test_an_unknown_dataset_is_refused(home):
    with pytest.raises(InputError, match="did you mean 'cora'"):
        open_searches("cra")
    with pytest.raises(InputError, match="no value is given"):
        open_searches([])
    assert open_searches(["cora", "pubmed"]).datasets == ("cora", "pubmed")


def test_responses_hold_each_trial_once_and_mark_the_best(cora):
    searches = open_searches("cora")
    rates = responses(searches)
    assert rates.groupby("method").size().to_dict() == {
        space.title: 8 if space.ranges else 16 for space in SPACES.values()
    }
    assert (rates.groupby("method")["chosen"].sum() == 1).all()
    assert rates[rates["diverged"]]["at"].tolist() == [1.0] * 11
    best = rates[rates["chosen"] & (rates["method"] == "FedProx")].iloc[0]
    assert best["at"] == 0.072 and math.isclose(best["value"], 0.78573, abs_tol=1e-4)
    own = responses(searches, own=True)
    counted = own.groupby(["method", "parameter"]).size().to_dict()
    # the start and eight more; half a step of server SGD lies at an end, so four beyond it
    assert counted["FGSSL", "λ_C"] == counted["FGSSL", "λ_D"] == counted["FedProx", "μ"] == 9
    assert counted["FedOpt, SGD", "server's rate"] == 13


def test_the_table_of_choices_says_what_is_out_of_date(cora):
    path = search_path(cora.root, "cora", "fedavg")
    search = read_search(path)
    old = {**search.definition, "revision": 0}
    write_search(type(search)("cora", "fedavg", old, search.trials, search.environment), cora.root)
    searches = open_searches("cora")
    assert [stale(found) for found in searches.found].count(True) == 1
    assert searches.missing == [("cora", "fedavg")] and "1 missing" in searches.stamp()
    assert "FedAvg (older revision)" in chosen_table(searches).to_html()


def test_table1_with_tuned_values_and_without(home, monkeypatch):
    invented(monkeypatch)
    tune(["karate"], selection(["local"]), store=home, protocol=Protocol(points=2, further=0))
    monkeypatch.setattr(
        "fgl_core.study.catalogue.tuned_values",
        lambda: {"cora": {"fgssl": read_search(search_path(home.root, "karate", "local")).choice}},
    )
    part = {"dataset": ["cora"], "clients": [5]}
    for tuned, value in ((True, 0.9), (False, 0.8)):
        for spec in study_specs("fgssl-table1", "paper", part, tuned=tuned):
            record = synthetic_record(spec, value if spec.method.name == "fgssl" else 0.7)
            write_record(record, home.folder("fgssl-table1", "paper"))
    shown = {"profile": "paper", "dataset": "cora", "clients": [5]}
    text = run_here("fgssl/table1.ipynb", **shown)
    assert "90.0 ± 0.0" in text and "80.0 ±" not in text
    assert "tuned on cora (but for Local, Global" in text
    text = run_here("fgssl/table1.ipynb", tuned=False, **shown)
    assert "80.0 ± 0.0" in text and "90.0 ±" not in text
    assert "Learning rates and weights: defaults, not tuned." in text and "--untuned" in text
