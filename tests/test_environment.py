"""The lock, the conda environment and pyproject.toml describe one environment."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())
PINS = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]


def locked() -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in PINS)}


def requirements(*extras: str) -> list[Requirement]:
    lines = list(PROJECT["dependencies"])
    for extra in extras:
        lines += PROJECT["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


def test_every_line_of_the_lock_is_an_exact_pin_that_installs_on_any_platform() -> None:
    for line in PINS:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9._]+", line), line  # no +cpu, no hash, no address
        assert not re.match(r"nvidia|triton|cuda|fgl", line), line
    assert len(locked()) == len(PINS)


@pytest.mark.parametrize("requirement", requirements("dask", "dev"), ids=str)
def test_the_lock_holds_what_the_package_needs(requirement: Requirement) -> None:
    version = locked()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version, prereleases=True)


def test_the_conda_route_installs_the_same_lock() -> None:
    *packages, pip = CONDA["dependencies"]
    python = next(package for package in packages if package.startswith("python="))
    assert SpecifierSet(PROJECT["requires-python"]).contains(python.removeprefix("python="))
    assert "pip" in packages
    assert pip == {"pip": ["-r requirements.lock", "-e ."]}
