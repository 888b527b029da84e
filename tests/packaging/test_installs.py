"""Every way to install, times every way to run the suites, measures the same series.

A baseline finds a series by its name, so the name may not depend on where the suites lie.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .conftest import ROOT, Built

pytestmark = pytest.mark.full

NOT_IN_A_CLONE = shutil.ignore_patterns(
    ".git", ".venv", ".tox", ".*_cache", ".benchmarks", ".hypothesis", ".sandboxbench", "__pycache__", "build", "dist"
)


@dataclass(frozen=True, slots=True)
class Installed:
    """A virtual environment that has the plugin, and a clone of the repository for ``pytest benches/``."""

    bin: Path
    clone: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    pytest_arguments: tuple[str, ...] = ()


def run(command: list[str], *, cwd: Path, environment: Mapping[str, str] | None = None) -> None:
    """Run a command that must succeed, with none of the settings of the pytest or tox around this test."""
    kept = {key: value for key, value in os.environ.items() if key in {"HOME", "LANG", "PATH", "TMPDIR"}}
    kept |= {key: value for key, value in os.environ.items() if key.startswith("PIP_") or key.endswith("_proxy")}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=kept | dict(environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"


@pytest.fixture(scope="module")
def install(tmp_path_factory: pytest.TempPathFactory, built: Built) -> Callable[[str], Installed]:
    """Install in a fresh virtual environment, once for each way."""

    @functools.cache
    def installed(way: str) -> Installed:
        base = tmp_path_factory.mktemp(way)
        clone = base / "clone"
        shutil.copytree(ROOT, clone, symlinks=True, ignore=NOT_IN_A_CLONE)
        targets = {
            "editable": ["--editable", str(clone)],
            "wheel": [str(built.wheel_from_tree)],
            "wheel from sdist": [str(built.wheel_from_sdist)],
            "not installed": tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
                "dependencies"
            ],
        }
        scripts = base / "venv" / "bin"
        run([sys.executable, "-m", "venv", str(base / "venv")], cwd=base)
        run([str(scripts / "python"), "-m", "pip", "install", "--quiet", *targets[way]], cwd=base)
        if way == "not installed":
            return Installed(scripts, clone, {"PYTHONPATH": str(clone)}, ("-p", "pytest_sandboxbench.plugin"))
        return Installed(scripts, clone)

    return installed


def series(installed: Installed, how: str, folder: Path) -> list[str]:
    """Run the suites on the ``fake`` provider; the names of all series measured, in order."""
    cwd = folder
    match how:
        case "pytest benches/":
            cwd, where = installed.clone, ["benches/"]
        case "pytest --pyargs":
            where = ["--pyargs", "pytest_sandboxbench.benches"]
        case "sandboxbench init":
            run(
                [str(installed.bin / "python"), "-m", "pytest_sandboxbench.cli", "init", "copied"],
                cwd=folder,
                environment=installed.environment,
            )
            where = ["copied"]
        case _:
            raise AssertionError(how)
    report = folder / "report.json"
    measure = ["--sandbox-provider", "fake", "--sandbox-samples", "3", f"--benchmark-json={report}"]
    # Not `python -m pytest`, which would put the clone on the path, before the wheel.
    command = [str(installed.bin / "pytest"), *installed.pytest_arguments, *where, *measure]
    run(command, cwd=cwd, environment=installed.environment)
    return sorted(benchmark["fullname"] for benchmark in json.loads(report.read_bytes())["benchmarks"])


@pytest.fixture(scope="module")
def expected(install: Callable[[str], Installed], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a user who installed the wheel measures with ``--pyargs``."""
    return series(install("wheel"), "pytest --pyargs", tmp_path_factory.mktemp("expected"))


@pytest.mark.parametrize("how", ["pytest benches/", "pytest --pyargs", "sandboxbench init"])
@pytest.mark.parametrize("way", ["editable", "wheel", "wheel from sdist", "not installed"])
def test_the_same_series_are_measured(
    way: str, how: str, install: Callable[[str], Installed], expected: list[str], tmp_path: Path
) -> None:
    assert expected, "the suites measured nothing"
    assert series(install(way), how, tmp_path) == expected


def test_an_installed_wheel_has_the_command(install: Callable[[str], Installed], tmp_path: Path) -> None:
    run([str(install("wheel").bin / "sandboxbench"), "--help"], cwd=tmp_path)
