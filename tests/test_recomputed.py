"""The book's numbers and the committed records: cells and a run computed again, records merged by git."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fgl_core import tables
from fgl_core.root import project_root
from fgl_core.study.environment import environment
from fgl_core.study.execute import execute
from fgl_core.study.results import collect, open_results
from fgl_core.study.spec import RunSpec
from fgl_core.study.store import Store
from fgl_core.tables import accuracy_table, comparison, difference_table

ROOT = Path(__file__).parents[1]
STUDIES = {"fgssl-table1": ("fedavg", "clients"), "fedcch-table1": ("Local, norm none", "dataset")}


def accuracies(cell):
    """A cell's test accuracies by seed, from its files, read without this package."""
    found = {}
    for spec in cell.specs:
        (path,) = (ROOT / "data" / "results").glob(f"*/{spec.slug}.json")
        data = json.loads(path.read_text(encoding="utf-8"))
        assert data["spec"] == spec.model_dump(mode="json") and data["status"] == "done"
        found[spec.seed] = data["best"]["test_accuracy"]
    return [found[seed] for seed in sorted(found)]


@pytest.fixture
def committed(monkeypatch):
    monkeypatch.setenv("FGL_HOME", str(ROOT))
    monkeypatch.delenv("FGL_PROFILE", raising=False)
    assert project_root() == ROOT


@pytest.mark.parametrize("study", STUDIES)
def test_cells_of_the_main_tables_follow_from_the_files(committed, study):
    baseline, columns = STUDIES[study]
    results = open_results(study)
    frame = comparison(results, baseline)
    means = accuracy_table(frame, columns=columns).data
    differences = difference_table(frame, columns=columns).data
    done = {record.spec.digest for record in results.shown if record.status == "done"}
    whole = [
        cell
        for cell in tables.cells.cells(results)
        if cell.measure == "test_accuracy" and all(spec.digest in done for spec in cell.specs)
    ]
    bases = {(cell.dataset, cell.clients): cell for cell in whole if baseline in (cell.method, cell.label)}
    recorded = [cell for cell in whole if (cell.dataset, cell.clients) in bases]
    assert len(recorded) > 10
    for cell in random.Random(20261130).sample(recorded, min(20, len(recorded))):
        column = f"{cell.clients} clients" if columns == "clients" else cell.dataset
        index = (cell.dataset, cell.label) if columns == "clients" else cell.label
        mine = np.array(accuracies(cell))
        assert means.loc[index, column] == f"{100 * mine.mean():.1f} ± {100 * mine.std(ddof=1):.1f}"
        beside = bases[cell.dataset, cell.clients]
        pairs = mine - accuracies(beside)
        expected = f"{100 * pairs.mean():+.1f}"
        if pairs.std() > 1e-5:
            low, high = stats.t.interval(0.95, len(pairs) - 1, pairs.mean(), stats.sem(pairs))
            expected += f" [{100 * low:+.1f}, {100 * high:+.1f}]"
        if cell is not beside:
            assert differences.loc[index, column] == expected, cell.label


@pytest.mark.real_data
def test_one_cheap_run_computed_again(real_data):
    """The first seed of FedAvg on Cora, five clients: exact where processor and versions are the record's."""
    real_data("cora")
    spec = RunSpec.parse({"dataset": "cora", "clients": 5, "rounds": 50, "seed": 0})
    (record,) = (r for r in Store(ROOT).load(ROOT / "data/results/fgssl-table1").values() if r.spec == spec)
    again, before, here = execute(spec), record.data, environment()
    there = before["environment"]
    if (here["cpu"], here["versions"]) == (there["cpu"], there["versions"]):
        for block in ("curves", "best", "last", "bytes", "partition", "notes"):
            assert again[block] == before[block], block
    else:
        assert again["partition"] == before["partition"] and again["bytes"] == before["bytes"]
        correct = [sum(data["best"]["test_correct"]) for data in (again, before)]
        assert abs(correct[0] - correct[1]) <= 2


def git(folder, *command):
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *author, *command], cwd=folder, check=True, capture_output=True)


def test_records_made_in_two_clones_and_merged_give_the_same_tables(tmp_path, monkeypatch):
    for name in ("FGL_HOME", "FGL_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    source = sorted((ROOT / "data" / "results" / "fgssl-table1").glob("*.json"))
    first = tmp_path / "first"
    (first / "data").mkdir(parents=True)
    shutil.copy(ROOT / "data" / "registry.toml", first / "data")
    git(tmp_path, "init", "-q", "-b", "main", str(first))
    git(first, "add", ".")
    git(first, "commit", "-qm", "start")
    git(tmp_path, "clone", "-q", str(first), "second")
    second = tmp_path / "second"
    # every third record is computed in both, in other times
    for number, path in enumerate(source):
        for clone, own in ((first, number % 3 != 1), (second, number % 3 != 0)):
            folder = clone / "data" / "results" / "fgssl-table1"
            folder.mkdir(parents=True, exist_ok=True)
            if own:
                shutil.copy(path, folder)
    for clone in (first, second):
        git(clone, "add", ".")
        git(clone, "commit", "-qm", "records")
    git(first, "pull", "-q", "--no-rebase", "--no-edit", "-X", "ours", str(second), "main")

    part = {"clients": [5]}
    merged = comparison(collect("fgssl-table1", "lite", part, Store(first)))
    whole = comparison(collect("fgssl-table1", "lite", part, Store(ROOT)))
    assert (merged["n"] > 0).all() and merged.equals(whole)
    assert accuracy_table(merged).to_html() == accuracy_table(whole).to_html()
