"""``fgl new-method`` in a copy of the project: what it writes passes the project's own tests at once."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import fgl_core
from fgl_core.cli import main

ROOT = Path(__file__).parents[1]
PARTS = (
    "fgl_core",
    "tests",
    "notebooks",
    "book",
    "_toc.yml",
    "_config.yml",
    "pyproject.toml",
    "CHANGELOG.md",
)
WRITTEN = {"fgl_core/methods/half_way.py", "tests/test_half_way.py", "notebooks/beyond/half-way.ipynb"}


def python(folder, *arguments):
    """Run Python on the code in ``folder``."""
    home = {"FGL_HOME": str(folder / "home"), "PYTHONPATH": str(folder), "FGL_PROFILE": "smoke"}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, **home},
        capture_output=True,
        text=True,
        timeout=600,
    )


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the project, and its files before and after the command, and what that said."""
    folder = tmp_path_factory.mktemp("project") / "copy"
    folder.mkdir()
    for part in PARTS:
        source = ROOT / part
        ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "mathjax")
        shutil.copytree(source, folder / part, ignore=ignored) if source.is_dir() else shutil.copy(
            source, folder
        )
    # compiled code is kept beside its source: where that is a link, it need not be compiled again
    shutil.rmtree(folder / "fgl_core" / "models")
    (folder / "fgl_core" / "models").symlink_to(ROOT / "fgl_core" / "models")
    (folder / "data").mkdir()
    for path in (ROOT / "data").glob("*.toml"):
        shutil.copy(path, folder / "data")
    before = files(folder)
    done = python(folder, "fgl_core.cli", "new-method", "half-way")
    assert done.returncode == 0, done.stderr
    return folder, before, files(folder), done.stdout


def test_it_writes_three_files_and_one_line_of_the_contents(copy):
    folder, before, after, said = copy
    assert after.keys() - before.keys() == WRITTEN
    assert {name for name in before if after[name] != before[name]} == {"_toc.yml"}
    lines = after["_toc.yml"].decode().splitlines()
    added = lines.index("      - file: notebooks/beyond/half-way")
    assert lines[:added] + lines[added + 1 :] == before["_toc.yml"].decode().splitlines()
    assert lines[added - 1].startswith("      - file: notebooks/beyond/")
    assert all(name in said for name in WRITTEN) and str(folder) in said
    text = "".join(after[name].decode() for name in WRITTEN)
    assert not re.search(r"\$\w", text)  # no word of a template is left


def test_what_it_says_to_do_next_can_be_done(copy):
    folder, _, _, said = copy
    (run,) = re.findall(r"fgl (run .*)", said)
    done = python(folder, "fgl_core.cli", *run.split())
    assert done.returncode == 0 and "Half Way on digits-knn" in done.stdout, done.stderr
    (path,) = (folder / "home" / "data" / "runs").glob("*-half-way-*.json")
    assert json.loads(path.read_text())["revision"] == 0


def test_what_it_writes_passes_the_projects_checks(copy):
    folder, *_ = copy
    for check in (["check"], ["format", "--check"]):
        done = python(folder, "ruff", *check, *sorted(WRITTEN))
        assert done.returncode == 0, done.stdout
    modules = [
        f"tests/test_{name}.py" for name in ("half_way", "notebooks", "repository", "explain", "golden")
    ]
    chosen = "half or citation or default_comes_from"
    done = python(folder, "pytest", "-q", "-p", "no:cacheprovider", *modules, "-k", chosen)
    assert done.returncode == 0, done.stdout
    # its own three, three and four of the notebook, two of what it sends, and two of all methods; a draft's
    # numbers are not among the stored ones
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) == 14, done.stdout


def test_its_notebook_compares_it_with_fedavg(copy):
    folder, *_ = copy
    notebook = "notebooks/beyond/half-way.ipynb"
    values = {"weight": "5.0", "rounds": "2", "seeds": "1", "dataset": "karate", "clients": "2"}
    flags = [part for name, value in values.items() for part in ("-p", name, value)]
    done = python(folder, "fgl_core.cli", "render", notebook, *flags)
    assert done.returncode == 0, done.stderr
    cells = nbformat.read(folder / "_build" / "rendered" / notebook, as_version=4).cells
    outputs = [output.data for cell in cells for output in cell.get("outputs", [])]
    assert sum("image/png" in data for data in outputs) == 1
    (table,) = [data["text/html"] for data in outputs if "text/html" in data]
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in table.split("<tr>")]
    fedavg, other = [row for row in rows if row]
    assert (fedavg[0], other[0]) == ("fedavg", "half-way") and fedavg[1:] != other[1:]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("fedavg", "there is a method 'fedavg' already"),
        ("half-way", "fgl_core/methods/half_way.py exists already"),
        ("speed", "exists already"),
        ("Half", "cannot be called 'Half'"),
        ("half_way", "cannot be called 'half_way'"),
        ("2half", "cannot be called '2half'"),
        ("../half", "cannot be called"),
        ("a" * 31, "30 letters at most"),
        ("none", "'none' would be mistaken"),
        ("class", "'class' would be mistaken"),
        ("server", "'server' would be mistaken"),
        ("fed-avg", "'fed-avg' would be mistaken"),
    ],
)
def test_names_that_cannot_be(copy, monkeypatch, capsys, name, says):
    folder, _, after, _ = copy
    monkeypatch.setattr(fgl_core, "__file__", str(folder / "fgl_core" / "__init__.py"))
    assert main(["new-method", name]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err
    assert {key: value for key, value in files(folder).items() if key in after} == after


def test_an_installed_package_is_no_place_for_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "fgl_core" / "methods").mkdir(parents=True)
    monkeypatch.setattr(fgl_core, "__file__", str(tmp_path / "fgl_core" / "__init__.py"))
    assert main(["new-method", "half-way"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "is no checkout of the project" in err
    assert files(tmp_path) == {}
