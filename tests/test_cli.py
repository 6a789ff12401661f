"""The command line: what it prints, what it leaves behind, and one line for whatever the user can mend."""

import json
import os
import subprocess
import sys

import pytest
from synthetic import synthetic_record

from fgl_core.cli import main
from fgl_core.cli.study import seconds
from fgl_core.methods import METHODS
from fgl_core.study.catalogue import STUDIES, study_specs
from fgl_core.study.store import Store, read_record, write_record

KARATE = ["--dataset", "karate", "--clients", "2", "--hidden", "8", "--rounds", "3"]


pytestmark = pytest.mark.usefixtures("root")


def fgl(*arguments):
    """Run the command in a process of its own, as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "fgl_core.cli", *arguments], capture_output=True, text=True, timeout=300
    )


def complaint(capsys, *arguments):
    """The one line that a bad command leaves on stderr."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == "" and len(lines) == 1 and lines[0].startswith("fgl: "), (out, err)
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["run", "--dataset", "corra"],
            ["unknown dataset 'corra'", "did you mean 'cora'", "allowed: citeseer"],
        ),
        (["run", "--method", "fedagv"], ["unknown method 'fedagv'", "did you mean 'fedavg'", "fgssl"]),
        (["run", "--clinets", "3"], ["unknown option: --clinets", "--clients"]),
        (["run", "--method", "fgssl", "--lamda-c", "1"], ["--lamda-c", "--lambda-c"]),
        (["run", "--tau", "0.1"], ["--tau is a parameter of fgssl", "not of fedavg"]),
        (["run", "--method", "fgssl", "--tau", "-1"], ["tau = -1.0", "greater than 0"]),
        (["run", "--clients", "five"], ['unable to convert "five" into int']),
        (["run", "--clients", "0"], ["clients = 0", "greater than or equal to 1"]),
        (["run", "--lr", "nan"], ["lr = nan", "finite"]),
        (["run", "--dropout", "1.5"], ["dropout = 1.5", "less than 1"]),
        (["run", "--split", "quotta"], ['"quota"']),
        (["run", "--method", "fedsage", "--backbone", "gcn"], ["backbone = 'gcn'", "always sage"]),
        (["run", "--setting", "CHEM", "--method", "fedcch", "--hidden", "48"], ["48 numbers", "a square"]),
        (["run", "--setting", "CHEM", "--share-norm"], ["share_norm", "nothing to share"]),
        (["run", "--clients"], ["--clients requires an argument"]),
        (["run", "cora"], ["cora"]),
        (
            ["run", "--dataset", "karate", "--clients", "35"],
            ["34 nodes of karate", "35 clients", "choose 1 to 34"],
        ),
        (["run", "--dataset", "karate", "--clients", "30"], ["no training node", "choose fewer clients"]),
        (["run", "--task", "statistics"], ["unknown task 'statistics'", "allowed: graph, hetero"]),
        (["run", "--dataset", "cora"], ["cannot get cora", "FGL_DATA_MIRROR", "fgl data fetch cora"]),
        (["rum"], ['unknown command "rum"', '"run"']),
        (["data", "fecth"], ['unknown command "fecth"', '"fetch"']),
        (["data", "fetch", "corra"], ["unknown dataset 'corra'", "'cora'"]),
        (["study", "status", "fgssl-tabel1"], ["unknown study 'fgssl-tabel1'", "'fgssl-table1'"]),
        (["study", "run", "fgssl-table1", "--profile", "papr"], ["unknown profile 'papr'", "'paper'"]),
        (["study", "run", "fgssl-table1", "--only", "cora"], ["--only cora", "field=value"]),
        (["study", "run", "fgssl-table1", "--only", "dataset=corra"], ["dataset=corra", "it has: citeseer"]),
        (["study", "status", "fgssl-which", "--only", "clip=9"], ["clip=9", "it has: 0.01, None"]),
        (["study", "run", "fgssl-table1", "--only", "datase=cora"], ["unknown field 'datase'", "'dataset'"]),
        (["study", "run", "fgssl-table1", "--jobs", "0"], ["--jobs 0", "at least 1"]),
        (["study", "run", "fgssl-table1", "--time-budget", "90"], ["--time-budget 90", "90m"]),
        (["study", "run", "fgssl-table1", "--only", "dataset=cora"], ["cannot get cora"]),
        (["render", "nowhere.ipynb"], ["no notebook", "nowhere.ipynb"]),
        (["render"], ["requires an argument"]),
    ],
)
def test_bad_input_gets_one_line_with_the_remedy(capsys, root, arguments, says):
    line = complaint(capsys, *arguments)
    assert all(part in line for part in says), line
    assert not list(root.rglob("*.json"))


