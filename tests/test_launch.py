"""Binder and Colab: buttons once the repository's address is set, none before, and what Binder installs."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
PAGE = "notebooks/start/quickstart"
BUILD = "from jupyter_book.cli.main import main; main()"
OFF = re.compile(r'(?m)^#(?=  binderhub_url:|  colab_url:|repository:|  url: "https://github.com|  branch:)')


def built_page(folder: Path, config: str) -> str:
    """One notebook's page as this configuration makes it."""
    ignored = shutil.ignore_patterns("mathjax")
    shutil.copytree(ROOT / "book" / "_static", folder / "book" / "_static", ignore=ignored)
    shutil.copy(ROOT / "book" / "references.bib", folder / "book")
    (folder / "_config.yml").write_text(config)
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: book/intro\nchapters:\n  - file: {PAGE}\n")
    (folder / "book" / "intro.md").write_text("# A book\n")
    (folder / PAGE).parent.mkdir(parents=True)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A page")])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / f"{PAGE}.ipynb")
    command = ["build", str(folder), "-W", "-n", "--keep-going", "--all", "-q"]
    done = subprocess.run(
        [sys.executable, "-c", BUILD, *command], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "_build" / "html" / f"{PAGE}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("address", [None, "https://github.com/someone/study"])
def test_buttons_appear_once_the_address_is_set(tmp_path, address):
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    if address:
        config, lines = OFF.subn("", config)
        assert lines == 5
        config = config.replace("https://github.com/OWNER/NAME", address)
    html = built_page(tmp_path, config)
    links = re.findall(r'href="(https?://[^"]*)"', html)
    assert links == (
        [
            f"https://mybinder.org/v2/gh/someone/study/main?urlpath=lab/tree/{PAGE}.ipynb",
            f"https://colab.research.google.com/github/someone/study/blob/main/{PAGE}.ipynb",
        ]
        if address
        else []
    )
    assert (ROOT / f"{PAGE}.ipynb").is_file()  # what the links name
    assert not re.findall(
        r'(?:src|srcset|data|action)="(?:https?:)?//', html
    )  # nobody is asked before a click


@pytest.mark.skipif(os.name == "nt", reason="Binder runs it on Linux")
@pytest.mark.parametrize("index", ["", "https://example.org/cpu"])
def test_binder_installs_what_the_readme_says(tmp_path, index):
    folder = ROOT / ".binder"
    assert os.access(folder / "postBuild", os.X_OK)
    version = (folder / "runtime.txt").read_text().strip().removeprefix("python-")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={version}"

    script = (folder / "postBuild").read_text()
    assert script.count('CPU_INDEX=""') == 1
    (tmp_path / "postBuild").write_text(script.replace('CPU_INDEX=""', f'CPU_INDEX="{index}"'))
    pip = tmp_path / "pip"
    pip.write_text('#!/bin/sh\necho "pip $* [$PIP_EXTRA_INDEX_URL]"\n')
    pip.chmod(0o755)
    home = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "postBuild"], cwd=tmp_path, env=home, capture_output=True, text=True, check=True
    )
    readme = (ROOT / "README.md").read_text()
    for line in done.stdout.splitlines():
        command, _, given = line.partition(" [")
        assert given == f"{index}]" and command.replace(" --no-cache-dir", "") in readme
    assert len(done.stdout.splitlines()) == 2
