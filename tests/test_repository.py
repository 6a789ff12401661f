"""The repository: what is stored, and what importing the package costs."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import fgl_core
from fgl_core.methods import METHODS
from fgl_core.pages import method_tables
from fgl_core.parameters import parameters_of
from fgl_core.render import book_pages

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))


def stored_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if listed.returncode != 0:
        pytest.skip("no git checkout: cannot tell which files are stored")
    return [file for name in listed.stdout.split("\0") if name and (file := ROOT / name).is_file()]


def test_no_stored_file_is_large() -> None:
    assert [str(file) for file in stored_files() if file.stat().st_size > 3_000_000] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
class TestNotebook:
    def test_is_stored_without_outputs(self, notebook: Path) -> None:
        cells = json.loads(notebook.read_text())["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)

    def test_names_the_kernel_that_everybody_has(self, notebook: Path) -> None:
        assert json.loads(notebook.read_text())["metadata"]["kernelspec"]["name"] == "python3"

    def test_its_parameters_have_a_type_and_a_comment(self, notebook: Path) -> None:
        parameters = parameters_of(notebook)  # raises unless exactly one cell is tagged
        assert parameters
        assert [name for name, parameter in parameters.items() if not parameter.meaning] == []

    def test_is_a_page_of_the_book(self, notebook: Path) -> None:
        assert notebook.relative_to(ROOT) in list(book_pages(ROOT))


TORCH_FREE = (
    "fgl_core",
    "fgl_core.cli",
    "fgl_core.datasets",
    "fgl_core.methods",
    "fgl_core.pages",
    "fgl_core.partition",
    "fgl_core.render",
    "fgl_core.study.results",
    "fgl_core.study.spec",
    "fgl_core.study.store",
    "fgl_core.tables",
    "fgl_core.tables.claims",
    "fgl_core.tables.clusterings",
    "fgl_core.tables.contrasts",
    "fgl_core.tables.curves",
    "fgl_core.tables.graph_sets",
    "fgl_core.tables.ledger",
    "fgl_core.tables.partitions",
    "fgl_core.tables.similarity",
    "fgl_core.tables.sweeps",
    "fgl_core.study.tuned",
    "fgl_core.study.tuning",
    "fgl_core.tables.tuning",
    "fgl_core.tables.traffic",
    "fgl_core.augment",
    "fgl_core.plots",
    "fgl_core.signature",
)


def test_reading_records_and_making_tables_does_not_import_torch() -> None:
    code = (
        "import sys, importlib\n"
        f"for name in {TORCH_FREE}:\n"
        "    importlib.import_module(name)\n"
        "    assert not {'torch', 'torch_geometric'} & set(sys.modules), name\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert fgl_core.__version__ == project["version"] == citation["version"]


@pytest.mark.parametrize("workflow", ["tests", "book"])
def test_a_workflow_runs_the_commands_of_the_readme(workflow: str) -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / f"{workflow}.yml").read_text())["jobs"]
    commands = [step.get("run") for job in jobs.values() for step in job["steps"]]
    assert {"tests": "bash .ci/run", "book": "make book"}[workflow] in commands


def test_every_citation_has_its_reference() -> None:
    keys = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "book" / "references.bib").read_text(), re.MULTILINE))
    cited = {method.paper for method in METHODS.values()}
    sources = [page.read_text() for page in (ROOT / "book").rglob("*.md")]
    sources += [notebook.read_text() for notebook in NOTEBOOKS]
    for text in [*sources, method_tables()]:
        cited |= {
            key for group in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", text) for key in group.split(",")
        }
    assert cited - keys == set()


def test_every_parameter_of_a_method_says_where_its_default_comes_from() -> None:
    for method in METHODS.values():
        for name, field in method.model_fields.items():
            assert name == "name" or field.json_schema_extra["source"], f"{method.__name__}.{name}"


def test_the_mathjax_files_are_those_of_one_release() -> None:
    folder = ROOT / "book" / "_static" / "mathjax"
    assert 'VERSION="3.2.2"' in (folder / "es5" / "tex-mml-chtml.js").read_text()
    assert len(list((folder / "es5" / "output" / "chtml" / "fonts" / "woff-v2").glob("*.woff"))) == 23
    assert "Apache License" in (folder / "LICENSE").read_text()


def test_the_code_files_named_in_the_book_exist() -> None:
    named = {
        path
        for page in (ROOT / "book").rglob("*.md")
        for path in re.findall(r"`(fgl_core/[\w/]+\.py)`", page.read_text())
    }
    assert named
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


def test_the_functions_shown_in_the_book_exist() -> None:
    for page in (ROOT / "book").rglob("*.md"):
        for path, name in re.findall(
            r"\{literalinclude\} (\S+)\n(?::\w+:.*\n)*:pyobject: (\S+)", page.read_text()
        ):
            tree = ast.parse((page.parent / path).read_text())
            defined = {
                node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)
            }
            assert set(name.split(".")) <= defined, f"{page.name}: {name}"