def test_bad_input_in_a_process_exits_with_two():
    for arguments in (["run", "--dataset", "corra"], ["run", "--clinets", "3"]):
        finished = fgl(*arguments)
        assert finished.returncode == 2 and finished.stdout == ""
        assert finished.stderr.startswith("fgl: unknown") and finished.stderr.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only where a disk can be full on demand")
def test_a_full_disk_behind_the_output():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "fgl_core.cli", "methods"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr == "fgl: the disk is full: make room, or send the output elsewhere\n"


def test_a_mirror_that_is_no_folder(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("FGL_DATA_MIRROR", str(tmp_path / "nowhere"))
    assert "FGL_DATA_MIRROR is not a folder" in complaint(capsys, "run", "--dataset", "cora")


def test_a_damaged_file_is_named_with_both_checksums_and_kept(capsys, root):
    folder = root / "data" / "raw" / "planetoid" / "cora" / "raw"
    folder.mkdir(parents=True)
    damaged = folder / "ind.cora.x"
    damaged.write_bytes(b"not what was published")
    line = complaint(capsys, "run", "--dataset", "cora")
    assert str(damaged) in line and line.count("sha256") == 2 and "is damaged" in line
    assert any(path.read_bytes() == b"not what was published" for path in folder.rglob("*") if path.is_file())


def test_a_results_folder_that_cannot_be_written(capsys, root):
    root.mkdir()
    (root / "data").write_text("a file in the way")
    assert "cannot write to" in complaint(capsys, "run", *KARATE)
    assert "cannot write to" in complaint(capsys, "study", "run", "fgssl-table1", "--profile", "smoke")


def test_a_record_that_is_not_valid_is_skipped_with_a_warning(capsys, root):
    store, specs = Store(root), study_specs("fgssl-table1", "lite")
    write_record(synthetic_record(specs[0]), store.folder("fgssl-table1", "lite"))
    bad = store.folder("fgssl-table1", "lite") / "bad.json"
    bad.write_text("{")
    assert main(["study", "status", "fgssl-table1"]) == 0
    out, err = capsys.readouterr()
    assert f"1 of {len(specs)} runs recorded" in out
    assert err.startswith(f"fgl: warning: skipped {bad}: not valid JSON") and err.count("\n") == 1


def test_run_trains_records_and_says_where(capsys, root):
    assert (
        main(["run", *KARATE, "--method", "fgssl", "--tau", "0.2", "--lambda-c", "1.5", "--seed", "3"]) == 0
    )
    out, err = capsys.readouterr()
    (path,) = (root / "data" / "runs").glob("*.json")
    record = read_record(path)
    method = record.spec.method
    assert (record.status, method.name, method.tau, method.lambda_c) == ("done", "fgssl", 0.2, 1.5)
    assert (record.spec.clients, record.spec.rounds, record.spec.seed) == (2, 3, 3)
    best = record.data["best"]
    assert f"best validation round, {best['round']} of 3: val {best['val_accuracy']:.1%}, " in out
    assert f"test {best['test_accuracy']:.1%}" in out and f"record: {path}" in out and "MB (model)" in out
    assert "3/3" in err and "loss=" in err and "val=" in err and "test=" in err


def test_a_run_that_diverges_is_recorded_and_says_so(capsys, root):
    assert main(["run", "--dataset", "karate", "--clients", "2", "--rounds", "30", "--lr", "100"]) == 0
    (path,) = (root / "data" / "runs").glob("*.json")
    assert read_record(path).status == "diverged"
    assert "diverged: " in capsys.readouterr().out


def test_local_reports_both_accuracies_and_that_nothing_travels(capsys, root):
    assert main(["run", *KARATE, "--method", "local"]) == 0
    out = capsys.readouterr().out
    assert "on all test nodes" in out and "travelled: up nothing; down nothing" in out


def test_methods_lists_every_parameter_with_default_and_source(capsys):
    assert main(["methods"]) == 0
    out = capsys.readouterr().out
    for name, method in METHODS.items():
        assert f"{name}: {method.title}" in out
        for key, field in method.model_fields.items():
            if key != "name":
                assert f"--{key.replace('_', '-')}" in out and str(field.default) in out
                assert field.json_schema_extra["source"] in out


def test_run_help_lists_every_field_and_parameter(capsys):
    assert main(["run", "--help"]) == 0
    out = capsys.readouterr().out
    for name in ("--dataset", "--optimizer-state", "--local-epochs", "--tau", "--lambda-c", "--mu"):
        assert name in out
    assert "[default: 0.1" in out and "karate" in out


def test_data_list_fetch_verify(capsys):
    assert main(["data", "list"]) == 0
    assert "digits-knn" in capsys.readouterr().out
    assert main(["data", "fetch", "karate"]) == 0 and main(["data", "verify", "karate"]) == 0
    assert capsys.readouterr().out.splitlines() == ["karate: embedded", "karate: embedded"]


def test_study_list_status_and_run(capsys, root, monkeypatch):
    assert main(["study", "list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in STUDIES)
    part = ["--profile", "smoke", "--only", "clients=3", "--only", "method=fedavg,fgssl"]
    count = len(study_specs("fgssl-table1", "smoke", {"clients": [3], "method": ["fedavg", "fgssl"]}))
    assert main(["study", "run", "fgssl-table1", *part, "--jobs", "1", "--time-budget", "0s"]) == 0
    assert f"0 of {count} runs recorded" in capsys.readouterr().out
    assert main(["study", "run", "fgssl-table1", *part, "--jobs", "1"]) == 0
    out, err = capsys.readouterr()
    assert f"{count} of {count} runs recorded" in out and f"{count}/{count}" in err
    assert main(["study", "run", "fgssl-table1", *part]) == 0
    assert "nothing to do" in capsys.readouterr().out
    monkeypatch.setattr(METHODS["fgssl"], "revision", METHODS["fgssl"].revision + 1)
    assert main(["study", "status", "fgssl-table1", *part]) == 0
    out = capsys.readouterr().out
    assert (
        "stale: digits-knn-m3-fgssl-s0-" in out
        and f"to fill: fgl study run fgssl-table1 {' '.join(part)}" in out
    )


def test_status_counts_the_seeds_of_an_analysis_together(capsys):
    assert main(["study", "status", "fedcch-privacy", "--profile", "power", "--only", "secret=set,size"]) == 0
    out = capsys.readouterr().out
    assert "missing: chem-set-privacy: 20 runs" in out and "missing: chem-size-privacy: 20 runs" not in out
    assert "missing: nci1-size-privacy: 20 runs" in out and out.count("missing:") == 2


def test_durations():
    assert (seconds("90m"), seconds("1h30m"), seconds("45s")) == (5400, 5400, 45)


def test_version_and_help():
    version = fgl("--version")
    assert version.returncode == 0 and version.stdout.startswith("fgl ")
    assert fgl("--help").returncode == 0


def test_nothing_that_only_reads_imports_torch(root):
    code = """
import sys
from fgl_core.cli import main
import fgl_core.plots, fgl_core.tables, fgl_core.study.sweep
for arguments in (["--help"], ["run", "--help"], ["methods"], ["data", "list"], ["study", "list"],
                  ["study", "status", "fgssl-table1"]):
    main(arguments)
sys.exit(",".join(name for name in ("torch", "torch_geometric") if name in sys.modules) or 0)
"""
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ}
    )
    assert finished.returncode == 0, finished.stderr


def test_render_refuses_parameters_before_anything_runs(capsys, tmp_path):
    notebook = tmp_path / "n.ipynb"
    cell = {
        "cell_type": "code",
        "id": "a",
        "metadata": {"tags": ["parameters"]},
        "execution_count": None,
        "outputs": [],
    }
    cell["source"] = "clients: int = 5  # how many"
    notebook.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert "'clients'" in complaint(capsys, "render", str(notebook), "-p", "clinets", "5")  # codespell:ignore
    for value in ("many", "[5, 10]", "-0.5"):
        assert f"'{value}'" in complaint(capsys, "render", str(notebook), "-p", "clients", value)
