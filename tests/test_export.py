"""``fgl study export``: one tidy table of a study's records."""

import io
from importlib.util import find_spec

import pandas as pd
import pytest
from synthetic import synthetic_record

from fgl_core.cli import main
from fgl_core.study.catalogue import study_specs
from fgl_core.study.spec import Spec
from fgl_core.study.store import Record, Store, write_record
from fgl_core.tables.frames import rounds_frame, runs_frame

PART = ["--profile", "lite", "--only", "dataset=cora", "--only", "clients=5", "--only", "method=fedavg,fgssl"]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("FGL_HOME", str(tmp_path))
    return Store(tmp_path)


@pytest.fixture
def recorded(store):
    """FedAvg and FGSSL on Cora with five clients: three seeds each, one of which diverged, one is stale."""
    only = {"dataset": ["cora"], "clients": [5], "method": ["fedavg", "fgssl"]}
    specs = study_specs("fgssl-table1", "lite", only)
    for spec in specs:
        record = synthetic_record(spec, 0.8 + 0.01 * spec.seed)
        if spec.method.name == "fgssl" and spec.seed == 1:
            record |= {"status": "diverged", "reason": "the loss is inf", "best": None, "last": None}
        if spec.method.name == "fgssl" and spec.seed == 2:
            record |= {"revision": 99}
        write_record(record, store.folder("fgssl-table1", "lite"))
    return specs


def test_a_row_per_run(recorded, capsys, tmp_path):
    path = tmp_path / "new" / "table.csv"
    assert main(["study", "export", "fgssl-table1", *PART, "--output", str(path)]) == 0
    assert capsys.readouterr().out == f"5 rows of 5 runs, 1 missing: {path}\n"
    frame = pd.read_csv(path)
    assert frame["method"].value_counts().to_dict() == {"fedavg": 3, "fgssl": 2}
    fedavg = frame[frame["method"] == "fedavg"].sort_values("seed")
    assert fedavg["best_test_accuracy"].tolist() == [0.8, 0.81, 0.82]
    assert frame.loc[frame["method"] == "fgssl", "method.tau"].tolist() == [0.1, 0.1]
    assert frame["status"].tolist().count("diverged") == 1 and not frame["stale"].any()
    assert set(frame["digest"]) < {spec.digest for spec in recorded}


def test_without_a_file_the_table_goes_to_the_terminal(recorded, capsys):
    assert main(["study", "export", "fgssl-table1", *PART]) == 0
    assert len(pd.read_csv(io.StringIO(capsys.readouterr().out))) == 5


def test_a_row_per_round(recorded, capsys, tmp_path):
    path = tmp_path / "curves.csv"
    assert main(["study", "export", "fgssl-table1", *PART, "--curves", "--output", str(path)]) == 0
    frame = pd.read_csv(path)
    assert len(frame) == 5 * 50 and frame["round"].tolist() == [*range(1, 51)] * 5
    run = frame[(frame["method"] == "FedAvg") & (frame["seed"] == 1)]
    # the synthetic run climbs evenly to 0.81 in 50 rounds
    assert run["test_accuracy"].iloc[[0, 24, 49]].tolist() == [0.0162, 0.405, 0.81]
    assert "test_correct" not in frame and "loss" in frame  # counts are a list per round
    runs = runs_frame([Record.parse(synthetic_record(recorded[0]))])
    assert set(runs["digest"]) <= set(frame["digest"])


def test_analyses_have_a_row_and_no_rounds():
    spec = Spec.parse({"task": "statistics", "dataset": "MUTAG"})
    data = {
        "format": 1,
        "spec": spec.model_dump(mode="json"),
        "digest": spec.digest,
        "revision": spec.revision,
    }
    data |= {"status": "done", "statistics": {"graphs": 188, "class_counts": [63, 125]}}
    (row,) = runs_frame([Record.parse(data)]).to_dict("records")
    assert (row["dataset"], row["statistics.graphs"]) == ("MUTAG", 188) and "method" not in row
    assert rounds_frame([Record.parse(data)]).empty


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed")
def test_parquet_holds_the_same_table(recorded, tmp_path):
    for suffix in ("csv", "parquet"):
        output = str(tmp_path / f"table.{suffix}")
        assert main(["study", "export", "fgssl-table1", *PART, "--output", output]) == 0
    same = pd.read_parquet(tmp_path / "table.parquet")
    assert same["digest"].tolist() == pd.read_csv(tmp_path / "table.csv")["digest"].tolist()


def complaint(capsys, *arguments):
    assert main(["study", "export", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    return err


def test_what_cannot_be_exported(recorded, capsys, tmp_path, monkeypatch):
    assert "ends in .csv or .parquet" in complaint(capsys, "fgssl-table1", *PART, "--output", "table.xlsx")
    assert "fgl study run fgssl-fig3 --profile paper" in complaint(capsys, "fgssl-fig3", "--profile", "paper")
    assert "unknown study 'fgssl-tabel1'" in complaint(capsys, "fgssl-tabel1")
    (row,) = study_specs("fedcch-fig1", "smoke")
    statistics = {
        "status": "done",
        "statistics": {},
        "spec": row.model_dump(mode="json"),
        "digest": row.digest,
    }
    write_record({"format": 1, "revision": row.revision} | statistics, tmp_path / "data" / "runs")
    assert "leave out --curves" in complaint(capsys, "fedcch-fig1", "--profile", "smoke", "--curves")
    (tmp_path / "file").write_text("in the way")
    blocked = str(tmp_path / "file" / "table.csv")
    assert "name another file" in complaint(capsys, "fgssl-table1", *PART, "--output", blocked)
    monkeypatch.setattr("fgl_core.cli.study.find_spec", lambda name: None)
    assert "pip install pyarrow" in complaint(capsys, "fgssl-table1", *PART, "--output", "table.parquet")


def test_a_table_that_cannot_be_written_leaves_the_old_one(recorded, capsys, tmp_path, monkeypatch):
    path = tmp_path / "out" / "table.csv"
    path.parent.mkdir()
    path.write_text("old")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    assert "No space left on device" in complaint(capsys, "fgssl-table1", *PART, "--output", str(path))
    assert path.read_text() == "old" and list(path.parent.iterdir()) == [path]
