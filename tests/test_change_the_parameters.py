"""The page "Change the parameters", typed as it stands: every command and every piece of code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from fgl_core.cli import main
from fgl_core.datasets import own_data
from fgl_core.study.store import Store

ROOT = Path(__file__).parents[1]
PAGES = ("change-the-parameters", "own-method")
NAMED = "name=$(fgl data add wine | cut -d: -f1)"  # which the next line uses as $name


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)


def commands() -> list[str]:
    lines = [line for page in PAGES for block in blocks(page, "bash") for line in block.splitlines()]
    assert NAMED in lines
    # test_new_method.py has the other one
    return [line for line in lines if line != NAMED and not line.startswith("fgl new-method")]


def code(part: str) -> str:
    """The one piece of Python that holds ``part``."""
    (found,) = [block for block in blocks("change-the-parameters", "python") if part in block]
    return found


@pytest.fixture
def home(tmp_path, monkeypatch) -> Store:
    """An empty root and working folder; data still come from a mirror, where there is one."""
    monkeypatch.setenv("FGL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FGL_PROFILE", raising=False)
    monkeypatch.chdir(tmp_path)
    return Store()


@pytest.mark.parametrize("line", commands())
def test_every_command_works(home, tmp_path, capsys, real_data, line):
    if "citeseer" in line and "run" in line:
        real_data("citeseer")
    if "wine" in line or "$name" in line:
        exec(code("load_wine"), {})
        line = line.replace("$name", own_data("wine").name)
    words = shlex.split(re.sub(r"--rounds \d+", "--rounds 2", line))
    assert words[0] == "fgl"
    if words[1] == "render":  # with two rounds, and not into the project
        rounds = ["-p", "rounds", "2"] if "quickstart" in line else []
        words = [
            "fgl",
            "render",
            str(ROOT / words[2]),
            *words[3:],
            *rounds,
            "-o",
            str(tmp_path / "page.ipynb"),
        ]
    assert main(words[1:]) == 0
    out = capsys.readouterr().out
    if words[1] == "run":
        (path,) = home.runs.glob("*.json")
        assert f"record: {path}" in out and "best validation round" in out
    if words[1] == "render":
        assert (tmp_path / "page.html").is_file()
    if words[1:3] == ["data", "add"]:
        assert re.match(r"own-wine-[0-9a-f]{16}: 178 nodes, \d+ edges, 13 features, 3 classes; ", out)


def test_the_table_of_own_runs_has_a_row_for_each(home, capsys):
    for method in ("fedavg", "fedavgm"):
        run = f"run --dataset karate --clients 2 --hidden 8 --rounds 2 --method {method}"
        assert main(run.split()) == 0
    capsys.readouterr()
    exec(code("runs_frame"), {})
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 3 and {row.split()[2] for row in rows[1:]} == {"fedavg", "fedavgm"}


def test_own_data_in_python(home, capsys):
    exec(code("load_wine"), {})
    exec(code("own_data("), {})
    assert 0.3 < float(capsys.readouterr().out) <= 1


def test_there_is_no_code_that_no_test_runs():
    assert len(blocks("change-the-parameters", "python")) == 3
    assert not blocks("own-method", "python")
