"""The labs: solved they pass; without a solution, or with a typical mistake, the check says so."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import pytest
from mistakes import MISTAKES

from fgl_core.labs import main, without_solutions, write_student_copies

ROOT = Path(__file__).parents[1]
LABS = {path.stem: path for path in sorted((ROOT / "notebooks" / "labs").glob("*.ipynb"))}
each_lab = pytest.mark.parametrize("lab", LABS)


@dataclass(frozen=True)
class Task:
    """A task of a lab that was executed up to its check.

    Attributes:
        stub, check: sources of the cells.
        names: what was defined just before the check ran, the solution included.
        said: what the check printed.
    """

    stub: str
    check: str
    names: dict[str, Any]
    said: str

    def judge(self, answer: str) -> None:
        """Run the check after another answer, which replaces what the task's own cells define."""
        names = dict(self.names)
        with redirect_stdout(io.StringIO()):
            exec(self.stub, names)
            exec(answer, names)
            exec(self.check, names)


def tagged(cell: nbformat.NotebookNode, tag: str) -> bool:
    return tag in cell.metadata.get("tags", [])


def code_cells(lab: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(LABS[lab], as_version=4).cells if cell.cell_type == "code"]


@cache
def tasks(lab: str) -> list[Task]:
    """Execute a lab from top to bottom; its tasks."""
    plt.switch_backend("agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    found, stub = [], ""
    for cell in code_cells(lab):
        before = dict(names)
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(cell.source, lab, "exec"), names)
        if tagged(cell, "task"):
            stub = cell.source
        if tagged(cell, "check"):
            found.append(Task(stub, cell.source, before, printed.getvalue()))
    plt.close("all")
    return found


@each_lab
def test_solved_it_passes_from_top_to_bottom(lab: str) -> None:
    assert 3 <= len(tasks(lab)) <= 5
    assert [task.said for task in tasks(lab) if not task.said.startswith("right")] == []


@each_lab
def test_without_its_solution_every_check_fails_and_names_the_task(lab: str) -> None:
    for number, task in enumerate(tasks(lab), start=1):
        with pytest.raises((NotImplementedError, AssertionError), match=f"^task {number}: write "):
            task.judge("")


@each_lab
def test_an_answer_that_returns_nothing_gets_a_hint_too(lab: str) -> None:
    for task in tasks(lab):
        with pytest.raises(AssertionError, match=r"\w+ \w+"):
            task.judge(re.sub(r"raise NotImplementedError\(.*\)", "return None", task.stub))


@pytest.mark.parametrize(("lab", "number"), MISTAKES)
def test_a_typical_mistake_gets_its_hint(lab: str, number: int) -> None:
    for hint, answer in MISTAKES[lab, number].items():
        with pytest.raises(AssertionError, match=re.escape(hint)):
            tasks(lab)[number - 1].judge(answer)


def test_mistakes_are_known_for_every_task() -> None:
    assert MISTAKES.keys() == {(lab, number) for lab in LABS for number in range(1, len(tasks(lab)) + 1)}


@each_lab
def test_a_task_is_three_cells_in_this_order_and_all_cells_are_short(lab: str) -> None:
    cells = code_cells(lab)
    roles = [tag for cell in cells for tag in ("task", "solution", "check") if tagged(cell, tag)]
    assert roles == ["task", "solution", "check"] * len(tasks(lab))
    for cell, following in pairwise(cells):
        if tagged(cell, "task"):
            assert tagged(following, "solution"), cell.source
        if tagged(cell, "solution"):
            assert tagged(cell, "hide-cell") and tagged(following, "check"), cell.source
    lines = [[line for line in cell.source.splitlines() if line] for cell in cells]
    assert [cell for cell in lines if len(cell) > 8] == []


@each_lab
def test_it_says_what_it_is_for_and_what_it_needs(lab: str) -> None:
    opening = nbformat.read(LABS[lab], as_version=4).cells[0].source
    assert all(part in opening for part in ("**45 minutes.**", "**You will be able to**", "**You need**"))
    assert f"(../notebooks/labs/{lab}.ipynb)" in (ROOT / "book" / "labs.md").read_text(encoding="utf-8")


def test_the_students_copies_lack_the_solutions_and_nothing_else(tmp_path: Path) -> None:
    copies = write_student_copies(ROOT, tmp_path / "handout")
    assert [copy.name for copy in copies] == [f"{lab}.ipynb" for lab in LABS]
    for copy in copies:
        stored = nbformat.read(LABS[copy.stem], as_version=4)
        handed = nbformat.read(copy, as_version=4)
        nbformat.validate(handed)
        solutions = [cell for cell in stored.cells if tagged(cell, "solution")]
        assert solutions and handed.metadata == stored.metadata
        assert handed.cells == [cell for cell in stored.cells if cell not in solutions]


@each_lab
def test_a_student_who_fills_in_the_copy_gets_every_check_right(lab: str) -> None:
    solutions = [cell.source for cell in code_cells(lab) if tagged(cell, "solution")]
    copy = without_solutions(nbformat.read(LABS[lab], as_version=4))
    assert sum(tagged(cell, "task") for cell in copy.cells) == len(solutions)
    for task, solution in zip(tasks(lab), solutions, strict=True):
        task.judge(solution)


def test_outside_the_project_there_is_one_line(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main() == 2
    assert capsys.readouterr().err.count("\n") == 1
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: intro\n")
    assert main() == 2
    assert "no labs in" in capsys.readouterr().err
