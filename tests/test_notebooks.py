"""The notebooks: how they are stored, and that each shows what it is for and heeds its parameters."""

import ast

import nbformat
import pytest
from executed import NOTEBOOKS, run
from synthetic import synthetic_record

from fgl_core.study.catalogue import study_specs
from fgl_core.study.store import write_record

PATHS = sorted(NOTEBOOKS.rglob("*.ipynb"))
ACCURACY = {"local": 0.70, "fedavg": 0.80, "fgssl": 0.85}


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def stored(request):
    return nbformat.read(request.param, as_version=4)


def test_stored_without_outputs_and_with_the_plain_kernel(stored):
    nbformat.validate(stored)
    assert stored.metadata.kernelspec.name == "python3"
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


def test_one_cell_of_parameters_each_with_a_type_and_a_comment(stored):
    (cell,) = [cell for cell in stored.cells if "parameters" in cell.metadata.get("tags", [])]
    for line in cell.source.splitlines():
        (node,) = ast.parse(line).body
        assert isinstance(node, ast.AnnAssign) and "  # " in line, line


def test_short_cells_and_described_figures(stored):
    for cell in stored.cells:
        if cell.cell_type == "code" and "tags" not in cell.metadata:
            assert len([line for line in cell.source.splitlines() if line]) <= 8, cell.source
        if "mystnb" in cell.metadata:
            about = cell.metadata.mystnb
            assert about.figure.name and about.figure.caption and about.image.alt


def fill(store, profile, specs):
    for spec in specs:
        shift = 1 - spec.seed if spec.method.name == "fgssl" else spec.seed
        accuracy = ACCURACY.get(spec.method.name, 0.75) + 0.01 * shift
        write_record(synthetic_record(spec, accuracy), store.folder("fgssl-table1", profile))


def test_table1_computes_the_smoke_runs_that_are_missing(home, tmp_path, monkeypatch):
    monkeypatch.setenv("FGL_PROFILE", "smoke")
    specs = study_specs("fgssl-table1", "smoke")
    left = [spec for spec in specs if spec.method.name == "fedprox" and spec.clients == 3]
    fill(home, "smoke", [spec for spec in specs if spec not in left])
    text, pictures = run("fgssl/table1.ipynb", tmp_path)
    assert f"Profile smoke: {len(specs)} of {len(specs)} runs shown." in text
    assert "80.5 ± 0.7" in text and "85.5 ± 0.7" in text  # FedAvg and FGSSL, means of two known seeds
    assert "+5.0 [-7.7, +17.7]" in text  # 6 and 4 points: 5 ± 12.71 standard errors of 1
    assert "missing" not in text
    assert len(pictures) == 3
    assert {spec.digest for spec in left} <= home.load(home.runs).keys() and not home.results.exists()


def test_table1_shows_what_is_missing_and_heeds_its_parameters(home, tmp_path):
    specs = study_specs("fgssl-table1", "lite", {"dataset": ["cora"], "clients": [5]})
    fill(home, "lite", [spec for spec in specs if spec.method.name != "fgssl" or spec.seed == 0])
    text, pictures = run("fgssl/table1.ipynb", tmp_path)
    assert "Profile lite" in text and "citeseer" in text and "10 clients" in text
    assert "missing (0 of 3)" in text and "86.0 (1 of 3)" in text and "81.0 ± 1.0" in text
    assert "`fgl study run fgssl-table1 --profile lite` fills them" in text

    part, others = run("fgssl/table1.ipynb", tmp_path, dataset="cora", clients=[5])
    assert f"{len(specs) - 2} of {len(specs)} runs shown" in part and "81.0 ± 1.0" in part
    assert "citeseer" not in part and "10 clients" not in part
    assert "--only dataset=cora --only clients=5" in part
    assert len(pictures) == len(others) == 3 and pictures[0] != others[0]


def test_quickstart_trains_and_heeds_its_parameters(home, tmp_path):
    text, pictures = run("start/quickstart.ipynb", tmp_path, dataset="karate", clients=2, rounds=2)
    assert "karate: 34 nodes" in text and "edges lost between clients" in text
    assert "fedavg" in text and "fgssl" in text and "MB of model" in text
    assert "fgl run --dataset karate --clients 2 --rounds 2" in text
    assert len(pictures) == 2
    assert not home.runs.exists()
