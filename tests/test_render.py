"""Rendering notebooks with parameters, and staging the book, on small notebooks made here."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest

from fgl_core.cli import main
from fgl_core.errors import InputError
from fgl_core.parameters import parameters_of
from fgl_core.render import BookFailed, NotebookFailed, build_book, render, stage_book

PARAMETERS = """\
from typing import Literal
clients: list[int] = [5, 10]  # numbers of clients
dataset: str = "karate"  # the graph
rate: float = 0.5
seed: int | None = None  # all seeds if None
profile: Literal["auto", "smoke"] = "auto"
"""
TABLE = "from IPython.display import HTML\n\nHTML('<table><tr><td>1</td></tr></table>')"
BODY = "import os\nprint(clients, dataset, rate, seed, profile)\nprint(os.getcwd())"


def write_notebook(path: Path, *cells: str, parameters: str | None = PARAMETERS) -> Path:
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    )
    notebook.cells = [nbformat.v4.new_markdown_cell("# A page\n\nWith $x^2$.")]
    if parameters is not None:
        notebook.cells.append(nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    notebook.cells += [nbformat.v4.new_code_cell(cell) for cell in cells]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of two notebooks and one prose page."""
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: book/intro\nparts:\n  - caption: One\n    chapters:\n"
        "      - file: notebooks/one\n        sections:\n          - file: notebooks/deep/two\n"
    )
    (tmp_path / "_config.yml").write_text("title: Small\nonly_build_toc_files: true\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n")
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "intro.md").write_text("# Intro\n")
    (tmp_path / "fgl_core").mkdir()
    (tmp_path / "fgl_core" / "code.py").write_text("x = 1\n")
    write_notebook(tmp_path / "notebooks" / "one.ipynb", BODY)
    write_notebook(tmp_path / "notebooks" / "deep" / "two.ipynb", "print(1 + 1)", TABLE)
    return tmp_path


def output_of(notebook: Path) -> str:
    cells = nbformat.read(notebook, as_version=4).cells
    return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))


def test_parameters_are_read_with_type_default_and_meaning(project: Path) -> None:
    found = parameters_of(project / "notebooks" / "one.ipynb")
    assert list(found) == ["clients", "dataset", "rate", "seed", "profile"]
    assert (found["clients"].annotation, found["clients"].default) == ("list[int]", [5, 10])
    assert found["clients"].meaning == "numbers of clients"
    assert found["rate"].meaning == ""


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("clients", "[5]", [5]),
        ("clients", "[]", []),
        ("dataset", "cora", "cora"),
        ("dataset", "5", "5"),
        ("rate", "1", 1.0),
        ("seed", "3", 3),
        ("seed", "None", None),
        ("profile", "smoke", "smoke"),
    ],
)
def test_values_are_read_by_the_declared_type(project: Path, name: str, text: str, value: object) -> None:
    parsed = parameters_of(project / "notebooks" / "one.ipynb")[name].parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("clients", "5"),
        ("clients", "['5']"),
        ("clients", "[5"),
        ("rate", "fast"),
        ("rate", "True"),
        ("seed", "1.5"),
        ("profile", "power"),
    ],
)
def test_a_value_of_another_type_is_refused_before_anything_runs(
    project: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fgl_core.render._execute", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(InputError, match=f"parameter {name}: ") as caught:
        render(project / "notebooks" / "one.ipynb", {"dataset": "cora", name: text})
    assert "\n" not in str(caught.value)


def test_a_refused_value_comes_with_an_example(tmp_path: Path) -> None:
    lines = "one: int | None = None\nmany: int | list[int] | None = None\nrate: float = 0.5"
    found = parameters_of(write_notebook(tmp_path / "page.ipynb", parameters=lines))
    examples = {"one": "-p one None", "many": "-p many None, or '[5, 10]'", "rate": "-p rate 0.5"}
    for name, example in examples.items():
        with pytest.raises(InputError) as caught:
            found[name].parse("five")
        assert str(caught.value).endswith(f"write it like the default, {example}")


def test_an_unknown_parameter_is_refused_with_the_nearest_name(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fgl_core.render._execute", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(InputError, match=r"'client'.*did you mean 'clients'.*dataset, profile, rate, seed"):
        render(project / "notebooks" / "one.ipynb", {"client": "[5]"})


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        (None, "0 cells are tagged"),
        ("import os", "line 1 is no assignment"),
        ("when: datetime = 1", "the type datetime is not a plain one"),
        ("x: int = compute()", "in the parameters cell"),
        ("x: int = (", "in the parameters cell"),
    ],
)
def test_a_parameters_cell_of_another_form_is_named(
    tmp_path: Path, parameters: str | None, complaint: str
) -> None:
    notebook = write_notebook(tmp_path / "n.ipynb", parameters=parameters)
    with pytest.raises(InputError, match=complaint):
        parameters_of(notebook)


def test_what_is_no_notebook_is_named(tmp_path: Path) -> None:
    (tmp_path / "n.ipynb").write_text("hello")
    with pytest.raises(InputError, match="is not a notebook"):
        parameters_of(tmp_path / "n.ipynb")
    with pytest.raises(InputError, match="no notebook"):
        parameters_of(tmp_path / "missing.ipynb")


def test_rendering_changes_the_output_and_leaves_the_notebook(
    project: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    notebook = project / "notebooks" / "one.ipynb"
    before = notebook.read_bytes()
    page = render(notebook, {"clients": "[7]", "dataset": "cora", "seed": "3"})

    assert page == project / "_build" / "rendered" / "notebooks" / "one.html"
    assert str(page) in capsys.readouterr().out
    assert "unknown" not in caplog.text  # as papermill says of parameters like ``int | None``
    first, folder = output_of(page.with_suffix(".ipynb")).splitlines()
    assert first == "[7] cora 0.5 3 auto"
    assert os.path.samefile(folder, notebook.parent)
    html = page.read_text()
    assert "[7] cora 0.5 3 auto" in html
    assert "<script src=" not in html  # nothing but MathJax, which is a file of the project, if it is there
    assert notebook.read_bytes() == before


def test_a_failing_notebook_is_named_with_its_cell_and_leaves_no_page(project: Path) -> None:
    notebook = write_notebook(project / "notebooks" / "bad.ipynb", "rate", "1 / (rate - 2)")
    render(notebook, {"rate": "1"})
    with pytest.raises(NotebookFailed, match=r"bad\.ipynb: cell In \[4\] failed") as caught:
        render(notebook, {"rate": "2"})
    assert "ZeroDivisionError" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert list((project / "_build" / "rendered" / "notebooks").glob("bad.*")) == []


def test_a_value_that_a_cell_refuses_is_said_in_its_line(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse = "from fgl_core.errors import check_between\ncheck_between('rate', rate, 0, 1)"
    notebook = write_notebook(project / "notebooks" / "range.ipynb", "rate", refuse)
    render(notebook, {"rate": "1"})
    with pytest.raises(InputError, match=r"^range\.ipynb: rate is 2\.0: choose 0 to 1$"):
        render(notebook, {"rate": "2"})
    assert list((project / "_build" / "rendered" / "notebooks").glob("range.*")) == []
    assert main(["render", str(notebook), "-p", "rate", "3"]) == 2
    assert capsys.readouterr().err == "fgl: range.ipynb: rate is 3.0: choose 0 to 1\n"


def test_the_book_says_which_page_lacks_what(project: Path) -> None:
    refuse = "from fgl_core.errors import InputError\nraise InputError('no results of the benchmark node')"
    write_notebook(project / "notebooks" / "deep" / "two.ipynb", refuse)
    with pytest.raises(InputError, match=r"^notebooks/deep/two\.ipynb: no results of the benchmark node$"):
        stage_book(root=project)


def test_a_notebook_cannot_be_its_own_output(project: Path) -> None:
    notebook = project / "notebooks" / "one.ipynb"
    with pytest.raises(InputError, match="name another output"):
        render(notebook, {}, notebook)


def test_the_staging_tree_mirrors_the_project(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stale = project / "_build" / "source" / "stale.md"
    stale.parent.mkdir(parents=True)
    stale.write_text("old")
    out = stage_book(root=project)

    assert output_of(out / "notebooks" / "deep" / "two.ipynb") == "2\n"
    assert output_of(out / "notebooks" / "one.ipynb").startswith("[5, 10] karate 0.5 None auto")
    assert (out / "book" / "intro.md").is_file()
    assert (out / "fgl_core" / "code.py").is_file()
    assert "`seed`" in (out / "book" / "_generated" / "notebooks.md").read_text()
    assert not stale.exists()
    printed = capsys.readouterr().out
    assert "[1/2] notebooks/one.ipynb" in printed
    assert "[2/2] notebooks/deep/two.ipynb" in printed
    executed = nbformat.read(out / "notebooks" / "one.ipynb", as_version=4)
    assert "papermill" not in executed.metadata
    assert "How this was made" not in executed.cells[-1].source  # it shows neither a figure nor a table
    assert (out / "_toc.yml").is_file()
    two = nbformat.read(out / "notebooks" / "deep" / "two.ipynb", as_version=4)
    assert "`fgl render notebooks/deep/two.ipynb`" in two.cells[-1].source


def test_a_staging_tree_without_all_of_its_notebooks_lists_no_page(project: Path) -> None:
    """The PDF is printed from a tree that lists its pages: a failed one must not pass for it."""
    stage_book(root=project)
    write_notebook(project / "notebooks" / "deep" / "two.ipynb", "1 / 0")
    with pytest.raises(NotebookFailed, match="two"):
        stage_book(root=project)
    assert not (project / "_build" / "source" / "_toc.yml").exists()


def test_a_page_that_is_missing_is_named_before_anything_runs(project: Path) -> None:
    (project / "notebooks" / "deep" / "two.ipynb").unlink()
    with pytest.raises(InputError, match=r"_toc\.yml names notebooks/deep/two"):
        stage_book(root=project)
    assert not (project / "_build").exists()


def test_a_book_with_a_warning_is_not_built_and_the_old_one_stays(project: Path) -> None:
    (project / "_toc.yml").write_text("format: jb-book\nroot: book/intro\n")
    (project / "book" / "intro.md").write_text("# Intro\n\n[nowhere](missing.md)\n")
    old = project / "_build" / "html" / "index.html"
    old.parent.mkdir(parents=True)
    old.write_text("the old book")
    with pytest.raises(BookFailed, match=r"missing\.md"):
        build_book(project)
    assert old.read_text() == "the old book"
    assert not (project / "_build" / "new").exists()
